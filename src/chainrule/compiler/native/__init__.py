"""Machine code of programs: loops over memory in the place of chains of NumPy calls."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from chainrule.compiler.native import jit
from chainrule.compiler.native.access import Accesses
from chainrule.compiler.native.clusters import clustered
from chainrule.compiler.native.loops import Loop, loop_of
from chainrule.compiler.native.scalars import CODES
from chainrule.compiler.numpy_source import Source
from chainrule.compiler.passes import without_dead_lines
from chainrule.compiler.program import Line, Program
from chainrule.compiler.runner import defined, runner
from chainrule.kernels import threads

is_installed = jit.is_installed


def native(program: Program) -> tuple[Callable[..., Any], str]:
    """Return the function of input arrays that runs a program as machine code, and its source."""
    fused, loops = with_loops(program)
    source = Source(fused)
    text = "\n\n".join([*(f"{loop.text}\n\n{loop.caller}" for loop in loops), source.text])
    return runner(
        source, native=SimpleNamespace(**{loop.name: _callable(loop) for loop in loops})
    ), text


def with_loops(program: Program) -> tuple[Program, list[Loop]]:
    """Return the program with calls of loops in the place of the lines that they do."""
    accesses = Accesses(program)
    loops: list[Loop] = []
    lines: list[Line] = []
    clusters = clustered(program, accesses)
    needed = {value: 0 for line in program.lines for value in line.outs}
    for cluster in clusters:
        for value in {v for _, line in cluster.lines for v in line.inputs}:
            if value in needed:
                needed[value] += 1
    results = set(program.results())
    for cluster in clusters:
        found = [line for _, line in cluster.lines]
        if not cluster.is_loop:
            lines += found
            continue
        made = {v for line in found for v in line.outs}
        own = {v for line in found for v in line.inputs} & made
        wanted = {v for v in made if v in results or needed[v] > (v in own)}
        name = f"{program.name}_{len(loops) + 1}"
        loop = loop_of(cluster, name, accesses, wanted)
        loops.append(loop)
        lines.append(Line(f"native.{name}", loop.inputs, {}, loop.outs, found[-1].location))
    return without_dead_lines(program.with_lines(lines)), loops


def _callable(loop: Loop) -> Callable[..., Any]:
    """Return what a program calls, with its loop as machine code."""
    scope: dict[str, Any] = {code: dtype.type for dtype, code in CODES.items()}
    scope |= {"u8": np.uint64, "np": np, "INF": np.inf, "NAN": np.nan}
    scope |= {name: jit.inlined(name) for name in loop.calls}
    inner = f"{loop.name}_loop"
    compiled = jit.jitted(defined(loop.text, inner, f"<{inner} {{}}>", scope))
    outer = {"np": np, "shared": shared, inner: compiled}
    return defined(loop.caller, loop.name, f"<{loop.name} {{}}>", outer)


def shared(loop: Any, turns: int, step: int, arrays: Any, parts: Any) -> None:
    """Run a loop by several threads, each a stretch of turns at a time."""

    def part(number: int) -> None:
        begin = number * step
        loop(begin, min(begin + step, turns), *arrays, *[rows[number] for rows in parts])

    threads.each(part, range(-(-turns // step)))
