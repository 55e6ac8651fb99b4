"""From primitives to functions of tensors that record what they do.

`recorder(primitive)` makes the function. Elementwise primitives of one and of two inputs have their
own, since the cost of a small operation is decided here; everything else goes through `apply`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from chainrule.autograd.failures import fail
from chainrule.autograd.location import INTERNAL, user_frame
from chainrule.autograd.modes import MODES, enable_grad
from chainrule.autograd.tape import (
    AccumulateGrad,
    Edge,
    Node,
    Packed,
    PackedNode,
    Port,
    PrimitiveNode,
    SeveralNode,
    endpoint,
    hooks_of,
)
from chainrule.autograd.tensor import Tensor, View, as_operands, as_tensors, make
from chainrule.autograd.versions import ledger, tick, version_of, writes_since
from chainrule.backend import namespace, ndarray, numpy_xp, promote
from chainrule.errors import InPlaceError
from chainrule.primitives.primitive import Plan, Primitive, forward_of

Array = Any

_new = object.__new__
_mode = MODES.get
_frame = sys._getframe
np_asarray, np_array = numpy_xp.asarray, numpy_xp.array

RECORDERS: dict[str, Callable[..., Any]] = {}
"""The recording function of every primitive, by the primitive's name."""


def current_node(tensor: Tensor) -> Edge:
    """Return the node of `tensor`; that of a view is made anew when its base has a new history."""
    view = tensor._view
    if view is None:
        return tensor._node
    base = view.base
    if base is None:
        if tensor._node is not None and ledger.last > view.stamp:
            _check_alias(tensor, view)
        return tensor._node
    if base._view is not None:
        current_node(base)  # an alias that a custom function made: raises if it is stale
    if base._node is view.base_node:
        return tensor._node
    if base._node is None or type(base._node) is AccumulateGrad:
        return tensor._node  # the base was detached, or made to require grad: no new history
    view.base_node = base._node
    alias = make(base._array, base._node)
    with enable_grad():
        for primitive, settings in view.steps():
            alias = RECORDERS[primitive.name](alias, **settings)
    move_retained(tensor, tensor._node, alias._node)
    tensor._node = alias._node
    return tensor._node


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
    if writes_since(tensor._array, view.stamp):
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
    saved = []
    for name, origin in zip(plan.saves, plan.origins, strict=True):
        if origin is not None:
            saved.append(out if origin < 0 else arrays[origin])
        elif name == "shapes":
            saved.append(tuple([array.shape for array in arrays]))
        else:
            stem, _, aspect = name.rpartition("_")
            saved.append(getattr(arrays[primitive.inputs.index(stem)], aspect))
    modes = _mode()
    node: Any
    if primitive.multiple:  # and linear: nothing to pack
        node = _new(SeveralNode)
        node.output_count = len(out)
    elif modes is None or modes.saved_hooks is None:
        node = _new(PrimitiveNode)
    else:
        node = _new(PackedNode)
        pack, unpack = modes.saved_hooks
        for i, origin in enumerate(plan.origins):
            is_number = origin is not None and numbers[origin : origin + 1] == (True,)
            if origin is not None and not is_number:
                saved[i] = pack_array(saved[i], pack, unpack)
    node.plan = plan
    node.edges = edges
    node.saved = tuple(saved)
    node.settings = settings
    node.undo = shapes
    place(node, 2)
    return node


def place(node: Node, depth: int) -> None:
    """Number a node, and keep the user's line, `depth` frames up or above."""
    node.hooks = None
    node.seq = tick()
    frame = user_frame(_frame(depth))
    if frame is None:
        node.code, node.instruction = None, 0
    else:
        node.code, node.instruction = frame.f_code, frame.f_lasti


def pack_array(array: Array, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> Packed:
    """Pass a saved array through the user's pack hook, with recording and hooks off."""
    outer = MODES.get()
    assert outer is not None
    version = version_of(array)
    try:
        MODES.set(outer._replace(grad=False, saved_hooks=None))
        packed = pack(make(array, None))
    finally:
        MODES.set(outer)
    if version_of(array) != version:
        raise InPlaceError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to a pack hook are the graph's own: clone() what you change."
        )
    return Packed(packed, unpack, array)


def is_recording() -> bool:
    """Say whether operations are recorded now."""
    modes = _mode()
    return modes is None or modes.grad


def apply(primitive: Primitive, operands: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Apply a primitive to tensors: compute, and record if an input requires grad."""
    tensors = as_tensors(operands)
    arrays = tuple([t._array for t in tensors])
    xp = namespace(arrays[0])
    try:
        out = forward_of(primitive, xp)(*arrays, **settings)
    except Exception as error:
        fail(error, primitive, arrays)
    edges: tuple[Edge, ...] = ()
    if primitive.differentiable and is_recording():
        edges = tuple([t._node if t._view is None else current_node(t) for t in tensors])
    tracked = any([edge is not None for edge in edges])
    if not primitive.multiple:
        if out.__class__ is not ndarray:
            out = xp.asarray(out)
        if out.dtype.kind not in "fc":
            tracked = False
        node = None
        if tracked:
            node = record(primitive, edges, arrays, out, settings, _differing(arrays, out))
        result = make(out, node)
        if primitive.view:
            result._view = view_of(tensors[0], primitive, settings)
        return result
    node = None
    if tracked:
        node = record(primitive, edges, arrays, out, settings, None)
    return tuple(
        [
            make(xp.asarray(part), None if node is None else Port(node, index))
            for index, part in enumerate(out)
        ]
    )


def _differing(arrays: tuple[Array, ...], out: Array) -> Any:
    """Return the shapes and dtypes of inputs that broadcasting or promotion changed, else None."""
    if len(arrays) == 1:
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
        view.base, view.base_node = parent.base, parent.base._node
        view.path = (parent.path, primitive, settings)
    if parent is not None:
        view.refusal = view.refusal or parent.refusal
    view.stamp = 0
    return view


# --- the recorders --------------------------------------------------------------------------------


def recorder(primitive: Primitive) -> Callable[..., Any]:
    """Return the function of tensors that applies and records `primitive`, made once."""
    function = RECORDERS.get(primitive.name)
    if function is None:
        plain = not (primitive.joint or primitive.multiple)
        if plain and len(primitive.inputs) == 1 and primitive.name != "astype":  # may give integers
            function = _unary(primitive)
        elif plain and primitive.name in _OPERATORS:
            function = _binary(primitive)
        else:

            def function(*operands: Any, **settings: Any) -> Any:
                return apply(primitive, operands, settings)

        function.__name__ = function.__qualname__ = primitive.name
        RECORDERS[primitive.name] = function
    return function


_OPERATORS = frozenset(
    [
        *("add", "subtract", "multiply", "divide", "pow", "remainder", "floor_divide"),
        *("maximum", "minimum", "matmul"),
    ]
)
"""What takes two tensors or scalars, and promotes them: the others choose among their inputs."""


def _unary(primitive: Primitive) -> Callable[..., Any]:
    """Return the recorder of a primitive of one input. This and `_binary` are the hot path."""
    kernel = forward_of(primitive, numpy_xp)
    plan = primitive.plan((True,))
    saves = plan.saves
    seen: list[Any] = [None]
    is_view = primitive.view
    only_x, only_out, only_shape = saves == ("x",), saves == ("out",), saves == ("x_shape",)

    def function(a: Any, **settings: Any) -> Any:
        if a.__class__ is not Tensor or a._array.__class__ is not ndarray:
            return apply(primitive, (a,), settings)
        x = a._array
        try:
            out = kernel(x, **settings) if settings else kernel(x)
        except Exception as error:
            fail(error, primitive, (x,))
        if out.__class__ is not ndarray:
            out = np_asarray(out)
        result = _new(Tensor)
        result._array = out
        result._grad = None
        result._view = view_of(a, primitive, settings) if is_view else None
        modes = _mode()
        if modes is not None and not modes.grad:
            result._node = None
            return result
        edge = a._node if a._view is None else current_node(a)
        if edge is None:
            result._node = None
            return result
        if modes is not None and modes.saved_hooks is not None:
            result._node = record(primitive, (edge,), (x,), out, settings, None)
            return result
        node = _new(PrimitiveNode)
        node.plan = plan
        node.edges = (edge,)
        if only_x:
            node.saved = (x,)
        elif only_out:
            node.saved = (out,)
        elif only_shape:
            node.saved = (x.shape,)
        elif saves:
            node.saved = tuple([_value(name, x, out) for name in saves])
        else:
            node.saved = ()
        node.settings = settings
        node.undo = node.hooks = None
        node.seq = tick()
        frame: Any = _frame(1)
        code = frame.f_code
        while code is not seen[0] and INTERNAL[code.co_filename]:
            frame = frame.f_back
            code = frame.f_code
        node.code = seen[0] = code  # in a loop, the next one is the same
        node.instruction = frame.f_lasti
        result._node = node
        return result

    return function


def _value(name: str, x: Array, out: Array) -> Any:
    if name == "x":
        return x
    if name == "out":
        return out
    return getattr(x, name.rpartition("_")[2])


def _binary(primitive: Primitive) -> Callable[..., Any]:
    """Return the recorder of a primitive of two inputs without settings."""
    kernel = forward_of(primitive, numpy_xp)
    names = primitive.inputs
    plans = {
        (True, True): primitive.plan((True, True)),
        (True, False): primitive.plan((True, False)),
        (False, True): primitive.plan((False, True)),
    }
    picks = {needs: _pick(plan, names) for needs, plan in plans.items()}
    both, left, right = plans.values()
    pick_both, pick_left, pick_right = picks.values()
    seen: list[Any] = [None]

    def function(a: Any, b: Any) -> Any:
        if b.__class__ is Tensor and a.__class__ is Tensor:
            x, y = a._array, b._array
            if x.dtype is not y.dtype:
                x, y = promote(x, y)
        elif (b.__class__ is float or b.__class__ is int) and _is_float(a):
            x = a._array
            y = np_array(b, x.dtype)
            b = None
        elif (a.__class__ is float or a.__class__ is int) and _is_float(b):
            y = b._array
            x = np_array(a, y.dtype)
            a = None
        else:
            a, b = as_operands(a, b)
            return a if a is NotImplemented else function(a, b)
        try:
            if x.__class__ is ndarray is y.__class__:
                out = kernel(x, y)
            else:
                out = forward_of(primitive, namespace(x))(x, y)
        except Exception as error:
            fail(error, primitive, (x, y))
        if out.__class__ is not ndarray:
            out = namespace(out).asarray(out)
        result = _new(Tensor)
        result._array = out
        result._grad = result._view = None
        modes = _mode()
        if modes is not None and not modes.grad:
            result._node = None
            return result
        edge_a = None if a is None else a._node if a._view is None else current_node(a)
        edge_b = None if b is None else b._node if b._view is None else current_node(b)
        if edge_a is None is edge_b:
            result._node = None
            return result
        shapes = None
        tensors = a is not None and b is not None  # a number takes the other's shape and dtype
        if tensors and (x.shape != y.shape or x is not a._array or y is not b._array):
            shapes = ((x.shape, a._array.dtype), (y.shape, b._array.dtype))
        if modes is not None and modes.saved_hooks is not None:
            numbers = (a is None, b is None)
            result._node = record(primitive, (edge_a, edge_b), (x, y), out, None, shapes, numbers)
            return result
        node = _new(PrimitiveNode)
        node.edges = (edge_a, edge_b)
        if edge_b is None:
            node.plan = left
            node.saved = pick_left(x, y, out)
        elif edge_a is None:
            node.plan = right
            node.saved = pick_right(x, y, out)
        else:
            node.plan = both
            node.saved = pick_both(x, y, out)
        node.settings = None
        node.undo = shapes
        node.hooks = None
        node.seq = tick()
        frame: Any = _frame(1)
        code = frame.f_code
        while code is not seen[0] and INTERNAL[code.co_filename]:
            frame = frame.f_back
            code = frame.f_code
        node.code = seen[0] = code  # in a loop, the next one is the same
        node.instruction = frame.f_lasti
        result._node = node
        return result

    return function


def _is_float(value: Any) -> bool:
    return value.__class__ is Tensor and value._array.dtype.kind == "f"


def _pick(plan: Plan, inputs: tuple[str, ...]) -> Callable[[Any, Any, Any], tuple[Any, ...]]:
    """Return the function from (x, y, out) to the tuple of what `plan` saves."""
    spelled = dict(zip(inputs, ("x", "y"), strict=True))
    parts = []
    for name in plan.saves:
        stem, _, aspect = name.rpartition("_")
        parts.append(
            f"{spelled[stem]}.{aspect}"
            if aspect in ("shape", "dtype", "ndim") and stem in spelled
            else spelled.get(name, name)
        )
    pick: Callable[[Any, Any, Any], tuple[Any, ...]]
    pick = eval(f"lambda x, y, out: ({''.join(part + ', ' for part in parts)})")
    return pick
