"""Atomic operations on 64-bit words and indirect calls, as instructions of LLVM."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING

from chainrule.compiler.native.llvm_types import TYPES, VOID, Typed, element_kind

if TYPE_CHECKING:
    from chainrule.compiler.native.llvm_expressions import ExpressionWriter

_RELAX = {  # the spin-wait hint of each architecture
    "x86_64": ("llvm.x86.sse2.pause", ""),
    "AMD64": ("llvm.x86.sse2.pause", ""),
    "aarch64": ("llvm.aarch64.hint", "i32 1"),
    "arm64": ("llvm.aarch64.hint", "i32 1"),
}.get(platform.machine())


def _word(function: ExpressionWriter, values: list[Typed]) -> str:
    """Return the address of the word that the first two arguments name."""
    words, i = values[0].text, function.convert(values[1], "i8").text
    return function.emit(f"getelementptr inbounds i64, ptr {words}, i64 {i}")


def _integer(function: ExpressionWriter, text: str) -> Typed:
    return Typed(function.emit(text), "i8")


def _load(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Load a word atomically."""
    word = _word(function, values)
    return _integer(function, f"load atomic i64, ptr {word} seq_cst, align 8")


def _store(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Store a word atomically."""
    word, value = _word(function, values), function.convert(values[2], "i8").text
    function.run(f"store atomic i64 {value}, ptr {word} seq_cst, align 8")
    return VOID


def _fetch_add(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Add to a word atomically, and return its old value."""
    word, step = _word(function, values), function.convert(values[2], "i8").text
    return _integer(function, f"atomicrmw add ptr {word}, i64 {step} seq_cst")


def _compare_exchange(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Replace a word atomically if it equals an old one, and return whether it did."""
    word = _word(function, values)
    old, new = (function.convert(value, "i8").text for value in values[2:])
    pair = function.emit(f"cmpxchg ptr {word}, i64 {old}, i64 {new} seq_cst seq_cst")
    return Typed(function.emit(f"extractvalue {{ i64, i1 }} {pair}, 1"), "b1")


def _relax(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Pause for some nanoseconds in a spin-wait."""
    if _RELAX is not None:
        name, argument = _RELAX
        function.module.declare(name, "void", *argument.split()[:1])
        function.run(f"call void @{name}({argument})")
    return VOID


def _sleep(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Acquire a lock of Python, sleeping until it is released."""
    function.module.declare("PyThread_acquire_lock", "i32", "ptr", "i32")
    lock = function.emit(f"inttoptr i64 {values[0].text} to ptr")
    function.emit(f"call i32 @PyThread_acquire_lock(ptr {lock}, i32 1)")
    return VOID


def _call(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Call a task by its address, for the iterations from start to stop."""
    task = function.emit(f"inttoptr i64 {values[0].text} to ptr")
    arguments = ", ".join(f"i64 {function.convert(value, 'i8').text}" for value in values[1:])
    function.run(f"call void {task}({arguments})")
    return VOID


def _address(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Return the address of an element of an array."""
    of, index = TYPES[element_kind(values[0].kind)], function.convert(values[1], "i8").text
    element = function.emit(f"getelementptr inbounds {of}, ptr {values[0].text}, i64 {index}")
    return _integer(function, f"ptrtoint ptr {element} to i64")


def _address_of_share(function: ExpressionWriter, values: list[Typed]) -> Typed:
    """Return the address of `worker.share` as a C function."""
    kinds = ["*i8", "i8", "i8", "i8", "i8"]
    share = function.module.helper("share", kinds)
    assert share is not None
    return _integer(function, f"ptrtoint ptr @{share[0]} to i64")


EMITTERS: dict[str, Callable[[ExpressionWriter, list[Typed]], Typed]] = {
    "load": _load,
    "store": _store,
    "fetch_add": _fetch_add,
    "compare_exchange": _compare_exchange,
    "relax": _relax,
    "sleep": _sleep,
    "call": _call,
    "address": _address,
    "address_of_share": _address_of_share,
}
"""The functions by their names in `worker`, each of which emits its instructions."""
