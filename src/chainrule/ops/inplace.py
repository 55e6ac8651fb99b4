"""In-place methods of tensors: fills, random fills, transpositions, dimensions of length 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import Operand, cast, tensor_of
from chainrule.autograd.inplace import fill, set_item, view_in_place
from chainrule.autograd.operands import as_tensors, scalar_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.operation import check_tensor, operation, tensor_property
from chainrule.ops.complex import complex as from_parts
from chainrule.ops.complex import imag, real
from chainrule.ops.permute import t, transpose
from chainrule.ops.reshape import squeeze, unsqueeze
from chainrule.primitives import elementwise
from chainrule.random.draw import bounds_by_name, normal_array, uniform_array

if TYPE_CHECKING:
    from numpy.random import Generator


__all__ = ["detach_", "fill_", "zero_"]


# --- fills ----------------------------------------------------------------------------------------


@operation()
def zero_(input: Tensor) -> Tensor:
    """Fill with zeros in place."""
    check_tensor("zero_", input)
    return _overwrite(input, 0, "zero_")


@operation()
def fill_(input: Tensor, value: Operand) -> Tensor:
    """Fill with a number, or with a 0-d tensor, in place."""
    check_tensor("fill_", input)
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions: copy_ takes any"
        )
    return _overwrite(input, value, "fill_")


@operation()
def copy_(x: Tensor, source: Operand, non_blocking: bool = False) -> Tensor:
    """Overwrite all elements with `source`: its shape broadcasts, its dtype is converted.

    `source` may be on another device.

    `non_blocking` is accepted for compatibility with PyTorch, and ignored.
    """
    return _overwrite(x, source, "copy_")


def _overwrite(x: Tensor, value: Operand, operation: str) -> Tensor:
    """Write a number or tensor to all elements, and return `x`."""
    if value.__class__ is float or value.__class__ is int:
        return fill(x, value, operation)
    if isinstance(value, bool | int | float | complex | np.generic):
        value = make(scalar_array(value, x._array), None)
    value = tensor_of(value)
    if value._array.__class__ is not x._array.__class__ and value.device != x.device:
        value = elementwise.to_device.apply(value, source=value.device, target=x.device)
    set_item(x, Ellipsis, value, operation)
    return x


def set_real(x: Tensor, value: Operand) -> None:
    """Overwrite the real parts in place, as ``x.real = value`` does."""
    if not x.is_complex():
        copy_(x, value)
        return
    imaginary = imag(x)
    set_item(x, Ellipsis, from_parts(_part_like(value, imaginary), imaginary), "real")


def set_imag(x: Tensor, value: Operand) -> None:
    """Overwrite the imaginary parts in place, as ``x.imag = value`` does."""
    if not x.is_complex():
        raise DTypeError(
            f"imag: a tensor of {x.dtype} has no imaginary part to write to: convert it with "
            ".to(cr.complex64)"
        )
    set_item(x, Ellipsis, from_parts(real(x), _part_like(value, real(x))), "imag")


def _part_like(value: Operand, like: Tensor) -> Tensor:
    """Return a value in the dtype of a real or imaginary part; complex values stay complex."""
    _, part = as_tensors((like, value))
    return part if part.is_complex() else cast(part, like.dtype)


@operation()
def normal_(
    x: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with numbers from a normal distribution in place."""
    if std < 0:
        raise ArgumentError(f"normal_ expects std >= 0.0, but found std {std}")
    drawn = normal_array(x.shape, x.dtype, rng or generator) * x.dtype.type(std) + x.dtype.type(
        mean
    )
    return _overwrite(x, make(namespace(drawn).asarray(drawn), None), "normal_")


@operation()
def uniform_(
    x: Tensor,
    low: float = 0.0,
    high: float = 1.0,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
    **bounds: float,
) -> Tensor:
    """Fill with numbers drawn uniformly from [low, high) in place.

    PyTorch's names of the bounds are `from` and `to`.
    """
    if bounds:
        low, high = bounds_by_name("uniform_", bounds, low, high)
    if low > high:
        raise ArgumentError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )
    drawn = uniform_array(x.shape, x.dtype, rng or generator) * x.dtype.type(
        high - low
    ) + x.dtype.type(low)
    return _overwrite(x, make(namespace(drawn).asarray(drawn), None), "uniform_")


@operation()
def fill_diagonal_(x: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number on the main diagonal in place.

    Parameters
    ----------
    fill_value : number
    wrap : bool, default False
        Whether to repeat the diagonal in a matrix with more rows than columns, after one empty row.

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions, or more than two of different lengths.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).fill_diagonal_(5.0)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    if x.ndim < 2:
        raise ShapeError(f"fill_diagonal_: dimensions must larger than 1, got {x.ndim}")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ShapeError(
            f"fill_diagonal_: all dimensions of input must be of equal length, got {list(x.shape)}"
        )
    steps = np.arange(min(x.shape))
    key: tuple[Any, ...] = (steps,) * x.ndim
    if wrap and x.ndim == 2:
        rows, columns = x.shape
        positions = np.arange(0, rows * columns, columns + 1)
        key = (positions // columns, positions % columns) if columns else key
    set_item(x, key, make(scalar_array(fill_value, x._array), None), "fill_diagonal_")
    return x


def detach_(input: Tensor) -> Tensor:
    """Take a tensor out of the graph, in place: it becomes a leaf without grad."""
    return input.detach_()


# --- changes of shape without a copy --------------------------------------------------------------


@operation()
def t_(x: Tensor) -> Tensor:
    """Transpose a matrix in place; tensors of fewer dimensions don't change.

    Returns
    -------
    Tensor
        `x` itself. Earlier views keep their shape and still share memory with it.

    Raises
    ------
    InPlaceError
        If `x` is a leaf that requires grad.
    ShapeError
        If `x` has more than two dimensions.

    Notes
    -----
    No element moves, so saved values stay valid. The change is recorded, even in no_grad():
    derivative 1, the gradient is transposed back.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.zeros(2, 3)
    >>> x.t_().shape, x.shape
    ((3, 2), (3, 2))
    """
    return view_in_place(x, "t_", t)


@operation(aliases="swapaxes_ swapdims_")
def transpose_(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions in place, as `t_` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3, 4).transpose_(0, 2).shape
    (4, 3, 2)
    """
    return view_in_place(x, "transpose_", lambda y: transpose(y, dim0, dim1))


@operation()
def squeeze_(x: Tensor, dim: int | Sequence[int] | None = None, *, axis: Any = None) -> Tensor:
    """Remove all or the given dimensions of length 1 in place. See `t_`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(1, 2, 1).squeeze_(0).shape
    (2, 1)
    """
    return view_in_place(x, "squeeze_", lambda y: squeeze(y, dim, axis=axis))


@operation()
def unsqueeze_(x: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Insert a dimension of length 1 in place. See `t_`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2).unsqueeze_(0).shape
    (1, 2)
    """
    return view_in_place(x, "unsqueeze_", lambda y: unsqueeze(y, dim, axis=axis))


tensor_property("real", real, set_real, doc="The real part; writable.")
tensor_property("imag", imag, set_imag, doc="The imaginary part; writable.")
