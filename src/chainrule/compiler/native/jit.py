"""Machine code of loops, by Numba, which is imported when a loop is first wanted."""

from __future__ import annotations

import functools
import importlib.util
import re
import threading
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from chainrule.compiler.native import elementary
from chainrule.compiler.native.disk import source_file, unfailing
from chainrule.compiler.native.scalars import CODES
from chainrule.compiler.runner import defined
from chainrule.errors import CompileError

_NAMES = {name for name, value in vars(elementary).items() if isinstance(value, FunctionType)}
_lock = threading.RLock()


@functools.cache
def is_installed() -> bool:
    """Say whether Numba can be imported, without importing it."""
    return importlib.util.find_spec("numba") is not None


@functools.cache
def numba() -> Any:
    """Return Numba."""
    try:
        import numba as found
    except ImportError as error:
        raise CompileError(
            "compile(backend='native') needs Numba: pip install 'chainrule[native]', or "
            "backend='numpy'"
        ) from error
    return found


@functools.cache
def is_usable() -> bool:
    """Import Numba, and say whether that works: it is particular about NumPy's version."""
    try:
        numba()
    except CompileError:
        return False
    return True


def jitted(text: str, name: str, calls: frozenset[str]) -> Any:
    """Return the function that source defines as machine code, from disk if it is there.

    Functions that differ in nothing but the names of their variables are one.
    """
    return _jitted(unnamed(text), name, calls)


def unnamed(text: str) -> str:
    """Return the source of a function with numbers for the names of its variables."""
    (code,) = [c for c in compile(text, "", "exec").co_consts if isinstance(c, CodeType)]
    numbers = {name: f"v{number}" for number, name in enumerate(code.co_varnames)}
    return re.sub(r"\b(?<!\.)[A-Za-z_]\w*", lambda found: numbers.get(found[0], found[0]), text)


@functools.lru_cache(maxsize=512)
def _jitted(text: str, name: str, calls: frozenset[str]) -> Any:
    scope: dict[str, Any] = {code: dtype.type for dtype, code in CODES.items()}
    scope |= {"u8": np.uint64, "np": np, "INF": np.inf, "NAN": np.nan}
    scope |= {other: inlined(other) for other in calls}
    scope["__name__"] = __name__  # which Numba imports when it reads the code from disk
    file = source_file(text)
    if file is None:
        return compiled(defined(text, name, f"<{name} {{}}>", scope), cached=False)
    exec(compile(text, str(file), "exec"), scope)
    return compiled(scope[name], cached=True)


def compiled(function: Callable[..., Any], cached: bool) -> Any:
    """Return a loop that Numba compiles when it is first called; other threads run meanwhile."""
    with _lock:
        options = {"error_model": "numpy", "nogil": True, "pipeline_class": _without_aliases()}
        try:
            dispatcher = numba().njit(cache=cached, **options)(function)
        except RuntimeError:  # there is no place for its files
            return numba().njit(**options)(function)
        return unfailing(dispatcher) if cached else dispatcher


_REORDERED = {"plus": {"reassoc"}, "times_plus": {"reassoc", "contract"}}
"""What LLVM may do to sums; elementary functions may round a product and a sum at once."""


@functools.cache
def inlined(name: str) -> Any:
    """Return an elementary function as what is compiled into loops."""
    with _lock:
        plain = getattr(elementary, name)
        scope = dict(vars(elementary))  # where it finds others that are compiled, too
        scope |= {other: inlined(other) for other in plain.__code__.co_names if other in _NAMES}
        function = FunctionType(plain.__code__, scope, name)
        flags = _REORDERED.get(name, {"contract"} if name[-3:-1] == "_f" else set())
        return numba().njit(error_model="numpy", fastmath=flags, forceinline=True)(function)


@functools.cache
def _without_aliases() -> Any:
    """Return Numba's compiler with the promise that no array of a loop is memory of another's.

    Without it, LLVM asks at run time, and gives up where arrays are many.
    """
    compiler: Any = numba().core.compiler.Compiler

    class Compiler(compiler):  # type: ignore[misc]  # Numba has no types: its classes are Any
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.state.flags.noalias = True

    return Compiler
