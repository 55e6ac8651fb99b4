"""Schedules of the learning rate, compared with PyTorch's; without it, with known properties."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.optim.lr_scheduler import (
    ChainedScheduler,
    CosineAnnealingLR,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LRScheduler,
    OneCycleLR,
    ReduceLROnPlateau,
    StepLR,
)

Make = Callable[[Any, Any], Any]
"""A function of the module `lr_scheduler` and an optimiser that returns a schedule."""

SCHEDULES: dict[str, Make] = {
    "Lambda": lambda s, o: s.LambdaLR(o, lambda n: 0.95**n),
    "Lambda, list": lambda s, o: s.LambdaLR(o, [lambda n: 0.95**n, lambda n: 1 / (n + 1)]),
    "Multiplicative": lambda s, o: s.MultiplicativeLR(o, lambda n: 1 - 1 / (n + 5)),
    "Step": lambda s, o: s.StepLR(o, 7, 0.5),
    "MultiStep": lambda s, o: s.MultiStepLR(o, [3, 10, 10, 30], 0.3),
    "Constant": lambda s, o: s.ConstantLR(o, 0.25, 6),
    "Linear": lambda s, o: s.LinearLR(o, 0.1, 0.7, 20),
    "Linear, default": lambda s, o: s.LinearLR(o),
    "Exponential": lambda s, o: s.ExponentialLR(o, 0.93),
    "Polynomial": lambda s, o: s.PolynomialLR(o, 30, 1.7),
    "Cosine": lambda s, o: s.CosineAnnealingLR(o, 11, 0.01),
    "Restarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "Restarts, equal": lambda s, o: s.CosineAnnealingWarmRestarts(o, 7),
    "Cyclic": lambda s, o: s.CyclicLR(o, 0.1, 0.7, 5, 8),
    "Cyclic, triangular2": lambda s, o: s.CyclicLR(
        o, [0.1, 0.2], [0.7, 0.9], 4, mode="triangular2"
    ),
    "Cyclic, exp_range": lambda s, o: s.CyclicLR(o, 0.1, 0.7, 5, mode="exp_range", gamma=0.97),
    "Cyclic, scale_fn": lambda s, o: s.CyclicLR(o, 0.1, 0.7, 5, scale_fn=lambda x: 1 / (5**x)),
    "Cyclic, iterations": lambda s, o: s.CyclicLR(
        o, 0.1, 0.7, 5, scale_fn=lambda x: 0.9**x, scale_mode="iterations", cycle_momentum=False
    ),
    "OneCycle": lambda s, o: s.OneCycleLR(o, 0.8, total_steps=60),
    "OneCycle, linear": lambda s, o: s.OneCycleLR(
        o, [0.8, 0.5], epochs=10, steps_per_epoch=5, anneal_strategy="linear"
    ),
    "OneCycle, three": lambda s, o: s.OneCycleLR(
        o, 0.8, total_steps=50, three_phase=True, pct_start=0.4, div_factor=5.0
    ),
    "OneCycle, rate": lambda s, o: s.OneCycleLR(o, 0.8, 51, cycle_momentum=False),
    "Sequential": lambda s, o: s.SequentialLR(
        o,
        [s.LinearLR(o, 0.1, 1.0, 5), s.CosineAnnealingLR(o, 20), s.ExponentialLR(o, 0.9)],
        [5, 25],
    ),
    "Sequential, start": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 3), s.StepLR(o, 4, 0.5)], [0]
    ),
    "Chained": lambda s, o: s.ChainedScheduler(
        [s.LinearLR(o, 0.1, 1.0, 5), s.ExponentialLR(o, 0.9), s.StepLR(o, 9)], optimizer=o
    ),
    "Sequential of chained": lambda s, o: s.SequentialLR(
        o,
        [s.ChainedScheduler([s.ConstantLR(o, 0.5, 9), s.ExponentialLR(o, 0.9)]), s.StepLR(o, 3)],
        [12],
    ),
}
PLATEAUS: dict[str, dict[str, Any]] = {
    "plain": {},
    "patience": {"patience": 2, "factor": 0.5},
    "cooldown": {"patience": 1, "cooldown": 3, "factor": 0.7},
    "max": {"mode": "max", "patience": 1, "min_lr": [0.1, 0.05]},
    "absolute": {"threshold_mode": "abs", "threshold": 0.1, "patience": 1, "min_lr": 0.02},
    "max absolute": {"mode": "max", "threshold_mode": "abs", "threshold": 0.1, "patience": 0},
    "eps": {"patience": 0, "eps": 0.05, "factor": 0.6},
}


def optimizer_of(library: Any, kind: str) -> Any:
    params = [library.ones(2, requires_grad=True) for _ in range(2)]
    groups = [{"params": params[:1]}, {"params": params[1:], "lr": 0.3}]
    options = {"momentum": 0.5} if kind == "SGD" else {}
    return getattr(library.optim, kind)(groups, lr=0.5, **options)


def settings(optimizer: Any) -> list[float]:
    """Return what schedules change."""
    return [
        float(value)
        for group in optimizer.param_groups
        for value in (group["lr"], group.get("momentum", 0), *group.get("betas", ()))
    ]


def sequence(optimizer: Any, scheduler: Any, steps: int) -> list[list[float]]:
    found = [settings(optimizer)]
    for _ in range(steps):
        optimizer.step()
        scheduler.step()
        found.append([*settings(optimizer), *map(float, scheduler.get_last_lr())])
    return found


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", SCHEDULES)
def test_fifty_steps_are_those_of_pytorch(name: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (optimizer_of(library, kind) for library in (cr, torch))
    our = SCHEDULES[name](cr.optim.lr_scheduler, ours)
    with warnings.catch_warnings(action="ignore"):
        their = SCHEDULES[name](torch.optim.lr_scheduler, theirs)
        expected = sequence(theirs, their, 50)
        got = sequence(ours, our, 50)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", PLATEAUS.values(), ids=PLATEAUS)
def test_plateaus_are_those_of_pytorch(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (optimizer_of(library, "SGD") for library in (cr, torch))
    our = cr.optim.lr_scheduler.ReduceLROnPlateau(ours, **options)
    their = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    losses = np.random.default_rng(0).random(50) + 3 / np.arange(1, 51)
    for number, loss in enumerate(losses):
        our.step(cr.tensor(loss) if number % 2 else loss)
        their.step(torch.tensor(loss) if number % 2 else loss)
        np.testing.assert_allclose(settings(ours), settings(theirs), rtol=1e-12)
        for name in ("best", "num_bad_epochs", "cooldown_counter", "last_epoch"):
            assert getattr(our, name) == pytest.approx(getattr(their, name))


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 7])
def test_swalr_is_that_of_pytorch(strategy: str, epochs: int) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (cr, torch):
        optimizer = optimizer_of(library, "SGD")
        decay = library.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        swa = library.optim.swa_utils.SWALR(optimizer, [0.05, 0.02], epochs, strategy)
        rates = []
        for number in range(50):
            optimizer.step()
            (decay if number < 5 else swa).step()
            rates.append(settings(optimizer))
        found.append(rates)
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_state_resumes_to_the_bit(name: str) -> None:
    optimizer = optimizer_of(cr, "Adam")
    scheduler = SCHEDULES[name](cr.optim.lr_scheduler, optimizer)
    sequence(optimizer, scheduler, 13)
    saved = pickle.loads(pickle.dumps([optimizer.state_dict(), scheduler.state_dict()]))
    other = optimizer_of(cr, "Adam")
    resumed = SCHEDULES[name](cr.optim.lr_scheduler, other)
    other.load_state_dict(saved[0])
    resumed.load_state_dict(saved[1])
    assert sequence(optimizer, scheduler, 20) == sequence(other, resumed, 20)


@pytest.mark.parametrize("name", SCHEDULES)
def test_states_load_in_both_directions(name: str) -> None:
    torch = pytest.importorskip("torch")
    pairs = []
    with warnings.catch_warnings(action="ignore"):
        for _ in range(2):
            optimizers = [optimizer_of(library, "SGD") for library in (cr, torch)]
            pairs.append(
                [
                    (optimizer, SCHEDULES[name](library.optim.lr_scheduler, optimizer))
                    for library, optimizer in zip((cr, torch), optimizers, strict=True)
                ]
            )
        for optimizer, scheduler in pairs[0]:
            sequence(optimizer, scheduler, 13)
        for (optimizer, scheduler), (source, schedule) in zip(
            pairs[1], reversed(pairs[0]), strict=True
        ):
            for group, other in zip(optimizer.param_groups, source.param_groups, strict=True):
                group.update({k: v for k, v in other.items() if k != "params"})
            scheduler.load_state_dict(copy.deepcopy(schedule.state_dict()))
        got, expected = (sequence(*pair, 20) for pair in pairs[1])
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", [*cr.optim.lr_scheduler.__all__, "SWALR"])
def test_arguments_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (
        [
            (parameter.name, parameter.default, parameter.kind)
            for parameter in inspect.signature(
                getattr(o.swa_utils if name == "SWALR" else o.lr_scheduler, name)
            ).parameters.values()
        ]
        for o in (cr.optim, torch.optim)
    )
    assert ours == theirs


# --- without PyTorch ------------------------------------------------------------------------------


def rates(scheduler: Any, steps: int) -> list[float]:
    found = [scheduler.get_last_lr()[0]]
    for _ in range(steps):
        scheduler.optimizer.step()
        scheduler.step()
        found += scheduler.get_last_lr()[:1]
    return found


def sgd(lr: Any = 1.0, **options: Any) -> Any:
    return cr.optim.SGD([cr.ones(1, requires_grad=True)], lr=lr, **options)


def test_known_sequences() -> None:
    assert rates(StepLR(sgd(), 2, 0.5), 4) == [1, 1, 0.5, 0.5, 0.25]
    assert rates(ExponentialLR(sgd(), 0.5), 3) == [1, 0.5, 0.25, 0.125]
    np.testing.assert_allclose(
        rates(CosineAnnealingLR(sgd(), 2), 4), [1, 0.5, 0, 0.5, 1], atol=1e-15
    )
    optimizer = sgd()
    both = ChainedScheduler([ExponentialLR(optimizer, 0.5), StepLR(optimizer, 2, 0.1)])
    np.testing.assert_allclose(rates(both, 3), [1, 0.5, 0.025, 0.0125])


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_rate_that_is_a_tensor_is_filled(name: str) -> None:
    if name.startswith(("OneCycle", "Cyclic")):
        pytest.skip("they set the rate of the group from their arguments")
    rate = cr.tensor(0.5, dtype=cr.float64)
    optimizer, plain = sgd(rate), sgd(0.5)
    if "list" in name:
        pytest.skip("for two groups")
    scheduler, other = (SCHEDULES[name](cr.optim.lr_scheduler, o) for o in (optimizer, plain))
    for _ in range(20):
        for o, s in ((optimizer, scheduler), (plain, other)):
            o.step()
            s.step()
        assert optimizer.param_groups[0]["lr"] is rate
        assert rate.item() == pytest.approx(plain.param_groups[0]["lr"], abs=1e-15)


def test_a_compiled_step_follows_a_tensor_without_a_new_program() -> None:
    w = cr.ones(2, requires_grad=True)
    optimizer = cr.optim.SGD([w], lr=cr.tensor(0.25, dtype=cr.float64))
    scheduler = ExponentialLR(optimizer, 0.5)

    @cr.compile
    def step() -> None:
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()

    for _ in range(4):
        step()
        scheduler.step()
    assert w.tolist() == [1 - 0.25 * (1 + 0.5 + 0.25 + 0.125)] * 2
    assert len(step._entries) <= 2  # type: ignore[attr-defined]


def test_the_order_of_the_calls() -> None:
    scheduler = StepLR(sgd(), 1)
    with pytest.warns(UserWarning, match=r"call optimizer\.step\(\) first") as caught:
        scheduler.step()
    assert caught[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        scheduler.step()
        late = StepLR(sgd(), 1)
        late.optimizer.step()
        late.step()


def test_a_step_may_be_chosen() -> None:
    scheduler = ExponentialLR(sgd(), 0.5)
    scheduler.optimizer.step()
    scheduler.step(3)
    assert scheduler.get_last_lr() == [0.125]


def test_averages() -> None:
    swa = cr.optim.swa_utils
    values = [cr.tensor([float(n), -float(n)]) for n in range(5)]
    mean, moving = [values[0].clone()], [values[0].clone()]
    for number, value in enumerate(values[1:], 1):
        swa.get_swa_multi_avg_fn()(mean, [value], number)
        swa.get_ema_multi_avg_fn(0.5)(moving, [value], number)
    assert mean[0].tolist() == pytest.approx([2.0, -2.0])
    assert moving[0].tolist() == pytest.approx([49 / 16, -49 / 16])
    w = cr.ones(2, requires_grad=True)
    assert not swa.get_ema_avg_fn(0.5)(w, w, 1).requires_grad
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        swa.get_ema_avg_fn(2)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda s, o: s.StepLR("o", 1), TypeError, "str is not an Optimizer"),
        (lambda s, o: s.ExponentialLR(o, 0.1, 3), KeyError, "'initial_lr' is not specified"),
        (lambda s, o: s.LambdaLR(o, [abs, abs]), ValueError, "got 2 values, expected 1"),
        (lambda s, o: s.MultiplicativeLR(o, 3), TypeError, "should be a function, but got int"),
        (lambda s, o: s.ConstantLR(o, 2), ValueError, "between 0 and 1, but got 2"),
        (lambda s, o: s.LinearLR(o, 0.0), ValueError, "Starting multiplicative factor"),
        (lambda s, o: s.LinearLR(o, 0.1, 2), ValueError, "Ending multiplicative factor"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError, "positive integer T_0"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 0), ValueError, "T_mult >= 1"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 1, "a"), ValueError, "eta_min"),
        (lambda s, o: s.CosineAnnealingWarmRestarts(o, 2).step(-1), ValueError, "non-negative"),
        (lambda s, o: s.CyclicLR(o, 0.1, 1, mode="square"), ValueError, "mode is invalid"),
        (lambda s, o: s.OneCycleLR(o, 1), ValueError, "either total_steps OR"),
        (lambda s, o: s.OneCycleLR(o, 1, 0), ValueError, "positive integer total_steps"),
        (lambda s, o: s.OneCycleLR(o, 1, None, 3, -1), ValueError, "integer steps_per_epoch"),
        (lambda s, o: s.OneCycleLR(o, 1, 9, pct_start=2.0), ValueError, "pct_start"),
        (lambda s, o: s.OneCycleLR(o, 1, 9, anneal_strategy="x"), ValueError, "anneal_strategy"),
        (lambda s, o: s.ReduceLROnPlateau(o, factor=1), ValueError, "Factor should be < 1"),
        (lambda s, o: s.ReduceLROnPlateau(o, "least"), ValueError, "mode least is unknown"),
        (lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="x"), ValueError, "mode x is unk"),
        (lambda s, o: s.SequentialLR(o, [], []), ValueError, "expects at least one scheduler"),
        (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [3]), ValueError, "one more than"),
        (lambda s, o: s.ChainedScheduler([s.ReduceLROnPlateau(o)]), ValueError, "at index 0"),
        (
            lambda s, o: s.ChainedScheduler([s.StepLR(o, 1), s.StepLR(sgd(), 1)]),
            ValueError,
            "same optimizer.* index 1",
        ),
    ],
)
def test_errors(make: Make, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make(cr.optim.lr_scheduler, sgd())


def test_more_errors() -> None:
    with pytest.raises(ValueError, match="must support momentum or beta1"):
        CyclicLR(cr.optim.Adagrad([cr.ones(1, requires_grad=True)]), 0.1, 1)
    with pytest.raises(NotImplementedError, match=r"has no get_lr\(\)"):
        LRScheduler(sgd())
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        rates(OneCycleLR(sgd(), 1, 2, cycle_momentum=False), 3)
    with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0"):
        cr.optim.swa_utils.SWALR(sgd(), 0.1, -1)
    plateau = ReduceLROnPlateau(sgd(), min_lr=[0.1], patience=0)
    plateau.optimizer.add_param_group({"params": cr.ones(1, requires_grad=True)})
    with pytest.raises(ValueError, match="2 parameter groups, but min_lr 1"):
        [plateau.step(1.0) for _ in range(3)]


def test_functions_of_a_class_keep_their_attributes() -> None:
    class Halving:
        calls = 0

        def __call__(self, step: int) -> float:
            self.calls += 1
            return 0.5**step

    scheduler = LambdaLR(sgd(), Halving())
    rates(scheduler, 3)
    other = LambdaLR(sgd(), Halving())
    other.load_state_dict(scheduler.state_dict())
    assert other.lr_lambdas[0].calls == 4
