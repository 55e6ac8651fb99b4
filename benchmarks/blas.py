"""Matrix products with each of OpenBLAS's kernel sets, measured in fresh processes."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

import numpy as np
from harness import versions

import chainrule as cr
from chainrule.blas.cpu import KERNELS, rank, widest_kernels
from chainrule.blas.openblas import features

PRODUCTS = ((1024, 1024, 1024), (1000, 64, 100), (64, 1000, 100))
ROUNDS = 7
TUNED = "SkylakeX"  # kernels that `tune` switches to, in a process that starts with UNTUNED
UNTUNED = "Haswell"

PROGRAM = """
import json, sys, time
import numpy as np
import chainrule as cr

products, wanted = json.loads(sys.argv[1])
if wanted:
    cr.blas.tune(wanted)
times = []
for m, k, n in products:
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    out = np.empty((m, n), np.float32)
    seconds = []
    for _ in range(20 if m * k * n > 1e8 else 300):
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        seconds.append(time.perf_counter() - start)
    times.append(min(seconds))
print(json.dumps([cr.blas.info().kernels, times]))
"""


def measure(coretype: str | None, wanted: str | None) -> tuple[str, list[float]]:
    """Return the kernels that a fresh process uses and its shortest time for each product.

    Times are minima, in seconds, because other work on the machine can only add to them. It adds
    much: two threads that share a product wait for the slower one.
    """
    removed = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "CHAINRULE_BLAS")
    env = {name: value for name, value in os.environ.items() if name not in removed}
    if coretype is not None:
        env["OPENBLAS_CORETYPE"] = coretype
    command = [sys.executable, "-c", PROGRAM, json.dumps([PRODUCTS, wanted])]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    kernels, times = json.loads(run.stdout)
    return kernels, times


def main() -> str:
    possible = rank(widest_kernels(features()))
    if possible is None or cr.blas.info().obstacle:
        return f"Not measured here: {cr.blas.info().obstacle or 'no x86 with AVX'}."
    setups: dict[str, tuple[str | None, str | None]] = {"OpenBLAS' choice": (None, None)}
    setups |= {name: (name, None) for name in KERNELS[2 : possible + 1]}
    if possible == rank(TUNED):
        setups[f"{UNTUNED}, then `tune`"] = (UNTUNED, TUNED)
    seconds: dict[str, list[list[float]]] = {setup: [] for setup in setups}
    in_use = {}
    for _ in range(ROUNDS):
        for setup, (coretype, wanted) in setups.items():
            in_use[setup], times = measure(coretype, wanted)
            seconds[setup].append(times)
    head = ["µs, float32 (ratio to the first)"]
    head += [setup if in_use[setup] == setup else f"{setup}: {in_use[setup]}" for setup in setups]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for number, (m, k, n) in enumerate(PRODUCTS):
        medians = [statistics.median(times[number] for times in seconds[s]) for s in setups]
        cells = [f"{time * 1e6:.0f} ({time / medians[0]:.2f})" for time in medians]
        lines.append(f"| ({m} × {k}) @ ({k} × {n}) | " + " | ".join(cells) + " |")
    table = "\n".join(lines)
    return f"{table}\n\nOpenBLAS {cr.blas.info().version}. {versions(cr, np)}"


if __name__ == "__main__":
    print(main())
