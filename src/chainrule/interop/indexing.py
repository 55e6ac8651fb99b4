"""Selection by index, by condition and by value, with the arguments of NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import ops
from chainrule.arguments import cast, one_dim
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known, promoted
from chainrule.errors import ArgumentError
from chainrule.interop.manipulation import by_positions, flat, ravel, take_positions
from chainrule.interop.operands import array_of, arrays_of, constant, in_double, tensor_of

# --- selection by index ---------------------------------------------------------------------------


def take(a: Tensor, indices: Any, axis: int | None = None, mode: Any = "raise") -> Tensor:
    """Return the elements at indices along an axis, in the shape of `indices`."""
    positions = array_of(indices)
    if isinstance(indices, list | tuple) and not positions.size:
        positions = positions.astype(np.intp)
    return by_positions(a, lambda numbers: _take_numbers(numbers, positions, mode), axis)


def _take_numbers(numbers: Any, positions: Any, mode: Any) -> Any:
    """Return `numbers` (0, 1, …) at positions, also where positions are not known yet."""
    if isinstance(positions, np.ndarray):
        return np.take(numbers, positions, mode=mode)
    if mode == "clip":
        return np.clip(positions, 0, len(numbers) - 1)
    return np.remainder(positions, len(numbers)) if mode == "wrap" else positions


def take_along_axis(arr: Tensor, indices: Any, axis: int | None = -1) -> Tensor:
    """Return the elements at indices along an axis."""
    if axis is None:
        arr, axis = flat(arr), 0
    return ops.take_along_dim(arr, constant(array_of(indices)), axis)


def compress(condition: Any, a: Tensor, axis: int | None = None) -> Tensor:
    """Return the slices along an axis for which a condition holds."""
    chosen = array_of(condition)
    return by_positions(a, lambda positions: np.compress(chosen, positions), axis)


def extract(condition: Any, arr: Tensor) -> Tensor:
    """Return the elements for which a condition holds."""
    return take_positions(flat(arr), np.flatnonzero(array_of(condition)), 0)


# --- selection by condition -----------------------------------------------------------------------


def where(condition: Any, x: Tensor | None = None, y: Tensor | None = None) -> Any:
    """Return `x` where a condition holds, else `y`; without them, the indices where it holds."""
    if x is None and y is None:
        return np.nonzero(array_of(condition))
    operands: Any = x, y
    return ops.where(_mask(condition), *operands)


def _mask(condition: Any) -> Tensor:
    if condition.__class__ is np.ndarray:
        return constant(condition)
    return condition if isinstance(condition, Tensor) else constant(array_of(condition))


def select(condlist: Any, choicelist: Sequence[Tensor], default: Tensor | float = 0) -> Tensor:
    """Return, element by element, the choice of the first condition that holds."""
    if len(condlist) != len(choicelist) or not len(condlist):
        raise ArgumentError(
            f"select: expected as many conditions as choices, and at least one, got "
            f"{len(condlist)} and {len(choicelist)}"
        )
    result: Any = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = ops.where(_mask(condition), choice, result)
    chosen: Tensor = result
    return chosen


def choose(a: Any, choices: Sequence[Tensor], mode: Any = "raise") -> Tensor:
    """Return, element by element, the choice whose number is given."""
    numbers = np.arange(len(choices))
    picked = np.choose(array_of(a), numbers, mode=mode)
    result = ops.clone(choices[0])
    for number, choice in enumerate(choices[1:], 1):
        result = ops.where(constant(picked == number), choice, result)
    return ops.broadcast_to(result, np.broadcast_shapes(result.shape, picked.shape))


def piecewise(x: Tensor, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Return the values of functions of `x`, each where its condition holds."""
    conditions = array_of(condlist).astype(bool)
    if conditions.ndim == x.ndim:
        conditions = conditions[None]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(
            f"with {len(conditions)} condition(s), either {len(conditions)} or "
            f"{len(conditions) + 1} functions are expected"
        )
    if len(funclist) > len(conditions):
        conditions = np.concatenate([conditions, ~conditions.any(0, keepdims=True)])
    result = ops.multiply(x.detach(), 0)
    for condition, function in zip(conditions, funclist, strict=True):
        chosen = constant(np.broadcast_to(condition, x.shape))
        part = x[chosen]
        values = function(part, *args, **kw) if callable(function) else function
        if callable(function) and not part.numel():
            continue
        values = ops.broadcast_to(cast(tensor_of(values), x.dtype), part.shape)
        result = ops.masked_scatter(result, chosen, values)
    return result


def clip(
    a: Tensor,
    a_min: Tensor | None = None,
    a_max: Tensor | None = None,
    min: Tensor | None = None,
    max: Tensor | None = None,
) -> Tensor:
    """Return `a` limited to a range."""
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    return xp.clip(a, *[_as_bound(a, bound) for bound in (low, high)])


def _as_bound(a: Tensor, bound: Tensor | None) -> Any:
    """Return a 0-d bound without gradient as a number, which is faster."""
    if bound is None or bound.ndim or bound.requires_grad or not is_known(bound._array):
        return bound
    return bound.item() if promoted(a.dtype, bound.dtype) == a.dtype else bound


# --- sorting and unique values --------------------------------------------------------------------


def sort(a: Tensor, axis: int | None = -1, stable: Any = None) -> Tensor:
    """Return the elements in order."""
    return xp.sort(flat(a)) if axis is None else xp.sort(a, axis=axis)


def sort_complex(a: Tensor) -> Tensor:
    """Return the elements in order, by real and then by imaginary part, as complex numbers."""
    order = np.argsort(array_of(a), axis=-1)
    real = a if a.is_complex() else in_double(a)
    dtype = np.complex64 if real.dtype in (np.float32, np.complex64) else np.complex128
    return cast(ops.take_along_dim(real, constant(order), -1), dtype)


def partition(a: Tensor, kth: Any, axis: int | None = -1) -> Tensor:
    """Return the elements partially sorted: the k-th is in its sorted position."""
    if axis is None:
        a, axis = flat(a), -1
    order = np.argpartition(array_of(a), kth, axis=axis)
    return ops.take_along_dim(a, constant(order), axis)


def unique(
    ar: Tensor,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Return the distinct elements, or slices: the first of equal ones."""
    _, first, inverse, counts = np.unique(
        array_of(ar), True, True, True, axis=axis, equal_nan=equal_nan
    )
    values = by_positions(ar, lambda positions: positions[first], axis)
    wanted = zip(
        (first, inverse, counts), (return_index, return_inverse, return_counts), strict=True
    )
    more = [constant(found) for found, is_wanted in wanted if is_wanted]
    return (values, *more) if more else values


def unique_values(x: Tensor) -> Tensor:
    """Return the distinct elements; nans are distinct from each other."""
    values: Tensor = unique(x, equal_nan=False)
    return values


def _with_values(function: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """Return a function of the array API with its values recorded."""

    def found(x: Tensor) -> Any:
        return function(x)._replace(values=unique_values(x))

    return found


unique_all = _with_values(ops.unique_all)
unique_counts = _with_values(ops.unique_counts)
unique_inverse = _with_values(ops.unique_inverse)

# --- sets -----------------------------------------------------------------------------------------


def intersect1d(
    ar1: Tensor, ar2: Tensor, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Return the distinct elements that are in both: those of `ar1`."""
    ours, theirs = array_of(ar1).ravel(), array_of(ar2).ravel()
    _, first, second = np.intersect1d(ours, theirs, assume_unique, True)
    common = cast(take_positions(flat(ar1), first, 0), promoted(ar1.dtype, ar2.dtype))
    return (common, constant(first), constant(second)) if return_indices else common


def union1d(ar1: Tensor, ar2: Tensor) -> Tensor:
    """Return the distinct elements that are in either."""
    values: Tensor = unique(xp.concat([ar1, ar2], axis=None))
    return values


def setdiff1d(ar1: Tensor, ar2: Tensor, assume_unique: bool = False) -> Tensor:
    """Return the distinct elements of `ar1` that are not in `ar2`."""
    kept = ravel(ar1) if assume_unique else unique(ar1)
    return take_positions(kept, np.flatnonzero(~np.isin(array_of(kept), array_of(ar2))), 0)


def setxor1d(ar1: Tensor, ar2: Tensor, assume_unique: bool = False) -> Tensor:
    """Return the distinct elements that are in exactly one."""
    ours = [ravel(ar) if assume_unique else unique(ar) for ar in (ar1, ar2)]
    both = ops.cat(ours)
    _, first, counts = np.unique(array_of(both), return_index=True, return_counts=True)
    return take_positions(both, first[counts == 1], 0)


# --- functions applied along axes -----------------------------------------------------------------


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Tensor, *args: Any, **kwargs: Any
) -> Tensor:
    """Return a function's results for the slices along an axis, which they replace."""
    axis = one_dim(axis, arr.ndim)
    rows = ops.moveaxis(arr, axis, -1)
    shape = rows.shape[:-1]
    if 0 in shape:
        raise ArgumentError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [tensor_of(func1d(rows[index], *args, **kwargs)) for index in np.ndindex(shape)]
    stacked = ops.stack(results)
    stacked = xp.reshape(stacked, (*shape, *stacked.shape[1:]))
    made = range(len(shape), stacked.ndim)
    return ops.moveaxis(stacked, list(made), [axis + i for i in range(len(made))])


def apply_over_axes(func: Callable[..., Any], a: Tensor, axes: Any) -> Tensor:
    """Apply a function of an array and an axis for each axis in turn."""
    for number in arrays_of(axes) if np.iterable(axes) else (axes,):
        axis = one_dim(number, a.ndim)
        made = func(a, axis)
        made = ops.expand_dims(made, axis) if made.ndim < a.ndim else made
        if made.ndim != a.ndim:
            raise ArgumentError("function is not returning an array of the correct shape")
        a = made
    return a
