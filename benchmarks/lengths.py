"""First calls and memory by the length of the program: lines without repetition, loops, tables.

Each point runs in two fresh processes with one thread: the first compiles, the second finds the
machine code on the disk. Times are CPU time, which other work on the machine disturbs less. A cliff
would show as a row whose time an operation is far above that of the row before it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import million
import numpy as np

import chainrule as cr
from chainrule.compiler import build
from chainrule.compiler.native import jit

Job = Callable[[], Any]
CACHED = "cached"  # the process of which the machine code is on the disk
MIN_CPU_SECONDS = 0.1  # of the calls whose time is taken
THREADS = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


# --- lines without repetition ---------------------------------------------------------------------

KINDS = (
    *("cr.sin({a})", "cr.tanh({a} + {b})", "{a} * {b}", "0.5 * ({a} - {b})", "cr.sigmoid({a})"),
    *("{a} / (1.5 + {b} * {b})", "cr.where({a} > {c}, {a}, {b})", "cr.maximum({a}, {c} * {b})"),
    *("{a} - {b}.mean()", "{a} / (1 + cr.sqrt(1 + ({b} * {b}).sum()))", "{a} * {b}.amax()"),
    *("cr.softmax({a}, 0) + {b}", "cr.tanh(({a}.reshape(-1, 4) @ w).reshape(-1) + {c})"),
    *("cr.cat([{a}[{k}:], {b}[:{k}]])", "{a}[index] * {c}", "{a}.flip(0)"),
    "cr.cat([cr.linalg.solve(w + {c} * w.T, {a}[:4]), {b}[4:]])",
)
"""Statements of a random program. Their values stay of the order of one."""


def lines(count: int, size: int, gradient: bool = True) -> Job:
    """Return the call of a random program of so many lines, on arrays of so many elements."""
    draw = random.Random(0)
    text = ["def loss(x, y, w):\n"]
    for i in range(count):
        recent = [f"t{j}" for j in range(max(0, i - 6), i)]
        a, b = (draw.choice(["x", "y", *recent * 3]) for _ in range(2))
        k, c = draw.randrange(1, size), f"{draw.uniform(0.1, 0.9):.3f}"
        text.append(f"    t{i} = {draw.choice(KINDS).format(a=a, b=b, c=c, k=k)}\n")
    text.append("    total = x.mean()\n")
    text += [f"    total = total + t{i}.mean()\n" for i in range(count - 1, -1, -6)]
    text.append("    return total\n")
    rng = np.random.default_rng(0)
    scope = {"cr": cr, "index": cr.tensor(rng.permutation(size))}
    exec("".join(text), scope)
    arrays = rng.standard_normal(size), rng.standard_normal(size), 2 * np.eye(4) + 0.1
    tensors = [cr.tensor(array.astype(np.float32)) for array in arrays]
    loss = scope["loss"]
    function = cr.compile(cr.value_and_grad(loss, (0, 1, 2)) if gradient else loss, verify=False)
    return lambda: function(*tensors)


# --- loops ----------------------------------------------------------------------------------------


def characters(length: int) -> Job:
    """Return the value and gradient of an LSTM's log-likelihood: 2 layers of 14, 20 symbols."""
    rng, size = np.random.default_rng(0), 14
    symbols = [int(s) for s in rng.integers(0, 20, length + 1)]
    shapes = ((20, size), (2, 2 * size, 4 * size), (size, 20))
    weights = [cr.tensor(rng.standard_normal(s).astype(np.float32) * 0.3) for s in shapes]
    text = cr.tensor(symbols)

    def cell(x: Any, state: Any, w: Any) -> Any:
        h, c = state
        i, f, g, o = cr.split(cr.cat([x, h]) @ w, size)
        c = cr.sigmoid(f) * c + cr.sigmoid(i) * cr.tanh(g)
        return cr.sigmoid(o) * cr.tanh(c), c

    def loss(embedding: Any, w: Any, out: Any) -> Any:
        states, total = [(cr.zeros(size), cr.zeros(size)) for _ in range(2)], 0.0
        for t in range(length):
            h = embedding[text[t]]
            for layer in range(2):
                states[layer] = cell(h, states[layer], w[layer])
                h = states[layer][0]
            total = total - cr.log_softmax(h @ out, 0)[text[t + 1]]
        return total

    function = cr.compile(cr.value_and_grad(loss, (0, 1, 2)), verify=False)
    return lambda: function(*weights)


def turns(count: int, scan: bool) -> Job:
    """Return the gradient of the end point of three equations after so many Euler steps."""
    p, start = cr.tensor([10.0, 28.0, 8 / 3], dtype=cr.float64), cr.ones(3, dtype=cr.float64)

    def step(y: Any, p: Any) -> Any:
        slopes = p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]
        return y + 1e-3 * cr.stack(slopes)

    def loop(p: Any) -> Any:
        y = start
        for _ in range(count):
            y = step(y, p)
        return y.sum()

    def scanned(p: Any) -> Any:
        def body(y: Any, _: Any) -> Any:
            return step(y, p), y[0]

        return cr.scan(body, start, length=count)[0].sum()

    function = cr.compile(cr.value_and_grad(scanned if scan else loop), verify=False)
    return lambda: function(p)


def cells(n: int) -> Job:
    """Return the gradient of smooth dynamic time warping of two curves of n points."""
    a, b = (cr.tensor(np.random.default_rng(i).standard_normal((n, 3))) for i in range(2))

    def loss(a: Any) -> Any:
        cost, far = ((a[:, None] - b) ** 2).sum(-1), cr.tensor(1e10, dtype=cr.float64)
        table = [[far] * (n + 1) for _ in range(n + 1)]
        table[0][0] = far * 0
        for i in range(n):
            for j in range(n):
                before = cr.stack([table[i][j], table[i][j + 1], table[i + 1][j]])
                table[i + 1][j + 1] = cost[i, j] - cr.logsumexp(-before, 0)
        return table[n][n]

    function = cr.compile(cr.value_and_grad(loss), verify=False)
    return lambda: function(a)


FAMILIES: dict[str, tuple[Callable[[int], Job], tuple[int, ...]]] = {
    "lines, 8 elements": (lambda n: lines(n, 8), (50, 200, 300, 500, 800, 3200, 12800, 20000)),
    "lines, 64 elements": (lambda n: lines(n, 64), (50, 800, 3200)),
    "lines, 1e5 elements": (lambda n: lines(n, 100_000), (50, 200, 800, 3200)),
    "lines, 1e5 elements, value alone": (
        lambda n: lines(n, 100_000, gradient=False),
        (50, 200, 800, 3200, 12800, 20000),
    ),
    "characters of an LSTM, Python loop": (characters, (28, 31, 32, 33, 128, 1024)),
    "turns of an ODE, Python loop": (lambda n: turns(n, False), (1000, 3000, 5000, 10000)),
    "turns of an ODE, `cr.scan`": (lambda n: turns(n, True), (1000, 3000, 5000, 10000)),
    "rows and columns of a table, loop in a loop": (cells, (12, 16, 24, 32, 48, 64)),
}


# --- measurement ----------------------------------------------------------------------------------


def measure(family: str, count: int, cache: str = "") -> dict[str, float]:
    """Return the CPU seconds of the phases of a first call, and the memory, in this process."""
    if cache != CACHED and importlib.util.find_spec("llvmlite"):
        jit.llvm()
    phases: Counter[str] = Counter()
    tracing, operations = build.trace_call, []

    def traced(*args: Any) -> Any:
        call = tracing(*args)
        operations.append(len(call.trace.ops))
        return call

    build.trace_call = timed(traced, "trace", phases)  # type: ignore[attr-defined]
    build.optimize = timed(build.optimize, "passes", phases)  # type: ignore[attr-defined]
    jit.object_code = timed(jit.object_code, "machine code", phases)
    job = FAMILIES[family][0](count)
    before = million.peak_bytes()
    first = seconds(job)
    memory = million.peak_bytes() - before
    later = min(seconds(job) for _ in range(3))
    repeats = max(1, round(MIN_CPU_SECONDS / max(later, 1e-6)))
    later = sum(seconds(job) for _ in range(repeats)) / repeats
    rest = first - later - sum(phases.values())
    found = {"operations": float(sum(operations)), **phases, "rest": rest}
    return {**found, "first": first - later, "call": later, "memory": memory}


def timed(function: Callable[..., Any], phase: str, phases: Counter[str]) -> Callable[..., Any]:
    """Return a function that adds its CPU seconds to those of a phase."""

    def run(*args: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args)
        finally:
            phases[phase] += time.process_time() - start  # type: ignore[assignment]

    return run


def seconds(job: Job) -> float:
    """Return the CPU seconds of a call, those of all threads."""
    start = time.process_time()
    job()
    return time.process_time() - start


def in_process(family: str, count: int, *more: str, folder: str) -> dict[str, float]:
    """Return what a fresh process measures."""
    command = [sys.executable, __file__, family, str(count), *more]
    env = {**os.environ, **THREADS, "CHAINRULE_CACHE": folder}
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=env)
    if run.returncode:
        raise RuntimeError(run.stderr)
    found: dict[str, float] = json.loads(run.stdout)
    return found


def rows(family: str) -> Iterator[str]:
    """Yield the rows of a family."""
    for count in FAMILIES[family][1]:
        with tempfile.TemporaryDirectory() as folder:
            cold = in_process(family, count, folder=folder)
            warm = in_process(family, count, CACHED, folder=folder)
        phases = [cold.get(phase, 0.0) for phase in ("trace", "passes", "machine code", "rest")]
        cells = [f"{count:,} {family}", f"{cold['operations']:,.0f}"]
        cells += [f"{value:.2f}" for value in phases]
        cells += [f"{cold['first'] / cold['operations'] * 1e6:.0f}", f"{cold['call'] * 1e6:.0f}"]
        cells += [f"{cold['memory'] / 1e6:.0f}", f"{warm['first']:.2f}"]
        yield f"| {' | '.join(cells)} |"


def main() -> str:
    heads = ["first call, CPU seconds", "operations", "trace", "passes", "machine code", "rest"]
    heads += ["µs an operation", "a call, µs", "MB at most", "from the disk"]
    table = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for family in FAMILIES:
        for row in rows(family):
            print(row, file=sys.stderr, flush=True)
            table.append(row)
    return "\n".join(table)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])))
    else:
        print(main())
