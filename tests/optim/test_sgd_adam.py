"""SGD and Adam, compared with PyTorch step by step; without it, with known properties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.optim import SGD, Adam

SGD_OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "momentum": {"momentum": 0.9},
    "dampening": {"momentum": 0.9, "dampening": 0.3},
    "decay": {"weight_decay": 0.1},
    "decay and momentum": {"weight_decay": 0.1, "momentum": 0.5},
    "nesterov": {"momentum": 0.9, "nesterov": True},
    "maximize": {"maximize": True},
    "everything": {"momentum": 0.8, "weight_decay": 0.2, "nesterov": True, "maximize": True},
}
ADAM_OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "betas": {"betas": (0.5, 0.9)},
    "no memory": {"betas": (0.0, 0.0)},
    "eps": {"eps": 0.1},
    "decay": {"weight_decay": 0.1},
    "amsgrad": {"amsgrad": True, "betas": (0.9, 0.5)},
    "maximize": {"maximize": True},
    "everything": {"amsgrad": True, "weight_decay": 0.2, "maximize": True, "betas": (0.8, 0.7)},
}
CASES = [
    *[pytest.param("SGD", options, id=f"SGD {name}") for name, options in SGD_OPTIONS.items()],
    *[pytest.param("Adam", options, id=f"Adam {name}") for name, options in ADAM_OPTIONS.items()],
    *[pytest.param("AdamW", options, id=f"AdamW {name}") for name, options in ADAM_OPTIONS.items()],
]


def starts(dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (4,), (), (0, 2)]
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


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_steps_are_those_of_pytorch(kind: str, options: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    values = starts(dtype)
    ours = [cr.tensor(value, requires_grad=True) for value in values]
    theirs = [torch.tensor(value, requires_grad=True) for value in values]
    our_optimizer = getattr(cr.optim, kind)(ours, lr=0.05, **options)
    their_optimizer = getattr(torch.optim, kind)(theirs, lr=0.05, **options)
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for step in range(12):
        for our, their, g in zip(ours, theirs, gradients(values, step), strict=True):
            our.grad, their.grad = cr.tensor(g), torch.tensor(g)
        if step == 5:  # a parameter without a gradient is left alone
            ours[1].grad = theirs[1].grad = None
        our_optimizer.step()
        their_optimizer.step()
        for our, their in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                our.detach().numpy(), their.detach().numpy(), rtol=tolerance, atol=tolerance
            )
    remembered = our_optimizer.state_dict()["state"]
    expected = their_optimizer.state_dict()["state"]
    assert remembered.keys() == {k for k, kept in expected.items() if any_value(kept)}
    for number, kept in remembered.items():
        assert kept.keys() == expected[number].keys()
        for name, value in kept.items():
            np.testing.assert_allclose(
                value.numpy(), expected[number][name].numpy(), rtol=tolerance, atol=tolerance
            )


def any_value(kept: dict[str, Any]) -> bool:
    """Say whether PyTorch's state has a value: without momentum, SGD stores None."""
    return any(value is not None for value in kept.values())


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


@pytest.mark.parametrize(
    "make",
    [
        lambda w: SGD([w], lr=0.1, momentum=0.9, weight_decay=0.1, nesterov=True),
        lambda w: Adam([w], lr=0.1, weight_decay=0.1, amsgrad=True),
    ],
    ids=["SGD", "Adam"],
)
def test_update_in_the_parameters_own_memory(make: Any) -> None:
    memory = np.ones(3, np.float32)
    w = cr.from_numpy(memory).requires_grad_()
    g = cr.tensor([1.0, 2.0, 3.0])
    w.grad = g
    optimizer = make(w)
    version = w._version
    for _ in range(3):
        optimizer.step()
    assert w.is_leaf
    assert w.requires_grad
    assert w.grad is g
    assert g.tolist() == [1.0, 2.0, 3.0]
    assert w._version == version + 3
    assert np.shares_memory(w.detach().numpy(), memory)
    assert (memory < 1).all()


def test_a_graph_recorded_before_the_step_notices_it() -> None:
    w = cr.tensor([1.0, 2.0], requires_grad=True)
    optimizer = SGD([w], lr=0.1)
    w.grad = cr.ones(2)
    loss = (w * w).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("dtype", [cr.float16, cr.float32, cr.complex64])
@pytest.mark.parametrize("kind", [SGD, Adam])
def test_numpy_scalars_as_options_leave_the_dtype_alone(kind: Any, dtype: Any) -> None:
    w = cr.ones(3, dtype=dtype, requires_grad=True)
    w.grad = cr.ones(3, dtype=dtype)
    optimizer = kind([w], lr=np.float64(0.1), weight_decay=np.float64(0.1))
    optimizer.step()
    optimizer.step()
    assert w.dtype == dtype
    assert all(
        value.dtype == dtype
        for kept in optimizer.state.values()
        for name, value in kept.items()
        if name != "step"
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


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_descends_to_the_minimum(kind: Any) -> None:
    target = cr.tensor([3.0, -1.0])
    w = cr.zeros(2, requires_grad=True)
    optimizer = kind([w], lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        (w - target).pow(2).sum().backward()
        optimizer.step()
    np.testing.assert_allclose(w.tolist(), target.tolist(), atol=1e-2)
