"""Execution of generated NumPy source, with memory that is reused from call to call."""

from __future__ import annotations

import functools
import itertools
import linecache
import weakref
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.references import ALONE, count_references
from chainrule.backend import numpy_xp
from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.interrupts import ERRSTATE, ignore_all
from chainrule.kernels import threads

# --- result memory --------------------------------------------------------------------------------
#
# The page faults of new memory cost several times as much as computing its content. So a program
# remembers the arrays that it returned last, and returns their memory again once their reference
# counts say that callers have dropped them. Views, tensors and other libraries hold references.

MAX_REMEMBERED = 2
"""Arrays remembered for each result: `y = f(x)` in a loop holds one during the next call."""


class ResultPool:
    """Pool of arrays for one large result of a program."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._known: deque[Any] = deque()  # popping and appending are atomic

    def empty(self) -> Any:
        """Return an uninitialised array that the caller may keep, as `np.empty` does."""
        array, known = self._unreferenced(), self._known
        if array is None:
            array = np.empty(self.shape, self.dtype)
            while len(known) >= MAX_REMEMBERED:
                self._pop_oldest()
        known.append(array)
        return array

    def _unreferenced(self) -> Any:
        """Return a remembered array without other references, or None."""
        for _ in range(MAX_REMEMBERED):
            array = self._pop_oldest()
            if array is None:
                break
            if count_references(array) == ALONE and self._is_unchanged(array):
                return array
            self._known.append(array)
        return None

    def _pop_oldest(self) -> Any:
        """Remove the array that was returned first, so that no other thread sees it."""
        try:
            return self._known.popleft()
        except IndexError:
            return None

    def _is_unchanged(self, array: Any) -> bool:
        """Whether an array still has the shape, dtype and flags of a new one."""
        flags = array.flags
        same_type = array.shape == self.shape and array.dtype == self.dtype
        return bool(same_type and flags.c_contiguous and flags.writeable)


# --- functions of programs ------------------------------------------------------------------------

_numbers = itertools.count(1)


def defined(source: str, name: str, filename: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """Return the function that source defines; tracebacks show the source while it lives.

    Assertions are left out: they are for those who paste the source elsewhere.
    """
    filename = filename.format(next(_numbers))
    exec(compile(source, filename, "exec", optimize=1), scope)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    function: Callable[..., Any] = scope.pop(name)
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function


class Runnable(NamedTuple):
    """The source of a program, and what a call of it needs, without the program."""

    name: str
    text: str
    constants: list[Any]
    buffers: list[tuple[Any, Any]]  # shapes and dtypes of scratch memory
    large: list[tuple[Any, Any]]  # those of outputs that are written into given memory
    objects: dict[str, Any]


def runnable(source: Source) -> Runnable:
    """Return what is needed to run a source."""
    program = source.program
    buffers, large = [[(v.shape, v.dtype) for v in vs] for vs in (source.buffers, source.large)]
    constants = [program.constants[v] for v in source.constants]
    return Runnable(program.name, source.text, constants, buffers, large, source.objects)


def runner(source: Source | Runnable, **others: Any) -> Callable[..., Any]:
    """Return the function that runs a program; `others` are further names of its namespace."""
    if isinstance(source, Source):
        source = runnable(source)
    scope = scope_of(source) | others
    function = defined(source.text, source.name, f"<compiled {source.name} {{}}>", scope)
    constants, buffers = source.constants, source.buffers
    free: list[list[Any]] = []  # scratch of finished calls; popping and appending are atomic
    results = [ResultPool(*kind) for kind in source.large]

    def run(*arrays: Any) -> Any:
        errstate = ERRSTATE.get()
        try:
            try:
                ERRSTATE.set(ignore_all(errstate))  # as in a backward pass
                if not buffers and not results:
                    return function(*arrays, *constants)
                scratch = free.pop() if free else [np.empty(*kind) for kind in buffers]
                found = function(*arrays, *constants, *scratch, *[pool.empty() for pool in results])
                free.append(scratch)
                return found
            finally:
                ERRSTATE.set(errstate)
        except BaseException:  # see `interrupts`
            ERRSTATE.set(errstate)
            raise

    return run


def scope_of(source: Source | Runnable) -> dict[str, Any]:
    """Return the global namespace of a program's source."""
    scope: dict[str, Any] = {name: getattr(runtime, name) for name in runtime.__all__}
    numpy = _numpy_with_kernels() if "np.fft." in source.text or "np.linalg." in source.text else np
    scope |= {"each_block": _each_block, "solve_triangular": numpy_xp.solve_triangular}
    scope |= {"np": numpy, "scipy": numpy_xp, "kernels": numpy_xp}
    return scope | source.objects


@functools.cache
def _numpy_with_kernels() -> ModuleType:
    """Return a copy of the module `numpy` whose `fft` and `linalg` have less overhead."""
    module = ModuleType("numpy")
    vars(module).update(vars(np) | {"fft": numpy_xp.fft, "linalg": numpy_xp.linalg})
    return module


def _each_block(part: Callable[[slice], None], length: int, rows: int) -> None:
    """Run `part` on slices of rows, as `runtime.each_block` does, in several threads."""

    def block(number: int) -> None:
        part(slice(number * rows, min((number + 1) * rows, length)))

    threads.parallel_for(block, range(-(-length // rows)))
