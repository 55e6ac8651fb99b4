"""Methods of ufuncs on arrays that record: reduce, accumulate and reduceat.

Their arguments are recorded arrays, so that each call of NumPy's here is recorded.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.interop.operands import array_of
from chainrule.ops import ufuncs

_REDUCTIONS: dict[Any, Any] = {
    np.add: np.sum,
    np.multiply: np.prod,
    np.maximum: np.max,
    np.minimum: np.min,
}
"""Functions of NumPy that take what ``ufunc.reduce`` takes."""


def has_own_rule(ufunc: Any, method: str) -> bool:
    """Return whether tensors have a rule for a method of a ufunc."""
    is_reduction = method == "reduce" and ufunc in _REDUCTIONS
    return not is_reduction and (ufunc, method) in ufuncs.METHODS


def call_method(ufunc: Any, method: str, x: Any, *rest: Any, **settings: Any) -> Any:
    """Return the result of ``ufunc.reduce``, ``accumulate`` or ``reduceat``."""
    if ufunc.__name__.startswith("logical"):
        x = np.not_equal(x, 0)
        if isinstance(x, np.ndarray):  # truth values are NumPy's own, where they are known
            return getattr(ufunc, method)(x, *rest, **settings)
    if method == "reduceat":
        return _reduceat(ufunc, x, *rest, **settings)
    if method == "reduce" and ufunc in _REDUCTIONS:
        return _REDUCTIONS[ufunc](x, **({"axis": 0} | settings))
    if method == "accumulate":
        return _accumulate(ufunc, x, **settings)
    return _reduce(ufunc, x, **settings)


def _reduce(
    ufunc: Any,
    x: Any,
    axis: Any = 0,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Any:
    """Return the result of the ufunc, applied from the left to right along one axis."""
    name = f"np.{ufunc.__name__}.reduce"
    if where is not True:
        raise ArgumentTypeError(
            f"{name} of an array that records takes no where=: choose with np.where(), such as "
            "an operand that changes nothing"
        )
    (axis,) = _one_axis(name, x, axis)
    parts = [np.take(x, i, axis) for i in range(x.shape[axis])]
    parts = parts if initial is None or not parts else [ufunc(initial, parts[0]), *parts[1:]]
    if not parts:
        raise ArgumentError(f"{name} of an axis without elements has no result")
    found = functools.reduce(ufunc, parts)
    return np.expand_dims(found, axis) if keepdims else found


def _accumulate(ufunc: Any, x: Any, axis: int = 0) -> Any:
    (axis,) = _one_axis(f"np.{ufunc.__name__}.accumulate", x, axis)
    parts = [np.take(x, i, axis) for i in range(x.shape[axis])]
    return np.stack([*itertools.accumulate(parts, ufunc)], axis) if parts else np.copy(x)


def _one_axis(name: str, x: Any, axis: Any) -> tuple[int]:
    """Return the one axis, counted from 0, of those that were asked for."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) != 1 or not -x.ndim <= axes[0] < x.ndim:
        raise ArgumentError(
            f"{name} of an array that records goes along one axis of those of the array, which has "
            f"{x.ndim}: got axis={axis}"
        )
    return (axes[0] % x.ndim,)


def _reduceat(ufunc: Any, x: Any, indices: Any, axis: int = 0) -> Any:
    starts = np.asarray(array_of(indices))
    stops = np.append(starts[1:], x.shape[axis])
    parts = [
        ufunc.reduce(np.take(x, np.arange(a, max(b, a + 1)), axis), axis)
        for a, b in zip(starts, stops, strict=True)
    ]
    return np.stack(parts, axis)
