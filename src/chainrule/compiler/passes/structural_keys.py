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
    """A slice of an axis: steps of a loop may take windows that begin elsewhere.

    As index arrays, those of several axes select as the slices do: see `numpy.ix_`.
    """

    start: int
    length: int
    step: int
    following: int = 0  # number of windows of the same index that follow

    @property
    def indices(self) -> Any:
        found = self.start + self.step * np.arange(self.length)
        return found.reshape(-1, *(1,) * self.following)

    @property
    def key(self) -> slice:
        stop = self.start + self.step * self.length
        return slice(self.start, None if stop < 0 else stop, self.step)


INDEX_POSITIONS = {"getitem": 1, "assign_at": 2, "plus_at": 2}
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
    index = INDEX_POSITIONS.get(op.function)
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
    windows = _windows(op, index)
    if not windows:
        return _key(index, leaves, True)
    found: list[Any] = []
    for position, part in enumerate(_parts(index)):
        window = windows.get(position)
        if window is None:
            found.append(_key(part, leaves, True))
        else:
            leaves.append(window)
            found.append((Window, window.length))
    return (Window, *found)


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


def _windows(op: Op, index: Any) -> dict[int, Window]:
    """Return the windows of an index by position, if arrays of integers could replace them.

    NumPy moves the axes of index arrays to the front if they and integers are not side by side:
    then a slice of the first axis alone is a window.
    """
    parts = _parts(index)
    if slice not in [part.__class__ for part in parts]:
        return {}
    if not all(is_basic(part) or getattr(part, "ndim", 1) == 0 for part in parts):
        return {}
    known = next((i for i, part in enumerate(parts) if part is None or part is ...), len(parts))
    sliced = [i for i, part in enumerate(parts) if isinstance(part, slice) and part != _ALL]
    used = [i for i, p in enumerate(parts) if i in sliced or not isinstance(p, _SLICE_OR_NEW)]
    if not sliced or used[-1] >= known or used[-1] - used[0] >= len(used):
        sliced = [0] if isinstance(parts[0], slice) else []
    shape = op.kwargs["shape"] if "shape" in op.kwargs else op.args[0].shape
    found = {}
    for count, i in enumerate(sliced, 1):
        start, _, step = parts[i].indices(shape[i])
        length = len(range(shape[i])[parts[i]])
        found[i] = Window(start, length, step, len(sliced) - count)
    return found


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


_ALL = slice(None)
_SLICE_OR_NEW = slice | EllipsisType | None


def is_basic(part: Any) -> bool:
    return isinstance(part, int | slice | EllipsisType | None)


def _ends(part: slice) -> tuple[Any, Any, Any]:
    return part.start, part.stop, part.step


def rebuild_op(op: Op, leaves: Iterator[Leaf], outs: tuple[Value, ...]) -> Op:
    """Return the op with other leaves, in the order of `structural_key`, and other results."""
    index = INDEX_POSITIONS.get(op.function)
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
    windows = _windows(op, index)
    if not windows:
        return _substitute(index, leaves, True)
    parts = []
    for position, part in enumerate(_parts(index)):
        found = next(leaves) if position in windows else _substitute(part, leaves, True)
        parts.append(found.key if isinstance(found, Window) else found)
    return tuple(parts) if isinstance(index, tuple) else parts[0]


def _substitute(tree: Any, leaves: Iterator[Leaf], index: bool = False) -> Any:
    if isinstance(tree, Value) or (index and type(tree) is int):
        return next(leaves)
    if isinstance(tree, tuple | list):
        items = [_substitute(item, leaves, index) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, slice):
        return slice(*[_substitute(part, leaves) for part in _ends(tree)])
    return tree
