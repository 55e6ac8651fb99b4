"""Recorders of batched tensors: operations in a function under vmap, without redirected slots.

The slots of tensors are redirected while a function runs under vmap, which costs a microsecond
for each read. The tensors that most operations get belong to the run already: here their plain
slots are read. What isn't so simple is left to the general recorder.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.modes import MODES
from chainrule.autograd.operands import last_scalar_array
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.record import as_carried, stamp_node
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.views import View, current_node, view_of
from chainrule.backend import is_basic_index, namespace, ndarray, numpy_xp
from chainrule.primitives.primitive import PARTS_MIN_ELEMENTS, Plan, Primitive, forward_of
from chainrule.transforms.vmap.batched_array import BatchedArray
from chainrule.transforms.vmap.namespace import BATCHED_XP, pad_rank
from chainrule.transforms.vmap.rules import shift_axis

if TYPE_CHECKING:
    from chainrule.transforms.vmap.interpreter import VmapInterpreter

Array = Any

_new, _mode = object.__new__, MODES.get
_read_array, _read_node, _read_view = [SLOTS[slot].__get__ for slot in ("_array", "_node", "_view")]
_set_array, _set_node, _set_grad, _set_view = [
    SLOTS[slot].__set__ for slot in ("_array", "_node", "_grad", "_view")
]
_NUMBERS = frozenset([float, int])


def apply_batched(
    interceptor: VmapInterpreter,
    primitive: Primitive,
    operands: Sequence[Any],
    settings: dict[str, Any] | None,
) -> Any:
    """Return a primitive's recorded result; `NotImplemented` for what isn't simple enough."""
    modes = _mode()
    if primitive.multiple or (modes is not None and modes.special):
        return NotImplemented
    outer = interceptor.outer
    if outer is not None and outer.records:
        unwatched = outer.own.namespace.unwatched
        if unwatched is not None:
            return unwatched(apply_batched, interceptor, primitive, operands, settings)
    level, takes_numbers = interceptor.level, _takes_numbers(primitive)
    arrays: list[Any] = []
    datas: list[Any] = []
    edges: list[Any] = []
    carried: Any = None  # the class of the result, if it is not `Tensor`
    like: Any = None  # the data of the first array
    uniform = True  # whether the others have its shape and dtype
    recorded = has_number = False
    xp: Any = numpy_xp
    for t in operands:
        kind = type(t)
        if kind is not Tensor:
            if kind in _NUMBERS and takes_numbers:
                has_number = True
                arrays.append(t)
                datas.append(t)
                edges.append(None)
                continue
            if not (issubclass(kind, Tensor) and kind.is_carried):
                return NotImplemented
            carried = kind
        array = _read_array(t)
        if type(array) is not BatchedArray or array.level is not level:
            t = interceptor.proxy(t)
            array = _read_array(t)
            if array.level is not level:
                return NotImplemented
        data = array.data
        if type(data) is not ndarray:
            xp = namespace(data)
            if not (xp.repeats and _is_pointwise(primitive, settings)):
                return NotImplemented
        if like is None:
            like = data
        elif data.dtype is not like.dtype or data.shape[1:] != like.shape[1:]:
            if data.dtype is not like.dtype and takes_numbers:
                return NotImplemented
            uniform = False
        arrays.append(array)
        datas.append(data)
        view = _read_view(t)
        edge = _read_node(t) if view is None else _node_of_view(t, view, level)
        if edge is not None:
            recorded = True
        edges.append(edge)
    if has_number:
        if like is None or like.dtype.kind != "f":
            return NotImplemented
        for i, x in enumerate(arrays):
            if type(x) is not BatchedArray:
                arrays[i] = datas[i] = (
                    last_scalar_array(x, like) if xp is numpy_xp else numpy_xp.array(x, like.dtype)
                )
    try:
        if not _is_pointwise(primitive, settings):
            out = _not_pointwise(primitive, arrays, xp, settings)
        elif xp is numpy_xp and uniform:
            kernel = _kernel_of(primitive)
            out = BatchedArray(level, kernel(*datas, **settings) if settings else kernel(*datas))
        else:
            out = BatchedArray(level, _pointwise(primitive, datas, like, xp, settings or {}))
    except Exception:
        return NotImplemented  # the general recorder raises it, with the shapes of one example
    if type(out) is not BatchedArray or out.level is not level:
        return NotImplemented
    result = _new(Tensor)
    _set_array(result, out)
    _set_grad(result, None)
    _set_view(result, None if not primitive.view else _view_of(t, modes, primitive, settings or {}))
    _set_node(result, None)
    is_recorded = recorded and primitive.differentiable and (modes is None or modes.grad)
    if is_recorded and out.data.dtype.kind in "fc":
        node = _node_of(primitive, edges, arrays, out, settings)
        if not (has_number or len(arrays) == 1):
            data, uniform = out.data, uniform and primitive.broadcasts
            uniform = uniform and data.shape[1:] == like.shape[1:] and data.dtype is like.dtype
            node.input_meta = None if uniform else tuple([(x.shape, x.dtype) for x in arrays])
        stamp_node(node, 2)
        _set_node(result, node)
    return result if carried is None else as_carried(result, carried)


def _not_pointwise(
    primitive: Primitive, arrays: list[Any], xp: Any, settings: dict[str, Any] | None
) -> Any:
    """Return the result by NumPy's function of the data if there is one, else by the rule."""
    direct = _direct_of(primitive) if xp is numpy_xp else None
    out = direct(arrays, settings) if direct is not None else None
    return forward_of(primitive, BATCHED_XP)(*arrays, **(settings or {})) if out is None else out


def _pointwise(
    primitive: Primitive, datas: list[Any], like: Array, xp: Any, settings: dict[str, Any]
) -> Any:
    """Return the data of a result, of operands of several ranks or of another namespace."""
    kernel = _kernel_of(primitive)
    if xp is not numpy_xp:
        kernel = functools.partial(xp.run_forward, primitive, forward_of(primitive, xp))
        datas = [_for_namespace(xp, data, like) for data in datas]
    rank = max([data.ndim for data in datas])
    return kernel(*[pad_rank(x, rank) if x.ndim else x for x in datas], **settings)


def _node_of(
    primitive: Primitive,
    edges: list[Any],
    arrays: list[Any],
    out: BatchedArray,
    settings: dict[str, Any] | None,
) -> PrimitiveNode:
    node = PrimitiveNode()
    node.edges = tuple(edges)
    node.plan = plan = primitive.plan(tuple([edge is not None for edge in edges]))
    pick = plan.pick
    node.saved = pick(out, *arrays)
    node.settings, node.input_meta = settings, None
    return node


def _for_namespace(xp: Any, data: Array, like: Array) -> Array:
    """Return the data of an operand as an array of a namespace; numbers have no dimensions."""
    if type(data) is not ndarray:
        return data
    return xp.asarray(data) if data.ndim else xp.number(data, like)


def _node_of_view(t: Tensor, view: Any, level: Any) -> Any:
    """Return the current node of a view, without redirected slots if its base is batched, too."""
    base = view.base
    if base is not None and _read_view(base) is None:
        array = _read_array(base)
        if type(array) is BatchedArray and array.level is level:
            node = _read_node(base)
            if node is view.base_node:
                return _read_node(t)
    return current_node(t)


def _view_of(t: Tensor, modes: Any, primitive: Primitive, settings: dict[str, Any]) -> Any:
    """Return `view_of`, without redirected slots if `t` is no view itself."""
    if _read_view(t) is not None:
        return view_of(t, primitive, settings)
    view: View = _new(View)
    view.base, view.base_node, view.path = t, _read_node(t), (None, primitive, settings)
    view.refusal = None if modes is None or modes.grad else "no_grad"
    view.stamp = 0
    return view


def _is_pointwise(primitive: Primitive, settings: dict[str, Any] | None) -> bool:
    """Return whether NumPy's function of the data of batched arrays does what is wanted."""
    if not _acts_on_elements(primitive):
        return False
    return not settings or not any([hasattr(value, "ndim") for value in settings.values()])


@functools.cache
def _acts_on_elements(primitive: Primitive) -> bool:
    pairs = primitive.form == "binary" and primitive.broadcasts
    selects = primitive.name in ("where", "masked")
    is_native = primitive.native is not None
    return bool(primitive.scales or is_native or pairs or selects or _compares(primitive))


@functools.cache
def _takes_numbers(primitive: Primitive) -> bool:
    return primitive.form == "binary" or _compares(primitive)


def _compares(primitive: Primitive) -> bool:
    """Whether a primitive without derivative is one of NumPy's functions of elements."""
    function = getattr(np, primitive.name, None)
    return not primitive.differentiable and isinstance(function, np.ufunc)


@functools.cache
def _kernel_of(primitive: Primitive) -> Any:
    return forward_of(primitive, numpy_xp)


# --- other functions of NumPy's data --------------------------------------------------------------

_Direct = Callable[[list[BatchedArray], Any], BatchedArray | None]


@functools.cache
def _direct_of(primitive: Primitive) -> _Direct | None:
    """Return what computes a primitive from the data of its arrays, which may give None."""
    name = primitive.name
    if primitive.form == "reduction" or name in _ALONG_AXES:
        return functools.partial(_along_axis, _kernel_of(primitive))
    if name in _JOINING:
        return functools.partial(_joined, _kernel_of(primitive), name == "stack")
    return functools.partial(_view, _TAKES[name]) if name in _TAKES else None


_ALONG_AXES = frozenset(
    ["softmax", "log_softmax", "logsumexp", "cumulative_sum", "cumulative_prod", "flip", "p_norm"]
)
"""Primitives whose only setting that depends on the number of dimensions is `axis`."""

_JOINING = ("concat", "stack")


def _along_axis(kernel: Any, arrays: list[BatchedArray], settings: Any) -> BatchedArray | None:
    (x,) = arrays
    ndim = x.data.ndim - 1
    if not ndim:
        return None
    axis = shift_axis(settings["axis"], ndim)
    return BatchedArray(x.level, kernel(x.data, **{**settings, "axis": axis}))


def _joined(
    kernel: Any, is_stack: bool, arrays: list[BatchedArray], settings: Any
) -> BatchedArray | None:
    datas, count = [x.data for x in arrays], arrays[0].level.count
    if any([data.shape[0] != count for data in datas]):
        return None
    axis = shift_axis(settings["axis"], datas[0].ndim - 1 + is_stack)
    return BatchedArray(arrays[0].level, kernel(*datas, axis=axis))


def _view(take: Any, arrays: list[BatchedArray], settings: Any) -> BatchedArray | None:
    """Return a view of the memory that each example has."""
    (x,) = arrays
    data = take(x.data, **settings) if x.data.shape[0] == x.level.count else None
    if data is None:
        return None
    found = BatchedArray(x.level, data)
    base = found.base = x if x.base is None else x.base
    found.outside = base.outside
    return found


def _read(data: Array, *, key: Any) -> Array | None:
    if not is_basic_index(key):
        return None
    return data[(_ALL, *key) if key.__class__ is tuple else (_ALL, key)]


def _reshaped(data: Array, *, shape: tuple[int, ...]) -> Array | None:
    return data.reshape(data.shape[0], *shape) if data.flags.c_contiguous else None


def _permuted(data: Array, *, axes: tuple[int, ...]) -> Array:
    ndim = data.ndim - 1
    return data.transpose((0, *[axis % ndim + 1 for axis in axes]))


_ALL = slice(None)
_TAKES: dict[str, Callable[..., Array | None]] = {
    "getitem": _read,
    "select": _read,
    "reshape": _reshaped,
    "permute_dims": _permuted,
    "transpose": _permuted,
}


def _vjp_of_batched(plan: Plan, g: Any, saved: tuple[Any, ...], settings: Any) -> Any:
    """Return the cotangents of the inputs, by NumPy's functions of the data where they do.

    Rules of broadcast inputs may sum the cotangent to their shapes. In the data that isn't right
    for an input that all examples share: so the shapes must be equal, except for partials and for
    rules of a single input.
    """
    primitive = plan.primitive
    if type(g) is BatchedArray and _is_pointwise(primitive, settings):
        level, data = g.level, g.data
        kind, rank, datas = type(data), data.ndim, []
        xp = numpy_xp if kind is ndarray else namespace(data)
        partials = primitive.scales and primitive.substitute is None  # each a product with g
        is_unary = xp is numpy_xp and len(plan.needs) == 1 and primitive.substitute is None
        is_unary = is_unary and data.size < PARTS_MIN_ELEMENTS  # else kernels want equal shapes
        for value, origin in zip(saved, plan.origins, strict=True):
            if type(value) is BatchedArray and value.level is level:
                value = value.data if value.data.ndim == rank else pad_rank(value.data, rank)
                fits = type(value) is kind
            else:
                fits = type(value) is ndarray and (not value.ndim or is_unary)
                value = value[None] if fits and value.ndim else value  # that all examples share
            is_needed = origin is None or origin < 0 or plan.needs[origin]
            fits = fits and (partials or is_unary or not is_needed or value.shape == data.shape)
            if not fits:
                break
            datas.append(value)
        else:
            if xp is numpy_xp:
                grads = plan.vjp(xp, data, datas, settings)
                return [None if x is None else BatchedArray(level, x) for x in grads]
            if xp.repeats:
                grads = xp.run_vjp(plan, data, tuple(datas), settings)
                return [None if x is None else BatchedArray(level, x) for x in grads]
    return plan.vjp(BATCHED_XP, g, saved, settings)


def _sum_of_batched(x: Array, y: Array) -> Array:
    """Return the sum of two cotangents."""
    if type(x) is BatchedArray is type(y) and x.level is y.level:
        a, b = x.data, y.data
        if type(a) is type(b) and a.ndim == b.ndim:
            return BatchedArray(x.level, a + b if type(a) is ndarray else namespace(a).plus(a, b))
    return x + y


BATCHED_XP.apply, BATCHED_XP.plus, BATCHED_XP.run_vjp = (
    apply_batched,
    _sum_of_batched,
    _vjp_of_batched,
)
