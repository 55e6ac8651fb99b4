"""Leaves, the arrays behind tensors, and exact comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule as cr


def leaf(data: Any, dtype: Any = None) -> cr.Tensor:
    """Return a leaf that requires grad."""
    return cr.tensor(data, dtype=dtype, requires_grad=True)


def memory(tensor: cr.Tensor) -> np.ndarray:
    """Return the array behind a tensor, sharing its memory."""
    return tensor.detach().numpy()


def share_memory(a: cr.Tensor, b: cr.Tensor) -> bool:
    return bool(np.shares_memory(memory(a), memory(b)))


def equal(a: Any, b: Any) -> bool:
    """Say whether two arrays or tensors have the same shape, dtype and values, nan included."""
    a, b = _array(a), _array(b)
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)


def _array(value: Any) -> np.ndarray:
    return memory(value) if isinstance(value, cr.Tensor) else np.asarray(value)
