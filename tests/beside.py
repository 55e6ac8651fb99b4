"""A function of a library and tensors, run in chainrule and in PyTorch: everything has to agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr


def beside_torch(
    function: Callable[..., Any],
    *inputs: Any,
    order: int = 2,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Compare values, shapes, dtypes and derivatives up to that order with PyTorch's.

    `function` takes the library first, then a tensor for each input: floating and complex ones
    require grad. Lists of floats are taken as float64.
    """
    torch = pytest.importorskip("torch")
    arrays = [np.asarray(x) for x in inputs]
    ours, theirs = (_run(library, function, arrays, order) for library in (cr, torch))
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        near = rtol or (1e-5 if a.dtype in (np.float16, np.float32, np.complex64) else 1e-10)
        np.testing.assert_allclose(a, b, rtol=near, atol=atol or 1e-12 + near / 10)


def _run(library: Any, function: Callable[..., Any], arrays: list[Any], order: int) -> list[Any]:
    xs = [library.tensor(a.copy()) for a in arrays]
    leaves = [x.requires_grad_() for x in xs if x.is_floating_point() or x.is_complex()]
    result = function(library, *xs)
    outs = list(result) if isinstance(result, tuple | list) else [result]
    found, rng = list(outs), np.random.default_rng(5)
    for level in range(1, order + 1):
        outs = _pulled(library, outs, leaves, rng, level < order)
        found += outs
    return [np.array(out.numpy(force=True)) for out in found]


def _pulled(library: Any, outs: list[Any], leaves: list[Any], rng: Any, more: bool) -> list[Any]:
    """Return the gradients of a weighted sum of the outputs; zeros where nothing is connected."""
    weights = [_like(rng, out) for out in outs]
    tracked = [(out, g) for out, g in zip(outs, weights, strict=True) if out.requires_grad]
    if not tracked:
        return [library.zeros_like(x) for x in leaves]
    connected, gs = zip(*tracked, strict=True)
    gs = [library.tensor(g) for g in gs]
    return list(
        library.autograd.grad(connected, leaves, gs, create_graph=more, materialize_grads=True)
    )


def _like(rng: Any, out: Any) -> np.ndarray:
    return numbers(out.shape, str(out.dtype).removeprefix("torch."), rng)


def numbers(shape: Any, dtype: str = "float64", seed: Any = 0) -> np.ndarray:
    """Return numbers between -1 and 1, for complex dtypes in the square around them."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, tuple(shape))
    if dtype.startswith("complex"):
        values = values + 1j * rng.uniform(-1, 1, tuple(shape))
    return np.asarray(values).astype(dtype)


def several(shapes: Any, dtype: str = "float64") -> list[np.ndarray]:
    """Return an array of such numbers for each shape."""
    return [numbers(shape, dtype, seed) for seed, shape in enumerate(shapes)]


def optional(library: Any, array: Any) -> Any:
    """Return a tensor of constants, None for None."""
    return None if array is None else library.tensor(array)


def differences(function: Callable[..., Any], *inputs: Any) -> None:
    """Check first and second derivatives against differences."""
    xs = [cr.tensor(np.array(x), requires_grad=np.array(x).dtype.kind in "fc") for x in inputs]
    assert cr.gradcheck(lambda *points: function(cr, *points), xs)
    assert cr.gradgradcheck(lambda *points: function(cr, *points), xs)
