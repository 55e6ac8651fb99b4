"""Machine code is kept on disk, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native import disk, jit


def run(script: str, **variables: str) -> str:
    source = Path(cr.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source), **variables}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def numba() -> Any:
    return pytest.importorskip("numba", reason="machine code needs Numba")


def test_machine_code_is_read_from_disk(numba: Any, tmp_path: Path) -> None:
    script = """
import sys
import numpy as np
import chainrule as cr
from chainrule.compiler.native import jit

found = []
compiled = jit.compiled
jit.compiled = lambda *args, **kwargs: found.append(compiled(*args, **kwargs)) or found[-1]
assert "numba" not in sys.modules
function = cr.compile(lambda x: np.tanh(x) * 3 + 1, backend="native")
x = np.linspace(-1, 1, 50, dtype="f4")
np.testing.assert_allclose(function(x), np.tanh(x) * 3 + 1, rtol=1e-6)
print(sum(found[0].stats.cache_hits.values()))
"""
    place = str(tmp_path / "made" / "here")
    assert run(script, CHAINRULE_CACHE=place) == "0"
    assert run(script, CHAINRULE_CACHE=place) == "1"
    for file in Path(place).glob("__pycache__/*.nbc"):
        file.write_bytes(b"cut off")
    assert run(script, CHAINRULE_CACHE=place) == "0"


def test_a_folder_that_cannot_be_had_is_no_error(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("")
    for place in ("", str(tmp_path / "file")):
        monkeypatch.setenv("CHAINRULE_CACHE", place)
        assert disk.source_file("def loop(): pass") is None
    monkeypatch.delenv("CHAINRULE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform.startswith("linux"):
        assert disk.folder() == tmp_path / "chainrule" / "native"


def test_numba_that_fails_to_write_is_no_error(
    numba: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("CHAINRULE_CACHE", str(tmp_path))

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", full)
    loop = jit.jitted("def loop(x):\n    return x + 25\n", "loop", frozenset())
    assert loop(3) == 28


def test_without_numba_the_error_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    jit.numba.cache_clear()
    try:
        with pytest.raises(cr.CompileError, match=r"pip install 'chainrule\[native\]'"):
            jit.numba()
    finally:
        monkeypatch.undo()
        jit.numba.cache_clear()


def test_by_default_machine_code_runs_where_it_pays(numba: Any) -> None:
    def work(x: Any) -> Any:
        return cr.tanh(x) * 2 + x

    compiled = cr.compile(work)
    compiled(np.ones(100, "f4"))
    assert compiled.source_native == ""
    compiled(np.ones(100_000, "f4"))
    assert "def loop(" in compiled.source_native
    compiled = cr.compile(work, backend="numpy")
    compiled(np.ones(100_000, "f4"))
    assert compiled.source_native == ""


def test_where_numba_fails_numpy_runs(numba: Any, monkeypatch: Any) -> None:
    def broken(*_: Any) -> Any:
        def loop(*_: Any) -> None:
            raise numba.core.errors.TypingError("no such type")

        return loop

    monkeypatch.setattr(jit, "jitted", broken)
    compiled = cr.compile(lambda x: x * 2 + 1)
    x = np.ones(100_000, "f4")
    with pytest.warns(UserWarning, match="Numba says: no such type"):
        found = compiled(x)
    for result in (found, compiled(x)):
        np.testing.assert_array_equal(result, x * 2 + 1)


def test_where_numba_fails_late_nothing_is_written_twice(numba: Any, monkeypatch: Any) -> None:
    jitted = jit.jitted

    def second_is_broken(text: str, *rest: Any) -> Any:
        return jitted(text, *rest) if "tanh_f4" not in text else broken

    def broken(*_: Any) -> None:
        raise numba.core.errors.LoweringError("no such instruction")

    def step(w: Any, x: Any) -> Any:
        w.mul_(2).add_(x)
        return cr.tanh(w @ x) * 2

    monkeypatch.setattr(jit, "jitted", second_is_broken)
    w, x = cr.ones(300, 300), cr.ones(300, 300)
    with pytest.warns(UserWarning, match="no such instruction"):
        cr.compile(step)(w, x)
    np.testing.assert_array_equal(w, np.full((300, 300), 3.0))


def test_where_numba_cannot_be_imported_numpy_runs(monkeypatch: Any) -> None:
    monkeypatch.setattr(jit, "is_installed", lambda: True)
    monkeypatch.setattr(jit, "is_usable", lambda: False)
    x = np.ones(100_000, "f4")
    np.testing.assert_array_equal(cr.compile(lambda x: x * 2 + 1)(x), x * 2 + 1)
