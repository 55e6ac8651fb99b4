"""Python source run in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_script(source: str, timeout: float = 60, **variables: str) -> str:
    """Run Python source in a fresh process that finds the same packages; return what it printed."""
    return run_bytes(source, b"", timeout, **variables).decode()


def run_program(source: str, folder: Path, timeout: float = 60) -> str:
    """Run Python source in the same way, from a file, as processes that it starts need it."""
    program = folder / "program.py"
    program.write_text(source)
    return _run([str(program)], b"", timeout, {}).decode()


def run_bytes(source: str, given: bytes, timeout: float = 60, **variables: str) -> bytes:
    """Run Python source in the same way, with bytes as its standard input and output."""
    return _run(["-c", source], given, timeout, variables)


def _run(arguments: list[str], given: bytes, timeout: float, variables: dict[str, str]) -> bytes:
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": paths, **variables}
    done = subprocess.run(
        [sys.executable, *arguments],
        input=given,
        env=environment,
        capture_output=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
