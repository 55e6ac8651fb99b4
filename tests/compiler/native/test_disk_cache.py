"""The disk cache of machine code, and fallbacks where Numba fails."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.native import disk_cache, jit, vector_math
from chainrule.compiler.native.code import Code


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

function = cr.compile(lambda x: np.tanh(x) * 3 + 1, backend="native")
assert "numba" not in sys.modules
x = np.linspace(-1, 1, 50, dtype="f4")
np.testing.assert_allclose(function(x), np.tanh(x) * 3 + 1, rtol=1e-6)
print("numba" in sys.modules)
"""
    place = tmp_path / "made" / "here"
    assert run(script, CHAINRULE_CACHE=str(place)) == "True"
    assert run(script, CHAINRULE_CACHE=str(place)) == "False"
    (file,) = place.iterdir()
    whole = file.read_bytes()
    other = run_other(place)
    for broken in (b"", whole[:-7], whole[:99] + b"?" + whole[100:], other):
        file.write_bytes(broken)
        assert run(script, CHAINRULE_CACHE=str(place)) == "True"
        assert file.read_bytes() == whole


def run_other(place: Path) -> bytes:
    """Return the file of another loop."""
    before = {*place.iterdir()}
    script = """
import numpy as np
import chainrule as cr

cr.compile(lambda x: np.exp(x) - 5, backend="native")(np.ones(50, dtype="f4"))
"""
    run(script, CHAINRULE_CACHE=str(place))
    (file,) = {*place.iterdir()} - before
    return file.read_bytes()


def test_threads_that_write_the_same_code_at_once(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CHAINRULE_CACHE", str(tmp_path))
    code = bytes(range(256)) * 40_000
    threads = [threading.Thread(target=disk_cache.write, args=("loop", code)) for _ in range(4)]
    for thread in threads:
        thread.start()
    seen = None
    while any(thread.is_alive() for thread in threads):
        found, before = disk_cache.read("loop"), seen
        assert found == code or before is None  # a file that exists is complete
        seen = found or seen
    for thread in threads:
        thread.join()
    assert disk_cache.read("loop") == code
    assert [file.name for file in tmp_path.iterdir()] == ["loop"]


def test_the_environment_is_part_of_the_cache_key(monkeypatch: Any) -> None:
    before = disk_cache.environment_key()
    disk_cache.environment_key.cache_clear()
    monkeypatch.setenv("NUMBA_OPT", "1")
    try:
        assert disk_cache.environment_key() != before
    finally:
        disk_cache.environment_key.cache_clear()
    assert b"flags" in before or sys.platform != "linux" or platform.machine() != "x86_64"


def test_sources_of_compiled_functions_are_part_of_the_cache_key(numba: Any) -> None:
    from chainrule.compiler.native import gemm_microkernel
    from chainrule.compiler.native.threads import atomics, worker

    parts = [
        worker.share,
        jit.object_code,
        vector_math.exp_f4,
        atomics._load,
        gemm_microkernel._tile,
    ]
    sources = {Path(part.__code__.co_filename) for part in parts}
    assert sources == set(disk_cache.compiled_sources())
    assert all(source.read_bytes() in disk_cache.environment_key() for source in sources)


def test_an_unusable_folder_is_no_error(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("")
    for place in ("", str(tmp_path / "file")):
        monkeypatch.setenv("CHAINRULE_CACHE", place)
        disk_cache.write("loop", b"code")
        assert disk_cache.read("loop") is None
    monkeypatch.delenv("CHAINRULE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform.startswith("linux"):
        assert disk_cache.cache_folder() == tmp_path / "chainrule" / "native"
    disk_cache.write("loop", b"code")
    assert disk_cache.read("loop") == b"code"


def test_a_full_disk_is_no_error(numba: Any, tmp_path: Path, monkeypatch: Any) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setenv("CHAINRULE_CACHE", str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", full)
    code = Code("def loop(x):\n    x[0] = x[0] + f4(25)\n", ("f4",), frozenset())
    x = np.ones(1, "f4")
    code.function()(x)
    assert x[0] == 26


def test_without_numba_the_error_names_the_install_command(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    jit.numba.cache_clear()
    try:
        with pytest.raises(cr.CompileError, match=r"pip install 'chainrule\[native\]'"):
            jit.numba()
    finally:
        monkeypatch.undo()
        jit.numba.cache_clear()


def test_by_default_machine_code_runs_if_it_pays(numba: Any) -> None:
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


def test_numpy_runs_if_numba_fails(numba: Any, monkeypatch: Any) -> None:
    def broken(*_: Any) -> Any:
        raise numba.core.errors.TypingError("no such type")

    monkeypatch.setenv("CHAINRULE_CACHE", "")
    monkeypatch.setattr(jit, "object_code", broken)
    compiled = cr.compile(lambda x: x * 2.125 + 1)
    x = np.ones(100_000, "f4")
    with pytest.warns(UserWarning, match="Numba says: no such type"):
        found = compiled(x)
    for result in (found, compiled(x)):
        np.testing.assert_array_equal(result, x * 2.125 + 1)
    with pytest.raises(numba.core.errors.TypingError):
        cr.compile(lambda x: x * 2.125 + 3, backend="native")(x)


def test_nothing_is_updated_twice_if_numba_fails_late(numba: Any, monkeypatch: Any) -> None:
    object_code = jit.object_code

    def second_is_broken(text: str, *rest: Any) -> Any:
        if "tanh_f4" in text:
            raise numba.core.errors.LoweringError("no such instruction")
        return object_code(text, *rest)

    def step(w: Any, x: Any) -> Any:
        w.mul_(2).add_(x)
        return cr.tanh(w @ x) * 2.375

    monkeypatch.setenv("CHAINRULE_CACHE", "")
    monkeypatch.setattr(jit, "object_code", second_is_broken)
    w, x = cr.ones(300, 300), cr.ones(300, 300)
    with pytest.warns(UserWarning, match="no such instruction"):
        cr.compile(step)(w, x)
    np.testing.assert_array_equal(w, np.full((300, 300), 3.0))


def test_numpy_runs_if_numba_cannot_be_imported(monkeypatch: Any) -> None:
    monkeypatch.setattr(jit, "is_installed", lambda: True)
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setenv("CHAINRULE_CACHE", "")
    x = np.ones(100_000, "f4")
    for cache in (jit.numba, jit.is_usable):
        cache.cache_clear()
    try:
        np.testing.assert_array_equal(cr.compile(lambda x: x * 2.25 + 1)(x), x * 2.25 + 1)
    finally:
        monkeypatch.undo()
        for cache in (jit.numba, jit.is_usable):
            cache.cache_clear()
