"""Reference counts: whether an array is held by one variable alone.

Such an array is taken over or written to instead of copied, as in PyTorch. The counts that show it
depend on the version of Python, and are measured at import.
"""

from __future__ import annotations

import sys
from typing import Any

from chainrule.backend import ndarray

count_references = sys.getrefcount


def _measured() -> tuple[int, int, int]:
    local = object()
    return count_references(local), _in_call(local), _in_inner_call(local)


def _in_call(argument: object) -> int:
    return count_references(argument)


def _in_inner_call(argument: object) -> int:
    return _in_call(argument)


ALONE, ALONE_IN_CALL, ALONE_IN_INNER_CALL = _measured()
"""Reference counts of an object that only one local variable holds: where that variable is, in a
function that is called with it, and in one that this function calls with it."""


def is_own(array: Any, alone: bool) -> bool:
    """Return whether an array that nothing else holds, if `alone`, has memory of its own."""
    return (
        alone and array.__class__ is ndarray and array.base is None and bool(array.flags.writeable)
    )


def own_memory(array: Any, alone: bool) -> Any:
    """Return such an array itself, or the equal one that it alone is a view of; None for others."""
    if is_own(array, alone):
        return array
    base = array.base if alone and array.__class__ is ndarray else None
    if (  # a product that was transposed twice
        base.__class__ is ndarray
        and base.shape == array.shape
        and base.strides == array.strides
        and base.dtype == array.dtype
        and count_references(base) <= ALONE + 1
        and is_own(base, alone)
    ):
        return base
    return None
