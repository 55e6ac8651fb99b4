"""Machine code on disk, so that a loop is compiled once and not in each process.

A loop's source is written to a file of its own in the user's cache folder, named by what it is made
of, and Numba keeps the machine code beside it, by its own version, Python's and the processor. The
variable ``CHAINRULE_CACHE`` names another folder; empty, nothing is kept. What can't be written
or read is compiled anew.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

from chainrule.compiler.native import elementary


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


def source_file(text: str) -> Path | None:
    """Return a file that holds a loop's source, or None if there can't be one."""
    place = folder()
    if place is None:
        return None
    digest = hashlib.sha256(text.encode() + _surroundings()).hexdigest()[:32]
    file = place / f"loop_{digest}.py"
    try:
        if not file.exists():
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = place / f"{digest}.{os.getpid()}.draft"
            draft.write_text(text, encoding="utf-8")
            draft.replace(file)  # at once: other processes see all of it, or nothing
        return file if os.access(place, os.W_OK) else None
    except OSError:
        return None


@functools.cache
def _surroundings() -> bytes:
    """Return what machine code depends on besides its source, and Numba doesn't look at."""
    return Path(elementary.__file__).read_bytes()


def unfailing(dispatcher: Any) -> Any:
    """Have Numba go on without the disk where that fails."""
    cache = dispatcher._cache
    for method in ("load_overload", "save_overload"):
        setattr(cache, method, _suppressed(getattr(cache, method)))
    return dispatcher


def _suppressed(function: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception:  # no room, no right, a file that is cut off or of another make
            return None

    return call
