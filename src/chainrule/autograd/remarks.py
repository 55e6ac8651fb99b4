"""Remarks: what runs slower than its form promises, told once or refused under `strict=True`."""

from __future__ import annotations

import contextlib
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

_told: MutableMapping[Any, dict[str, object]] = weakref.WeakKeyDictionary()
"""What was told about each function, by operation: the call that told it."""


def note(remark: Remark) -> None:
    """Add a remark to those of the current trace, if there is one."""
    found = REMARKS.get()
    if found is not None and remark not in found:
        found.append(remark)


def tell(remark: Remark, function: Any) -> None:
    """Warn at the user's line, once for each function and operation.

    If the filter makes the warning an error, or the call is interrupted, it is told again.
    """
    known: dict[str, object] = {}
    with contextlib.suppress(TypeError):  # not hashable, or without weak references
        known = _told.setdefault(user_function(function), known)
    call = object()
    if known.setdefault(remark.operation, call) is not call:  # atomic
        return
    try:
        warnings.warn(remark.text, PerformanceWarning, stacklevel=user_stack_level())
    except BaseException:
        del known[remark.operation]
        raise
