"""Reports of the code objects that run in this thread, each before it begins."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any

from chainrule.compiler.tracing.locations import is_internal
from chainrule.interrupts import P, T, call_then, call_with, uninterrupted

Report = Callable[[FrameType], bool]
"""Takes the frame of a function that starts; returns False if it wants the next one as well."""


class _Reporter:
    """The receivers of reports in one thread or task, the innermost last."""

    def __init__(self, outer: _Reporter | None, report: Report) -> None:
        self.receivers: list[tuple[Report, dict[tuple[int, int], Any]]] = [(report, {})]
        if outer is not None:
            self.receivers[:0] = outer.receivers
        self.callbacks: dict[int, Any] = outer.callbacks if outer else _callbacks()
        self.printing: dict[int, Any] = outer.printing if outer else _printing()
        self.unrelated: int = outer.unrelated if outer else self.count_unrelated(sys._getframe())
        self.imported: Any = None  # the specification of a module that is being imported

    def count_unrelated(self, frame: FrameType | None) -> int:
        """Return the number of frames that the program does not depend on.

        Python runs callbacks at any time, whatever the program does, and prints return nothing.
        """
        count = 0
        callbacks, printing = self.callbacks, self.printing
        while frame is not None:
            code = frame.f_code
            if code.co_name == "__del__" or id(code) in printing:
                count += 1
            if id(code) in callbacks and _is_callback(frame):
                count += 1
            frame = frame.f_back
        return count

    def started(self, frame: FrameType) -> None:
        """Report a frame to the receivers that have not seen its code.

        What a first import runs is not reported: no later call runs it.
        """
        if getattr(self.imported, "_initializing", False):
            return
        code = frame.f_code
        space = frame.f_globals
        self.imported = space.get("__spec__") if code.co_name == "<module>" else None
        if getattr(self.imported, "_initializing", False):
            return
        if is_internal[space.get("__file__") or ""]:  # of a generated function
            return
        key = id(code), id(space)
        if key not in self.receivers[-1][1] and self.count_unrelated(frame) == self.unrelated:
            for report, seen in self.receivers:
                if key not in seen:
                    seen[key] = code, space  # held, so that nothing else gets their ids
                    if not report(frame):
                        del seen[key]


_SIGNALS = sorted(signal.valid_signals())


def _callbacks() -> dict[int, Any]:
    """Return the code that handles signals, collections and the end of objects, by its id."""
    handlers = [handler for handler in map(signal.getsignal, _SIGNALS) if callable(handler)]
    functions: list[Any] = [*handlers, *gc.callbacks, weakref.finalize.__call__]
    functions += [getattr(function, "func", None) for function in functions]  # of a partial
    functions += [type(function).__call__ for function in functions if callable(function)]
    return _codes_by_id(functions)


def _printing() -> dict[int, Any]:
    """Return the code with which streams in the place of Python's, as in notebooks, write."""
    streams = sys.stdout, sys.stderr
    methods = [getattr(stream, name, None) for stream in streams for name in ("write", "flush")]
    return _codes_by_id(methods)


def _codes_by_id(functions: list[Any]) -> dict[int, Any]:
    """Return the code of functions; by id, since a hash of code reads all its instructions."""
    codes = [getattr(function, "__code__", None) for function in functions]
    return {id(code): code for code in codes}


def _is_callback(frame: FrameType) -> bool:
    """Return whether Python called the function of a frame, which others may call as well."""
    if frame.f_code is weakref.finalize.__call__.__code__:
        return True
    values = list(frame.f_locals.values())
    values += [item for value in values if type(value) is tuple for item in value]  # *args
    if any(value is frame.f_back for value in values):
        return True  # the argument of a signal handler
    return any(type(value) is str and value in ("start", "stop") for value in values)


_REPORTER: ContextVar[_Reporter | None] = ContextVar("chainrule reporter", default=None)


def reporting(
    report: Report, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> tuple[T, bool]:
    """Call a function, and report code as it starts; return also whether nothing was missed.

    Debuggers, profilers and coverage tools stay undisturbed: each may occupy one of Python's hooks,
    and another one is used.
    """
    outer = _REPORTER.get()

    def call() -> tuple[T, bool]:
        if outer is None:
            return _hooked(function, *args, **kwargs)
        return function(*args, **kwargs), True

    return call_with({_REPORTER: _Reporter(outer, report)}, call)


def _report(frame: FrameType) -> None:
    reporter = _REPORTER.get()
    if reporter is not None:
        reporter.started(frame)


if sys.version_info >= (3, 12):
    _FIRST_TOOL, _TOOLS = 3, 6
    _LOCK = threading.Lock()
    _active: set[object] = set()  # calls with reports, in any thread

    def _tool() -> int | None:
        """Return the id under which this package gets events; None if all are taken."""
        monitoring = sys.monitoring
        ids = [(_FIRST_TOOL + i) % _TOOLS for i in range(_TOOLS)]
        for tool in ids:
            if monitoring.get_tool(tool) == "chainrule":
                return tool
        for tool in ids:
            if monitoring.get_tool(tool) is None:
                monitoring.use_tool_id(tool, "chainrule")
                monitoring.register_callback(tool, monitoring.events.PY_START, _on_start)
                return tool
        return None

    def _on_start(code: CodeType, _: int) -> Any:
        if is_internal[code.co_filename]:
            return sys.monitoring.DISABLE
        _report(sys._getframe(1))
        return None

    class _Switch:
        """The events of one call, turned on and off in threads that no signal interrupts."""

        def __init__(self) -> None:
            self.ended = False

        def on(self) -> bool:
            """Turn events on; return whether that was possible."""
            with _LOCK:
                tool = _tool()
                if tool is None or self.ended:
                    return False
                _active.add(self)
                sys.monitoring.set_events(tool, sys.monitoring.events.PY_START)
                return True

        def off(self) -> None:
            """Turn events off if no other call needs them."""
            self.ended = True
            with _LOCK:
                _active.discard(self)
                tool = _tool()
                if tool is not None and not _active:
                    sys.monitoring.set_events(tool, 0)

    def _hooked(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> tuple[T, bool]:
        """Call a function with a hook; return also whether there was one."""
        switch = _Switch()

        def call() -> tuple[T, bool]:
            complete = uninterrupted(switch.on)
            return function(*args, **kwargs), complete

        return call_then(lambda: uninterrupted(switch.off), call)

    def _reset_after_fork() -> None:
        global _LOCK
        _LOCK = threading.Lock()

    os.register_at_fork(after_in_child=_reset_after_fork)

    def unreported(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that runs no code of the user, so that nothing need be reported."""
        return function(*args, **kwargs)

    reported = unreported

    def is_reporting() -> bool:
        """Whether `unreported` saves time now."""
        return False  # the package's code has no events

else:

    def _hook(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and not is_internal[frame.f_code.co_filename]:
            _report(frame)

    def _hooked(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> tuple[T, bool]:
        """Call a function with a hook; return also whether there was one all the time."""
        get: Any = sys.gettrace
        put: Any = sys.settrace
        if get() is not None:
            get, put = sys.getprofile, sys.setprofile
        if get() is not None:
            return function(*args, **kwargs), False

        def call() -> tuple[T, bool]:
            put(_hook)
            return function(*args, **kwargs), get() is _hook

        def restore() -> None:
            if get() is _hook:
                put(None)

        return call_then(restore, call)

    def unreported(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that runs no code of the user, so that nothing need be reported."""
        if sys.gettrace() is not _hook:
            return function(*args, **kwargs)
        try:  # as `call_then`, without the cost of its calls
            try:
                sys.settrace(None)
                return function(*args, **kwargs)
            finally:
                _resume()
        except BaseException:
            _resume()
            raise

    def _resume() -> None:
        if sys.gettrace() is None:  # else a debugger has begun, in code of the user
            sys.settrace(_hook)

    def reported(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function within `unreported` that may run code of the user."""
        if sys.gettrace() is not None:
            return function(*args, **kwargs)

        def call() -> T:
            sys.settrace(_hook)
            return function(*args, **kwargs)

        def suspend() -> None:
            if sys.gettrace() is _hook:
                sys.settrace(None)

        return call_then(suspend, call)

    def is_reporting() -> bool:
        """Whether `unreported` saves time now."""
        return sys.gettrace() is _hook
