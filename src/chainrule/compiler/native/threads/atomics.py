"""Atomic operations on 64-bit words and indirect calls, as instructions of LLVM."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule.compiler.native.llvm_types import Typed

_RELAX = {  # the spin-wait hint of each architecture
    "x86_64": ("llvm.x86.sse2.pause", ""),
    "AMD64": ("llvm.x86.sse2.pause", ""),
    "aarch64": ("llvm.aarch64.hint", "i32 1"),
    "arm64": ("llvm.aarch64.hint", "i32 1"),
}.get(platform.machine())


def _word(function: Any, values: list[Typed]) -> str:
    """Return the address of the word that the first two arguments name."""
    words, i = values[0].text, function.convert(values[1], "i8").text
    return str(function.emit(f"getelementptr inbounds i64, ptr {words}, i64 {i}"))


def _integer(function: Any, text: str) -> Typed:
    value: Typed = function.typed(function.emit(text), "i8")
    return value


def _load(function: Any, values: list[Typed]) -> Typed:
    """Load a word atomically."""
    word = _word(function, values)
    return _integer(function, f"load atomic i64, ptr {word} seq_cst, align 8")


def _store(function: Any, values: list[Typed]) -> Typed:
    """Store a word atomically."""
    word, value = _word(function, values), function.convert(values[2], "i8").text
    function.run(f"store atomic i64 {value}, ptr {word} seq_cst, align 8")
    return values[0]


def _fetch_add(function: Any, values: list[Typed]) -> Typed:
    """Add to a word atomically, and return its old value."""
    word, step = _word(function, values), function.convert(values[2], "i8").text
    return _integer(function, f"atomicrmw add ptr {word}, i64 {step} seq_cst")


def _compare_exchange(function: Any, values: list[Typed]) -> Typed:
    """Replace a word atomically if it equals an old one, and return whether it did."""
    word = _word(function, values)
    old, new = (function.convert(value, "i8").text for value in values[2:])
    pair = function.emit(f"cmpxchg ptr {word}, i64 {old}, i64 {new} seq_cst seq_cst")
    found: Typed = function.typed(function.emit(f"extractvalue {{ i64, i1 }} {pair}, 1"), "b1")
    return found


def _relax(function: Any, values: list[Typed]) -> Typed:
    """Pause for some nanoseconds in a spin-wait."""
    if _RELAX is not None:
        name, argument = _RELAX
        function.module.declare(name, "void", *argument.split()[:1])
        function.run(f"call void @{name}({argument})")
    found: Typed = function.typed("", "void")
    return found


def _sleep(function: Any, values: list[Typed]) -> Typed:
    """Acquire a lock of Python, sleeping until it is released."""
    function.module.declare("PyThread_acquire_lock", "i32", "ptr", "i32")
    lock = function.emit(f"inttoptr i64 {values[0].text} to ptr")
    function.emit(f"call i32 @PyThread_acquire_lock(ptr {lock}, i32 1)")
    return values[0]


def _call(function: Any, values: list[Typed]) -> Typed:
    """Call a task by its address, for the iterations from start to stop."""
    task = function.emit(f"inttoptr i64 {values[0].text} to ptr")
    arguments = ", ".join(f"i64 {function.convert(value, 'i8').text}" for value in values[1:])
    function.run(f"call void {task}({arguments})")
    return values[0]


def _address_of_share(function: Any, values: list[Typed]) -> Typed:
    """Return the address of `worker.share` as a C function."""
    kinds = ["*i8", "i8", "i8", "i8", "i8"]
    symbol, _ = function.module.helper("share", kinds)
    return _integer(function, f"ptrtoint ptr @{symbol} to i64")


EMITTERS: dict[str, Callable[[Any, list[Typed]], Typed]] = {
    "load": _load,
    "store": _store,
    "fetch_add": _fetch_add,
    "compare_exchange": _compare_exchange,
    "relax": _relax,
    "sleep": _sleep,
    "call": _call,
    "address_of_share": _address_of_share,
}
"""The functions by their names in `worker`, each of which emits its instructions."""
