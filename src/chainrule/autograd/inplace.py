"""In-place operations, on tensors and through views.

An in-place operation is the ordinary one, recorded, whose result is then written over the target.
The target, or the base that it is a view of, takes over the history of the result. Nothing is
changed before everything is checked and computed, so an operation that fails leaves no trace.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.error_messages import broadcast_text, check_devices
from chainrule.autograd.modes import current_modes, enable_grad, is_grad_enabled, run_in
from chainrule.autograd.node import AccumulateGrad, Edge, ErrorNode, endpoint
from chainrule.autograd.operands import last_scalar_array, mend_of_operand, scalar_array
from chainrule.autograd.record import record, unwatched_by
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import Part, preserve_saved, record_write, record_writes, savers
from chainrule.autograd.views import ReshapedInPlace, current_node, move_retained
from chainrule.backend import dtype_title, is_basic_index, namespace, ndarray, promoted
from chainrule.errors import ArgumentTypeError, DTypeError, InPlaceError, ShapeError
from chainrule.kernels import flat_indexing
from chainrule.primitives import elementwise
from chainrule.primitives.indexing import assign, getitem, index
from chainrule.primitives.primitive import Primitive

Array = Any

_REFUSALS = {
    "multiple": (
        "This view is the output of a function that returns multiple views. Such functions do not "
        "allow the output views to be modified inplace. You should replace the inplace operation "
        "by an out-of-place one."
    ),
    "no_grad": (
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
        "Make the view outside no_grad(), or write to it inside."
    ),
    "custom": (
        "This view was created inside a custom Function (or because an input was returned as-is) "
        "and the autograd logic to handle view+inplace would override the custom backward "
        "associated with it. You should clone() the output, or write out of place."
    ),
}


def check_writable(target: Tensor, operation: str, value_node: Edge = None) -> None:
    """Raise if `operation` must not write to `target`, when recording."""
    if not is_grad_enabled():
        return
    node = current_node(target)
    view = target._view
    base = None if view is None else view.base
    tracked = node is not None or value_node is not None
    tracked = tracked or (base is not None and base._node is not None)
    if view is not None and view.refusal and tracked:
        if isinstance(target._array, ArrayProxy):  # of a copy, the write would be right
            target._array.check_aliasing_known()
        raise InPlaceError(
            f"{_origin(node)} is a view and is being modified inplace. "
            f"{_REFUSALS[view.refusal]} The operation was {operation}."
        )
    if type(node if base is None else base._node) is AccumulateGrad and (
        base is not None or operation == "setitem"  # it writes through a view of the target
    ):
        raise InPlaceError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation "
            f"({operation}). {_LEAF_MEND}"
        )
    if type(node) is AccumulateGrad:
        raise InPlaceError(
            "a leaf Variable that requires grad is being used in an in-place operation "
            f"({operation}). {_LEAF_MEND}"
        )


def _origin(node: Edge) -> str:
    if node is None:
        return "This tensor"
    maker, number = endpoint(node)
    return f"Output {number} of {maker.name.removesuffix('0').removesuffix('Backward')}"


_LEAF_MEND = (
    "Write under no_grad(), as an optimiser does, or to a clone(), or compute out of place."
)


def check_result(target: Tensor, result: Tensor, operation: str) -> None:
    """Raise if `result` has not the shape of `target`, or cannot be cast to its dtype."""
    new, old = result._array, target._array
    if new.__class__ is ndarray and new.dtype is old.dtype and new.shape == old.shape:
        return
    if result.shape != target.shape:
        raise ShapeError(_shape_text(target.shape, result.shape, operation))
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise DTypeError(
            f"result type {dtype_title(result.dtype)} can't be cast to the desired output type "
            f"{dtype_title(target.dtype)} ({operation}): compute out of place, or convert the "
            "target first"
        )


def _shape_text(target: tuple[int, ...], result: tuple[int, ...], operation: str) -> str:
    return (
        f"output with shape {list(target)} doesn't match the broadcast shape {list(result)} "
        f"({operation}): an in-place operation can't change the shape"
    )


def in_place(target: Tensor, operation: str, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Replace the values and the history of `target` by ``function(target)``; return it."""
    check_writable(target, operation)
    source = target
    if is_grad_enabled():
        # The graph may save the old values: it gets a copy, not the memory that is written.
        source = make(target._array.copy(), current_node(target))
    result = function(source)
    check_result(target, result, operation)
    if result.dtype != target.dtype:
        result = elementwise.astype.apply(result, dtype=target.dtype)
    if result._node is not None:
        check_writable(target, operation, result._node)
    recorded = is_grad_enabled() and (result._node is not None or source._node is not None)
    try:
        _store(target._array, Ellipsis, result._array, operation)
        if recorded:
            rebase(target, result._node, result._array)
    except BaseException as error:
        if recorded and not isinstance(error, Exception):
            _cut_off(target, operation)
        raise
    return target


def _cut_off(target: Tensor, operation: str) -> None:
    """Give a tensor whose write was interrupted a history that no backward pass goes through.

    Its values, or some of them, may be new, and its history old.
    """
    view = target._view
    owner = target if view is None or view.base is None else view.base
    owner._node = ErrorNode(
        f"{operation} on this tensor was interrupted, so its values may not be those that its "
        "history gives: compute it again",
        (),
    )


def view_in_place(target: Tensor, operation: str, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Turn `target` into the view of it that `function` returns, such as a reshape; return it.

    No memory is written: a new tensor takes over what `target` was, as the base of `target` and of
    its earlier views. So the history follows even without recording, and saved values stay valid.
    """
    node = current_node(target)
    if type(node) is AccumulateGrad:
        raise InPlaceError(
            "a leaf Variable that requires grad is being used in an in-place operation "
            f"({operation}): its gradients have its shape. Change the shape before "
            "requires_grad_(), or out of place, or that of a clone()"
        )
    before = make(target._array, node)
    before._view = target._view
    after = run_in(enable_grad(), function, before)
    if after is before:
        return target
    view: Any = after._view
    if view.base is before:
        view = ReshapedInPlace(before, view.path, view.refusal)
    try:
        move_retained(target, node, after._node)
        target._array, target._node, target._view = after._array, after._node, view
    except BaseException:  # an interrupt: all or nothing
        target._array, target._node, target._view = before._array, node, before._view
        move_retained(target, after._node, node)
        raise
    if hasattr(target, "_frozen"):  # gradients of its graphs have the former shape
        target._frozen.forget()
        del target._frozen
    return target


def ufunc_in_place(target: Tensor, operation: str, primitive: Primitive, other: Any) -> Tensor:
    """Apply a binary ufunc in place: directly into the memory if nothing is to be recorded."""
    array, value, recorded = target._array, other, False
    is_tensor = other.__class__ is Tensor or isinstance(other, Tensor)
    if is_tensor:
        value = other._array
    elif array.__class__ is ndarray and isinstance(other, _NUMBERS):
        value = last_scalar_array(other, array)
    modes = current_modes()
    if modes is None or modes.grad:
        if target._node is not None or target._view is not None:
            check_writable(target, operation)
            recorded = current_node(target) is not None
        recorded = recorded or (is_tensor and current_node(other) is not None)
    if recorded or not _can_hold(array, value):
        return in_place(target, operation, lambda t: _apply_binary(primitive, t, other, operation))
    if savers:
        preserve_saved(array)
    if array.size <= _MAX_COPY_SIZE:
        # Not with `out`, so that an error, as of np.errstate(all="raise"), changes nothing.
        result = getattr(np, primitive.name)(array, value)
        record_write(array, operation, _frame(1))  # first: an interrupt may follow the write
        array[...] = result
    else:
        record_write(array, operation, _frame(1))
        getattr(np, primitive.name)(array, value, out=array)
    return target


_frame = sys._getframe


def _apply_binary(primitive: Primitive, x: Tensor, other: Any, operation: str) -> Tensor:
    result: Tensor = primitive.apply(x, other)
    if result is NotImplemented:
        mend = mend_of_operand(other)
        raise ArgumentTypeError(
            f"{operation}: expected a Tensor, an array or a number, got {type(other).__name__}"
            + (mend and f": {mend}")
        )
    return result


def _can_hold(array: Array, value: Any) -> bool:
    """Return whether a ufunc of NumPy can write its result for both into the first."""
    if array.__class__ is not ndarray or value.__class__ is not ndarray:
        return False
    dtype = array.dtype
    return (
        (value.dtype is dtype or promoted(dtype, value.dtype) == dtype)
        and (not value.ndim or value.shape == array.shape)
        and array.flags.writeable
    )


def can_replace(target: Tensor, value: Tensor) -> bool:
    """Return whether `replace` can write arithmetic results of both, which are of NumPy's."""
    array, other = target._array, value._array
    return (
        target.__class__ is Tensor
        and array.__class__ is ndarray
        and other.__class__ is ndarray
        and array.dtype is other.dtype
        and array.size == other.size
        and array.flags.writeable
    )


def replace(targets: Sequence[Tensor], values: Sequence[Array], operation: str) -> None:
    """Write new values of NumPy's over those of tensors, without recording, as one operation."""
    arrays = [target._array for target in targets]
    if savers:
        for array in arrays:
            preserve_saved(array)
    record_writes(arrays, operation, _frame(1))  # first: an interrupt may follow the write
    for array, value in zip(arrays, values, strict=True):
        array[...] = value


_NUMBERS = (int, float)
_MAX_COPY_SIZE = 4096
"""Number of elements up to which a result is computed in new memory and copied: no slower."""


def fill(target: Tensor, value: float, operation: str) -> Tensor:
    """Write one number over all elements: directly if nothing is to be recorded."""
    check_writable(target, operation)
    array = target._array
    recorded = is_grad_enabled() and current_node(target) is not None
    if recorded or array.__class__ is not ndarray or not array.flags.writeable:
        set_item(target, Ellipsis, make(scalar_array(value, array), None), operation)
    else:
        if savers:
            preserve_saved(array)
        record_write(array, operation)  # first: as above
        array.fill(value)
    return target


def _store(array: Array, key: Any, value: Array, operation: str, part: Part | None = None) -> None:
    if key is Ellipsis and value.shape != array.shape:
        misfit = broadcast_text([array.shape, value.shape])
        if misfit:
            raise ShapeError(f"{misfit} ({operation})")
    if savers:
        preserve_saved(array)
    try:
        if array.__class__ is not ndarray:
            namespace(array).write(array, key, value)
        elif key.__class__ in (tuple, ndarray):
            flat_indexing.write(array, key, value)
        else:
            array[key] = value
        record_write(array, operation, None, part)
    except (ValueError, TypeError) as error:
        if "read-only" in str(error):
            raise InPlaceError(
                f"{operation}: the memory is read-only. An expanded tensor has several elements in "
                "one place (unsupported operation: more than one element of the written-to tensor "
                "refers to a single memory location), and from_numpy shares an array that may be "
                "locked. clone() it first."
            ) from None
        check_devices((array, value), operation)
        if key is Ellipsis:
            common = np.broadcast_shapes(array.shape, value.shape)
            raise ShapeError(_shape_text(array.shape, common, operation)) from None
        raise ShapeError(
            f"{operation}: shape mismatch: value tensor of shape {list(value.shape)} cannot be "
            f"broadcast to indexing result of shape {list(array[key].shape)}, which is a part of a "
            f"tensor of shape {list(array.shape)}"
        ) from None
    except BaseException as error:
        if not isinstance(error, Exception):  # an interrupt: it may be written
            record_write(array, operation)
        raise


def _part(array: Array, key: Any) -> Part | None:
    """Return which elements are written, for the log: of index arrays it keeps none."""
    kind = key.__class__
    if kind is tuple:
        for each in key:
            if each.__class__ is ndarray:
                return None
    elif kind is not int and kind is not slice:
        return None
    return (weakref.ref(array), key) if array.__class__ is ndarray else None


def set_item(target: Tensor, key: Any, value: Tensor, operation: str = "setitem") -> None:
    """Write `value` at `key` (an index of arrays, slices and numbers) of `target`."""
    if target._array.__class__ is not ndarray:
        unwatched = unwatched_by(namespace(target._array))
        if unwatched is not None:
            unwatched(set_item, target, key, value, operation)
            return
    value_node = current_node(value)
    check_writable(target, operation, value_node)
    if value.dtype.kind == "c" and target.dtype.kind != "c":
        raise DTypeError(
            f"result type {dtype_title(value.dtype)} can't be cast to the desired output type "
            f"{dtype_title(target.dtype)} ({operation})"
        )
    if value._view is not None and _is_part_itself(target, key, value):
        return
    node = current_node(target)
    array = value._array
    if value._array.dtype != target.dtype:
        array = array.astype(target.dtype)
    if (
        not is_grad_enabled()
        or (node is None and value_node is None)
        or target.dtype.kind not in "fc"  # integers have no gradient
    ):
        # No history follows: elsewhere in the memory, saved values stay valid. Solvers fill the
        # rows of one array in this way, through `.data`.
        return _store(target._array, key, array, operation, _part(target._array, key))
    try:
        _store(target._array, key, array, operation)
        _record_write_at(target, key, value, value_node)
    except BaseException as error:
        if not isinstance(error, Exception):
            _cut_off(target, operation)
        raise


def _is_part_itself(target: Tensor, key: Any, value: Tensor) -> bool:
    """Return whether `value` is ``target[key]``, a view that was just written, as in x[i] += 1.

    Then memory and history of `target` are up to date.
    """
    memory, own, parent = target._array, value._array, target._view
    view: Any = value._view
    base: Any = view.base
    if base is None or memory.__class__ is not ndarray or own.__class__ is not ndarray:
        return False
    before: Any = None if parent is None else parent.path
    root: Any = target if parent is None else parent.base
    if base is not root or view.path[0] is not before or view.refusal is not None:
        return False
    if base._node is not view.base_node or (base._node is None) != (value._node is None):
        return False
    if own.base is not (memory if memory.base is None else memory.base) or not is_basic_index(key):
        return False
    key = key if key.__class__ is tuple else (key,)
    read = view.path[2].get("key")
    read = read if read.__class__ is tuple else (read,)
    kinds = [part.__class__ for part in key]
    return bool not in kinds and read in (key, (*key, ...))


def _record_write_at(target: Tensor, key: Any, value: Tensor, value_node: Edge) -> None:
    """Record that `value` was written at `key` of `target`."""
    basic = is_basic_index(key)
    step = ((getitem if basic else index, {"key": key}),)
    alone = basic or value_node is None or flat_indexing.is_masks(key)
    lasting = None if alone else namespace(target._array).lasting(key, target.shape)
    _record_assign(target, step, value_node, value._array, lasting)


def rebase(target: Tensor, node: Edge, value: Array) -> None:
    """Give `target`, whose memory now holds `value`, the history of `node`."""
    if target._view is None or target._view.base is None:
        move_retained(target, target._node, node)
        target._node = node
    else:
        _record_assign(target, (), node, value)


def _record_assign(
    target: Tensor, path: tuple[Any, ...], node: Edge, value: Array, lasting: Any = None
) -> None:
    """Record that `value` was written at `path` of `target`, or of its base if it is a view."""
    view = target._view
    owner = target
    if view is not None and view.base is not None:
        owner, path = view.base, (*view.steps(), *path)
    shapes = ((owner.shape, owner.dtype), (value.shape, value.dtype))
    # A tensor has zeros as the gradient of what was overwritten, as in PyTorch; an array has none.
    before = None if owner.is_carried and _is_whole(path) else owner._node
    settings = {"path": path, "lasting": lasting}
    made = record(assign, (before, node), (owner._array, value), owner._array, settings, shapes)
    move_retained(owner, owner._node, made)
    owner._node = made
    written = WRITTEN.get()
    if written is not None and owner.is_carried:
        written[id(owner)] = weakref.ref(owner)


def _is_whole(path: tuple[Any, ...]) -> bool:
    """Return whether a write at a path replaces all elements."""
    for _, settings in path:
        key = settings.get("key")
        if not is_basic_index(key):
            return False
        parts = key if key.__class__ is tuple else (key,)
        if not all([part is Ellipsis or part == slice(None) for part in parts]):
            return False
    return bool(path)


WRITTEN: ContextVar[dict[int, weakref.ref[Tensor]] | None]
WRITTEN = ContextVar("chainrule written arrays", default=None)
"""The arrays of a carried class that the function of a running transform has written to."""


def forget_histories(written: dict[int, weakref.ref[Tensor]]) -> None:
    """Take arrays that outlive the function that wrote to them out of its graph."""
    for reference in written.values():
        array = reference()
        if array is not None:
            array._node = None
