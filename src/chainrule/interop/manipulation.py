"""Shape manipulation, repetition, padding, joining and splitting, with NumPy's arguments.

Functions that only move elements apply NumPy's own function to the positions, and take the elements
from there: `by_positions`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from chainrule import array_api as xp
from chainrule import ops
from chainrule.arguments import cast, many_dims, one_dim
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ArgumentTypeError, MissingRuleError, ShapeError
from chainrule.interop.operands import array_of, constant, tensor_of, tensors_of
from chainrule.interop.quantiles import median
from chainrule.ops.permute import reverse_dims
from chainrule.ops.views import unfold


def by_positions(a: Tensor, move: Callable[[Any], Any], axis: int | None = None) -> Tensor:
    """Return the elements at ``move(arange(n))``, along an axis or of the flattened tensor."""
    if axis is not None and not a.ndim:
        a = a.reshape(1)
    if axis is None:
        a = flat(a)
        positions = move(np.arange(a.shape[0]))
        return take_positions(a, positions, 0)
    axis = one_dim(axis, a.ndim)
    return take_positions(a, move(np.arange(a.shape[axis])), axis)


def take_positions(a: Tensor, positions: Any, axis: int) -> Tensor:
    """Return the elements at positions along an axis, which their dimensions replace."""
    return a[(slice(None),) * axis + (positions,)]


# --- shape ----------------------------------------------------------------------------------------


def reshape(a: Tensor, shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
    """Return `a` in another shape, with elements read and written in C or Fortran order."""
    order = _order_in_memory(a) if order == "A" else order
    if order == "F":
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        reversed_axes = xp.reshape(reverse_dims(a), sizes[::-1], copy=copy)
        return reverse_dims(reversed_axes)
    if order != "C":
        raise ArgumentError(f"reshape of a Tensor: order must be 'C', 'F' or 'A', got {order!r}")
    return xp.reshape(a, shape, copy=copy)


def ravel(a: Tensor, order: str = "C") -> Tensor:
    """Return all elements as a vector: a view if memory holds them in this order."""
    if order == "K":
        strides = a._array.strides
        a, order = transpose(a, sorted(range(a.ndim), key=lambda i: -abs(strides[i]))), "C"
    order = _order_in_memory(a) if order == "A" else order
    return ops.ravel(reverse_dims(a) if order == "F" else a)


def flat(a: Tensor) -> Tensor:
    """Return all elements as a vector: the tensor itself if it is one."""
    return a if a.ndim == 1 else ops.ravel(a)


def _order_in_memory(a: Tensor) -> str:
    flags = a._array.flags
    return "F" if flags["F_CONTIGUOUS"] and not flags["C_CONTIGUOUS"] else "C"


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """Return `a` without axes of length 1."""
    return ops.squeeze(a) if axis is None else xp.squeeze(a, axis)


def transpose(a: Tensor, axes: Any = None) -> Tensor:
    """Return `a` with its axes in another order: in reverse, if none is given."""
    if axes is None:
        return reverse_dims(a)
    return ops.permute_dims(a, (axes,) if np.ndim(axes) == 0 else axes)


def rollaxis(a: Tensor, axis: int, start: int = 0) -> Tensor:
    """Return `a` with an axis moved to before another one."""
    axis = one_dim(axis, a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise np.exceptions.AxisError(f"rollaxis: 'start' must lie in {-a.ndim} … {a.ndim}")
    start += a.ndim if start < 0 else 0
    return ops.moveaxis(a, axis, start - (axis < start))


def flip(m: Tensor, axis: Any = None) -> Tensor:
    """Return a view with the elements in reverse order along some axes, by default all."""
    axes = many_dims(axis, m.ndim)
    reverse, keep = slice(None, None, -1), slice(None)
    key = [reverse if axes is None or i in axes else keep for i in range(m.ndim)]
    return m[(*key, ...)]


def fliplr(m: Tensor) -> Tensor:
    """Return a view with the columns in reverse order."""
    return flip(m, 1)


def flipud(m: Tensor) -> Tensor:
    """Return a view with the rows in reverse order."""
    return flip(m, 0)


def rot90(m: Tensor, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """Return a view that is rotated by right angles, from the first of two axes to the second."""
    first, second = [one_dim(axis, m.ndim) for axis in axes]
    if first == second:
        raise ArgumentError(f"Axes must be different, got {axes}")
    if k % 4 == 2:
        return flip(m, (first, second))
    if k % 2:
        m = ops.transpose(m, first, second)
    return flip(m, first if k % 4 == 1 else second) if k % 4 else m[...]


def broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """Return the operands broadcast to their common shape; text and objects as arrays of such."""
    foreign = [not isinstance(x, Tensor) and array_of(x).dtype.kind in "OSUV" for x in args]
    if not any(foreign):
        return ops.broadcast_tensors(*map(tensor_of, args))
    shape = ops.broadcast_shapes(*map(np.shape, args))
    return tuple(
        [
            np.broadcast_to(value, shape) if other else ops.broadcast_to(tensor_of(value), shape)
            for value, other in zip(args, foreign, strict=True)
        ]
    )


def sliding_window_view(
    x: Tensor, window_shape: Any, axis: Any = None, writeable: bool = False
) -> Tensor:
    """Return all sliding windows as a view, with the windows' axes last."""
    shape = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    axes = tuple(range(x.ndim)) if axis is None else tuple(axis) if np.iterable(axis) else (axis,)
    if len(shape) != len(axes):
        raise ArgumentError(
            f"sliding_window_view: expected one length for each axis, got {len(shape)} lengths for "
            f"{len(axes)} axes"
        )
    for number, length in zip(axes, shape, strict=True):
        x = unfold(x, one_dim(number, x.ndim), length, 1)
    return x


# --- repetition, insertion and deletion -----------------------------------------------------------


def tile(A: Tensor, reps: Any) -> Tensor:
    """Return `A` tiled along each axis."""
    return ops.tile(A, tuple(reps) if np.iterable(reps) else (reps,))


def repeat(a: Tensor, repeats: Any, axis: int | None = None) -> Tensor:
    """Return `a` with each element repeated."""
    times = array_of(repeats)
    return by_positions(a, lambda positions: np.repeat(positions, times), axis)


def resize(a: Tensor, new_shape: Any) -> Tensor:
    """Return a tensor of a shape, filled with repeated copies of `a`."""
    if not a.numel():
        return constant(np.resize(array_of(a), new_shape))
    return by_positions(a, lambda positions: np.resize(positions, new_shape))


def roll(a: Tensor, shift: Any, axis: Any = None) -> Tensor:
    """Return `a` with its elements shifted along axes; an axis may appear several times."""
    if axis is None:
        return xp.roll(a, shift)
    shifts, axes = np.broadcast_arrays(shift, axis)
    total: dict[int, int] = {}
    for step, number in zip(shifts.flat, axes.flat, strict=True):
        number = one_dim(int(number), a.ndim)
        total[number] = total.get(number, 0) + int(step)
    return xp.roll(a, tuple(total.values()), axis=tuple(total))


def delete(arr: Tensor, obj: Any, axis: int | None = None) -> Tensor:
    """Return `arr` without the elements at positions along an axis."""
    left_out: Any = obj if isinstance(obj, slice) else array_of(obj)
    if isinstance(obj, list | tuple) and not obj:
        left_out = left_out.astype(int)
    return by_positions(arr, lambda positions: np.delete(positions, left_out), axis)


def insert(arr: Tensor, obj: Any, values: Tensor, axis: int | None = None) -> Tensor:
    """Return `arr` with values inserted before positions along an axis."""
    if axis is None:
        arr, axis = flat(arr), 0
    axis = one_dim(axis, arr.ndim)
    size = arr.shape[axis]
    positions = np.arange(size)[obj] if isinstance(obj, slice) else array_of(obj)
    if positions.dtype.kind == "b":
        positions = np.flatnonzero(positions)
    positions = positions.astype(int) if not positions.size else positions
    while values.ndim < arr.ndim:
        values = values[None]
    if positions.ndim == 0:
        values = ops.moveaxis(values, 0, axis)
    count = values.shape[axis] if positions.size == 1 else positions.size
    shape = (*arr.shape[:axis], count, *arr.shape[axis + 1 :])
    values = ops.broadcast_to(cast(values, arr.dtype), shape)
    positions = (
        positions.reshape(-1)
        if positions.size > 1
        else int(positions.item())
        if positions.size
        else []
    )
    order = np.insert(np.arange(size), positions, np.arange(size, size + count))
    return take_positions(ops.cat([arr, values], axis), order, axis)


def append(arr: Tensor, values: Tensor, axis: int | None = None) -> Tensor:
    """Return `arr` with values at its end."""
    return xp.concat([arr, values], axis=axis)


def trim_zeros(filt: Tensor, trim: str = "fb", axis: Any = None) -> Tensor:
    """Return `filt` without the zeros at its front and back."""
    positions = np.argwhere(array_of(filt))
    axes = range(filt.ndim) if axis is None else axis if np.iterable(axis) else (axis,)
    key = [slice(None)] * filt.ndim
    for number in axes:
        first = positions[:, number].min(initial=filt.shape[number]) if "f" in trim.lower() else 0
        last = filt.shape[number] - 1
        if "b" in trim.lower():
            last = positions[:, number].max(initial=-1)
        key[number] = slice(int(first), int(last) + 1)
    return filt[tuple(key)]


# --- padding --------------------------------------------------------------------------------------

_POSITION_MODES = ("edge", "reflect", "symmetric", "wrap")


def pad(
    array: Tensor,
    pad_width: Any,
    mode: Any = "constant",
    *,
    constant_values: Any = 0,
    end_values: Any = 0,
    stat_length: Any = None,
    reflect_type: str = "even",
) -> Tensor:
    """Return `array` padded along each axis."""
    if mode not in _MODES or reflect_type != "even":
        raise MissingRuleError(
            f"numpy.pad of a Tensor with mode {mode!r} and reflect_type {reflect_type!r} has no "
            f"rule in chainrule: the modes are {', '.join(_MODES)}, with reflect_type 'even'. Join "
            "the parts with chainrule.cat"
        )
    widths = _widths(pad_width, array.ndim)
    if not any(any(around) for around in widths):
        return ops.clone(array)
    values = _pairs(constant_values if mode in _CONSTANT else end_values, array.ndim)
    lengths = np.broadcast_to([[None]] if stat_length is None else stat_length, (array.ndim, 2))
    for axis, around in enumerate(widths):
        if not any(around):
            continue
        if mode in _POSITION_MODES:
            array = by_positions(array, partial(np.pad, pad_width=around, mode=mode), axis)
            continue
        if not array.shape[axis] and mode not in _CONSTANT:
            raise ShapeError(
                f"numpy.pad: can't extend the empty axis {axis} with mode {mode!r}: the modes "
                f"that can are {', '.join(_CONSTANT)}"
            )
        blocks = [
            _block(array, axis, side, width, mode, values[axis][side], lengths[axis][side])
            for side, width in enumerate(around)
        ]
        array = ops.cat([blocks[0], array, blocks[1]], axis)
    return array


def _block(
    array: Tensor, axis: int, side: int, width: int, mode: str, value: Tensor, length: int | None
) -> Tensor:
    """Return what is added at one side (0 or 1) of an axis."""
    if mode in _STATISTICS:
        part = _at_end(array, axis, side, length or array.shape[axis])
        value = _STATISTICS[mode](part, axis=axis, keepdims=True)
    shape = (*array.shape[:axis], width, *array.shape[axis + 1 :])
    block = ops.broadcast_to(cast(value, array.dtype), shape)
    if mode != "linear_ramp" or not width:
        return block
    steps = np.arange(width)[:: -1 if side else 1] / width
    weights = steps.reshape(-1, *[1] * (array.ndim - axis - 1)).astype(array.dtype)
    return block + (_at_end(array, axis, side, 1) - block) * constant(weights)


def _at_end(array: Tensor, axis: int, side: int, length: int) -> Tensor:
    """Return a number of slices at the start of an axis, or at its end."""
    part = slice(-length, None) if side else slice(length)
    return array[(slice(None),) * axis + (part,)]


_CONSTANT = ("constant", "empty")  # zeros are as good as any other numbers
_STATISTICS: dict[str, Callable[..., Tensor]] = {
    **{"maximum": xp.max, "minimum": xp.min, "mean": xp.mean, "median": median},
}
_MODES = (*_CONSTANT, *_POSITION_MODES, "linear_ramp", *_STATISTICS)


def _widths(pad_width: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        pairs = {one_dim(axis, ndim): width for axis, width in pad_width.items()}
        pad_width = [pairs.get(axis, 0) for axis in range(ndim)]
        pad_width = [width if np.iterable(width) else (width, width) for width in pad_width]
    if np.asarray(pad_width).dtype.kind not in "iu":
        raise ArgumentTypeError(f"numpy.pad: pad_width must be of integral type, got {pad_width}")
    return [(int(before), int(after)) for before, after in np.broadcast_to(pad_width, (ndim, 2))]


def _pairs(values: Any, ndim: int) -> list[tuple[Tensor, Tensor]]:
    pairs = ops.broadcast_to(tensor_of(values), (ndim, 2))
    return [(pairs[axis, 0], pairs[axis, 1]) for axis in range(ndim)]


# --- joining and splitting ------------------------------------------------------------------------


def concatenate(arrays: Sequence[Tensor], axis: int | None = 0, *, dtype: Any = None) -> Tensor:
    """Return tensors joined along an axis."""
    return cast(xp.concat(arrays, axis=axis), dtype)


def _with_dtype(function: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def join(tup: Sequence[Tensor], *, dtype: Any = None) -> Tensor:
        return cast(function(tup), dtype)

    return join


hstack, vstack = _with_dtype(ops.hstack), _with_dtype(ops.vstack)


def stack(arrays: Sequence[Tensor], axis: int = 0, *, dtype: Any = None) -> Tensor:
    """Return tensors stacked along a new axis."""
    return cast(ops.stack(arrays, axis), dtype)


def block(arrays: Any) -> Tensor:
    """Return the tensor assembled from nested lists of blocks."""
    leaves = tensors_of(list(_leaves(arrays)))
    if len(leaves) == 1:
        leaves = [ops.clone(leaves[0])]
    ndim = max(_depth(arrays), *[leaf.ndim for leaf in leaves])
    rows = iter([leaf[(None,) * (ndim - leaf.ndim)] for leaf in leaves])

    def join(part: Any, axis: int) -> Tensor:
        if not isinstance(part, list):
            return next(rows)
        return ops.cat([join(inner, axis + 1) for inner in part], axis)

    return join(arrays, -_depth(arrays))


def _leaves(arrays: Any) -> Any:
    if not isinstance(arrays, list):
        yield arrays
        return
    if not arrays:
        raise ArgumentError("block: lists can't be empty")
    for part in arrays:
        yield from _leaves(part)


def _depth(arrays: Any) -> int:
    depths = {_depth(part) for part in arrays} if isinstance(arrays, list) else set()
    if len(depths) > 1:
        raise ArgumentError("block: all lists must have the same depth of nesting")
    return 1 + depths.pop() if depths else 0


def array_split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Return parts along an axis: a number of nearly equal ones, or split before positions."""
    cuts = array_of(indices_or_sections)
    return list(ops.tensor_split(ary, cuts.tolist(), axis))


def split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Return parts along an axis: a number of equal ones, or split before positions."""
    sections = indices_or_sections
    if not np.iterable(sections) and ary.shape[axis] % sections:
        raise ShapeError(
            f"array split does not result in an equal division: {ary.shape[axis]} elements in "
            f"{sections} parts. array_split allows parts of different lengths"
        )
    return array_split(ary, sections, axis)


def hsplit(ary: Tensor, indices_or_sections: Any) -> list[Tensor]:
    """Return parts along the second axis, or the only one."""
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def vsplit(ary: Tensor, indices_or_sections: Any) -> list[Tensor]:
    """Return parts along the first axis."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Tensor, indices_or_sections: Any) -> list[Tensor]:
    """Return parts along the third axis."""
    return split(ary, indices_or_sections, 2)


def meshgrid(*xi: Tensor, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return the coordinates of a grid; with `sparse`, of length 1 along the other axes."""
    if copy:
        views = meshgrid(*xi, copy=False, sparse=sparse, indexing=indexing)
        return tuple([ops.clone(view) for view in views])
    if not sparse:
        return ops.meshgrid(*[ravel(x) for x in xi], indexing=indexing)
    axes = list(range(len(xi)))
    if indexing == "xy" and len(xi) > 1:
        axes[:2] = 1, 0
    shapes = [[-1 if i == axis else 1 for i in range(len(xi))] for axis in axes]
    return tuple([xp.reshape(x, tuple(shape)) for x, shape in zip(xi, shapes, strict=True)])


def _rows(m: Tensor) -> Tensor:
    """Return a matrix; a vector is repeated as its rows, as in NumPy's tril and triu."""
    return ops.broadcast_to(m, (m.shape[0], m.shape[0])) if m.ndim == 1 else m


def tril(m: Tensor, k: int = 0) -> Tensor:
    """Return the lower triangle of a matrix, or of a vector repeated as rows."""
    return ops.tril(_rows(m), k)


def triu(m: Tensor, k: int = 0) -> Tensor:
    """Return the upper triangle of a matrix, or of a vector repeated as rows."""
    return ops.triu(_rows(m), k)


def ix_(*args: Tensor) -> tuple[Tensor, ...]:
    """Return open-mesh indices: the index vector of each axis along that axis."""
    if any([x.ndim != 1 for x in args]):
        raise ArgumentError(
            "ix_: Cross index must be 1 dimensional, got the shapes "
            f"{[list(x.shape) for x in args]}: flatten with ravel first"
        )
    rows = [constant(np.flatnonzero(array_of(x))) if x.dtype.kind == "b" else x for x in args]
    grid: tuple[Tensor, ...] = meshgrid(*rows, sparse=True, indexing="ij")
    return grid
