"""What the tests of the engine share: leaves, plain values, and the same program in PyTorch."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr


def leaf(data: Any, dtype: Any = None) -> cr.Tensor:
    """Return a leaf that requires grad."""
    return cr.tensor(data, dtype=dtype, requires_grad=True)


def memory(tensor: cr.Tensor) -> np.ndarray:
    """Return the array behind a tensor, sharing its memory."""
    return tensor.detach().numpy()


def shares(a: cr.Tensor, b: cr.Tensor) -> bool:
    return bool(np.shares_memory(memory(a), memory(b)))


def equal(a: Any, b: Any) -> bool:
    """Say whether two arrays or tensors have the same shape, dtype and values, nan included."""
    a, b = _array(a), _array(b)
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)


def _array(value: Any) -> np.ndarray:
    return memory(value) if isinstance(value, cr.Tensor) else np.asarray(value)


# --- the same program in both libraries -----------------------------------------------------------


class Library:
    """One of the two libraries, under the names that both have; `lib(x)` of a nest makes a leaf."""

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
    """Run `program` in both libraries, and hold chainrule's results against PyTorch's.

    A program returns tensors, numbers, strings, None, or lists, tuples and dicts of them.
    """
    torch = pytest.importorskip("torch")
    ours = program(CHAINRULE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = program(Library(torch, torch.autograd.backward, torch.autograd.grad))
    _compare(plain(ours), plain(theirs), rtol)


def plain(value: Any) -> Any:
    """Return tensors as arrays and everything else as it is."""
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


def raised(function: Callable[[], Any]) -> bool:
    """Say whether `function` raises a RuntimeError, as both libraries' graph errors are."""
    try:
        function()
    except RuntimeError:
        return True
    return False


# --- another process ------------------------------------------------------------------------------


def run_script(source: str, timeout: float = 60) -> str:
    """Run Python source in a fresh process that finds the same packages; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", source],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
