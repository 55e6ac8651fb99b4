"""The disk cache of machine code, and fallbacks where LLVM fails."""

from __future__ import annotations

import hashlib
import os
import platform
import random
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
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
def llvm() -> Any:
    return pytest.importorskip("llvmlite", reason="machine code needs LLVM")


def test_machine_code_is_read_from_disk(llvm: Any, tmp_path: Path) -> None:
    script = """
import sys
import numpy as np
import chainrule as cr

function = cr.compile(lambda x: np.tanh(x) * 3 + 1, backend="native")
assert "llvmlite" not in sys.modules
x = np.linspace(-1, 1, 50, dtype="f4")
np.testing.assert_allclose(function(x), np.tanh(x) * 3 + 1, rtol=1e-6)
print("llvmlite" in sys.modules)
"""
    place = tmp_path / "made" / "here"
    assert run(script, CHAINRULE_CACHE=str(place)) == "True"
    assert run(script, CHAINRULE_CACHE=str(place)) == "False"
    (file,) = codes(place)
    whole = file.read_bytes()
    other = run_other(place)
    for broken in (b"", whole[:-7], whole[:99] + b"?" + whole[100:], other):
        file.write_bytes(broken)
        assert run(script, CHAINRULE_CACHE=str(place)) == "True"
        assert file.read_bytes() == whole


def codes(place: Path) -> set[Path]:
    """Return the files of machine code, without the key."""
    return {file for file in place.iterdir() if file.name != "loop.key"}


def run_other(place: Path) -> bytes:
    """Return the file of another loop."""
    before = codes(place)
    script = """
import numpy as np
import chainrule as cr

cr.compile(lambda x: np.exp(x) - 5, backend="native")(np.ones(50, dtype="f4"))
"""
    run(script, CHAINRULE_CACHE=str(place))
    (file,) = codes(place) - before
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
    assert [file.name for file in codes(tmp_path)] == ["loop"]


def test_the_environment_is_part_of_the_cache_key(monkeypatch: Any) -> None:
    before = disk_cache.environment_key()
    disk_cache.environment_key.cache_clear()
    monkeypatch.setattr(disk_cache, "version_key", lambda package: b"another version")
    try:
        assert disk_cache.environment_key() != before
    finally:
        disk_cache.environment_key.cache_clear()
    assert b"flags" in before or sys.platform != "linux" or platform.machine() != "x86_64"


def test_sources_of_compiled_functions_are_part_of_the_cache_key(llvm: Any) -> None:
    from chainrule.compiler.native import (
        dense_kernels,
        fourier_kernels,
        gemm_microkernel,
        libm_beyond,
        llvm_codegen,
        llvm_entry,
        llvm_expressions,
        llvm_types,
        trigonometry,
    )
    from chainrule.compiler.native.threads import atomics, worker

    parts = [
        worker.share,
        jit.object_code,
        vector_math.exp_f4,
        atomics._load,
        gemm_microkernel.call,
        llvm_codegen.Module.text,
        llvm_entry.add_entry,
        llvm_expressions.ExpressionWriter.call,
        llvm_types.weak,
        dense_kernels.search,
        fourier_kernels.fourier_2,
        libm_beyond.add,
        trigonometry.sin_f4,
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


def test_a_full_disk_is_no_error(llvm: Any, tmp_path: Path, monkeypatch: Any) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setenv("CHAINRULE_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "open", full)
    code = Code("def loop(x):\n    x[0] = x[0] + f4(25)\n", ("f4",))
    x = np.ones(1, "f4")
    code.function()(x)
    assert x[0] == 26


def test_without_llvm_the_error_names_the_install_command(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    jit.llvm.cache_clear()
    try:
        with pytest.raises(cr.CompileError, match=r"pip install 'chainrule\[native\]'"):
            jit.llvm()
    finally:
        monkeypatch.undo()
        jit.llvm.cache_clear()


def test_by_default_machine_code_runs_if_it_pays(llvm: Any) -> None:
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


def test_numpy_runs_if_llvm_fails(llvm: Any, monkeypatch: Any) -> None:
    def broken(*_: Any) -> Any:
        raise TypeError("no such type")

    monkeypatch.setenv("CHAINRULE_CACHE", "")
    monkeypatch.setattr(jit, "object_code", broken)
    compiled = cr.compile(lambda x: x * 2.125 + 1)
    x = np.ones(100_000, "f4")
    with pytest.warns(UserWarning, match="LLVM says: no such type"):
        found = compiled(x)
    for result in (found, compiled(x)):
        np.testing.assert_array_equal(result, x * 2.125 + 1)
    with pytest.raises(TypeError):
        cr.compile(lambda x: x * 2.125 + 3, backend="native")(x)


def test_nothing_is_updated_twice_if_llvm_fails_late(llvm: Any, monkeypatch: Any) -> None:
    object_code = jit.object_code

    def second_is_broken(text: str, *rest: Any) -> Any:
        if "tanh_f4" in text:
            raise ValueError("no such instruction")
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


def test_numpy_runs_if_llvm_cannot_be_imported(monkeypatch: Any) -> None:
    monkeypatch.setattr(jit, "is_installed", lambda: True)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    monkeypatch.setenv("CHAINRULE_CACHE", "")
    x = np.ones(100_000, "f4")
    for cache in (jit.llvm, jit.is_usable):
        cache.cache_clear()
    try:
        np.testing.assert_array_equal(cr.compile(lambda x: x * 2.25 + 1)(x), x * 2.25 + 1)
    finally:
        monkeypatch.undo()
        for cache in (jit.llvm, jit.is_usable):
            cache.cache_clear()


# --- trust ----------------------------------------------------------------------------------------

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows protects users' folders")
CODE = bytes(range(256)) * 4


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache folder below a home of its own."""
    monkeypatch.delenv("CHAINRULE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir(mode=0o755)
    disk_cache._warn.cache_clear()
    found = disk_cache.cache_folder()
    assert found is not None
    return found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def read_in_silence(name: str = "loop") -> bytes | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return disk_cache.read(name)


@posix
@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_only_the_user_can_use_what_is_made(folder: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        disk_cache.write("loop", CODE)
    finally:
        os.umask(before)
    assert [mode(p) for p in (folder, folder.parent, folder.parents[1])] == [0o700] * 3
    assert {mode(file) for file in folder.iterdir()} == {0o600}
    assert read_in_silence() == CODE


def linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


DOUBTS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "group may write": (".", lambda p: p.chmod(0o770), "others can write to"),
    "all may write": (".", lambda p: p.chmod(0o703), "others can write to"),
    "sticky": (".", lambda p: p.chmod(0o1777), "others can write to"),
    "symbolic link": (".", linked, "is a symbolic link"),
    "group may write to the parent": ("..", lambda p: p.chmod(0o770), "others can write to"),
    "all may write above": ("../..", lambda p: p.chmod(0o777), "others can write to"),
}


@posix
@pytest.mark.parametrize("doubt", DOUBTS)
def test_a_folder_that_others_may_write_to_is_not_used(folder: Path, doubt: str) -> None:
    where, change, reason = DOUBTS[doubt]
    disk_cache.write("loop", CODE)
    place = Path(os.path.normpath(folder / where))
    change(place)
    content = sorted(place.rglob("*"))

    def use() -> None:
        assert disk_cache.read("loop") is None
        assert disk_cache.read("loop") is None
        disk_cache.write("loop", b"new")

    with pytest.warns(UserWarning, match=reason) as raised:
        use()
    assert len(raised) == 1
    assert raised[0].filename == __file__
    assert sorted(place.rglob("*")) == content


@posix
def test_a_folder_of_another_user_is_not_used(folder: Path, monkeypatch: Any) -> None:
    disk_cache.write("loop", CODE)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert disk_cache.read("loop") is None


@posix
def test_linked_parents_and_homes_are_followed(folder: Path, monkeypatch: Any) -> None:
    disk_cache.write("loop", CODE)
    linked(folder.parents[1])  # ~/.cache on another disk
    assert read_in_silence() == CODE
    link = folder.parents[3] / "link"
    link.symlink_to(folder.parents[2])
    monkeypatch.setenv("HOME", str(link))
    assert read_in_silence() == CODE


@posix
def test_a_folder_in_a_place_of_everybody(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    shared = tmp_path / "scratch"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("CHAINRULE_CACHE", str(shared / "mine"))
    disk_cache.write("loop", CODE)
    assert mode(shared / "mine") == 0o700
    assert read_in_silence() == CODE
    monkeypatch.setenv("CHAINRULE_CACHE", str(shared))
    with pytest.warns(UserWarning, match="others can write to"):
        assert disk_cache.read("mine") is None


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)  # a reader would wait for a writer


def subfolder(path: Path) -> None:
    path.unlink()
    path.mkdir()


FILES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "writable by the group": ("loop", lambda p: p.chmod(0o660)),
    "writable by all": ("loop", lambda p: p.chmod(0o602)),
    "symbolic link": ("loop", linked),
    "pipe": ("loop", pipe),
    "key for all to read": ("loop.key", lambda p: p.chmod(0o644)),
    "key for the group to write": ("loop.key", lambda p: p.chmod(0o620)),
    "linked key": ("loop.key", linked),
    "no key": ("loop.key", lambda p: p.unlink()),
    "short key": ("loop.key", lambda p: p.write_bytes(b"short")),
    "long key": ("loop.key", lambda p: p.write_bytes(bytes(99))),
}


@posix
@pytest.mark.parametrize("doubt", FILES)
def test_doubtful_files_are_ignored_and_made_again(folder: Path, doubt: str) -> None:
    name, change = FILES[doubt]
    disk_cache.write("loop", CODE)
    change(folder / name)
    assert read_in_silence() is None
    disk_cache.write("loop", CODE)
    assert read_in_silence() == CODE
    assert not (folder / name).is_symlink()
    assert mode(folder / name) == 0o600


def test_something_else_in_the_place_of_a_file_is_no_error(folder: Path) -> None:
    disk_cache.write("loop", CODE)
    subfolder(folder / "loop")
    disk_cache.write("loop", CODE)
    assert read_in_silence() is None
    assert not list(folder.glob("*.draft"))


def test_files_that_were_written_without_the_key_are_damaged(folder: Path) -> None:
    disk_cache.write("loop", CODE)
    code = b"their code"
    (folder / "loop").write_bytes(hashlib.sha256(b"loop" + code).digest() + code)
    with pytest.warns(UserWarning, match="damaged, or written by somebody else") as raised:
        assert disk_cache.read("loop") is None
    assert raised[0].filename == __file__


def test_every_damage_is_noticed_with_one_warning(folder: Path) -> None:
    disk_cache.write("loop", CODE)
    whole = (folder / "loop").read_bytes()
    bits = [*range(8 * 32), *random.Random(5).sample(range(8 * 32, 8 * len(whole)), 60)]
    copies = [
        whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :]
        for bit in bits
    ]
    copies += [whole[:length] for length in (0, 1, 31, 32, 33, *range(40, len(whole), 60))]
    copies += [whole + b"?", whole[1:]]

    def use() -> None:
        for copy in copies:
            (folder / "loop").write_bytes(copy)
            assert disk_cache.read("loop") is None

    with pytest.warns(UserWarning, match="damaged") as raised:
        use()
    assert len(raised) == 1
    (folder / "loop").write_bytes(whole)
    assert read_in_silence() == CODE


def test_code_that_cannot_be_linked_is_made_again(
    llvm: Any, folder: Path, monkeypatch: Any
) -> None:
    code = Code("def loop(x):\n    x[0] = x[0] + f4(27)\n", ("f4",))
    code.function()
    (file,) = codes(folder)
    with disk_cache._folder(create=True) as opened:  # ours, and authentic
        body = disk_cache._digest(opened.key(), file.name, b"no object") + b"no object"
    file.write_bytes(body)
    other = Code(code.text, code.types)
    with pytest.warns(UserWarning, match="damaged"):
        function = other.function()
    x = np.ones(1, "f4")
    function(x)
    assert x[0] == 28
    assert file.read_bytes() != body


# --- size -----------------------------------------------------------------------------------------


def test_files_that_were_not_used_for_longest_are_removed(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CHAINRULE_CACHE_SIZE", str(4.5 * len(CODE) / 1e6))
    for i in range(4):
        disk_cache.write(f"loop_{i}", CODE)
        os.utime(folder / f"loop_{i}", (1e9 + i, 1e9 + i))
    assert disk_cache.read("loop_0") == CODE  # now it is the one used last
    (folder / "notes.txt").write_bytes(bytes(10 * len(CODE)))  # not ours
    disk_cache.write("loop_4", CODE)
    names = {file.name for file in folder.iterdir()}
    assert names == {"loop_0", "loop_2", "loop_3", "loop_4", "loop.key", "notes.txt"}
    disk_cache.write("loop_5", CODE * 5)
    assert names == {file.name for file in folder.iterdir()}


@pytest.mark.parametrize("said", ["", "much", "nan", "inf"])
def test_the_size_is_stated_in_megabytes(said: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("CHAINRULE_CACHE_SIZE", said)
    assert disk_cache.max_bytes() == 256_000_000
    monkeypatch.setenv("CHAINRULE_CACHE_SIZE", "1.5")
    assert disk_cache.max_bytes() == 1_500_000


@posix
def test_drafts_of_processes_that_ended_are_removed(folder: Path) -> None:
    disk_cache.write("loop", CODE)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    dead = [f"loop.{child}.1.abcd.draft", f"loop_1.{child}.2.draft", "loop.key.1.1.aa.draft"]
    living = f"loop.{os.getpid()}.1.abcd.draft"
    for name in (*dead, living, "my.draft"):
        (folder / name).write_bytes(b"half")
    hours_ago = time.time() - 7200
    os.utime(folder / dead[2], (hours_ago, hours_ago))
    disk_cache.write("loop", CODE)
    assert {f.name for f in folder.iterdir()} == {"loop", "loop.key", living, "my.draft"}


def test_a_failing_write_leaves_no_draft(folder: Path, monkeypatch: Any) -> None:
    disk_cache.write("loop", CODE)

    def failing(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", failing)
    disk_cache.write("loop", b"new")
    assert {file.name for file in folder.iterdir()} == {"loop", "loop.key"}
    assert read_in_silence() == CODE


@posix
def test_a_disk_that_can_only_be_read(folder: Path, monkeypatch: Any) -> None:
    disk_cache.write("loop", CODE)

    def refused(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    for name in ("utime", "mkdir", "unlink", "replace", "link"):
        monkeypatch.setattr(os, name, refused)
    assert read_in_silence() == CODE
    disk_cache.write("loop_2", CODE)
    assert read_in_silence("loop_2") is None


def test_without_a_home_nothing_is_stored(monkeypatch: Any) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("CHAINRULE_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    disk_cache.write("loop", CODE)
    assert read_in_silence() is None


def test_a_file_system_without_links(folder: Path, monkeypatch: Any) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refused)
    disk_cache.write("loop", CODE)
    assert read_in_silence() == CODE


@posix
def test_processes_that_make_the_key_and_files_at_once(folder: Path) -> None:
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for i in range(8):
                    disk_cache.write(f"loop_{number}_{i}", CODE)
                    disk_cache.write("loop", CODE)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    for number in range(4):
        for i in range(8):
            assert read_in_silence(f"loop_{number}_{i}") == CODE
    assert read_in_silence() == CODE
    assert not list(folder.glob("*.draft"))


def test_where_files_have_no_owners_paths_are_used(folder: Path, monkeypatch: Any) -> None:
    """As on Windows."""
    monkeypatch.setattr(disk_cache, "_HAS_OWNERS", False)
    monkeypatch.setattr(os, "kill", None)  # it would end the process there
    disk_cache.write("loop", CODE)
    (folder / f"loop.{os.getpid()}.1.draft").write_bytes(b"half")
    disk_cache.write("loop", CODE)
    assert read_in_silence() == CODE
    (folder / "loop").write_bytes(b"?" * 99)
    with pytest.warns(UserWarning, match="damaged"):
        assert disk_cache.read("loop") is None
