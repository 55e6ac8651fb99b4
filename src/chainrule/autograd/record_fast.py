"""Fast recorders: the function `apply` of each primitive, specialised by its form.

This is the hot path: the time of a small operation is spent here. Unary primitives, reductions,
permutations and binary operators have a recorder each. Their endings repeat line by line, since a
shared function would cost 60 ns a call. Tensors of other classes, and other arrays, are left to
`record.apply`; those of the class of `recorders.use_class` have twins of the recorders.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from chainrule.autograd.error_messages import fail
from chainrule.autograd.intercept import INTERCEPTOR, on_redirection
from chainrule.autograd.location import INTERNAL
from chainrule.autograd.modes import MODES
from chainrule.autograd.operands import carried_operands, carried_pair
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.record import (
    apply,
    apply_to_others,
    record_special,
    stamp_node,
    transfer_recorder,
)
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node, view_of
from chainrule.backend import namespace, namespace_among, ndarray, numpy_xp, promote
from chainrule.primitives.primitive import (
    Primitive,
    for_each_primitive,
    forward_of,
    in_parts_of,
)

Array = Any

_new = object.__new__
_mode, _interceptor = MODES.get, INTERCEPTOR.get
_frame = sys._getframe
_Carried: Any = None  # the class of `recorders.use_class`
_of_carried: dict[str, Any] = {}  # the globals of its recorders
_Plain: Any = Tensor  # the class whose slots the recorders read; none while slots are redirected
np_asarray, np_array = numpy_xp.asarray, numpy_xp.array


def _set_plain_class(are_redirected: bool) -> None:
    """While slots are redirected, let recorders ask for the interceptor before they read any."""
    global _Plain
    _Plain = None if are_redirected else Tensor
    _of_carried["_Plain"] = None if are_redirected else _Carried


def _set_recorder(primitive: Primitive) -> None:
    """Set `primitive.apply` to the recorder for its form."""
    function = _RECORDERS[primitive.form](primitive)
    function.__name__ = function.__qualname__ = primitive.name
    primitive.apply = function


def kernel_of(primitive: Primitive) -> Callable[..., Any]:
    """Return the forward function of a primitive for NumPy arrays."""
    find = in_parts_of if primitive.in_parts else forward_of
    plain, substitute = find(primitive, numpy_xp), primitive.substitute
    return plain if substitute is None else substitute.forward(plain)


def _any(primitive: Primitive) -> Callable[..., Any]:
    """Return the recorder of a primitive of no special form."""
    kernel = kernel_of(primitive)
    general = primitive.multiple or primitive.view
    differentiable, broadcasts = primitive.differentiable, primitive.broadcasts
    plans, seen = primitive.known_plans, [None]

    def function(*operands: Any, **settings: Any) -> Any:
        arrays = []
        edges: Any = []
        like: Any = None  # the first array that requires grad
        uniform = True  # whether the others have its dtype and shape
        for t in operands:
            if type(t) is not _Plain:
                found = carried_operands(operands, _Carried) if _Plain is Tensor else None
                if found is not None:
                    return primitive.apply_carried(*found, **settings)
                return apply(primitive, operands, settings, kernel)
            x = t._array
            if x.__class__ is not ndarray:
                return apply(primitive, operands, settings, kernel)
            arrays.append(x)
            edge = t._node if t._view is None else current_node(t)
            edges.append(edge)
            if edge is None:
                continue
            if like is None:
                like = x
            elif x.dtype is not like.dtype or x.shape != like.shape:
                uniform = False
        if general:
            return apply(primitive, operands, settings, kernel)
        is_recorded = like is not None and differentiable
        if is_recorded:
            modes = _mode()
            if modes is not None:
                if modes.special:
                    return apply(primitive, operands, settings, kernel)
                is_recorded = not modes.idle
        try:
            out = kernel(*arrays, **settings)
        except Exception as error:
            fail(error, primitive, tuple(arrays))
        if out.__class__ is not ndarray:
            out = np_asarray(out)
        result = _new(Tensor)
        result._array = out
        result._node = result._grad = result._view = None
        if not is_recorded or out.dtype.kind not in "fc":
            return result
        node = PrimitiveNode()
        node.edges = edges = tuple(edges)
        needs = tuple([edge is not None for edge in edges])
        node.plan = plan = plans.get(needs) or primitive.plan(needs)
        pick = plan.pick  # calling a slot's value as if it were a method takes longer
        node.saved = pick(out, *arrays)
        node.settings = settings
        if broadcasts and uniform and out.dtype is like.dtype and out.shape == like.shape:
            node.input_meta = None
        else:
            node.input_meta = tuple([(x.shape, x.dtype) for x in arrays])
        node.hooks = None
        node.seq = next_seq()
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


def _unary(primitive: Primitive) -> Callable[..., Any]:
    """Return the recorder of a primitive of one input."""
    kernel = kernel_of(primitive)
    plan = primitive.plan((True,))
    saves = plan.saves
    seen: list[Any] = [None]
    is_view = primitive.view
    only_x, only_out, only_shape = saves == ("x",), saves == ("out",), saves == ("x_shape",)

    def function(a: Any, **settings: Any) -> Any:
        if type(a) is not _Plain or a._array.__class__ is not ndarray:
            if type(a) is _Carried and _Plain is Tensor and a._array.__class__ is ndarray:
                return primitive.apply_carried(a, **settings)
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
        if modes is not None:
            if modes.idle:
                result._node = None
                return result
            if modes.special:
                return record_special(primitive, (a,), (x,), result, settings)
        edge = a._node if a._view is None else current_node(a)
        if edge is None:
            result._node = None
            return result
        node = PrimitiveNode()
        node.plan = plan
        node.edges = (edge,)
        if only_x:
            node.saved = (x,)
        elif only_out:
            node.saved = (out,)
        elif only_shape:
            node.saved = (x.shape,)
        elif saves:
            pick = plan.pick
            node.saved = pick(out, x)
        else:
            node.saved = ()
        node.settings = settings
        node.input_meta = node.hooks = None
        node.seq = next_seq()
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


def _reduction(primitive: Primitive) -> Callable[..., Any]:
    """Return the recorder of a reduction."""
    kernel = kernel_of(primitive)
    plan = primitive.plan((True,))
    only_shape = plan.saves == ("x_shape",)
    seen: list[Any] = [None]

    def function(a: Any, *, axis: Any, keepdims: bool) -> Any:
        if type(a) is not _Plain or a._array.__class__ is not ndarray:
            if type(a) is _Carried and _Plain is Tensor and a._array.__class__ is ndarray:
                return primitive.apply_carried(a, axis=axis, keepdims=keepdims)
            return apply(primitive, (a,), {"axis": axis, "keepdims": keepdims})
        x = a._array
        try:
            out = kernel(x, axis=axis, keepdims=keepdims)
        except Exception as error:
            fail(error, primitive, (x,))
        if out.__class__ is not ndarray:
            out = np_asarray(out)
        result = _new(Tensor)
        result._array = out
        result._grad = result._view = None
        modes = _mode()
        if modes is not None:
            if modes.idle:
                result._node = None
                return result
            if modes.special:
                settings = {"axis": axis, "keepdims": keepdims}
                return record_special(primitive, (a,), (x,), result, settings)
        edge = a._node if a._view is None else current_node(a)
        if edge is None:
            result._node = None
            return result
        settings = {"axis": axis, "keepdims": keepdims}
        node = PrimitiveNode()
        node.plan = plan
        node.edges = (edge,)
        node.saved = (x.shape,) if only_shape else plan.pick(out, x)
        node.settings = settings
        node.input_meta = node.hooks = None
        node.seq = next_seq()
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


def _permutation(primitive: Primitive) -> Callable[..., Any]:
    """Return the recorder of a permutation of dimensions, which returns a view."""
    plan = primitive.plan((True,))

    def function(a: Any, *, axes: tuple[int, ...]) -> Any:
        settings = {"axes": axes}
        if type(a) is not _Plain or a._array.__class__ is not ndarray:
            if type(a) is _Carried and _Plain is Tensor and a._array.__class__ is ndarray:
                return primitive.apply_carried(a, **settings)
            return apply(primitive, (a,), settings)
        x = a._array
        try:
            out = x.transpose(axes)
        except Exception as error:
            fail(error, primitive, (x,))
        result = _new(Tensor)
        result._array = out
        result._grad = None
        result._view = view_of(a, primitive, settings)
        modes = _mode()
        if modes is not None:
            if modes.idle:
                result._node = None
                return result
            if modes.special:
                return record_special(primitive, (a,), (x,), result, settings)
        edge = a._node if a._view is None else current_node(a)
        if edge is None:
            result._node = None
            return result
        node = result._node = PrimitiveNode()
        node.plan = plan
        node.edges = (edge,)
        node.saved = ()
        node.settings = settings
        node.input_meta = None
        stamp_node(node, 2)
        return result

    return function


def _binary(primitive: Primitive) -> Callable[..., Any]:
    """Return the recorder of a primitive of two inputs without settings."""
    kernel = kernel_of(primitive)
    both, left, right = [
        primitive.plan(needs) for needs in ((True, True), (True, False), (False, True))
    ]
    seen: list[Any] = [None]
    last: list[Any] = [(None, None, None)]  # a number, a dtype, and the number as such an array

    def function(a: Any, b: Any) -> Any:
        kind = type(b)
        if kind is _Plain and type(a) is _Plain:
            x, y = a._array, b._array
            if x.dtype is not y.dtype:
                x, y = promote(x, y)
        elif (
            kind in _NUMBERS
            and type(a) is _Plain
            and ((dtype := a._array.dtype) is last[0][1] or dtype.kind == "f")
        ):
            x = a._array
            number, known, y = last[0]
            if b is not number or dtype is not known:
                y = np_array(b, dtype)
                last[0] = (b, dtype, y)  # in a loop, the next one is the same
            b = None
        elif (
            kind is _Plain
            and type(a) in _NUMBERS
            and ((dtype := b._array.dtype) is last[0][1] or dtype.kind == "f")
        ):
            y = b._array
            number, known, x = last[0]
            if a is not number or dtype is not known:
                x = np_array(a, dtype)
                last[0] = (a, dtype, x)
            a = None
        else:
            pair = None
            if _Plain is not Tensor:
                interceptor = _interceptor()
                if interceptor is not None and interceptor.records:
                    found = interceptor.own.namespace.apply(interceptor, primitive, (a, b), None)
                    if found is not NotImplemented:
                        return found
                pair = _pair_of(a, b)
            if pair is None:
                if _Plain is Tensor and (type(a) is _Carried or type(b) is _Carried):
                    found = carried_pair(a, b, _Carried)
                    if found is not None:
                        return primitive.apply_carried(*found)
                return apply_to_others(primitive, a, b)
            a, b, x, y = pair
        try:
            if x.__class__ is ndarray is y.__class__:
                out = kernel(x, y)
            else:
                xp = namespace_among((x, y))
                if a is None:
                    x = xp.number(x, y)
                elif b is None:
                    y = xp.number(y, x)
                out = xp.run_forward(primitive, forward_of(primitive, xp), x, y)
        except Exception as error:
            fail(error, primitive, (x, y))
        if out.__class__ is not ndarray:
            out = namespace(out).asarray(out)
        result = _new(Tensor)
        result._array = out
        result._grad = result._view = None
        modes = _mode()
        if modes is not None:
            if modes.idle:
                result._node = None
                return result
            if modes.special:
                return record_special(primitive, (a, b), (x, y), result, None)
        edge_a = None if a is None else a._node if a._view is None else current_node(a)
        edge_b = None if b is None else b._node if b._view is None else current_node(b)
        if edge_a is None is edge_b:
            result._node = None
            return result
        shapes = None
        tensors = a is not None and b is not None  # a number takes the other's shape and dtype
        if tensors and (x.shape != y.shape or x is not a._array or y is not b._array):
            shapes = ((x.shape, a._array.dtype), (y.shape, b._array.dtype))
        node = PrimitiveNode()
        node.edges = (edge_a, edge_b)
        node.plan = plan = left if edge_b is None else right if edge_a is None else both
        pick = plan.pick  # calling a slot's value as if it were a method takes longer
        node.saved = pick(out, x, y)
        node.settings = None
        node.input_meta = shapes
        node.hooks = None
        node.seq = next_seq()
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


def _pair_of(a: Any, b: Any) -> tuple[Any, Any, Array, Array] | None:
    """Return operands and their arrays; None in the place of a number, whose array is of the other.

    None if they are neither tensors nor such numbers.
    """
    first, second = type(a), type(b)
    if first is Tensor is second:
        x, y = a._array, b._array
        return (a, b, x, y) if x.dtype is y.dtype else (a, b, *promote(x, y))
    if first is Tensor and second in _NUMBERS and a._array.dtype.kind == "f":
        return a, None, a._array, np_array(b, a._array.dtype)
    if second is Tensor and first in _NUMBERS and b._array.dtype.kind == "f":
        return None, b, np_array(a, b._array.dtype), b._array
    return None


_NUMBERS = frozenset([float, int])


_RECORDERS: dict[str, Callable[[Primitive], Callable[..., Any]]] = {
    "unary": _unary,
    "binary": _binary,
    "reduction": _reduction,
    "permutation": _permutation,
    "transfer": transfer_recorder,
    "any": _any,
}

for_each_primitive(_set_recorder)
on_redirection.append(_set_plain_class)
