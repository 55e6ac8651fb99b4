"""Parallel evaluation of kernels on large arrays, in parts.

A part is a contiguous block of elements, or of entries of the first axis. Parts are as large as
possible: a NumPy call costs a microsecond, and four or more where threads contend. Parts also let
intermediate arrays be reused: fresh memory costs more than the arithmetic on it. See
`benchmarks/kernels.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.kernels import threads

Array = Any
Fill = Callable[..., None]

PARALLEL_MIN_ELEMENTS = 1 << 18
"""Number of elements from which several threads pay."""

PART_MAX_ELEMENTS = 1 << 19
"""Largest number of elements of a part."""

PART_MIN_ELEMENTS = 1 << 16
"""Smallest number of elements of a part: kernels compute small arrays in other ways."""


def parallelized(*, by_rows: bool) -> Callable[[Fill], Callable[..., Array]]:
    """Turn a function that fills an array like its first input into a kernel that returns it.

    The kernel acts element by element or, with `by_rows`, on each entry of the first axis, if all
    inputs have that axis and no setting refers to it.
    """

    def decorate(fill: Fill) -> Callable[..., Array]:
        @functools.wraps(fill)
        def kernel(xp: Any, *arrays: Array, **settings: Any) -> Array:
            x = arrays[0]
            out = xp.empty(x.shape, x.dtype)
            if x.size < PARALLEL_MIN_ELEMENTS:
                fill(xp, out, *arrays, **settings)
            else:
                parallel_fill(fill, xp, (out, *arrays), settings, by_rows=by_rows)
            return out

        return kernel

    return decorate


def parallel_fill(
    fill: Fill,
    xp: Any,
    arrays: tuple[Array, ...],
    settings: dict[str, Any],
    *,
    by_rows: bool,
    smallest: int = PARALLEL_MIN_ELEMENTS,
) -> None:
    """Fill the first array, in parallel parts if that is possible and pays.

    It pays from `smallest` elements on.
    """
    size = max([array.size for array in arrays])
    if size < smallest or not _can_split(arrays, settings, by_rows):
        return fill(xp, *arrays, **settings)
    if not by_rows:
        arrays = tuple([array.reshape(-1) for array in arrays])
    count = arrays[0].shape[0]
    wanted = min(threads.get_num_threads(), size // PART_MIN_ELEMENTS)
    parts = min(max(-(-size // PART_MAX_ELEMENTS), wanted), count)

    def part(i: int) -> None:
        block = slice(i * count // parts, (i + 1) * count // parts)
        fill(xp, *[array[block] for array in arrays], **settings)

    return threads.parallel_for(part, range(parts))


def formula_in_parts(
    _: Any,
    xp: Any,  # the namespace of the rules
    formula: Callable[..., Array],
    arrays: tuple[Array, ...],
    settings: dict[str, Any],
    g: Array | None = None,
) -> Array:
    """Return a formula of elements, or its product with `g`, in parallel parts if that pays."""
    inputs = arrays if g is None else (g, *arrays)
    like = inputs[0]
    alike = all(array.dtype == like.dtype for array in inputs) and like.dtype.char in "fd"
    if not alike or threads.get_num_threads() == 1 or not _can_split(inputs, {}, by_rows=False):
        value = formula(xp, *arrays, **settings)
        return value if g is None else g * value

    def fill(_: Any, out: Array, *parts: Array) -> None:
        if g is None:
            out[...] = formula(xp, *parts, **settings)
        else:
            xp.multiply(parts[0], formula(xp, *parts[1:], **settings), out=out)

    out = xp.empty(like.shape, like.dtype)
    parallel_fill(fill, xp, (out, *inputs), {}, by_rows=False)
    return out


def _can_split(arrays: tuple[Array, ...], settings: dict[str, Any], by_rows: bool) -> bool:
    out = arrays[0]
    if by_rows and settings.get("axis") == 0:
        return False
    for array in arrays:
        if array.__class__ is not np.ndarray or not array.flags.c_contiguous:
            return False
        if array.shape[:1] != out.shape[:1] if by_rows else array.shape != out.shape:
            return False
    return True
