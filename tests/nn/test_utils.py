"""Gradient clipping and parameters as one vector, compared with PyTorch; compiled, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import utils
from helpers.torch_comparison import compare_with_torch

GRADIENTS = ([[3.0, -4.0], [0.5, 0.0]], [1.0, -2.0, 7.0], 0.25)


def leaves(library: Any, dtype: str = "float64") -> list[Any]:
    """Return parameters of different shapes: with gradients, and one without."""
    params = []
    for values in (*GRADIENTS, [1.0]):
        array = np.asarray(values, dtype)
        params.append(library.tensor(np.ones_like(array), requires_grad=True))
    for param, values in zip(params, GRADIENTS, strict=False):
        param.grad = library.tensor(np.asarray(values, dtype))
    return params


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "complex128"])
@pytest.mark.parametrize("norm", [2.0, 1.0, float("inf"), 3])
@pytest.mark.parametrize("limit", [0.5, 5, 100.0, 0.0])
def test_the_norm_of_all_gradients_is_clipped(dtype: str, norm: float, limit: float) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = leaves(cr, dtype), leaves(torch, dtype)
    total = utils.clip_grad_norm_(iter(ours), limit, norm_type=norm)
    expected = torch.nn.utils.clip_grad_norm_(theirs, limit, norm_type=norm)
    near = {"rtol": 5e-3 if dtype == "float16" else 1e-6 if dtype == "float32" else 1e-12}
    np.testing.assert_allclose(total.numpy(), expected.numpy(), **near)
    for our, their in zip(ours[:-1], theirs[:-1], strict=True):
        assert str(our.grad.dtype) == dtype
        np.testing.assert_allclose(our.grad.numpy(), their.grad.numpy(), **near)
    assert ours[-1].grad is None
    assert not total.requires_grad


def test_one_tensor_and_none() -> None:
    (w, *_) = leaves(cr)
    grad = w.grad
    assert utils.clip_grad_norm_(w, 1.0).item() == pytest.approx(25.25**0.5)
    assert w.grad is grad  # in place
    assert utils.clip_grad_norm_([], 1.0).item() == 0
    assert utils.clip_grad_norm_([cr.ones(2, requires_grad=True)], 1.0).item() == 0


def test_a_norm_that_is_not_finite_may_raise() -> None:
    w = cr.ones(2, requires_grad=True)
    w.grad = cr.tensor([float("nan"), 1.0])
    with pytest.raises(RuntimeError, match=r"norm of order 2.0 .* is non-finite.*detect_anomaly"):
        utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
    assert w.grad[1].item() == 1
    assert utils.clip_grad_norm_([w], 1.0).isnan()


def test_values_are_clipped() -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = leaves(cr), leaves(torch)
    utils.clip_grad_value_(ours, 1.5)
    torch.nn.utils.clip_grad_value_(theirs, 1.5)
    for our, their in zip(ours[:-1], theirs[:-1], strict=True):
        np.testing.assert_array_equal(our.grad.numpy(), their.grad.numpy())


def test_parameters_as_one_vector() -> None:
    compare_with_torch(
        lambda lib, *xs: lib.nn.utils.parameters_to_vector(xs) ** 3,
        [[1.0, 2.0], [3.0, 4.0]],
        [5.0],
        6.0,
    )
    params = leaves(cr)
    vector = utils.parameters_to_vector(params).detach()
    memory = [param.detach().numpy() for param in params]
    utils.vector_to_parameters(2 * vector, (param for param in params))
    for param, array in zip(params, memory, strict=True):
        assert param.is_leaf
        assert np.shares_memory(param.detach().numpy(), array)
        assert (param == 2).all()
    with pytest.raises(RuntimeError, match=r"have 9 elements, so vec must .*\[9\], but has \[8\]"):
        utils.vector_to_parameters(vector[1:], params)
    assert (params[0] == 2).all()


@pytest.mark.parametrize("backend", ["numpy", None])
def test_a_compiled_step_clips(backend: str | None) -> None:
    def step(w: cr.Tensor, x: cr.Tensor) -> cr.Tensor:
        w.grad = None
        ((x @ w) ** 2).sum().backward()
        total = utils.clip_grad_norm_([w], 0.5)
        utils.clip_grad_value_([w], 0.3)
        with cr.no_grad():
            w.sub_(w.grad)
        return total

    compiled = cr.compile(step, backend=backend)
    ours, theirs = (cr.arange(3.0, dtype=cr.float64).requires_grad_() for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(3):
        x = cr.tensor(rng.normal(size=(4, 3)))
        assert compiled(ours, x).item() == pytest.approx(step(theirs, x).item())
        assert cr.allclose(ours, theirs)
    assert len(compiled.signatures) <= 2
