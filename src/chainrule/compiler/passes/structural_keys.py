"""Structural keys of ops: equal for ops that do the same to other leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.program import Op, Value

Leaf = Any  # a value, or an integer or a window within an index


class Window(NamedTuple):
    """A slice of the first axis: steps of a loop may take windows that begin elsewhere."""

    start: int
    length: int
    step: int

    @property
    def indices(self) -> Any:
        return self.start + self.step * np.arange(self.length)

    @property
    def key(self) -> slice:
        stop = self.start + self.step * self.length
        return slice(self.start, None if stop < 0 else stop, self.step)


_INDEX_POSITIONS = {"getitem": 1, "assign_at": 2, "plus_at": 2}
"""Position of the index among the arguments; other functions have a keyword `key`."""


def structural_key(op: Op) -> tuple[Any, Sequence[Leaf]]:
    """Return a hashable key of the op's structure, and its leaves.

    Ops with equal keys do the same to other leaves. Ops with regions have unique keys.
    """
    if op.structure:  # of an op without an index
        return op.structure[0], op.inputs
    leaves: list[Leaf] = []
    if op.regions:
        return object(), leaves
    index = _INDEX_POSITIONS.get(op.function)
    args = tuple(
        [
            _index_key(op, a, leaves) if i == index else _key(a, leaves)
            for i, a in enumerate(op.args)
        ]
    )
    kwargs = tuple(
        [
            (k, _index_key(op, a, leaves) if k == "key" else _key(a, leaves))
            for k, a in op.kwargs.items()
        ]
    )
    key = (op.function, args, kwargs)
    try:
        hash(key)
    except TypeError:
        return object(), leaves
    if op.structure is not None and index is None and "key" not in op.kwargs:
        op.structure.append(key)
    return key, leaves


def _index_key(op: Op, index: Any, leaves: list[Leaf]) -> Any:
    window = _window(op, index)
    if window is None:
        return _key(index, leaves, True)
    leaves.append(window)
    rest = index[1:] if isinstance(index, tuple) else ()
    return (Window, window.length, *[_key(part, leaves, True) for part in rest])


def _key(tree: Any, leaves: list[Leaf], index: bool = False) -> Any:
    kind = tree.__class__
    if kind is Value:
        leaves.append(tree)
        return (tree.shape, tree.dtype)
    if isinstance(tree, (tuple, list)):
        return (kind, *[_key(item, leaves, index) for item in tree])
    if kind is slice:
        return ("slice", *[_key(part, leaves) for part in _ends(tree)])
    if index and kind is int:
        leaves.append(tree)
        return int
    return constant_key(tree)


def _window(op: Op, index: Any) -> Window | None:
    """Return the window that an index begins with, if an array of integers could replace it."""
    first, *rest = index if isinstance(index, tuple) and index else (index,)
    if not isinstance(first, slice) or not all(
        is_basic(part) or getattr(part, "ndim", 1) == 0 for part in rest
    ):
        return None
    shape = op.kwargs["shape"] if "shape" in op.kwargs else op.args[0].shape
    start, _, step = first.indices(shape[0])
    return Window(start, len(range(shape[0])[first]), step)


def is_basic(part: Any) -> bool:
    return isinstance(part, int | slice | EllipsisType | None)


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def rebuild_op(op: Op, leaves: Iterator[Leaf], outs: tuple[Value, ...]) -> Op:
    """Return the op with other leaves, in the order of `structural_key`, and other results."""
    index = _INDEX_POSITIONS.get(op.function)
    args = tuple(
        [
            _substitute_index(op, a, leaves) if i == index else _substitute(a, leaves)
            for i, a in enumerate(op.args)
        ]
    )
    kwargs = {
        k: _substitute_index(op, a, leaves) if k == "key" else _substitute(a, leaves)
        for k, a in op.kwargs.items()
    }
    return Op(op.function, args, kwargs, outs, op.location)


def _substitute_index(op: Op, index: Any, leaves: Iterator[Leaf]) -> Any:
    if _window(op, index) is None:
        return _substitute(index, leaves, True)
    found = next(leaves)
    first = found.key if isinstance(found, Window) else found
    if not isinstance(index, tuple):
        return first
    return (first, *[_substitute(part, leaves, True) for part in index[1:]])


def _substitute(tree: Any, leaves: Iterator[Leaf], index: bool = False) -> Any:
    if isinstance(tree, Value) or (index and type(tree) is int):
        return next(leaves)
    if isinstance(tree, tuple | list):
        items = [_substitute(item, leaves, index) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, slice):
        return slice(*[_substitute(part, leaves) for part in _ends(tree)])
    return tree
