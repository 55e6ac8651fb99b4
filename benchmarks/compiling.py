"""Compiled functions compared with eager PyTorch, torch.compile and JAX's jit.

All libraries run in one process, each with its own defaults. A job ends when its result has been
computed (JAX is waited for). Compile times are left out; `compile_times.py` measures them.
"""

from __future__ import annotations

import importlib

import harness
from programs import PROGRAMS, training
from programs.peers import is_installed

import chainrule as cr

PEERS = ["chainrule", "PyTorch", "torch.compile", "JAX jit", "floor"]
BARE = "chainrule, NumPy"


def row(name: str) -> harness.Row:
    """Measure one program."""
    program = PROGRAMS[name]()
    return harness.measure(name, program.jobs(), program.bars, **program.measured)


def without_llvm(rows: list[harness.Row]) -> str:
    """Return the table of the programs that were also measured with the NumPy backend."""
    found = []
    for row in rows:
        if BARE in row.seconds and "PyTorch" in row.seconds:
            seconds = {"chainrule": row.seconds[BARE], "PyTorch": row.seconds["PyTorch"]}
            found.append(harness.Row(row.name, row.unit, seconds, {"PyTorch": 0.6}))
    return harness.table(found, ["chainrule", "PyTorch"])


def with_suitable_kernels() -> str:
    """Return the table of the programs with matrix products, run with the best BLAS kernels."""
    now = cr.blas.info()
    if now.suitable is None or now.kernels == now.suitable:
        return ""
    cr.blas.tune(now.suitable, force=True)  # the other libraries' threads exist, but are idle
    rows = [row(name) for name in (*training.NETWORK, *training.LARGER)]
    text = f"Above, products are by {now.kernels} kernels; after `cr.blas.tune({now.suitable!r})`:"
    return f"{text}\n\n{harness.table(rows, PEERS)}\n\n"


def main() -> str:
    if is_installed("PyTorch"):
        importlib.import_module("torch").set_num_threads(2)
    rows = [row(name) for name in PROGRAMS]
    names = [name for name in ("torch", "jax") if importlib.util.find_spec(name)]
    modules = [importlib.import_module(name) for name in ("numpy", *names)]
    return (
        f"{harness.table(rows, PEERS)}\n\n"
        f'Without LLVM (`backend="numpy"`):\n\n{without_llvm(rows)}\n\n'
        f"{with_suitable_kernels()}"
        f"{harness.versions(cr, *modules)}"
    )


if __name__ == "__main__":
    print(main())
