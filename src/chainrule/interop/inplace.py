"""NumPy's functions that write into their first argument: recorded, as tensors' in-place writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.interop.manipulation import ravel, resize, taken
from chainrule.interop.operands import array_of, arrays_of, constant, is_tracked, tensors_of
from chainrule.ops.indexing import set_at


def _into(written: Any, numpys: Callable[..., Any], *others: Any) -> bool:
    """Say whether to write into a tensor; write into an array here, if that loses no gradient."""
    if isinstance(written, Tensor):
        return True
    if is_tracked(others):
        raise TypeError(
            f"numpy.{numpys.__name__} into a {type(written).__name__} would lose the gradient of "
            "what is written: make a tensor of the array first, with chainrule.tensor"
        )
    numpys(written, *arrays_of(others))
    return False


def _write(a: Tensor, places: Any, values: Any) -> None:
    """Write values at places of the flattened tensor, over and over if there are too few."""
    source = resize(_beside(a, values), places.shape)
    set_at(a, np.unravel_index(places, a.shape), source)


def _beside(a: Tensor, values: Any) -> Tensor:
    return cast(tensors_of([a, values])[1], a.dtype)


def put(a: Any, ind: Any, v: Any, mode: Literal["raise", "wrap", "clip"] = "raise") -> None:
    """Do ``a.flat[ind] = v``."""
    if _into(a, np.put, ind, v, mode):
        numbers = np.arange(a.numel())
        places = np.take(numbers, array_of(ind).ravel(), mode=mode)
        _write(a, places, v)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write values one after the other where a mask is true."""
    if _into(arr, np.place, mask, vals):
        _write(arr, np.flatnonzero(array_of(mask)), vals)


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Do ``a.flat[i] = values.flat[i]`` wherever a mask is true."""
    if _into(a, np.putmask, mask, values):
        places = np.flatnonzero(array_of(mask))
        source = ravel(_beside(a, values))
        _write(a, places, taken(source, places % max(source.numel(), 1), 0))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write a value at each place along an axis."""
    if not _into(arr, np.put_along_axis, indices, values, axis):
        return
    places = array_of(indices)
    if axis is None:
        _write(arr, places.ravel(), values)
        return
    key = list(np.ogrid[tuple(map(slice, arr.shape))])
    key[axis] = places
    set_at(arr, tuple(key), _beside(arr, values))


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Do ``dst[where] = src``."""
    if not _into(dst, np.copyto, src, casting, where):
        return
    source = tensors_of([dst, src])[1]
    if not np.can_cast(source.dtype, dst.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {source.dtype} to {dst.dtype} according to the rule "
            f"'{casting}'"
        )
    source = ops.broadcast_to(cast(source, dst.dtype), dst.shape)
    if where is not True:
        source = ops.where(constant(np.broadcast_to(array_of(where), dst.shape)), source, dst)
    set_at(dst, ..., source)


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write values along the diagonal of all axes."""
    if not _into(a, np.fill_diagonal, val, wrap):
        return
    marks = np.zeros(a.shape, bool)
    np.fill_diagonal(marks, True, wrap)
    _write(a, np.flatnonzero(marks), val)
