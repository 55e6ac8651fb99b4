"""Machine code of programs: loops over memory in the place of chains of NumPy calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from chainrule.compiler.native import jit
from chainrule.compiler.native.calls import NAMES
from chainrule.compiler.native.fusion import with_loops
from chainrule.compiler.native.layout import UnfitError
from chainrule.compiler.native.loops import Loop
from chainrule.compiler.native.nest import LOOP
from chainrule.compiler.native.whole import whole
from chainrule.compiler.numpy_source import Source
from chainrule.compiler.program import Program
from chainrule.compiler.runner import defined, runner

Run = Callable[..., Any]


def native(program: Program) -> tuple[Run, str]:
    """Return the function of input arrays that runs a program as machine code, and its source."""
    jit.numba()
    return _small(program) or _emitted(*with_loops(program))


def native_if_better(program: Program, otherwise: Run) -> tuple[Run, str]:
    """Return the same where Numba is installed, and the loops are worth compiling them.

    Else, and where Numba fails at the first call, it's `otherwise` that runs.
    """
    if not jit.is_installed():
        return otherwise, ""
    if _calls(program) >= _MANY and jit.is_usable():
        small = _small(program)
        if small is not None:
            return _tried(small[0], otherwise, program), small[1]
    fused, loops = with_loops(program)
    if sum(loop.work for loop in loops) < _WORTH or not jit.is_usable():
        return otherwise, ""
    run, text = _emitted(fused, loops)
    return _tried(run, otherwise, program), text


_WORTH = 1 << 16
"""So many elements that operations of loops make pay for compiling them."""


_MANY = 100
"""So many calls of NumPy's take long enough for a function of machine code in their place."""


def _small(program: Program) -> tuple[Run, str] | None:
    """Return a program of small arrays as one function, if it is one."""
    try:
        return whole(program)
    except UnfitError:
        return None


def _calls(program: Program) -> int:
    """Return how many of NumPy's functions a program calls, those of its loops each time."""
    count = len(program.lines)
    for line in program.lines:
        count += line.kwargs.get("length", 1) * sum(map(_calls, line.bodies))
    return count


def _tried(run: Run, otherwise: Run, program: Program) -> Run:
    """Return a function that runs as machine code, if that is to be had."""
    chosen: list[Run] = []
    written = {program.inputs.index(write.target) for write in program.writes}

    def first(*arrays: Any) -> Any:
        before = [(arrays[i], arrays[i].copy()) for i in written]
        try:
            result = run(*arrays)
        except jit.numba().core.errors.NumbaError as error:
            for array, content in before:  # a loop may have written to it before another failed
                array[...] = content
            warnings.warn(
                f"{program.name} runs as NumPy calls, since Numba says: {error}", stacklevel=5
            )
            chosen.append(otherwise)
            return otherwise(*arrays)
        chosen.append(run)
        return result

    def call(*arrays: Any) -> Any:
        return chosen[0](*arrays) if chosen else first(*arrays)

    return call


def _emitted(fused: Program, loops: list[Loop]) -> tuple[Run, str]:
    source = Source(fused)
    text = "\n\n".join([*(f"{loop.text}\n\n{loop.caller}" for loop in loops), source.text])
    callables = {loop.name: _callable(loop) for loop in loops}
    return runner(source, native=SimpleNamespace(**callables)), text


def _callable(loop: Loop) -> Callable[..., Any]:
    """Return what a program calls, with its loop as machine code."""
    compiled = jit.jitted(loop.text, LOOP, loop.calls)
    outer = {**NAMES, "np": np, LOOP: compiled}
    return defined(loop.caller, loop.name, f"<{loop.name} {{}}>", outer)
