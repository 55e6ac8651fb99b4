"""Machine code of loops, by Numba, which is imported when a loop is first wanted."""

from __future__ import annotations

import functools
import importlib.util
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from chainrule.compiler.native import elementary
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
def _without_aliases() -> Any:
    """Return Numba's compiler with the promise that no array of a loop is memory of another's.

    Without it, LLVM asks at run time, and gives up where arrays are many.
    """
    compiler: Any = numba().core.compiler.Compiler

    class Compiler(compiler):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.state.flags.noalias = True

    return Compiler


def jitted(function: Callable[..., Any]) -> Any:
    """Return a loop as machine code, which lets other threads run."""
    with _lock:
        return numba().njit(error_model="numpy", nogil=True, pipeline_class=_without_aliases())(
            function
        )


@functools.cache
def inlined(name: str) -> Any:
    """Return an elementary function as what is compiled into loops."""
    with _lock:
        plain = getattr(elementary, name)
        scope = dict(vars(elementary))  # where it finds others that are compiled, too
        scope |= {other: inlined(other) for other in plain.__code__.co_names if other in _NAMES}
        function = FunctionType(plain.__code__, scope, name)
        flags = {"reassoc"} if name == "plus" else {"contract"} if name[-3:-1] == "_f" else set()
        return numba().njit(error_model="numpy", fastmath=flags, forceinline=True)(function)
