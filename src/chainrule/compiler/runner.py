"""Running a program's NumPy source, with scratch memory that calls hand on to each other."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any

import numpy as np

from chainrule.backend import numpy_xp
from chainrule.compiler import prelude
from chainrule.compiler.numpy_source import Source
from chainrule.compiler.program import Value

_numbers = itertools.count(1)


def defined(source: str, name: str, filename: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """Return the function that source defines; tracebacks show it, as long as it is there."""
    filename = filename.format(next(_numbers))
    exec(compile(source, filename, "exec"), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    function: Callable[..., Any] = scope.pop(name)
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function


def runner(source: Source, **others: Any) -> Callable[..., Any]:
    """Return the function of input arrays that runs a program, which may call others by name."""
    program = source.program
    scope = scope_of(source) | others
    function = defined(source.text, program.name, f"<compiled {program.name} {{}}>", scope)
    constants = [program.constants[v] for v in source.constants]
    buffers = source.buffers
    free: list[list[Any]] = []  # popping and appending are atomic: each call has its own
    results = [_Recycled(value) for value in source.large]

    def run(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):  # as in a backward pass
            if not buffers and not results:
                return function(*arrays, *constants)
            scratch = free.pop() if free else [np.empty(v.shape, v.dtype) for v in buffers]
            found = function(*arrays, *constants, *scratch, *[pool.array() for pool in results])
        free.append(scratch)
        return found

    return run


class _Recycled:
    """Hands out memory for a large result: that of an earlier call, if nobody has it any more.

    The kernel takes longer to bring a fresh page than most functions do to fill it.
    """

    def __init__(self, value: Value) -> None:
        self.shape, self.dtype = value.shape, value.dtype
        self.known: list[Any] = []

    def array(self) -> Any:
        """Return an array that the caller may keep."""
        known, self.known = self.known, []  # another thread meanwhile makes its own
        for position, array in enumerate(known):
            if getrefcount(array) == _ALONE_IN_LIST:
                self.known = known
                return known[position]
        array = np.empty(self.shape, self.dtype)
        self.known = [*known[-1:], array]
        return array


def _references_in_list() -> int:
    counts = []
    for _, item in enumerate([object()]):
        counts.append(getrefcount(item))
    return counts[0]


_ALONE_IN_LIST = _references_in_list()
"""What `getrefcount` says of an object that a list and the loop over it hold, in this Python."""


def scope_of(source: Source) -> dict[str, Any]:
    """Return what a program's source finds by name."""
    helpers = {name: getattr(prelude, name) for name in prelude.__all__}
    return {**helpers, "np": np, "kernels": numpy_xp, **source.objects}
