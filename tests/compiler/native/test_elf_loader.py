"""Loading of object code by our own linker, and by LLVM."""

from __future__ import annotations

import gc
import platform
import random
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from chainrule.compiler.native import elf_loader, jit

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

TEXT = """
def loop(start, stop, x, table, y):
    for i in range(u8(start), u8(stop)):
        y[i] = exp_f8(x[i]) + np.sin(x[i]) ** f8(1.5) + f8(table[i])
"""


@pytest.fixture(scope="module")
def code() -> bytes:
    return jit.object_code(TEXT, ("n", "n", "f8", "b1", "f8"), True, "sums")


def test_long_loops_are_interleaved(code: bytes) -> None:
    types = ("n", "n", "f8", "b1", "f8")
    short = jit.object_code(TEXT, types, False, "sums")
    assert len(code) > len(short)
    check(elf_loader.function_of(short, "sums"))


LOOPS = """
def loop(x, y):
    for i in range(100):
        for j in range(i):
            found = 0
            for a in range(1, -1, -1):
                found += a * i
            y[u8(found)] = x[u8(j)]
"""


def test_long_loops_may_be_unrolled() -> None:
    """LLVM aborts the process if the metadata of unrolled loops are not nodes."""
    program = f"""
from chainrule.compiler.native import jit
print(len(jit.object_code({LOOPS!r}, ("f4", "f4"), True, "loops")) > 0)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert run.stdout.split() == [b"True"], run.stderr.decode()


def check(function: Any) -> None:
    x = np.linspace(0, 3, 1000)
    table, y = x > 2, np.zeros(1000)
    for _ in range(3):
        function(10, 990, x, table, y)
    wanted = np.exp(x) + np.sin(x) ** 1.5 + table
    np.testing.assert_allclose(y[10:990], wanted[10:990], rtol=1e-14)
    assert not y[:10].any()
    assert not y[990:].any()


here = sys.platform == "linux" and platform.machine() == "x86_64"


@pytest.mark.skipif(not here, reason="our linker supports Linux on x86-64 only")
def test_our_linker(code: bytes) -> None:
    memory, address = elf_loader._link(code, "sums")
    function = elf_loader._make_callable(address, memory)
    del memory
    gc.collect()  # the function keeps its memory alive
    check(function)
    again = elf_loader.function_of(code, "sums")
    del function
    gc.collect()
    check(again)


def test_llvms_loader(code: bytes) -> None:
    memory, address = elf_loader._load_with_llvm(code.replace(b"sums", b"past"), "past")
    check(elf_loader._make_callable(address, memory))


def test_other_objects_are_left_to_llvm() -> None:
    arm = b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xb7\0" + bytes(44)
    for foreign in (b"\xcf\xfa\xed\xfe", arm):
        with pytest.raises(elf_loader.LinkError, match="not an object of"):
            elf_loader._link(foreign, "sums")


@pytest.mark.skipif(not here, reason="our linker supports Linux on x86-64 only")
def test_missing_symbols_are_named(code: bytes) -> None:
    with pytest.raises(elf_loader.LinkError, match="there is no other"):
        elf_loader._link(code, "other")
    with pytest.raises(elf_loader.LinkError, match="six is unknown"):
        elf_loader._link(code.replace(b"\0sin\0", b"\0six\0"), "sums")


# --- damaged objects ------------------------------------------------------------------------------


def damaged(code: bytes) -> Iterator[bytes]:
    """Yield copies with one bit flipped, in headers and a sample of the rest, or cut short."""
    (start,) = struct.unpack_from("<Q", code, 40)
    (sections,) = struct.unpack_from("<H", code, 60)
    headers = [*range(64), *range(start, start + 64 * sections)]
    sample = random.Random(7).sample(range(len(code)), 100)
    for position in sorted({*headers, *sample}):
        for bit in range(8):
            copy = bytearray(code)
            copy[position] ^= 1 << bit
            yield bytes(copy)
    yield from (code[:length] for length in range(0, len(code), 41))


@pytest.mark.skipif(not here, reason="our linker supports Linux on x86-64 only")
def test_damaged_objects_are_linked_or_refused(code: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr(elf_loader, "_load_with_llvm", None)  # it might end the process
    refused = 0
    for copy in damaged(code):
        try:
            elf_loader.function_of(copy, "sums", fresh=False)  # which is not called
        except elf_loader.DamagedError:
            refused += 1
    assert refused > 100


@pytest.mark.skipif(not here, reason="our linker supports Linux on x86-64 only")
def test_huge_sections_take_no_memory(code: bytes) -> None:
    (start,) = struct.unpack_from("<Q", code, 40)
    (sections,) = struct.unpack_from("<H", code, 60)
    for field, value in ((32, 1 << 40), (32, (1 << 64) - 1), (48, 1 << 40)):  # size, alignment
        for number in range(sections):
            copy = bytearray(code)
            struct.pack_into("<Q", copy, start + 64 * number + field, value)
            (flags,) = struct.unpack_from("<Q", copy, start + 64 * number + 8)
            if flags & 2 and b".eh_frame" not in section_name(code, start, number):
                with pytest.raises(elf_loader.DamagedError):
                    elf_loader._link(bytes(copy), "sums")


def section_name(code: bytes, start: int, number: int) -> bytes:
    (index,) = struct.unpack_from("<H", code, 62)
    (names,) = struct.unpack_from("<Q", code, start + 64 * index + 24)
    (position,) = struct.unpack_from("<I", code, start + 64 * number)
    return code[names + position : names + position + 20].split(b"\0")[0]


def test_code_that_was_just_compiled_is_left_to_llvm_if_our_linker_fails(
    code: bytes, monkeypatch: Any
) -> None:
    def failing(*_: Any) -> Any:
        raise elf_loader.DamagedError("a relocation of type 99")

    monkeypatch.setattr(elf_loader, "_link", failing)
    check(elf_loader.function_of(code.replace(b"sums", b"news"), "news"))
    with pytest.raises(elf_loader.DamagedError):
        elf_loader.function_of(code, "sums", fresh=False)
