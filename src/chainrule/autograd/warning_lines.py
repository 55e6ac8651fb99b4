"""NumPy's floating-point warnings, named by the user's line instead of by ours.

NumPy warns from C, at the Python line that called it, which is one of the package. `np.errstate` at
each operation would cost half of its time, and a recorded position nothing could use. So the hook
of Python's `warnings` module that shows a warning ("replace if you like") issues it again, at the
line of the user's own code: a warning costs that, and an operation without one nothing.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from chainrule.autograd.location import INTERNAL, own_frame

_HOOK = "_showwarnmsg"  # the C code of `warnings` looks it up by this name


def install() -> None:
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
