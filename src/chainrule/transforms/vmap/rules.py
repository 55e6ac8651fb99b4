"""What becomes of the axes of a function, with the lanes' axis before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.backend import KERNELS, numpy_xp
from chainrule.transforms.vmap.batched_array import BatchedArray, Level
from chainrule.transforms.vmap.namespace import (
    aligned,
    as_many,
    belongs,
    beneath,
    data_of,
    full,
    inner,
    is_array,
    lanes,
    looped,
    padded,
    rule,
    view,
)

Array = Any
Shape = tuple[int, ...]


# --- element by element ---------------------------------------------------------------------------


@rule(
    "ufuncs",
    *("where", "clip", "masked", "real", "imag", "round", "abs", "pow", "isclose", "nan_to_num"),
    *("astype", "angle", "i0", "sinc", "iscomplex", "isreal", "fix", "copy"),
    *(set(KERNELS["elementwise"]) | set(KERNELS["special"]) | set(KERNELS["normal"])),
    *("expm1", "log1p", "bits"),
)
def _elementwise(level: Level, name: str, *args: Any, **settings: Any) -> Any:
    given, places, rank = list(args), [], 1
    for i, x in enumerate(args):
        if is_array(x):
            data = given[i] = data_of(level, x)
            places.append(i)
            rank = max(rank, data.ndim)
    for i in places:
        given[i] = padded(given[i], rank)
    out = inner(name, *[given[i] for i in places])(*given, **settings)
    return lanes(level, out)


# --- along axes -----------------------------------------------------------------------------------


def shifted(axis: Any, ndim: int) -> Any:
    """Return axes of what has the lanes' axis in front; None is all but that."""
    if axis is None:
        return tuple(range(1, ndim + 1))
    if isinstance(axis, tuple | list):
        return tuple([shifted(one, ndim) for one in axis])
    bound = ndim or 1
    if not -bound <= axis < bound:
        raise np.exceptions.AxisError(axis, ndim)
    return int(axis) % bound + 1 if ndim else ()


def _axis_among(rest: tuple[Any, ...], place: int, settings: dict[str, Any], default: Any) -> Any:
    """Take the axis out of what a function is called with besides the array."""
    if "axis" in settings:
        return rest, settings.pop("axis")
    if len(rest) > place:
        return rest[:place] + rest[place + 1 :], rest[place]
    return rest, default


@rule("sum", "mean", "prod", "max", "min", "all", "any", "std", "var", "count_nonzero", "p_norm")
def _reduction(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    rest, axis = _axis_among(rest, 0, settings, None)
    data = data_of(level, x)
    out = inner(name, data)(data, *rest, axis=shifted(axis, data.ndim - 1), **settings)
    return lanes(level, out)


@rule("argmax", "argmin")
def _place(level: Level, name: str, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    data, found = data_of(level, x), inner(name, data_of(level, x))
    if axis is not None and data.ndim > 1:
        return lanes(level, found(data, axis=shifted(axis, data.ndim - 1), keepdims=keepdims))
    flat = beneath(data).reshape(data, (data.shape[0], _product(data.shape[1:])))
    out = found(flat, axis=1)
    ones = (1,) * (data.ndim - 1) if keepdims else ()
    return lanes(level, beneath(out).reshape(out, (data.shape[0], *ones)))


def _product(sizes: Shape) -> int:
    return int(np.prod(sizes, dtype=int))


@rule("cumulative_sum", "cumulative_prod", "logcumsumexp", "flip", "sort", "argsort")
def _along(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    default = -1 if name in ("sort", "argsort") else None
    rest, axis = _axis_among(rest, 0, settings, default)
    data = data_of(level, x)
    if data.ndim == 1 or (axis is None and name != "flip"):
        return looped(level, name, x, *rest, axis=axis, **settings)
    return lanes(
        level, inner(name, data)(data, *rest, axis=shifted(axis, data.ndim - 1), **settings)
    )


@rule("roll", "take", "repeat")
def _along_by(level: Level, name: str, x: Any, *by: Any, axis: Any = None, **named: Any) -> Any:
    (by, axis) = by if len(by) == 2 else (*by, *named.values(), axis)
    data = data_of(level, x)
    if axis is None or data.ndim == 1 or isinstance(by, BatchedArray):
        return looped(level, name, x, by, axis=axis)
    return lanes(level, inner(name, data)(data, by, axis=shifted(axis, data.ndim - 1)))


@rule("take_along_axis", "add_along_axis")
def _by_index(level: Level, name: str, x: Any, index: Any, axis: int, **settings: Any) -> Any:
    data, places = as_many(level, x, index)
    if "shape" in settings:
        settings["shape"] = (data.shape[0], *settings["shape"])
    axis = shifted(axis, data.ndim - 1)
    return lanes(level, inner(name, data, places)(data, places, axis=axis, **settings))


@rule("concat", "concatenate", "stack")
def _joined(level: Level, name: str, arrays: Any, axis: Any = 0) -> Any:
    datas = [data_of(level, x) for x in arrays]
    if axis is None:
        return looped(level, name, list(arrays), axis=None)
    if any(data.shape[0] > 1 for data in datas) or level.count == 0:
        datas = [full(level, data) for data in datas]
    ndim = datas[0].ndim - 1 + (name == "stack")
    return lanes(level, inner(name, *datas)(datas, axis=shifted(axis, ndim)))


@rule("vecdot", "linalg.cross")
def _along_both(level: Level, name: str, x: Any, y: Any, *, axis: int = -1) -> Any:
    datas = aligned(level, x, y)
    axis = axis if axis < 0 else axis - max(data.ndim - 1 for data in datas)
    return lanes(level, inner(name, *datas)(*datas, axis=axis))


@rule("fft.fft", "fft.ifft", "fft.rfft", "fft.irfft", "fft.hfft", "fft.ihfft")
def _transform(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    rest, axis = _axis_among(rest, 1, settings, -1)
    data = data_of(level, x)
    return lanes(
        level, inner(name, data)(data, *rest, axis=shifted(axis, data.ndim - 1), **settings)
    )


@rule("fft.fftn", "fft.ifftn", "fft.rfftn", "fft.irfftn")
def _transforms(
    level: Level, name: str, x: Any, s: Any = None, axes: Any = None, **rest: Any
) -> Any:
    data = data_of(level, x)
    if axes is None:
        axes = range(-len(s), 0) if s is not None else range(data.ndim - 1)
    axes = shifted(tuple(axes), data.ndim - 1)
    return lanes(level, inner(name, data)(data, s=s, axes=axes, **rest))


# --- shapes ---------------------------------------------------------------------------------------


@rule("reshape")
def _reshape(level: Level, name: str, x: Any, shape: Any, copy: bool | None = None) -> Any:
    shape = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if -1 in shape:
        known = _product(tuple(n for n in shape if n != -1))
        shape = tuple(x.size // max(known, 1) if n == -1 else n for n in shape)

    def take(data: Array) -> Array:
        return beneath(data).reshape(data, (data.shape[0], *shape), copy=copy)

    return lanes(level, take(data_of(level, x))) if copy else view(level, x, take)


@rule("broadcast_to", "spread")
def _broadcast_to(level: Level, name: str, x: Any, shape: Shape) -> Any:
    missing = (None,) * (len(shape) - x.ndim)

    def take(data: Array) -> Array:
        return inner(name, data)(data[(slice(None), *missing)], (data.shape[0], *shape))

    return view(level, x, take)


@rule("permute_dims", "transpose")
def _permute_dims(level: Level, name: str, x: Any, axes: Any = None) -> Any:
    axes = range(x.ndim - 1, -1, -1) if axes is None else axes
    order = (0, *[axis % x.ndim + 1 for axis in axes])
    return view(level, x, lambda data: beneath(data).permute_dims(data, order))


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


@rule("squeeze")
def _squeeze(level: Level, name: str, x: Any, axis: Any = None) -> Any:
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    dropped = {a % x.ndim for a in axes if axis is not None or x.shape[a] == 1}
    return _reshape(level, name, x, tuple(n for i, n in enumerate(x.shape) if i not in dropped))


# --- products and matrices ------------------------------------------------------------------------


@rule("matmul")
def _matmul(level: Level, name: str, x: Any, y: Any) -> Any:
    a, b = data_of(level, x), data_of(level, y)
    xp = beneath(a, b)
    if a.ndim == 1 or b.ndim == 1:
        raise ValueError("matmul: expected vectors or matrices, got a number")
    if b.ndim == 2 and a.ndim == 3 and a.shape[0] == 1:  # one matrix, many vectors: one product
        return lanes(level, xp.matmul(b, xp.matrix_transpose(a[0])))
    if b.ndim == 3 and b.shape[0] == 1:  # rows of all lanes, one matrix
        rows = xp.reshape(a, (_product(a.shape[:-1]), a.shape[-1]))
        out = xp.matmul(rows, b[0])
        return lanes(level, xp.reshape(out, (*a.shape[:-1], b.shape[-1])))
    drop_x, drop_y = a.ndim == 2, b.ndim == 2
    a, b = a[:, None] if drop_x else a, b[..., None] if drop_y else b
    rank = max(a.ndim, b.ndim)
    a, b = padded(a, rank), padded(b, rank)
    out = xp.matmul(a, b)
    out = out[..., 0] if drop_y else out
    return lanes(level, out[..., 0, :] if drop_x and not drop_y else out[..., 0] if drop_x else out)


@rule(
    *[
        f"linalg.{name}"
        for name in ("inv", "det", "slogdet", "cholesky", "eigh", "eig", "svd", "qr")
    ],
    *("linalg.eigvalsh", "linalg.eigvals", "linalg.svdvals"),
    *("inverses", "cofactors", "matrix_exp", "lu_packed"),
)
def _of_matrices(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    data = data_of(level, x)
    return lanes(level, inner(name, data)(data, *rest, **settings))


@rule("triu", "tril")
def _triangle(level: Level, name: str, x: Any, **settings: Any) -> Any:
    if x.ndim < 2:
        return looped(level, name, x, **settings)
    return _of_matrices(level, name, x, **settings)


@rule("check_phases")
def _check_phases(level: Level, name: str, *arrays: Any, operation: str) -> Any:
    datas = [full(level, data_of(level, x)) for x in arrays]
    return lanes(level, inner(name, *datas)(*datas, operation=operation)[None])


@rule("linalg.solve")
def _solve(level: Level, name: str, a: Any, b: Any) -> Any:
    vector = b.ndim == 1
    datas = aligned(level, a, b[..., None] if vector else b)
    out = inner(name, *datas)(*datas)
    return lanes(level, out[..., 0] if vector else out)


# --- what is made ---------------------------------------------------------------------------------


@rule("zeros_like", "ones_like", "empty_like", "full_like")
def _like(level: Level, name: str, x: Any, *rest: Any, **settings: Any) -> Any:
    data = data_of(level, x)[:1]
    return lanes(level, inner(name, data)(data, *rest, **settings))


@rule("zeros", "ones", "empty", "eye", "full", "arange", "linspace")
def _made(level: Level, name: str, *args: Any, **settings: Any) -> Any:
    return lanes(level, level.outer(getattr(numpy_xp, name)(*args, **settings))[None])


@rule("asarray", "array")
def _as_lanes(level: Level, name: str, x: Any, dtype: Any = None, copy: Any = None) -> Any:
    data = data_of(level, x)
    if dtype is not None and np.dtype(dtype) != data.dtype:
        return lanes(level, beneath(data).astype(data, np.dtype(dtype)))
    if copy or name == "array":
        return lanes(level, beneath(data).array(data))
    return x if belongs(level, x) else lanes(level, data)


@rule("to_device")
def _to_device(level: Level, name: str, x: Any, *, source: Any, target: Any) -> Any:
    data = data_of(level, x)
    return lanes(level, beneath(data).to_device(data, source=source, target=target))


# --- images ---------------------------------------------------------------------------------------
#
# Convolution and pooling of lanes: as more samples, or where kernels differ as more groups.


def _together(data: Array) -> Array:
    """Return the lanes as more entries of the first dimension."""
    return beneath(data).reshape(data, (data.shape[0] * data.shape[1], *data.shape[2:]))


def _apart(data: Array, count: int) -> Array:
    """Return the entries of the first dimension as those of so many lanes."""
    return beneath(data).reshape(data, (count, data.shape[0] // max(count, 1), *data.shape[1:]))


def _as_channels(data: Array) -> Array:
    """Return samples that have the channels of all lanes."""
    n, samples, channels, *size = data.shape
    xp = beneath(data)
    order = (1, 0, *range(2, data.ndim))
    return xp.reshape(xp.permute_dims(data, order), (samples, n * channels, *size))


def _of_channels(data: Array, count: int) -> Array:
    samples, channels, *size = data.shape
    xp = beneath(data)
    parts = xp.reshape(data, (samples, count, channels // max(count, 1), *size))
    return xp.permute_dims(parts, (1, 0, *range(2, parts.ndim)))


@rule("convolve", "convolve_input")
def _convolve(level: Level, name: str, x: Any, w: Any, *, window: Any, **size: Any) -> Any:
    images, kernels = data_of(level, x), data_of(level, w)
    function = inner(name, images, kernels)
    if kernels.shape[0] == 1:
        out = function(_together(images), kernels[0], window=window, **size)
        return lanes(level, _apart(out, images.shape[0]))
    if not level.count:  # there are no groups, then
        return looped(level, name, x, w, window=window, **size)
    images, kernels = full(level, images), full(level, kernels)
    groups = (*window[:3], window[3] * level.count)
    out = function(_as_channels(images), _together(kernels), window=groups, **size)
    return lanes(level, _of_channels(out, level.count))


@rule("convolve_weight")
def _convolve_weight(level: Level, name: str, x: Any, y: Any, *, size: Any, window: Any) -> Any:
    if not level.count:
        return looped(level, name, x, y, size=size, window=window)
    images, outputs = full(level, data_of(level, x)), full(level, data_of(level, y))
    groups = (*window[:3], window[3] * level.count)
    function = inner(name, images, outputs)
    out = function(_as_channels(images), _as_channels(outputs), size=size, window=groups)
    return lanes(level, _apart(out, level.count))


@rule("max_pool", "pool_positions", "pool_pick", "pool_place")
def _pool(level: Level, name: str, *arrays: Any, **settings: Any) -> Any:
    datas = as_many(level, *arrays)
    out = inner(name, *datas)(*map(_together, datas), **settings)
    return lanes(level, _apart(out, datas[0].shape[0]))


@rule("resample")
def _resample(level: Level, name: str, x: Any, *, taps: Any, axis: int) -> Any:
    data = data_of(level, x)
    return lanes(level, inner(name, data)(data, taps=taps, axis=axis + 1))
