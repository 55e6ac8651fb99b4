"""Remarks: what runs slower than its form promises; and warnings of NumPy, at the user's line."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from chainrule.autograd.location import INTERNAL, own_frame, user_function, user_stack_level
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


# --- floating-point warnings ----------------------------------------------------------------------
#
# NumPy warns from C, at the Python line that called it, which is one of the package. `np.errstate`
# at each operation would cost half of its time, and a recorded position nothing could use. So the
# hook of Python's `warnings` module that shows a warning issues it again, at the line of the user's
# own code: a warning costs that, and an operation without one nothing.

_HOOK = "_showwarnmsg"  # the C code of `warnings` looks it up by this name


def show_warnings_at_the_users_line() -> None:
    """Show floating-point warnings at the user's line from now on; once is enough."""
    show = getattr(warnings, _HOOK, None)
    if show is not None and not hasattr(show, "shows_for_chainrule"):
        setattr(warnings, _HOOK, _at_the_users_line(show))


def _at_the_users_line(show: Callable[[Any], None]) -> Callable[[Any], None]:
    def show_at_the_users_line(message: Any) -> None:
        frame = sys._getframe(1)
        own = None
        if message.category is RuntimeWarning and INTERNAL[message.filename]:
            own = own_frame(frame)
        if own is None or INTERNAL[own.f_code.co_filename]:
            show(message)
            return
        text = str(message.message)
        # Other lines of the user must not count as told because this line of ours is.
        registry = frame.f_globals.get("__warningregistry__", {})
        for line in (message.lineno, 0):
            registry.pop((text, RuntimeWarning, line), None)
        getattr(warnings, "onceregistry", {}).pop((text, RuntimeWarning), None)
        warnings.warn_explicit(
            text,
            RuntimeWarning,
            own.f_code.co_filename,
            own.f_lineno,
            own.f_globals.get("__name__"),
            own.f_globals.setdefault("__warningregistry__", {}),
        )

    marked: Any = show_at_the_users_line
    marked.shows_for_chainrule = True
    return show_at_the_users_line
