"""Files: binary sources of known size, atomic replacement, and checksums of data."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np

from chainrule.errors import ArgumentTypeError, FormatError

FileLike = Any  # str, os.PathLike, or a binary file object

_CHUNK = 1 << 19
"""Bytes that are read and summed at once: few enough to stay in the processor's cache."""


def checksum(data: memoryview) -> int:
    """Return the sum of the 64-bit words of some bytes, modulo 2**64.

    It finds every flipped bit and blocks of zeros, and costs a tenth of reading a file from memory;
    CRC-32 costs more than the reading (measured at 256 MB: 14 ms against 100 ms).
    """
    end = len(data) & ~7
    words = np.frombuffer(data[:end], "<u8")
    tail = int.from_bytes(data[end:], "little")
    return (int(words.sum(dtype=np.uint64)) + tail) & 0xFFFF_FFFF_FFFF_FFFF


def bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    """Return the memory of a C-contiguous array."""
    return array.reshape(-1).view(np.uint8).data


class Source:
    """A binary file that can be positioned, from where it stands to its end."""

    def __init__(self, file: BinaryIO) -> None:
        self._file: Any = file  # whose type in `typing` has no `readinto`
        self._start = file.tell()
        self.size = file.seek(0, io.SEEK_END) - self._start
        self.seek(0)

    def seek(self, position: int) -> None:
        """Go to a position."""
        self._file.seek(self._start + position)

    def tell(self) -> int:
        """Return the position."""
        position: int = self._file.tell() - self._start
        return position

    def read(self, count: int) -> bytes:
        """Return the next bytes, or raise a FormatError if there are not so many."""
        if not 0 <= count <= self.size - self.tell():
            raise FormatError(f"cr.load: the file is truncated: it ends within {count:,} bytes")
        found = bytearray(count)
        self._read_exactly(memoryview(found))
        return bytes(found)

    def read_into(self, array: np.ndarray[Any, Any]) -> int:
        """Fill a C-contiguous array with the next bytes; return their checksum."""
        data = bytes_of(array)
        total = 0
        for begin in range(0, len(data), _CHUNK):
            part = data[begin : begin + _CHUNK]
            self._read_exactly(part)
            total += checksum(part)
        return total & 0xFFFF_FFFF_FFFF_FFFF

    def _read_exactly(self, data: memoryview) -> None:
        while data:
            count = self._file.readinto(data)
            if not count:
                raise FormatError("cr.load: the file is truncated: it became shorter while read")
            data = data[count:]

    @property
    def file(self) -> BinaryIO:
        """The file, for a reader that positions it itself."""
        file: BinaryIO = self._file
        return file


@contextmanager
def opened(f: FileLike) -> Iterator[Source]:
    """Open a path or take a binary file object, for reading."""
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb", buffering=0) as file:
            yield Source(_positioned(file))
        return
    _check_binary("cr.load", f, "read", "rb")
    yield Source(_positioned(f))


def _positioned(file: Any) -> BinaryIO:
    """Return the file itself, or all that is left in one that can't be positioned, as a pipe."""
    if hasattr(file, "readinto"):
        with suppress(AttributeError, OSError, ValueError):
            start = file.tell()
            file.seek(0, io.SEEK_END)
            file.seek(start)
            found: BinaryIO = file
            return found
    return io.BytesIO(file.read())


def _check_binary(operation: str, f: Any, method: str, mode: str) -> None:
    if isinstance(f, io.TextIOBase):
        raise ArgumentTypeError(f"{operation}: the file is open for text: say open(path, {mode!r})")
    if not hasattr(f, method):
        order = ": what is saved comes first, cr.save(obj, path)" if method == "write" else ""
        raise ArgumentTypeError(
            f"{operation}: f must be a path or a binary file object, got {type(f).__name__}{order}"
        )


@contextmanager
def written(f: FileLike) -> Iterator[BinaryIO]:
    """Open for writing: a path appears, or is replaced, when all is written and on the disk.

    The bytes go to a temporary file in the same folder, which is renamed at the end: an error, an
    interrupt or a power failure leaves the former file as it was.
    """
    if not isinstance(f, (str, os.PathLike)):
        _check_binary("cr.save", f, "write", "wb")
        yield f
        return
    target = os.path.realpath(os.fsdecode(f))  # a symbolic link stays one
    folder = os.path.dirname(target)
    if os.path.exists(target) and not os.path.isfile(target):  # a pipe, a device
        with open(target, "wb", buffering=0) as file:
            yield file
        return
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "cr.save: no such folder, make it first", folder)
    temporary = os.path.join(folder, f".chainrule-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb", buffering=0) as file:
            yield file
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Put the new name on the disk, where folders can be opened (not on Windows)."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_all(file: BinaryIO, data: memoryview | bytes) -> None:
    """Write bytes, in as many pieces as the file takes."""
    rest = memoryview(data)
    while rest:
        count = file.write(rest)
        rest = rest[len(rest) if count is None else count :]
