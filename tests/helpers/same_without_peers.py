"""Tests that do the same without LLVM, PyTorch and JAX as with them: CI runs them once.

CI runs the suite without the peers, and then with them. In the first run, `note` writes down the
tests that passed and neither ran a compiled function, nor asked for a peer, nor started a process
that might. In the second one, `leave_out` deselects them, unless their file names a peer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PEERS = ("torch", "jax", "llvmlite")
PROCESSES = frozenset(["subprocess.Popen", "os.fork", "os.posix_spawn"])


class Notes:
    """A plugin that writes the names of such tests to a file: one for each worker."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._depends = False

    def pytest_configure(self, config: pytest.Config) -> None:
        from chainrule.compiler.api import Compiled

        worker = getattr(config, "workerinput", {}).get("workerid", "alone")
        self._file = (self._folder / f"{worker}.txt").open("w", encoding="utf-8")
        sys.addaudithook(self._heard)
        for name in ("__call__", "built_for"):
            setattr(Compiled, name, self._watched(getattr(Compiled, name)))

    def _heard(self, event: str, args: tuple[Any, ...]) -> None:
        if event in PROCESSES or (event == "import" and args[0].partition(".")[0] in PEERS):
            self._depends = True

    def _watched(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self._depends = True
            return method(*args, **kwargs)

        return watched

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self._depends = False
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed and not self._depends:
            print(report.nodeid, file=self._file, flush=True)


def leave_out(folder: Path, items: list[pytest.Item]) -> list[pytest.Item]:
    """Remove the tests that were noted, and return them."""
    files = folder.glob("*.txt")
    noted = {name for file in files for name in file.read_text(encoding="utf-8").splitlines()}
    names_peer = re.compile(rf"\b({'|'.join(PEERS)})\b")
    in_file: dict[Path, bool] = {}
    kept, left = [], []
    for item in items:
        if item.path not in in_file:
            in_file[item.path] = names_peer.search(item.path.read_text(encoding="utf-8")) is None
        (left if in_file[item.path] and item.nodeid in noted else kept).append(item)
    items[:] = kept
    return left
