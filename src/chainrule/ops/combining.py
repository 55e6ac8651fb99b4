"""How values that go to indices are combined with what is there."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, tensor_of
from chainrule.autograd.operands import scalar_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import dtype_title, is_array, namespace
from chainrule.errors import ArgumentError, CompileError, DTypeError
from chainrule.kernels import flat_indexing
from chainrule.ops.wrappers import reshaped
from chainrule.primitives.indexing import index as index_primitive

Array = Any


def alike(operation: str, x: Tensor, value: Operand) -> Tensor:
    """Return a value as a tensor of the dtype of `x`; numbers are converted."""
    if value.__class__ is not Tensor and isinstance(
        value, bool | int | float | complex | np.generic
    ):
        made = scalar_array(value, x._array)
        if not np.can_cast(made.dtype, x.dtype, "same_kind"):
            raise DTypeError(
                f"{operation}(): value {value!r} cannot be converted to type {x.dtype}"
            )
        return make(made.astype(x.dtype), None)
    tensor = tensor_of(value)
    if tensor._array.dtype != x._array.dtype:
        raise DTypeError(
            f"{operation}(): Expected self.dtype to be equal to src.dtype, got "
            f"{dtype_title(x.dtype)} and {dtype_title(tensor.dtype)}: convert one of them"
        )
    return tensor


def write(x: Tensor, value: Tensor, key: Any) -> Tensor:
    """Return `x` with `value`, which has the shape of ``x[key]``, at an index."""
    kept = None
    if value.requires_grad and not flat_indexing.is_masks(key):
        kept = namespace(x._array).lasting(key, x.shape)
    return RECORDERS["assign"](x, value, path=((index_primitive, {"key": key}),), lasting=kept)


def add(x: Tensor, value: Tensor, key: Any) -> Tensor:
    return RECORDERS["add_at"](x, value, key=key)


def _multiply(x: Tensor, value: Tensor, key: Any) -> Tensor:
    return product(x, value, key, True)


WAYS: dict[Any, Callable[[Tensor, Tensor, Any], Tensor]] = {
    None: write,
    "add": add,
    "multiply": _multiply,
}


def way(operation: str, reduce: str, own: bool) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Return how a reduction combines; without `own`, what is overwritten does not take part."""
    if reduce == "sum":
        return add if own else lambda x, value, key: add(_cleared(x, key), value, key)
    if reduce == "mean":
        return lambda x, value, key: _average(x, value, key, own)
    if reduce == "prod":
        return lambda x, value, key: product(x, value, key, own)
    if reduce in ("amax", "amin"):
        name = "largest_at" if reduce == "amax" else "smallest_at"
        return lambda x, value, key: RECORDERS[name](x, value, key=key, own=own)
    raise ArgumentError(
        f"{operation}(): reduce argument must be either sum, prod, mean, amax or amin, got "
        f"{reduce!r}"
    )


def _cleared(x: Tensor, key: Any) -> Tensor:
    """Return `x` with zeros at an index."""
    zero = make(namespace(x._array).zeros((), dtype=x.dtype), None)
    return RECORDERS["assign"](x, zero, path=((index_primitive, {"key": key}),), lasting=None)


def _counts(x: Tensor, key: Any) -> Array:
    """Return how often an index picks each element of `x`."""
    shape, xp = x.shape, namespace(x._array)
    if not xp.known:
        ones = xp.ones(xp.index(x._array, key).shape, np.dtype(np.int64))
        return xp.index_add(ones, shape=shape, key=key)
    places = flat_indexing.positions(key, shape)
    if places is None:
        places = np.arange(math.prod(shape)).reshape(shape)[key]
    return np.bincount(places.reshape(-1), minlength=math.prod(shape)).reshape(shape)


def _average(x: Tensor, value: Tensor, key: Any, own: bool) -> Tensor:
    number = _counts(x, key)
    number = number + 1 if own else np.maximum(number, 1)
    total = add(x if own else _cleared(x, key), value, key)
    name = "divide" if x.dtype.kind in "fc" else "floor_divide"
    return RECORDERS[name](total, make(number.astype(x.dtype), None))


def product(x: Tensor, value: Tensor, key: Any, own: bool) -> Tensor:
    """Return the product of all that comes to each element.

    Factors of one element are multiplied in pairs, pairs in pairs and so on: no division, so every
    derivative is exact where there are zeros.
    """
    if not all(namespace(part).known for part in (x._array, *key) if is_array(part)):
        raise CompileError(
            "a product of what comes to the same index can't be compiled, nor mapped, since its "
            "order depends on the index: reduce by a sum, a mean or a maximum, or call it outside"
        )
    size = x.numel()
    places = flat_indexing.positions(key, x.shape)
    if places is None:
        places = np.arange(size).reshape(x.shape)[key]
    places = places.reshape(-1)
    first = np.arange(size)
    if not own:
        first = np.delete(first, places)
    owner = np.concatenate([first, places])
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    flatly = [RECORDERS["reshape_copy"](t, shape=(t.numel(),)) for t in (x, value)]
    if not own:
        flatly[0] = RECORDERS["index"](flatly[0], key=first)
    factors = RECORDERS["index"](RECORDERS["concat"](*flatly, axis=0), key=order)
    one = make(np.ones(1, x.dtype), None)
    while len(owner) > size:
        starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
        rank = np.arange(len(owner)) - np.repeat(starts, np.diff(np.r_[starts, len(owner)]))
        left = np.flatnonzero(rank % 2 == 0)
        paired = np.r_[owner[1:] == owner[:-1], False][left]
        right = np.where(paired, left + 1, len(owner))
        padded = RECORDERS["concat"](factors, one, axis=0)
        factors = RECORDERS["multiply"](
            RECORDERS["index"](factors, key=left), RECORDERS["index"](padded, key=right)
        )
        owner = owner[left]
    return reshaped(factors, x.shape)
