"""Machine code has tests of its own; all others are of the NumPy source, and as quick as that."""

from __future__ import annotations

import pytest

from chainrule.compiler.native import jit


@pytest.fixture(autouse=True)
def numpy_by_default(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "native" not in request.path.name:
        monkeypatch.setattr(jit, "is_installed", lambda: False)
