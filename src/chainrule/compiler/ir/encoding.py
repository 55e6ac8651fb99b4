"""Programs as plain data that `marshal` writes, for the keys of what is made from them.

Two programs have the same data if they do the same to inputs of the same types, bit for bit: names
of variables and lines of the user's code are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd.size import Size
from chainrule.compiler.ir.program import ATOMS, Op, Program, Value

_KINDS = "biufc"
"""Kinds of the dtypes that their text describes entirely."""

_TYPES: dict[Any, str] = {t: t.__name__ for t in (bool, int, float, complex)}
_TYPES |= {np.dtype(char).type: char for char in np.typecodes["All"] if char in "?bhilqBHILQefdFD"}


def encoded(program: Program) -> Any:
    """Return a program as plain data; raise TypeError if it has a setting that is not plain.

    Such are generators of random numbers, and functions.
    """
    return _Encoder().program(program)


def _encoded_dtype(dtype: Any) -> str:
    """Return the text of a dtype; raise TypeError if another dtype has the same."""
    if dtype.kind not in _KINDS or dtype.metadata:
        raise TypeError(f"dtype {dtype}")
    text: str = dtype.str
    return text


def _encoded_array(array: Any) -> Any:
    """Return an array as plain data; raise TypeError if a copy would have other strides.

    The bits of sums and products depend on them.
    """
    if type(array) is not np.ndarray or not array.flags.forc:
        raise TypeError(f"an array of {type(array)}")
    return _encoded_dtype(array.dtype), array.shape, array.flags.c_contiguous, array.tobytes()


class _Encoder:
    """Numbers the values of a program in the order in which it names them."""

    def __init__(self) -> None:
        self.numbers: dict[Value, int] = {}
        self.dtypes: dict[Any, str] = {}

    def program(self, program: Program) -> Any:
        return (
            program.name,
            self.made(program.inputs),
            [(*self.made([v]), _encoded_array(a)) for v, a in program.constants.items()],
            [self.op(op) for op in program.ops],
            [self.numbers[v] for v in program.outputs],
            [(self.numbers[w.target], self.numbers[w.value]) for w in program.writes],
        )

    def made(self, values: Any) -> list[Any]:
        """Return the types of new values."""
        found, numbers = [], self.numbers
        for value in values:
            number = len(numbers)
            if numbers.setdefault(value, number) != number:
                raise TypeError("a value that is made twice")
            dtype = self.dtypes.get(value.dtype)
            if dtype is None:
                dtype = self.dtypes[value.dtype] = _encoded_dtype(value.dtype)
            found.append((tuple(value.shape), dtype))
        return found

    def op(self, op: Op) -> Any:
        tree, numbers = self.tree, self.numbers
        args = [(numbers[arg],) if arg.__class__ is Value else tree(arg) for arg in op.args]
        kwargs = [(name, tree(item)) for name, item in op.kwargs.items()] if op.kwargs else None
        regions = [self.program(region) for region in op.regions] if op.regions else None
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
            return "dtype", _encoded_dtype(tree)
        if isinstance(tree, np.generic):
            return "scalar", _encoded_dtype(tree.dtype), tree.tobytes()
        if kind is np.ndarray:
            return "array", *_encoded_array(tree)
        if kind is type and tree in _TYPES:
            return "type", _TYPES[tree]
        raise TypeError(f"a setting of {kind}")
