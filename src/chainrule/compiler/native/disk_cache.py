"""Machine code on disk, so that a loop is compiled once and not in each process.

Object code is kept in the user's cache folder, named by all that it is made of: the source, the
versions of what compiled it, and the processor. The variable ``CHAINRULE_CACHE`` names another
folder; empty, nothing is kept. What can't be written or read, or isn't what was written, is
compiled anew. Code that somebody else writes on purpose is run, as Python runs what is in
`__pycache__`: the folder is made for its user alone.
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


def folder() -> Path | None:
    """Return where machine code is kept, or None."""
    chosen = os.environ.get("CHAINRULE_CACHE")
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    try:
        home = Path.home()
    except RuntimeError:  # nobody's
        return None
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "chainrule" / "native"


def read(name: str) -> bytes | None:
    """Return what is kept by a name, or None: also if the file isn't whole."""
    place = folder()
    try:
        content = b"" if place is None else (place / name).read_bytes()
    except OSError:
        return None
    code = content[_DIGEST:]
    return code if code and _digest(name, code) == content[:_DIGEST] else None


def write(name: str, code: bytes) -> None:
    """Keep code by a name, if that can be."""
    place = folder()
    if place is None:
        return
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = place / f"{name}.{os.getpid()}.{threading.get_native_id()}.draft"
        draft.write_bytes(_digest(name, code) + code)
        draft.replace(place / name)  # at once: other processes see all of it, or nothing
    except OSError:  # no room, or no right
        return


def _digest(name: str, code: bytes) -> bytes:
    """Return what a file begins with: code under the name of other code is not run."""
    return hashlib.sha256(name.encode() + code).digest()


@functools.cache
def surroundings() -> bytes:
    """Return what machine code depends on besides its source."""
    versions = [_version("numba"), _version("llvmlite")]
    settings = sorted(item for item in os.environ.items() if item[0].startswith("NUMBA_"))
    parts = [*versions, sys.platform, platform.machine(), jit.DATA, _processor(), settings]
    return repr(parts).encode() + b"".join(path.read_bytes() for path in compiled_sources())


def compiled_sources() -> list[Path]:
    """Return the modules that have a part in what is compiled, whatever a loop's own source is."""
    # Paths, since some of these would import Numba.
    names = ("gemm_microkernel", "jit", "threads/atomics", "threads/worker", "vector_math")
    return [Path(__file__).parent / f"{name}.py" for name in names]


def _version(package: str) -> bytes:
    """Return what a package says of its version, without importing it.

    `importlib.metadata` would bring a megabyte of modules.
    """
    found = find_spec(package)
    if found is None or found.origin is None:
        return b""
    try:
        return Path(found.origin).with_name("_version.py").read_bytes()
    except OSError:  # it came in another way
        return b""


def _processor() -> str:
    """Return what the processor is and can do."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        from llvmlite import binding

        return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    first, _, _ = text.partition("\n\n")
    lasting = ("vendor", "cpu family", "model", "stepping", "flags", "CPU ", "Features")
    return "\n".join(row for row in first.splitlines() if row.startswith(lasting))
