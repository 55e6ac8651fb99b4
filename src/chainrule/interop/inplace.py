"""NumPy functions that write into their first argument, recorded as in-place writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentTypeError
from chainrule.interop.manipulation import flat, resize, take_positions
from chainrule.interop.operands import array_of, arrays_of, check_keeps, constant, tensors_of
from chainrule.ops.indexing import set_at


def _is_tensor_target(written: Any, numpys: Callable[..., Any], *others: Any) -> bool:
    """Tell whether the target is a tensor; if not, call NumPy or raise."""
    if isinstance(written, Tensor):
        return True
    check_keeps(written, numpys, others)
    numpys(written, *arrays_of(others))
    return False


def _write(a: Tensor, positions: Any, values: Any) -> None:
    """Write values at positions of the flattened tensor, repeated if there are too few."""
    source = resize(_as_dtype_of(a, values), positions.shape)
    if a.ndim:
        set_at(a, np.unravel_index(positions, a.shape), source)
    elif len(positions):  # one element, to which the last value is written
        set_at(a, (), source[(len(positions) - 1) % source.shape[0]] if source.ndim else source)


def _as_dtype_of(a: Tensor, values: Any) -> Tensor:
    return cast(tensors_of([a, values])[1], a.dtype)


def put(a: Any, ind: Any, v: Any, mode: Literal["raise", "wrap", "clip"] = "raise") -> None:
    """Do ``a.flat[ind] = v``."""
    if _is_tensor_target(a, np.put, ind, v, mode):
        numbers = np.arange(a.numel())
        positions = np.take(numbers, array_of(ind).ravel(), mode=mode)
        _write(a, positions, v)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values in sequence where a mask is true."""
    if _is_tensor_target(arr, np.place, mask, vals):
        _write(arr, np.flatnonzero(array_of(mask)), vals)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Do ``a.flat[i] = values.flat[i]`` wherever a mask is true."""
    if _is_tensor_target(a, np.putmask, mask, values):
        positions = np.flatnonzero(array_of(mask))
        source = flat(_as_dtype_of(a, values))
        _write(a, positions, take_positions(source, positions % max(source.numel(), 1), 0))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write values at indices along an axis."""
    if not _is_tensor_target(arr, np.put_along_axis, indices, values, axis):
        return
    positions = array_of(indices)
    if axis is None:
        _write(arr, positions.ravel(), values)
        return
    key = list(np.ogrid[tuple(map(slice, arr.shape))])
    key[axis] = positions
    set_at(arr, tuple(key), _as_dtype_of(arr, values))


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Do ``dst[where] = src``."""
    if not _is_tensor_target(dst, np.copyto, src, casting, where):
        return
    source = tensors_of([dst, src])[1]
    if not np.can_cast(source.dtype, dst.dtype, casting):
        raise ArgumentTypeError(
            f"Cannot cast array data from {source.dtype} to {dst.dtype} according to the rule "
            f"'{casting}'"
        )
    source = ops.broadcast_to(cast(source, dst.dtype), dst.shape)
    if where is not True:
        source = ops.where(constant(np.broadcast_to(array_of(where), dst.shape)), source, dst)
    set_at(dst, ..., source)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write values along the diagonal of all axes."""
    if not _is_tensor_target(a, np.fill_diagonal, val, wrap):
        return
    mask = np.zeros(a.shape, bool)
    np.fill_diagonal(mask, True, wrap)
    _write(a, np.flatnonzero(mask), val)


def nan_to_num(
    x: Tensor,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Replace nan and the infinities by numbers: in place, unless `copy` is true."""
    return (ops.nan_to_num if copy else ops.nan_to_num_)(x, nan, posinf, neginf)
