"""Dtypes: what a computation's result has, which conversions lose something, what a dtype holds."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import numpy as np

from chainrule.arguments import DTypeLike, Operand, dtype_of, tensor_of
from chainrule.autograd.operands import scalar_array
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import CPU, dtype_title, promoted
from chainrule.errors import ArgumentError, DTypeError
from chainrule.operation import operation, tensor_property

__all__ = [
    "result_type",
    "promote_types",
    "can_cast",
    "isdtype",
    "finfo",
    "iinfo",
    "detach",
    "get_device",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "resolve_conj",
    "resolve_neg",
    "typename",
]

DType = Any


@operation(method=False, array_api=True)
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


@operation(method=False, array_api=True)
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


# --- questions ------------------------------------------------------------------------------------
#
# What a tensor is: its kind of numbers, where it lives; and what PyTorch only notes.


def is_floating_point(input: Operand) -> bool:
    """Say whether the dtype is a real floating one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_floating_point(cr.ones(2)), cr.is_floating_point(cr.tensor([1]))
    (True, False)
    """
    return tensor_of(input).is_floating_point()


def is_complex(input: Operand) -> bool:
    """Say whether the dtype is complex.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_complex(cr.tensor([1j]))
    True
    """
    return tensor_of(input).is_complex()


@operation()
def is_signed(input: Operand) -> bool:
    """Say whether the dtype has negative numbers.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_signed(cr.tensor([1])), cr.is_signed(cr.tensor([1], dtype=cr.uint8))
    (True, False)
    """
    return tensor_of(input).dtype.kind in "ifc"


@operation()
def is_nonzero(input: Operand) -> bool:
    """Say whether the one element is not zero.

    Raises
    ------
    AutogradError
        If there are several elements, or none.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_nonzero(cr.tensor([0.0])), cr.is_nonzero(cr.tensor(2))
    (False, True)
    """
    return bool(tensor_of(input))


@operation()
def is_same_size(input: Operand, other: Operand) -> bool:
    """Say whether two tensors have the same shape.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_same_size(cr.zeros(2), cr.zeros(2, 1))
    False
    """
    return tensor_of(input).shape == tensor_of(other).shape


@operation()
def is_conj(input: Operand) -> bool:
    """Say whether the tensor is conjugated only on reading: never, `conj` computes at once.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_conj(cr.tensor([1j]).conj())
    False
    """
    tensor_of(input)
    return False


@operation()
def is_neg(input: Operand) -> bool:
    """Say whether the tensor is negated only on reading: never.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_neg(-cr.ones(2))
    False
    """
    tensor_of(input)
    return False


@operation()
def is_inference(input: Operand) -> bool:
    """Say whether the tensor is kept out of graphs for good: never, see `inference_mode`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_inference(cr.ones(2))
    False
    """
    tensor_of(input)
    return False


@operation()
def resolve_conj(input: Operand) -> Tensor:
    """Return the tensor as it is: here it never waits for being conjugated.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.resolve_conj(cr.tensor([1j]).conj())
    tensor([0.-1.j])
    """
    return tensor_of(input)


@operation()
def resolve_neg(input: Operand) -> Tensor:
    """Return the tensor as it is: here it never waits for being negated.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.resolve_neg(cr.tensor([1.0]))
    tensor([1.])
    """
    return tensor_of(input)


def detach(input: Operand) -> Tensor:
    """Return a tensor of the same memory, outside the graph.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.detach(cr.ones(2, requires_grad=True)).requires_grad
    False
    """
    return tensor_of(input).detach()


@operation()
def get_device(input: Operand) -> int:
    """Return the number of the GPU where the tensor lives, -1 for the CPU.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.get_device(cr.ones(2))
    -1
    """
    place = tensor_of(input).device
    return -1 if place == CPU else int(place.index or 0)


def typename(obj: Any, /) -> str:
    """Return the name of the kind of an object, as PyTorch prints those of tensors.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.typename(cr.ones(2)), cr.typename([])
    ('torch.FloatTensor', 'list')
    """
    if isinstance(obj, Tensor):
        return f"torch.{'' if obj.device == CPU else 'cuda.'}{dtype_title(obj.dtype)}Tensor"
    kind = obj if isinstance(obj, type) else type(obj)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


# --- methods and attributes -----------------------------------------------------------------------


@operation()
def data_ptr(x: Tensor) -> int:
    """Return the address of the first element."""
    place: Any = x._array.ctypes if x.device == CPU else x._array.data
    return int(place.data if x.device == CPU else place.ptr)


@operation()
def ndimension(x: Tensor) -> int:
    """Return the number of dimensions."""
    return x.ndim


@operation()
def bfloat16(x: Tensor) -> NoReturn:
    """Refuse: NumPy has no numbers of this format."""
    raise DTypeError(
        "bfloat16: NumPy has no such numbers. Use float() for single precision, or half() for 16 "
        "bits with fewer exponents"
    )


tensor_property("is_cpu", lambda x: x.device == CPU, doc="Whether the CPU's memory holds it.")
tensor_property("is_cuda", lambda x: x.device != CPU, doc="Whether a GPU's memory holds it.")
tensor_property("is_meta", lambda x: False, doc="Whether there is a shape only: never.")
tensor_property("is_quantized", lambda x: False, doc="Whether numbers are quantised: never.")
tensor_property("is_sparse", lambda x: False, doc="Whether zeros are left out: never.")
tensor_property("itemsize", lambda x: int(x._array.itemsize), doc="The bytes of one element.")
tensor_property("nbytes", lambda x: int(x._array.nbytes), doc="The bytes of all elements.")
