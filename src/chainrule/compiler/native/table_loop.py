"""The loop over a table of calls, in LLVM's language and in Python: see `call_tables`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.compiler.native.llvm_types import BITS, TYPES
from chainrule.compiler.native.scalar_codegen import CODES

OFFSET_BITS = 48
"""Bits of the word of an array that are its distance in bytes; the others say where it is."""

END = -1
"""The word after the last row."""

REPEAT = -2
"""The word before those of a jump: an array that counts, how often, and how many words back."""

ARRAY = "Array"
"""Name of the type of arrays in the source of kernels: `Array[f4]`."""

ELEMENT_TYPES = {code: dtype for dtype, code in CODES.items()} | {"u8": np.dtype(np.uint64)}
"""Types of numbers, and of the elements of arrays, in generated source."""


def kind_of(hint: str) -> str:
    """Return a type hint of a kernel's argument as a type: `*f4` of an array."""
    return f"*{hint[len(ARRAY) + 1 : -1]}" if hint.startswith(ARRAY) else hint


def add_table_loop(
    module: Any, symbol: str, kernels: dict[str, list[str]], argument_count: int
) -> None:
    """Add a function that calls kernels as a table says.

    Its arguments are the table, and arrays that rows name by their number. `kernels` has the types
    of the arguments of each kernel, whose numbers are in this order.
    """
    heads = "".join(f", ptr %a{i}" for i in range(argument_count))
    lines = [f"  %arrays = alloca [{argument_count or 1} x ptr]"]
    for i in range(argument_count):
        lines.append(f"  %p{i} = getelementptr inbounds ptr, ptr %arrays, i64 {i}")
        lines.append(f"  store ptr %a{i}, ptr %p{i}")
    nexts = "".join(f", [ %next{n}, %row{n} ]" for n in range(len(kernels)))
    cases = " ".join(f"i64 {n}, label %row{n}" for n in range(len(kernels)))
    lines += [
        "  br label %head",
        "head:",
        f"  %row = phi ptr [ %table, %0 ], [ %again, %repeat ]{nexts}",
        "  %kernel = load i64, ptr %row",
        f"  switch i64 %kernel, label %end [ i64 {REPEAT}, label %repeat {cases} ]",
        "end:",
        "  ret void",
        "repeat:",
        *(line for i in (1, 2, 3) for line in _load(f"%jump{i}", i)),
        *_array("%jump1", "%count"),
        "  %before = load i64, ptr %count",
        "  %now = add i64 %before, 1",
        "  store i64 %now, ptr %count",
        "  %is_done = icmp eq i64 %now, %jump2",
        "  %back = sub i64 0, %jump3",
        "  %distance = select i1 %is_done, i64 4, i64 %back",
        "  %again = getelementptr inbounds i64, ptr %row, i64 %distance",
        "  br label %head",
    ]
    for n, (name, kinds) in enumerate(kernels.items()):
        lines.append(f"row{n}:")
        arguments = []
        for i, kind in enumerate(kinds, 1):
            word, value = f"%word{n}_{i}", f"%value{n}_{i}"
            lines += _load(word, i)
            lines += _array(word, value) if kind[0] == "*" else _number(word, value, kind)
            arguments.append(f"{'ptr' if kind[0] == '*' else TYPES[kind]} {value}")
        lines.append(f"  call void @{name}({', '.join(arguments)})")
        lines.append(f"  %next{n} = getelementptr inbounds i64, ptr %row, i64 {len(kinds) + 1}")
        lines.append("  br label %head")
    head = f"define internal void @{symbol}(ptr %table{heads}) noinline nounwind"
    module.define(head, symbol, lines)


def _load(word: str, number: int) -> list[str]:
    """Return the instructions that read a word of the row."""
    at = f"  {word}_at = getelementptr inbounds i64, ptr %row, i64 {number}"
    return [at, f"  {word} = load i64, ptr {word}_at"]


def _array(word: str, value: str) -> list[str]:
    """Return the instructions that find an array."""
    mask = (1 << OFFSET_BITS) - 1
    return [
        f"  {word}_number = lshr i64 {word}, {OFFSET_BITS}",
        f"  {word}_place = getelementptr inbounds ptr, ptr %arrays, i64 {word}_number",
        f"  {word}_start = load ptr, ptr {word}_place",
        f"  {word}_offset = and i64 {word}, {mask}",
        f"  {value} = getelementptr inbounds i8, ptr {word}_start, i64 {word}_offset",
    ]


def _number(word: str, value: str, kind: str) -> list[str]:
    """Return the instructions that convert the bits of a word to a number."""
    bits, of = BITS[kind], TYPES[kind]
    if kind[0] != "f":
        return [f"  {value} = {'trunc' if bits < 64 else 'bitcast'} i64 {word} to {of}"]
    if bits == 64:
        return [f"  {value} = bitcast i64 {word} to {of}"]
    return [
        f"  {word}_bits = trunc i64 {word} to i{bits}",
        f"  {value} = bitcast i{bits} {word}_bits to {of}",
    ]


# --- in Python ------------------------------------------------------------------------------------


def run_table(table: Any, kernels: Sequence[Callable[..., None]], arrays: Sequence[Any]) -> None:
    """Run the rows of a table in Python, as machine code does."""
    kinds = [[*map(kind_of, kernel.__annotations__.values())] for kernel in kernels]
    words, row = table.tolist(), 0
    while (number := words[row]) != END:
        if number == REPEAT:
            array, length, distance = words[row + 1 : row + 4]
            count = _argument(array, "*u8", arrays)
            count[0] += np.uint64(1)
            row += 4 if count[0] == length else -distance
            continue
        given = zip(words[row + 1 :], kinds[number], strict=False)
        kernels[number](*[_argument(word, kind, arrays) for word, kind in given])
        row += 1 + len(kinds[number])


def _argument(word: int, kind: str, arrays: Sequence[Any]) -> Any:
    """Return the array or number that a word stands for."""
    dtype = ELEMENT_TYPES[kind.removeprefix("*")]
    if kind[0] == "*":
        array, offset = arrays[word >> OFFSET_BITS], word & ((1 << OFFSET_BITS) - 1)
        return array.view(np.uint8)[offset:].view(dtype)
    if dtype.kind != "f":
        return dtype.type(word)
    return np.array(word).astype(f"i{dtype.itemsize}").view(dtype)[()]
