"""Tests in files without "native" in their name run the NumPy source, not machine code."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from chainrule.compiler.native import gemm, jit, program_files
from chainrule.compiler.native.code import Code
from chainrule.compiler.native.threads import tasks


@pytest.fixture(autouse=True)
def numpy_by_default(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.parent.name not in ("native", "eager"):
        monkeypatch.setattr(jit, "is_installed", lambda: False)


@pytest.fixture(autouse=True)
def emitted_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out programs on the disk, which don't know what a test changes in the emitters."""
    monkeypatch.setattr(program_files, "MIN_OPS", 1 << 60)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the source of machine code in Python, with or without LLVM."""

    def function(self: Code) -> Callable[..., None]:
        loop = jit.python_function(self.text)

        def parts(words: Any, iterations: int, step: int, *arguments: Any) -> None:
            for start in range(0, iterations, step):
                loop(start, min(start + step, iterations), *arguments)

        return parts if self.parallel else loop

    monkeypatch.setattr(Code, "function", function)
    nobody = SimpleNamespace(words=None, helper_count=0)
    monkeypatch.setattr(tasks, "team", lambda: nobody)  # its threads run machine code
    monkeypatch.setattr(jit, "is_installed", lambda: True)
    monkeypatch.setattr(gemm, "registers", lambda: None)  # the micro-kernel is LLVM code
