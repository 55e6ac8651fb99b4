"""Compile times: first calls of programs in fresh processes, and tracing time by program length.

chainrule compiles to machine code, once with an empty disk cache and once with the cache that this
run fills. JAX's jit runs without a cache. The first row is the import of JAX or LLVM, which the
other rows leave out.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import processes
from programs import PROGRAMS

import chainrule as cr

NATIVE = "chainrule, native"
PREFIXES = ("two-layer", "gelu and gradient, 1e6", "softplus and gradient, 1e6")
PREFIXES += ("option and gradient, 1e6", "MLP", "transformer", "LSTM", "ODE", "bundle")
PREFIXES_WITH_BAR = ("two-layer", "gelu", "softplus", "option", "MLP", "transformer")
COLD_BAR_SECONDS, WARM_BAR_SECONDS = 2.0, 0.2
IMPORTS = "LLVM or JAX, imported"


def first_call(peer: str, name: str, cache: str = "") -> float:
    """Return how many seconds longer the first call takes than the second."""
    start = time.perf_counter()
    processes.import_libraries(peer, cache)
    if name == IMPORTS:
        return time.perf_counter() - start
    job = PROGRAMS[name]().job(peer)
    return processes.seconds(job) - processes.seconds(job)


def table() -> str:
    head = "| first call, seconds | chainrule, native | from the disk | JAX jit | bar |"
    lines = [head, "|" + " --- |" * 5]
    for name in (IMPORTS, *processes.programs_named(*PREFIXES)):
        cold, warm = processes.run_cold_and_warm(__file__, NATIVE, name)
        jitted = processes.run_in_process(__file__, "JAX jit", name)
        limits = ((cold, COLD_BAR_SECONDS), (warm, WARM_BAR_SECONDS))
        bars = []
        for value, bar in limits if name.startswith(PREFIXES_WITH_BAR) else ():
            assert value is not None
            bars.append(f"{'≤' if value <= bar else '**not met** ≤'} {bar:g}")
        cells = [name, *map(processes.format_cell, (cold, warm, jitted)), ", ".join(bars)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def planning() -> str:
    """Return the table of tracing and planning times by the number of operations."""
    lines = ["| operations | trace and plan, ms | µs an operation | bar |", "|" + " --- |" * 4]
    for count, bar in ((50, 50), (500, None), (5000, 3000)):
        seconds = _planning_seconds(count)
        met = "" if bar is None else f"{'≤' if seconds * 1e3 <= bar else '**not met** ≤'} {bar} ms"
        each = seconds / count * 1e6
        lines.append(f"| {count} | {seconds * 1e3:.1f} | {each:.0f} | {met} |")
    return "\n".join(lines)


def _planning_seconds(count: int) -> float:
    def function(x: Any, w: Any) -> Any:
        for _ in range(count // 4):
            x = (x @ w).tanh() * 0.5 + x
        return x.sum()

    x, w = cr.ones(4, 4), cr.ones(4, 4)
    cr.compile(function)(x, w)
    start = time.perf_counter()
    cr.compile(function)(x, w)
    return time.perf_counter() - start


def main() -> str:
    return f"{table()}\n\n{planning()}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        processes.print_measurement(first_call)
    else:
        print(main())
