"""What the callers of loops call: memory to fill."""

from __future__ import annotations

from typing import Any

import numpy as np


def fresh(given: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return memory for a result: what is given, if its elements follow each other, or new."""
    if given is not None and given.flags.c_contiguous:
        return given
    return np.empty(shape, dtype)


def filled(given: Any, shape: tuple[int, ...], dtype: Any, number: float) -> Any:
    """Return the same, full of a number."""
    array = fresh(given, shape, dtype)
    array.fill(number)
    return array


def over(given: Any, array: Any) -> Any:
    """Return what a loop is to read and write: the array, if that is what is given, or a copy."""
    return array if given is array and array.flags.c_contiguous else np.array(array, order="C")


def handed(given: Any, made: Any) -> Any:
    """Return a result, which is where it was wanted."""
    if given is None or given is made:
        return made
    given[...] = made
    return given


NAMES = {function.__name__: function for function in (fresh, filled, over, handed)}
"""What a caller finds by name."""
