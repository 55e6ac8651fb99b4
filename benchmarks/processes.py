"""Measuring one program in a process of its own, where nothing has been compiled before."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

from programs import PROGRAMS
from programs.peers import CHAINRULE, Job, is_installed

MODULES = {"PyTorch": "torch", "JAX jit": "jax"}
KEPT = "machine code is on the disk"


def alone(file: str, peer: str, name: str, *more: str, **environment: str) -> float | None:
    """Run a script with a library and a program, return the number it prints; None without it."""
    if not is_installed(peer):
        return None
    command = [sys.executable, file, peer, name, *more]
    env = {**os.environ, **environment}
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=env)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return float(run.stdout.split()[-1])


def twice(file: str, peer: str, name: str) -> tuple[float | None, float | None]:
    """Run it with an empty folder for machine code, and with what this leaves there."""
    with tempfile.TemporaryDirectory() as folder:
        first = alone(file, peer, name, CHAINRULE_CACHE=folder)
        return first, alone(file, peer, name, KEPT, CHAINRULE_CACHE=folder)


def started(peer: str, kept: str) -> None:
    """Import a library, and what Numba imports for the first function that it has to compile."""
    importlib.import_module(MODULES.get(peer, "chainrule"))
    compiles = CHAINRULE.get(peer, "numpy") != "numpy" and kept != KEPT
    if compiles and importlib.util.find_spec("numba"):
        target = importlib.import_module("numba.core.registry").cpu_target
        target.typing_context.refresh()
        target.target_context.refresh()


def seconds(job: Job) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def child(measure: Callable[..., float]) -> None:
    """Print what a script was asked to measure."""
    print(measure(*sys.argv[1:]))


def cell(value: float | None, text: str = "{:.2f}") -> str:
    return "–" if value is None else text.format(value)


def names(*beginnings: str) -> list[str]:
    """Return the programs whose names begin so."""
    return [name for name in PROGRAMS if name.startswith(beginnings)]
