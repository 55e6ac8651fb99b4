"""Compiled training steps with optimisers: the same as in eager mode, in the parameters' memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import optim

OPTIMISERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda ps: optim.SGD(ps, lr=0.1),
    "momentum": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9),
    "dampening": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, dampening=0.5),
    "nesterov": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.9, nesterov=True),
    "decay": lambda ps: optim.SGD(ps, lr=0.1, momentum=0.5, weight_decay=0.1),
    "maximize": lambda ps: optim.SGD(ps, lr=0.01, maximize=True),
    "Adam": lambda ps: optim.Adam(ps, lr=0.1),
    "Adam, betas": lambda ps: optim.Adam(ps, lr=0.1, betas=(0.5, 0.8), eps=1e-3),
    "amsgrad": lambda ps: optim.Adam(ps, lr=0.1, amsgrad=True),
    "Adam, decay": lambda ps: optim.Adam(ps, lr=0.1, weight_decay=0.1),
    "AdamW": lambda ps: optim.AdamW(ps, lr=0.1, weight_decay=0.1),
    "Adam, maximize": lambda ps: optim.Adam(ps, lr=0.01, maximize=True, amsgrad=True),
    "ASGD": lambda ps: optim.ASGD(ps, lr=0.1, lambd=0.1, t0=3),
    "Adamax": lambda ps: optim.Adamax(ps, lr=0.1, weight_decay=0.1),
    "NAdam": lambda ps: optim.NAdam(ps, lr=0.1, momentum_decay=0.3),
    "RAdam": lambda ps: optim.RAdam(ps, lr=0.1, decoupled_weight_decay=True, weight_decay=0.1),
    "RMSprop": lambda ps: optim.RMSprop(ps, lr=0.01, alpha=0.9),
    "centered": lambda ps: optim.RMSprop(ps, lr=0.01, momentum=0.5, centered=True, eps=0.1),
    "Adagrad": lambda ps: optim.Adagrad(ps, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.1),
    "Adadelta": lambda ps: optim.Adadelta(ps, eps=1e-3),
    "Rprop": lambda ps: optim.Rprop(ps, lr=0.01),
    "Adafactor": lambda ps: optim.Adafactor(ps, lr=0.1, weight_decay=0.1),
    "Muon": lambda ps: optim.Muon(ps[:1], lr=0.1, adjust_lr_fn="match_rms_adamw"),
    "groups": lambda ps: optim.Adam([{"params": ps[:1], "lr": 0.5}, {"params": ps[1:]}]),
}


class Training:
    """A model with an optimiser, and a step."""

    def __init__(self, kind: str, dtype: Any, set_to_none: bool = True) -> None:
        rng = np.random.default_rng(0)
        weight, bias = rng.standard_normal((4, 3)), rng.standard_normal(3)
        self.params = [cr.tensor(a, dtype=dtype, requires_grad=True) for a in (weight, bias)]
        self.optimizer = OPTIMISERS[kind](self.params)
        self.set_to_none = set_to_none

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad(set_to_none=self.set_to_none)
        weight, bias = self.params
        loss = ((x @ weight + bias).sin() - y).abs().square().mean()
        loss.backward()
        self.optimizer.step()
        return loss

    def tensors(self) -> list[Any]:
        """Return parameters, their gradients, and what the optimiser remembers."""
        state = [t for kept in self.optimizer.state.values() for t in kept.values()]
        return [*self.params, *(p.grad for p in self.params), *state]


def batch(number: int, dtype: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(number)
    return tuple(cr.tensor(rng.standard_normal((5, n)), dtype=dtype) for n in (4, 3))  # type: ignore[return-value]


def compare(eager: Training, compiled: Training, rtol: float) -> None:
    wanted, got = eager.tensors(), compiled.tensors()
    assert len(wanted) == len(got)
    for a, b in zip(wanted, got, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.dtype, a.requires_grad) == (b.dtype, b.requires_grad)
            np.testing.assert_allclose(
                b.numpy(force=True), a.numpy(force=True), rtol=rtol, atol=rtol
            )


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", OPTIMISERS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("set_to_none", [True, False])
def test_ten_steps_equal_those_of_eager_mode(kind: str, dtype: str, set_to_none: bool) -> None:
    if kind in ("Adafactor", "Muon") and dtype == "complex128":
        pytest.skip("for real parameters")
    eager, compiled = (Training(kind, dtype, set_to_none) for _ in range(2))
    rtol = 1e-5 if dtype == "float32" else 1e-11
    step = cr.compile(compiled.step)
    memory = [p.numpy(force=True) for p in compiled.params]
    for number in range(10):
        x, y = batch(number, dtype)
        a, b = eager.step(x, y), step(x, y)
        assert b.item() == pytest.approx(a.item(), rel=rtol)
        compare(eager, compiled, rtol)
    for p, array in zip(compiled.params, memory, strict=True):
        assert np.shares_memory(p.numpy(force=True), array)


@pytest.mark.parametrize("kind", ["SGD", "momentum", "Adam", "groups"])
def test_few_programs_are_made(kind: str) -> None:
    training = Training(kind, "float64")
    step = cr.compile(training.step)
    built = []
    for number in range(6):
        step(*batch(number, "float64"))
        built.append(step._built())
    assert len(set(map(id, built[2:]))) == 1


@pytest.mark.parametrize("kind", ["momentum", "Adam"])
def test_a_new_learning_rate_applies_from_the_next_step(kind: str) -> None:
    eager, compiled = (Training(kind, "float64") for _ in range(2))
    step = cr.compile(compiled.step)
    for number in range(8):
        for training in (eager, compiled):
            training.optimizer.param_groups[0]["lr"] = 0.1 / (1 + number // 3)
        x, y = batch(number, "float64")
        eager.step(x, y), step(x, y)
        compare(eager, compiled, 1e-11)


@pytest.mark.parametrize("kind", ["momentum", "Adam"])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_learning_rate_may_be_a_tensor_which_needs_no_new_program(kind: str, dtype: str) -> None:
    eager, compiled = (Training(kind, dtype) for _ in range(2))
    rate = cr.tensor(0.1, dtype=cr.float64)
    for training in (eager, compiled):
        training.optimizer.param_groups[0]["lr"] = rate
    step = cr.compile(compiled.step)
    for number in range(8):
        rate.fill_(0.1 / (1 + number))
        x, y = batch(number, dtype)
        eager.step(x, y), step(x, y)
        compare(eager, compiled, 1e-5 if dtype == "float32" else 1e-11)
    assert len(step._entries) == 1


@pytest.mark.parametrize("kind", ["momentum", "Adam", "amsgrad"])
def test_a_state_may_be_loaded_or_forgotten_between_steps(kind: str) -> None:
    eager, compiled = (Training(kind, "float64") for _ in range(2))
    step = cr.compile(compiled.step)
    saved: list[Any] = []
    for number in range(9):
        x, y = batch(number, "float64")
        eager.step(x, y), step(x, y)
        compare(eager, compiled, 1e-11)
        if number == 3:
            saved = [copy.deepcopy(t.optimizer.state_dict()) for t in (eager, compiled)]
        if number == 5:
            for training, state in zip((eager, compiled), saved, strict=True):
                training.optimizer.load_state_dict(state)
        if number == 7:
            for training in (eager, compiled):
                training.optimizer.state.clear()


def test_a_group_may_be_added() -> None:
    eager, compiled = (Training("Adam", "float64") for _ in range(2))
    step = cr.compile(compiled.step)
    for training in (eager, compiled):
        extra = training.params.pop()
        training.params.append(cr.zeros(3, dtype=cr.float64, requires_grad=True))
        training.optimizer.add_param_group({"params": training.params[1:], "lr": 0.7})
        extra.grad = cr.ones_like(extra)
    for number in range(6):
        x, y = batch(number, "float64")
        eager.step(x, y), step(x, y)
        compare(eager, compiled, 1e-11)


def test_a_closure() -> None:
    eager, compiled = (Training("SGD", "float64") for _ in range(2))

    def stepper(training: Training) -> Callable[[Any, Any], Any]:
        def step(x: Any, y: Any) -> Any:
            def closure() -> Any:
                training.optimizer.zero_grad()
                loss = (x @ training.params[0] + training.params[1] - y).square().sum()
                loss.backward()
                return loss

            return training.optimizer.step(closure)

        return step

    one, other = stepper(eager), cr.compile(stepper(compiled))
    for number in range(5):
        x, y = batch(number, "float64")
        assert other(x, y).item() == pytest.approx(one(x, y).item())
        compare(eager, compiled, 1e-11)
