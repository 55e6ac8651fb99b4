"""Methods that write in place: their names end in an underscore, and they return the tensor."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import Operand, cast, tensor_of
from chainrule.autograd.inplace import fill, in_place, set_item, ufunc_in_place
from chainrule.autograd.operands import as_tensors, scalar_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.ops import (
    added,
    arithmetic,
    binary,
    blends,
    comparison,
    diagonals,
    elementary,
    integers,
    kinks,
    moments,
    putting,
    reductions,
    special,
    trigonometry,
)
from chainrule.ops import (
    complex as complexes,
)
from chainrule.ops.arithmetic import multiply
from chainrule.random.draw import normal_array, uniform_array

if TYPE_CHECKING:
    from numpy.random import Generator

scatter: Any = import_module("chainrule.ops.scatter")
where: Any = import_module("chainrule.ops.where")

# --- arithmetic -----------------------------------------------------------------------------------


def add_(x: Tensor, other: Operand, *, alpha: Any = 1) -> Tensor:
    """Add alpha · other in place."""
    return ufunc_in_place(x, "add_", "add", other if alpha == 1 else multiply(other, alpha))


def sub_(x: Tensor, other: Operand, *, alpha: Any = 1) -> Tensor:
    """Subtract alpha · other in place."""
    return ufunc_in_place(x, "sub_", "subtract", other if alpha == 1 else multiply(other, alpha))


def mul_(x: Tensor, other: Operand) -> Tensor:
    """Multiply by another tensor or a number in place."""
    return ufunc_in_place(x, "mul_", "multiply", other)


def div_(x: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """Divide by another tensor or a number in place."""
    if rounding_mode is not None or x.dtype.kind not in "fc":
        return in_place(
            x, "div_", lambda t: arithmetic.divide(t, other, rounding_mode=rounding_mode)
        )
    return ufunc_in_place(x, "div_", "divide", other)


def addcmul_(x: Tensor, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Tensor:
    """Add value · tensor1 · tensor2 in place."""
    product = multiply(tensor1, tensor2)
    return ufunc_in_place(x, "addcmul_", "add", product if value == 1 else multiply(product, value))


def addcdiv_(x: Tensor, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Tensor:
    """Add value · tensor1 / tensor2 in place."""
    quotient = arithmetic.divide(tensor1, tensor2)
    return ufunc_in_place(
        x, "addcdiv_", "add", quotient if value == 1 else multiply(quotient, value)
    )


def lerp_(x: Tensor, end: Operand, weight: Operand) -> Tensor:
    """Move towards `end` by the fraction `weight` in place."""
    step = multiply(arithmetic.subtract(end, x), weight)
    return ufunc_in_place(x, "lerp_", "add", step)


# --- filling --------------------------------------------------------------------------------------


def zero_(x: Tensor) -> Tensor:
    """Fill with zeros in place."""
    return _overwritten(x, 0, "zero_")


def fill_(x: Tensor, value: Operand) -> Tensor:
    """Fill with a number, or with a 0-d tensor, in place."""
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions: copy_ takes any"
        )
    return _overwritten(x, value, "fill_")


def copy_(x: Tensor, source: Operand, non_blocking: bool = False) -> Tensor:
    """Write `source` over all elements in place: its shape broadcasts, its dtype is converted.

    `non_blocking` is what PyTorch scripts pass: it changes nothing.
    """
    return _overwritten(x, source, "copy_")


def _overwritten(x: Tensor, value: Operand, operation: str) -> Tensor:
    if value.__class__ is float or value.__class__ is int:
        return fill(x, value, operation)
    if isinstance(value, bool | int | float | complex | np.generic):
        value = make(scalar_array(value, x._array), None)
    set_item(x, Ellipsis, tensor_of(value), operation)
    return x


def set_real(x: Tensor, value: Operand) -> None:
    """Write over the real parts in place, as ``x.real = value`` does."""
    if not x.is_complex():
        copy_(x, value)
        return
    imag = complexes.imag(x)
    set_item(x, Ellipsis, complexes.complex(_part(value, imag), imag), "real")


def set_imag(x: Tensor, value: Operand) -> None:
    """Write over the imaginary parts in place, as ``x.imag = value`` does."""
    if not x.is_complex():
        raise DTypeError(
            f"imag: a tensor of {x.dtype} has no imaginary part to write to: convert it with "
            ".to(cr.complex64)"
        )
    real = complexes.real(x)
    set_item(x, Ellipsis, complexes.complex(real, _part(value, real)), "imag")


def _part(value: Operand, like: Tensor) -> Tensor:
    _, part = as_tensors((like, value))
    return part if part.is_complex() else cast(part, like.dtype)


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
    return _overwritten(x, make(namespace(drawn).asarray(drawn), None), "normal_")


def uniform_(
    x: Tensor,
    low: float = 0.0,
    high: float = 1.0,
    *,
    rng: Generator | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with numbers drawn uniformly from [low, high) in place."""
    if low > high:
        raise ArgumentError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )
    drawn = uniform_array(x.shape, x.dtype, rng or generator) * x.dtype.type(
        high - low
    ) + x.dtype.type(low)
    return _overwritten(x, make(namespace(drawn).asarray(drawn), None), "uniform_")


# --- made of the functions that return something new ----------------------------------------------


def _in_place(function: Callable[..., Tensor], name: str | None = None) -> Callable[..., Tensor]:
    """Return the method that replaces a tensor by what `function` makes of it."""
    name = name or f"{function.__name__}_"

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return in_place(x, name, lambda t: function(t, *args, **kwargs))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Do `{function.__name__}` in place."
    return method


METHODS: dict[str, Callable[..., Tensor]] = {
    method.__name__: method
    for method in (
        add_,
        sub_,
        mul_,
        div_,
        addcmul_,
        addcdiv_,
        lerp_,
        zero_,
        fill_,
        copy_,
        normal_,
        uniform_,
    )
} | {
    f"{function.__name__}_": _in_place(function)
    for function in (
        arithmetic.pow,
        arithmetic.square,
        arithmetic.remainder,
        arithmetic.floor_divide,
        arithmetic.reciprocal,
        elementary.exp,
        elementary.expm1,
        elementary.log,
        elementary.log1p,
        elementary.log2,
        elementary.log10,
        elementary.sqrt,
        elementary.rsqrt,
        elementary.sigmoid,
        trigonometry.sin,
        trigonometry.cos,
        trigonometry.tan,
        trigonometry.asin,
        trigonometry.acos,
        trigonometry.atan,
        trigonometry.sinh,
        trigonometry.cosh,
        trigonometry.tanh,
        comparison.bitwise_and,
        comparison.bitwise_or,
        comparison.bitwise_xor,
        trigonometry.asinh,
        trigonometry.acosh,
        trigonometry.atanh,
        binary.atan2,
        binary.copysign,
        binary.float_power,
        binary.fmod,
        binary.heaviside,
        binary.hypot,
        binary.ldexp,
        binary.nextafter,
        binary.xlogy,
        integers.bitwise_left_shift,
        integers.bitwise_right_shift,
        blends.clamp_max,
        blends.clamp_min,
        blends.deg2rad,
        blends.exp2,
        blends.frac,
        integers.gcd,
        integers.lcm,
        blends.nan_to_num,
        blends.rad2deg,
        special.digamma,
        special.erf,
        special.erfc,
        special.erfinv,
        special.i0,
        special.igamma,
        special.igammac,
        special.lgamma,
        special.logit,
        special.mvlgamma,
        special.sinc,
        kinks.abs,
        kinks.sign,
        kinks.relu,
        kinks.clamp,
        kinks.floor,
        kinks.ceil,
        kinks.trunc,
        kinks.round,
        where.masked_fill,
        diagonals.tril,
        diagonals.triu,
        reductions.cumsum,
        reductions.cumprod,
        scatter.scatter,
        scatter.scatter_add,
        scatter.scatter_reduce,
        scatter.index_add,
        scatter.index_copy,
        scatter.index_fill,
        scatter.index_reduce,
        added.addmm,
        added.addmv,
        added.addr,
        added.addbmm,
        added.baddbmm,
        putting.index_put,
        putting.masked_scatter,
        putting.put,
        moments.renorm,
    )
}
_ALIASES: dict[str, Callable[..., Tensor]] = {
    "neg": arithmetic.negative,
    "negative": arithmetic.negative,
    "clip": kinks.clamp,
    "absolute": kinks.abs,
    "fix": kinks.trunc,
    "sgn": kinks.sign,
    "arcsin": trigonometry.asin,
    "arccos": trigonometry.acos,
    "arctan": trigonometry.atan,
    "arcsinh": trigonometry.asinh,
    "arccosh": trigonometry.acosh,
    "arctanh": trigonometry.atanh,
    "arctan2": binary.atan2,
    "multiply": arithmetic.multiply,
    "subtract": arithmetic.subtract,
    "divide": arithmetic.divide,
    "true_divide": arithmetic.divide,
    "conj_physical": complexes.conj,
    "bitwise_not": comparison.bitwise_invert,
    "logical_not": comparison.logical_not,
    "logical_and": comparison.logical_and,
    "logical_or": comparison.logical_or,
    "logical_xor": comparison.logical_xor,
    "eq": comparison.eq,
    "ne": comparison.ne,
    "lt": comparison.lt,
    "le": comparison.le,
    "gt": comparison.gt,
    "ge": comparison.ge,
    "not_equal": comparison.not_equal,
    "less": comparison.less,
    "less_equal": comparison.less_equal,
    "greater": comparison.greater,
    "greater_equal": comparison.greater_equal,
}
METHODS |= {f"{alias}_": _in_place(function, f"{alias}_") for alias, function in _ALIASES.items()}


def polygamma_(x: Tensor, n: int) -> Tensor:
    """Replace each element by the n-th derivative of digamma there."""
    return in_place(x, "polygamma_", lambda t: special.polygamma(n, t))


METHODS["polygamma_"] = polygamma_


def fill_diagonal_(x: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number on the main diagonal in place.

    Parameters
    ----------
    fill_value : number
    wrap : bool, default False
        In a matrix higher than wide, begin again below, after one row left out.

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions, or more, of different lengths.

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
        places = np.arange(0, rows * columns, columns + 1)
        key = (places // columns, places % columns) if columns else key
    set_item(x, key, make(scalar_array(fill_value, x._array), None), "fill_diagonal_")
    return x


METHODS["fill_diagonal_"] = fill_diagonal_
