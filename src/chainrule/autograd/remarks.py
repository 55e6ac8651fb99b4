"""Remarks: what runs slower than its form promises, told once or refused under `strict=True`."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from chainrule.autograd.location import user_function, user_stack_level
from chainrule.errors import PerformanceWarning


class Remark(NamedTuple):
    """An operation without the fast form that was asked for."""

    operation: str
    text: str  # operation, reason, what happens instead, and the mend
    is_told: bool = True  # by a warning; others are only listed, and refused if strict


REMARKS: ContextVar[list[Remark] | None] = ContextVar("chainrule remarks", default=None)
"""The remarks of the current trace."""

STRICT: ContextVar[bool] = ContextVar("chainrule strict", default=False)
"""Whether a function runs under ``strict=True``."""

Told = dict[str, object]
"""What was told about a function, by operation: the call that told it."""

_told: MutableMapping[Any, Told] = weakref.WeakKeyDictionary()


def told_about(function: Any) -> Told:
    """Return what was told about a function, or about the one that it wraps."""
    try:
        return _told.setdefault(user_function(function), {})
    except TypeError:  # not hashable, or without weak references
        return {}


def note(remark: Remark) -> None:
    """Add a remark to those of the current trace, if there is one."""
    found = REMARKS.get()
    if found is not None and remark not in found:
        found.append(remark)


def tell(remark: Remark, known: Told) -> None:
    """Warn at the user's line, once for each operation.

    If the filter makes the warning an error, or the call is interrupted, it is told again.
    """
    call = object()
    if known.setdefault(remark.operation, call) is not call:  # atomic
        return
    try:
        warnings.warn(remark.text, PerformanceWarning, stacklevel=user_stack_level())
    except BaseException:
        del known[remark.operation]
        raise
