"""PyTorch's older constructors: `Tensor([…])`, `FloatTensor`, `LongTensor` and their kin."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from chainrule.autograd.size import Size
from chainrule.autograd.tensor import Tensor, default_dtype, set_default_dtype
from chainrule.creation.data import tensor
from chainrule.creation.filled import empty
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.operation import operation

__all__ = [
    "FloatTensor",
    "DoubleTensor",
    "HalfTensor",
    "ByteTensor",
    "CharTensor",
    "ShortTensor",
    "IntTensor",
    "LongTensor",
    "BoolTensor",
    "set_default_tensor_type",
]


def new_tensor(title: str, dtype: np.dtype[Any], data: tuple[Any, ...]) -> Tensor:
    """Return a tensor of values, or an uninitialised one of sizes.

    Parameters
    ----------
    title : str
        The constructor's name, for errors.
    dtype : dtype
        The dtype of the tensor.
    data : tuple
        Nothing, for an empty tensor; sizes, or the shape of a tensor; or a sequence, such as a
        tuple of integers, an array or a tensor. A tensor that has the dtype already, and any for
        `Tensor`, gives a view of it.

    Returns
    -------
    Tensor
        A leaf, but for a view.

    Raises
    ------
    ArgumentError
        If the arguments are neither sizes nor one sequence of values.
    """
    if len(data) == 1 and data[0].__class__ is Size:
        data = data[0]
    elif not data:
        data = (0,)
    if all(map(_is_size, data)):
        return empty(*map(int, data), dtype=dtype)
    if len(data) > 1 or isinstance(data[0], str | float | complex):
        raise ArgumentError(
            f"{title}: expected sizes, or one sequence of values, got {data}: say "
            f"tensor({list(data)}, dtype=…) for values"
        )
    (values,) = data
    if isinstance(values, Tensor) and (title == "Tensor" or values.dtype == dtype):
        return values.view(values.shape)
    return tensor(values, dtype=dtype)


def _is_size(x: Any) -> bool:
    return isinstance(x, Integral) and not isinstance(x, bool)


def _construct(cls: type[Tensor], *data: Any) -> Tensor:
    """Return a tensor of the default dtype, as `torch.Tensor` does."""
    if cls is not Tensor:
        if not data:
            subclass: Tensor = object.__new__(cls)
            return subclass
        raise ArgumentTypeError(
            f"{cls.__name__} has no constructor of its own: make an array with the functions of "
            "its module"
        )
    return new_tensor("Tensor", default_dtype(), data)


_construct.__name__, _construct.__qualname__ = "__new__", "Tensor.__new__"
# The class is below this module, which it can't import.
setattr(Tensor, _construct.__name__, _construct)


@operation()
def new(x: Tensor, *data: Any) -> Tensor:
    """Return a tensor of the dtype of `x`: of values, or uninitialised of sizes.

    PyTorch's older form of `new_tensor` and `new_empty`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2).double().new([1, 2])
    tensor([1., 2.], dtype=float64)
    """
    return new_tensor("new", x.dtype, data)


class _TensorType(type):
    """Metaclass of the types: calling one makes a tensor, and its instances have its dtype."""

    dtype: np.dtype[Any]

    def __call__(cls, *data: Any) -> Tensor:
        return new_tensor(cls.__name__, cls.dtype, data)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype == cls.dtype


class FloatTensor(metaclass=_TensorType):
    """Tensors of float32: `FloatTensor([1, 2])` has these values, `FloatTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(FloatTensor)``, ``isinstance(x, FloatTensor)``.
    """

    dtype = np.dtype("float32")


class DoubleTensor(metaclass=_TensorType):
    """Tensors of float64: `DoubleTensor([1, 2])` has these values, `DoubleTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(DoubleTensor)``, ``isinstance(x, DoubleTensor)``.
    """

    dtype = np.dtype("float64")


class HalfTensor(metaclass=_TensorType):
    """Tensors of float16: `HalfTensor([1, 2])` has these values, `HalfTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(HalfTensor)``, ``isinstance(x, HalfTensor)``.
    """

    dtype = np.dtype("float16")


class ByteTensor(metaclass=_TensorType):
    """Tensors of uint8: `ByteTensor([1, 2])` has these values, `ByteTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(ByteTensor)``, ``isinstance(x, ByteTensor)``.
    """

    dtype = np.dtype("uint8")


class CharTensor(metaclass=_TensorType):
    """Tensors of int8: `CharTensor([1, 2])` has these values, `CharTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(CharTensor)``, ``isinstance(x, CharTensor)``.
    """

    dtype = np.dtype("int8")


class ShortTensor(metaclass=_TensorType):
    """Tensors of int16: `ShortTensor([1, 2])` has these values, `ShortTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(ShortTensor)``, ``isinstance(x, ShortTensor)``.
    """

    dtype = np.dtype("int16")


class IntTensor(metaclass=_TensorType):
    """Tensors of int32: `IntTensor([1, 2])` has these values, `IntTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(IntTensor)``, ``isinstance(x, IntTensor)``.
    """

    dtype = np.dtype("int32")


class LongTensor(metaclass=_TensorType):
    """Tensors of int64: `LongTensor([1, 2])` has these values, `LongTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(LongTensor)``, ``isinstance(x, LongTensor)``.
    """

    dtype = np.dtype("int64")


class BoolTensor(metaclass=_TensorType):
    """Tensors of bool: `BoolTensor([1, 2])` has these values, `BoolTensor(2, 3)` this shape.

    It stands for its dtype, too: ``x.type(BoolTensor)``, ``isinstance(x, BoolTensor)``.
    """

    dtype = np.dtype("bool")


def set_default_tensor_type(t: Any) -> None:
    """Set the dtype of tensors made from Python floats: `set_default_dtype` by a type.

    Parameters
    ----------
    t : type or str
        Such as `DoubleTensor`, or ``"torch.DoubleTensor"``.

    Raises
    ------
    DTypeError
        If its dtype is no real floating one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_default_tensor_type(cr.FloatTensor)
    """
    set_default_dtype(globals()[t.removeprefix("torch.")] if isinstance(t, str) else t)
