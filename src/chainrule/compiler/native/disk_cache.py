"""Disk cache of machine code, so that a loop is compiled once and not in each process.

Object code is stored in the user's cache folder, under a hash of the source, the compiler versions
and the processor. The environment variable ``CHAINRULE_CACHE`` names another folder; if empty,
nothing is stored. Files that cannot be read or are corrupt are ignored. The folder is accessible to
its user only: whoever can write to it can have code run, as with `__pycache__`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from chainrule.compiler.native import jit

_DIGEST = hashlib.sha256().digest_size


def cache_folder() -> Path | None:
    """Return the cache folder, or None if caching is disabled."""
    chosen = os.environ.get("CHAINRULE_CACHE")
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    try:
        home = Path.home()
    except RuntimeError:  # the user has no home
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "chainrule" / "native"


def read(name: str) -> bytes | None:
    """Return the code stored under a name, or None if it is missing or corrupt."""
    directory = cache_folder()
    try:
        content = b"" if directory is None else (directory / name).read_bytes()
    except OSError:
        return None
    code = content[_DIGEST:]
    return code if code and _digest(name, code) == content[:_DIGEST] else None


def write(name: str, code: bytes) -> None:
    """Store code under a name, if possible."""
    directory = cache_folder()
    if directory is None:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = directory / f"{name}.{os.getpid()}.{threading.get_native_id()}.draft"
        try:
            draft.write_bytes(_digest(name, code) + code)
            draft.replace(directory / name)  # atomic: other processes see a complete file or none
        except BaseException:  # also an interrupt
            draft.unlink(missing_ok=True)
            raise
    except OSError:  # disk full, or no permission
        return


def _digest(name: str, code: bytes) -> bytes:
    """Return the digest of a file, which includes the name, so that files can't be swapped."""
    return hashlib.sha256(name.encode() + code).digest()


@functools.cache
def environment_key() -> bytes:
    """Return the part of the cache key that does not depend on the source of a loop."""
    versions = [_version_key("numba"), _version_key("llvmlite")]
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    parts = [
        *versions,
        sys.platform,
        platform.machine(),
        jit.ARRAY_DATA_OFFSET,
        _processor_key(),
        settings,
    ]
    return repr(parts).encode() + b"".join(path.read_bytes() for path in compiled_sources())


def compiled_sources() -> list[Path]:
    """Return the files of the modules that are compiled into loops or compile them."""
    # Paths, since importing some of these would import Numba.
    names = ("gemm_microkernel", "jit", "threads/atomics", "threads/worker", "vector_math")
    return [Path(__file__).parent / f"{name}.py" for name in names]


def _version_key(package: str) -> bytes:
    """Return the version file of a package, without importing it.

    `importlib.metadata` would load a megabyte of modules.
    """
    found = find_spec(package)
    if found is None or found.origin is None:
        return b""
    try:
        return Path(found.origin).with_name("_version.py").read_bytes()
    except OSError:  # installed in another way
        return b""


def _processor_key() -> str:
    """Return the model and the features of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        from llvmlite import binding

        return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    first, _, _ = text.partition("\n\n")
    stable = ("vendor", "cpu family", "model", "stepping", "flags", "CPU ", "Features")
    return "\n".join(row for row in first.splitlines() if row.startswith(stable))
