"""Traces of recorded graphs: forward operations and rules run on symbols, step by step.

The rules are those that the backward pass runs, so a formula made of a trace can't be another one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.node import (
    AccumulateGrad,
    Node,
    NodeOutput,
    check_unwritten,
    endpoint,
    freed_error,
)
from chainrule.autograd.primitive_node import HookedNode, MultiOutputNode, PrimitiveNode
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq, write_log
from chainrule.backend import namespace_among
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.tracing.namespace import SYMBOL_XP
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import Trace
from chainrule.errors import AutogradError
from chainrule.primitives.primitive import forward_of, parameters
from chainrule.transforms.vmap.batched_array import BatchedArray
from chainrule.transforms.vmap.interpreter import BatchBoundary
from chainrule.visualization.recording import Recording, Vertex, array_of_all, operand_names

End = tuple[Node, int]
"""An output of a node."""


class Part(NamedTuple):
    """What an operand gets of the gradient."""

    end: End
    value: Value
    label: str  # where it is one of several summands: the operation that it comes through


@dataclass(eq=False)
class Step:
    """The rule of one node: what each operand that leads to x gets of the gradient."""

    node: Node
    vertex: Vertex
    ops: list[Op] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    partials: list[tuple[str, list[Op], Value]] = field(default_factory=list)  # generic rules


class BackwardTrace:
    """The gradient of one tensor with respect to another, traced."""

    def __init__(self, recording: Recording, root: Tensor, target: Tensor) -> None:
        self.recording = recording
        self.trace = Trace("gradient")
        self.trace.lines.naming = False
        self.root, self.target = endpoint(root._edge), endpoint(target._edge)
        self.arrays: dict[Value, Any] = {}  # of the inputs, with their elements
        self.inputs: list[Value] = []
        self.results: dict[End, Any] = {}  # of the forward pass, as far as they are known
        self.gradients: dict[End, Value] = {}
        self.sums: dict[End, list[Part]] = {}  # of several summands
        self.forward: dict[Node, list[Op]] = {}
        self.steps: list[Step] = []
        self._names = _unique_names(recording)
        self._constants: dict[int, Any] = {}
        self.nodes = sorted(recording.nodes, key=lambda node: node.seq)
        self.path = _between(self.nodes, self.target[0])
        if self.root[0] not in self.path:
            raise AutogradError(
                "derivation: the first tensor does not depend on the second: no recorded operation "
                "leads from one to the other. cr.why(x) tells the reason"
            )
        # Outside the trace, as hooks may compute them anew. Hooks are asked once for each.
        self.kept = {
            node: node.saved_values()
            for node in self.nodes
            if isinstance(node, PrimitiveNode) and (node in self.path or node.saved is not None)
        }
        for node in self.nodes:
            self._run_forward(node)
        self.trace.run(self._run_backward, root)

    def name(self, end: End) -> str:
        """Return the name of an output in formulas."""
        base = self._names[self.recording.nodes[end[0]]]
        return f"{base}_{end[1]}" if end[0].output_count > 1 else base

    # --- forward ---

    def _run_forward(self, node: Node) -> None:
        begin = len(self.trace.ops)
        if isinstance(node, AccumulateGrad):
            leaf = node.variable
            if leaf is not None and isinstance(leaf._array, np.ndarray):
                self.results[node, 0] = self._input(leaf._array, self.name((node, 0)))
            return
        operands = [self._operand(node, i) for i in range(len(node.edges))]
        in_place = bool((getattr(node, "settings", None) or {}).get("path"))
        if (
            isinstance(node, PrimitiveNode)
            and not in_place
            and all(x is not None for x in operands)
        ):
            try:
                forward = forward_of(node.plan.primitive, namespace_among(operands))
                found = self.trace.run(forward, *operands, **(node.settings or {}))
            except Exception:  # it depends on values: later steps take what the graph keeps
                del self.trace.ops[begin:]
                return
            parts = found if isinstance(found, tuple | list) else (found,)
            for index, part in enumerate(parts):
                self.results[node, index] = part
                value_of(part).hint = self.name((node, index))
        elif isinstance(node, BatchBoundary) and operands[0] is not None:
            moved = self.trace.run(node.jvp, (make(operands[0], None),), None)  # it is linear
            self.results[node, 0] = moved._array
        self.forward[node] = self.trace.ops[begin:]

    def _operand(self, node: Node, position: int) -> Any:
        edge = node.edges[position]
        if edge is not None:
            symbol = self.results.get(endpoint(edge))
            kept = None if symbol is None else self.arrays.get(value_of(symbol))
            if kept is not None and write_log.last > node.seq:
                check_unwritten(node, kept, edge, position)
            return symbol
        if isinstance(node, PrimitiveNode) and position in node.plan.origins:
            if node not in self.kept:
                return None
            array = self.kept[node][node.plan.origins.index(position)]
            return self._constant(array, operand_names(node)[position])
        return None

    def _input(self, array: Any, hint: str) -> Symbol:
        value = Value(array.shape, array.dtype, hint)
        self.inputs.append(value)
        self.arrays[value] = array
        made: Symbol = self.trace.run(Symbol, value)
        return made

    def _constant(self, array: Any, hint: str) -> Any:
        """Return an array that the graph keeps: a number as it is, others as an input."""
        hint = self._constant_name(array, hint)
        if isinstance(array, BatchedArray):
            return BatchedArray(array.level, self._constant(array.data, hint))
        key = id(array)
        if key not in self._constants:
            if np.ndim(array) == 0:
                self._constants[key] = self.trace.run(self.trace.symbol_of, np.asarray(array))
            else:
                self._constants[key] = self._input(array, hint)
        return self._constants[key]

    def _constant_name(self, array: Any, hint: str) -> str:
        for vertex in self.recording.vertices:
            if vertex.kind == "constant" and vertex.key == id(array):
                return self._names[vertex]
        return hint

    def _saved(self, node: PrimitiveNode) -> tuple[Any, ...]:
        """Return the saved values as symbols: recomputed ones where the forward pass is known."""
        found: list[Any] = []
        for name, origin, value in zip(
            node.plan.saves, node.plan.origins, self.kept[node], strict=True
        ):
            if origin is None or not hasattr(value, "dtype"):
                found.append(value)
                continue
            end: End | None = (node, ~origin) if origin < 0 else None
            if origin >= 0 and node.edges[origin] is not None:
                end = endpoint(node.edges[origin])
            symbol = self.results.get(end) if end is not None else None
            held = array_of_all(value)
            kept = None if symbol is None else self.arrays.get(value_of(symbol), held)
            if symbol is None or symbol.dtype != value.dtype or kept is not held:
                hint = self.name(end) if end is not None else name
                symbol = self._constant(value, hint)
                if end is not None and self.recording.nodes[end[0]].types[end[1]] is not None:
                    self.results.setdefault(end, symbol)
            found.append(symbol)
        return tuple(found)

    # --- backward ---

    def _run_backward(self, root: Tensor) -> None:
        seed = Symbol(Value(root._array.shape, root._array.dtype))
        self.gradients[self.root] = seed.value
        self.seed = seed.value
        found: dict[End, list[Any]] = {self.root: [seed]}
        for node in reversed([n for n in self.nodes if n in self.path]):
            own = {i: found[node, i] for i in range(node.output_count) if (node, i) in found}
            totals = {}
            for index, summands in own.items():
                total: Any = summands[0]
                for summand in summands[1:]:
                    total = namespace_among((total, summand)).add(total, summand)
                totals[index] = total
                self.gradients[node, index] = value_of(total)
            if not totals or isinstance(node, AccumulateGrad) or node is self.target[0]:
                continue
            step = Step(node, self.recording.nodes[node])
            begin = len(self.trace.ops)
            for end, part in self._cotangents(node, totals):
                found.setdefault(end, []).append(part)
                step.parts.append(Part(end, value_of(part), ""))
            step.ops = self.trace.ops[begin:]
            step.partials = list(self._partials(node))
            self.steps.append(step)
        self._label_summands()

    def _label_summands(self) -> None:
        """Label the parts of gradients that are sums by the operations they come through."""
        counts = Counter(part.end for step in self.steps for part in step.parts)
        for step in self.steps:
            name = self.name((step.node, 0))
            again = Counter(part.end for part in step.parts)
            number = Counter[End]()
            for i, part in enumerate(step.parts):
                if counts[part.end] > 1:
                    number[part.end] += 1
                    suffix = f" ({number[part.end]})" if again[part.end] > 1 else ""
                    step.parts[i] = part._replace(label=f"{name}{suffix}")
                    self.sums.setdefault(part.end, []).append(step.parts[i])

    def _cotangents(self, node: Node, totals: dict[int, Any]) -> Iterator[tuple[End, Any]]:
        """Yield what the operands on the path get, by running the rule of the node on symbols."""
        wanted = [e is not None and endpoint(e)[0] in self.path for e in node.edges]
        total = next(iter(totals.values()))
        leaves = [
            make(self._blank_operand(node, position, total), None).requires_grad_()
            if want
            else None
            for position, want in enumerate(wanted)
        ]
        copy = self._copy(node, tuple([None if t is None else t._node for t in leaves]))
        outputs = []
        for index, total in totals.items():
            shape, dtype = self._output_type((node, index), total)
            several = node.output_count > 1 or isinstance(node.output_edge(0), NodeOutput)
            edge = NodeOutput(copy, index) if several else copy
            outputs.append(make(_blank(total, shape, dtype), edge))
        seeds = [make(total, None) for total in totals.values()]
        given = [leaf for leaf in leaves if leaf is not None]
        grads = autograd_grad(outputs, given, seeds, retain_graph=True, allow_unused=True)
        ends = [endpoint(e) for e, want in zip(node.edges, wanted, strict=True) if want]
        for end, grad in zip(ends, grads, strict=True):
            if grad is not None:
                yield end, grad._array

    def _blank_operand(self, node: Node, position: int, total: Any) -> Any:
        """Return a new symbol for an operand of a node, given a cotangent of its results."""
        if not isinstance(node, BatchBoundary):
            shape, dtype = self._type(node, position, endpoint(node.edges[position]))
            return _blank(total, shape, total.dtype if dtype is None else dtype)
        shape, dim, count = total.shape, node.dim, node.level.count
        if node.into:
            shape = shape if dim is None else (*shape[:dim], count, *shape[dim:])
            return _blank(total.data, shape, total.dtype)
        shape = shape if dim is None else (*shape[:dim], *shape[dim + 1 :])
        return BatchedArray(node.level, _blank(total, (count, *shape), total.dtype))

    def _output_type(self, end: End, total: Any) -> Any:
        found = self.recording.nodes[end[0]].types[end[1]]
        return (total.shape, total.dtype) if found is None or found[1] is None else found

    def _type(self, node: Node, position: int, end: End) -> Any:
        metas = getattr(node, "input_meta", None)
        if metas is not None and metas[position] is not None:
            return metas[position]
        found = self.recording.nodes[end[0]].types[end[1]]
        if found is None:
            raise AutogradError(
                f"derivation: the shape of what {node.name} uses is not known; cr.graph(t) shows "
                "what is. Take the derivative of a part of the graph"
            )
        return found

    def _copy(self, node: Node, edges: tuple[Any, ...]) -> Node:
        """Return a node with other edges, and with symbols in the place of saved arrays."""
        if isinstance(node, PrimitiveNode):
            kind: Any = type(node)
            if isinstance(node, HookedNode):
                kind = MultiOutputNode if node.plan.primitive.multiple else PrimitiveNode
            made: Any = object.__new__(kind)
            made.plan = node.plan.primitive.plan(tuple([e is not None for e in node.edges]))
            made.saved, made.settings = self._saved(node), node.settings
            made.input_meta = node.input_meta
            if isinstance(made, MultiOutputNode):
                made.count = node.output_count
        elif isinstance(node, FunctionNode):
            if node.ctx._saved is None:
                raise freed_error(node)
            made = object.__new__(type(node))
            made.function, made.ctx, made.input_meta = node.function, node.ctx, node.input_meta
            made.outputs = node.outputs and tuple([_traced_meta(part) for part in node.outputs])
        elif isinstance(node, BatchBoundary):
            made = object.__new__(BatchBoundary)
            made.level, made.dim, made.into = node.level, node.dim, node.into
        else:
            raise AutogradError(
                f"derivation: {node.name} has no formula: it is no single operation. Take the "
                "derivative of a part of the graph, or compile the function and read its source"
            )
        made.edges, made.hooks, made.seq = edges, None, next_seq()
        made.code, made.instruction = node.code, node.instruction
        result: Node = made
        return result

    def _partials(self, node: Node) -> Iterator[tuple[str, list[Op], Value]]:
        """Yield the partial derivatives of an elementwise operation, of operands by its names."""
        if not isinstance(node, PrimitiveNode) or not node.plan.primitive.scales:
            return
        primitive = node.plan.primitive
        shape, dtype = self._output_type((node, 0), self.gradients[node, 0])
        symbols = {n: Symbol(Value(shape, dtype, n)) for n in (*primitive.inputs, "out")}
        for position, (name, rule) in enumerate(zip(primitive.inputs, primitive.vjp, strict=True)):
            edge = node.edges[position]
            if rule is None or edge is None or endpoint(edge)[0] not in self.path:
                continue
            names, keys = parameters(rule)
            settings = {k: v for k, v in (node.settings or {}).items() if k in keys}
            begin = len(self.trace.ops)
            try:
                found: Any = rule(SYMBOL_XP, *[symbols[n] for n in names], **settings)
            except KeyError:  # a rule that asks for the shape alone
                continue
            ops = self.trace.ops[begin:]
            del self.trace.ops[begin:]
            if isinstance(found, Symbol):
                yield name, ops, found.value


def value_of(array: Any) -> Value:
    """Return the value of a symbol, or of the one that holds all examples of a vmap."""
    found: Value = array.value if isinstance(array, Symbol) else value_of(array.data)
    return found


def _blank(like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return a new symbol, batched as another array is."""
    if not isinstance(like, BatchedArray):
        return Symbol(Value(shape, dtype))
    return BatchedArray(like.level, _blank(like.data, (like.level.count, *shape), dtype))


def _traced_meta(meta: Any) -> Any:
    return None if meta is None else (*meta[:2], SYMBOL_XP)


def _between(nodes: Sequence[Node], target: Node) -> set[Node]:
    """Return the nodes that depend on the target, which comes first in order of creation."""
    found = {target}
    for node in nodes:
        if any(edge is not None and endpoint(edge)[0] in found for edge in node.edges):
            found.add(node)
    return found


def _unique_names(recording: Recording) -> dict[Vertex, str]:
    """Return a name for each vertex: that of the user where there is one, as an identifier."""
    names: dict[Vertex, str] = {}
    taken = set[str]()
    number = 0
    for vertex in recording.vertices:
        name = vertex.name.replace(".", "_").replace("['", "_").replace("']", "")
        if name.isidentifier() and name not in taken:
            names[vertex] = name
            taken.add(name)
    for vertex in recording.vertices:  # constants that are texts have the user's names, too
        taken.update(str(o).partition(" (")[0] for o in vertex.operands if isinstance(o, str))
    for vertex in recording.vertices:
        if vertex in names:
            continue
        stem = "t" if vertex.kind in ("operation", "function") else vertex.title[:1]
        while True:
            number += 1
            if f"{stem}{number}" not in taken:
                break
        names[vertex] = f"{stem}{number}"
        taken.add(names[vertex])
    return names
