"""Sharing a computation on large arrays among threads, each part written to its place.

A part is a stretch of elements, or some entries of the first axis. Each is as large as may be: a
call of NumPy's costs a microsecond, and at least four times that where threads wait for each other.
What also counts is that a part's intermediate arrays are used again for the next one: fresh memory
costs more than the arithmetic on it. `benchmarks/kernels.py` has the figures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.kernels import threads

Array = Any
Fill = Callable[..., None]

LARGE = 1 << 18
"""From so many elements on, it pays to share."""

PART = 1 << 19
"""The most elements of a part."""

LEAST = 1 << 16
"""The fewest: small arrays may be computed in another way, and no part in another than the rest."""


def shared(*, by_rows: bool) -> Callable[[Fill], Callable[..., Array]]:
    """Make a kernel that returns its result of one that fills an array like its first input.

    Either the kernel acts element by element; or, `by_rows`, on the entries of the first axis one
    by one, if all inputs have as many and the settings leave that axis alone.
    """

    def decorate(fill: Fill) -> Callable[..., Array]:
        @functools.wraps(fill)
        def kernel(xp: Any, *arrays: Array, **settings: Any) -> Array:
            x = arrays[0]
            out = xp.empty(x.shape, x.dtype)
            if x.size < LARGE:
                fill(xp, out, *arrays, **settings)
            else:
                share(fill, xp, (out, *arrays), settings, by_rows=by_rows)
            return out

        return kernel

    return decorate


def share(
    fill: Fill, xp: Any, arrays: tuple[Array, ...], settings: dict[str, Any], *, by_rows: bool
) -> None:
    """Fill the first array: in parts, where that can be and pays."""
    whole = max([array.size for array in arrays])
    if whole < LARGE or not _separable(arrays, settings, by_rows):
        return fill(xp, *arrays, **settings)
    if not by_rows:
        arrays = tuple([array.reshape(-1) for array in arrays])
    count = arrays[0].shape[0]
    wanted = min(threads.get_num_threads(), whole // LEAST)
    parts = min(max(-(-whole // PART), wanted), count)

    def part(i: int) -> None:
        some = slice(i * count // parts, (i + 1) * count // parts)
        fill(xp, *[array[some] for array in arrays], **settings)

    return threads.each(part, range(parts))


def _separable(arrays: tuple[Array, ...], settings: dict[str, Any], by_rows: bool) -> bool:
    out = arrays[0]
    if by_rows and settings.get("axis") == 0:
        return False
    for array in arrays:
        if array.__class__ is not np.ndarray or not array.flags.c_contiguous:
            return False
        if array.shape[:1] != out.shape[:1] if by_rows else array.shape != out.shape:
            return False
    return True
