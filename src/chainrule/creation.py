"""New tensors, from data and from shapes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from chainrule.arguments import (
    RECORDERS,
    DeviceLike,
    DTypeLike,
    Operand,
    cast,
    dtype_of,
    leaf,
    lengths_of,
)
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import device as as_device
from chainrule.backend import namespace
from chainrule.errors import AutogradError, DTypeError, ShapeError

__all__ = [
    "tensor",
    "asarray",
    "from_numpy",
    "zeros",
    "ones",
    "full",
    "empty",
    "eye",
    "arange",
    "linspace",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
]

Array = Any

# --- from data ------------------------------------------------------------------------------------


def tensor(
    data: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a new leaf tensor with a copy of `data`.

    Parameters
    ----------
    data : number, nested sequence of numbers, array or Tensor
        Python floats take the default dtype, ints int64; arrays and NumPy scalars keep theirs.
    dtype : dtype, optional
        Convert to this instead.
    device : device or str, optional
        Where the tensor lives: where a tensor or GPU array is already, else the CPU.
    requires_grad : bool, default False
        Record what happens to the tensor. It needs a floating or complex dtype.

    Returns
    -------
    Tensor
        A leaf, even under `no_grad` and even if `data` has a history: that stays behind.

    Raises
    ------
    ShapeError
        If nested sequences differ in length.
    DTypeError
        If the elements are no numbers, or can't require grad although they should.

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
    array = _array_of(data, dtype)
    if isinstance(data, Tensor):
        data = data._array
    if isinstance(data, type(array)) and namespace(array).may_share_memory(array, data):
        array = array.copy()
    return leaf(array, device, requires_grad)


def _array_of(data: Any, dtype: DTypeLike) -> Array:
    """Return `data` as an array, of `dtype` if that is not None; sharing memory if possible."""
    if isinstance(data, Tensor):
        data = data._array
    if hasattr(data, "dtype") and not isinstance(data, np.generic):
        target = dtype_of(data.dtype if dtype is None else dtype)
        return namespace(data).asarray(data, dtype=target)
    array = _array_of_sequence(data, None if dtype is None else dtype_of(dtype))
    if dtype is None:
        array = array.astype(_default_for(array.dtype, data), copy=False)
    dtype_of(array.dtype)
    return array


def _array_of_sequence(data: Any, dtype: Any) -> Array:
    try:
        return np.asarray(data, dtype=dtype)
    except AutogradError:
        warnings.warn(
            "tensor() copies the values of a Tensor that requires grad, without its history: stack "
            "the tensors to keep it.",
            UserWarning,
            stacklevel=4,
        )
        with no_grad():
            return np.asarray(data, dtype=dtype)
    except ValueError as error:
        if "inhomogeneous" not in str(error) and "sequence" not in str(error):
            raise
        raise ShapeError(
            f"expected sequences of the same length at each dimension: {error}"
        ) from None


def _default_for(dtype: np.dtype[Any], data: Any) -> np.dtype[Any]:
    """Return the dtype that Python numbers take, where NumPy took its widest one."""
    while isinstance(data, list | tuple) and data:
        data = data[0]
    if not isinstance(data, int | float | complex | list | tuple) or isinstance(data, np.generic):
        return dtype
    if dtype == np.float64:
        return default_dtype()  # type: ignore[no-any-return]
    if dtype == np.complex128:
        return np.dtype(np.complex128 if default_dtype().itemsize > 4 else np.complex64)
    return dtype


def asarray(
    obj: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    copy: bool | None = None,
) -> Tensor:
    """Return `obj` as a tensor, without copying where that is possible.

    Parameters
    ----------
    obj : Tensor, array, number or nested sequence of numbers
        A Tensor that fits already is returned as it is, history included.
    dtype : dtype, optional
        The dtype to have.
    device : device or str, optional
        The device to be on.
    copy : bool, optional
        True always copies; False raises where sharing is impossible; None copies if it must.

    Returns
    -------
    Tensor
        Of the array's memory, where nothing had to be converted.

    Raises
    ------
    ValueError
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
    made = cast(obj, dtype) if isinstance(obj, Tensor) else leaf(_array_of(obj, dtype))
    array = obj._array if isinstance(obj, Tensor) else obj
    shares = made._array is array or getattr(made._array, "base", None) is array
    if device is not None and as_device(device) != made.device:
        made, shares = leaf(made._array, device), False
    if copy is False and not shares:
        raise ValueError("asarray(copy=False): this object can't become a tensor without a copy")
    return RECORDERS["clone"](made) if copy and shares else made


def from_numpy(array: np.ndarray[Any, Any]) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array.

    Writing to one changes the other. What is written through NumPy is invisible to the graph: it
    bumps no version, so a gradient that needs the old values is silently wrong.

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
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtype_of(array.dtype)
    return leaf(array.view(np.ndarray))


# --- from shapes ----------------------------------------------------------------------------------


def zeros(
    *size: Any,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of zeros.

    Parameters
    ----------
    *size : int, or one sequence of ints
        The shape: ``zeros(2, 3)`` and ``zeros((2, 3))`` are the same.
    dtype : dtype, optional
        The default dtype if left out.
    device : device or str, optional
        The CPU if left out.
    requires_grad : bool, default False
        Record what happens to the tensor.

    Returns
    -------
    Tensor, shape `size`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return leaf(np.zeros(lengths_of(size), _dtype(dtype)), device, requires_grad)


def ones(
    *size: Any,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of ones; the arguments are those of `zeros`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2)
    tensor([1., 1.])
    """
    return leaf(np.ones(lengths_of(size), _dtype(dtype)), device, requires_grad)


def empty(
    *size: Any,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor whose elements are whatever the memory held.

    The arguments are those of `zeros`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.empty(2, 0).shape
    (2, 0)
    """
    return leaf(np.empty(lengths_of(size), _dtype(dtype)), device, requires_grad)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor with the same value everywhere.

    Parameters
    ----------
    size : int or sequence of ints
        The shape.
    fill_value : number
        The value.
    dtype : dtype, optional
        If left out: the default dtype for a float, int64 for an int, bool for a bool.
    device : device or str, optional
        The CPU if left out.
    requires_grad : bool, default False
        Record what happens to the tensor.

    Returns
    -------
    Tensor, shape `size`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.full((2,), 3.5)
    tensor([3.5000, 3.5000])
    >>> cr.full((2,), 3)
    tensor([3, 3])
    """
    value = _array_of(fill_value, dtype)
    return leaf(np.full(lengths_of((size,)), value), device, requires_grad)


def eye(
    n: int,
    m: int | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a matrix with ones on the diagonal and zeros elsewhere.

    Parameters
    ----------
    n : int
        The number of rows.
    m : int, optional
        The number of columns: as many as rows if left out.
    dtype, device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (n, m)

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    rows, columns = lengths_of((n, n if m is None else m))
    return leaf(np.eye(rows, columns, dtype=_dtype(dtype)), device, requires_grad)


def arange(
    start: float,
    end: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return evenly spaced values from `start` up to, without, `end`.

    Parameters
    ----------
    start : number
        The first value. Given alone it is `end`, and the values start at 0.
    end : number, optional
        Where the values stop; it is not one of them.
    step : number, default 1
        The distance between them; not 0.
    dtype : dtype, optional
        If left out: int64 if the three are ints, else the default dtype.
    device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (⌈(end - start) / step⌉,)

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.arange(2, 8, 2)
    tensor([2, 4, 6])
    >>> cr.arange(0.0, 1.0, 0.25)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if end is None:
        start, end = 0, start
    if step == 0:
        raise ValueError("arange(): step must be nonzero")
    values = np.arange(start, end, step)
    kind = default_dtype() if values.dtype.kind == "f" else np.dtype(np.int64)
    return leaf(values.astype(kind if dtype is None else dtype_of(dtype)), device, requires_grad)


def linspace(
    start: float,
    end: float,
    steps: int,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `steps` evenly spaced values from `start` to `end`, both included.

    Parameters
    ----------
    start, end : number
        The first and the last value.
    steps : int
        How many values.
    dtype, device, requires_grad
        As for `zeros`.

    Returns
    -------
    Tensor, shape (steps,)
        Computed in double precision and then rounded.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.linspace(-4, 4, 5)
    tensor([-4., -2.,  0.,  2.,  4.])
    """
    (count,) = lengths_of((steps,))
    values = np.linspace(_number(start), _number(end), count)
    return leaf(values.astype(_dtype(dtype)), device, requires_grad)


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _dtype(dtype: DTypeLike) -> np.dtype[Any]:
    return default_dtype() if dtype is None else dtype_of(dtype)


# --- like another ---------------------------------------------------------------------------------


def zeros_like(
    x: Operand,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return zeros of the shape, dtype and device of `x`.

    Parameters
    ----------
    x : Tensor or array
        What to be like; its values and history play no part.
    dtype, device : optional
        Another dtype or device than that of `x`.
    requires_grad : bool, default False
        Record what happens to the new tensor.

    Returns
    -------
    Tensor, shape of `x`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros_like(cr.tensor([1, 2]))
    tensor([0, 0])
    """
    return full_like(x, 0, dtype=dtype, device=device, requires_grad=requires_grad)


def ones_like(
    x: Operand,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return ones of the shape, dtype and device of `x`; the arguments are those of `zeros_like`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones_like(cr.zeros(2))
    tensor([1., 1.])
    """
    return full_like(x, 1, dtype=dtype, device=device, requires_grad=requires_grad)


def full_like(
    x: Operand,
    fill_value: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return `fill_value` everywhere; the other arguments are those of `zeros_like`.

    Raises
    ------
    DTypeError
        If the value is complex and the dtype is not.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.full_like(cr.zeros(2), 7)
    tensor([7., 7.])
    """
    array = x._array if isinstance(x, Tensor) else np.asarray(x)
    target = dtype_of(array.dtype if dtype is None else dtype)
    value = _number(fill_value)
    if isinstance(value, complex) and target.kind != "c":
        raise DTypeError(f"value {value} cannot be converted to {target} without overflow")
    made = namespace(array).full(array.shape, value, dtype=target)
    return leaf(made, device, requires_grad)


def empty_like(
    x: Operand,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return uninitialised memory like `x`; the arguments are those of `zeros_like`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.empty_like(cr.zeros(2, 3)).shape
    (2, 3)
    """
    array = x._array if isinstance(x, Tensor) else np.asarray(x)
    target = dtype_of(array.dtype if dtype is None else dtype)
    return leaf(namespace(array).empty(array.shape, dtype=target), device, requires_grad)
