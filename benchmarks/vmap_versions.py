"""Time of an ordinary operation after many vmaps, for several ways to intercept tensors.

While a vmap or a trace runs, `autograd/intercept.py` replaces the slot descriptors of `Tensor`,
which then gets a new version. From CPython 3.13 on, a class that had 1,000 versions gets no more,
and attribute accesses on it are no longer cached. Each way runs in a fresh process. Run it with
each version of Python, on a machine with nothing else to do.
"""

from __future__ import annotations

import ctypes
import gc
import json
import platform
import subprocess
import sys
import timeit
from collections.abc import Callable

import chainrule as cr
from chainrule.autograd import intercept

VMAPS = 2000
ROUNDS = 15
WAYS = {
    "no vmap": "before any vmap",
    "swap": f"after {VMAPS:,} vmaps",
    "installed": "intercepted slots left installed, without an interceptor",
    "reset": f"after {VMAPS:,} vmaps, CPython's count of versions set to 0 after each",
}


def version_counter(cls: type) -> ctypes.c_uint16 | None:
    """Return CPython's count of the versions of a class, found by changing another class."""

    class Probe:
        value = 0

    instance = Probe()

    def fields_after(changes: int) -> list[int]:
        for value in range(changes):
            Probe.value = value
            _ = instance.value  # a lookup assigns the next version
        raw = ctypes.string_at(id(Probe), type.__basicsize__)
        return [int.from_bytes(raw[i : i + 2], sys.byteorder) for i in range(0, len(raw) - 1, 2)]

    first, second, third = fields_after(3), fields_after(17), fields_after(30)
    for index, fields in enumerate(zip(first, second, third, strict=True)):
        if fields[1] - fields[0] == 17 and fields[2] - fields[1] == 30 and fields[2] < 60:
            return ctypes.c_uint16.from_address(id(cls) + 2 * index)
    return None


def nanoseconds(job: Callable[[], object], number: int = 5000) -> float:
    return min(timeit.repeat(job, number=number, repeat=ROUNDS)) / number * 1e9


def measure(way: str) -> list[float] | None:
    """Return the nanoseconds of a product, unrecorded, recorded, and with its backward pass."""
    x, ones = cr.ones(4).requires_grad_(), cr.ones(4)
    jobs = (lambda: ones * ones, lambda: x * ones, lambda: (x * ones).backward(ones))
    for job in jobs:
        nanoseconds(job, 300)
    doubled = cr.vmap(lambda a: a * 2)
    counter = version_counter(cr.Tensor) if way == "reset" else None
    if way == "reset" and counter is None:
        return None
    if way == "installed":
        intercept._count_active(1)
    for _ in range(VMAPS if way in ("swap", "reset") else 0):
        doubled(ones)
        if counter is not None:
            counter.value = 0
    return [nanoseconds(job) for job in jobs]


def scan() -> tuple[float, float]:
    """Return the microseconds of a vmap, and of finding all tensors to change their class."""
    ones = cr.ones(4)
    doubled = cr.vmap(lambda a: a * 2)
    found = nanoseconds(lambda: gc.get_referrers(cr.Tensor), 3)
    return nanoseconds(lambda: doubled(ones), 300) / 1e3, found / 1e3


def main() -> str:
    lines = [
        f"CPython {platform.python_version()}\n",
        "| | `ones * ones`, ns | recorded, ns | with backward, ns |\n| --- | --- | --- | --- |",
    ]
    for way, title in WAYS.items():
        command = [sys.executable, __file__, way]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        times = json.loads(run.stdout)
        cells = ["no such count"] * 3 if times is None else [f"{t:.0f}" for t in times]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    vmap, found = scan()
    lines.append(
        f"\nA vmap: {vmap:.0f} µs. Finding all tensors with the collector: {found:.0f} µs."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])) if len(sys.argv) > 1 else main())
