"""A reader of pickles that executes nothing: containers, numbers, strings and chosen functions.

Python's own unpickler reserves memory as the pickle says, for its memo and for long strings; here
memory follows what the file contains. Opcodes are decoded by `pickletools` of the standard library.
"""

from __future__ import annotations

import pickletools
from collections import OrderedDict
from collections.abc import Callable
from math import prod
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from chainrule.errors import DeviceError, FormatError

_MAX_LINE = 1 << 12
_MAX_KEY_PARTS = 100


class Allowed(NamedTuple):
    """A function that a pickle may call, or a class of which it may make objects."""

    call: Callable[..., Any]


class Stream:
    """What `pickletools` reads from: never more at once than the file has left."""

    def __init__(self, file: BinaryIO, position: int, end: int) -> None:
        self._file = file
        self.position = position
        self._end = end

    def read(self, count: int) -> bytes:
        """Return at most the next bytes."""
        found = self._file.read(max(0, min(count, self._end - self.position)))
        self.position += len(found)
        return found

    def readline(self) -> bytes:
        """Return the next line, of a sensible length."""
        found = self._file.readline(max(0, min(_MAX_LINE, self._end - self.position)))
        self.position += len(found)
        return found

    def tell(self) -> int:
        """Return the position."""
        return self.position


def unpickle(
    stream: Stream, find: Callable[[str, str], Any], persistent: Callable[[Any], Any]
) -> Any:
    """Return the object of a pickle.

    `find` returns what a module and a name stand for: an `Allowed`, or a value. `persistent`
    returns what a persistent id stands for.
    """
    machine = _Machine(find, persistent)
    source: Any = stream
    try:
        for opcode, argument, _ in pickletools.genops(source):
            if opcode.name == "STOP":
                return machine.pop()
            step = _STEPS.get(opcode.name)
            if step is None:
                raise ValueError(f"unexpected operation {opcode.name}")
            step(machine, argument)
    except (FormatError, DeviceError, RecursionError):
        raise
    except Exception as error:  # of whichever wrong type an operand is
        raise FormatError(f"cr.load: the pickle in the file is damaged: {error}") from None
    raise FormatError("cr.load: the pickle in the file is truncated")


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self, find: Callable[[str, str], Any], persistent: Callable[[Any], Any]) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._find = find
        self._persistent = persistent

    def append(self, value: Any) -> None:
        self._stack.append(value)

    def pop(self) -> Any:
        return self._stack.pop()

    def take(self, count: int) -> list[Any]:
        """Remove and return the topmost values."""
        if count > len(self._stack):
            raise ValueError("too few values on the stack")
        found = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return found

    def mark(self, _: Any) -> None:
        self._marks.append(len(self._stack))

    def since_mark(self) -> list[Any]:
        """Remove and return the values above the last mark."""
        return self.take(len(self._stack) - self._marks.pop())

    def put(self, index: int | None) -> None:
        self._memo[len(self._memo) if index is None else index] = self._stack[-1]

    def get(self, index: int) -> None:
        self.append(self._memo[index])

    def extend(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise ValueError("append to what is no list")
        target.extend(values)

    def add(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not set:
            raise ValueError("add to what is no set")
        target.update(map(checked_key, values))

    def update(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(values) % 2:
            raise ValueError("keys and values for what is no dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            target[checked_key(key)] = value

    def global_(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self.append(self._find(module, name))

    def stack_global(self, _: Any) -> None:
        module, name = self.take(2)
        self.append(self._find(str(module), str(name)))

    def call(self, _: Any) -> None:
        function, arguments = self.take(2)
        if not isinstance(function, Allowed) or type(arguments) is not tuple:
            raise ValueError("a call of what is no function")
        self.append(function.call(*arguments))

    def persistent_id(self, _: Any) -> None:
        self.append(self._persistent(self.pop()))

    def build(self, _: Any) -> None:
        """Set the state of an array or dtype; of the attributes of dicts, versions of modules."""
        state = self.pop()
        target = self._stack[-1]
        if type(target) is np.ndarray:
            _set_values(target, *state)
        elif isinstance(target, np.dtype):
            if state[1] not in ("<", "|", "="):
                raise ValueError("numbers of big-endian machines")
        elif not isinstance(target, dict):
            raise ValueError("a state for what has none")
        elif type(target) is OrderedDict and type(state) is dict and "_metadata" in state:
            target.__dict__["_metadata"] = state["_metadata"]


def _set_values(
    target: np.ndarray[Any, Any], version: int, shape: Any, dtype: Any, fortran: bool, data: Any
) -> None:
    """Set shape, dtype and values of an array, as NumPy pickles them."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "biufc" or type(data) is not bytes:
        raise ValueError("an array of something else than numbers")
    if type(shape) is not tuple or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError("an array of a wrong shape")
    if len(data) != prod(shape) * dtype.itemsize:
        raise ValueError("an array of another size")
    state: Any = version, shape, dtype, fortran, data
    target.__setstate__(state)


def checked_key(key: Any) -> Any:
    """Return a key, or raise if it isn't plain: the hash of nested tuples may take forever."""
    waiting, count = [key], 0
    while waiting:
        part = waiting.pop()
        count += 1
        if count > _MAX_KEY_PARTS:
            raise ValueError("a key of too many parts")
        if type(part) is tuple:
            waiting += part
        elif part is not None and not isinstance(
            part, (bool, int, float, complex, str, bytes, np.generic, np.dtype)
        ):
            raise ValueError(f"a key that is a {type(part).__name__}")
    return key


def _append(machine: _Machine, value: Any) -> None:
    machine.append(value)


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(["PROTO", "FRAME"], lambda _, __: None),
    **dict.fromkeys(
        [
            *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
            *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"),
            *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
        ],
        _append,
    ),
    "NONE": lambda m, _: m.append(None),
    "NEWTRUE": lambda m, _: m.append(True),
    "NEWFALSE": lambda m, _: m.append(False),
    "EMPTY_LIST": lambda m, _: m.append([]),
    "EMPTY_DICT": lambda m, _: m.append({}),
    "EMPTY_SET": lambda m, _: m.append(set()),
    "EMPTY_TUPLE": lambda m, _: m.append(()),
    "MARK": _Machine.mark,
    "TUPLE": lambda m, _: m.append(tuple(m.since_mark())),
    "TUPLE1": lambda m, _: m.append(tuple(m.take(1))),
    "TUPLE2": lambda m, _: m.append(tuple(m.take(2))),
    "TUPLE3": lambda m, _: m.append(tuple(m.take(3))),
    "FROZENSET": lambda m, _: m.append(frozenset(map(checked_key, m.since_mark()))),
    "APPEND": lambda m, _: m.extend(m.take(1)),
    "APPENDS": lambda m, _: m.extend(m.since_mark()),
    "ADDITEMS": lambda m, _: m.add(m.since_mark()),
    "SETITEM": lambda m, _: m.update(m.take(2)),
    "SETITEMS": lambda m, _: m.update(m.since_mark()),
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.put,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "GLOBAL": _Machine.global_,
    "STACK_GLOBAL": _Machine.stack_global,
    "REDUCE": _Machine.call,
    "NEWOBJ": _Machine.call,
    "BINPERSID": _Machine.persistent_id,
    "BUILD": _Machine.build,
}
