"""Files of ``torch.save``: zip archives, and the streams of pickles from before PyTorch 1.6.

Both hold a pickle, in which storages occur by persistent ids ``("storage", type, key, location,
numel)``, and the bytes of the storages. Formats: ``torch/serialization.py`` of PyTorch.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections import Counter, OrderedDict
from collections.abc import Callable
from math import prod
from typing import Any, BinaryIO

import numpy as np

from chainrule.backend import DTYPE_TITLES, device
from chainrule.errors import DeviceError, FormatError
from chainrule.io.files import Source, bytes_of
from chainrule.io.placement import Placement
from chainrule.io.safetensors import check_bools, from_bfloat16
from chainrule.io.unpickler import Allowed, Stream, checked_key, unpickle

Array = np.ndarray[Any, Any]

_DTYPES = DTYPE_TITLES | {
    "bfloat16": "BFloat16",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
}
"""PyTorch's dtypes, and the names of their storages."""

_LEGACY = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""The number that begins a file from before 1.6, as a pickle of protocol 2 or later ends with."""

_LEGACY_VERSION = 1001

HEAD = 32
"""Bytes at the beginning of a file by which its format is known."""

_CHUNK = 1 << 20


class _Dtype(str):
    """The name of a dtype, of a storage or as a value."""


class Storage:
    """The memory of tensors, as PyTorch saved it: bfloat16 as float32."""

    def __init__(self, dtype: str, numel: int, location: str) -> None:
        self.dtype = dtype
        self.location = location
        self.array: Array = np.empty(numel, _numpy_dtype(dtype))
        self._is_filled = False
        self._variants: dict[tuple[bool, bool], Array] = {}

    def raw(self) -> Array:
        """Return the array to fill with the bytes of the file, for `filled`."""
        return np.empty(self.array.size, np.uint16) if self.dtype == "bfloat16" else self.array

    def filled(self, raw: Array, big_endian: bool) -> None:
        """Take over the numbers of the file."""
        if big_endian:
            raw.byteswap(inplace=True)
        if self.dtype == "bfloat16":
            self.array[...] = from_bfloat16(raw)
        check_bools("a storage", self.array)
        self._is_filled = True

    def variant(self, conj: bool, neg: bool) -> Array:
        """Return the numbers conjugated or negated, as PyTorch does when they are needed."""
        if not conj and not neg:
            return self.array
        if not self._is_filled:
            raise FormatError(
                "cr.load: a tensor is conjugated or negated lazily: save it again in PyTorch, with "
                "tensor.resolve_conj().resolve_neg()"
            )
        if (conj, neg) not in self._variants:
            array = np.conj(self.array) if conj else self.array
            self._variants[conj, neg] = np.negative(array) if neg else array
        return self._variants[conj, neg]


def _numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype("float32" if name == "bfloat16" else name)


def _stored_size(dtype: str) -> int:
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


# --- files ----------------------------------------------------------------------------------------


def looks_like_zip(start: bytes) -> bool:
    """Return whether a file that begins so is a zip archive."""
    return start.startswith(b"PK\x03\x04")


def looks_like_legacy(start: bytes) -> bool:
    """Return whether a file that begins so is of PyTorch from before 1.6."""
    return start.startswith(b"\x80") and _LEGACY in start


def read_zip(source: Source, placement: Placement) -> Any:
    """Return the object in a zip archive of PyTorch."""
    try:
        with zipfile.ZipFile(source.file) as archive:
            return _Archive(archive, source.size).load(placement)
    except (FormatError, DeviceError):
        raise
    except (
        *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError),
        *(KeyError, IndexError, OverflowError, MemoryError),
    ) as error:
        raise FormatError(
            f"cr.load: this zip archive is damaged: {error}. Copy the file again, or save it again "
            "in PyTorch"
        ) from None


class _Archive:
    """The members of a zip archive, none of them compressed."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self._archive = archive
        infos = archive.infolist()
        self._members = {info.filename: info for info in infos}
        pickles = [name for name in self._members if name.endswith("data.pkl")]
        if len(pickles) != 1:
            raise FormatError(_not_pytorch(self._members))
        self._prefix = pickles[0].removesuffix("data.pkl")
        if self._prefix + "constants.pkl" in self._members:
            raise FormatError(
                "cr.load: this file is a TorchScript program: in PyTorch, "
                "torch.save(torch.jit.load(path).state_dict(), new_path)"
            )
        if len(self._members) < len(infos):
            raise FormatError("cr.load: two members of this zip archive have the same name")
        if any(info.compress_type or info.compress_size != info.file_size for info in infos):
            raise FormatError(
                "cr.load: this zip archive is compressed, PyTorch's are not: pack it without "
                "compression, or save it again in PyTorch"
            )
        if sum(info.file_size for info in infos) > size:
            raise FormatError("cr.load: members of this zip archive overlap")

    def load(self, placement: Placement) -> Any:
        """Return the object of the pickle."""
        data = self._archive.read(self._members[self._prefix + "data.pkl"])
        order = self._members.get(self._prefix + "byteorder")
        big_endian = order is not None and self._archive.read(order) == b"big"
        storages: dict[str, Storage] = {}

        def storage(key: str, dtype: str, numel: int, location: str) -> Storage:
            if key not in storages:
                info = self._members[f"{self._prefix}data/{key}"]
                if info.file_size != numel * _stored_size(dtype):
                    raise FormatError(
                        f"cr.load: the storage {key!r} of {numel:,} numbers of {dtype} has "
                        f"{info.file_size:,} bytes: the file is damaged"
                    )
                storages[key] = Storage(dtype, numel, location)
                raw = storages[key].raw()
                self._read_into(info, raw)
                storages[key].filled(raw, big_endian)
            return storages[key]

        stream = Stream(io.BytesIO(data), 0, len(data))
        return unpickle(stream, _Globals(placement).find, _persistent(storage))

    def _read_into(self, info: zipfile.ZipInfo, array: Array) -> None:
        data = bytes_of(array)
        with self._archive.open(info) as member:
            while data:
                part = member.read(min(len(data), _CHUNK))
                if not part:
                    raise FormatError(f"cr.load: {info.filename!r} is truncated")
                data[: len(part)] = part
                data = data[len(part) :]


def _not_pytorch(members: Any) -> str:
    if any(name.endswith(".npy") for name in members):
        return "cr.load: NumPy wrote this file: read it with numpy.load"
    if any(name.endswith("model.json") or name.endswith(".h5") for name in members):
        return "cr.load: Keras wrote this file: load it there, and save its arrays"
    return (
        "cr.load: this zip archive is not one of torch.save, which contains a single data.pkl: "
        "give the file itself, not packed with others"
    )


def read_legacy(source: Source, placement: Placement) -> Any:
    """Return the object in a file of PyTorch from before 1.6."""
    file: Any = source.file
    if isinstance(file, io.RawIOBase):
        file = io.BufferedReader(file)
    try:
        return _read_legacy(source, file, placement)
    finally:
        if file is not source.file:
            file.detach()


def _read_legacy(source: Source, file: BinaryIO, placement: Placement) -> Any:
    begin = source.read(min(HEAD, source.size)).index(_LEGACY) + len(_LEGACY)
    source.seek(begin)
    stream = Stream(file, begin, source.size)
    globals_ = _Globals(placement)

    def plain() -> Any:
        return unpickle(stream, globals_.find, _no_persistent)

    storages: dict[str, Storage] = {}
    used = 0

    def storage(key: str, dtype: str, numel: int, location: str) -> Storage:
        nonlocal used
        if key not in storages:
            used += numel * _stored_size(dtype)
            if used > source.size:
                raise FormatError(
                    f"cr.load: the file is truncated: its tensors need {used:,} bytes, it has "
                    f"{source.size:,}"
                )
            storages[key] = Storage(dtype, numel, location)
        return storages[key]

    version, system = plain(), plain()
    if version != _LEGACY_VERSION or not isinstance(system, dict):
        raise FormatError(f"cr.load: a PyTorch file of version {version!r}, known is 1001")
    found = unpickle(stream, globals_.find, _persistent(storage))
    keys = plain()
    if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(storages):
        raise FormatError("cr.load: the file is damaged: its list of storages is another one")
    for key in keys:
        _read_legacy_storage(stream, storages[key], system.get("little_endian") is False)
    return found


def _read_legacy_storage(stream: Stream, storage: Storage, big_endian: bool) -> None:
    numel = int.from_bytes(stream.read(8), "little")
    raw = storage.raw()
    if numel != raw.size:
        raise FormatError(
            f"cr.load: the file is damaged: a storage has {numel:,} numbers, not {raw.size:,}"
        )
    data = bytes_of(raw)
    while data:
        part = stream.read(min(len(data), _CHUNK))
        if not part:
            raise FormatError("cr.load: the file is truncated: it ends within the tensors")
        data[: len(part)] = part
        data = data[len(part) :]
    storage.filled(raw, big_endian)


# --- what a pickle of PyTorch refers to -----------------------------------------------------------


def _persistent(storage: Any) -> Any:
    """Return the function that finds storages by their persistent ids."""

    def found(given: Any) -> Storage:
        kind, dtype, key, location, numel, *view = given
        if kind != "storage" or not isinstance(dtype, _Dtype) or view not in ([], [None]):
            raise FormatError(f"cr.load: the file refers to a {kind!r} that isn't a storage")
        if type(numel) is not int or numel < 0 or numel >= 1 << 60:
            raise FormatError("cr.load: the file is damaged: a storage has a wrong size")
        made: Storage = storage(str(key), str(dtype), numel, str(location))
        if made.dtype != dtype or made.array.size != numel:
            raise FormatError("cr.load: the file is damaged: a storage has two dtypes or sizes")
        return made

    return found


def _no_persistent(given: Any) -> Any:
    raise FormatError("cr.load: the file is damaged: a storage where none can be")


class _Globals:
    """The functions and classes that a pickle of PyTorch may name."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        tensor = Allowed(self._rebuild_tensor)
        self._known: dict[tuple[str, str], Any] = {
            **_PLAIN,
            ("torch._utils", "_rebuild_tensor"): tensor,
            ("torch._utils", "_rebuild_tensor_v2"): tensor,
            ("torch._utils", "_rebuild_tensor_v3"): Allowed(self._rebuild_tensor_v3),
            ("torch._utils", "_rebuild_parameter"): Allowed(self._rebuild_parameter),
        }

    def find(self, module: str, name: str) -> Any:
        """Return what a name stands for, or raise a FormatError that says what to do."""
        if (module, name) in self._known:
            return self._known[module, name]
        raise FormatError(
            f"cr.load: the file contains an object of {module}.{name}, whose code would have to "
            "run. In PyTorch, save the tensors alone: "
            "torch.save(torch.load(path, weights_only=False).state_dict(), new_path)"
        )

    def _rebuild_tensor(
        self,
        storage: Storage,
        offset: int,
        size: Any,
        stride: Any,
        requires_grad: bool = False,
        hooks: Any = None,
        metadata: Any = None,
    ) -> Any:
        if not isinstance(storage, Storage):
            raise ValueError("a tensor without storage")
        marks = metadata or {}
        array = storage.variant(bool(marks.get("conj")), bool(marks.get("neg")))
        return self._placement.tensor(
            _strided(array, offset, size, stride), storage.location, requires_grad is True, False
        )

    def _rebuild_tensor_v3(
        self,
        storage: Storage,
        offset: int,
        size: Any,
        stride: Any,
        requires_grad: bool,
        hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Any:
        if not isinstance(storage, Storage) or not isinstance(dtype, np.dtype):
            raise ValueError("a tensor without storage or dtype")
        array = _strided(storage.array.view(dtype), offset, size, stride)
        return self._placement.tensor(array, storage.location, requires_grad is True, False)

    def _rebuild_parameter(self, data: Any, requires_grad: bool, hooks: Any = None) -> Any:
        return self._placement.tensor(data._array, str(data.device), requires_grad is True, True)


def _strided(array: Array, offset: Any, size: Any, stride: Any) -> Array:
    """Return a view of a storage, or raise if it goes beyond."""
    for numbers in ((offset,), size, stride):
        if type(numbers) is not tuple or any(type(n) is not int or n < 0 for n in numbers):
            raise ValueError("a tensor of a wrong shape")
    if len(size) != len(stride):
        raise ValueError("a tensor with another number of strides than dimensions")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if prod(size) and last >= array.size:
        raise ValueError(f"a tensor beyond its storage: number {last:,} of {array.size:,}")
    if not prod(size):
        return np.empty(size, array.dtype)
    steps = tuple(step * array.itemsize for step in stride)
    return np.ndarray(size, array.dtype, array, offset * array.itemsize, steps)


def _ordered_dict(pairs: Any = ()) -> Any:
    return OrderedDict((checked_key(key), value) for key, value in pairs)


def _counter(counts: Any = ()) -> Any:
    return Counter({checked_key(key): value for key, value in dict(counts).items()})


def _encoded(text: str, encoding: str) -> bytes:
    """Return bytes, which protocol 2 writes as text."""
    if encoding != "latin1":
        raise ValueError(f"unexpected encoding {encoding!r}")
    return text.encode("latin1")


def _set(parts: Any = ()) -> set[Any]:
    return set(map(checked_key, parts))


def _frozenset(parts: Any = ()) -> frozenset[Any]:
    return frozenset(_set(parts))


def _complex(real: float, imag: float) -> complex:
    return complex(real, imag)


def _bytearray(data: bytes = b"") -> bytearray:
    if type(data) is not bytes:  # a number would be a length
        raise ValueError("a bytearray of something else than bytes")
    return bytearray(data)


def _device(*given: Any) -> device:
    try:
        return device(*given)
    except DeviceError as error:
        raise FormatError(f"cr.load: the file contains a device: {error}") from None


def _size(numbers: Any = ()) -> tuple[int, ...]:
    return tuple(numbers)


def _dtype_of_numpy(code: str, *_: Any) -> np.dtype[Any]:
    if code not in ("b1", *(f"{kind}{n}" for kind in "iufc" for n in (1, 2, 4, 8, 16))):
        raise ValueError(f"NumPy's dtype {code!r}")
    return np.dtype(code)


def _scalar_of_numpy(dtype: Any, data: Any) -> Any:
    if not isinstance(dtype, np.dtype) or len(data) != dtype.itemsize:
        raise ValueError("a wrong number of NumPy")
    return np.frombuffer(data, dtype)[0]


def _array_of_numpy(*_: Any) -> Array:
    return np.empty(0, np.int8)  # BUILD follows


_BUILTINS: dict[str, Callable[..., Any]] = {
    "set": _set,
    "frozenset": _frozenset,
    "complex": _complex,
    "bytearray": _bytearray,
}

_PLAIN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): Allowed(_ordered_dict),
    ("collections", "Counter"): Allowed(_counter),
    ("_codecs", "encode"): Allowed(_encoded),
    ("torch", "Size"): Allowed(_size),
    ("torch", "device"): Allowed(_device),
    ("torch.storage", "UntypedStorage"): _Dtype("uint8"),
    **{("torch", name): _numpy_dtype(name) for name in _DTYPES},
    **{("torch", f"{title}Storage"): _Dtype(name) for name, title in _DTYPES.items()},
    **{
        (module, name): Allowed(function)
        for module in ("builtins", "__builtin__")
        for name, function in _BUILTINS.items()
    },
    ("numpy", "dtype"): Allowed(_dtype_of_numpy),
    ("numpy", "ndarray"): None,
    **{
        (f"numpy.{core}.multiarray", name): Allowed(function)
        for core in ("core", "_core")
        for name, function in {
            "scalar": _scalar_of_numpy,
            "_reconstruct": _array_of_numpy,
        }.items()
    },
}
