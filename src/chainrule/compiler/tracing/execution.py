"""Reports of the code objects that run in this thread, each before it begins."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FrameType
from typing import Any

from chainrule.compiler.tracing.locations import is_internal

Report = Callable[[FrameType], bool]
"""Takes the frame of a function that starts; returns False if it wants the next one as well."""


class _Reporter:
    """The receivers of reports in one thread or task, the innermost last."""

    def __init__(self) -> None:
        self.receivers: list[tuple[Report, dict[tuple[int, int], Any]]] = []
        self.finalizers = _finalizers(sys._getframe())

    def started(self, frame: FrameType) -> None:
        """Report a frame to the receivers that have not seen its code."""
        if not self.receivers:
            return
        code = frame.f_code
        space = frame.f_globals
        if is_internal[space.get("__file__") or ""]:  # of a generated function
            return
        key = id(code), id(space)
        if key not in self.receivers[-1][1] and _finalizers(frame) == self.finalizers:
            for report, seen in self.receivers:
                if key not in seen:
                    seen[key] = code, space  # held, so that nothing else gets their ids
                    if not report(frame):
                        del seen[key]


def _finalizers(frame: FrameType | None) -> int:
    """Return the number of frames that Python runs when it frees memory, at any time."""
    callbacks = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    count = 0
    while frame is not None:
        count += frame.f_code.co_name == "__del__" or frame.f_code in callbacks
        frame = frame.f_back
    return count


_REPORTER: ContextVar[_Reporter | None] = ContextVar("chainrule reporter", default=None)


@contextmanager
def reporting(report: Report) -> Iterator[Callable[[], bool]]:
    """Report code as it starts; yield a function that says whether nothing was missed.

    Debuggers, profilers and coverage tools stay undisturbed: each may occupy one of Python's hooks,
    and another one is used.
    """
    outer = _REPORTER.get()
    reporter = outer or _Reporter()
    token = _REPORTER.set(reporter)
    try:
        reporter.receivers.append((report, {}))
        if outer is None:
            with _hook(reporter) as complete:
                yield complete
        else:
            yield lambda: True
    finally:
        del reporter.receivers[-1:]
        _REPORTER.reset(token)


if sys.version_info >= (3, 12):
    _FIRST_TOOL, _TOOLS = 3, 6

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
        reporter = _REPORTER.get()
        if reporter is not None:
            reporter.started(sys._getframe(1))
        return None

    _active = 0

    @contextmanager
    def _hook(reporter: _Reporter) -> Iterator[Callable[[], bool]]:
        global _active
        tool = _tool()
        if tool is None:
            yield lambda: False
            return
        try:
            _active += 1
            sys.monitoring.set_events(tool, sys.monitoring.events.PY_START)
            yield lambda: True
        finally:
            _active = max(_active - 1, 0)
            if not _active:
                sys.monitoring.set_events(tool, 0)

    def pause() -> Any:
        """Stop the reports within functions that run no code of the user; see `resume`."""

    def resume(paused: Any) -> None:
        """Go on with the reports."""

else:

    @contextmanager
    def _hook(reporter: _Reporter) -> Iterator[Callable[[], bool]]:
        hook = _calls_of(reporter)
        get: Any = sys.gettrace
        put: Any = sys.settrace
        if get() is not None:
            get, put = sys.getprofile, sys.setprofile
        if get() is not None:
            yield lambda: False
            return
        try:
            put(hook)
            yield lambda: get() is hook
        finally:
            if get() is hook:
                put(None)

    def _calls_of(reporter: _Reporter) -> Any:
        started = reporter.started

        def called(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and not is_internal[frame.f_code.co_filename]:
                started(frame)

        return called

    _HOOK_CODE = _calls_of(_Reporter()).__code__

    def pause() -> Any:
        """Stop the reports within functions that run no code of the user; see `resume`."""
        hook = sys.gettrace()
        if getattr(hook, "__code__", None) is not _HOOK_CODE:
            return None
        sys.settrace(None)
        return hook

    def resume(paused: Any) -> None:
        """Go on with the reports."""
        if paused is not None:
            sys.settrace(paused)
