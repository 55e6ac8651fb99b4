"""Time and peak memory per operation of a chain of a million operations.

The chain is built, differentiated and freed. Each library and length runs in its own process,
because the peak memory of a process never decreases.
"""

from __future__ import annotations

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

ROUNDS = 3


def one_chain(library: str, length: int) -> dict[str, float]:
    """Build, differentiate and free a chain; return its seconds and bytes per operation."""
    if library == "chainrule":
        import chainrule as lib
    else:
        import torch as lib
    x = lib.ones(4, requires_grad=True)
    factor = lib.tensor([1.0, 1.0, 1.0, 1.0])

    def run(count: int) -> float:
        start = time.perf_counter()
        y: Any = x
        for _ in range(count):
            y = y * factor
        y.sum().backward()
        del y
        return (time.perf_counter() - start) / count

    run(1000)
    before = peak_bytes()
    seconds = run(length) if length > 10_000 else statistics.median(run(length) for _ in range(31))
    return {"seconds": seconds, "bytes": (peak_bytes() - before) / length}


def peak_bytes() -> int:
    """Return the peak memory of this process.

    On Linux, `ru_maxrss` includes the parent's memory; the high-water mark in /proc does not.
    """
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def in_process(library: str, length: int) -> dict[str, float] | None:
    command = [sys.executable, __file__, library, str(length)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(result.stdout) if result.returncode == 0 else None


def main() -> str:
    lines = [
        "| | chainrule | PyTorch | ratio | bar |",
        "| --- | --- | --- | --- | --- |",
    ]
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _ in range(ROUNDS):
        for library in ("chainrule", "PyTorch"):
            for length in (1_000, 1_000_000):
                figures = in_process(library, length)
                if figures is not None:
                    found.setdefault((library, length), []).append(figures)

    def median(library: str, length: int, key: str) -> float:
        return statistics.median([row[key] for row in found.get((library, length), [])] or [0.0])

    for title, key, scale, bar in (
        ("µs an operation, chain of 1,000,000", "seconds", 1e6, "≤ 0.7"),
        ("peak bytes an operation", "bytes", 1, "≤ 1, and ≤ 910 bytes"),
    ):
        ours, theirs = (median(lib, 1_000_000, key) for lib in ("chainrule", "PyTorch"))
        ratio = f"{ours / theirs:.2f}" if theirs else "–"
        peer = f"{theirs * scale:.2f}" if theirs else "–"
        lines.append(f"| {title} | {ours * scale:.2f} | {peer} | {ratio} | {bar} |")
    growth = median("chainrule", 1_000_000, "seconds") / median("chainrule", 1_000, "seconds")
    lines.append(f"| time an operation, a million over a thousand | {growth:.2f} | – | – | ≤ 2 |")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps(one_chain(sys.argv[1], int(sys.argv[2]))))
    else:
        print(main())
