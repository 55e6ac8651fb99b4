"""Conversion of operands: tensors, arrays, numbers, and nested lists of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy, NumberProxy
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.operands import as_tensors, plain_array
from chainrule.autograd.record import unwatched_by
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, is_known, namespace, ndarray
from chainrule.errors import AutogradError, CompileError
from chainrule.ops import join_split
from chainrule.ops.wrappers import reshape_result

Array = Any


def tensors_of(values: list[Any], *, weak: bool = False) -> list[Tensor]:
    """Return operands as tensors: lists as NumPy reads them, scalars in the dtype of the tensors.

    If none of them is a tensor, they have NumPy's dtypes, not the default one of tensors. Beside
    arrays of the class `ndarray`, Python's numbers have them as well, unless they are `weak`.
    """
    if all([type(value) is float or _has_own_dtype(value) for value in values]) and any(
        [isinstance(value, Tensor) for value in values]
    ):
        return as_tensors(values if weak else with_dtypes_of_numpy(values, numbers=True))
    listed = [_array_of(value) for value in values]
    if any([isinstance(value, Tensor) for value in listed]):
        return as_tensors(with_dtypes_of_numpy(listed, numbers=not weak))
    # Python's numbers take the dtype of arrays, NumPy's scalars have their own.
    has_arrays = any([is_array(value) for value in listed])
    constants = [_constant(value, weak=has_arrays) for value in listed]
    if any([isinstance(t, Tensor | ndarray) and t.dtype in _SINGLE for t in constants]):
        constants = [*map(_with_float_dtype, constants)]
    return as_tensors(constants)


def _array_of(value: Any) -> Any:
    """Return lists, and objects that stand for a recorded array, such as `poly1d`, as arrays."""
    kind = type(value)
    if issubclass(kind, list | tuple):
        return _array_of_list(value)
    is_plain = isinstance(value, _PLAIN) or is_array(value) or isinstance(value, ArrayProxy)
    return value if is_plain or not hasattr(kind, "__array__") else value.__array__()


_PLAIN = (int, float, complex, np.generic, Tensor)


def _has_own_dtype(value: Any) -> bool:
    """Return whether an operand is of floats that keep their dtype, whatever is beside them."""
    if type(value) is ndarray:
        return value.dtype.kind in "fc"
    if type(value) is not Tensor and not (isinstance(value, Tensor) and value.is_carried):
        return False
    return value._array.dtype.kind in "fc"


def _constant(value: Any, *, weak: bool) -> Any:
    if is_array(value):
        return make(plain_array(value), None)
    if isinstance(value, NumberProxy):
        return value.as_array()
    return value if weak and not isinstance(value, np.generic) else np.asarray(value)


def with_dtypes_of_numpy(operands: Sequence[Any], *, numbers: bool = False) -> Sequence[Any]:
    """Return operands with integers as floats where NumPy's dtype of the result needs it.

    Tensors keep single precision beside integers, arrays of the class `ndarray` don't; NumPy's
    scalars count as arrays, and with `numbers`, Python's as well.
    """
    dtypes = [getattr(t, "dtype", None) for t in operands]
    if not any([dtype is not None and dtype.char in "fF" for dtype in dtypes]):
        return operands  # in double precision it makes no difference
    if not any([isinstance(t, Tensor) and t.is_carried for t in operands]):
        return operands
    kinds = (np.generic, int, float, complex) if numbers else np.generic
    arrays = [np.asarray(value) if isinstance(value, kinds) else value for value in operands]
    return [*map(_with_float_dtype, arrays)]


def in_double(a: Tensor) -> Tensor:
    """Return `a` in double precision where NumPy's function computes so: not of other tensors."""
    if not a.is_carried or a.dtype not in _SINGLE:
        return a
    return a.astype(np.complex128 if a.is_complex() else np.float64)


def _with_float_dtype(value: Any) -> Any:
    """Return an array of integers in the dtype in which NumPy adds it to float32."""
    if not isinstance(value, Tensor | ndarray) or value.dtype.kind not in "iu":
        return value
    return value.astype(np.result_type(value.dtype, np.float32))


_SINGLE = (np.float32, np.complex64)


def tensor_of(value: Any) -> Tensor:
    """Return one operand as a tensor."""
    return tensors_of([value])[0]


def _array_of_list(value: Any) -> Any:
    """Return nested lists as an array, or as a recorded tensor if they contain tensors."""
    if next(tensors_in(value), None) is None and not _holds_proxies(value):
        return np.asarray(value)
    elements: list[Any] = []
    shape = _collect_elements(value, elements)
    if shape is None or len(shape) == 1:
        return join_split.stack(tensors_of(list(value)), 0)
    return reshape_result(join_split.stack(as_tensors(elements), 0), shape)  # at once


def _collect_elements(value: Any, elements: list[Any]) -> tuple[int, ...] | None:
    """Append the elements of nested lists, tensors in double precision and numbers.

    Return the shape of the lists; None if they have other elements, or not the same lengths.
    """
    if type(value) is not list and type(value) is not tuple:
        if isinstance(value, Tensor):
            array = value._array
            if array.__class__ is not ndarray or array.ndim or array.dtype.char not in "dD":
                return None
        elif type(value) is not float and type(value) is not int:
            return None
        elements.append(value)
        return ()
    found = {_collect_elements(part, elements) for part in value}
    inner = found.pop() if len(found) == 1 else None
    return None if inner is None else (len(value), *inner)


def _holds_proxies(value: Any) -> bool:
    """Tell whether nested lists hold symbols, batched arrays or open numbers."""
    if isinstance(value, list | tuple):
        return any([_holds_proxies(part) for part in value])
    return isinstance(value, ArrayProxy | NumberProxy)


def array_of(value: Any) -> Array:
    """Return an operand without its gradient, such as an index, as an array."""
    found = arrays_of(value)
    return found if is_array(found) or isinstance(value, Tensor) else np.asarray(found)


def may_hold(condition: Tensor) -> bool:
    """Tell whether a condition holds for an element, or isn't known."""
    return not is_known(condition._array) or bool(condition._array.any())


def arrays_of(value: Any) -> Any:
    """Return arguments with tensors replaced by NumPy arrays."""
    if isinstance(value, Tensor):
        found = value.detach().numpy()
        return np.asarray(found) if is_known(found) else found
    if isinstance(value, dict):
        return {key: arrays_of(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)([arrays_of(part) for part in value])
    return value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors among arguments."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def is_tracked(*values: Any) -> bool:
    """Tell whether any of the arguments requires grad while gradients are recorded."""
    return is_grad_enabled() and any(tensor.requires_grad for tensor in tensors_in(values))


def are_known(values: Any) -> bool:
    """Return whether there are no symbols or batched arrays among arguments, or in tensors."""
    if isinstance(values, Tensor):
        return is_known(values._array)
    if isinstance(values, list | tuple):
        return all([are_known(part) for part in values])
    if isinstance(values, dict):
        return all([are_known(part) for part in values.values()])
    return not isinstance(values, ArrayProxy | NumberProxy)


def check_keeps(target: Any, function: Any, *values: Any) -> None:
    """Raise if NumPy's own array would lose the gradient, or has no place for unknown numbers."""
    if is_tracked(values):
        kind, why = AutogradError, "depends on an array that requires grad"
    elif not are_known(values):
        kind, why = CompileError, "has no numbers yet, in a compiled or mapped function"
    else:
        return
    raise kind(
        f"numpy.{function.__name__}: its result {why}, and the {type(target).__name__} that it "
        "would be written to records nothing. Make that with chainrule.numpy (import "
        "chainrule.numpy as np; a = np.array(a) if it comes from integers or truth values), or "
        "compute out of place: a = a + x in the place of a += x"
    )


def constant(array: Array) -> Tensor:
    """Return an array or a NumPy scalar as a tensor of its dtype."""
    return make(array if is_array(array) else np.asarray(array), None)


def unwatched_for(args: Iterable[Any]) -> Callable[..., Any] | None:
    """Return what calls a function of these arguments in a trace without being watched, if any."""
    for x in args:
        if isinstance(x, Tensor):
            array = x._array
            found = None if type(array) is ndarray else unwatched_by(namespace(array))
            return found if found is not None and _is_plain(args) else None
    return None


def _is_plain(tree: Any) -> bool:
    """Return whether arguments are arrays and numbers, whose conversion runs no code of users."""
    kind = type(tree)
    if kind in (tuple, list):
        return all([_is_plain(item) for item in tree])
    return kind in _PLAIN_CLASSES or (isinstance(tree, Tensor) and tree.is_carried)


_PLAIN_CLASSES = frozenset([Tensor, ndarray, int, float, bool, type(None)])
