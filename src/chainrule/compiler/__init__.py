"""Compiler: traces a function for each signature, and runs an optimised program in its place.

`tracing` runs the function once on symbols, with the eager engine itself. The trace becomes a
program (`ir`), which `passes` optimise and `codegen` or `native` turn into NumPy source or machine
code. `build` combines the parts of a call, and `guards` check that later calls have the same
signature.
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any
from typing import TypeVar as _TypeVar

from chainrule.compiler.api import Compiled as Compiled
from chainrule.compiler.api import compile as compile
from chainrule.compiler.control_flow import trace as _loops
from chainrule.compiler.export import export as export
from chainrule.compiler.profiling import profile as profile
from chainrule.compiler.tracing.namespace import SYMBOL_XP as _SYMBOL_XP
from chainrule.compiler.tracing.numpy_protocols import install as _install
from chainrule.compiler.tracing.symbol import TRACING as _TRACING

__all__ = [
    "Compiled",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "export",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "profile",
    "reset",
]

_SYMBOL_XP.loops = _loops
_install()


# --- names of `torch.compiler`, for scripts -------------------------------------------------------

_F = _TypeVar("_F", bound=_Callable[..., _Any])


def is_compiling() -> bool:
    """Return whether the code that calls this is being traced by `cr.compile`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.compiler.is_compiling()
    False
    """
    return _TRACING.get() is not None


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """Return False: `cr.export` writes the program of a call that was compiled before."""
    return False


def allow_in_graph(fn: _F) -> _F:
    """Return `fn`: every function is traced."""
    return fn


assume_constant_result = allow_in_graph


def disable(fn: _Any = None, recursive: bool = True, *, reason: str | None = None) -> _Any:
    """Return `fn`, or a decorator that does: nothing is left out of compilation.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.compiler.disable
    ... def double(x):
    ...     return x + x
    >>> double(cr.ones(2))
    tensor([2., 2.])
    """
    return allow_in_graph if fn is None else fn


def reset() -> None:
    """Do nothing: each compiled function has its own programs, which are freed with it."""


cudagraph_mark_step_begin = reset
