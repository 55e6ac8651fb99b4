"""Functions whose results come from outside of the program: clocks, files, threads, frames.

No guard can compare what they return with what they would return now. A function that calls one is
traced at each call, so that its result is eager's.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from chainrule.compiler.tracing.code_names import CodeNames
from chainrule.compiler.tracing.locations import is_standard

_FUNCTIONS = {
    "datetime": ("now", "utcnow", "today"),  # of classes
    "decimal": ("getcontext", "localcontext"),
    "gc": (
        *("get_count", "get_objects", "get_referrers", "get_stats", "get_threshold", "isenabled"),
    ),
    "io": ("open", "open_code"),
    "posix": (
        *("access", "cpu_count", "getcwd", "getloadavg", "getpid", "getrandom", "listdir"),
        *("lstat", "open", "read", "readlink", "scandir", "stat", "times", "urandom"),
    ),
    "numpy": ("fromfile", "memmap"),
    "locale": ("localeconv", "setlocale"),
    "signal": ("getsignal",),
    "socket": ("getaddrinfo", "gethostbyname", "gethostname"),
    "sqlite3": ("connect",),
    "sys": ("_current_frames", "_getframe", "getrecursionlimit", "getrefcount"),
    "thread": ("_count", "start_joinable_thread", "start_new_thread"),
    "threading": ("active_count", "enumerate"),
    "time": (
        *("clock_gettime", "clock_gettime_ns", "ctime", "gmtime", "localtime", "monotonic"),
        *("monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns"),
        *("strftime", "thread_time", "thread_time_ns", "time", "time_ns"),
    ),
}
"""Names by module, as the functions themselves state it, without underscores before it."""

_RETURNED_BY = frozenset(
    [
        *("bz2", "codecs", "configparser", "dbm", "fileinput", "genericpath", "glob", "gzip"),
        *("inspect", "locale", "lzma", "mailbox", "netrc", "ntpath", "os", "pathlib", "pkgutil"),
        *("posixpath", "random", "secrets", "shutil", "signal", "socket", "subprocess"),
        *("tarfile", "tempfile", "threading", "timeit", "urllib", "uuid", "wave", "xml"),
        *("zipfile", "zoneinfo"),
    ]
)
"""Modules of the standard library that return such results; others write them to logs."""

_OF_LIMITS = frozenset(["getrecursionlimit"])
"""What the standard library reads only to stop in time, as `inspect.signature` does."""


def outside_function(code: types.CodeType, used: CodeNames, space: dict[str, Any]) -> str | None:
    """Return the name of a function of the outside that code names, or None."""
    package = str(space.get("__name__")).partition(".")[0]
    if is_standard[code.co_filename]:
        if package not in _RETURNED_BY:
            return None
        if code.co_name in _FUNCTIONS.get(package, ()):
            return f"{package}.{code.co_name}"
    values: list[Any] = [space.get(name, vars(builtins).get(name)) for name in used.globals]
    values += [sys.modules.get(name) for name, _ in used.modules]
    attributes = used.attributes - _OF_LIMITS if is_standard[code.co_filename] else used.attributes
    for value in values:
        parts: list[Any] = [value]
        if isinstance(value, types.ModuleType):
            parts += [vars(value).get(name) for name in attributes]
        for part in parts:
            if _is_outside(part):
                return f"{part.__module__}.{part.__name__}".lstrip("_")
            if isinstance(part, type) and part.__module__ == "datetime":
                names = used.attributes.intersection(_FUNCTIONS["datetime"])
                if names:
                    return f"{part.__name__}.{min(names)}"
    return None


def _is_outside(value: Any) -> bool:
    if not isinstance(value, types.BuiltinFunctionType | type):
        return False
    module = str(value.__module__).lstrip("_")
    return value.__name__ in _FUNCTIONS.get("posix" if module == "nt" else module, ())
