"""Methods that write in place: their names end in an underscore, and they return the tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import Operand, cast, tensor_of
from chainrule.autograd.inplace import fill, in_place, set_item, ufunc_in_place, view_in_place
from chainrule.autograd.operands import as_tensors, scalar_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.ops import (
    arithmetic,
    binary,
    comparison,
    diagonals,
    elementary,
    matmul,
    reductions,
    special,
    statistics,
)
from chainrule.ops import (
    complex as complexes,
)
from chainrule.ops import (
    scatter as putting,
)
from chainrule.ops.arithmetic import multiply
from chainrule.ops.permute import t, transpose
from chainrule.ops.reshape import squeeze, unsqueeze
from chainrule.primitives import elementwise
from chainrule.random.draw import normal_array, uniform_array

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = [
    "abs_",
    "acos_",
    "acosh_",
    "addmv_",
    "arccos_",
    "arccosh_",
    "arcsin_",
    "arcsinh_",
    "arctan_",
    "arctanh_",
    "asin_",
    "asinh_",
    "atan_",
    "atanh_",
    "ceil_",
    "clamp_",
    "clamp_max_",
    "clamp_min_",
    "clip_",
    "conj_physical_",
    "cos_",
    "cosh_",
    "deg2rad_",
    "erf_",
    "erfc_",
    "exp2_",
    "exp_",
    "expm1_",
    "fill_",
    "fix_",
    "floor_",
    "frac_",
    "gcd_",
    "i0_",
    "index_put_",
    "lcm_",
    "ldexp_",
    "log10_",
    "log1p_",
    "log2_",
    "log_",
    "logit_",
    "nan_to_num_",
    "neg_",
    "negative_",
    "rad2deg_",
    "reciprocal_",
    "round_",
    "rsqrt_",
    "sigmoid_",
    "sin_",
    "sinc_",
    "sinh_",
    "sqrt_",
    "square_",
    "tan_",
    "tanh_",
    "trunc_",
    "xlogy_",
    "zero_",
    "detach_",
]

scatter: Any = import_module("chainrule.ops.scatter")
where: Any = import_module("chainrule.ops.where")

# --- arithmetic -----------------------------------------------------------------------------------


def add_(x: Tensor, other: Operand, *, alpha: Any = 1) -> Tensor:
    """Add alpha · other in place."""
    return ufunc_in_place(
        x, "add_", elementwise.add, other if alpha == 1 else multiply(other, alpha)
    )


def sub_(x: Tensor, other: Operand, *, alpha: Any = 1) -> Tensor:
    """Subtract alpha · other in place."""
    return ufunc_in_place(
        x, "sub_", elementwise.subtract, other if alpha == 1 else multiply(other, alpha)
    )


def mul_(x: Tensor, other: Operand) -> Tensor:
    """Multiply by another tensor or a number in place."""
    return ufunc_in_place(x, "mul_", elementwise.multiply, other)


def div_(x: Tensor, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """Divide by another tensor or a number in place."""
    if rounding_mode is not None or x.dtype.kind not in "fc":
        return in_place(
            x, "div_", lambda t: arithmetic.divide(t, other, rounding_mode=rounding_mode)
        )
    return ufunc_in_place(x, "div_", elementwise.divide, other)


def addcmul_(x: Tensor, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Tensor:
    """Add value · tensor1 · tensor2 in place."""
    product = multiply(tensor1, tensor2)
    return ufunc_in_place(
        x, "addcmul_", elementwise.add, product if value == 1 else multiply(product, value)
    )


def addcdiv_(x: Tensor, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Tensor:
    """Add value · tensor1 / tensor2 in place."""
    quotient = arithmetic.divide(tensor1, tensor2)
    return ufunc_in_place(
        x, "addcdiv_", elementwise.add, quotient if value == 1 else multiply(quotient, value)
    )


def lerp_(x: Tensor, end: Operand, weight: Operand) -> Tensor:
    """Move towards `end` by the fraction `weight` in place."""
    step = multiply(arithmetic.subtract(end, x), weight)
    return ufunc_in_place(x, "lerp_", elementwise.add, step)


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
        elementary.sin,
        elementary.cos,
        elementary.tan,
        elementary.asin,
        elementary.acos,
        elementary.atan,
        elementary.sinh,
        elementary.cosh,
        elementary.tanh,
        comparison.bitwise_and,
        comparison.bitwise_or,
        comparison.bitwise_xor,
        elementary.asinh,
        elementary.acosh,
        elementary.atanh,
        binary.atan2,
        binary.copysign,
        binary.float_power,
        binary.fmod,
        binary.heaviside,
        binary.hypot,
        binary.ldexp,
        binary.nextafter,
        binary.xlogy,
        arithmetic.bitwise_left_shift,
        arithmetic.bitwise_right_shift,
        binary.clamp_max,
        binary.clamp_min,
        binary.deg2rad,
        binary.exp2,
        binary.frac,
        arithmetic.gcd,
        arithmetic.lcm,
        binary.nan_to_num,
        binary.rad2deg,
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
        elementary.abs,
        elementary.sign,
        elementary.relu,
        elementary.clamp,
        elementary.floor,
        elementary.ceil,
        elementary.trunc,
        elementary.round,
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
        matmul.addmm,
        matmul.addmv,
        matmul.addr,
        matmul.addbmm,
        matmul.baddbmm,
        putting.index_put,
        putting.masked_scatter,
        putting.put,
        statistics.renorm,
    )
}
_ALIASES: dict[str, Callable[..., Tensor]] = {
    "neg": arithmetic.negative,
    "negative": arithmetic.negative,
    "clip": elementary.clamp,
    "absolute": elementary.abs,
    "fix": elementary.trunc,
    "sgn": elementary.sign,
    "arcsin": elementary.asin,
    "arccos": elementary.acos,
    "arctan": elementary.atan,
    "arcsinh": elementary.asinh,
    "arccosh": elementary.acosh,
    "arctanh": elementary.atanh,
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


# --- overwriting ----------------------------------------------------------------------------------
#
# Methods that write in place, as functions: `cr.exp_(x)` is `x.exp_()`.


def _function(name: str) -> Callable[..., Tensor]:
    method = METHODS[name]

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(
                f"{name}(): argument 'input' must be a Tensor, not {type(input).__name__}: what is "
                "written to in place has to be one already"
            )
        return method(input, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = method.__doc__
    return function


abs_ = _function("abs_")
acos_ = _function("acos_")
acosh_ = _function("acosh_")
addmv_ = _function("addmv_")
arccos_ = _function("arccos_")
arccosh_ = _function("arccosh_")
arcsin_ = _function("arcsin_")
arcsinh_ = _function("arcsinh_")
arctan_ = _function("arctan_")
arctanh_ = _function("arctanh_")
asin_ = _function("asin_")
asinh_ = _function("asinh_")
atan_ = _function("atan_")
atanh_ = _function("atanh_")
ceil_ = _function("ceil_")
clamp_ = _function("clamp_")
clamp_max_ = _function("clamp_max_")
clamp_min_ = _function("clamp_min_")
clip_ = _function("clip_")
conj_physical_ = _function("conj_physical_")
cos_ = _function("cos_")
cosh_ = _function("cosh_")
deg2rad_ = _function("deg2rad_")
erf_ = _function("erf_")
erfc_ = _function("erfc_")
exp2_ = _function("exp2_")
exp_ = _function("exp_")
expm1_ = _function("expm1_")
fix_ = _function("fix_")
floor_ = _function("floor_")
frac_ = _function("frac_")
gcd_ = _function("gcd_")
i0_ = _function("i0_")
index_put_ = _function("index_put_")
lcm_ = _function("lcm_")
ldexp_ = _function("ldexp_")
log10_ = _function("log10_")
log1p_ = _function("log1p_")
log2_ = _function("log2_")
log_ = _function("log_")
logit_ = _function("logit_")
nan_to_num_ = _function("nan_to_num_")
neg_ = _function("neg_")
negative_ = _function("negative_")
rad2deg_ = _function("rad2deg_")
reciprocal_ = _function("reciprocal_")
round_ = _function("round_")
rsqrt_ = _function("rsqrt_")
sigmoid_ = _function("sigmoid_")
sin_ = _function("sin_")
sinc_ = _function("sinc_")
sinh_ = _function("sinh_")
sqrt_ = _function("sqrt_")
square_ = _function("square_")
tan_ = _function("tan_")
tanh_ = _function("tanh_")
trunc_ = _function("trunc_")
xlogy_ = _function("xlogy_")


def detach_(input: Tensor) -> Tensor:
    """Take a tensor out of the graph, in place: it becomes a leaf without grad."""
    return input.detach_()


# --- turned ---------------------------------------------------------------------------------------
#
# Methods that change a tensor's shape in place: the same memory, read in another order.


def t_(x: Tensor) -> Tensor:
    """Transpose a matrix in place; a vector or a number stays.

    Returns
    -------
    Tensor
        `x` itself. Views made before keep their shape and the memory that they share with it.

    Raises
    ------
    InPlaceError
        If `x` is a leaf that requires grad.
    ShapeError
        If `x` has more than two dimensions.

    Notes
    -----
    No element moves, so nothing that the graph has saved is stale. The history follows, also in
    no_grad(): derivative 1, the gradient is transposed back.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.zeros(2, 3)
    >>> x.t_().shape, x.shape
    ((3, 2), (3, 2))
    """
    return view_in_place(x, "t_", t)


def transpose_(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions in place, as `t_` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3, 4).transpose_(0, 2).shape
    (4, 3, 2)
    """
    return view_in_place(x, "transpose_", lambda y: transpose(y, dim0, dim1))


def squeeze_(x: Tensor, dim: int | Sequence[int] | None = None, *, axis: Any = None) -> Tensor:
    """Drop dimensions of length 1 in place: all, or those named. See `t_`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(1, 2, 1).squeeze_(0).shape
    (2, 1)
    """
    return view_in_place(x, "squeeze_", lambda y: squeeze(y, dim, axis=axis))


def unsqueeze_(x: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Put in a dimension of length 1 in place. See `t_`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2).unsqueeze_(0).shape
    (1, 2)
    """
    return view_in_place(x, "unsqueeze_", lambda y: unsqueeze(y, dim, axis=axis))


TURNING: dict[str, Callable[..., Tensor]] = {
    "t_": t_,
    "transpose_": transpose_,
    "swapaxes_": transpose_,
    "swapdims_": transpose_,
    "squeeze_": squeeze_,
    "unsqueeze_": unsqueeze_,
}
