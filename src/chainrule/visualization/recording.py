"""Recorded graphs as plain data: vertices, their operands, saved memory and lines of user code.

A vertex keeps no node and no array, so a picture does not keep the memory of its graph alive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.location import Location
from chainrule.autograd.node import AccumulateGrad, ErrorNode, Node, endpoint
from chainrule.autograd.primitive_node import HookedNode, PrimitiveNode
from chainrule.autograd.tensor import Tensor
from chainrule.backend import storage_of
from chainrule.compiler.backward import CompiledNode
from chainrule.errors import ArgumentError
from chainrule.transforms.vmap.batched_array import BatchedArray
from chainrule.transforms.vmap.interpreter import BatchBoundary
from chainrule.visualization.naming import Naming, operands_in_source
from chainrule.visualization.result_types import ArrayType, infer_types

# --- vertices -------------------------------------------------------------------------------------


class Source(NamedTuple):
    """An operand that is an output of another vertex."""

    vertex: Vertex
    output: int


class SavedArray(NamedTuple):
    """An array that a vertex keeps for its derivative."""

    name: str
    key: int  # the same for all arrays that share memory
    nbytes: int
    lives_anyway: bool  # memory of a leaf or of an output
    origin: int | None = None  # the position of an operand, ~i of result i


@dataclass(eq=False, slots=True)
class Vertex:
    """An operation, a custom function, a leaf, a constant, or a tensor without a history."""

    kind: str  # "operation", "function", "leaf", "constant" or "tensor"
    title: str
    label: str = ""  # the name in error messages and in PyTorch, like MulBackward0
    operands: list[Source | str] = field(default_factory=list)  # a text: a number, or unknown
    types: list[ArrayType | None] = field(default_factory=lambda: [None])
    saved: list[SavedArray] | None = field(default_factory=list)  # None: they were released
    location: Location | None = None
    code: CodeType | None = None
    instruction: int = 0
    name: str = ""  # of the user's variable
    owner: str | None = None  # path of the module that has this parameter
    grad_norm: float | None = None
    settings: str = ""
    is_output: bool = False
    notes: list[str] = field(default_factory=list)
    seq: int = 0
    key: int = 0  # the identity of a constant's array, while it is kept

    @property
    def nbytes(self) -> int:
        """Bytes of the saved arrays."""
        return sum({a.key: a.nbytes for a in self.saved or ()}.values())

    @property
    def sources(self) -> list[Source]:
        """The operands that are outputs of vertices."""
        return [operand for operand in self.operands if isinstance(operand, Source)]

    @property
    def type_text(self) -> str:
        """Shape and dtype of the results."""
        if len(self.types) > 4:
            return f"{len(self.types)} results"
        return "; ".join(dict.fromkeys(map(type_text, self.types)))


def type_text(found: ArrayType | None) -> str:
    """Return a shape and a dtype as text."""
    if found is None:
        return "shape unknown"
    return shape_text(found[0]) + ("" if found[1] is None else f" {found[1]}")


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as ``64 × 10``, or ``scalar``."""
    return " × ".join(map(str, shape)) if shape else "scalar"


# --- reading --------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class Recording:
    """All that was recorded on the way to some tensors, in order of creation, leaves first."""

    vertices: list[Vertex]
    outputs: list[Source]
    nodes: dict[Node, Vertex]

    @property
    def operations(self) -> list[Vertex]:
        """The vertices that were computed, in order."""
        return [v for v in self.vertices if v.kind in ("operation", "function")]

    def release(self) -> None:
        """Drop the references to nodes, which hold arrays."""
        self.nodes = {}


def read(outputs: Any, naming: Naming, caller: str) -> Recording:
    """Return the recorded graph that leads to tensors, which may be in nested containers."""
    found = [(path, leaf) for path, leaf in pytree.leaves(outputs) if isinstance(leaf, Tensor)]
    if not found:
        raise ArgumentError(
            f"{caller}: expected a tensor, or a list, tuple or dict of tensors, got "
            f"{type(outputs).__name__} without any: pass the result of a computation with tensors, "
            f"as in cr.{caller}(loss)"
        )
    reader = _Reader(naming)
    ends = [reader.output(tensor, path.strip("[]'\"")) for path, tensor in found]
    types = infer_types(reader.order, reader.given)
    for node, inferred in types.items():
        reader.vertices[node].types = inferred
    made = sorted(reader.vertices.values(), key=lambda v: v.seq)
    return Recording([*reader.others, *made], ends, reader.vertices)


ONE_EXAMPLE, ALL_EXAMPLES = "vmap: one example", "vmap: all examples"
PACKED = "its saved values were packed by saved_tensors_hooks or checkpoint"


class _Reader:
    def __init__(self, naming: Naming) -> None:
        self.naming = naming
        self.vertices: dict[Node, Vertex] = {}
        self.order: list[Node] = []
        self.given: dict[tuple[Node, int], ArrayType] = {}  # types of tensors at hand
        self.others: list[Vertex] = []  # constants, and outputs without a history
        self.constants: dict[int, Vertex] = {}
        self.known = set[int]()  # memory of the outputs
        self.sources: dict[Any, list[str]] = {}  # operands as the user's lines have them

    def output(self, tensor: Tensor, path: str) -> Source:
        """Return a tensor as an end of the graph, after reading what leads to it."""
        edge, array = tensor._edge, tensor._array
        name = self.naming.of_tensor(tensor) or (path if path.isidentifier() else "")
        if edge is None:
            vertex = Vertex("tensor", name or "tensor", types=[(array.shape, array.dtype)])
            vertex.notes.append("no history: cr.why(t) tells the reason")
            self.others.append(vertex)
        else:
            self.known.add(_key(array))
            node, index = endpoint(edge)
            self.given[node, index] = array.shape, array.dtype
            self._read_from(node)
            vertex = self.vertices[node]
            vertex.name = vertex.name or name
            vertex.is_output = True
            if tensor._grad is not None and vertex.grad_norm is None:
                vertex.grad_norm = norm(tensor._grad)
            return Source(vertex, index)
        vertex.is_output = True
        return Source(vertex, 0)

    def _read_from(self, root: Node) -> None:
        stack, found = [root], []
        seen = set(self.vertices)
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                found.append(node)
                stack += [endpoint(edge)[0] for edge in node.edges if edge is not None]
        found.sort(key=lambda node: node.seq)
        for node in found:
            self.vertices[node] = self._vertex(node)
        self.order = sorted([*self.order, *found], key=lambda node: node.seq)

    def _vertex(self, node: Node) -> Vertex:
        if isinstance(node, AccumulateGrad):
            return self._leaf(node)
        kind = "function" if isinstance(node, FunctionNode | CompiledNode) else "operation"
        vertex = Vertex(kind, _title(node), str(node.name))
        vertex.seq, vertex.code, vertex.instruction = node.seq, node.code, node.instruction
        vertex.location = node.location
        vertex.types = [None] * node.output_count
        arrays = dict(saved_arrays(node))
        is_free = getattr(node, "saved", ()) is None or (
            isinstance(node, FunctionNode) and node.ctx._saved is None
        )
        origins = _origins(node)
        vertex.saved = (
            None if is_free else [self._saved(n, a, origins.get(n)) for n, a in arrays.items()]
        )
        if is_free:
            vertex.notes.append("its saved values were freed by a backward pass")
        if isinstance(node, HookedNode) and not is_free:
            vertex.notes.append(PACKED)
        if isinstance(node, CompiledNode):
            vertex.notes.append("a compiled function: the source of it shows its operations")
        if isinstance(node, ErrorNode):
            vertex.notes.append(node.reason)
        vertex.settings = _settings(getattr(node, "settings", None))
        vertex.operands = list(self._operands(node, arrays))
        vertex.name = self.naming.of_node(node)
        if node.hooks is not None:
            for reference in node.hooks.retained.values():
                tensor = reference()
                if tensor is not None and tensor._grad is not None:
                    vertex.grad_norm = norm(tensor._grad)
        return vertex

    def _leaf(self, node: AccumulateGrad) -> Vertex:
        tensor = node.variable
        name, owner = self.naming.of_leaf(node)
        vertex = Vertex("leaf", name or "leaf", str(node.name), name=name, owner=owner)
        if tensor is None:
            vertex.notes.append("the tensor no longer exists: its gradient is dropped")
        else:
            array = tensor._array
            self.known.add(_key(array))
            self.given[node, 0] = array.shape, array.dtype
            vertex.types = [(array.shape, array.dtype)]
            if tensor._grad is not None:
                vertex.grad_norm = norm(tensor._grad)
        return vertex

    def _saved(self, name: str, array: Any, origin: int | None) -> SavedArray:
        key = _key(array)
        return SavedArray(name, key, nbytes_of(array), key in self.known, origin)

    def _operands(self, node: Node, arrays: dict[str, Any]) -> Iterator[Source | str]:
        names = operand_names(node)
        metas: Any = getattr(node, "input_meta", None)
        for position, edge in enumerate(node.edges):
            if edge is not None:
                source, index = endpoint(edge)
                yield Source(self.vertices[source], index)
                continue
            array = arrays.get(names[position]) if position < len(names) else None
            if array is not None and getattr(array, "shape", None) is not None:
                yield self._constant(array)
            elif isinstance(node, FunctionNode) and metas[position] is None:
                continue  # an argument that is no tensor
            else:
                name = self._in_source(node, position) or "constant"
                meta = None if metas is None else metas[position]
                yield name if meta is None else f"{name} ({shape_text(meta[0])} {meta[1]})"

    def _in_source(self, node: Node, position: int) -> str:
        """Return an operand that no rule keeps as the user's line has it."""
        if node.code is None or not isinstance(node, PrimitiveNode):
            return ""
        place = id(node.code), node.instruction, id(node.plan)
        if place not in self.sources:
            title, count = node.plan.primitive.name, len(node.edges)
            found = operands_in_source(node.code, node.instruction, title, count)
            self.sources[place] = found or [""] * count
        return self.sources[place][position]

    def _constant(self, array: Any) -> Source | str:
        name = self.naming.of_array(array_of_all(array))
        if not name and not array.shape:
            return _number(array)
        key = id(array)
        if key not in self.constants:
            vertex = Vertex("constant", name or "constant", name=name)
            vertex.types = [(tuple(array.shape), array.dtype)]
            vertex.key = key
            self.constants[key] = vertex
            self.others.append(vertex)
        return Source(self.constants[key], 0)


def array_of_all(array: Any) -> Any:
    """Return the array that holds all examples, where an array is that of one under vmap."""
    return array_of_all(array.data) if isinstance(array, BatchedArray) else array


def _number(array: Any) -> str:
    try:
        return f"{array.item():.6g}"
    except Exception:  # of a device, or a symbol of a trace: its value is not at hand
        return "number"


def _title(node: Node) -> str:
    if isinstance(node, PrimitiveNode):
        settings: Any = node.settings or {}
        if settings.get("path"):
            return f"{node.plan.primitive.name} in place"
        return node.plan.primitive.name
    if isinstance(node, FunctionNode):
        return node.function.name
    if isinstance(node, ErrorNode):
        return "unknown derivative"
    if isinstance(node, BatchBoundary):
        return ONE_EXAMPLE if node.into else ALL_EXAMPLES
    return str(node.name).removesuffix("0").removesuffix("Backward")


def operand_names(node: Node) -> tuple[str, ...]:
    """Return the names of the operands of a node, as its rule has them."""
    if isinstance(node, PrimitiveNode):
        return node.plan.primitive.inputs
    return tuple(node.ctx._names) if isinstance(node, FunctionNode) else ()


def _origins(node: Node) -> dict[str, int | None]:
    if isinstance(node, PrimitiveNode):
        return dict(zip(node.plan.saves, node.plan.origins, strict=True))
    return {name: position for position, name in enumerate(operand_names(node))}


def saved_arrays(node: Node) -> Iterator[tuple[str, Any]]:
    """Yield the name and the array of each saved array that is known: hooks may have packed it."""
    if isinstance(node, PrimitiveNode):
        for name, origin, value in zip(
            node.plan.saves, node.plan.origins, node.saved or (), strict=False
        ):
            if origin is not None and hasattr(value, "dtype"):
                yield name, value
    elif isinstance(node, FunctionNode):
        for name, value in node.ctx.saved_arrays().items():
            if hasattr(value, "dtype"):
                yield str(name), getattr(value, "_array", value)
    else:
        for number, value in enumerate(getattr(node, "saved", None) or ()):
            if hasattr(value, "dtype"):
                yield f"value {number}", value


def _settings(settings: Any) -> str:
    found = []
    for name, value in (settings or {}).items():
        text = repr(value)
        if value is not None and value is not False and name not in ("path", "lasting"):
            found.append(f"{name}={text if len(text) <= 60 else text[:57] + '…'}")
    return ", ".join(found)


def nbytes_of(array: Any) -> int:
    """Return the bytes of memory that an array keeps alive; a view keeps that of its base."""
    if isinstance(array, np.ndarray):
        memory = storage_of(array)
        return int(memory.nbytes)
    inner: Any = getattr(array, "data", None)  # of a batch of examples, all of them
    if hasattr(inner, "nbytes") and hasattr(inner, "shape"):
        return int(inner.nbytes)
    return int(np.prod(array.shape)) * int(np.dtype(array.dtype).itemsize)


def _key(array: Any) -> int:
    return id(storage_of(array)) if isinstance(array, np.ndarray) else id(array)


def norm(gradient: Any) -> float:
    """Return the Euclidean norm of a gradient; nan if its values are not at hand."""
    array = gradient._array
    if not isinstance(array, np.ndarray):
        return float("nan")
    with np.errstate(all="ignore"):
        wide = array.astype(np.result_type(array.dtype, np.float64))
        return float(np.sqrt(np.sum(np.abs(wide) ** 2)))
