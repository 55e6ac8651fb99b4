"""Programs on the disk, so that a later process need not optimise and emit what it has traced.

The file of a program has what a call of it needs: the source that Python runs, tables, constants,
and the names of the files of machine code. Its name is a hash of the traced program and of all else
that passes and emitters read, so that a file serves equal programs alone; the disk cache sees to it
that nobody else has written it. A program has no file if something runs slower than its form
promises, since that has to be told.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import chainrule
from chainrule.compiler.codegen.run import Runnable
from chainrule.compiler.ir.encoding import (
    decoded,
    decoded_array,
    encoded,
    encoded_array,
    encoded_dtype,
)
from chainrule.compiler.ir.program import Program, every_op
from chainrule.compiler.native import disk_cache, jit
from chainrule.compiler.native.code import Code, MissingError, StoredCode
from chainrule.compiler.native.compile_cost import budget_ms
from chainrule.compiler.native.gemm import Plan, Product, kernel_for, registers
from chainrule.compiler.native.layout import Products
from chainrule.compiler.native.parts_call import LoopCall, PartsCall
from chainrule.compiler.native.threads.tasks import Task
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


_PACKAGES = ("backend", "blas", "compiler", "kernels")


# --- files ----------------------------------------------------------------------------------------


def write(name: str, call: Call) -> None:
    """Store what a call needs, if possible."""
    program: Any = None  # a reader has its own
    given = call._replace(program=program) if isinstance(call, WholeCall) else call
    try:
        content = marshal.dumps((type(call).__name__, _packed(tuple(given))))
    except (TypeError, ValueError):  # a setting that is not plain
        return
    disk_cache.write(name, content)


def read(name: str, program: Callable[[], Program]) -> Run | None:
    """Return the function on arrays that was stored under a name, None if parts are missing.

    NumPy computes `program` where machine code cannot.
    """
    content = disk_cache.read(name)
    if content is None:
        return None
    kind, data = marshal.loads(content)
    fields = _unpacked(data)
    call: Call
    if kind == WholeCall.__name__:
        call = WholeCall(*fields)._replace(program=program)
    else:
        source, loops, *rest = fields
        call = PartsCall(Runnable(*source), [LoopCall(*loop) for loop in loops], *rest)
    try:
        return call.runner([code.function() for code in call.codes])
    except MissingError:
        return None


def _packed(item: Any) -> Any:
    """Return an object as plain data; a tuple has a word in front that says how to read it."""
    match item:
        case None | bool() | int() | float() | str():
            return item
        case list():
            return [_packed(part) for part in item]
        case dict():
            return {name: _packed(part) for name, part in item.items()}
        case tuple():
            return ("tuple", *map(_packed, item))
        case np.ndarray():
            return "array", encoded_array(item)
        case np.dtype():
            return "dtype", encoded_dtype(item)
        case Program():
            return "program", encoded(item)
        case Code():
            return "code", item.name, item.types, item.parallel
        case Task():
            return "task", item.code.name, item.code.types
        case Products():
            parts = [(task.code.types[0], tuple(plan)) for task, plan in item.parts]
            return "products", parts, item.parallel_work
        case Product():
            shapes = (*item.stack, item.rows, item.depth), (*item.stack, item.depth, item.columns)
            return "product", *shapes, encoded_dtype(item.dtype)
    raise TypeError(f"can't store {type(item)}")


def _unpacked(data: Any) -> Any:
    """Return the object of plain data."""
    kind = type(data)
    if kind is list:
        return [_unpacked(part) for part in data]
    if kind is dict:
        return {name: _unpacked(part) for name, part in data.items()}
    return _READERS[data[0]](*data[1:]) if kind is tuple else data


@functools.lru_cache(512)
def _stored_code(name: str, types: tuple[str, ...], parallel: bool) -> StoredCode:
    """Return machine code on the disk, which programs share."""
    return StoredCode(name, types, parallel)


def _products(parts: Any, parallel_work: int) -> Products:
    found, blocking = Products(), registers()
    assert blocking is not None  # a part of the key
    found.parts = [(kernel_for(code, blocking).task, Plan(*plan)) for code, plan in parts]
    found.parallel_work = parallel_work
    return found


def _product(a: Any, b: Any, dtype: str) -> Product:
    blocking = registers()
    assert blocking is not None
    return Product(a, b, dtype, blocking)


_READERS: dict[str, Callable[..., Any]] = {
    "tuple": lambda *parts: tuple(map(_unpacked, parts)),
    "array": decoded_array,
    "dtype": np.dtype,
    "program": decoded,
    "code": _stored_code,
    "task": lambda name, types: Task.of(_stored_code(name, types, True)),
    "products": _products,
    "product": _product,
}
