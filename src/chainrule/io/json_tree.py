"""Trees of Python objects as JSON, with their arrays beside it.

None, booleans, numbers, strings and lists stand for themselves. All else is an object whose first
name says what it is: ``{"tuple": [1, 2]}``, ``{"dict": [["lr", 0.1]]}``, ``{"tensor": "weight"}``.
Modules are ``{"object": ["module", "Class"], "number": 0, "state": ...}``, and ``{"same": 0}``
where they occur again.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any

import numpy as np

from chainrule.autograd.size import Size
from chainrule.autograd.tensor import Tensor, is_parameter
from chainrule.backend import CPU, address_of, device, device_of, move
from chainrule.errors import (
    ArgumentError,
    ArgumentTypeError,
    CompileError,
    DeviceError,
    FormatError,
)
from chainrule.io import objects
from chainrule.io.placement import Placement
from chainrule.io.safetensors import NAMES

Array = np.ndarray[Any, Any]
Path = tuple[str, ...]

_MAX_DEPTH = 100
"""Containers in containers, in a file: less than Python's limit of nested calls."""

_MAX_VALUES_DEPTH = 4 * _MAX_DEPTH
"""JSON values in each other: a container takes a few."""

_DTYPE_NAMES = [*NAMES, "complex128"]


# --- encoding -------------------------------------------------------------------------------------


class Encoder:
    """The conversion of a tree to JSON values; collects the arrays by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._names: dict[Any, tuple[str, Array]] = {}  # by memory; the arrays keep it theirs
        self._moved: dict[Any, tuple[Array, Any]] = {}  # from devices, by memory, which is kept
        self._inside: set[int] = set()  # ids of the containers around the present object
        self._objects: dict[int, tuple[int, Any]] = {}  # by id; the objects keep it theirs

    def encode(self, x: Any, path: Path = ()) -> Any:
        """Return the JSON value of an object, or raise a TypeError that says where it is."""
        if x is None or type(x) in (bool, str):
            return x
        if isinstance(x, Tensor):
            return self._tensor(x, path)
        if isinstance(x, np.ndarray):
            return {"array": self._add(x, path)} | _complex_mark(x.dtype)
        if isinstance(x, np.generic) and x.dtype.name in _DTYPE_NAMES:
            return {"scalar": x.dtype.name, "value": self.encode(x.item(), path)}
        if isinstance(x, np.dtype) and x.name in _DTYPE_NAMES:
            return {"numpy.dtype": x.name}
        if type(x) in _ENCODERS:
            return _ENCODERS[type(x)](x, path)
        if type(x) in _CONTAINERS:
            with self._entered(x, path):
                return self._container(x, path)
        if id(x) in self._objects:
            return {"same": self._objects[id(x)][0]}
        parts = objects.parts_of(x)
        if parts is not None:
            with self._entered(x, path):
                return self._object(x, parts, path)
        if objects.is_function(x) and (name := objects.name_of(x)):
            return {"global": name}
        raise ArgumentTypeError(_refusal(x, path))

    @contextmanager
    def _entered(self, x: Any, path: Path) -> Iterator[None]:
        """Remember a container while its parts are encoded."""
        if id(x) in self._inside:
            raise ArgumentError(f"cr.save: {_at(path)} contains itself, which a file cannot")
        if len(self._inside) >= _MAX_DEPTH:
            raise ArgumentError(
                f"cr.save: more than {_MAX_DEPTH} containers in each other, down to {_at(path)}"
            )
        self._inside.add(id(x))
        try:
            yield
        finally:
            self._inside.discard(id(x))

    def _container(self, x: Any, path: Path) -> Any:
        name = "tuple" if type(x) is Size else type(x).__name__
        if isinstance(x, dict):
            found: dict[str, Any] = {name: [self._item(k, value, path) for k, value in x.items()]}
            if name == "OrderedDict" and hasattr(x, "_metadata"):  # versions of modules
                found["metadata"] = self.encode(x._metadata, path)
            return found
        parts = [self.encode(part, (*path, str(i))) for i, part in enumerate(x)]
        return parts if name == "list" else {name: parts}

    def _object(self, x: Any, parts: objects.Parts, path: Path) -> Any:
        number = len(self._objects)
        self._objects[id(x)] = number, x
        found = {
            "object": objects.name_of(parts.type),
            "number": number,
            "args": [self.encode(part, path) for part in parts.args],
            "state": self.encode(parts.state, path),
            "items": [self.encode(part, (*path, str(i))) for i, part in enumerate(parts.items)],
            "pairs": [self._item(key, value, path) for key, value in parts.pairs],
        }
        return {key: value for key, value in found.items() if value not in ([], None)}

    def _item(self, key: Any, value: Any, path: Path) -> list[Any]:
        inner = (*path, str(key))
        if isinstance(key, Tensor):
            raise ArgumentTypeError(
                f"cr.save: the key of {_at(inner)} is a Tensor: keys must be strings, numbers or "
                "tuples of them"
            )
        return [self.encode(key, inner), self.encode(value, inner)]

    def _tensor(self, x: Tensor, path: Path) -> dict[str, Any]:
        array = x._array
        if hasattr(type(array), "namespace"):  # a symbol, or the array of a map
            raise CompileError(
                "cr.save: inside a compiled function or vmap the numbers are not known: save after "
                "the call"
            )
        where = device_of(array)
        if where != CPU:
            key = str(where), address_of(array), array.shape, array.strides, array.dtype.str
            if key not in self._moved:
                self._moved[key] = move(array, CPU), array
            array, _ = self._moved[key]
        found = {"tensor": self._add(array, path)} | _complex_mark(array.dtype)
        if where != CPU:
            found["device"] = str(where)
        if x.requires_grad:
            found["requires_grad"] = True
        if is_parameter(x):
            found["parameter"] = True
        return found

    def _add(self, array: Array, path: Path) -> str:
        """Return the name of an array in the file: the same for the same memory."""
        if type(array) not in (np.ndarray, np.memmap) or array.dtype.name not in _DTYPE_NAMES:
            raise ArgumentTypeError(
                f"cr.save: {_at(path)} is a {type(array).__name__} of {array.dtype}: arrays must "
                "be NumPy's own, of numbers or booleans. A list of strings can be saved: .tolist()"
            )
        key = (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str)
        if key in self._names and array.size:
            return self._names[key][0]
        given = array
        if array.dtype == np.complex128:
            array = np.stack([array.real, array.imag], -1)
        title = ".".join(path).encode(errors="backslashreplace").decode() or "tensor"
        name, number = title, 2
        while name in self.arrays or name == "__metadata__":
            name, number = f"{title}#{number}", number + 1
        self.arrays[name] = array
        self._names[key] = name, given
        return name


def _complex_mark(dtype: np.dtype[Any]) -> dict[str, Any]:
    return {"dtype": "complex128"} if dtype == np.complex128 else {}


def _int(x: int, _: Path) -> Any:
    return x if -(1 << 63) <= x < 1 << 64 else {"int": hex(x)}


def _float(x: float, _: Path) -> Any:
    return x if isfinite(x) else {"float": repr(x)}


_ENCODERS: dict[type, Callable[[Any, Path], Any]] = {
    int: _int,
    float: _float,
    complex: lambda x, _: {"complex": [_float(x.real, _), _float(x.imag, _)]},
    bytes: lambda x, _: {"bytes": x.hex()},
    bytearray: lambda x, _: {"bytearray": x.hex()},
    device: lambda x, _: {"device": str(x)},
}
_CONTAINERS = (list, tuple, Size, dict, OrderedDict, Counter, set, frozenset)


def _at(path: Path) -> str:
    return repr(".".join(path)) if path else "the object"


def _refusal(x: Any, path: Path) -> str:
    """Return the message for an object that no file can contain."""
    if hasattr(x, "state_dict"):
        mend = "save its state, .state_dict(), make the object anew and load with load_state_dict()"
    elif objects.is_function(x):
        mend = (
            "its module has no such name, as for a lambda or what a function defines. Of a module "
            "that has it as an attribute, save .state_dict()"
        )
    elif hasattr(x, "get_state"):
        mend = "save its state, .get_state(), and go on with set_state()"
    elif isinstance(x, dict):
        mend = "say dict(x)"
    elif isinstance(x, tuple):
        mend = "say tuple(x)"
    elif isinstance(x, (str, int, float)):
        mend = "say str(x), int(x) or float(x)"
    else:
        mend = (
            "save tensors, arrays, numbers, strings and containers of them, and make the object "
            "of them after loading"
        )
    return f"cr.save: {_at(path)} is a {type(x).__name__}, whose code no file contains: {mend}"


# --- decoding -------------------------------------------------------------------------------------


class Decoder:
    """The conversion of JSON values to the tree that they describe."""

    def __init__(self, arrays: dict[str, Array], placement: Placement, trusted: bool) -> None:
        self._arrays = arrays
        self._placement = placement
        self._trusted = trusted
        self._objects: dict[int, Any] = {}  # by number
        self._made: dict[Any, Any] = {}  # tensors and arrays that occurred, by their description
        self._depth = 0

    def decode(self, x: Any) -> Any:
        """Return the object of a JSON value, or raise a FormatError."""
        if x is None or isinstance(x, (bool, int, float, str)):
            return x
        if self._depth > _MAX_VALUES_DEPTH:
            raise FormatError("cr.load: the file has too many containers in each other")
        self._depth += 1
        try:
            if isinstance(x, list):
                return [self.decode(part) for part in x]
            return self._container(x)
        finally:
            self._depth -= 1

    def _container(self, x: dict[str, Any]) -> Any:
        kind = next(iter(x), "")
        if kind not in _DECODERS:
            raise FormatError(
                f"cr.load: the tree contains a {kind!r}, which this version of chainrule doesn't "
                "know: the file is of a later one, or damaged"
            )
        try:
            return _DECODERS[kind](self, x[kind], x)
        except (TypeError, ValueError, KeyError, OverflowError, AttributeError) as error:
            if isinstance(error, FormatError | DeviceError) and kind != "device":
                raise
            raise FormatError(f"cr.load: the tree has a wrong {kind}: {error}") from None

    def array(self, name: str, x: dict[str, Any]) -> Array:
        """Return an array: the same one each time."""
        found = self._arrays[name]
        if "dtype" not in x:
            return found
        if x["dtype"] != "complex128" or found.dtype != np.float64 or found.shape[-1:] != (2,):
            raise ValueError("only pairs of float64 are complex numbers")
        key = (name, "complex128")
        if key not in self._made:
            self._made[key] = found.view(np.complex128)[..., 0]
        made: Array = self._made[key]
        return made

    def tensor(self, name: str, x: dict[str, Any]) -> Tensor:
        """Return a tensor: the same one each time that the same is described."""
        key = tuple(x.items())
        if key not in self._made:
            self._made[key] = self._placement.tensor(
                self.array(name, x),
                str(x.get("device", "cpu")),
                x.get("requires_grad") is True,
                x.get("parameter") is True,
            )
        made: Tensor = self._made[key]
        return made

    def parts(self, x: Any) -> list[Any]:
        """Return the parts of a container."""
        if not isinstance(x, list):
            raise ValueError("expected a list")
        return [self.decode(part) for part in x]

    def ordered(self, x: Any, whole: dict[str, Any]) -> OrderedDict[Any, Any]:
        """Return a dict that remembers versions of modules, if it is a state dict."""
        found: Any = OrderedDict(self.pairs(x))
        if isinstance(whole.get("metadata"), dict):
            found._metadata = self.decode(whole["metadata"])
        result: OrderedDict[Any, Any] = found
        return result

    def pairs(self, x: Any) -> list[tuple[Any, Any]]:
        """Return keys and values of a dict, or raise if a key occurs twice."""
        found = [(self.decode(key), self.decode(value)) for key, value in x]
        if len(dict(found)) < len(found):
            raise ValueError("a key occurs twice")
        return found

    def name(self, x: Any, _: Any) -> Any:
        """Return a function or class."""
        module, name = x
        return objects.find(module, name, self._trusted)

    def object(self, name: Any, x: dict[str, Any]) -> Any:
        """Return a module or another object."""
        made = objects.empty(self.name(name, x), self.parts(x.get("args", [])), self._trusted)
        self._objects[int(x["number"])] = made  # its parts may contain it
        objects.fill(
            made,
            self.decode(x.get("state")),
            self.parts(x.get("items", [])),
            self.pairs(x.get("pairs", [])),
        )
        return made

    def scalar(self, name: str, x: dict[str, Any]) -> np.generic:
        """Return a NumPy scalar."""
        value = self.decode(x["value"])
        if not isinstance(value, (bool, int, float, complex)):
            raise ValueError(f"{value!r} is no number")
        found: np.generic = _known_dtype(name).type(value)
        return found


def _known_dtype(name: str) -> np.dtype[Any]:
    if name not in _DTYPE_NAMES:
        raise ValueError(f"unknown dtype {name!r}")
    return np.dtype(name)


def _complex(real: float, imag: float) -> complex:
    return complex(real, imag)


_DECODERS: dict[str, Callable[[Decoder, Any, dict[str, Any]], Any]] = {
    "tensor": Decoder.tensor,
    "object": Decoder.object,
    "same": lambda d, x, __: d._objects[x],
    "global": Decoder.name,
    "array": Decoder.array,
    "scalar": Decoder.scalar,
    "int": lambda _, x, __: int(x, 16),
    "float": lambda _, x, __: float(x),
    "complex": lambda d, x, __: _complex(*d.parts(x)),
    "bytes": lambda _, x, __: bytes.fromhex(x),
    "bytearray": lambda _, x, __: bytearray.fromhex(x),
    "device": lambda _, x, __: device(x),
    "numpy.dtype": lambda _, x, __: _known_dtype(x),
    "tuple": lambda d, x, __: tuple(d.parts(x)),
    "set": lambda d, x, __: set(d.parts(x)),
    "frozenset": lambda d, x, __: frozenset(d.parts(x)),
    "dict": lambda d, x, __: dict(d.pairs(x)),
    "OrderedDict": lambda d, x, whole: d.ordered(x, whole),
    "Counter": lambda d, x, __: Counter(dict(d.pairs(x))),
}
