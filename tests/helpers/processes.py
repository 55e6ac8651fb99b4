"""Python source run in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys


def run_script(source: str, timeout: float = 60, **variables: str) -> str:
    """Run Python source in a fresh process that finds the same packages; return what it printed."""
    return run_bytes(source, b"", timeout, **variables).decode()


def run_bytes(source: str, given: bytes, timeout: float = 60, **variables: str) -> bytes:
    """Run Python source in the same way, with bytes as its standard input and output."""
    paths = os.pathsep.join(filter(None, sys.path))
    environment = {**os.environ, "PYTHONPATH": paths, **variables}
    done = subprocess.run(
        [sys.executable, "-c", source],
        input=given,
        env=environment,
        capture_output=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
