"""The same function or program, run in chainrule and in PyTorch: all results have to agree.

`compare_with_torch` runs a function of a library and tensors, with its derivatives; `same_as_torch`
runs a program that makes its own tensors and returns whatever is to be compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import memory

# --- a function of tensors, with its derivatives --------------------------------------------------


def compare_with_torch(
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
        outs = _weighted_gradients(library, outs, leaves, rng, level < order)
        found += outs
    return [np.array(out.numpy(force=True)) for out in found]


def _weighted_gradients(
    library: Any, outs: list[Any], leaves: list[Any], rng: Any, more: bool
) -> list[Any]:
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
    return random_array(out.shape, str(out.dtype).removeprefix("torch."), rng)


def random_array(shape: Any, dtype: str = "float64", seed: Any = 0) -> np.ndarray:
    """Return random numbers between -1 and 1; for complex dtypes, both parts."""
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, tuple(shape))
    if dtype.startswith("complex"):
        values = values + 1j * rng.uniform(-1, 1, tuple(shape))
    return np.asarray(values).astype(dtype)


def random_arrays(shapes: Any, dtype: str = "float64") -> list[np.ndarray]:
    """Return a random array for each shape."""
    return [random_array(shape, dtype, seed) for seed, shape in enumerate(shapes)]


def optional_tensor(library: Any, array: Any) -> Any:
    """Return a tensor that does not require grad; None for None."""
    return None if array is None else library.tensor(array)


def check_derivatives(function: Callable[..., Any], *inputs: Any) -> None:
    """Compare first and second derivatives with finite differences."""
    xs = [cr.tensor(np.array(x), requires_grad=np.array(x).dtype.kind in "fc") for x in inputs]
    assert cr.gradcheck(lambda *points: function(cr, *points), xs)
    assert cr.gradgradcheck(lambda *points: function(cr, *points), xs)


# --- a program in both libraries -----------------------------------------------------------------


class Library:
    """One of the two libraries, by their common names; `leaf` makes a leaf of nested lists."""

    def __init__(self, module: Any, backward: Any, grad: Any) -> None:
        self.module = module
        self.backward = backward
        self.grad = grad

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def leaf(self, data: Any, dtype: str = "float64") -> Any:
        return self.tensor(data, dtype=dtype).requires_grad_()

    def tensor(self, data: Any, dtype: str | None = None) -> Any:
        return self.module.tensor(data, dtype=None if dtype is None else getattr(self, dtype))


CHAINRULE = Library(cr, cr.autograd_backward, cr.autograd_grad)


def same_as_torch(program: Callable[[Library], Any], rtol: float = 1e-12) -> None:
    """Run `program` in both libraries, and compare the results.

    A program returns tensors, numbers, strings, None, or lists, tuples and dicts of them.
    """
    torch = pytest.importorskip("torch")
    ours = program(CHAINRULE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = program(Library(torch, torch.autograd.backward, torch.autograd.grad))
    _compare(plain(ours), plain(theirs), rtol)


def plain(value: Any) -> Any:
    """Convert tensors to arrays; keep everything else."""
    if hasattr(value, "detach"):
        return value.detach().resolve_conj().numpy() if _is_torch(value) else memory(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _compare(ours: Any, theirs: Any, rtol: float) -> None:
    if isinstance(theirs, np.ndarray):
        assert ours is not None, f"None instead of {theirs}"
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=0)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            _compare(mine, other, rtol)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        _compare(list(ours.values()), list(theirs.values()), rtol)
    else:
        assert ours == theirs


def raises_runtime_error(function: Callable[[], Any]) -> bool:
    """Say whether `function` raises a RuntimeError, as both libraries' graph errors are."""
    try:
        function()
    except RuntimeError:
        return True
    return False
