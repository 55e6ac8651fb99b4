"""Elementary functions: roots, exponentials, trigonometry, absolute values, clipping, rounding."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import Operand, cast, floating, tensor_of, written
from chainrule.autograd.array_proxy import as_float
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.operation import inplace_form, operation
from chainrule.ops.wrappers import binary_function, binary_real, unary_floating
from chainrule.primitives import elementwise

__all__ = [
    "sqrt",
    "rsqrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sigmoid",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "arcsin",
    "arccos",
    "arctan",
    "arcsinh",
    "arccosh",
    "arctanh",
    "abs",
    "absolute",
    "sign",
    "relu",
    "maximum",
    "minimum",
    "clamp",
    "clip",
    "floor",
    "ceil",
    "trunc",
    "fix",
    "round",
    "sqrt_",
    "rsqrt_",
    "exp_",
    "expm1_",
    "log_",
    "log1p_",
    "log2_",
    "log10_",
    "sigmoid_",
    "sin_",
    "cos_",
    "tan_",
    "arcsin_",
    "asin_",
    "acos_",
    "arccos_",
    "arctan_",
    "atan_",
    "sinh_",
    "cosh_",
    "tanh_",
    "arcsinh_",
    "asinh_",
    "acosh_",
    "arccosh_",
    "arctanh_",
    "atanh_",
    "abs_",
    "clamp_",
    "clip_",
    "floor_",
    "ceil_",
    "fix_",
    "trunc_",
    "round_",
]

_sqrt = unary_floating(elementwise.sqrt)
_exp = unary_floating(elementwise.exp)
_expm1 = unary_floating(elementwise.expm1)
_log = unary_floating(elementwise.log)
_log1p = unary_floating(elementwise.log1p)
_log2 = unary_floating(elementwise.log2)
_log10 = unary_floating(elementwise.log10)
_sigmoid = unary_floating(elementwise.sigmoid)


@operation(inplace=True, ufunc="sqrt", array_api=True)
def sqrt(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the square root of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / (2√x), which is inf at 0. Negative numbers give nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sqrt(cr.tensor([4.0, 9.0]))
    tensor([2., 3.])
    """
    found = _sqrt(input)
    return found if out is None else written(found, out)


sqrt_ = inplace_form(sqrt)


@operation(inplace=True, ufunc="exp", array_api=True)
def exp(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return e to the power of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: exp x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.exp(cr.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return _exp(input) if out is None else written(_exp(input), out)


exp_ = inplace_form(exp)


@operation(inplace=True, ufunc="expm1", scipy="expm1", array_api=True)
def expm1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return exp x - 1, accurate also where x is small.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: exp x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.expm1(cr.tensor([0.0, 1e-6]))
    tensor([0.0000e+00, 1.0000e-06])
    """
    return _expm1(input) if out is None else written(_expm1(input), out)


expm1_ = inplace_form(expm1)


@operation(inplace=True, ufunc="log", array_api=True)
def log(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the natural logarithm of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / x. Zero gives -inf, negative numbers nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.log(cr.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    return _log(input) if out is None else written(_log(input), out)


log_ = inplace_form(log)


@operation(inplace=True, ufunc="log1p", scipy="log1p", array_api=True)
def log1p(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return log(1 + x), accurate also where x is small.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / (1 + x).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.log1p(cr.tensor([0.0, 1e-6]))
    tensor([0.0000e+00, 1.0000e-06])
    """
    return _log1p(input) if out is None else written(_log1p(input), out)


log1p_ = inplace_form(log1p)


@operation(inplace=True, ufunc="log2", array_api=True)
def log2(input: Operand) -> Tensor:
    """Return the base-2 logarithm of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / (x ln 2).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.log2(cr.tensor([1.0, 8.0]))
    tensor([0., 3.])
    """
    return _log2(input)


log2_ = inplace_form(log2)


@operation(inplace=True, ufunc="log10", array_api=True)
def log10(input: Operand) -> Tensor:
    """Return the base-10 logarithm of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / (x ln 10).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.log10(cr.tensor([1.0, 50.0]))
    tensor([0.0000, 1.6990])
    """
    return _log10(input)


log10_ = inplace_form(log10)


@operation(inplace=True, scipy="expit")
def sigmoid(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the logistic function 1 / (1 + exp -x).

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: s (1 - s), where s is the result. Evaluated without overflow.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sigmoid(cr.tensor([0.0, -800.0]))
    tensor([0.5000, 0.0000])
    """
    return _sigmoid(input) if out is None else written(_sigmoid(input), out)


sigmoid_ = inplace_form(sigmoid)


@operation(inplace=True)
def rsqrt(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return 1 / √x.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: -x^(-3/2) / 2.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.rsqrt(cr.tensor([4.0, 16.0]))
    tensor([0.5000, 0.2500])
    """
    found: Tensor = elementwise.reciprocal.apply(_sqrt(input))
    return found if out is None else written(found, out)


rsqrt_ = inplace_form(rsqrt)


# --- trigonometric and hyperbolic functions, angles in radians ------------------------------------

_sin = unary_floating(elementwise.sin)
_cos = unary_floating(elementwise.cos)
_tan = unary_floating(elementwise.tan)
_asin = unary_floating(elementwise.asin)
_acos = unary_floating(elementwise.acos)
_atan = unary_floating(elementwise.atan)
_sinh = unary_floating(elementwise.sinh)
_cosh = unary_floating(elementwise.cosh)
_tanh = unary_floating(elementwise.tanh)
_asinh = unary_floating(elementwise.asinh)
_acosh = unary_floating(elementwise.acosh)
_atanh = unary_floating(elementwise.atanh)


@operation(inplace=True, ufunc="sin", array_api=True)
def sin(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the sine of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: cos x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sin(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4794])
    """
    return _sin(input) if out is None else written(_sin(input), out)


sin_ = inplace_form(sin)


@operation(inplace=True, ufunc="cos", array_api=True)
def cos(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the cosine of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: -sin x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cos(cr.tensor([0.0, 0.5]))
    tensor([1.0000, 0.8776])
    """
    return _cos(input) if out is None else written(_cos(input), out)


cos_ = inplace_form(cos)


@operation(inplace=True, ufunc="tan", array_api=True)
def tan(input: Operand) -> Tensor:
    """Return the tangent of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 + tan² x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tan(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5463])
    """
    return _tan(input)


tan_ = inplace_form(tan)


@operation(aliases="arcsin", inplace=True, ufunc="arcsin", array_api=True)
def asin(input: Operand) -> Tensor:
    """Return the arcsine of each element, from -π/2 to π/2.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / √(1 - x²). Outside of [-1, 1] the result is nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.asin(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5236])
    """
    return _asin(input)


arcsin_ = inplace_form(asin, "arcsin_")
asin_ = inplace_form(asin)


@operation(aliases="arccos", inplace=True, ufunc="arccos", array_api=True)
def acos(input: Operand) -> Tensor:
    """Return the arccosine of each element, from 0 to π.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: -1 / √(1 - x²). Outside of [-1, 1] the result is nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.acos(cr.tensor([1.0, 0.5]))
    tensor([0.0000, 1.0472])
    """
    return _acos(input)


acos_ = inplace_form(acos)
arccos_ = inplace_form(acos, "arccos_")


@operation(aliases="arctan", inplace=True, ufunc="arctan", array_api=True)
def atan(input: Operand) -> Tensor:
    """Return the arctangent of each element, from -π/2 to π/2.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / (1 + x²).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.atan(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4636])
    """
    return _atan(input)


arctan_ = inplace_form(atan, "arctan_")
atan_ = inplace_form(atan)


@operation(inplace=True, ufunc="sinh", array_api=True)
def sinh(input: Operand) -> Tensor:
    """Return the hyperbolic sine of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: cosh x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sinh(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5211])
    """
    return _sinh(input)


sinh_ = inplace_form(sinh)


@operation(inplace=True, ufunc="cosh", array_api=True)
def cosh(input: Operand) -> Tensor:
    """Return the hyperbolic cosine of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: sinh x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.cosh(cr.tensor([0.0, 0.5]))
    tensor([1.0000, 1.1276])
    """
    return _cosh(input)


cosh_ = inplace_form(cosh)


@operation(inplace=True, ufunc="tanh", array_api=True)
def tanh(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the hyperbolic tangent of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 - tanh² x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tanh(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4621])
    """
    return _tanh(input) if out is None else written(_tanh(input), out)


tanh_ = inplace_form(tanh)


@operation(aliases="arcsinh", inplace=True, ufunc="arcsinh", array_api=True)
def asinh(input: Operand) -> Tensor:
    """Return the inverse hyperbolic sine of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / √(1 + x²).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.asinh(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.4812])
    """
    return _asinh(input)


arcsinh_ = inplace_form(asinh, "arcsinh_")
asinh_ = inplace_form(asinh)


@operation(aliases="arccosh", inplace=True, ufunc="arccosh", array_api=True)
def acosh(input: Operand) -> Tensor:
    """Return the inverse hyperbolic cosine of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / √(x² - 1). Below 1 the result is nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.acosh(cr.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """
    return _acosh(input)


acosh_ = inplace_form(acosh)
arccosh_ = inplace_form(acosh, "arccosh_")


@operation(aliases="arctanh", inplace=True, ufunc="arctanh", array_api=True)
def atanh(input: Operand) -> Tensor:
    """Return the inverse hyperbolic tangent of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 1 / (1 - x²). Outside of [-1, 1] the result is nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.atanh(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """
    return _atanh(input)


arctanh_ = inplace_form(atanh, "arctanh_")
atanh_ = inplace_form(atanh)


arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh


# --- absolute value, sign, extrema, clipping, rounding --------------------------------------------
#
# Where a function has no derivative, its docstring defines the value that is used.

_relu = elementwise.relu.apply
_clamp = elementwise.clamp.apply

_maximum = binary_function(elementwise.maximum)
_clamp_min = binary_real(elementwise.clamp_min, to_floating=False)
_clamp_max = binary_real(elementwise.clamp_max, to_floating=False)
_minimum = binary_function(elementwise.minimum)

_BOUND_TYPES = frozenset([float, int, type(None)])
"""Types of bounds that `clamp` of floating numbers takes without conversion."""


@operation(
    aliases="absolute",
    inplace=True,
    operators={"__abs__": elementwise.abs.apply},
    ufunc="absolute",
    array_api=True,
)
def abs(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the absolute value of each element.

    Parameters
    ----------
    input : Tensor
        Real or complex numbers.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`; real

    Notes
    -----
    Derivative: sign x, which is 0 at 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.abs(cr.tensor([-1.5, 2.0]))
    tensor([1.5000, 2.0000])
    """
    found = elementwise.abs.apply(tensor_of(input))
    return found if out is None else written(found, out)


absolute = abs
abs_ = inplace_form(abs)


@operation(inplace=True, ufunc="sign", array_api=True)
def sign(input: Operand) -> Tensor:
    """Return -1, 0 or 1, the sign of each element; for a complex number z, z / |z|.

    Notes
    -----
    Derivative: 0 everywhere; for complex numbers, that of z / |z|.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sign(cr.tensor([-1.5, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """
    if isinstance(input, Tensor) and input.is_complex():
        magnitude = elementwise.abs.apply(input)
        is_zero = elementwise.equal.apply(magnitude, 0.0)
        divisor = elementwise.where.apply(is_zero, 1.0, magnitude)
        phase = elementwise.divide.apply(input, divisor)
        return elementwise.masked.apply(phase, elementwise.logical_not.apply(is_zero))
    if tensor_of(input).dtype.kind == "b":
        return elementwise.clone.apply(tensor_of(input))  # np.sign rejects bools
    return elementwise.sign.apply(tensor_of(input))


@operation(inplace=True)
def relu(input: Operand) -> Tensor:
    """Return max(x, 0), the rectified linear unit.

    Parameters
    ----------
    input : Tensor
        Real numbers.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where x > 0, else 0, also at 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.relu(cr.tensor([-1.0, 3.0]))
    tensor([0., 3.])
    """
    return _relu(input if input.__class__ is Tensor else tensor_of(input))


@operation(ufunc="maximum", array_api=True)
def maximum(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the larger of x and y, element by element; nan if either is nan.

    Parameters
    ----------
    input, other : Tensor, array or number
        x and y: their shapes broadcast.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, of the broadcast shape and the promoted dtype

    Notes
    -----
    Derivatives: 1 for the larger, 0 for the other; 1/2 for both where they are equal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.maximum(cr.tensor([1.0, 5.0]), cr.tensor([3.0, 4.0]))
    tensor([3., 5.])
    """
    found = _maximum(input, other)
    return found if out is None else written(found, out)


@operation(ufunc="minimum", array_api=True)
def minimum(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the smaller of x and y, element by element; the arguments are those of `maximum`.

    Notes
    -----
    Derivatives: 1 for the smaller, 0 for the other; 1/2 for both where they are equal.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.minimum(cr.tensor([1.0, 5.0]), cr.tensor([3.0, 4.0]))
    tensor([1., 4.])
    """
    found = _minimum(input, other)
    return found if out is None else written(found, out)


@operation(aliases="clip", inplace=True)
def clamp(
    input: Operand,
    min: Operand | None = None,
    max: Operand | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return `input`, limited to the range from `min` to `max`.

    Parameters
    ----------
    input : Tensor
        Real numbers.
    min, max : number or Tensor, optional
        The bounds, at least one of them. Where `min` is above `max`, the result is `max`.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input` (broadcast with bounds that are tensors)

    Raises
    ------
    ArgumentError
        If both bounds are None.

    Notes
    -----
    Derivative for `input`: 1 inside and at a bound, 0 outside; for a bound that is a tensor: 1
    outside, where the bound is the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.clamp(cr.tensor([-1.0, 0.5, 3.0]), min=0, max=1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise ArgumentError("clamp: At least one of 'min' or 'max' must not be None")
    if out is not None:
        found: Tensor = written(clamp(input, min, max), out)
        return found
    input = tensor_of(input)
    if (
        min.__class__ in _BOUND_TYPES
        and max.__class__ in _BOUND_TYPES
        and input._array.dtype.kind == "f"
    ):
        return _clamp(input, low=min, high=max)
    if not _is_number(min) or not _is_number(max):
        return _clamp_to_tensors(input, min, max)
    low, high = [as_float(bound) if isinstance(bound, float) else bound for bound in (min, max)]
    if input._array.dtype.kind not in "fc" and (isinstance(low, float) or isinstance(high, float)):
        input = floating(input)
    elif input._array.dtype.kind == "b" and not {type(low), type(high)} <= {bool, type(None)}:
        input = cast(input, np.dtype(np.int64))
    return _clamp(input, low=low, high=high)


clip = clamp
clamp_ = inplace_form(clamp)
clip_ = inplace_form(clamp, "clip_")


def _is_number(bound: Any) -> bool:
    return bound is None or isinstance(bound, bool | int | float)


def _clamp_to_tensors(x: Tensor, low: Any, high: Any) -> Tensor:
    """Clamp to bounds that broadcast, either of which may be None."""
    if low is not None:
        x = _clamp_min(x, low)
    return x if high is None else _clamp_max(x, high)


@operation(inplace=True, ufunc="floor", array_api=True)
def floor(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the largest integer ≤ x, element by element.

    Notes
    -----
    Derivative: 0 everywhere.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.floor(cr.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    found = elementwise.floor.apply(tensor_of(input))
    return found if out is None else written(found, out)


floor_ = inplace_form(floor)


@operation(inplace=True, ufunc="ceil", array_api=True)
def ceil(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the smallest integer ≥ x, element by element.

    Notes
    -----
    Derivative: 0 everywhere.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ceil(cr.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    found = elementwise.ceil.apply(tensor_of(input))
    return found if out is None else written(found, out)


ceil_ = inplace_form(ceil)


@operation(aliases="fix", inplace=True, ufunc="trunc", numpy="fix x", array_api=True)
def trunc(input: Operand) -> Tensor:
    """Return each element rounded towards zero.

    Notes
    -----
    Derivative: 0 everywhere.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.trunc(cr.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    return elementwise.trunc.apply(tensor_of(input))


fix = trunc
fix_ = inplace_form(trunc, "fix_")
trunc_ = inplace_form(trunc)


@operation(
    inplace=True, ufunc="rint", numpy=("round a decimals=", "around a decimals="), array_api=True
)
def round(input: Operand, *, decimals: int = 0) -> Tensor:
    """Return each element rounded to the nearest integer, halves to the nearest even integer.

    Parameters
    ----------
    input : Tensor
        Numbers.
    decimals : int, default 0
        Number of decimal places; negative numbers are positions left of the decimal point.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 0 everywhere.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.round(cr.tensor([0.5, 1.5, -1.2]))
    tensor([ 0.,  2., -1.])
    >>> cr.round(cr.tensor(3.14159), decimals=2)
    tensor(3.1400)
    """
    return elementwise.round.apply(tensor_of(input), decimals=decimals)


round_ = inplace_form(round)


@operation(method="__round__")
def round_to_digits(x: Tensor, ndigits: int | None = None) -> Tensor:
    """Return ``round(x, ndigits)``, which Python's function calls."""
    return elementwise.round.apply(x, decimals=ndigits or 0)
