"""Whole programs run eagerly, beside PyTorch's eager mode, in double and single precision.

Each program is one text for both libraries (`programs.eagerly`). Results in double precision are
compared before they are timed. The libraries take turns, PyTorch with its default threads. Each
figure is that of the shortest turn: where other processes need the cores, PyTorch's threads wait
for each other.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
from programs import eagerly

import chainrule as cr

try:
    import torch
except ImportError:
    torch = None

DTYPES = ("float64", "float32")
BAR = 1.3


def flat(results: Any) -> list[np.ndarray]:
    """Return the arrays of nested results."""
    if isinstance(results, tuple | list):
        return [array for each in results for array in flat(each)]
    return [np.asarray(results.detach())]


def row(
    name: str, make: Callable[[Any], Callable[[], Any]], dtype: str, rounds: int
) -> harness.Row:
    """Compare the results of both libraries, and measure."""
    made = {"chainrule": make(cr), "PyTorch": make(torch)}
    if dtype == "float64":  # in single precision, rounding chooses other particles
        for got, want in zip(*(flat(job()) for job in made.values()), strict=True):
            scale = 1e-8 * np.abs(want).max()
            np.testing.assert_allclose(got, want, atol=scale, err_msg=name)
    return harness.measure(name, made, {"PyTorch": BAR}, rounds=rounds, rest=0.005)


def table(wanted: str = "", rounds: int = 11) -> str:
    """Measure the programs whose names contain `wanted`."""
    columns = [f"{who}, {dtype}" for dtype in DTYPES for who in ("chainrule", "PyTorch", "ratio")]
    head = ["µs", *columns]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    ratios: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
    made = {dtype: eagerly.jobs(dtype) for dtype in DTYPES}
    for name in made["float64"]:
        if wanted not in name:
            continue
        cells = [name]
        for dtype in DTYPES:
            measured = row(name, made[dtype][name], dtype, rounds)
            ours, theirs = (min(measured.seconds[who]) for who in ("chainrule", "PyTorch"))
            ratio = ours / theirs
            ratios[dtype].append(ratio)
            cells += [f"{ours * 1e6:.0f}", f"{theirs * 1e6:.0f}"]
            cells.append(f"{ratio:.2f}" if ratio <= BAR else f"**{ratio:.2f}**")
        lines.append("| " + " | ".join(cells) + " |")
    medians = ", ".join(f"{statistics.median(ratios[d]):.2f} ({d})" for d in DTYPES)
    return "\n".join([*lines, f"\nMedian of the ratios: {medians}; bar ≤ {BAR} for each."])


def main(wanted: str = "", rounds: int = 11) -> str:
    if torch is None:
        return "PyTorch is not installed."
    return f"{table(wanted, rounds)}\n\n{harness.versions(cr, np, torch)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wanted", nargs="?", default="", help="part of the programs' names")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--kernels", choices=("numpy", "native"), default="numpy")
    arguments = parser.parse_args()
    cr.set_kernels(arguments.kernels)
    print(main(arguments.wanted, arguments.rounds))
