"""Recorded graphs: the graph of nodes that a trace recorded, made again on the arrays of a call.

A derivative of a compiled function that the traced backward pass doesn't serve, as in forward mode
or under `create_graph=True`, goes through the graph that the call would have recorded in eager
mode. Its nodes are those of the trace, with arrays in place of symbols. The arrays are computed by
the ops of the trace, from the inputs of the call: the user's function doesn't run again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.context import UNMARKED, Context
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.node import AccumulateGrad, Edge, Hooks, Node, NodeOutput, endpoint
from chainrule.autograd.primitive_node import (
    HookedNode,
    MultiOutputNode,
    PrimitiveNode,
    SavedTensor,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.backend import numpy_xp
from chainrule.compiler.ir.abstract_eval import DRAW, resolve
from chainrule.compiler.ir.program import Op, Program, Value, every_op, map_values
from chainrule.compiler.tracing.namespace import SYMBOL_XP
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.interrupts import errstate
from chainrule.transforms.vmap.batched_array import BatchedArray

Arrays = dict[Value, Any]

# --- evaluation of ops ----------------------------------------------------------------------------


def needed_ops(
    ops: Sequence[Op], wanted: Iterable[Value], known: Iterable[Value]
) -> tuple[list[Op], list[Value]]:
    """Return the ops that compute `wanted`, given `known`, and what they use from outside."""
    known, kept = set(known), []
    missing = dict.fromkeys(v for v in wanted if v not in known)
    for op in reversed(ops):
        if any(v in missing for v in op.outs):
            kept.append(op)
            for value in op.outs:
                missing.pop(value, None)
            missing |= dict.fromkeys(v for v in op.inputs if v not in known)
    return kept[::-1], list(missing)


@errstate(all="ignore")
def evaluate(ops: Iterable[Op], arrays: Arrays) -> None:
    """Add the results of ops to the arrays of their inputs."""
    for op in ops:
        for value, array in zip(op.outs, _results(op, arrays), strict=True):
            arrays.setdefault(value, array)  # what a call has kept is not computed anew


def _results(op: Op, arrays: Arrays) -> Sequence[Any]:
    if op.function == "for":
        return _run_for(op, arrays)
    if op.function == "while":
        carry = [arrays[v] for v in op.args[0]]
        condition, body = op.regions
        while _run_region(condition, carry, arrays)[0]:
            carry = _run_region(body, carry, arrays)
        return carry
    if op.function == "if":
        return _run_region(op.regions[0 if arrays[op.args[0]] else 1], (), arrays)
    args = map_values(op.args, arrays.__getitem__)
    kwargs = {key: map_values(value, arrays.__getitem__) for key, value in op.kwargs.items()}
    found = resolve(op.function)(*args, **kwargs)
    return list(map(np.asarray, found)) if isinstance(found, tuple | list) else [np.asarray(found)]


def _run_for(op: Op, arrays: Arrays) -> list[Any]:
    carry: Sequence[Any] = [arrays[v] for v in op.args[0]]
    columns = [arrays[v] for v in op.args[1]]
    rows, length = [], op.kwargs["length"]
    for i in reversed(range(length)) if op.kwargs["reverse"] else range(length):
        found = _run_region(op.regions[0], [*carry, *(c[i] for c in columns)], arrays)
        carry = found[: len(carry)]
        rows.append(found[len(carry) :])
    if op.kwargs["reverse"]:
        rows.reverse()
    return [*carry, *map(np.stack, zip(*rows, strict=True))]


def _run_region(region: Program, inputs: Sequence[Any], outer: Arrays) -> list[Any]:
    arrays = {v: outer[v] for v in region.free_values()}
    arrays |= zip(region.inputs, inputs, strict=True)
    evaluate(region.ops, arrays)
    return [arrays[v] for v in region.outputs]


# --- graphs ---------------------------------------------------------------------------------------


class Call(NamedTuple):
    """What a graph is made of: arrays by value, the edges to leaves, and of the nodes made."""

    arrays: Arrays
    leaves: Sequence[Edge]
    made: dict[int, Any]  # a node, or the edges of the outputs of several


Maker = Callable[[Call], Any]


class SubgraphNode(Node):
    """Base class of nodes in whose place several are made, such as those of a loop's steps."""

    __slots__ = ()

    def template(self) -> SubgraphTemplate:
        """Return what makes the nodes."""
        raise AssertionError(f"{type(self).__name__} is abstract")


class SubgraphTemplate:
    """Makes the nodes in the place of one."""

    @property
    def values(self) -> Iterable[Value]:
        """The values whose arrays it needs."""
        raise AssertionError(f"{type(self).__name__} is abstract")

    def edges(self, arrays: Arrays, edges: Sequence[Edge]) -> Sequence[Edge]:
        """Return the edges to the outputs, given those to the inputs."""
        raise AssertionError(f"{type(self).__name__} is abstract")


class GraphTemplate:
    """The graph from tensors of the active trace back to `leaves`, which are nodes."""

    def __init__(self, outputs: Sequence[Tensor], leaves: Sequence[Node | None]) -> None:
        self.values: dict[Value, None] = {}  # whose arrays the nodes save
        self._leaves = {leaf: i for i, leaf in enumerate(leaves) if leaf is not None}
        self._numbers: dict[Node, int] = {}
        ends = [current_node(t) for t in outputs]
        self._makers: list[Maker] = []
        for node in _nodes_before(ends, self._leaves):
            self._makers.append(self._node(node))
            self._numbers[node] = len(self._numbers)
        self._ends = [self._edge(end) for end in ends]
        self._leaves, self._numbers = {}, {}  # the nodes of the trace hold its symbols

    def edges(self, arrays: Arrays, leaves: Sequence[Edge]) -> list[Edge]:
        """Return the edges to the outputs of a new graph."""
        call = Call(arrays, leaves, {})
        for number, maker in enumerate(self._makers):
            call.made[number] = maker(call)
        return [end(call) for end in self._ends]

    # --- nodes and edges ---

    def _edge(self, edge: Edge) -> Maker:
        if edge is None:
            return lambda call: None
        node, index = endpoint(edge)
        if node in self._leaves:
            position = self._leaves[node]
            return lambda call: call.leaves[position]
        number, whole = self._numbers.get(node), type(edge) is not NodeOutput
        if number is None:  # a leaf that the function made
            return lambda call: None

        def make_edge(call: Call) -> Edge:
            made = call.made[number]
            if made is None or isinstance(made, Node):
                return made if whole or made is None else NodeOutput(made, index)
            return made[index]

        return make_edge

    def _node(self, node: Node) -> Maker:
        edges = [self._edge(edge) for edge in node.edges]
        if isinstance(node, SubgraphNode):
            template = node.template()
            self.values.update(dict.fromkeys(template.values))
            return lambda call: template.edges(call.arrays, [edge(call) for edge in edges])
        kind, slots = type(node), self._slots(node)
        if kind is HookedNode and isinstance(node, HookedNode):
            kind = MultiOutputNode if node.plan.primitive.multiple else PrimitiveNode
        context = self._context(node.ctx) if isinstance(node, FunctionNode) else None
        code, instruction, hooks = node.code, node.instruction, _hooks_of(node)

        def make_node(call: Call) -> Node | None:
            made_edges = tuple([edge(call) for edge in edges])
            if all(edge is None for edge in made_edges):
                return None
            made = object.__new__(kind)
            made.edges, made.hooks, made.seq = made_edges, hooks(), next_seq()
            made.code, made.instruction = code, instruction
            for setter, maker in slots:
                setter(made, maker(call))
            if context is not None:
                context(call, made)
            return made

        return make_node

    def _slots(self, node: Node) -> list[tuple[Callable[[Any, Any], None], Maker]]:
        """Return the setter and the maker of each slot of a node that is not one of every node."""
        found = []
        for name, slot in _slots_of(type(node)):
            try:
                value = slot.__get__(node)
            except AttributeError:
                continue  # never set
            if name == "saved" and isinstance(node, PrimitiveNode):
                value = node.saved_values()  # raises if they have been written to
            found.append((slot.__set__, self._maker(value)))
        return found

    def _context(self, ctx: Context) -> Callable[[Call, Any], None]:
        """Return what gives a node of a custom function a `ctx` of its own."""
        _ = ctx.saved_variables  # raises if they have been written to
        names, reference = ctx._names, ctx._node
        needs = [edge is not None for edge in ctx._edges]
        attributes, saved = self._maker(ctx.__dict__), self._maker(ctx._saved)

        def make_context(call: Call, node: Any) -> None:
            made = node.ctx = Context()
            made.__dict__.update(attributes(call))
            pairs = zip(node.edges, needs, strict=True)
            made._names = names
            made._edges = tuple([edge if need else None for edge, need in pairs])
            made._saved, made._marks = saved(call), UNMARKED
            made._node = None if reference is None else weakref.ref(node)

        return make_context

    # --- what nodes hold ---

    def _maker(self, x: Any) -> Maker:
        """Return what makes an object again, with arrays in place of symbols."""
        found = self._changing(x)
        return (lambda call: x) if found is None else found

    def _changing(self, x: Any) -> Maker | None:
        """Return what makes an object again; None if it is the same in each call."""
        if isinstance(x, Symbol):
            value = x.value
            self.values[value] = None
            return lambda call: call.arrays[value]
        if isinstance(x, BatchedArray):
            data, level = self._maker(x.data), x.level
            return lambda call: BatchedArray(level, data(call))
        if isinstance(x, Tensor):
            array, edge = self._changing(x._array), self._edge(current_node(x))
            return None if array is None else lambda call: make(array(call), edge(call))
        if isinstance(x, SavedTensor):
            return self._changing(x.unpack(_NOWHERE, 0))
        if isinstance(x, Node | NodeOutput):
            return self._edge(x)
        if x is SYMBOL_XP:
            return lambda call: numpy_xp
        if isinstance(x, dict):
            return self._dict(x)
        if isinstance(x, slice):
            parts = self._changing((x.start, x.stop, x.step))
            return None if parts is None else lambda call: slice(*parts(call))
        return self._sequence(x) if isinstance(x, tuple | list) else None

    def _dict(self, x: dict[Any, Any]) -> Maker | None:
        makers = {key: self._changing(part) for key, part in x.items()}
        if all(maker is None for maker in makers.values()):
            return None
        same = {key: part for key, part in x.items() if makers[key] is None}
        return lambda call: {k: same[k] if m is None else m(call) for k, m in makers.items()}

    def _sequence(self, x: Sequence[Any]) -> Maker | None:
        makers = [self._changing(part) for part in x]
        if all(maker is None for maker in makers):
            return None
        kind: Any = type(x)
        build = kind._make if hasattr(kind, "_fields") else kind
        pairs = [(p if maker is None else None, maker) for p, maker in zip(x, makers, strict=True)]
        return lambda call: build([p if maker is None else maker(call) for p, maker in pairs])


_COMMON_SLOTS = frozenset(["__weakref__", "code", "ctx", "edges", "hooks", "instruction", "seq"])


def _slots_of(kind: type) -> Iterator[tuple[str, Any]]:
    for cls in kind.__mro__:
        for name in vars(cls).get("__slots__", ()):
            if name not in _COMMON_SLOTS:
                yield name, vars(cls)[name]


_NOWHERE = Node()
_NOWHERE.seq, _NOWHERE.edges = 0, ()
_NOWHERE.hooks = _NOWHERE.code = None


def _hooks_of(node: Node) -> Callable[[], Hooks | None]:
    """Return what makes the hooks of a node: those that the function registered on it."""
    hooks = node.hooks
    if hooks is None:
        return lambda: None
    tensor, pre, post = dict(hooks.tensor), hooks.pre, hooks.post

    def make_hooks() -> Hooks:
        made = Hooks()
        made.tensor, made.pre, made.post = tensor, pre, post
        return made

    return make_hooks


def _nodes_before(ends: Iterable[Edge], leaves: Mapping[Node, int]) -> list[Node]:
    """Return the nodes between leaves and ends, in order of creation."""
    found: set[Node] = set()
    stack = [endpoint(end)[0] for end in ends if end is not None]
    while stack:
        node = stack.pop()
        if node in found or node in leaves or type(node) is AccumulateGrad:
            continue
        found.add(node)
        stack += [endpoint(edge)[0] for edge in node.edges if edge is not None]
    return sorted(found, key=lambda node: node.seq)


# --- graphs of a call -----------------------------------------------------------------------------


class RecordedGraph:
    """The graph of a compiled function for one signature, with the ops that compute its arrays."""

    def __init__(
        self,
        graph: GraphTemplate,
        ops: Sequence[Op],
        constants: Mapping[Value, Any],
        given: Iterable[Value],
    ) -> None:
        """`given` are values that each call keeps anyway."""
        self._graph = graph
        self._ops, needed = needed_ops(ops, graph.values, given)
        self._constants = {v: constants[v] for v in needed if v in constants}
        self.inputs = [v for v in needed if v not in constants]
        used = {*graph.values, *(v for op in self._ops for v in op.inputs)}
        self.given = used.intersection(given)

    @property
    def draws(self) -> list[Op]:
        """The ops that draw random numbers, which a call must keep."""
        return [op for op in every_op(self._ops) if op.function == DRAW]

    def edges(self, arrays: Arrays, leaves: Sequence[Edge]) -> list[Edge]:
        """Return the edges to the outputs of a new graph; `arrays` has `inputs` and `given`."""
        arrays = {**self._constants, **arrays}
        evaluate(self._ops, arrays)
        return self._graph.edges(arrays, leaves)
