"""Programs as plain data that `marshal` writes: for keys of what is made from them, and for files.

Two programs have the same data if they do the same to inputs of the same types, bit for bit: names
of variables and lines of the user's code are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.size import Size
from chainrule.compiler.ir.program import ATOMS, Op, Program, Value, Write

_KINDS = "biufc"
"""Kinds of the dtypes that their text describes entirely."""

_TYPES: dict[Any, str] = {t: t.__name__ for t in (bool, int, float, complex)}
_TYPES |= {np.dtype(char).type: char for char in np.typecodes["All"] if char in "?bhilqBHILQefdFD"}
_TYPES_BY_NAME: dict[str, Any] = {name: kind for kind, name in _TYPES.items()}


def encoded(program: Program) -> Any:
    """Return a program as plain data; raise TypeError if it has a setting that is not plain.

    Such are generators of random numbers, and functions.
    """
    return _Encoder().program(program)


def decoded(data: Any) -> Program:
    """Return the program of plain data."""
    return _Decoder().program(data)


def encoded_dtype(dtype: Any) -> str:
    """Return the text of a dtype; raise TypeError if another dtype has the same."""
    if dtype.kind not in _KINDS or dtype.metadata:
        raise TypeError(f"dtype {dtype}")
    text: str = dtype.str
    return text


def encoded_array(array: Any) -> Any:
    """Return an array as plain data."""
    if type(array) is not np.ndarray:
        raise TypeError(f"an array of {type(array)}")
    return encoded_dtype(array.dtype), array.shape, array.strides, array.tobytes()


def decoded_array(data: Any) -> Any:
    """Return the array of plain data, in C order."""
    dtype, shape, _, content = data
    return np.frombuffer(content, dtype).reshape(shape).copy()


class _Encoder:
    """Numbers the values of a program in the order in which it names them."""

    def __init__(self) -> None:
        self.numbers: dict[Value, int] = {}
        self.dtypes: dict[Any, str] = {}

    def program(self, program: Program) -> Any:
        return (
            program.name,
            self.made(program.inputs),
            [(*self.made([v]), encoded_array(a)) for v, a in program.constants.items()],
            [self.op(op) for op in program.ops],
            [self.numbers[v] for v in program.outputs],
            [(self.numbers[w.target], self.numbers[w.value]) for w in program.writes],
        )

    def made(self, values: Any) -> list[Any]:
        """Return the types of new values."""
        found = []
        for value in values:
            if value in self.numbers:
                raise TypeError("a value that is made twice")
            self.numbers[value] = len(self.numbers)
            text = self.dtypes.get(value.dtype)
            if text is None:
                text = self.dtypes[value.dtype] = encoded_dtype(value.dtype)
            found.append((tuple(value.shape), text))
        return found

    def op(self, op: Op) -> Any:
        args = tuple([self.tree(arg) for arg in op.args])
        kwargs = tuple([(name, self.tree(item)) for name, item in op.kwargs.items()])
        regions = tuple([self.program(region) for region in op.regions])
        return op.function, args, kwargs, regions, self.made(op.outs)

    def tree(self, tree: Any) -> Any:
        """Return an argument: a value as its number, containers with a word in front."""
        kind = tree.__class__
        if kind is Value:
            return (self.numbers[tree],)
        if kind in ATOMS:
            return tree
        if kind is tuple:
            return ("tuple", *[self.tree(item) for item in tree])
        if kind is Size:
            return ("size", *tree)
        if kind is list:
            return ("list", *[self.tree(item) for item in tree])
        if kind is slice:
            return ("slice", *[self.tree(end) for end in (tree.start, tree.stop, tree.step)])
        if kind is range:
            return "range", tree.start, tree.stop, tree.step
        if isinstance(tree, np.dtype):
            return "dtype", encoded_dtype(tree)
        if isinstance(tree, np.generic):
            return "scalar", encoded_dtype(tree.dtype), tree.tobytes()
        if kind is np.ndarray:
            return "array", *encoded_array(tree)
        if kind is type and tree in _TYPES:
            return "type", _TYPES[tree]
        raise TypeError(f"a setting of {kind}")


class _Decoder:
    def __init__(self) -> None:
        self.values: list[Value] = []

    def program(self, data: Any) -> Program:
        name, inputs, constants, ops, outputs, writes = data
        given = self.made(inputs)
        known = {self.made([kind])[0]: decoded_array(array) for kind, array in constants}
        made = [self.op(*op) for op in ops]
        values = self.values
        written = [Write(values[target], values[value]) for target, value in writes]
        return Program(name, given, known, made, [values[n] for n in outputs], written)

    def made(self, types: Any) -> list[Value]:
        found = [Value(shape, dtype) for shape, dtype in types]
        self.values += found
        return found

    def op(self, function: str, args: Any, kwargs: Any, regions: Any, outs: Any) -> Op:
        given = tuple([self.tree(arg) for arg in args])
        settings = {name: self.tree(item) for name, item in kwargs}
        inner = tuple([self.program(region) for region in regions])
        return Op(function, given, settings, tuple(self.made(outs)), None, inner)

    def tree(self, tree: Any) -> Any:
        if tree.__class__ is not tuple:
            return tree
        head, *rest = tree
        if head.__class__ is int:
            return self.values[head]
        return _CONTAINERS[head](self, rest)


_CONTAINERS: dict[str, Callable[[_Decoder, Any], Any]] = {
    "tuple": lambda decoder, rest: tuple([decoder.tree(item) for item in rest]),
    "size": lambda _, rest: Size(rest),
    "list": lambda decoder, rest: [decoder.tree(item) for item in rest],
    "slice": lambda decoder, rest: slice(*[decoder.tree(item) for item in rest]),
    "range": lambda _, rest: range(*rest),
    "dtype": lambda _, rest: np.dtype(rest[0]),
    "scalar": lambda _, rest: np.frombuffer(rest[1], rest[0])[0],
    "array": lambda _, rest: decoded_array(rest),
    "type": lambda _, rest: _TYPES_BY_NAME[rest[0]],
}
