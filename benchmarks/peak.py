"""The memory that compiled steps take, beside PyTorch's and JAX's.

What a process of its own held at most during ten steps, above what it held when the libraries were
imported: arrays, parameters and what is kept from one step to the next included.
"""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import million

LIBRARIES = {"chainrule": "chainrule", "PyTorch": "torch", "JAX jit": "jax"}
JOBS = [
    "gelu and gradient, 1e7",
    "MLP step, 256 × 784-512-512-10, SGD",
    "two-layer network, a step",
]


def child(library: str, job: str) -> None:
    """Print the bytes that a job took in this process."""
    import compiling

    for name in LIBRARIES:
        if name != library:
            setattr(compiling, {"PyTorch": "torch", "JAX jit": "jax"}.get(name, "unused"), None)
    jobs: dict[str, Callable[[], Any]] = {}

    def take(name: str, made: dict[str, Callable[[], Any]], *_: Any, **__: Any) -> None:
        jobs.update(made)

    before = held_bytes()
    compiling.harness.measure = take  # type: ignore[assignment]
    if job.startswith("gelu"):
        compiling._elementwise(compiling.gelu, 10**7)
    elif job.startswith("MLP"):
        compiling.mlp("SGD")
    else:
        compiling.two_layers()
    jobs[library]()
    jobs[library]()
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the high-water mark begins anew
    for _ in range(10):
        jobs[library]()
    print(million.peak_bytes() - before)


def held_bytes() -> int:
    """Return the memory that this process has now."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def main() -> str:
    """Return the table."""
    if not pathlib.Path("/proc/self/clear_refs").exists():
        return "Not measured: the high-water mark of a process is Linux'."
    lines = ["| MB at most | " + " | ".join(LIBRARIES) + " |"]
    lines.append("|" + " --- |" * (len(LIBRARIES) + 1))
    for job in JOBS:
        cells = []
        for library, module in LIBRARIES.items():
            command = [sys.executable, __file__, library, job]
            run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
            missing = f"No module named '{module}'" in run.stderr
            if run.returncode and not missing:
                raise RuntimeError(run.stderr)
            cells.append("–" if run.returncode else f"{int(run.stdout) / 1e6:.1f}")
        lines.append(f"| {job} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(*sys.argv[1:])
    else:
        print(main())
