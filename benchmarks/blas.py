"""Products of matrices with each of OpenBLAS' sets of kernels, each in fresh processes."""

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
OURS = "SkylakeX"  # what `tune` is asked for: in the process that begins with the kernels below
BEFORE = "Haswell"

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
    taken = []
    for _ in range(20 if m * k * n > 1e8 else 300):
        start = time.perf_counter()
        np.matmul(a, b, out=out)
        taken.append(time.perf_counter() - start)
    times.append(min(taken))
print(json.dumps([cr.blas.info().kernels, times]))
"""


def measure(coretype: str | None, wanted: str | None) -> tuple[str, list[float]]:
    """Return the kernels of a fresh process, and the least seconds for each of the products.

    The least, since what else runs on the machine can only add to them, and adds much: two threads
    that share a product wait for the slower one.
    """
    # Without what the environment says of kernels: both variables belong together.
    unsaid = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "CHAINRULE_BLAS")
    env = {name: value for name, value in os.environ.items() if name not in unsaid}
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
    ways: dict[str, tuple[str | None, str | None]] = {"OpenBLAS' choice": (None, None)}
    ways |= {name: (name, None) for name in KERNELS[2 : possible + 1]}
    if possible == rank(OURS):
        ways[f"{BEFORE}, then `tune`"] = (BEFORE, OURS)
    seconds: dict[str, list[list[float]]] = {way: [] for way in ways}
    in_use = {}
    for _ in range(ROUNDS):
        for way, (coretype, wanted) in ways.items():
            in_use[way], times = measure(coretype, wanted)
            seconds[way].append(times)
    head = ["µs, float32 (ratio to the first)"]
    head += [way if in_use[way] == way else f"{way}: {in_use[way]}" for way in ways]
    ops = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for number, (m, k, n) in enumerate(PRODUCTS):
        medians = [statistics.median(times[number] for times in seconds[way]) for way in ways]
        cells = [f"{time * 1e6:.0f} ({time / medians[0]:.2f})" for time in medians]
        ops.append(f"| ({m} × {k}) @ ({k} × {n}) | " + " | ".join(cells) + " |")
    table = "\n".join(ops)
    return f"{table}\n\nOpenBLAS {cr.blas.info().version}. {versions(cr, np)}"


if __name__ == "__main__":
    print(main())
