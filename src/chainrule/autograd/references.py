"""Who else holds an array: what only one variable holds is handed over, not copied.

The reference count says so, as in PyTorch. What it is for one variable differs among Pythons, so it
is measured at import.
"""

from __future__ import annotations

import sys
from typing import Any

from chainrule.backend import namespace, ndarray

Array = Any
count_references = sys.getrefcount


def _references() -> int:
    local = object()
    return count_references(local)


ALONE = _references()
"""What `getrefcount` says of an object that one local variable holds, in this Python."""


def _references_in_call() -> int:
    local = object()
    return _inner(local)


def _inner(argument: object) -> int:
    return count_references(argument)


ALONE_IN_CALL = _references_in_call()
"""The same for an argument that only one local variable of the caller holds besides."""


def owned(array: Array, alone: bool) -> Array:
    """Return `array`, or a copy if somebody else may hold it or its memory."""
    if alone and array.__class__ is ndarray and array.base is None and array.flags.writeable:
        return array
    return namespace(array).array(array)
