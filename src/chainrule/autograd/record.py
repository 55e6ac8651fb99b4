"""Application of a primitive: compute the result, and record a node if an input requires grad.

`apply` works for every primitive; `record_fast` has shorter recorders for the commonest forms.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.error_messages import fail
from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.location import user_line
from chainrule.autograd.modes import MODES, Modes
from chainrule.autograd.node import Edge, Node, NodeOutput
from chainrule.autograd.operands import (
    as_operands,
    as_tensors,
    carried_class,
    check_operands,
    plain,
)
from chainrule.autograd.primitive_node import (
    HookedNode,
    MultiOutputNode,
    PrimitiveNode,
    SavedTensor,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import keep_saved, next_seq, version_of
from chainrule.autograd.views import current_node, view_of
from chainrule.backend import namespace, namespace_among, ndarray, numpy_xp
from chainrule.errors import InPlaceError
from chainrule.interrupts import call_with
from chainrule.primitives import elementwise
from chainrule.primitives.primitive import Primitive, forward_of

Array = Any

_new = object.__new__
_mode, _interceptor = MODES.get, INTERCEPTOR.get
_frame = sys._getframe
np_asarray, np_array, np_add = numpy_xp.asarray, numpy_xp.array, numpy_xp.add


def record(
    primitive: Primitive,
    edges: tuple[Edge, ...],
    arrays: tuple[Array, ...],
    out: Any,
    settings: dict[str, Any] | None,
    shapes: tuple[tuple[tuple[int, ...], Any], ...] | None,
    numbers: tuple[bool, ...] = (),
) -> Any:
    """Return the node of an application whose output is already computed."""
    plan = primitive.plan(tuple([edge is not None for edge in edges]))
    saved = plan.pick(out, *arrays)
    modes = _mode()
    node: Any
    if modes is None or modes.saved_hooks is None:
        node = _new(MultiOutputNode if primitive.multiple else PrimitiveNode)
    else:
        node = _new(HookedNode)
        saved = tuple(
            [
                value
                if origin is None or numbers[origin : origin + 1] == (True,)
                else pack_array(value, *modes.saved_hooks)
                for value, origin in zip(saved, plan.origins, strict=True)
            ]
        )
    if node.__class__ is not PrimitiveNode:
        node.count = len(out) if primitive.multiple else 1
    node.plan = plan
    node.edges = edges
    node.saved = saved
    node.settings = settings
    node.input_meta = shapes
    stamp_node(node, 2)
    return node


def record_special(
    primitive: Primitive,
    operands: tuple[Any, ...],
    arrays: tuple[Array, ...],
    result: Tensor,
    settings: dict[str, Any] | None,
) -> Tensor:
    """Finish a recorder's call where hooks see saved values, or a mode looks on.

    An operand is None if it is a number.
    """
    modes: Any = _mode()
    result._node, out = None, result._array
    edges = tuple([None if t is None else current_node(t) for t in operands])
    if modes.grad and edges.count(None) < len(edges):
        shapes, numbers = None, tuple([t is None for t in operands])
        if True not in numbers:  # a number takes the other's shape and dtype
            same = all(array.shape == arrays[0].shape for array in arrays)
            if not same or any(x is not t._array for x, t in zip(arrays, operands, strict=True)):
                shapes = tuple(
                    [(x.shape, t._array.dtype) for x, t in zip(arrays, operands, strict=True)]
                )
        result._node = record(primitive, edges, arrays, out, settings, shapes, numbers)
    observe(modes, primitive, operands, arrays, (result,), settings or {})
    return result


def observe(
    modes: Modes,
    primitive: Primitive,
    operands: Sequence[Any],
    arrays: tuple[Array, ...],
    results: tuple[Tensor, ...],
    settings: dict[str, Any],
) -> None:
    """Show an operation to the modes that look on: `explain`, and anomaly mode."""
    if modes.explain is not None:
        modes.explain.see(primitive, operands, results)
    if modes.anomaly is not None and modes.check_nan:
        from chainrule.autograd import anomaly

        anomaly.look(modes, primitive, arrays, results, settings)


def stamp_node(node: Node, depth: int) -> None:
    """Give a node its number and the line of user code, searched from `depth` frames up."""
    node.hooks = None
    node.seq = next_seq()
    node.code, node.instruction = user_line(_frame(depth))


def pack_array(
    array: Array, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]
) -> SavedTensor:
    """Return a saved array packed by the user's hook, which runs without recording and hooks."""
    outer = MODES.get()
    assert outer is not None
    version = version_of(array)
    packed = call_with({MODES: outer.unrecorded()}, pack, make(array, None))
    if version_of(array) != version:
        raise InPlaceError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to a pack hook are the graph's own: clone() what you change."
        )
    return SavedTensor(packed, unpack, array)


def unwatched_by(xp: Any) -> Callable[..., Any] | None:
    """Return what calls a recorder that nothing need watch: no code of the user runs in it."""
    modes = _mode()
    found: Callable[..., Any] | None = xp.unwatched
    return found if modes is None or not modes.special else None


def apply(
    primitive: Primitive,
    operands: Sequence[Any],
    settings: dict[str, Any],
    kernel: Callable[..., Any] | None = None,
) -> Any:
    """Apply a primitive to tensors: compute, and record if an input requires grad.

    `kernel` is the primitive's forward function of NumPy arrays, if the caller has it.
    """
    interceptor = _interceptor()
    if interceptor is not None and interceptor.records:
        found = interceptor.own.namespace.apply(interceptor, primitive, operands, settings)
        if found is not NotImplemented:
            return found
    carried = None
    for operand in operands:
        if type(operand) is not Tensor:
            carried = carried_class(operands)
            operands = as_tensors(operands)
            break
    tensors: Sequence[Tensor] = operands
    arrays = tuple([t._array for t in tensors])
    xp = numpy_xp
    for array in arrays:
        if array.__class__ is not ndarray:
            xp = namespace_among(arrays)
            unwatched = unwatched_by(xp)
            if unwatched is not None:
                return unwatched(apply, primitive, operands, settings)
            break
    if xp is not numpy_xp:
        kernel = functools.partial(xp.run_forward, primitive, forward_of(primitive, xp))
    elif kernel is None:
        kernel = forward_of(primitive, xp)
    try:
        out = kernel(*arrays, **settings)
    except Exception as error:
        fail(error, primitive, arrays)
    edges: tuple[Edge, ...] = ()
    modes = _mode()
    if primitive.differentiable and (modes is None or modes.grad):
        edges = tuple([t._node if t._view is None else current_node(t) for t in tensors])
    node = None
    if primitive.multiple:
        if edges.count(None) < len(edges):
            node = record(primitive, edges, arrays, out, settings, None)
        results = [
            make(xp.asarray(part), None if node is None else NodeOutput(node, index))
            for index, part in enumerate(out)
        ]
        if carried is not None:
            for result in results:
                result.__class__ = carried
            if type(node) is MultiOutputNode:
                keep_saved(node)
        if modes is not None and modes.special:
            observe(modes, primitive, tensors, arrays, tuple(results), settings)
        return tuple(results)
    if out.__class__ is not ndarray:
        out = xp.asarray(out)
    if edges.count(None) < len(edges) and out.dtype.kind in "fc":
        input_meta = None if len(arrays) == 1 else types_of_inputs(primitive, edges, arrays, out)
        node = record(primitive, edges, arrays, out, settings, input_meta)
    result = make(out, node)
    if primitive.view:
        result._view = view_of(tensors[0], primitive, settings)
    if modes is not None and modes.special:
        observe(modes, primitive, tensors, arrays, (result,), settings)
    return result if carried is None else as_carried(result, carried)


def add_to_new(x: Tensor, y: Any) -> Tensor:
    """Return x + y, where `x` is a new tensor that the caller drops, such as a product.

    The sum of large arrays takes the memory of `x`: its node saves its inputs alone, and that of
    the sum nothing.
    """
    if x.__class__ is not Tensor or y.__class__ is not Tensor:
        return elementwise.add.apply(x, y)
    a, b, modes = x._array, y._array, _mode()
    in_place = (
        a.__class__ is ndarray is b.__class__
        and a.size >= _IN_PLACE_MIN_ELEMENTS
        and a.dtype is b.dtype
        and b.ndim <= a.ndim
        and all([n in (1, m) for n, m in zip(b.shape[::-1], a.shape[::-1], strict=False)])
        and (modes is None or not modes.special)  # nobody was shown `x`
    )
    if not in_place:
        return elementwise.add.apply(x, y)
    sum_: Tensor = apply(elementwise.add, (x, y), {}, _add_in_place)
    return sum_


def _add_in_place(x: Array, y: Array) -> Array:
    return np_add(x, y, out=x)


_IN_PLACE_MIN_ELEMENTS = 1 << 13
"""Number of elements from which fresh memory costs more than the general recorder."""


def as_carried(result: Tensor, kind: type[Tensor]) -> Tensor:
    """Return the new result of a primitive as a tensor of the class of its operands."""
    result.__class__ = kind
    if type(result._node) is PrimitiveNode:
        keep_saved(result._node)
    return result


def types_of_inputs(
    primitive: Primitive, edges: tuple[Edge, ...], arrays: tuple[Array, ...], out: Array
) -> Any:
    """Return the shapes and dtypes of several inputs, to which a pass reduces the cotangents.

    None if nothing was broadcast or promoted.
    """
    if primitive.broadcasts:
        shape, dtype = out.shape, out.dtype
        for position, array in enumerate(arrays):
            if edges[position] is not None and (array.dtype is not dtype or array.shape != shape):
                break
        else:
            return None
    return tuple([(array.shape, array.dtype) for array in arrays])


FOREIGN_PRODUCTS: list[Callable[[str, Any, Any], Any]] = []
"""Functions that multiply tensors by objects of other libraries, or return NotImplemented."""


def apply_to_others(primitive: Primitive, a: Any, b: Any) -> Any:
    """Return the result of a binary primitive for operands that have to be converted."""
    function = primitive.apply
    carried = carried_class((a, b))
    if carried is not None and isinstance(a, _UNWATCHED) and isinstance(b, _UNWATCHED):
        one: Any = a if isinstance(a, Tensor) else b
        if type(one._array) is not ndarray:
            unwatched = unwatched_by(namespace(one._array))
            if unwatched is not None:
                return unwatched(function, a, b)
        x, y = plain(a), plain(b)
    else:
        x, y = as_operands(a, b)
        if x is NotImplemented:
            for product in FOREIGN_PRODUCTS:
                if (found := product(primitive.name, a, b)) is not NotImplemented:
                    return found
            check_operands(primitive.name, a, b)
            return x
    result = function(x, y)
    return result if carried is None else as_carried(result, carried)


def transfer_recorder(primitive: Primitive) -> Callable[..., Any]:
    """Return the recorder of a copy to another device, whose result is of another namespace."""

    def function(a: Any, **settings: Any) -> Any:
        x = a._array
        try:
            out = forward_of(primitive, namespace(x))(x, **settings)
        except Exception as error:
            fail(error, primitive, (x,))
        result = make(out, None)
        modes = _mode()
        if modes is not None and modes.special:
            result = record_special(primitive, (a,), (x,), result, settings)
        elif modes is None or modes.grad:
            edge = current_node(a)
            if edge is not None:
                result._node = record(primitive, (edge,), (x,), out, settings, None)
        carried = carried_class((a,))
        return result if carried is None else as_carried(result, carried)

    return function


_UNWATCHED = (Tensor, float, int)
"""Operands whose conversion runs no code of the user."""
