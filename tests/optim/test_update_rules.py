"""Steps of all optimisers, compared with PyTorch's; without it, with known properties."""

from __future__ import annotations

import inspect
import math
import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.kernels import parallel
from chainrule.kernels.threads import using_threads
from chainrule.optim import SGD, Adam, update_rule

ADAM_OPTIONS: list[dict[str, Any]] = [
    {},
    {"betas": (0.5, 0.9)},
    {"betas": (0.0, 0.0)},
    {"eps": 0.1},
    {"weight_decay": 0.1},
    {"amsgrad": True, "betas": (0.9, 0.5)},
    {"maximize": True},
    {"amsgrad": True, "weight_decay": 0.2, "maximize": True, "betas": (0.8, 0.7)},
]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "SGD": [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "dampening": 0.3},
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "momentum": 0.5},
        {"momentum": 0.9, "nesterov": True},
        {"maximize": True},
        {"momentum": 0.8, "weight_decay": 0.2, "nesterov": True, "maximize": True},
    ],
    "ASGD": [
        {},
        {"lambd": 0.3, "alpha": 0.5},
        {"t0": 3.0},
        {"t0": 3.0, "weight_decay": 0.1, "maximize": True},
    ],
    "Adam": [*ADAM_OPTIONS, {"decoupled_weight_decay": True, "weight_decay": 0.3}],
    "AdamW": ADAM_OPTIONS,
    "Adamax": [
        {},
        {"betas": (0.5, 0.9)},
        {"eps": 0.1},
        {"weight_decay": 0.1},
        {"maximize": True},
    ],
    "NAdam": [
        {},
        {"betas": (0.5, 0.9), "eps": 0.1},
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "decoupled_weight_decay": True},
        {"momentum_decay": 0.3, "maximize": True},
    ],
    "RAdam": [
        {},
        {"betas": (0.5, 0.7), "eps": 0.1},
        {"betas": (0.9, 0.8)},
        {"weight_decay": 0.1},
        {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True},
    ],
    "RMSprop": [
        {},
        {"alpha": 0.5, "eps": 0.1},
        {"momentum": 0.9},
        {"centered": True, "eps": 1e-3},
        {"weight_decay": 0.1},
        {"momentum": 0.5, "centered": True, "weight_decay": 0.1, "maximize": True, "eps": 1e-3},
    ],
    "Adagrad": [
        {},
        {"lr_decay": 0.3},
        {"initial_accumulator_value": 0.5},
        {"eps": 0.1, "weight_decay": 0.1},
        {"maximize": True, "lr_decay": 0.1},
    ],
    "Adadelta": [
        {},
        {"rho": 0.5},
        {"eps": 0.1, "weight_decay": 0.1},
        {"maximize": True},
    ],
    "Rprop": [
        {},
        {"etas": (0.3, 2.0)},
        {"step_sizes": (0.04, 0.06)},
        {"maximize": True},
    ],
    "Adafactor": [
        {},
        {"beta2_decay": -0.5},
        {"eps": (0.1, 0.5)},
        {"eps": (1e-8, 1e-3), "d": 3.0},
        {"weight_decay": 0.1},
        {"maximize": True},
    ],
    "Muon": [
        {},
        {"momentum": 0.5, "nesterov": False},
        {"weight_decay": 0.5, "ns_steps": 2},
        {"ns_coefficients": (1.5, -0.5, 0.0), "eps": 0.1},
        {"adjust_lr_fn": "original"},
        {"adjust_lr_fn": "match_rms_adamw"},
    ],
}
CASES = [
    pytest.param(kind, options, id=f"{kind} {' '.join(options) or 'plain'} {number}")
    for kind, cases in OPTIONS.items()
    for number, options in enumerate(cases)
]
REAL = {"Adafactor", "Muon"}


def starts(kind: str, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (4, 2), (5, 5)] if kind == "Muon" else [(3, 4), (4,), (), (0, 2), (2, 3, 2)]
    if kind == "Adafactor":
        shapes.remove((0, 2))  # PyTorch's becomes nan there: nothing to compare
    values = [rng.standard_normal(shape) for shape in shapes]
    if dtype.startswith("complex"):
        values = [value + 1j * rng.standard_normal(value.shape) for value in values]
    return [np.asarray(value, dtype) for value in values]


def gradients(values: list[np.ndarray], step: int) -> list[np.ndarray]:
    rng = np.random.default_rng(step + 1)
    scale = 10.0 ** rng.integers(-4, 2)
    drawn = [scale * rng.standard_normal(value.shape) for value in values]
    if values[0].dtype.kind == "c":
        drawn = [g + 1j * scale * rng.standard_normal(g.shape) for g in drawn]
    return [np.asarray(g, values[0].dtype) for g in drawn]


class Pair:
    """The same parameters and optimisers, here and in PyTorch."""

    def __init__(self, torch: Any, kind: str, options: dict[str, Any], dtype: str) -> None:
        self.torch, self.values = torch, starts(kind, dtype)
        self.ours = [cr.tensor(value, requires_grad=True) for value in self.values]
        self.theirs = [torch.tensor(value, requires_grad=True) for value in self.values]
        self.optimizers = [
            getattr(library.optim, kind)(params, lr=0.05, **options)
            for library, params in ((cr, self.ours), (torch, self.theirs))
        ]

    def step(self, number: int) -> None:
        for our, their, g in zip(
            self.ours, self.theirs, gradients(self.values, number), strict=True
        ):
            our.grad, their.grad = cr.tensor(g), self.torch.tensor(g)
        if number == 5:  # a parameter without a gradient is left alone
            self.ours[1].grad = self.theirs[1].grad = None
        for optimizer in self.optimizers:
            optimizer.step()

    def compare(self, tolerance: float) -> None:
        for our, their in zip(self.ours, self.theirs, strict=True):
            np.testing.assert_allclose(
                our.detach().numpy(), their.detach().numpy(), rtol=tolerance, atol=tolerance
            )

    def compare_state(self, tolerance: float) -> None:
        ours, theirs = (optimizer.state_dict() for optimizer in self.optimizers)
        assert ours["state"].keys() == {k for k, kept in theirs["state"].items() if any_value(kept)}
        for number, kept in ours["state"].items():
            assert kept.keys() == theirs["state"][number].keys()
            for name, value in kept.items():
                their = theirs["state"][number][name]
                assert value.shape == tuple(their.shape)
                np.testing.assert_allclose(
                    value.numpy(), their.numpy(), rtol=tolerance, atol=tolerance
                )
        for our, their in zip(ours["param_groups"], theirs["param_groups"], strict=True):
            assert our == their


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """PyTorch, with Muon's iteration in the parameter's dtype, and numbers of a state in float64.

    By itself, it iterates in bfloat16, and keeps ASGD's rate and NAdam's product in float32.
    """
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda x: x.clone())
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(default)


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_steps_are_those_of_pytorch(
    kind: str, options: dict[str, Any], dtype: str, torch: Any
) -> None:
    if dtype == "complex128" and kind in REAL:
        pytest.skip("for real parameters")
    pair = Pair(torch, kind, options, dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-10
    for step in range(12):
        pair.step(step)
        pair.compare(tolerance)
    # A moment that is a difference of large numbers is as exact as they are.
    pair.compare_state(10 * tolerance)


def any_value(kept: dict[str, Any]) -> bool:
    """Say whether PyTorch's state has a value: without momentum, SGD stores None."""
    return any(value is not None for value in kept.values())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_states_load_in_both_directions(
    kind: str, options: dict[str, Any], dtype: str, torch: Any
) -> None:
    pair, other = (Pair(torch, kind, options, dtype) for _ in range(2))
    for step in range(4):
        pair.step(step)
    for number, (params, others) in enumerate(
        [(pair.theirs, other.ours), (pair.ours, other.theirs)]
    ):
        with (torch if number else cr).no_grad():
            for param, target in zip(params, others, strict=True):
                make = (cr, torch)[number].tensor
                target.copy_(make(param.detach().numpy()))
    ours, theirs = (optimizer.state_dict() for optimizer in pair.optimizers)
    other.optimizers[0].load_state_dict(theirs)
    other.optimizers[1].load_state_dict(to_torch(torch, ours))
    for step in range(4, 8):
        other.step(step)
        other.compare(1e-5 if dtype == "float32" else 1e-10)


def to_torch(torch: Any, tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: to_torch(torch, value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [to_torch(torch, value) for value in tree]
    return torch.tensor(tree.numpy().copy()) if isinstance(tree, cr.Tensor) else tree


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_a_loaded_state_resumes_to_the_bit(kind: str, options: dict[str, Any]) -> None:
    params = [cr.tensor(value, requires_grad=True) for value in starts(kind, "float32")]
    optimizer = getattr(cr.optim, kind)(params, lr=0.05, **options)
    values = [p.detach().numpy() for p in params]

    def step(number: int, params: list[Any], optimizer: Any) -> None:
        for param, g in zip(params, gradients(values, number), strict=True):
            param.grad = cr.tensor(g)
        optimizer.step()

    for number in range(4):
        step(number, params, optimizer)
    kept = pickle.loads(pickle.dumps(optimizer.state_dict()))
    resumed = [p.detach().clone().requires_grad_() for p in params]
    fresh = getattr(cr.optim, kind)(resumed)
    fresh.load_state_dict(kept)
    for number in range(4, 8):
        step(number, params, optimizer)
        step(number, resumed, fresh)
        for one, other in zip(params, resumed, strict=True):
            np.testing.assert_array_equal(one.detach().numpy(), other.detach().numpy())


@pytest.mark.parametrize("kind", [*OPTIONS, "LBFGS"])
def test_arguments_are_those_of_pytorch(kind: str, torch: Any) -> None:
    ours, theirs = (
        [
            (parameter.name, parameter.default, parameter.kind)
            for parameter in inspect.signature(getattr(library.optim, kind)).parameters.values()
        ]
        for library in (cr, torch)
    )
    assert ours == theirs
    values = np.ones((2, 2))
    defaults = [
        getattr(library.optim, kind)([library.tensor(values, requires_grad=True)]).defaults
        for library in (cr, torch)
    ]
    assert defaults[0] == defaults[1]


def test_a_step_of_sgd_goes_against_the_gradient() -> None:
    w = cr.tensor([1.0, -2.0], requires_grad=True)
    w.grad = cr.tensor([10.0, 20.0])
    SGD([w], lr=0.1).step()
    assert w.tolist() == [0.0, -4.0]


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_first_step_of_adam_is_lr_whatever_the_scale(scale: float) -> None:
    w = cr.zeros(3, dtype=cr.float64, requires_grad=True)
    w.grad = scale * cr.tensor([1.0, -2.0, 3.0], dtype=cr.float64)
    Adam([w], lr=0.25).step()
    np.testing.assert_allclose(w.tolist(), [-0.25, 0.25, -0.25], rtol=1e-3)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_update_in_the_parameters_own_memory(kind: str, options: dict[str, Any]) -> None:
    memory = np.ones((3, 2), np.float32)
    w = cr.from_numpy(memory).requires_grad_()
    g = cr.tensor([[1.0, 2.0], [-4.0, 3.0], [5.0, -6.0]])
    before = g.tolist()
    w.grad = g
    optimizer = getattr(cr.optim, kind)([w], **{"lr": 0.1, **options})
    version = w._version
    for _ in range(3):
        optimizer.step()
    assert w.is_leaf
    assert w.requires_grad
    assert w.grad is g
    assert g.tolist() == before
    assert w._version == version + 3
    assert np.shares_memory(w.detach().numpy(), memory)
    assert (memory != 1).all()


def test_a_graph_recorded_before_the_step_notices_it() -> None:
    w = cr.tensor([1.0, 2.0], requires_grad=True)
    optimizer = SGD([w], lr=0.1)
    w.grad = cr.ones(2)
    loss = (w * w).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("dtype", [cr.float16, cr.float32, cr.complex64])
@pytest.mark.parametrize("kind", OPTIONS)
def test_numpy_scalars_as_options_leave_the_dtype_alone(kind: str, dtype: Any) -> None:
    if dtype == cr.complex64 and kind in REAL:
        pytest.skip("for real parameters")
    w = cr.ones(3, 2, dtype=dtype, requires_grad=True)
    w.grad = cr.ones(3, 2, dtype=dtype)
    options = {} if kind == "Rprop" else {"weight_decay": np.float64(0.1)}
    optimizer = getattr(cr.optim, kind)([w], lr=np.float64(0.1), **options)
    optimizer.step()
    optimizer.step()
    assert w.dtype == dtype
    assert all(
        value.dtype == dtype
        for kept in optimizer.state.values()
        for name, value in kept.items()
        if name not in ("step", "eta", "mu", "mu_product")
    )


def test_a_step_is_not_recorded_even_where_gradients_are() -> None:
    w = cr.tensor(3.0, requires_grad=True)
    (w**3).backward(create_graph=True)
    assert w.grad.requires_grad
    optimizer = SGD([w], lr=0.1, momentum=0.9)
    optimizer.step()
    assert w.is_leaf
    assert not optimizer.state[w]["momentum_buffer"].requires_grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.item() == 0
    assert not w.grad.requires_grad


def test_a_diverging_run_gives_inf_without_warnings() -> None:
    w = cr.tensor([1e30], requires_grad=True)
    w.grad = cr.tensor([1e30])
    SGD([w], lr=1e30).step()
    assert w.item() == -math.inf


@pytest.mark.parametrize("transposed", [False, True])
def test_parameters_may_lie_in_memory_as_they_like(transposed: bool) -> None:
    base = np.arange(6.0).reshape(2, 3) + 1j
    w = cr.from_numpy(base.T if transposed else base).requires_grad_()
    w.grad = cr.ones(w.shape, dtype=cr.complex128)
    Adam([w], lr=0.5).step()
    np.testing.assert_allclose(base, np.arange(6.0).reshape(2, 3) - 0.5 + 1j, atol=1e-6)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_large_parameters_are_updated_in_parts_to_the_bit(
    kind: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "PART_MIN_ELEMENTS", 5)
    rng = np.random.default_rng(0)
    value, g = rng.standard_normal((2, 4, 5))
    found = []
    for smallest in (1, 5, 21):  # in parts with a state and without, with a state only, whole
        monkeypatch.setattr(update_rule, "_PARALLEL_MIN_ELEMENTS", smallest)
        parameters = [cr.tensor(value, requires_grad=True) for _ in range(2)]
        parameters[1].data = cr.from_numpy(np.asfortranarray(value))  # can't be divided
        optimizer = getattr(cr.optim, kind)(parameters, **{"lr": 0.1, **options})
        with using_threads(3):
            for _ in range(3):
                for w in parameters:
                    w.grad = cr.tensor(g)
                optimizer.step()
        found.append([w.detach().numpy() for w in parameters])
    for arrays in found[:2]:
        for one, other in zip(arrays, found[2], strict=True):
            assert not np.array_equal(one, value)
            np.testing.assert_array_equal(one, other)


RATES = {"Adadelta": 50.0, "Adagrad": 0.5, "Adafactor": 0.1, "Rprop": 0.1}


@pytest.mark.parametrize("kind", OPTIONS)
def test_descends_to_the_minimum(kind: str) -> None:
    target = cr.tensor([[3.0, -1.0], [0.5, 2.0]])
    w = cr.zeros(2, 2, requires_grad=True)
    options = {"weight_decay": 0.0} if kind == "Muon" else {}
    optimizer = getattr(cr.optim, kind)([w], lr=RATES.get(kind, 0.1), **options)
    rate = cr.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, 400)
    for _ in range(400):
        optimizer.zero_grad()
        (w - target).pow(2).sum().backward()
        optimizer.step()
        rate.step()
    np.testing.assert_allclose(w.tolist(), target.tolist(), atol=3e-2)


@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.9), "eps": 0.1, "maximize": True}])
def test_sparse_adam_updates_the_rows_that_were_looked_up(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    table = np.random.default_rng(0).normal(size=(5, 3))
    found = []
    for library in (cr, torch):
        weight = library.tensor(table.copy())
        layer = library.nn.Embedding(5, 3, sparse=True, _weight=weight)
        optimizer = library.optim.SparseAdam(layer.parameters(), lr=0.1, **options)
        for rows in ([0, 2, 2], [3], [0, 3], [2]):
            optimizer.zero_grad()
            layer(library.tensor(rows)).pow(3).sum().backward()
            optimizer.step()
        found.append(layer.weight.detach().numpy())
        assert list(optimizer.state_dict()["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    np.testing.assert_allclose(*found, rtol=1e-12)
    assert (found[0][[1, 4]] == table[[1, 4]]).all()


@pytest.mark.parametrize("kind", OPTIONS)
def test_parameters_at_different_steps_and_of_different_dtypes_are_as_if_alone(kind: str) -> None:
    dtypes = ["float64", "float32", "float64"] if kind in REAL else ["float64", "complex64", "f4"]
    values = [np.arange(1, 7).reshape(2, 3).astype(dtype) for dtype in [*dtypes, "float64", "f4"]]
    together = [cr.tensor(value, requires_grad=True) for value in values]
    alone = [cr.tensor(value, requires_grad=True) for value in values]
    make = getattr(cr.optim, kind)
    one = make(together, lr=0.1)
    many = [make([param], lr=0.1) for param in alone]
    for step in range(4):
        for i, params in enumerate(zip(together, alone, strict=True)):
            late = i == 3 and step < 2  # the fourth parameter is two steps behind the others
            for param in params:
                param.grad = None if late else cr.tensor(values[i] * 0.3 * (-1) ** step)
        one.step()
        for optimizer in many:
            optimizer.step()
    for param, other, optimizer in zip(together, alone, many, strict=True):
        np.testing.assert_array_equal(param.detach().numpy(), other.detach().numpy())
        for name, value in one.state[param].items():
            np.testing.assert_array_equal(value.numpy(), optimizer.state[other][name].numpy())
