"""Random expressions over tensors and constants of all dtypes, with special values of each."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import chainrule as cr

REAL = (0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, -2.0, 3.0)
SPECIAL = {
    "f": REAL,
    "c": [complex(a, b) for a, b in zip(REAL, REAL[3:] + REAL[:3], strict=True)],
    "i": (0, 1, -1, 2, -2, 3, 5, 7, -7, 10),
    "u": (0, 1, 2, 3, 255, 254, 128, 7, 5, 9),
    "b": (False, True) * 5,
}
MACHINE_DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")
DTYPES = (*MACHINE_DTYPES, "float16", "complex64", "complex128")
COMPLEX = (0j, -0j, complex(-0.0, -0.0), 1j, -1j, complex(1, -0.0), complex(-0.0, -1))
EDGES = (complex(0, np.inf), complex(np.nan, 1))
NUMBERS = (0, 1, -1, 2, -2, 3, 300, True, False, 0.1, -0.5, 1.5, *REAL, *COMPLEX, *EDGES)

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "pow", "eq", "ne", "lt", "le", "gt", "ge"),
        *("and_", "or_", "xor"),
    )
} | {"maximum": cr.maximum, "minimum": cr.minimum}
_UNARY: dict[str, Callable[[Any], Any]] = {
    **{
        name: getattr(cr, name) for name in ["relu", "sign", "square", "sqrt", "reciprocal", "conj"]
    },
    **{"neg": operator.neg, "abs": abs, "invert": operator.invert},
    "clamp": lambda x: cr.clamp(x, -1, 0.0),
    "clamp_min": lambda x: cr.clamp(x, min=0),
    "where": lambda x: cr.where(x > 0, x, -0.0),
    "double": lambda x: x.to("float64"),
    "single": lambda x: x.to("float32"),
}
_VIEWS: dict[str, Callable[[Any], Any]] = {
    "flip": lambda x: cr.flip(x, (0,)),
    "item": lambda x: x[1],
    "slice": lambda x: x[2:7],
    "transpose": lambda x: x.reshape(2, 5).T.reshape(10),
}


def special(dtype: str) -> np.ndarray:
    """Return an array of ten special values."""
    return np.array(SPECIAL[np.dtype(dtype).kind], dtype)


def leaves(dtypes: tuple[str, ...]) -> dict[str, cr.Tensor]:
    """Return a vector, the reversed vector and a scalar of each dtype, by name."""
    found = {}
    for dtype in dtypes:
        array = special(dtype)
        found |= {f"{dtype}_x": array, f"{dtype}_y": array[::-1].copy(), f"{dtype}_0": array[4]}
    return {name: cr.tensor(array) for name, array in found.items()}


class Expressions:
    """A source of random expressions that eager chainrule evaluates without an error."""

    def __init__(self, seed: int, dtypes: tuple[str, ...] = DTYPES, views: bool = True) -> None:
        self.random = random.Random(seed)
        self.leaves = leaves(dtypes)
        self.dtypes = dtypes
        numeric = (bool, int, float, complex)[: 4 if "complex64" in dtypes else 3]
        self.numbers = [number for number in NUMBERS if type(number) in numeric]
        self.unary = {**_UNARY, **(_VIEWS if views else {})}

    def take(self, count: int, depth: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield so many trees, each with its value."""
        while count:
            tree = self._tree(depth)
            try:
                value = self.evaluate(tree, self.leaves)
            except (
                ArithmeticError,
                AttributeError,
                LookupError,
                RuntimeError,
                TypeError,
                ValueError,
            ):
                continue  # no such operation for these dtypes and shapes
            if names(tree) and isinstance(value, cr.Tensor):
                yield tree, value.numpy()
                count -= 1

    def evaluate(self, tree: Any, tensors: dict[str, Any]) -> Any:
        """Return the value of a tree, of other tensors in the place of the leaves."""
        kind, *parts = tree
        if kind == "leaf":
            return tensors[parts[0]]
        if kind == "number":
            return parts[0]
        if kind == "array":
            return cr.tensor(parts[0])
        operands = [self.evaluate(part, tensors) for part in parts]
        return (_BINARY[kind] if len(parts) == 2 else self.unary[kind])(*operands)

    def _tree(self, depth: int) -> Any:
        draw = self.random
        if depth == 0 or draw.random() < 0.1:
            found = draw.random()
            if found < 0.6:
                return "leaf", draw.choice(list(self.leaves))
            return ("number", draw.choice(self.numbers)) if found < 0.85 else self._array()
        if draw.random() < 0.3:
            return draw.choice(list(self.unary)), self._tree(depth - 1)
        return draw.choice(list(_BINARY)), self._tree(depth - 1), self._tree(depth - 1)

    def _array(self) -> Any:
        array = special(self.random.choice(self.dtypes))
        element = array[self.random.randrange(10)]
        return "array", self.random.choice([np.asarray(element), np.full(10, element), array])


def names(tree: Any) -> set[str]:
    """Return the names of the leaves of a tree."""
    if tree[0] in ("leaf", "number", "array"):
        return {tree[1]} if tree[0] == "leaf" else set()
    return set[str]().union(*map(names, tree[1:]))


def differences(got: Any, wanted: Any, rtol: float = 0.0) -> str:
    """Describe where two arrays differ, signs of zeros included; empty if nowhere."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"{got.dtype} {got.shape} instead of {wanted.dtype} {wanted.shape}"
    parts = [(got, wanted)]
    if wanted.dtype.kind == "c":
        parts = [(got.real, wanted.real), (got.imag, wanted.imag)]
    for a, b in parts:
        same = np.isclose(a, b, rtol=rtol, atol=0, equal_nan=True)
        if wanted.dtype.kind in "fc":
            same &= np.isnan(b) | (np.signbit(a) == np.signbit(b))
        if not same.all():
            return f"{got} instead of {wanted}"
    return ""
