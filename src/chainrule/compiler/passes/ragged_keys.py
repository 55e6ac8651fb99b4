"""Keys of ops that are equal for those that do the same to arrays of other sizes, too."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.op_traits import is_elementwise
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.passes.structural_keys import INDEX_POSITIONS, Leaf, Window

_SHAPES = {"np.reshape": 1, "np.broadcast_to": 1, "np.zeros": 0, "np.ones": 0, "np.empty": 0}
"""Position of the shape among the arguments, which that of the result says, too."""


class Part(NamedTuple):
    """One part of an index, and the axis that it selects from; None if it selects from none."""

    item: Any
    axis: int | None


def ragged_key(op: Op) -> tuple[Any, Sequence[Leaf]]:
    """Return a key of an op without its sizes, and its leaves: values, integers, windows."""
    leaves: list[Leaf] = []
    if op.regions:
        key = _loop_key(op, leaves) if op.function == "for" else None
        return key or object(), leaves
    index, shape = INDEX_POSITIONS.get(op.function), _SHAPES.get(op.function)
    key_of = _key_or_number if is_elementwise(op.function) else _key
    try:
        found = [
            _index_key(op, item, leaves) if place in (index, "key") else key_of(item, leaves)
            for place, item in itertools.chain(enumerate(op.args), op.kwargs.items())
            if place not in (shape, "shape")
        ]
        key = (op.function, *found, *[(len(out.shape), out.dtype) for out in op.outs])
        hash(key)
    except (TypeError, IndexError):  # a setting that has no hash, a mask of several axes
        return object(), leaves
    return key, leaves


def _loop_key(op: Op, leaves: list[Leaf]) -> Any:
    """Return the key of a loop, whose leaves are those of its ops that it doesn't make itself."""
    (region,) = op.regions
    begins, tables = op.args
    if region.constants or any([inner.regions for inner in region.ops]):
        return None
    leaves += [*begins, *tables]
    kinds = [(len(x.shape), x.dtype) if isinstance(x, Value) else range for x in leaves]
    parts: list[Any] = []
    for inner, key, found in loop_leaves(op):
        parts.append((key, found))
        leaves += [leaf for leaf, number in zip(inner, found, strict=True) if number is None]
    return "for", op.kwargs["length"], op.kwargs["reverse"], len(begins), *kinds, *parts


def loop_leaves(op: Op) -> Iterator[tuple[Sequence[Leaf], Any, tuple[int | None, ...]]]:
    """Yield the leaves of the ops of a loop, their keys, and the numbers of what it makes itself.

    The last are the outputs of a step.
    """
    (region,) = op.regions
    numbers = {value: number for number, value in enumerate(region.inputs)}
    for inner in region.ops:
        key, leaves = ragged_key(inner)
        yield leaves, key, tuple([numbers.get(leaf) for leaf in leaves])
        for out in inner.outs:
            numbers[out] = len(numbers)
    yield region.outputs, None, tuple([numbers.get(value) for value in region.outputs])


class Number(NamedTuple):
    """A number of a step, such as the length by which a mean is divided."""

    value: int | float


def _key_or_number(tree: Any, leaves: list[Leaf]) -> Any:
    if tree.__class__ is int or tree.__class__ is float:
        leaves.append(Number(tree))
        return tree.__class__
    return _key(tree, leaves)


def _key(tree: Any, leaves: list[Leaf]) -> Any:
    kind = tree.__class__
    if kind is Value:
        leaves.append(tree)
        return len(tree.shape), tree.dtype
    if isinstance(tree, (tuple, list)):
        return (kind, *[_key(item, leaves) for item in tree])
    return constant_key(tree)


def _index_key(op: Op, index: Any, leaves: list[Leaf]) -> Any:
    shape = indexed_shape(op)
    found: list[Any] = []
    for item, axis in index_parts(index, len(shape)):
        if axis is None:
            found.append(item)
        elif isinstance(item, slice):
            start, _, step = item.indices(shape[axis])
            leaves.append(Window(start, len(range(shape[axis])[item]), step))
            found.append(slice)
        elif type(item) is int:
            leaves.append(item if item >= 0 else item + shape[axis])
            found.append(int)
        else:
            found.append(_key(item, leaves))
    return tuple(found)


def indexed_shape(op: Op) -> tuple[int, ...]:
    """Return the shape of the array that the index of an op selects from."""
    found: tuple[int, ...] = op.kwargs["shape"] if "shape" in op.kwargs else op.args[0].shape
    return found


def index_parts(index: Any, ndim: int) -> list[Part]:
    """Return the parts of an index of an array with so many axes."""
    items = index if isinstance(index, tuple) else (index,)
    taken = sum([item is not None and item is not ... for item in items])
    found, axis = [], 0
    for item in items:
        if item is ...:
            axis += ndim - taken
        found.append(Part(item, None if item is None or item is ... else axis))
        axis += item is not None and item is not ...
    return found
