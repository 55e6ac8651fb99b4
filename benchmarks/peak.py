"""Peak memory of compiled programs, compared with PyTorch and JAX.

Each program runs in a fresh process. The figure is the process's peak during ten calls, less its
memory after the library was imported: it includes arrays, parameters, code and everything kept
between calls. A separate column has the process that compiles, less its memory after LLVM was
imported as well.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Iterator

import million
import processes
from programs import PROGRAMS
from programs.peers import CHAINRULE

IMPORTS = "the libraries, imported"
PEERS = ["chainrule", "chainrule, NumPy", "PyTorch", "JAX jit"]
COMPILING = "chainrule, compiling"
LEFT_OUT = ("bundle", "a compiled function", "Gaussian mixture, n 1000,", "ODE", "LSTM")
"""Prefixes of programs whose memory is too small to tell from that of the libraries."""


def program_bytes(peer: str, name: str, cache: str = "") -> float:
    """Return the peak memory of a program in this process, in bytes."""
    processes.import_libraries(peer, cache)
    before = resident_bytes()
    if name == IMPORTS:
        return before
    job = PROGRAMS[name]().job(peer)
    job()
    job()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    for _ in range(10):
        job()
    return million.peak_bytes() - before


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def _bars(found: dict[str, float | None]) -> Iterator[str]:
    """Yield the comparison with the other libraries, for each way that chainrule compiles."""
    others = {p: b for p, b in found.items() if p in processes.MODULES and b is not None}
    for peer, size in found.items():
        if size is not None and peer in CHAINRULE:
            smaller = [other for other, bar in others.items() if size > bar]
            met = f"**not met** ≤ {' and '.join(smaller)}" if smaller else "≤ all"
            yield met if peer == "chainrule" else f"NumPy: {met}"


def main() -> str:
    """Return the table."""
    if not pathlib.Path("/proc/self/clear_refs").exists():
        return "Not measured: the high-water mark of a process is Linux'."
    heads = ["MB at most", PEERS[0], COMPILING, *PEERS[1:], "bar"]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for name in (IMPORTS, *PROGRAMS):
        if name.startswith(LEFT_OUT):
            continue
        cold, warm = processes.run_cold_and_warm(__file__, "chainrule", name)
        found = {"chainrule": warm, COMPILING: cold}
        found |= {peer: processes.run_in_process(__file__, peer, name) for peer in PEERS[1:]}
        megabytes = [None if size is None else size / 1e6 for size in found.values()]
        sizes = [processes.format_cell(size, "{:.1f}") for size in megabytes]
        bars = "" if name == IMPORTS else "; ".join(_bars(found))
        lines.append(f"| {name} | {' | '.join(sizes)} | {bars} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        processes.print_measurement(program_bytes)
    else:
        print(main())
