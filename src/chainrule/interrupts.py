"""Calls with context variables set, which are restored at whatever instruction an interrupt comes.

Python raises the KeyboardInterrupt of a signal between two instructions: within a `finally` block
as well, or before the first instruction of an `__exit__`, where it lands if the signal came during
an operator that ended the block. So what has to be restored is restored in `finally` and again if
that did not end normally. Nothing here counts: restoring twice is the same as restoring once.
"""

from __future__ import annotations

import _imp
import contextlib
import functools
import gc
import sys
import threading
import warnings
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from types import FrameType, FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def call_then(
    restore: Callable[[], object], function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function, and `restore` when it has ended in any way: maybe more than once."""
    try:
        try:
            return function(*args, **kwargs)
        finally:
            restore()
    except BaseException:
        restore()
        raise


def call_with(
    values: dict[ContextVar[Any], Any],
    function: Callable[P, T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Call a function with context variables set."""
    before = [(variable, variable.get()) for variable in values]
    try:
        try:
            for variable, value in values.items():
                variable.set(value)
            return function(*args, **kwargs)
        finally:
            for variable, value in before:
                variable.set(value)
    except BaseException:
        for variable, value in before:
            variable.set(value)
        raise


def uninterrupted(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread of its own, since signals interrupt the main thread only.

    An interrupt is raised here at once, while the call goes on to its end: for code of others that
    an interrupt would leave half done, such as the import of a large package.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args, **kwargs)
    results: list[T] = []
    errors: list[BaseException] = []
    ended, context = Latch(), copy_context()

    _release_import_lock()

    def run() -> None:
        try:
            results.append(context.run(function, *args, **kwargs))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    start(threading.Thread(target=run, name="chainrule uninterrupted"))
    ended.wait()
    if errors:
        raise errors.pop()
    return results.pop()


def _release_import_lock() -> None:
    """Release Python's import lock if an interrupt of an import has left it to this thread.

    Imports of other threads would wait for it for good: `with _ImportLockContext()` in importlib is
    no more atomic than any other block.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and "importlib._bootstrap" not in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None:
        with contextlib.suppress(RuntimeError):  # it is another thread's
            while _imp.lock_held():
                _imp.release_lock()


class Latch:
    """An event that one thread waits for, and that an interrupt leaves as it was.

    An interrupt within `Event.wait` may release a lock twice (a RuntimeError), and after one within
    `Thread.join` the thread counts as ended.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Let the waiting thread go on."""
        self._is_set = True
        with contextlib.suppress(RuntimeError):  # set already
            self._lock.release()

    def wait(self) -> None:
        """Wait until it is set; may be called again after an interrupt."""
        if not self._is_set:
            self._lock.acquire()


def start(thread: threading.Thread) -> None:
    """Start a thread; after an interrupt it may have been started or not."""
    try:
        thread.start()
    except RuntimeError as error:  # of Event.wait, see `Latch`
        if error.__context__ is None or "unlocked lock" not in str(error):
            raise
        interrupt = error.__context__
    else:
        return
    raise interrupt


def without_collector(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function with the garbage collector disabled, which other threads may do as well."""
    run = object()
    enabled = gc.isenabled() or bool(_uncollected)

    def call() -> T:
        if enabled:
            _uncollected.add(run)
        gc.disable()
        return function(*args, **kwargs)

    def leave() -> None:
        _uncollected.discard(run)
        if enabled and not _uncollected:
            gc.enable()

    return call_then(leave, call)


_uncollected: set[object] = set()
"""The calls in any thread for which the collector is disabled; the last one enables it again."""


def from_first_instruction(function: F) -> F:
    """Let the `try` that a function begins with cover the entry of the function, too.

    A signal that came before the call is raised there.
    """
    code = cast(FunctionType, function).__code__
    table = code.co_exceptiontable
    # An entry is four numbers: the start and the number of the covered instructions, the handler,
    # and the depth of its stack. A byte has six bits of a number, bit 6 if more follow, and bit 7
    # at the start of an entry. A copy of the first entry covers what comes before it.
    second = next((i for i in range(1, len(table)) if table[i] & 0x80), len(table))
    handler = next(i for i in range(1, second) if not table[i] & 0x40) + 1
    covering = bytes([0x80, table[0] & 0x3F]) + table[handler:second]
    cast(FunctionType, function).__code__ = code.replace(co_exceptiontable=covering + table)
    return function


# --- warnings -------------------------------------------------------------------------------------


def without_warnings(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that must not warn, neither of floating-point errors nor otherwise."""
    block = warnings.catch_warnings(action="ignore")

    def call() -> T:
        block.__enter__()
        return call_with({ERRSTATE: ignore_all(ERRSTATE.get())}, function, *args, **kwargs)

    return call_then(functools.partial(_leave, block), call)


def _leave(block: warnings.catch_warnings[None]) -> None:
    with contextlib.suppress(AttributeError, RuntimeError):  # not entered, or left already
        block.__exit__(None, None, None)


# --- NumPy's floating-point error state -----------------------------------------------------------
#
# `np.errstate` builds a record of the handling of each kind of error and stores it in a context
# variable. Building the record takes most of its 1.2 µs, so records are cached.


def _errstate_variable() -> ContextVar[Any]:
    """Return the context variable that `np.errstate` sets."""
    before, context = copy_context(), copy_context()
    context.run(np.seterr, all="raise")
    for variable, record in context.items():
        if before.get(variable) is not record:
            return variable
    return ContextVar("reports", default=None)  # NumPy stores it elsewhere: a test fails


ERRSTATE: ContextVar[Any] = _errstate_variable()


def errstate(**kinds: Any) -> Callable[[F], F]:
    """Return a decorator of functions that handle floating-point errors as `np.errstate` says."""
    handling = _errstate(kinds)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return call_with({ERRSTATE: handling(ERRSTATE.get())}, function, *args, **kwargs)

        return cast(F, wrapper)

    return decorate


def _errstate(kinds: dict[str, Any]) -> Callable[[Any], Any]:
    """Return the function from a value of `ERRSTATE` to one with some kinds handled differently."""
    last: list[tuple[Any, Any]] = [(object(), None)]

    def handling(record: Any) -> Any:
        known, changed = last[0]
        if record is not known:
            changed = copy_context().run(_changed, kinds)
            last[0] = record, changed  # the next record is nearly always the same
        return changed

    return handling


def _changed(kinds: dict[str, Any]) -> Any:
    np.seterr(**kinds)
    return ERRSTATE.get()


ignore_all = _errstate({"all": "ignore"})
"""Return a value of `ERRSTATE` with all errors ignored and other settings unchanged."""
