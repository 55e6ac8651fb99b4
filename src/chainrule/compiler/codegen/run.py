"""Running a program's NumPy source, with scratch memory that calls hand on to each other."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.backend import numpy_xp
from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.recycling import Recycled
from chainrule.kernels import threads

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

    threads.each(block, range(-(-length // rows)))
