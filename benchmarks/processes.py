"""Measurement of one program in a fresh process, where nothing has been compiled yet."""

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
CACHED = "machine code is on the disk"


def run_in_process(file: str, peer: str, name: str, *more: str, **environment: str) -> float | None:
    """Run a script for a library and a program and return the number that it prints.

    Return None if the library is not installed.
    """
    if not is_installed(peer):
        return None
    command = [sys.executable, file, peer, name, *more]
    env = {**os.environ, **environment}
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, env=env)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return float(run.stdout.split()[-1])


def run_cold_and_warm(file: str, peer: str, name: str) -> tuple[float | None, float | None]:
    """Run a script with an empty cache of machine code, then with the cache that this fills."""
    with tempfile.TemporaryDirectory() as folder:
        cold = run_in_process(file, peer, name, CHAINRULE_CACHE=folder)
        return cold, run_in_process(file, peer, name, CACHED, CHAINRULE_CACHE=folder)


def import_libraries(peer: str, cache: str) -> None:
    """Import a library, and LLVM if it compiles."""
    importlib.import_module(MODULES.get(peer, "chainrule"))
    compiles = CHAINRULE.get(peer, "numpy") != "numpy" and cache != CACHED
    if compiles and importlib.util.find_spec("llvmlite"):
        importlib.import_module("llvmlite.binding")


def seconds(job: Job) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def print_measurement(measure: Callable[..., float]) -> None:
    """Print the result of `measure`, called with the script's arguments."""
    print(measure(*sys.argv[1:]))


def format_cell(value: float | None, text: str = "{:.2f}") -> str:
    return "–" if value is None else text.format(value)


def programs_named(*prefixes: str) -> list[str]:
    """Return the names of the programs that begin with one of the prefixes."""
    return [name for name in PROGRAMS if name.startswith(prefixes)]
