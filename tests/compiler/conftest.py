"""Machine code has tests of its own; all others are of the NumPy source, and as quick as that."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from chainrule.compiler.native import gemm, jit, vector_math
from chainrule.compiler.native.code import Code
from chainrule.compiler.native.threads import tasks


@pytest.fixture(autouse=True)
def numpy_by_default(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.path.parent.name not in ("native", "eager"):
        monkeypatch.setattr(jit, "is_installed", lambda: False)


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Python run what machine code would be made of, with Numba or without."""

    def function(self: Code) -> Callable[..., None]:
        loop = jit.plain(self.text, {name: getattr(vector_math, name) for name in self.calls})

        def parts(words: Any, turns: int, step: int, *arguments: Any) -> None:
            for start in range(0, turns, step):
                loop(start, min(start + step, turns), *arguments)

        return parts if self.shared else loop

    monkeypatch.setattr(Code, "function", function)
    nobody = SimpleNamespace(words=None, helpers=0)
    monkeypatch.setattr(tasks, "team", lambda: nobody)  # which is machine code itself
    monkeypatch.setattr(jit, "is_installed", lambda: True)
    monkeypatch.setattr(gemm, "registers", lambda: None)  # whose tiles are instructions
