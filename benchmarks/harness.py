"""Timing of the same job in several libraries, in interleaved rounds, and Markdown tables."""

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
    """One job: its seconds per unit in each library and round, and the bars for the ratios.

    A bar is the ratio of our time to a peer's that we want to stay below.
    """

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
    """Time the jobs in turn, once per round, after a warm-up; a turn lasts at least 5 ms.

    The threads of a BLAS keep spinning for a while after a product, on the cores that the next
    library needs. A pause of `rest` seconds before each turn, and one untimed call, separate them.
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
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
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
        lines.append("| " + " | ".join([*cells, ", ".join(met)]) + " |")
    return "\n".join(lines)


def versions(*modules: Any) -> str:
    """Return the versions of Python and of the measured modules."""
    named = ", ".join(f"{module.__name__} {module.__version__}" for module in modules)
    return f"Python {platform.python_version()}, {named}."
