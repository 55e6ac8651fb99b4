"""A function of a library and tensors, run in chainrule and in PyTorch: everything has to agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule as cr

try:
    import torch
except ImportError:
    torch = None


def beside_torch(
    function: Callable[..., Any], *inputs: Any, order: int = 2, gradients: bool = True
) -> None:
    """Compare values, dtypes, gradients and, in the 2nd order, their derivatives.

    Lists of floats are taken as float64. Without PyTorch, the gradients are compared with
    differences alone (`differences` does that too).
    """
    if torch is None:
        return
    arrays = [np.array(x) if not isinstance(x, np.ndarray) else x for x in inputs]
    ours = _run(cr, function, arrays, order if gradients else 0)
    theirs = _run(torch, function, arrays, order if gradients else 0)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            rtol = 1e-5 if a.dtype.itemsize < 8 else 1e-10
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12 + rtol / 10)


def _run(library: Any, function: Callable[..., Any], arrays: list[Any], order: int) -> list[Any]:
    rng = np.random.default_rng(5)
    xs = [library.tensor(a.copy()) for a in arrays]
    leaves = [x.requires_grad_() for x in xs if x.is_floating_point() or x.is_complex()]
    result = function(library, *xs)
    outs = list(result) if isinstance(result, tuple | list) else [result]
    found = [_array(out) for out in outs]

    def pulled(outputs: list[Any], more: bool) -> list[Any]:
        tracked = [out for out in outputs if out is not None and out.requires_grad]
        if not tracked:
            return []
        weights = [library.tensor(_like(rng, out)) for out in tracked]
        grad = library.autograd.grad
        return list(grad(tracked, leaves, weights, create_graph=more, allow_unused=True))

    # Zeros in one library may be None in the other.
    zeros = [np.zeros(x.shape, str(x.dtype).removeprefix("torch.")) for x in leaves]
    if order >= 1 and leaves:
        first = pulled(outs, order >= 2) or [None] * len(leaves)
        found += [z if g is None else _array(g) for g, z in zip(first, zeros, strict=True)]
        if order >= 2:
            second = pulled(first, False) or [None] * len(leaves)
            found += [z if g is None else _array(g) for g, z in zip(second, zeros, strict=True)]
    return found


def _like(rng: Any, out: Any) -> np.ndarray:
    dtype = np.dtype(str(out.dtype).removeprefix("torch."))
    values = rng.uniform(0.5, 1.5, tuple(out.shape))
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(0.5, 1.5, tuple(out.shape))
    return np.asarray(values).astype(dtype)


def _array(tensor: Any) -> Any:
    return None if tensor is None else np.array(tensor.numpy(force=True))


def differences(function: Callable[..., Any], *inputs: Any) -> None:
    """Check first and second derivatives against differences."""
    xs = [cr.tensor(np.array(x), requires_grad=np.array(x).dtype.kind in "fc") for x in inputs]
    assert cr.gradcheck(lambda *points: function(cr, *points), xs)
    assert cr.gradgradcheck(lambda *points: function(cr, *points), xs)
