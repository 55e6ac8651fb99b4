"""Convolution and pooling of lanes: as more samples, or where kernels differ as more groups."""

from __future__ import annotations

from typing import Any

from chainrule.transforms.vmap.batched_array import Level
from chainrule.transforms.vmap.namespace import (
    as_many,
    beneath,
    data_of,
    full,
    inner,
    lanes,
    looped,
    rule,
)

Array = Any


def _together(data: Array) -> Array:
    """Return the lanes as more entries of the first dimension."""
    return beneath(data).reshape(data, (data.shape[0] * data.shape[1], *data.shape[2:]))


def _apart(data: Array, count: int) -> Array:
    """Return the entries of the first dimension as those of so many lanes."""
    return beneath(data).reshape(data, (count, data.shape[0] // max(count, 1), *data.shape[1:]))


def _as_channels(data: Array) -> Array:
    """Return samples that have the channels of all lanes."""
    n, samples, channels, *size = data.shape
    lib = beneath(data)
    order = (1, 0, *range(2, data.ndim))
    return lib.reshape(lib.permute_dims(data, order), (samples, n * channels, *size))


def _of_channels(data: Array, count: int) -> Array:
    samples, channels, *size = data.shape
    lib = beneath(data)
    parts = lib.reshape(data, (samples, count, channels // max(count, 1), *size))
    return lib.permute_dims(parts, (1, 0, *range(2, parts.ndim)))


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
