"""Dtypes: promotion, casts and limits; predicates on tensors; attributes of dtype and device."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import numpy as np

from chainrule.arguments import DTypeLike, Operand, dtype_of, keeps_kind, tensor_of
from chainrule.autograd.operands import scalar_array
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import CPU, address_of, dtype_title, promoted
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError
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
    """Return the dtype of the result of an operation on tensors, dtypes and numbers.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, array, dtype or number
        At least one. A number takes the dtype of the others if that can represent its kind.

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
        raise ArgumentTypeError(
            "result_type(): expected at least one tensor, dtype or number, got none"
        )
    numbers = [value for value in arrays_and_dtypes if _is_number(value)]
    dtypes = [_dtype_of_value(value) for value in arrays_and_dtypes if not _is_number(value)]
    if not dtypes:
        dtypes = [np.dtype(bool)]  # the lowest dtype: numbers take their kind's default dtype
    dtype = functools.reduce(promoted, dtypes)
    for number in numbers:
        dtype = promoted(dtype, scalar_array(number, np.empty(0, dtype)).dtype)
    return dtype


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex | np.generic)


def _dtype_of_value(value: Any) -> DType:
    """Return a dtype, or the dtype of a tensor or array."""
    if hasattr(value, "__array_namespace__") or isinstance(value, np.ndarray):
        value = value.dtype
    return dtype_of(value)


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """Return the dtype of an operation on two tensors of these dtypes.

    The kind takes precedence over the width: int64 with float16 gives float16.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.promote_types(cr.int64, cr.float16)
    dtype('float16')
    """
    return promoted(dtype_of(type1), dtype_of(type2))


def can_cast(from_: DTypeLike, to: DTypeLike) -> bool:
    """Return whether a dtype converts to another without losing its kind, as in PyTorch.

    Widths are ignored: float64 converts to float32, and int64 to int8. The array API's stricter
    function is `chainrule.array_api.can_cast`.

    Parameters
    ----------
    from_ : dtype or Tensor
        The dtype to convert from.
    to : dtype
        The dtype to convert to.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.can_cast(cr.float64, cr.float32), cr.can_cast(cr.float64, cr.int64)
    (True, False)
    """
    return keeps_kind(_dtype_of_value(from_), dtype_of(to))


@operation(method=False, array_api=True)
def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> bool:
    """Return whether a dtype is of a kind.

    Parameters
    ----------
    dtype : dtype
        The dtype to test.
    kind : dtype, str or tuple of them
        A dtype, or one of "bool", "signed integer", "unsigned integer", "integral",
        "real floating", "complex floating" and "numeric"; for a tuple, any of its items.

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
    """Machine limits of a floating dtype; of a complex dtype those of its parts.

    Parameters
    ----------
    dtype : dtype or Tensor
        The default dtype if left out.

    Attributes
    ----------
    bits : int
        Number of bits of an element.
    eps : float
        The distance from 1 to the next number.
    max, min : float
        The largest number, and its negative.
    smallest_normal, tiny : float
        The smallest positive number of full precision.
    resolution : float
        10 to the power of minus the number of exact decimal digits.
    dtype : dtype

    Raises
    ------
    DTypeError
        If the dtype is neither floating nor complex.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.finfo(cr.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")

    def __init__(self, dtype: DTypeLike = None, /) -> None:
        requested = default_dtype() if dtype is None else _dtype_of_value(dtype)
        if requested.kind not in "fc":
            raise DTypeError(
                f"finfo() requires a floating point input type, got {requested}: use iinfo() for "
                "integers"
            )
        info = np.finfo(requested)
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
    """Machine limits of an integer dtype.

    Parameters
    ----------
    dtype : dtype or Tensor

    Attributes
    ----------
    bits : int
        Number of bits of an element.
    max, min : int
        The largest and the smallest number.
    dtype : dtype

    Raises
    ------
    DTypeError
        If the dtype is not an integer dtype.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.iinfo(cr.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "dtype", "max", "min")

    def __init__(self, dtype: DTypeLike, /) -> None:
        requested = _dtype_of_value(dtype)
        if requested.kind not in "iu":
            raise DTypeError(
                f"iinfo() requires an integer input type, got {requested}: use finfo() for floats"
            )
        info = np.iinfo(requested)
        self.bits, self.dtype, self.max, self.min = int(info.bits), requested, info.max, info.min

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


# --- predicates -----------------------------------------------------------------------------------


def is_floating_point(input: Operand) -> bool:
    """Return whether the dtype is real floating.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_floating_point(cr.ones(2)), cr.is_floating_point(cr.tensor([1]))
    (True, False)
    """
    return tensor_of(input).is_floating_point()


def is_complex(input: Operand) -> bool:
    """Return whether the dtype is complex.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_complex(cr.tensor([1j]))
    True
    """
    return tensor_of(input).is_complex()


@operation()
def is_signed(input: Operand) -> bool:
    """Return whether the dtype can represent negative numbers.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_signed(cr.tensor([1])), cr.is_signed(cr.tensor([1], dtype=cr.uint8))
    (True, False)
    """
    return tensor_of(input).dtype.kind in "ifc"


@operation()
def is_nonzero(input: Operand) -> bool:
    """Return whether the tensor's single element is not zero.

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
    """Return whether two tensors have the same shape.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_same_size(cr.zeros(2), cr.zeros(2, 1))
    False
    """
    return tensor_of(input).shape == tensor_of(other).shape


@operation()
def is_conj(input: Operand) -> bool:
    """Return whether the conjugation of the tensor is pending: False, `conj` is not lazy.

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
    """Return whether the negation of the tensor is pending: False, negation is not lazy.

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
    """Return whether the tensor is an inference tensor: False, see `inference_mode`.

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
    """Return the tensor unchanged: conjugation is never pending.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.resolve_conj(cr.tensor([1j]).conj())
    tensor([0.-1.j])
    """
    return tensor_of(input)


@operation()
def resolve_neg(input: Operand) -> Tensor:
    """Return the tensor unchanged: negation is never pending.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.resolve_neg(cr.tensor([1.0]))
    tensor([1.])
    """
    return tensor_of(input)


def detach(input: Operand) -> Tensor:
    """Return a tensor that shares memory with `input` and is not part of the graph.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.detach(cr.ones(2, requires_grad=True)).requires_grad
    False
    """
    return tensor_of(input).detach()


@operation()
def get_device(input: Operand) -> int:
    """Return the index of the tensor's GPU, -1 for the CPU.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.get_device(cr.ones(2))
    -1
    """
    device = tensor_of(input).device
    return -1 if device == CPU else int(device.index or 0)


def typename(obj: Any, /) -> str:
    """Return the name of an object's type; for tensors PyTorch's name.

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
    return address_of(x._array)


@operation()
def ndimension(x: Tensor) -> int:
    """Return the number of dimensions."""
    return x.ndim


@operation()
def bfloat16(x: Tensor) -> NoReturn:
    """Raise: NumPy has no such dtype."""
    raise DTypeError(
        "bfloat16: NumPy has no such dtype. Use float() for single precision, or half() for 16 "
        "bits with a smaller range"
    )


tensor_property("is_cpu", lambda x: x.device == CPU, doc="Whether the tensor is on the CPU.")
tensor_property("is_cuda", lambda x: x.device != CPU, doc="Whether the tensor is on a GPU.")
tensor_property("is_mps", lambda x: False, doc="Whether the tensor is on Apple's GPU: False.")
tensor_property("is_xpu", lambda x: False, doc="Whether the tensor is on Intel's GPU: False.")
tensor_property("is_meta", lambda x: False, doc="Whether the tensor has no data: False.")
tensor_property("is_quantized", lambda x: False, doc="Whether the elements are quantised: False.")
tensor_property("is_nested", lambda x: False, doc="Whether it is a nested tensor: False.")
tensor_property("is_sparse", lambda x: False, doc="Whether the tensor is sparse: False.")
tensor_property("is_sparse_csr", lambda x: False, doc="Whether it is sparse by rows: False.")
tensor_property("layout", lambda x: "torch.strided", doc="The layout: always strided.")
tensor_property(
    "itemsize", lambda x: int(x._array.itemsize), doc="The size of an element in bytes."
)
tensor_property("nbytes", lambda x: int(x._array.nbytes), doc="The size of all elements in bytes.")
