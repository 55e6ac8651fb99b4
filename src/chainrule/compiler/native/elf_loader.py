"""Object code as a function of this process, without the compiler that made it.

LLVM and Numba take a hundred megabytes and half a second to load, so what is read from disk does
without them where that is easy: on Linux and x86-64, a section of an object file is copied into
fresh memory and a handful of references are filled in. Elsewhere, LLVM's own loader does it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_HEADER = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian
_X86_64 = 62
_CODE, _RELOCATIONS, _EMPTY = 1, 4, 8  # kinds of sections; the code's and the constants' are one
_ALLOCATED = 2
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2  # in the place of a symbol's section
_SLOT = 16  # bytes for an address, and a jump to it or a variable
_FASTCALL = 0x80


class LinkError(Exception):
    """Object code asks for what isn't known here."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


def function_of(code: bytes, name: str) -> Callable[..., None]:
    """Return a function of object code, which takes Python's objects as C functions do."""
    try:
        memory, address = _linked(code, name)
    except LinkError:
        memory, address = _loaded_by_llvm(code, name)
    return _callable(address, memory)


class _Method(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


def _callable(address: int, memory: Any) -> Callable[..., None]:
    """Return what calls a C function with an array of objects; it keeps the memory."""
    method = _Method(b"loop", address, _FASTCALL, None)
    name, objects = "PyCFunction_NewEx", (ctypes.py_object, ctypes.py_object)
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Method), *objects)
    new = kind((name, ctypes.pythonapi))
    function: Callable[..., None] = new(ctypes.byref(method), (method, memory), None)
    return function


# --- by ourselves ---------------------------------------------------------------------------------


def _linked(code: bytes, name: str) -> tuple[Any, int]:
    """Return memory that holds object code, and the address of a function."""
    if not (hasattr(mmap, "PROT_READ") and code.startswith(_HEADER)):
        raise LinkError("not an object of Linux")
    if struct.unpack_from("<H", code, 18)[0] != _X86_64:
        raise LinkError("not an object of x86-64")
    return _Image(code).linked(name)


class _Image:
    """An object file, and where its sections and symbols are to be."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        (start,) = struct.unpack_from("<Q", code, 40)
        count, names = struct.unpack_from("<HH", code, 60)
        self.sections = [
            _Section(*struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * i)) for i in range(count)
        ]
        self.names = self.sections[names]
        self.places: dict[int, int] = {}  # of sections, from the beginning of memory
        self.slots: dict[int, int] = {}  # of symbols' addresses
        self.size = 0
        for number, section in enumerate(self.sections):
            held = section.flags & _ALLOCATED and section.kind in (_CODE, _EMPTY)
            if held and self._text(self.names, section.name) != ".eh_frame":  # nothing is thrown
                self.places[number] = self._room(section.size, section.alignment)
        self.symbols = [_Symbol(*row) for row in self._rows(2, "<IBBHQQ")]
        (self.strings,) = [self.sections[s.link] for s in self.sections if s.kind == 2]

    def _text(self, table: _Section, position: int) -> str:
        begin = table.offset + position
        return self.code[begin : self.code.index(b"\0", begin)].decode()

    def _rows(self, kind: int, form: str) -> Iterator[tuple[int, ...]]:
        for section in self.sections:
            if section.kind == kind:
                end = section.offset + section.size
                yield from struct.iter_unpack(form, self.code[section.offset : end])

    def _room(self, size: int, alignment: int) -> int:
        place = -(-self.size // max(alignment, 1)) * max(alignment, 1)
        self.size = place + size
        return place

    def linked(self, name: str) -> tuple[Any, int]:
        """Return memory with the code in it, and the address of a function."""
        needed = [
            (section.info, *row)
            for section in self.sections
            if section.kind == _RELOCATIONS and section.info in self.places
            for row in struct.iter_unpack(
                "<QQq", self.code[section.offset : section.offset + section.size]
            )
        ]
        for _, _, info, _ in needed:
            if self.symbols[info >> 32].section in (_UNDEFINED, _COMMON):
                self.slots.setdefault(info >> 32, self._room(_SLOT, 16))
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        memory = mmap.mmap(-1, max(self.size, 1), private, mmap.PROT_READ | mmap.PROT_WRITE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for number, place in self.places.items():
            section = self.sections[number]
            if section.kind == _CODE:
                end = section.offset + section.size
                memory[place : place + section.size] = self.code[section.offset : end]
        for number, place in self.slots.items():
            self._fill(memory, base, place, self.symbols[number])
        for number, offset, info, addend in needed:
            self._relocate(memory, base, self.places[number] + offset, info, addend)
        _make_executable(base, self.size)
        for symbol in self.symbols:
            if self._text(self.strings, symbol.name) == name:
                return memory, base + self.places[symbol.section] + symbol.value
        raise LinkError(f"there is no {name}")

    def _fill(self, memory: Any, base: int, place: int, symbol: _Symbol) -> None:
        """Write a symbol's address, and behind it a jump to it, or what has that address."""
        if symbol.section == _UNDEFINED:
            address = address_of(self._text(self.strings, symbol.name))
            struct.pack_into("<Q6s", memory, place, address, b"\xff\x25\xf2\xff\xff\xff")
        elif symbol.size <= _SLOT - 8:
            struct.pack_into("<Q", memory, place, base + place + 8)
        else:
            raise LinkError(f"a variable of {symbol.size} bytes")

    def _relocate(self, memory: Any, base: int, place: int, info: int, addend: int) -> None:
        """Fill in one reference to a symbol, as the System V ABI of x86-64 says."""
        kind, number = info & 0xFFFFFFFF, info >> 32
        symbol, slot = self.symbols[number], self.slots.get(number)
        if kind in (9, 41, 42) and slot is not None:  # GOTPCREL: where the address stands
            target = slot
        elif kind in (2, 4) and slot is not None:  # PC32, PLT32: the jump, or the variable
            target = slot + 8
        elif kind in (2, 4) and symbol.section in self.places:
            target = self.places[symbol.section] + symbol.value
        elif kind == 1 and symbol.section in self.places:  # an address of 64 bits
            value = base + self.places[symbol.section] + symbol.value + addend
            return struct.pack_into("<Q", memory, place, value)
        else:
            raise LinkError(f"a reference of kind {kind}")
        return struct.pack_into("<i", memory, place, target + addend - place)


def _make_executable(address: int, size: int) -> None:
    change = ctypes.CDLL(None, use_errno=True).mprotect
    change.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if change(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise LinkError("memory for code is not to be had")


def address_of(name: str) -> int:
    """Return where a function of Python's or of C's mathematics is."""
    for library in _libraries():
        found = getattr(library, name, None)
        if found is not None:
            return ctypes.cast(found, ctypes.c_void_p).value or 0
    raise LinkError(f"{name} is unknown")


@functools.cache
def _libraries() -> list[Any]:
    found: list[Any] = [ctypes.pythonapi]
    for name in (None, "libm.so.6"):
        try:
            found.append(ctypes.CDLL(name))
        except (OSError, TypeError):  # another system's
            continue
    return found


# --- by LLVM --------------------------------------------------------------------------------------


def _loaded_by_llvm(code: bytes, name: str) -> tuple[Any, int]:
    from llvmlite import binding

    engine = _engine()
    numbers = ("PyLong_AsSsize_t", "PyFloat_AsDouble")
    threads = ("PyEval_SaveThread", "PyEval_RestoreThread", "PyThread_acquire_lock")
    for symbol in (*numbers, *threads, "Py_IncRef"):
        binding.add_symbol(symbol, address_of(symbol))
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(name)
    if not address:
        raise LinkError(f"there is no {name}")
    return engine, address


@functools.cache
def _engine() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
