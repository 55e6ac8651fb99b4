"""Recording one application of a primitive: its node, its place in the user's code, its view.

`apply` does all of it, for any primitive; `recorders` has shorter ways for the commonest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.error_messages import fail
from chainrule.autograd.location import user_frame
from chainrule.autograd.modes import MODES, enable_grad
from chainrule.autograd.node import (
    AccumulateGrad,
    Edge,
    HookedNode,
    MultiOutputNode,
    Node,
    NodeOutput,
    PrimitiveNode,
    SavedTensor,
    endpoint,
    hooks_of,
)
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq, version_of, write_log, writes_since
from chainrule.autograd.views import View
from chainrule.backend import namespace_among, ndarray, numpy_xp
from chainrule.errors import InPlaceError
from chainrule.primitives.primitive import Primitive, forward_of

Array = Any

_new = object.__new__
_mode = MODES.get
_frame = sys._getframe
np_asarray, np_array = numpy_xp.asarray, numpy_xp.array


def current_node(tensor: Tensor) -> Edge:
    """Return the node of `tensor`; that of a view is made anew when its base has a new history."""
    view = tensor._view
    if view is None:
        return tensor._node
    base = view.base
    if base is None:
        if tensor._node is not None and write_log.last > view.stamp:
            _check_alias(tensor, view)
        return tensor._node
    if base._view is not None:
        base = root_of(view)
        current_node(base)  # an alias that a custom function made: raises if it is stale
    if base._node is view.base_node:
        return tensor._node
    if base._node is None or type(base._node) is AccumulateGrad:
        return tensor._node  # the base was detached, or made to require grad: no new history
    view.base_node = base._node
    alias = make(base._array, base._node)
    with enable_grad():
        for primitive, settings in view.steps():
            alias = primitive.apply(alias, **settings)
    move_retained(tensor, tensor._node, alias._node)
    tensor._node = alias._node
    return tensor._node


def root_of(view: View) -> Tensor:
    """Return the base of a view; a base that became a view, its shape changed in place, has one."""
    base: Any = view.base
    while base._view is not None and base._view.base is not None:
        base = base._view.base
    root: Tensor = base
    view.base = root
    return root


def move_retained(tensor: Tensor, old: Edge, new: Edge) -> None:
    """A tensor that retains its grad keeps doing so with its new history."""
    if old is None or new is None:
        return
    node, number = endpoint(old)
    reference = None if node.hooks is None else node.hooks.retained.get(number)
    if reference is not None and reference() is tensor:
        del hooks_of(node).retained[number]
        owner, position = endpoint(new)
        hooks_of(owner).retained[position] = reference


def _check_alias(tensor: Tensor, view: View) -> None:
    """Raise if the input that a custom function returned as it is was written to since."""
    if is_recording() and writes_since(tensor._array, view.stamp):
        raise InPlaceError(
            f"Output {endpoint(tensor._node)[1]} of {endpoint(tensor._node)[0].name} is a view and "
            "its base or another view of its base has been modified inplace. This view was created "
            "inside a custom function (or because an input was returned as-is), so its history "
            "can't follow the write: clone() the output."
        )


# --- recording one application --------------------------------------------------------------------


def record(
    primitive: Primitive,
    edges: tuple[Edge, ...],
    arrays: tuple[Array, ...],
    out: Any,
    settings: dict[str, Any] | None,
    shapes: tuple[tuple[tuple[int, ...], Any], ...] | None,
    numbers: tuple[bool, ...] = (),
) -> Any:
    """Return the node of an application whose output is computed already."""
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
    place(node, 2)
    return node


def place(node: Node, depth: int) -> None:
    """Number a node, and keep the user's line, `depth` frames up or above."""
    node.hooks = None
    node.seq = next_seq()
    frame = user_frame(_frame(depth))
    if frame is None:
        node.code, node.instruction = None, 0
    else:
        node.code, node.instruction = frame.f_code, frame.f_lasti


def pack_array(
    array: Array, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]
) -> SavedTensor:
    """Pass a saved array through the user's pack hook, with recording and hooks off."""
    outer = MODES.get()
    assert outer is not None
    version = version_of(array)
    try:
        MODES.set(outer.changed(grad=False, saved_hooks=None))
        packed = pack(make(array, None))
    finally:
        MODES.set(outer)
    if version_of(array) != version:
        raise InPlaceError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to a pack hook are the graph's own: clone() what you change."
        )
    return SavedTensor(packed, unpack, array)


def is_recording() -> bool:
    """Say whether operations are recorded now."""
    modes = _mode()
    return modes is None or modes.grad


def apply(
    primitive: Primitive,
    operands: Sequence[Any],
    settings: dict[str, Any],
    kernel: Callable[..., Any] | None = None,
) -> Any:
    """Apply a primitive to tensors: compute, and record if an input requires grad.

    `kernel` is its forward function of NumPy arrays, where the caller has it at hand.
    """
    for operand in operands:
        if operand.__class__ is not Tensor:
            operands = as_tensors(operands)
            break
    tensors: Sequence[Tensor] = operands
    arrays = tuple([t._array for t in tensors])
    xp = numpy_xp
    for array in arrays:
        if array.__class__ is not ndarray:
            xp = namespace_among(arrays)
            break
    if kernel is None or xp is not numpy_xp:
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
        return tuple(
            [
                make(xp.asarray(part), None if node is None else NodeOutput(node, index))
                for index, part in enumerate(out)
            ]
        )
    if out.__class__ is not ndarray:
        out = xp.asarray(out)
    if edges.count(None) < len(edges) and out.dtype.kind in "fc":
        input_meta = _originals(primitive, edges, arrays, out)
        node = record(primitive, edges, arrays, out, settings, input_meta)
    result = make(out, node)
    if primitive.view:
        result._view = view_of(tensors[0], primitive, settings)
    return result


def _originals(
    primitive: Primitive, edges: tuple[Edge, ...], arrays: tuple[Array, ...], out: Array
) -> Any:
    """Return what a pass restores the cotangents of several inputs to: their shapes and dtypes.

    None where nothing was broadcast or promoted.
    """
    if len(arrays) == 1:
        return None
    if primitive.broadcasts:
        shape, dtype = out.shape, out.dtype
        for edge, array in zip(edges, arrays):  # noqa: B905 - strict= costs 60 ns
            if edge is not None and (array.dtype is not dtype or array.shape != shape):
                break
        else:
            return None
    return tuple([(array.shape, array.dtype) for array in arrays])


def view_of(tensor: Tensor, primitive: Primitive, settings: dict[str, Any]) -> View:
    """Return what makes the result of a view primitive a view of the input's base."""
    parent, modes = tensor._view, _mode()
    view: View = _new(View)
    view.refusal = None if modes is None or modes.grad else "no_grad"
    if parent is None or parent.base is None:
        view.base, view.path, view.base_node = tensor, (None, primitive, settings), tensor._node
    else:
        base = parent.base if parent.base._view is None else root_of(parent)
        view.base, view.base_node = base, base._node
        view.path = (parent.path, primitive, settings)
    if parent is not None:
        view.refusal = view.refusal or parent.refusal
    view.stamp = 0
    return view
