"""Creation of tensors from data, arrays and buffers."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from itertools import chain
from typing import Any, Unpack

import numpy as np

from chainrule.arguments import (
    WATCHER,
    DeviceLike,
    DTypeLike,
    MemoryOptions,
    cast,
    complex_dtype,
    dtype_of,
    leaf,
    watched,
)
from chainrule.autograd.array_proxy import NumberProxy
from chainrule.autograd.conversions import DifferentiatedError, check_differentiated
from chainrule.autograd.modes import no_grad, run_in
from chainrule.autograd.operands import plain_array
from chainrule.autograd.references import ALONE_IN_CALL, count_references
from chainrule.autograd.tensor import Tensor, default_dtype, make
from chainrule.backend import (
    PLAIN_DTYPES,
    array_from_dlpack,
    is_array,
    namespace,
    ndarray,
    promoted,
    with_plain_dtype,
)
from chainrule.backend import device as as_device
from chainrule.errors import ArgumentError, ArgumentTypeError, AutogradError, ShapeError
from chainrule.primitives import elementwise

__all__ = ["tensor", "asarray", "from_numpy", "frombuffer"]

Array = Any
_new = object.__new__


def tensor(
    data: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    **memory: Unpack[MemoryOptions],
) -> Tensor:
    """Return a new leaf tensor with a copy of `data`.

    Parameters
    ----------
    data : number, nested sequence of numbers, array or Tensor
        Python floats take the default dtype, ints int64; arrays and NumPy scalars keep theirs.
        Sequences take the common dtype; tensors of one element in them are numbers.
    dtype : dtype, optional
        Convert to this instead.
    device : device or str, optional
        Device of the tensor; by default that of `data`, or the CPU.
    requires_grad : bool, default False
        Record operations on the tensor. It needs a floating or complex dtype.

    Returns
    -------
    Tensor
        A leaf, even under `no_grad` and even if `data` has a history, which is dropped.

    Raises
    ------
    ShapeError
        If nested sequences differ in length.
    DTypeError
        If the elements are not numbers, or can't require grad although they should.

    See Also
    --------
    asarray, from_numpy : Share memory instead of copying.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    >>> cr.tensor(1.0, requires_grad=True)
    tensor(1., requires_grad=True)
    """
    array = array_of(data, dtype)
    if _is_borrowed(array, data):
        array = array.copy()
    return leaf(array, device, requires_grad, memory)


def _is_borrowed(array: Array, data: Any) -> bool:
    """Tell whether `array_of` returned memory that belongs to `data`."""
    if isinstance(data, NumberProxy):
        return False
    return array is data or array is getattr(data, "_array", None) or array.base is not None


def array_of(data: Any, dtype: DTypeLike) -> Array:
    """Return `data` as an array, of `dtype` if that is not None; sharing memory if possible."""
    if isinstance(data, NumberProxy):
        array = data.as_array()
        target = _default_for(array.dtype, data) if dtype is None else dtype_of(dtype)
        return array.astype(target, copy=False)
    if isinstance(data, Tensor):
        check_differentiated(data)
        data = data._array
    elif type(data) is np.ndarray:
        data = watched(data)
    elif isinstance(data, np.ma.MaskedArray):
        plain_array(data)  # raises
    elif not isinstance(data, np.ndarray | np.generic) and hasattr(data, "__dlpack__"):
        data = array_from_dlpack(data, None, None)
    if hasattr(data, "dtype") and not isinstance(data, np.generic):
        target = dtype_of(data.dtype if dtype is None else dtype)
        return with_plain_dtype(namespace(data).asarray(data, dtype=target))
    array = _array_of_sequence(data, None if dtype is None else dtype_of(dtype))
    dtype_of(array.dtype)
    return array


def _array_of_sequence(data: Any, dtype: Any) -> Array:
    try:
        return _numbers(data, dtype)
    except DifferentiatedError:
        raise
    except AutogradError:
        warnings.warn(
            "tensor() copies the values of a Tensor that requires grad, without its history: stack "
            "the tensors to keep it.",
            UserWarning,
            stacklevel=4,
        )
        return run_in(no_grad(), _numbers, data, dtype)
    except ValueError as error:
        if "inhomogeneous" not in str(error) and "sequence" not in str(error):
            raise
        raise ShapeError(
            _ragged_text(data)
            or f"tensor(): {error} Tensors of several shapes stay a list, or are filled up, as by "
            "nn.utils.rnn.pad_sequence(data)"
        ) from None


_PLAIN = {bool, int, float, complex}


def _numbers(data: Any, dtype: Any) -> Array:
    """Return numbers and nested sequences of them as an array, in the common dtype by default."""
    types = _leaf_types(data)
    if types <= _PLAIN or isinstance(data, np.generic):
        array = np.asarray(data, dtype=dtype)
        return array.astype(_default_for(array.dtype, data), copy=False) if dtype is None else array
    data = _with_scalars(data)
    if dtype is None and all(t in _PLAIN or issubclass(t, _ARRAYS) for t in types):
        dtype = functools.reduce(promoted, _leaf_dtypes(data))
    return np.asarray(data, dtype=dtype)


_NESTED = {list, tuple}
_ARRAYS = (Tensor, np.ndarray, np.generic)


def _leaf_types(data: Any) -> set[type]:
    """Return the types of the elements of nested lists and tuples."""
    if type(data) not in _NESTED:
        return {type(data)}
    types, level = set(map(type, data)), data
    while types and types <= _NESTED:
        level = [*chain.from_iterable(level)]
        types = set(map(type, level))
    return types if types.isdisjoint(_NESTED) else set().union(*map(_leaf_types, level))


def _leaf_dtypes(data: Any) -> Iterator[np.dtype[Any]]:
    """Yield the dtypes of the elements, those of Python's numbers as tensors of them have."""
    if isinstance(data, list | tuple):
        for part in data:
            yield from _leaf_dtypes(part)
    else:
        dtype = getattr(data, "dtype", None) or np.asarray(data).dtype
        yield _default_for(dtype, data)


def _with_scalars(data: Any) -> Any:
    """Return nested sequences with numbers in place of tensors of one element, as in PyTorch."""
    if isinstance(data, list | tuple):
        return [_with_scalars(part) for part in data]
    if isinstance(data, Tensor) and data._array.size == 1:
        return np.asarray(data.cpu()).reshape(())
    return data


def _ragged_text(data: Any) -> str:
    """Return which of nested sequences is the first with another length than its neighbour."""
    level, dim = [("data", data)], 0
    while level:
        lengths = [len(part) if isinstance(part, list | tuple) else 0 for _, part in level]
        for (name, _), length in zip(level, lengths, strict=True):
            if length != lengths[0]:
                return (
                    "expected sequences of the same length at each dimension, that is, "
                    f"expected sequence of length {lengths[0]} at dim {dim} (got "
                    f"{length or 'a number'}): {name} differs from {level[0][0]}. "
                    "Fill up the shorter ones, or keep a list of tensors"
                )
        level = [
            (f"{name}[{i}]", each)
            for name, part in level
            if isinstance(part, list | tuple)
            for i, each in enumerate(part)
        ]
        dim += 1
    return ""


def _default_for(dtype: np.dtype[Any], data: Any) -> np.dtype[Any]:
    """Return the dtype of tensors made from Python numbers, where NumPy took its widest one."""
    while isinstance(data, list | tuple) and data:
        data = data[0]
    if not isinstance(data, int | float | complex | list | tuple) or isinstance(data, np.generic):
        return dtype
    if dtype == np.float64:
        return default_dtype()
    if dtype == np.complex128:
        return complex_dtype()
    return dtype


def asarray(
    obj: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Return `obj` as a tensor, without copying where that is possible.

    Parameters
    ----------
    obj : Tensor, array, number or nested sequence of numbers
        A Tensor that fits already is returned as it is, history included. Arrays of other
        libraries are taken through DLPack.
    dtype : dtype, optional
        Dtype of the result.
    device : device or str, optional
        Device of the result.
    copy : bool, optional
        True always copies; False raises where sharing is impossible; None copies if necessary.
    requires_grad : bool, optional
        True makes a leaf that requires grad if `obj` has no history; False drops the history.

    Returns
    -------
    Tensor
        It shares the array's memory, unless a conversion is needed.

    Raises
    ------
    ArgumentError
        If `copy` is False and a copy is needed.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> a = np.zeros(2)
    >>> t = cr.asarray(a)
    >>> a[0] = 5
    >>> t
    tensor([5., 0.], dtype=float64)
    """
    made = cast(obj, dtype) if isinstance(obj, Tensor) else leaf(array_of(obj, dtype))
    shares = _is_borrowed(made._array, obj)
    if device is not None and as_device(device) != made.device:
        made, shares = leaf(made._array, device), False
    if copy is False and not shares:
        raise ArgumentError("asarray(copy=False): this object can't become a tensor without a copy")
    made = elementwise.clone.apply(made) if copy and shares else made
    if requires_grad is None or requires_grad == made.requires_grad:
        return made
    return made.detach().requires_grad_(requires_grad)


def frombuffer(
    buffer: Any,
    *,
    dtype: DTypeLike,
    count: int = -1,
    offset: int = 0,
    requires_grad: bool = False,
) -> Tensor:
    """Return a vector that shares the memory of a buffer, such as bytes or an `array.array`.

    Parameters
    ----------
    buffer : object with Python's buffer protocol
        The owner of the memory; writes to one are visible in the other.
    dtype : dtype
        Dtype of the numbers in the buffer.
    count : int, default -1
        Number of elements; -1 for all.
    offset : int, default 0
        Number of bytes before the first element.
    requires_grad : bool, default False
        Record operations on the tensor.

    Returns
    -------
    Tensor, shape (count,)

    Raises
    ------
    ArgumentError
        If the buffer is too small, or its size is no multiple of the dtype's.

    Examples
    --------
    >>> import array
    >>> import chainrule as cr
    >>> cr.frombuffer(array.array("i", [1, 2, 3]), dtype=cr.int32, offset=4)
    tensor([2, 3], dtype=int32)
    """
    try:
        array = np.frombuffer(buffer, dtype_of(dtype), count, offset)
    except ValueError as error:
        raise ArgumentError(f"frombuffer: {error}") from None
    return make(array, None).requires_grad_(requires_grad)


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array.

    Writing to one changes the other. Writes through NumPy are invisible to the graph, since they
    don't increment the version: a gradient that needs the old values is silently wrong.

    Parameters
    ----------
    array : numpy.ndarray
        Of a numeric or bool dtype, which the tensor has too.

    Returns
    -------
    Tensor
        A leaf that does not require grad.

    Raises
    ------
    TypeError
        If `array` is no NumPy array.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> a = np.ones(2, dtype=np.float32)
    >>> t = cr.from_numpy(a)
    >>> t.mul_(3)
    tensor([3., 3.])
    >>> a
    array([3., 3.], dtype=float32)
    """
    if (
        array.__class__ is ndarray
        and count_references(array) < ALONE_IN_CALL
        and PLAIN_DTYPES.get(array.dtype.char) is array.dtype
        and WATCHER.get() is None
    ):  # a new array, as custom functions compute: without further calls
        tensor: Tensor = _new(Tensor)
        tensor._array = array
        tensor._node = tensor._grad = tensor._view = None
        return tensor
    if array.__class__ is not ndarray and not is_array(array):
        raise ArgumentTypeError(f"expected np.ndarray (got {type(array).__name__})")
    if array.dtype.kind not in "biufc":
        dtype_of(array.dtype)  # raises
    shared: Any = array
    if array.__class__ is not ndarray or count_references(array) >= ALONE_IN_CALL:
        # Who holds the array may change its shape in place.
        if isinstance(array, np.ma.MaskedArray):
            plain_array(array)  # raises
        shared = array.view(ndarray) if isinstance(array, ndarray) else array
    return make(watched(with_plain_dtype(shared)), None)
