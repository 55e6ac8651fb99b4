"""What compiling takes: the first call of a program in a process of its own, and its growth.

chainrule with an empty disk cache and with the one that this leaves, always as machine code; JAX's
jit without a cache. Importing JAX, and Numba where there is no machine code yet, isn't in it, but a
row of its own.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import processes
from programs import PROGRAMS

import chainrule as cr

NATIVE = "chainrule, native"
BEGINNINGS = ("two-layer", "gelu and gradient, 1e6", "softplus and gradient, 1e6")
BEGINNINGS += ("option and gradient, 1e6", "MLP", "transformer", "LSTM", "ODE", "bundle")
BARRED = ("two-layer", "gelu", "softplus", "option", "MLP", "transformer")
COLD, WARM = 2.0, 0.2
START = "Numba or JAX, imported"


def first_call(peer: str, name: str, kept: str = "") -> float:
    """Return how much longer the first call takes than the second."""
    start = time.perf_counter()
    processes.started(peer, kept)
    if name == START:
        return time.perf_counter() - start
    job = PROGRAMS[name]().job(peer)
    return processes.seconds(job) - processes.seconds(job)


def table() -> str:
    head = "| first call, seconds | chainrule, native | from the disk | JAX jit | bar |"
    ops = [head, "|" + " --- |" * 5]
    for name in (START, *processes.names(*BEGINNINGS)):
        cold, warm = processes.twice(__file__, NATIVE, name)
        jitted = processes.alone(__file__, "JAX jit", name)
        bars = []
        for value, bar in ((cold, COLD), (warm, WARM)) if name.startswith(BARRED) else ():
            assert value is not None
            bars.append(f"{'≤' if value <= bar else '**not met** ≤'} {bar:g}")
        cells = [name, *map(processes.cell, (cold, warm, jitted)), ", ".join(bars)]
        ops.append(f"| {' | '.join(cells)} |")
    return "\n".join(ops)


def planning() -> str:
    """Return how long tracing and planning take, by the number of operations."""
    ops = ["| operations | trace and plan, ms | µs an operation | bar |", "|" + " --- |" * 4]
    for count, bar in ((50, 50), (500, None), (5000, 3000)):
        seconds = _planned(count)
        met = "" if bar is None else f"{'≤' if seconds * 1e3 <= bar else '**not met** ≤'} {bar} ms"
        each = seconds / count * 1e6
        ops.append(f"| {count} | {seconds * 1e3:.1f} | {each:.0f} | {met} |")
    return "\n".join(ops)


def _planned(count: int) -> float:
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
        processes.child(first_call)
    else:
        print(main())
