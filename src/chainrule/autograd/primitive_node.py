"""Nodes of primitives: saved arrays, checked for in-place writes, and derivatives by rule."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.autograd.node import (
    AccumulateGrad,
    Edge,
    Node,
    NodeName,
    NodeOutput,
    check_unwritten,
    freed_error,
)
from chainrule.autograd.parts import part_cotangents
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import (
    is_overwritten,
    is_written_since,
    write_log,
    writes_since,
)
from chainrule.backend import namespace, ndarray, numpy_xp, promoted, storage_of
from chainrule.errors import ArgumentTypeError
from chainrule.primitives import elementwise
from chainrule.primitives.primitive import Plan, forward_of

if TYPE_CHECKING:
    from chainrule.autograd.reverse import BackwardPass

Array = Any


class PrimitiveNode(Node):
    """A recorded application of a primitive."""

    __slots__ = ("plan", "saved", "settings", "input_meta")

    plan: Plan
    saved: tuple[Any, ...] | None  # None once released
    settings: dict[str, Any] | None
    input_meta: (
        tuple[tuple[tuple[int, ...], Any], ...] | None
    )  # the inputs' shapes and dtypes, if they differ
    runs_user_code = False

    @property
    def name(self) -> str:
        return NodeName(self.plan.primitive.label)

    @property
    def is_step(self) -> bool:
        return self.plan.primitive.steps

    # PyTorch's names. Properties, since `__getattr__` would slow down all attributes of nodes.
    _saved_self = property(lambda self: self._saved(0))
    _saved_other = property(lambda self: self._saved(1))
    _saved_result = property(lambda self: self._saved(-1))

    def _saved(self, origin: int) -> Tensor | None:
        """Return the saved tensor of input `origin` (output ~`origin`), None if not saved."""
        if origin not in self.plan.origins:
            return None
        tensor: Tensor = self.as_tensors(self.saved_values())[self.plan.origins.index(origin)]
        leaf = tensor._node.variable if type(tensor._node) is AccumulateGrad else None
        return leaf if leaf is not None and leaf._array is tensor._array else tensor

    def saved_values(self) -> tuple[Any, ...]:
        """Return the saved values, checked for writes or unpacked by the user's hook."""
        saved = self.saved
        if saved is None:
            raise freed_error(self)
        if type(self) is HookedNode:
            return tuple(
                [
                    item.unpack(self, i) if type(item) is SavedTensor else item
                    for i, item in enumerate(saved)
                ]
            )
        if write_log.last > self.seq and self.plan.holds:
            return check_saved(self, saved)
        return saved

    def as_tensors(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return saved arrays as tensors connected to the graph."""
        return tuple(
            [
                value if origin is None else self._as_tensor(value, origin)
                for value, origin in zip(values, self.plan.origins, strict=True)
            ]
        )

    def _as_tensor(self, value: Array, origin: int) -> Tensor:
        edge = self.edge_of(origin)
        if origin < 0 or edge is None or self.input_meta is None:
            return make(value, edge)
        dtype = self.input_meta[origin][1]
        if value.dtype == dtype:
            return make(value, edge)
        # Saved in the promoted dtype, while cotangents of the edge have the input's.
        given = value.real if value.dtype.kind == "c" and dtype.kind != "c" else value
        converted: Tensor = elementwise.astype.apply(
            make(given.astype(dtype), edge), dtype=value.dtype
        )
        return converted

    def edge_of(self, origin: int) -> Edge:
        """Return the edge to the input or output that a saved value is from."""
        if origin >= 0:
            return self.edges[origin]
        return NodeOutput(self, ~origin) if self.plan.primitive.multiple else self

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        for tangent in tangents:
            if tangent is not None and tangent._array.__class__ is not ndarray:
                xp = xp.beside(tangent)
                break
        shapes = self.input_meta
        if self.plan.primitive.jvp is None and shapes is not None:
            tangents = tuple(
                [
                    xp.zeros(shape, dtype=dtype) if t is None else t
                    for t, (shape, dtype) in zip(tangents, shapes, strict=True)
                ]
            )
        t = self.plan.jvp(xp, tangents, self.as_tensors(self.saved_values()), self.settings)
        if shapes is None or not self.plan.primitive.broadcasts:
            return t
        shape = np.broadcast_shapes(*(shape for shape, _ in shapes))
        for _, dtype in shapes:
            t = xp.astype(t, promoted(t.dtype, dtype))
        return t if t.shape == shape else xp.broadcast_to(t, shape)

    def vjp(self, g: Any, run: BackwardPass) -> Sequence[Any]:
        saved = self.saved
        if saved is None or write_log.last > self.seq or self.__class__ is HookedNode:
            saved = self.saved_values()
        plan = self.plan
        if run.xp is None:
            settings, grads = self.settings, None
            if settings is not None and plan.part is not None:
                grads = part_cotangents(self, g, run)
            if grads is not None:
                pass
            elif g.__class__ is ndarray:
                vjp = plan.vjp  # calling a slot's value as if it were a method takes longer
                grads = vjp(numpy_xp, g, saved, settings)
            else:
                grads = _namespace_of(g).run_vjp(plan, g, saved, settings)
        else:
            xp = run.xp
            if g.__class__ is dict or g._array.__class__ is not ndarray:
                xp = xp.beside(g)
            grads = plan.vjp(xp, g, self.as_tensors(saved), self.settings)
        if self.input_meta is not None:
            grads = run.restore(grads, self.input_meta)
        if plan.holds and not run.retain_graph:
            self.saved = None
        return grads


def _namespace_of(g: Any) -> Any:
    """Return the namespace of a cotangent, or of those of several outputs."""
    return namespace(next(iter(g.values())) if g.__class__ is dict else g)


class SavedTensor:
    """A saved array, packed by the user's `saved_tensors_hooks`."""

    __slots__ = ("_packed", "_storage", "_unpack")

    def __init__(self, packed: Any, unpack: Callable[[Any], Any], array: Array) -> None:
        self._packed = packed
        self._unpack = unpack
        is_scalar = isinstance(array, np.generic)  # nobody can write to it
        self._storage = (lambda: None) if is_scalar else weakref.ref(storage_of(array))

    def unpack(self, node: Node, position: int) -> Array:
        """Return the array that the user's hook gives back."""
        tensor = self._unpack(self._packed)
        array = getattr(tensor, "_array", None)
        if array is None:
            raise ArgumentTypeError(
                f"the unpack hook of saved_tensors_hooks must return a Tensor, got {type(tensor)}"
            )
        if storage_of(array) is self._storage():  # the hooks kept the memory
            check_unwritten(node, array, None, position)
        return array


class MultiOutputNode(PrimitiveNode):
    """A recorded application of a primitive that has several outputs."""

    __slots__ = ("count",)

    count: int

    @property
    def output_count(self) -> int:
        return self.count

    def output_edge(self, index: int) -> Edge:
        return NodeOutput(self, index)


class HookedNode(MultiOutputNode):
    """A node whose saved arrays are each a `SavedTensor`; it may have one output."""

    __slots__ = ()

    runs_user_code = True

    def output_edge(self, index: int) -> Edge:
        return self.edge_of(~index)


def check_saved(node: PrimitiveNode, saved: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the saved values; raise if memory of one was written after the node was recorded.

    A result that was written is computed anew if the inputs were saved with it: who pools and then
    applies an activation in place doesn't know that the pooling saved both.
    """
    seq, origins = node.seq, node.plan.origins
    for value, origin in zip(saved, origins, strict=True):
        if origin is not None and is_written_since(value, seq):
            break
    else:  # of what this node saved, nothing was written
        return saved
    inputs = _inputs(node, saved)
    for position, (value, origin) in enumerate(zip(saved, origins, strict=True)):
        if origin is not None and (origin >= 0 or inputs is None):
            check_unwritten(node, value, node.edge_of(origin), position)
    if -1 not in origins or inputs is None:
        return saved
    position = origins.index(-1)
    result = saved[position]
    if not is_overwritten(result, writes_since(result, node.seq)):
        return saved
    computed = forward_of(node.plan.primitive, namespace(result))(*inputs, **(node.settings or {}))
    return (*saved[:position], computed, *saved[position + 1 :])


def _inputs(node: PrimitiveNode, saved: tuple[Any, ...]) -> list[Any] | None:
    """Return the inputs of a node of one output in order, or None if not all were saved."""
    primitive, origins = node.plan.primitive, node.plan.origins
    if primitive.multiple or any(i not in origins for i in range(len(primitive.inputs))):
        return None
    return [saved[origins.index(i)] for i in range(len(primitive.inputs))]
