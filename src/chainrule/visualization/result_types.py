"""Shapes and dtypes of recorded results, inferred from what nodes keep.

A node does not store the shape of its result. It follows from saved values, from the operands of
the nodes that use it, and else from abstract evaluation of the primitive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.node import Edge, Node, endpoint
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.backend import promoted
from chainrule.compiler.backward import CompiledNode
from chainrule.compiler.ir.program import Value
from chainrule.compiler.tracing.namespace import SYMBOL_XP
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import Trace
from chainrule.primitives.primitive import forward_of
from chainrule.transforms.vmap.interpreter import BatchBoundary

ArrayType = tuple[tuple[int, ...], Any]
"""Shape and dtype of an array."""

Types = dict[tuple[Node, int], ArrayType]


def infer_types(
    order: Sequence[Node], given: Mapping[tuple[Node, int], ArrayType]
) -> dict[Node, list[ArrayType | None]]:
    """Return the types of the outputs of nodes, which are in order of creation."""
    types: Types = dict(given)
    for node in order:
        _read_facts(node, types)
    for node in reversed(order):
        _from_result(node, types)
    cache: dict[Any, list[ArrayType] | None] = {}
    for node in order:
        _from_operands(node, types, cache)
    shapes = _known_shapes(order)
    return {
        node: [types.get((node, i), shapes.get((node, i))) for i in range(node.output_count)]
        for node in order
    }


def _known_shapes(order: Sequence[Node]) -> Types:
    """Return the shapes that rules keep in the place of arrays: their dtypes are not known."""
    found: Types = {}
    for node in order:
        if isinstance(node, PrimitiveNode):
            for name, value in zip(node.plan.saves, node.saved or (), strict=False):
                operand = name.removesuffix("_shape")
                if operand != name and operand in node.plan.primitive.inputs:
                    edge = node.edges[node.plan.primitive.inputs.index(operand)]
                    _note(found, edge, (tuple(value), None))
    return found


def operand_types(node: Node, types: Mapping[tuple[Node, int], ArrayType]) -> list[Any]:
    """Return the types of the operands, None where they are not known."""
    metas = getattr(node, "input_meta", None) or (None,) * len(node.edges)
    found: list[Any] = []
    for edge, meta in zip(node.edges, metas, strict=True):
        found.append(meta if edge is None or meta is not None else types.get(endpoint(edge)))
    if isinstance(node, PrimitiveNode):
        for origin, value in zip(node.plan.origins, node.saved or (), strict=False):
            if origin is not None and 0 <= origin < len(found) and found[origin] is None:
                found[origin] = _type_of(value)
    return found


def _type_of(value: Any) -> ArrayType | None:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return None if shape is None or dtype is None else (tuple(shape), dtype)


def _note(types: Types, edge: Edge, found: ArrayType | None) -> None:
    if edge is not None and found is not None:
        types.setdefault(endpoint(edge), found)


def _read_facts(node: Node, types: Types) -> None:
    """Note the types that a node keeps: of saved values, operands, and results."""
    if isinstance(node, PrimitiveNode):
        for origin, value in zip(node.plan.origins, node.saved or (), strict=False):
            if origin is not None and origin < 0:
                _note(types, node.edge_of(origin), _type_of(value))
            elif origin is not None and node.input_meta is None:
                _note(types, node.edges[origin], _type_of(value))
    elif isinstance(node, FunctionNode):
        for index, found in enumerate(node.outputs or (getattr(node, "single", None),)):
            if found:
                types.setdefault((node, index), found[:2])
    elif isinstance(node, CompiledNode):
        for index, found in enumerate(node.spec.outputs):
            types.setdefault((node, index), found)
    metas = getattr(node, "input_meta", None)
    if metas is not None:
        for edge, meta in zip(node.edges, metas, strict=True):
            _note(types, edge, meta)


def _keeps_type(node: Node) -> bool:
    """Whether the tracked operands of a node have the type of its result."""
    if not isinstance(node, PrimitiveNode) or node.input_meta is not None:
        return False
    primitive = node.plan.primitive
    return primitive.scales or (len(node.edges) > 1 and primitive.broadcasts)


def _from_result(node: Node, types: Types) -> None:
    if _keeps_type(node) or (isinstance(node, BatchBoundary) and node.into and node.dim is None):
        for edge in node.edges:
            _note(types, edge, types.get((node, 0)))


def _from_operands(node: Node, types: Types, cache: dict[Any, list[ArrayType] | None]) -> None:
    if isinstance(node, BatchBoundary):
        _across_boundary(node, types)
    if (node, 0) in types or not isinstance(node, PrimitiveNode):
        return
    primitive, operands = node.plan.primitive, operand_types(node, types)
    known = [found for found in operands if found is not None]
    tracked = [t for t, edge in zip(operands, node.edges, strict=True) if edge is not None and t]
    if tracked and _keeps_type(node):
        types[node, 0] = tracked[0]
    elif len(known) < len(operands):
        return
    elif primitive.broadcasts and node.input_meta is not None and len(operands) > 1:
        dtype = known[0][1]
        for _, other in known[1:]:
            dtype = promoted(dtype, other)
        types[node, 0] = np.broadcast_shapes(*(shape for shape, _ in known)), dtype
    else:
        key = (primitive.name, tuple(known), repr(node.settings))
        if key not in cache:
            cache[key] = _evaluated(node, known)
        for index, found in enumerate(cache[key] or ()):
            types.setdefault((node, index), found)


def _across_boundary(node: BatchBoundary, types: Types) -> None:
    found = types.get(endpoint(node.edges[0]))
    if found is None:
        return
    shape, dtype = found
    if node.dim is not None and node.into:
        shape = (*shape[: node.dim], *shape[node.dim + 1 :])
    elif node.dim is not None:
        shape = (*shape[: node.dim], node.level.count, *shape[node.dim :])
    types.setdefault((node, 0), (shape, dtype))


def _evaluated(node: PrimitiveNode, operands: Sequence[ArrayType]) -> list[ArrayType] | None:
    """Return the types of the results by running the primitive on arrays without elements."""

    def run() -> Any:
        symbols = [Symbol(Value(shape, dtype)) for shape, dtype in operands]
        return forward_of(node.plan.primitive, SYMBOL_XP)(*symbols, **(node.settings or {}))

    try:
        found = Trace("shapes").run(run)
    except Exception:  # it depends on values: the picture says that the shape is not known
        return None
    parts = found if isinstance(found, tuple | list) else (found,)
    return [(tuple(part.shape), part.dtype) for part in parts]
