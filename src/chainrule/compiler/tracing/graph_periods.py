"""Repetitions of the nodes of a backward pass: the steps of a loop in Python.

Two nodes are alike if their rules do the same to other arrays: they have the same plan, settings
but for integers in indices, and types of what they saved. Nodes repeat with a period if each is
like the one a period later, and their edges lead equally far, or to the same node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.node import Node, NodeOutput
from chainrule.autograd.primitive_node import MultiOutputNode, PrimitiveNode
from chainrule.autograd.versions import write_log
from chainrule.backend import numpy_xp
from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.program import ATOMS, Op, Value
from chainrule.compiler.passes.repetitions import repetitions
from chainrule.compiler.passes.reroll import MIN_STEPS
from chainrule.compiler.tracing.repeated_calls import kind_of
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import Trace
from chainrule.primitives.indexing import Path, Shape, region

Slot = Any  # a value that a node saved, or an integer of an index


class Period(NamedTuple):
    """Nodes that repeat: `steps` times `length` nodes, from number `begin` on."""

    begin: int
    length: int
    steps: int
    reach: int  # the largest number of nodes that edges to another step pass

    @property
    def end(self) -> int:
        return self.begin + self.length * self.steps


class UnlikeError(Exception):
    """What a node holds can't be compared with what others hold."""


def present_value(symbol: Any) -> Value:
    """Return the value of a symbol, whose memory has not been written to since it was made."""
    if type(symbol) is not Symbol:
        raise UnlikeError
    if symbol._base is not None and symbol._value_version != symbol._base.version:
        raise UnlikeError
    found: Value = symbol._value
    return found


class PassNodes:
    """The nodes of a backward pass in the order in which they run, numbered from 0 on."""

    def __init__(self, trace: Trace, nodes: Collection[Node], special: Collection[Node]) -> None:
        self.trace = trace
        self.nodes = sorted(nodes, key=attrgetter("seq"), reverse=True)
        self.index = {node: i for i, node in enumerate(self.nodes)}
        self.slots: list[Sequence[Slot]] = []
        self._makers: dict[Value, Op] = {}
        self._read = 0  # number of ops whose results are among the makers
        numbers: dict[Any, int] = {}
        self.keys: list[int] = []
        for node in self.nodes:
            slots: list[Slot] = []
            try:
                if node in special or node.hooks is not None:
                    raise UnlikeError
                key = self._key(node, slots)
                number = numbers.setdefault(key, len(numbers))
            except (UnlikeError, TypeError):  # a key that can't be hashed
                number = numbers.setdefault(object(), len(numbers))
            self.keys.append(number)
            self.slots.append(slots)

    def _key(self, node: Node, slots: list[Slot]) -> Any:
        """Return a key equal for nodes that do the same, and append what they do it to."""
        kind = node.__class__
        if not isinstance(node, PrimitiveNode) or kind not in (PrimitiveNode, MultiOutputNode):
            raise UnlikeError
        saved, trace = node.saved, self.trace
        if saved is None or (write_log.last > node.seq and not _is_unwritten(node)):
            raise UnlikeError
        kinds = []
        for x in saved:
            if type(x) is Symbol:
                slots.append(present_value(x))
                kinds.append(x.kind or kind_of(trace, x))
            else:
                kinds.append(self._tree_key(x, slots))
        outputs = [e.index if e.__class__ is NodeOutput else e is None for e in node.edges]
        settings = self._settings_key(node, slots) if node.settings else None
        return node.plan, tuple(kinds), tuple(outputs), node.input_meta, settings

    def _settings_key(self, node: PrimitiveNode, slots: list[Slot]) -> Any:
        settings: Any = node.settings
        part, saved = node.plan.part, node.saved
        found: list[Any] = []
        for name, x in settings.items():
            if name == "path" and part == "write":
                assert node.input_meta is not None
                found.append(self._path_key(x, node.input_meta[0], slots))
            elif name == "key":
                shape = saved[0] if saved and part == "read" else None
                found.append(self._index_key(x, shape, slots))
            else:
                found.append((name, self._tree_key(x, slots)))
        return tuple(found)

    def _path_key(self, path: Path, meta: tuple[Shape, Any], slots: list[Slot]) -> Any:
        """Return the key of the views through which an array of a shape and dtype is written to."""
        found: list[Any] = []
        like = np.empty(*meta) if len(path) > 1 else None  # whose elements nobody reads
        shape = meta[0]
        for number, (primitive, settings) in enumerate(path, 1):
            if primitive.part == "read":
                found.append((primitive, self._index_key(settings["key"], shape, slots)))
            else:
                found.append((primitive, self._tree_key(settings, slots)))
            if like is not None and number < len(path):
                like = region(numpy_xp, like, ((primitive, settings),))
                shape = like.shape
        return tuple(found)

    def _index_key(self, key: Any, shape: Shape | None, slots: list[Slot]) -> Any:
        """Return the key of an index, of an array of this shape if it is known.

        Its integers are slots, and so is where a slice begins that the array doesn't cut off.
        """
        found: list[Any] = [type(key)]
        sizes = iter(shape or ())  # of the axes up to those that `...` or an array selects from
        for part in key if type(key) is tuple else (key,):
            kind, size = type(part), None
            if kind is int or kind is slice:
                size = next(sizes, None)
            else:
                sizes = iter(())
            if kind is int:
                slots.append(part)
                found.append((int, part < 0))
            elif kind is slice and size is not None and _is_window(part, size):
                slots.append(part.start)
                found.append((slice, part.stop - part.start, part.step))
            else:
                found.append(self._tree_key(part, slots))
        return tuple(found)

    def _tree_key(self, tree: Any, slots: list[Slot]) -> Any:
        kind = type(tree)  # `__class__` of symbols is a property
        if kind in ATOMS:
            return constant_key(tree)
        if kind is Symbol and tree.dtype.kind != "b":  # rules may look at the elements of masks
            slots.append(present_value(tree))
            return tree.kind or kind_of(self.trace, tree)
        if kind is tuple:
            return (kind, *[self._tree_key(item, slots) for item in tree])
        if kind is dict:
            return tuple([(name, self._tree_key(x, slots)) for name, x in tree.items()])
        if kind is slice or isinstance(tree, np.dtype):
            return constant_key(tree)
        raise UnlikeError

    def makers(self, ops: list[Op]) -> dict[Value, Op]:
        """Return the ops by their results."""
        new, self._read = ops[self._read :], len(ops)
        self._makers.update({out: op for op in new for out in op.outs})
        return self._makers

    def forget_makers(self, begin: int) -> None:
        """Have the ops from a number on read again, since others take their places."""
        self._read = min(self._read, begin)

    def periods(self) -> list[Period]:
        """Return repetitions that don't overlap, in their order, the longest chosen first."""
        leads = [target for i in range(len(self.nodes)) for target in self._targets(i)]
        targets = np.array(leads, np.int64)
        first = np.cumsum([0, *[len(node.edges) for node in self.nodes]])
        found = [
            period
            for repeated in repetitions(self.keys, MIN_STEPS)
            for period in _periods_in(repeated, first, targets)
        ]
        chosen: list[Period] = []
        for each in sorted(found, key=lambda p: p.length * (p.steps - 1), reverse=True):
            if all(each.end <= other.begin or other.end <= each.begin for other in chosen):
                chosen.append(each)
        return sorted(chosen)

    def leads_to(self, period: Period, end: int) -> set[int]:
        """Return the numbers from `end` on of nodes that edges lead to which move with a step."""
        found: set[int] = set()
        for number in range(end - period.reach, end):
            before = self._targets(number - period.length)
            for target, other in zip(self._targets(number), before, strict=True):
                if target >= end and target != other:
                    found.add(target)
        return found

    def _targets(self, number: int) -> list[int]:
        """Return the numbers of the nodes that a node's edges lead to; -1 for what doesn't run."""
        return [
            -1 if e is None else self.index.get(e.node if e.__class__ is NodeOutput else e, -1)
            for e in self.nodes[number].edges
        ]


def _is_unwritten(node: PrimitiveNode) -> bool:
    """Whether nobody has written to what a node saved."""
    try:
        return node.saved_values() is node.saved
    except Exception:  # which the pass raises when it comes to the node
        return False


def _is_window(part: slice, size: int) -> bool:
    """Whether a slice of an axis selects as many elements as its integers say."""
    begin, end, step = part.start, part.stop, part.step
    return (
        type(begin) is type(end) is int
        and 0 <= begin <= end <= size
        and (step is None or (type(step) is int and step > 0))
    )


def _periods_in(repeated: Any, first: Any, targets: Any) -> Iterator[Period]:
    """Yield the parts of a repetition of keys in which the edges repeat as well."""
    start, end, length = repeated
    counts = np.diff(first[start : end + 1])
    low, high, shift = first[start], first[end - length], first[start + length] - first[start]
    owner = np.repeat(np.arange(start, end), counts)[: high - low]
    target, later = targets[low:high], targets[low + shift : high + shift]
    moves = (later - target == length) & (target >= 0)
    same = (later == target) & ((target >= end) | (target < 0))
    alike = np.ones(end - start - length, bool)
    alike[owner[~(moves | same)] - start] = False
    edges = np.flatnonzero(np.diff(np.concatenate([[0], alike, [0]])))
    for begin, stop in edges.reshape(-1, 2):
        steps = int(stop - begin) // length + 1
        inside = moves & (begin + start <= owner) & (owner < stop + start)
        reach = int((target - owner)[inside].max(initial=0))
        if steps >= MIN_STEPS:
            yield Period(start + int(begin), length, steps, reach)
