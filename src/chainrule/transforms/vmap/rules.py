"""Batching rules: functions of arrays applied to arrays with a batch axis in front."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd.array_proxy import NumberProxy
from chainrule.backend import KERNELS, REPLACED_UFUNCS, ndarray
from chainrule.kernels.scipy_linalg import CORES
from chainrule.transforms.vmap.batched_array import BatchedArray, Level
from chainrule.transforms.vmap.namespace import (
    CREATION,
    align_ranks,
    batched,
    broadcast_batch,
    broadcast_batches,
    data_of,
    inner_function,
    inner_xp,
    is_array,
    is_batched,
    loop_over_batch,
    numpy_function,
    operand_of,
    pad_rank,
    rule,
    view,
)

Array = Any
Shape = tuple[int, ...]


# --- elementwise functions ------------------------------------------------------------------------


@rule(
    "ufuncs",
    *("where", "clip", "masked", "real", "imag", "round", "abs", "pow", "isclose", "nan_to_num"),
    *("astype", "angle", "i0", "sinc", "iscomplex", "isreal", "fix", "copy"),
    *(set(KERNELS["elementwise"]) | set(KERNELS["special"]) | set(KERNELS["normal"])),
    *(set(KERNELS["incomplete"]) | set(REPLACED_UFUNCS)),
    "bits",
)
def _elementwise(level: Level, name: str, *args: Any, **settings: Any) -> Any:
    # Calls that `BatchedNamespace` doesn't answer itself. Most arguments are arrays of this level,
    # which are asked for first.
    given, positions, rank, plain = [*args, *settings.values()], [], 1, True
    for i, x in enumerate(given):
        kind = x.__class__
        if kind is BatchedArray and x.level is level:
            data = x.data
        elif kind is float or kind is int:
            continue
        elif is_array(x) or (i < len(args) and kind in (list, tuple)):
            data = operand_of(level, x)
        else:
            continue
        given[i] = data
        positions.append(i)
        rank = max(rank, data.ndim)
        plain = plain and data.__class__ is ndarray
    for i in positions:
        given[i] = pad_rank(given[i], rank)
    function = numpy_function(name)
    if not plain:
        function = inner_function(name, *[given[i] for i in positions])
    if not settings:
        return batched(level, function(*given))
    settings = dict(zip(settings, given[len(args) :], strict=True))
    return batched(level, function(*given[: len(args)], **settings))


# --- functions along axes -------------------------------------------------------------------------


def shift_axis(axis: Any, ndim: int) -> Any:
    """Return axes counted with the batch axis in front; None is all but that."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axis, tuple | list):
        return tuple([shift_axis(one, ndim) for one in axis])
    bound = ndim or 1
    if not -bound <= axis < bound:
        raise np.exceptions.AxisError(axis, ndim)
    return int(axis) % bound + 1 if ndim else ()


def _pop_axis(rest: tuple[Any, ...], position: int, settings: dict[str, Any], default: Any) -> Any:
    """Separate the axis from the arguments that follow the array."""
    if "axis" in settings:
        return rest, settings.pop("axis")
    if len(rest) > position:
        return rest[:position] + rest[position + 1 :], rest[position]
    return rest, default


@rule("sum", "mean", "prod", "max", "min", "all", "any", "std", "var", "count_nonzero", "p_norm")
def _reduction(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    rest, axis = _pop_axis(rest, 0, settings, None)
    data, where = data_of(level, x), settings.get("where", True)
    if is_array(where):
        mask = data_of(level, where)
        data = data if mask.shape[0] == 1 else broadcast_batch(level, data)
        settings["where"] = pad_rank(mask, data.ndim)
    out = inner_function(name, data)(data, *rest, axis=shift_axis(axis, data.ndim - 1), **settings)
    return batched(level, out)


@rule("argmax", "argmin")
def _arg_extremum(
    level: Level, name: str, x: Any, axis: Any = None, out: None = None, *, keepdims: bool = False
) -> Any:
    data, found = data_of(level, x), inner_function(name, data_of(level, x))
    if axis is not None and data.ndim > 1:
        return batched(level, found(data, axis=shift_axis(axis, data.ndim - 1), keepdims=keepdims))
    flat = inner_xp(data).reshape(data, (data.shape[0], _product(data.shape[1:])))
    index = found(flat, axis=1)
    ones = (1,) * (data.ndim - 1) if keepdims else ()
    return batched(level, inner_xp(index).reshape(index, (data.shape[0], *ones)))


def _product(sizes: Shape) -> int:
    return int(np.prod(sizes, dtype=int))


@rule("cumulative_sum", "cumulative_prod", "logcumsumexp", "flip", "sort", "argsort")
def _along_axis(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    default = -1 if name in ("sort", "argsort") else None
    rest, axis = _pop_axis(rest, 0, settings, default)
    data = data_of(level, x)
    if name == "flip" and data.ndim == 1:
        return x
    if data.ndim == 1 or (axis is None and name != "flip"):
        return loop_over_batch(level, name, x, *rest, axis=axis, **settings)
    return batched(
        level,
        inner_function(name, data)(data, *rest, axis=shift_axis(axis, data.ndim - 1), **settings),
    )


@rule("partition", "argpartition")
def _partition(level: Level, name: str, x: Any, kth: Any, axis: int = -1) -> Any:
    data = data_of(level, x)
    if data.ndim == 1:
        return loop_over_batch(level, name, x, kth, axis)
    axis = shift_axis(axis, data.ndim - 1)
    return batched(level, inner_function(name, data)(data, kth, axis=axis))


@rule("searchsorted")
def _searchsorted(level: Level, name: str, x: Any, values: Any, *rest: Any, **settings: Any) -> Any:
    sorted_data, order = data_of(level, x), settings.get("sorter")
    if sorted_data.shape[0] > 1 or is_batched(level, order):  # a search for each example
        return loop_over_batch(level, name, x, values, *rest, **settings)
    data = data_of(level, values)
    found = inner_function(name, sorted_data, data)
    return batched(level, found(sorted_data[0], data, *rest, **settings))


@rule("roll", "take", "repeat")
def _along_by(level: Level, name: str, x: Any, *by: Any, axis: Any = None, **named: Any) -> Any:
    (by, axis) = by if len(by) == 2 else (*by, *named.values(), axis)
    data = data_of(level, x)
    if axis is None or data.ndim == 1 or isinstance(by, BatchedArray):
        return loop_over_batch(level, name, x, by, axis=axis)
    return batched(
        level, inner_function(name, data)(data, by, axis=shift_axis(axis, data.ndim - 1))
    )


@rule("take_along_axis", "add_along_axis")
def _by_index(level: Level, name: str, x: Any, index: Any, axis: int, **settings: Any) -> Any:
    data, indices = broadcast_batches(level, x, index)
    if "shape" in settings:
        settings["shape"] = (data.shape[0], *settings["shape"])
    axis = shift_axis(axis, data.ndim - 1)
    return batched(level, inner_function(name, data, indices)(data, indices, axis=axis, **settings))


@rule("concat", "concatenate", "stack")
def _join(level: Level, name: str, arrays: Any, axis: Any = 0) -> Any:
    datas = [data_of(level, x) for x in arrays]
    if axis is None:
        return loop_over_batch(level, name, list(arrays), axis=None)
    if any(data.shape[0] > 1 for data in datas) or level.count == 0:
        datas = [broadcast_batch(level, data) for data in datas]
    ndim = datas[0].ndim - 1 + (name == "stack")
    return batched(level, inner_function(name, *datas)(datas, axis=shift_axis(axis, ndim)))


@rule("vecdot", "linalg.cross")
def _along_both(level: Level, name: str, x: Any, y: Any, *, axis: int = -1) -> Any:
    datas = align_ranks(level, x, y)
    axis = axis if axis < 0 else axis - max(data.ndim - 1 for data in datas)
    return batched(level, inner_function(name, *datas)(*datas, axis=axis))


@rule("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft")
def _fft(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    rest, axis = _pop_axis(rest, 1, settings, -1)
    data = data_of(level, x)
    return batched(
        level,
        inner_function(name, data)(data, *rest, axis=shift_axis(axis, data.ndim - 1), **settings),
    )


@rule("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn")
def _fft_n(level: Level, name: str, x: Any, s: Any = None, axes: Any = None, **rest: Any) -> Any:
    data = data_of(level, x)
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(data.ndim - 1)
    axes = shift_axis(tuple(axes), data.ndim - 1)
    return batched(level, inner_function(name, data)(data, s=s, axes=axes, **rest))


# --- shapes ---------------------------------------------------------------------------------------


@rule("reshape")
def _reshape(level: Level, name: str, x: Any, shape: Any, copy: bool | None = None) -> Any:
    shape = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if -1 in shape:
        known = _product(tuple(n for n in shape if n != -1))
        shape = tuple(x.size // max(known, 1) if n == -1 else n for n in shape)

    def take(data: Array) -> Array:
        return inner_xp(data).reshape(data, (data.shape[0], *shape), copy=copy)

    return batched(level, take(data_of(level, x))) if copy else view(level, x, take)


@rule("broadcast_to", "spread")
def _broadcast_to(level: Level, name: str, x: Any, shape: Shape) -> Any:
    missing = (None,) * (len(shape) - x.ndim)

    def take(data: Array) -> Array:
        return inner_function(name, data)(data[(slice(None), *missing)], (data.shape[0], *shape))

    return view(level, x, take)


@rule("permute_dims", "transpose")
def _permute_dims(level: Level, name: str, x: Any, axes: Any = None) -> Any:
    axes = range(x.ndim - 1, -1, -1) if axes is None else axes
    order = (0, *[axis % x.ndim + 1 for axis in axes])
    return view(level, x, lambda data: inner_xp(data).permute_dims(data, order))


@rule("matrix_transpose")
def _matrix_transpose(level: Level, name: str, x: Any) -> Any:
    n = x.ndim
    return _permute_dims(level, name, x, (*range(n - 2), n - 1, n - 2))


@rule("moveaxis")
def _moveaxis(level: Level, name: str, x: Any, source: Any, destination: Any) -> Any:
    order = np.moveaxis(np.empty((1,) * x.ndim), source, destination)  # raises what NumPy raises
    ends = [np.atleast_1d(axes) % order.ndim for axes in (source, destination)]
    axes = [i for i in range(x.ndim) if i not in ends[0]]
    for to, at in sorted(zip(ends[1].tolist(), ends[0].tolist(), strict=True)):
        axes.insert(to, at)
    return _permute_dims(level, name, x, axes)


@rule("expand_dims")
def _expand_dims(level: Level, name: str, x: Any, axis: int) -> Any:
    axis %= x.ndim + 1
    return _reshape(level, name, x, (*x.shape[:axis], 1, *x.shape[axis:]))


@rule("atleast_1d", "atleast_2d")
def _at_least(level: Level, name: str, x: Any) -> Any:
    rank = int(name[-2])
    return _reshape(level, name, x, (1,) * (rank - x.ndim) + tuple(x.shape))


@rule("squeeze")
def _squeeze(level: Level, name: str, x: Any, axis: Any = None) -> Any:
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    dropped = {a % x.ndim for a in axes if axis is not None or x.shape[a] == 1}
    return _reshape(level, name, x, tuple(n for i, n in enumerate(x.shape) if i not in dropped))


# --- products and matrices ------------------------------------------------------------------------


@rule("matmul")
def _matmul(level: Level, name: str, x: Any, y: Any) -> Any:
    a, b = data_of(level, x), data_of(level, y)
    xp = inner_xp(a, b)
    if a.ndim == 1 or b.ndim == 1:
        raise ValueError("matmul: expected vectors or matrices, got a number")
    if a.ndim == 3 and a.shape[0] == 1:  # one matrix, many vectors or columns: one product
        if b.ndim == 2:
            return batched(level, xp.matmul(b, xp.matrix_transpose(a[0])))
        if b.ndim == 3 and b.shape[-1] == 1 < b.shape[0]:
            rows = xp.reshape(b, b.shape[:2])
            out = xp.matmul(rows, xp.matrix_transpose(a[0]))
            return batched(level, xp.reshape(out, (*out.shape, 1)))
    if b.ndim == 3 and b.shape[0] == 1:  # rows of all examples, one matrix
        rows = xp.reshape(a, (_product(a.shape[:-1]), a.shape[-1]))
        out = xp.matmul(rows, b[0])
        return batched(level, xp.reshape(out, (*a.shape[:-1], b.shape[-1])))
    drop_x, drop_y = a.ndim == 2, b.ndim == 2
    a, b = a[:, None] if drop_x else a, b[..., None] if drop_y else b
    rank = max(a.ndim, b.ndim)
    a, b = pad_rank(a, rank), pad_rank(b, rank)
    out = xp.matmul(a, b)
    out = out[..., 0] if drop_y else out
    return batched(
        level, out[..., 0, :] if drop_x and not drop_y else out[..., 0] if drop_x else out
    )


@rule(
    *[
        f"linalg.{name}"
        for name in ("inv", "det", "slogdet", "cholesky", "eigh", "eig", "svd", "qr")
    ],
    *("linalg.eigvalsh", "linalg.eigvals", "linalg.svdvals"),
    *("inverses", "cofactors", "matrix_exp"),
)
def _of_matrices(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    data = data_of(level, x)
    return batched(level, inner_function(name, data)(data, *rest, **settings))


@rule("triu", "tril")
def _triangle(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    if x.ndim < 2:
        return loop_over_batch(level, name, x, *rest, **settings)
    return _of_matrices(level, name, x, *rest, **settings)


@rule("check_phases")
def _check_phases(level: Level, name: str, *arrays: Any, operation: str) -> Any:
    datas = [broadcast_batch(level, data_of(level, x)) for x in arrays]
    return batched(level, inner_function(name, *datas)(*datas, operation=operation)[None])


@rule("linalg.solve", "solve_triangular")
def _solve(level: Level, name: str, a: Any, b: Any, **settings: Any) -> Any:
    vector = b.ndim == 1
    datas = align_ranks(level, a, b[..., None] if vector else b)
    out = inner_function(name, *datas)(*datas, **settings)
    return batched(level, out[..., 0] if vector else out)


@rule("scipy_linalg")
def _scipy_linalg(level: Level, name: str, *arrays: Any, routine: str, **settings: Any) -> Any:
    """The batch axis becomes the first of the stack of arguments."""
    datas = [data_of(level, x) for x in arrays]
    ranks = [x.ndim - n for x, n in zip(arrays, CORES[routine], strict=True)]
    rank = max(ranks)
    datas = [pad_rank(d, d.ndim + rank - r) for d, r in zip(datas, ranks, strict=True)]
    out = inner_function(name, *datas)(*datas, routine=routine, **settings)
    return batched(level, out)


@rule("scipy_fft")
def _scipy_fft(level: Level, name: str, x: Any, *, axes: Any, **settings: Any) -> Any:
    data = data_of(level, x)
    axes = shift_axis(axes, data.ndim - 1)
    return batched(level, inner_function(name, data)(data, axes=axes, **settings))


# --- creation and conversion ----------------------------------------------------------------------


@rule("zeros_like", "ones_like", "empty_like", "full_like")
def _like(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    data = data_of(level, x)[:1]
    if settings.get("shape") is not None:
        settings["shape"] = (1, *np.broadcast_shapes(settings["shape"]))
    return batched(level, inner_function(name, data)(data, *rest, **settings))


@rule(*CREATION)
def _creation(level: Level, name: str, *args: Any, **settings: Any) -> Any:
    return batched(level, level.outer(getattr(level.xp, name)(*args, **settings))[None])


@rule("asarray", "array", "ascontiguousarray")
def _as_batched(level: Level, name: str, x: Any, dtype: Any = None, copy: Any = None) -> Any:
    if isinstance(x, NumberProxy):
        x = x.as_array(dtype)
    elif isinstance(x, int):
        x = level.xp.asarray(x, dtype)  # NumPy raises if it is out of range
    data = data_of(level, x)
    if dtype is not None and np.dtype(dtype) != data.dtype:
        return batched(level, inner_xp(data).astype(data, np.dtype(dtype)))
    if copy or name == "array":
        return batched(level, inner_xp(data).array(data))
    return x if is_batched(level, x) else batched(level, data)


@rule("to_device")
def _to_device(level: Level, name: str, x: Any, *, source: Any, target: Any) -> Any:
    data = data_of(level, x)
    return batched(level, inner_xp(data).to_device(data, source=source, target=target))


# --- convolution, pooling and resampling ----------------------------------------------------------
#
# The batch axis becomes part of the samples or, where kernels differ between examples, of the
# groups.


def _merge_batch(data: Array) -> Array:
    """Return data with the batch axis merged into the samples."""
    return inner_xp(data).reshape(data, (data.shape[0] * data.shape[1], *data.shape[2:]))


def _split_batch(data: Array, count: int) -> Array:
    """Return data with the samples split into `count` examples."""
    return inner_xp(data).reshape(data, (count, data.shape[0] // max(count, 1), *data.shape[1:]))


def _batch_to_channels(data: Array) -> Array:
    """Return data with the batch axis merged into the channels."""
    n, samples, channels, *size = data.shape
    xp = inner_xp(data)
    order = (1, 0, *range(2, data.ndim))
    return xp.reshape(xp.permute_dims(data, order), (samples, n * channels, *size))


def _channels_to_batch(data: Array, count: int) -> Array:
    samples, channels, *size = data.shape
    xp = inner_xp(data)
    parts = xp.reshape(data, (samples, count, channels // max(count, 1), *size))
    return xp.permute_dims(parts, (1, 0, *range(2, parts.ndim)))


@rule("convolve", "convolve_input")
def _convolve(level: Level, name: str, x: Any, w: Any, *, window: Any, **size: Any) -> Any:
    images, kernels = data_of(level, x), data_of(level, w)
    function = inner_function(name, images, kernels)
    if kernels.shape[0] == 1:
        out = function(_merge_batch(images), kernels[0], window=window, **size)
        return batched(level, _split_batch(out, images.shape[0]))
    if not level.count:  # a convolution needs at least one group
        return loop_over_batch(level, name, x, w, window=window, **size)
    images, kernels = broadcast_batch(level, images), broadcast_batch(level, kernels)
    groups = (*window[:3], window[3] * level.count)
    out = function(_batch_to_channels(images), _merge_batch(kernels), window=groups, **size)
    return batched(level, _channels_to_batch(out, level.count))


@rule("convolve_weight")
def _convolve_weight(level: Level, name: str, x: Any, y: Any, *, size: Any, window: Any) -> Any:
    if not level.count:
        return loop_over_batch(level, name, x, y, size=size, window=window)
    images, outputs = (
        broadcast_batch(level, data_of(level, x)),
        broadcast_batch(level, data_of(level, y)),
    )
    groups = (*window[:3], window[3] * level.count)
    function = inner_function(name, images, outputs)
    out = function(
        _batch_to_channels(images), _batch_to_channels(outputs), size=size, window=groups
    )
    return batched(level, _split_batch(out, level.count))


@rule("max_pool", "pool_positions", "pool_pick", "pool_place")
def _pool(level: Level, name: str, *arrays: Any, **settings: Any) -> Any:
    datas = broadcast_batches(level, *arrays)
    out = inner_function(name, *datas)(*map(_merge_batch, datas), **settings)
    return batched(level, _split_batch(out, datas[0].shape[0]))


@rule("resample")
def _resample(level: Level, name: str, x: Any, *, taps: Any, axis: int) -> Any:
    data = data_of(level, x)
    return batched(level, inner_function(name, data)(data, taps=taps, axis=axis + 1))
