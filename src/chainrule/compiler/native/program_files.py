"""Programs on the disk, so that a later process need not optimise and emit what it has traced.

The file of a program has what a call of it needs: the source that Python runs, tables, constants,
and the names of the files of machine code. The name of the file is a hash of the traced program and
of all else that passes and emitters read, so that a file serves equal programs alone; the disk
cache sees to it that nobody else has written it. A program has no file if something runs slower
than its form promises, since that has to be told.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import chainrule
from chainrule.compiler.ir.encoding import encoded
from chainrule.compiler.ir.program import Program, every_op
from chainrule.compiler.native import disk_cache, jit
from chainrule.compiler.native.code import MissingError
from chainrule.compiler.native.compile_cost import budget_ms
from chainrule.compiler.native.gemm import registers
from chainrule.compiler.native.parts_call import PartsCall
from chainrule.compiler.native.whole_program import WholeCall
from chainrule.kernels.threads import get_num_threads

Run = Callable[..., Any]
Call = WholeCall | PartsCall

MIN_OPS = 64
"""Number of operations from which emission takes longer than a file."""

_MAX_CONSTANT_BYTES = 1 << 24
"""Largest size of all constants of a program that is kept."""


# --- keys -----------------------------------------------------------------------------------------


def key_of(program: Program, backend: str | None) -> str | None:
    """Return the name of a program's file; None if it is small, or can't be kept."""
    if sum(1 for _ in every_op(program.ops)) < MIN_OPS or not jit.is_installed():
        return None
    constants = sum(array.nbytes for array in program.constants.values())
    if constants > _MAX_CONSTANT_BYTES or disk_cache.cache_folder() is None:
        return None
    settings = repr((backend, budget_ms(), get_num_threads(), registers()))
    try:
        data = marshal.dumps((encoded(program), settings), 2)  # 2: equal data have equal bytes
    except (TypeError, ValueError, KeyError):  # not plain, or a value of another trace
        return None
    content = data + _environment()
    return f"loop_program_{hashlib.sha256(content).hexdigest()[:32]}"


@functools.cache
def _environment() -> bytes:
    """Return the part of keys that is the same for all programs of a process."""
    versions = (sys.version, np.__version__, disk_cache.version_key("scipy", "version.py"))
    digest = hashlib.sha256(repr(versions).encode() + disk_cache.environment_key())
    for path in sources():
        digest.update(path.name.encode() + path.read_bytes())
    return digest.digest()


def sources() -> list[Path]:
    """Return the files of which passes and emitters are made, and what they compute with."""
    root = Path(chainrule.__file__).parent
    return [path for name in _PACKAGES for path in sorted((root / name).rglob("*.py"))]


_PACKAGES = ("backend", "blas", "compiler", "kernels", "primitives")


# --- files ----------------------------------------------------------------------------------------


def write(name: str, call: Call) -> None:
    """Store what a call needs, if possible."""
    try:
        content = pickle.dumps(call)
    except (pickle.PicklingError, TypeError, AttributeError):  # an object of this process
        return
    disk_cache.write(name, content)


def read(name: str, program: Callable[[], Program]) -> Run | None:
    """Return the function on arrays that was stored under a name, None if parts are missing.

    NumPy computes `program` where machine code cannot. As with machine code, the content is the
    user's own: the disk cache has authenticated it.
    """
    content = disk_cache.read(name)
    if content is None:
        return None
    call: Call = pickle.loads(content)
    try:
        return call.runner([code.function() for code in call.codes], program)
    except MissingError:
        return None
