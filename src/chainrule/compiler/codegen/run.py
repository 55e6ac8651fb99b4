"""Running a program's NumPy source, with scratch memory that calls hand on to each other."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.reverse import ALONE, count_references
from chainrule.backend import numpy_xp
from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.kernels import threads

# --- recycling ------------------------------------------------------------------------------------
#
# Memory of a program's large results, used again when nobody holds them any more.
#
# The system gives fresh memory page by page, at several times the cost of computing what is written
# to it. So a program remembers what it returned last, and hands it out again once its callers have
# dropped it, as its reference count says. Views, tensors and other libraries hold references.

MOST = 2
"""So many arrays are remembered for a result: `y = f(x)` in a loop holds one during the next call.
"""


class Recycled:
    """Memory for one large result of a program."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._known: deque[Any] = deque()  # popping and appending are atomic

    def empty(self) -> Any:
        """Return an array of any content that the caller may keep, as `np.empty` does."""
        array, known = self._unused(), self._known
        if array is None:
            array = np.empty(self.shape, self.dtype)
            while len(known) >= MOST:
                self._taken()
        known.append(array)
        return array

    def _unused(self) -> Any:
        """Return a remembered array that nobody holds, if there is one."""
        for _ in range(MOST):
            array = self._taken()
            if array is None:
                break
            if count_references(array) == ALONE and self._is_as_new(array):
                return array
            self._known.append(array)
        return None

    def _taken(self) -> Any:
        """Take out what was handed out longest ago, so that no other thread looks at it."""
        try:
            return self._known.popleft()
        except IndexError:
            return None

    def _is_as_new(self, array: Any) -> bool:
        """Say whether an array is as a new one would be, whatever its holders have done to it."""
        flags = array.flags
        alike = array.shape == self.shape and array.dtype == self.dtype
        return bool(alike and flags.c_contiguous and flags.writeable)


# --- run ------------------------------------------------------------------------------------------

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
    results = [Recycled(value.shape, value.dtype) for value in source.large]

    def run(*arrays: Any) -> Any:
        with np.errstate(all="ignore"):  # as in a backward pass
            if not buffers and not results:
                return function(*arrays, *constants)
            scratch = free.pop() if free else [np.empty(v.shape, v.dtype) for v in buffers]
            found = function(*arrays, *constants, *scratch, *[pool.empty() for pool in results])
        free.append(scratch)
        return found

    return run


def scope_of(source: Source) -> dict[str, Any]:
    """Return what a program's source finds by name."""
    helpers = {name: getattr(runtime, name) for name in runtime.__all__}
    return {**helpers, "each_block": _each_block, "np": np, "kernels": numpy_xp, **source.objects}


def _each_block(part: Callable[[slice], None], length: int, rows: int) -> None:
    """Do what `prelude.each_block` does, by several threads."""

    def block(number: int) -> None:
        part(slice(number * rows, min((number + 1) * rows, length)))

    threads.parallel_for(block, range(-(-length // rows)))
