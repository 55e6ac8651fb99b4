"""Dtypes: what a computation's result has, which conversions lose something, what a dtype holds."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule.arguments import DTypeLike, Operand, dtype_of
from chainrule.autograd.operands import scalar_array
from chainrule.autograd.tensor import default_dtype
from chainrule.backend import promoted
from chainrule.errors import ArgumentError, DTypeError

__all__ = ["result_type", "promote_types", "can_cast", "isdtype", "finfo", "iinfo"]

DType = Any


def result_type(*arrays_and_dtypes: Operand | DTypeLike) -> DType:
    """Return the dtype that an operation on these has.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, array, dtype or number
        At least one. A number takes the dtype of the others where that can hold its kind.

    Returns
    -------
    dtype

    Raises
    ------
    TypeError
        If there are none.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.result_type(cr.tensor([1, 2]), cr.float32)
    dtype('float32')
    >>> cr.result_type(cr.tensor([1, 2]), 0.5)
    dtype('float32')
    """
    if not arrays_and_dtypes:
        raise TypeError("result_type(): expected at least one tensor, dtype or number, got none")
    numbers = [value for value in arrays_and_dtypes if _is_number(value)]
    dtypes = [_dtype_in(value) for value in arrays_and_dtypes if not _is_number(value)]
    if not dtypes:
        dtypes = [np.dtype(bool)]  # the weakest: each number is of its kind's default dtype
    dtype = functools.reduce(promoted, dtypes)
    for number in numbers:
        dtype = promoted(dtype, scalar_array(number, np.empty(0, dtype)).dtype)
    return dtype


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex | np.generic)


def _dtype_in(value: Any) -> DType:
    if hasattr(value, "__array_namespace__") or isinstance(value, np.ndarray):
        value = value.dtype
    return dtype_of(value)


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """Return the dtype of an operation on two tensors of these dtypes.

    The kind counts first, then the width: int64 with float16 gives float16.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.promote_types(cr.int64, cr.float16)
    dtype('float16')
    """
    return promoted(dtype_of(type1), dtype_of(type2))


def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Say whether a dtype converts to another without changing kind, as PyTorch has it.

    Widths don't count: float64 converts to float32, and int64 to int8. The array API's stricter
    function is `chainrule.array_api.can_cast`.

    Parameters
    ----------
    from_ : dtype, or Tensor of one
        What is to be converted.
    to : dtype
        What it is to be.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.can_cast(cr.float64, cr.float32), cr.can_cast(cr.float64, cr.int64)
    (True, False)
    """
    return _RANKS[_dtype_in(from_).kind] <= _RANKS[dtype_of(to).kind]


_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Say whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
        What is asked about.
    kind : dtype, str or tuple of them
        A dtype, or one of "bool", "signed integer", "unsigned integer", "integral",
        "real floating", "complex floating" and "numeric"; of a tuple, any.

    Raises
    ------
    ArgumentError
        If `kind` is none of these.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isdtype(cr.float32, "real floating"), cr.isdtype(cr.float32, ("bool", cr.int64))
    (True, False)
    """
    if isinstance(kind, tuple):
        return any([isdtype(dtype, one) for one in kind])
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ArgumentError(
                f"isdtype(): expected a dtype or one of {list(KINDS)}, got {kind!r}"
            )
        return dtype_of(dtype).kind in KINDS[kind]
    return dtype_of(dtype) == dtype_of(kind)


KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


class finfo:
    """What a floating dtype can hold; a complex dtype stands for that of its parts.

    Parameters
    ----------
    dtype : dtype, or Tensor of one
        The default dtype if left out.

    Attributes
    ----------
    bits : int
        How many bits a number takes.
    eps : float
        The distance from 1 to the next number.
    max, min : float
        The largest number, and the least, which is its negative.
    smallest_normal, tiny : float
        The smallest positive number of full precision.
    resolution : float
        10 to the minus the number of decimal digits that are kept.
    dtype : dtype

    Raises
    ------
    DTypeError
        If the dtype is none of floating or complex numbers.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.finfo(cr.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, dtype: DTypeLike = None, /) -> None:
        asked = default_dtype() if dtype is None else _dtype_in(dtype)
        if asked.kind not in "fc":
            raise DTypeError(
                f"finfo() requires a floating point input type, got {asked}: use iinfo() for "
                "integers"
            )
        info = np.finfo(asked)
        self.bits, self.dtype = int(info.bits), np.dtype(info.dtype)
        self.eps, self.resolution = float(info.eps), 10.0**-info.precision
        self.max, self.min = float(info.max), float(info.min)
        self.smallest_normal = self.tiny = float(info.smallest_normal)

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, dtype={self.dtype})"
        )


class iinfo:
    """What an integer dtype can hold.

    Parameters
    ----------
    dtype : dtype, or Tensor of one

    Attributes
    ----------
    bits : int
        How many bits a number takes.
    max, min : int
        The largest number and the least.
    dtype : dtype

    Raises
    ------
    DTypeError
        If the dtype is none of integers.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.iinfo(cr.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: DTypeLike, /) -> None:
        asked = _dtype_in(dtype)
        if asked.kind not in "iu":
            raise DTypeError(
                f"iinfo() requires an integer input type, got {asked}: use finfo() for floats"
            )
        info = np.iinfo(asked)
        self.bits, self.dtype, self.max, self.min = int(info.bits), asked, info.max, info.min

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
