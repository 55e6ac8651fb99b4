"""Interleaved rounds of the same job in several libraries, and their ratios as Markdown."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Job = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One job: seconds per unit in each library, round by round, and the bar for the ratio."""

    name: str
    unit: str
    seconds: dict[str, list[float]]
    bars: dict[str, float]

    def median(self, library: str) -> float:
        return statistics.median(self.seconds[library])

    def ratio(self, peer: str) -> float:
        """Return our median over the peer's."""
        return self.median("chainrule") / self.median(peer)


def measure(
    name: str,
    jobs: dict[str, Job],
    bars: dict[str, float],
    *,
    units: int = 1,
    rounds: int = 21,
    rest: float = 0.0,
) -> Row:
    """Time each job once per round, in turn, after a warm-up; a round lasts at least 5 ms.

    The threads of a BLAS go on spinning for a while after its last product, on the cores that the
    next library wants. `rest` seconds before each turn, and one call to wake up, keep them apart.
    """
    repeats = {}
    for library, job in jobs.items():
        repeats[library] = max(1, round(0.005 / min(_seconds(job) for _ in range(4))))
    seconds: dict[str, list[float]] = {library: [] for library in jobs}
    for _ in range(rounds):
        for library, job in jobs.items():
            if rest:
                time.sleep(rest)
                job()
            start = time.perf_counter()
            for _ in range(repeats[library]):
                job()
            elapsed = time.perf_counter() - start
            seconds[library].append(elapsed / repeats[library] / units)
    return Row(name, "µs" if units > 1 else "µs a step", seconds, bars)


def _seconds(job: Job) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def table(rows: list[Row], libraries: list[str]) -> str:
    """Return the rows as a Markdown table, times in microseconds."""
    peers = libraries[1:]
    head = ["µs, forward + backward", *libraries, *(f"ratio to {peer}" for peer in peers), "bar"]
    ops = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        cells = [row.name]
        for library in libraries:
            measured = library in row.seconds
            cells.append(f"{row.median(library) * 1e6:.2f}" if measured else "–")
        for peer in peers:
            cells.append(f"{row.ratio(peer):.2f}" if peer in row.seconds else "–")
        met = [
            f"{'≤' if row.ratio(peer) <= bar else '**not met** ≤'} {bar:g} of {peer}"
            for peer, bar in row.bars.items()
            if peer in row.seconds
        ]
        ops.append("| " + " | ".join([*cells, ", ".join(met)]) + " |")
    return "\n".join(ops)


def versions(*modules: Any) -> str:
    """Return what was measured, and on what, without naming the machine."""
    named = ", ".join(f"{module.__name__} {module.__version__}" for module in modules)
    return f"Python {platform.python_version()}, {named}."
