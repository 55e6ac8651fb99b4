"""Loader of object code into this process, without LLVM where possible.

LLVM takes a hundred megabytes and a tenth of a second to load. On Linux and x86-64, cached code
does without them: the sections of the object file are copied into memory and a handful of
relocations are applied. Elsewhere, LLVM's loader is used.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_ELF_HEADER = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian
_X86_64 = 62
_PROGBITS, _RELOCATIONS, _NOBITS = 1, 4, 8  # section types
_ALLOC_FLAG = 2
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2  # special section indices of symbols
_SLOT_BYTES = 16  # an address, and a jump to it or a variable
_FASTCALL = 0x80


_MAX_BYTES = 1 << 28
"""Largest memory of a loaded object, in bytes."""


class LinkError(Exception):
    """The object code cannot be linked here."""


class DamagedError(LinkError):
    """The object code is damaged, or needs what is not here: LLVM's loader might end the process.

    Code that was compiled just now, in a process with LLVM, can be given to it all the same.
    """


_FOREIGN = DamagedError if sys.platform == "linux" and platform.machine() == "x86_64" else LinkError


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


def function_of(code: bytes, name: str, *, fresh: bool = True) -> Callable[..., None]:
    """Return a function of object code as a built-in Python function.

    Raise DamagedError where code that is not `fresh`, but from a file, cannot be linked.
    """
    try:
        memory, address = _link(code, name)
    except LinkError as error:
        if isinstance(error, DamagedError) and not fresh:
            raise
        memory, address = _load_with_llvm(code, name)
    return _make_callable(address, memory)


class _MethodDef(ctypes.Structure):
    """CPython's `PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


def _make_callable(address: int, memory: Any) -> Callable[..., None]:
    """Return a Python function that calls a C function, and keeps its memory alive."""
    method = _MethodDef(b"loop", address, _FASTCALL, None)
    name, objects = "PyCFunction_NewEx", (ctypes.py_object, ctypes.py_object)
    kind = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_MethodDef), *objects)
    new = kind((name, ctypes.pythonapi))
    function: Callable[..., None] = new(ctypes.byref(method), (method, memory), None)
    return function


# --- our own linker -------------------------------------------------------------------------------


def _link(code: bytes, name: str) -> tuple[Any, int]:
    """Return memory that holds linked object code, and the address of a function."""
    if not (hasattr(mmap, "PROT_READ") and code.startswith(_ELF_HEADER)):
        raise _FOREIGN("not an object of Linux")
    try:
        if struct.unpack_from("<H", code, 18)[0] != _X86_64:
            raise _FOREIGN("not an object of x86-64")
        return _Image(code).link(name)
    except (struct.error, IndexError, KeyError, ValueError, OverflowError) as error:
        raise DamagedError(f"the object is damaged: {error}") from error
    except (OSError, MemoryError) as error:
        raise LinkError(f"there is no memory: {error}") from error


class _Image:
    """An object file, and the offsets of its sections and symbols in memory."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        (start,) = struct.unpack_from("<Q", code, 40)
        count, names = struct.unpack_from("<HH", code, 60)
        self.sections = [
            _Section(*struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * i)) for i in range(count)
        ]
        self.names = self.sections[names]
        self.offsets: dict[int, int] = {}  # of sections in memory
        self.slots: dict[int, int] = {}  # offsets of external symbols
        self.size = 0
        for number, section in enumerate(self.sections):
            is_loaded = section.flags & _ALLOC_FLAG and section.kind in (_PROGBITS, _NOBITS)
            if (
                is_loaded and self._text(self.names, section.name) != ".eh_frame"
            ):  # for exceptions, which are not used
                self.offsets[number] = self._reserve(section.size, section.alignment)
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

    def _reserve(self, size: int, alignment: int) -> int:
        position = -(-self.size // max(alignment, 1)) * max(alignment, 1)
        self.size = position + size
        if alignment > mmap.PAGESIZE or self.size > _MAX_BYTES:
            raise DamagedError(f"a section of {size} bytes at multiples of {alignment}")
        return position

    def link(self, name: str) -> tuple[Any, int]:
        """Return memory that holds the linked code, and the address of a function."""
        relocations = [
            (section.info, *row)
            for section in self.sections
            if section.kind == _RELOCATIONS and section.info in self.offsets
            for row in struct.iter_unpack(
                "<QQq", self.code[section.offset : section.offset + section.size]
            )
        ]
        for _, _, info, _ in relocations:
            if self.symbols[info >> 32].section in (_UNDEFINED, _COMMON):
                self.slots.setdefault(info >> 32, self._reserve(_SLOT_BYTES, 16))
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        memory = mmap.mmap(-1, max(self.size, 1), private, mmap.PROT_READ | mmap.PROT_WRITE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for number, position in self.offsets.items():
            section = self.sections[number]
            if section.kind == _PROGBITS:
                end = section.offset + section.size
                memory[position : position + section.size] = self.code[section.offset : end]
        for number, position in self.slots.items():
            self._fill_slot(memory, base, position, self.symbols[number])
        for number, offset, info, addend in relocations:
            self._relocate(memory, base, self.offsets[number] + offset, info, addend)
        _make_executable(base, self.size)
        for symbol in self.symbols:
            if self._text(self.strings, symbol.name) == name:
                if symbol.value >= self.sections[symbol.section].size:
                    raise DamagedError(f"{name} is outside of its section")
                return memory, base + self.offsets[symbol.section] + symbol.value
        raise DamagedError(f"there is no {name}")

    def _fill_slot(self, memory: Any, base: int, position: int, symbol: _Symbol) -> None:
        """Write the address of a symbol, followed by a jump to it or by the variable itself."""
        if symbol.section == _UNDEFINED:
            address = address_of(self._text(self.strings, symbol.name))
            struct.pack_into("<Q6s", memory, position, address, b"\xff\x25\xf2\xff\xff\xff")
        elif symbol.size <= _SLOT_BYTES - 8:
            struct.pack_into("<Q", memory, position, base + position + 8)
        else:
            raise DamagedError(f"a variable of {symbol.size} bytes")

    def _relocate(self, memory: Any, base: int, position: int, info: int, addend: int) -> None:
        """Apply one relocation, as defined by the System V ABI of x86-64."""
        kind, number = info & 0xFFFFFFFF, info >> 32
        symbol, slot = self.symbols[number], self.slots.get(number)
        if kind in (9, 41, 42) and slot is not None:  # GOTPCREL: the slot of the address
            target = slot
        elif kind in (2, 4) and slot is not None:  # PC32, PLT32: the jump, or the variable
            target = slot + 8
        elif kind in (2, 4) and symbol.section in self.offsets:
            target = self.offsets[symbol.section] + symbol.value
        elif kind == 1 and symbol.section in self.offsets:  # 64: an absolute address
            value = base + self.offsets[symbol.section] + symbol.value + addend
            return struct.pack_into("<Q", memory, position, value)
        else:
            raise DamagedError(f"a relocation of type {kind}")
        return struct.pack_into("<i", memory, position, target + addend - position)


def _make_executable(address: int, size: int) -> None:
    change = ctypes.CDLL(None, use_errno=True).mprotect
    change.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if change(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        raise LinkError("memory cannot be made executable")


def address_of(name: str) -> int:
    """Return the address of a function of CPython or libm."""
    for library in _libraries():
        with contextlib.suppress(AttributeError):
            return ctypes.cast(library[name], ctypes.c_void_p).value or 0
    raise DamagedError(f"{name} is unknown")


@functools.cache
def _libraries() -> list[Any]:
    found: list[Any] = [ctypes.pythonapi]
    for name in (None, "libm.so.6"):
        try:
            found.append(ctypes.CDLL(name))
        except (OSError, TypeError):  # another system
            continue
    return found


# --- LLVM's loader --------------------------------------------------------------------------------


def _load_with_llvm(code: bytes, name: str) -> tuple[Any, int]:
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
