"""Tests that do the same without LLVM, PyTorch and JAX as with them: CI runs them once.

CI runs the suite without the peers, and then with them. In the first run, `Notes` writes down the
tests that passed and neither ran a compiled function that LLVM might compile, nor asked for a peer,
nor started a process that might. In the second one, `leave_out` deselects them, unless their source
names a peer, or something in their file that does.
"""

from __future__ import annotations

import ast
import multiprocessing.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PEERS = ("torch", "jax", "llvmlite")
STARTS = (  # of processes
    (subprocess.Popen, "__init__"),
    (os, "fork"),
    (os, "posix_spawn"),
    (multiprocessing.util, "spawnv_passfds"),
)


class Notes:
    """A plugin that writes the names of such tests to a file: one for each worker.

    It hears of imports as a finder. An audit hook would hear of them, too, and of each call of `id`
    and `sys._getframe`: tests took a sixth longer.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._depends = False

    def pytest_configure(self, config: pytest.Config) -> None:
        from chainrule.autograd.location import INTERNAL
        from chainrule.compiler.api import Compiled
        from chainrule.compiler.native import jit

        INTERNAL[__file__] = True  # no error tells the lines of `watched`

        worker = getattr(config, "workerinput", {}).get("workerid", "alone")
        self._file = (self._folder / f"{worker}.txt").open("w", encoding="utf-8")
        sys.meta_path.insert(0, self)  # type: ignore[arg-type]
        for owner, name in STARTS:
            setattr(owner, name, self._watched(getattr(owner, name)))
        for name in ("is_installed", "is_usable", "llvm"):
            setattr(jit, name, self._watched(getattr(jit, name)))
        self._jit, self._unpatched = jit, jit.is_installed
        for name in ("__call__", "built_for"):
            setattr(Compiled, name, self._watched(getattr(Compiled, name), self._may_use_llvm))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Note the import of a peer, which the next finders look for."""
        if name.partition(".")[0] in PEERS:
            self._depends = True

    def _may_use_llvm(self, compiled: Any) -> bool:
        """Whether LLVM compiles a function where it is installed: some tests say that it is not.

        Others say that it is, and run its source in Python.
        """
        return compiled.backend != "numpy" and self._jit.is_installed is self._unpatched

    def _watched(
        self, function: Callable[..., Any], depends: Callable[[Any], bool] = lambda _: True
    ) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self._depends = self._depends or depends(args[0] if args else None)
            return function(*args, **kwargs)

        if hasattr(function, "cache_clear"):
            watched.cache_clear = function.cache_clear  # type: ignore[attr-defined]
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
    of_peers: dict[Path, set[str]] = {}
    kept, left = [], []
    for item in items:
        if item.path not in of_peers:
            of_peers[item.path] = names_of_peers(item.path.read_text(encoding="utf-8"))
        names = {getattr(item, "originalname", item.name), *getattr(item, "fixturenames", ())}
        same = item.nodeid in noted and names.isdisjoint(of_peers[item.path])
        (left if same else kept).append(item)
    items[:] = kept
    return left


def names_of_peers(source: str) -> set[str]:
    """Return the names of a module whose definitions name a peer, directly or through others."""
    found = {*PEERS}
    parts = {node: _names_in(node) for node in ast.parse(source).body}
    defined = {node: _defined_by(node) for node in parts}
    while more := [n for n in parts if parts[n] & found and not defined[n] <= found]:
        for node in more:
            found |= defined[node]
    return found


def _names_in(statement: ast.stmt) -> set[str]:
    words = set(re.findall(r"\w+", ast.unparse(statement)))
    return words.union(peer for peer in PEERS for word in words if word.startswith(peer))


def _defined_by(statement: ast.stmt) -> set[str]:
    """Return what a statement at the top of a module defines; a class defines its methods, too."""
    if isinstance(statement, ast.FunctionDef):
        return {statement.name}
    if isinstance(statement, ast.ClassDef):
        return {statement.name}.union(*map(_defined_by, statement.body))
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    stored = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
    return {name.id for name in stored if isinstance(name.ctx, ast.Store)}
