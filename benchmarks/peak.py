"""The memory that compiled programs take, beside PyTorch's and JAX's.

What a process of its own held at most during ten calls, above what it held when the library was
imported: arrays, parameters, code, and what is kept from one call to the next included. In a column
of its own, the process that compiles, above what it held when Numba was imported, too.
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

START = "the libraries, imported"
PEERS = ["chainrule", "chainrule, NumPy", "PyTorch", "JAX jit"]
FIRST = "chainrule, compiling"
LEFT_OUT = ("bundle", "a compiled function", "Gaussian mixture, n 1000,", "ODE", "LSTM")
"""Too small to tell from what the libraries take for themselves."""


def held(peer: str, name: str, kept: str = "") -> float:
    """Return the bytes that a program took in this process."""
    processes.started(peer, kept)
    before = held_bytes()
    if name == START:
        return before
    job = PROGRAMS[name]().job(peer)
    job()
    job()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    for _ in range(10):
        job()
    return million.peak_bytes() - before


def held_bytes() -> int:
    """Return the memory that this process has now."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def _bars(found: dict[str, float | None]) -> Iterator[str]:
    """Yield what is above the others' memory, ours compiled in either way."""
    others = {p: b for p, b in found.items() if p in processes.MODULES and b is not None}
    for peer, size in found.items():
        if size is not None and peer in CHAINRULE:
            above = [other for other, bar in others.items() if size > bar]
            met = f"**not met** ≤ {' and '.join(above)}" if above else "≤ all"
            yield met if peer == "chainrule" else f"NumPy: {met}"


def main() -> str:
    """Return the table."""
    if not pathlib.Path("/proc/self/clear_refs").exists():
        return "Not measured: the high-water mark of a process is Linux'."
    heads = ["MB at most", PEERS[0], FIRST, *PEERS[1:], "bar"]
    ops = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    for name in (START, *PROGRAMS):
        if name.startswith(LEFT_OUT):
            continue
        first, again = processes.twice(__file__, "chainrule", name)
        found = {"chainrule": again, FIRST: first}
        found |= {peer: processes.alone(__file__, peer, name) for peer in PEERS[1:]}
        sizes = [processes.cell(None if b is None else b / 1e6, "{:.1f}") for b in found.values()]
        bars = "" if name == START else "; ".join(_bars(found))
        ops.append(f"| {name} | {' | '.join(sizes)} | {bars} |")
    return "\n".join(ops)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        processes.child(held)
    else:
        print(main())
