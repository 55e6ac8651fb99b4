"""Where the elements of symbols are in memory, as far as is known: what is a view depends on it.

NumPy is asked, on arrays of the same strides that have no memory, which are never read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Strides = tuple[int, ...] | None  # None: not known
Layout = Callable[[Any], Any]


def in_order(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides of memory in C order."""
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def hollow(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> Any:
    """Return an array of these strides, whose elements must not be read."""
    return np.lib.stride_tricks.as_strided(np.empty((), dtype), shape, strides)


def copied(array: Any, dtype: Any) -> tuple[int, ...]:
    """Return the strides of a copy of an array, which NumPy keeps in the order of the elements."""
    strides: tuple[int, ...] = np.empty_like(array, dtype).strides
    return strides
