"""Elementwise functions of two real numbers, interpolation, clipping, powers of two, angles."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainrule.arguments import Operand, cast, floating, is_one, tensor_of
from chainrule.autograd.inplace import ufunc_in_place
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.backend import promoted
from chainrule.errors import DTypeError
from chainrule.operation import inplace_form, operation
from chainrule.ops import elementary
from chainrule.ops.arithmetic import add, divide, multiply, subtract
from chainrule.ops.arithmetic import pow as _pow
from chainrule.ops.complex import real
from chainrule.ops.where import where
from chainrule.ops.wrappers import binary_real, real_floating, unary_floating, unary_real
from chainrule.primitives import binary, elementwise

__all__ = [
    "arctan2",
    "atan2",
    "copysign",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "heaviside",
    "hypot",
    "ldexp",
    "logaddexp",
    "logaddexp2",
    "nextafter",
    "xlogy",
    "addcdiv",
    "addcmul",
    "clamp_max",
    "clamp_min",
    "deg2rad",
    "exp2",
    "frac",
    "isneginf",
    "isposinf",
    "lerp",
    "nan_to_num",
    "rad2deg",
    "signbit",
    "ldexp_",
    "xlogy_",
    "clamp_max_",
    "clamp_min_",
    "deg2rad_",
    "exp2_",
    "frac_",
    "nan_to_num_",
    "rad2deg_",
]

_atan2 = binary_real(binary.atan2)
_hypot = binary_real(binary.hypot)
_logaddexp = binary_real(binary.logaddexp)
_logaddexp2 = binary_real(binary.logaddexp2)
_copysign = binary_real(binary.copysign)
_nextafter = binary_real(binary.nextafter)
_fmod = binary_real(binary.fmod, to_floating=False)
_fmax = binary_real(binary.fmax, to_floating=False)
_fmin = binary_real(binary.fmin, to_floating=False)
_heaviside = binary_real(binary.heaviside, to_floating=False)
_xlogy = binary_real(binary.xlogy)


@operation(aliases="arctan2", inplace=True, ufunc="arctan2", array_api=True)
def atan2(input: Operand, other: Operand) -> Tensor:
    """Return the angle of the point (x, y) in the plane, from -π to π.

    Parameters
    ----------
    input, other : Tensor, array or number
        y and x: real coordinates, in this order; their shapes broadcast. Integers are taken as
        numbers of the default dtype.

    Returns
    -------
    Tensor, of the broadcast shape and the promoted dtype; in radians

    Raises
    ------
    DTypeError
        If an operand is complex.
    ShapeError
        If the shapes don't broadcast.

    Notes
    -----
    Derivatives: x / (x² + y²) for y, -y / (x² + y²) for x. Both are set to 0 at the
    origin, where they are undefined (as in PyTorch).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.atan2(cr.tensor([1.0, -1.0]), cr.tensor([-1.0, 0.0]))
    tensor([ 2.3562, -1.5708])
    """
    return _atan2(input, other)


arctan2 = atan2


@operation(inplace=True, ufunc="hypot", array_api=True)
def hypot(input: Operand, other: Operand) -> Tensor:
    """Return √(x² + y²), without intermediate overflow; the arguments are those of `atan2`.

    Notes
    -----
    Derivatives: x / out and y / out; 0 at the origin, as for `norm` (PyTorch gives nan).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.hypot(cr.tensor([3.0, 0.0]), 4.0)
    tensor([5., 4.])
    """
    return _hypot(input, other)


@operation(ufunc="logaddexp", array_api=True)
def logaddexp(input: Operand, other: Operand) -> Tensor:
    """Return log(exp(x) + exp(y)), without overflow.

    The arguments are those of `atan2`, but may be complex.

    Notes
    -----
    Derivatives: exp(x - out) and exp(y - out), whose sum is 1. They are 1/2 where x and y are
    the same infinity (PyTorch gives nan).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logaddexp(cr.tensor([0.0, 1000.0]), 0.0)
    tensor([6.9315e-01, 1.0000e+03])
    """
    try:
        return _logaddexp(input, other)
    except DTypeError:  # complex numbers
        x, y = as_tensors((input, other))
        is_larger = elementwise.greater_equal.apply(real(x.detach()), real(y.detach()))
        large, small = where(is_larger, x, y), where(is_larger, y, x)
        ratio = elementwise.exp.apply(elementwise.subtract.apply(small, large))
        return elementwise.add.apply(large, elementwise.log1p.apply(ratio))


@operation(ufunc="logaddexp2")
def logaddexp2(input: Operand, other: Operand) -> Tensor:
    """Return log2(2**x + 2**y), without overflow; the arguments are those of `atan2`.

    Notes
    -----
    Derivatives: 2**(x - out) and 2**(y - out); 1/2 where x and y are the same infinity.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logaddexp2(cr.tensor([0.0, 3.0]), 3.0)
    tensor([3.1699, 4.0000])
    """
    return _logaddexp2(input, other)


@operation(inplace=True, scipy="xlogy")
def xlogy(input: Operand, other: Operand) -> Tensor:
    """Return x log y, which is 0 where x is 0; the arguments are those of `atan2`.

    Notes
    -----
    nan where y is nan. Derivatives: log y for x, x / y for y; both are 0 at x = y = 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.xlogy(cr.tensor([0.0, 2.0]), cr.tensor([0.0, 3.0]))
    tensor([0.0000, 2.1972])
    """
    return _xlogy(input, other)


xlogy_ = inplace_form(xlogy)


@operation(inplace=True, ufunc="copysign", array_api=True)
def copysign(input: Operand, other: Operand) -> Tensor:
    """Return |x| with the sign of y, which -0.0 has too; the arguments are those of `atan2`.

    Notes
    -----
    Derivatives: 1 for x where the signs agree, -1 where they differ, 0 at x = 0; 0 for y.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.copysign(cr.tensor([1.0, -2.0]), cr.tensor([-0.0, 3.0]))
    tensor([-1.,  2.])
    """
    return _copysign(input, other)


@operation(inplace=True, ufunc="nextafter", array_api=True)
def nextafter(input: Operand, other: Operand) -> Tensor:
    """Return the next floating number after x towards y; the arguments are those of `atan2`.

    Notes
    -----
    Derivatives: 1 for x, 0 for y.

    Examples
    --------
    >>> import chainrule as cr
    >>> (cr.nextafter(cr.tensor(1.0), 2.0) - 1).item()
    1.1920928955078125e-07
    """
    return _nextafter(input, other)


@operation(inplace=True, ufunc="fmod")
def fmod(input: Operand, other: Operand) -> Tensor:
    """Return x - y · trunc(x / y), which has the sign of x; `remainder` has that of y.

    Parameters
    ----------
    input, other : Tensor, array or number
        x and y: real numbers; their shapes broadcast.

    Returns
    -------
    Tensor, of the broadcast shape and the promoted dtype

    Raises
    ------
    DTypeError
        If an operand is complex.

    Notes
    -----
    Derivatives: 1 for x, -trunc(x / y) for y.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fmod(cr.tensor([7.0, -7.0]), 4)
    tensor([ 3., -3.])
    """
    return _fmod(input, other)


@operation(ufunc="fmax")
def fmax(input: Operand, other: Operand) -> Tensor:
    """Return the larger of x and y, ignoring nan; the arguments are those of `fmod`.

    Notes
    -----
    Derivatives: 1 for the selected operand, 0 for the other. If both are equal or nan, x is
    selected, as in PyTorch; `maximum` gives 1/2 to each.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fmax(cr.tensor([1.0, cr.nan]), cr.tensor([3.0, 4.0]))
    tensor([3., 4.])
    """
    return _fmax(input, other)


@operation(ufunc="fmin")
def fmin(input: Operand, other: Operand) -> Tensor:
    """Return the smaller of x and y, ignoring nan; the arguments are those of `fmod`.

    Notes
    -----
    Derivatives: 1 for the selected operand, 0 for the other. If both are equal or nan, x is
    selected, as in PyTorch; `minimum` gives 1/2 to each.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.fmin(cr.tensor([1.0, cr.nan]), cr.tensor([3.0, 4.0]))
    tensor([1., 4.])
    """
    return _fmin(input, other)


@operation(inplace=True, ufunc="heaviside")
def heaviside(input: Operand, values: Operand) -> Tensor:
    """Return 0 where x < 0, 1 where x > 0, `values` where x is 0; arguments are those of `fmod`.

    Notes
    -----
    Derivatives: 0 for x; 1 for `values` where x is 0, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.heaviside(cr.tensor([-1.5, 0.0, 2.0]), 0.5)
    tensor([0.0000, 0.5000, 1.0000])
    """
    result = _heaviside(input, values)
    integers = [t.dtype for t in as_tensors((input, values)) if t.dtype.kind in "iub"]
    # np.heaviside of integers returns floating numbers.
    return cast(result, promoted(*integers)) if len(integers) == 2 else result


# --- mantissa and exponent, powers in double precision --------------------------------------------


@operation(inplace=True, ufunc="ldexp")
def ldexp(input: Operand, other: Operand) -> Tensor:
    """Return x · 2**other.

    Parameters
    ----------
    input : Tensor, array or number
        x: integers are taken as numbers of the default dtype.
    other : Tensor, array or number
        Exponents, usually integers; the shapes broadcast.

    Returns
    -------
    Tensor, of the broadcast shape; a floating dtype

    Notes
    -----
    With integer exponents the result is exact if it is representable, even if 2**other is not.
    Derivatives: 2**other for x; out · ln 2 for floating `other`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ldexp(cr.tensor([1.5, -1.0]), cr.tensor([1, 4]))
    tensor([  3., -16.])
    """
    base, number = as_tensors((input, other))
    base = floating(base)
    if number._array.dtype.kind not in "iub":
        return multiply(base, _pow(2.0, number))
    half = elementwise.floor_divide.apply(number, 2)
    # Two steps, since 2**other may overflow where x * 2**other does not.
    for part in (half, elementwise.subtract.apply(number, half)):
        base = multiply(base, binary.exp2.apply(cast(part, base.dtype)))
    return base


ldexp_ = inplace_form(ldexp)


class Frexp(NamedTuple):
    """The result of `frexp`."""

    mantissa: Tensor
    exponent: Tensor


@operation(ufunc="frexp")
def frexp(input: Operand) -> Frexp:
    """Return mantissa and exponent: x = mantissa · 2**exponent, 1/2 ≤ abs(mantissa) < 1.

    Parameters
    ----------
    input : Tensor
        Real numbers.

    Returns
    -------
    Frexp, a named tuple
        `mantissa` in the dtype of `input`, `exponent` in int32. For 0, infinities and nan the
        mantissa is that number and the exponent 0.

    Raises
    ------
    DTypeError
        If `input` is complex.

    Notes
    -----
    Derivative of the mantissa: 2**-exponent.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.frexp(cr.tensor([3.0, 0.0]))
    Frexp(mantissa=tensor([0.7500, 0.0000]), exponent=tensor([2, 0], dtype=int32))
    """
    input = real_floating(input, "frexp")
    exponent = binary.exponent.apply(input)
    return Frexp(ldexp(input, elementwise.negative.apply(exponent)), exponent)


@operation(inplace=True, ufunc="float_power")
def float_power(input: Operand, exponent: Operand) -> Tensor:
    """Return x to the power y, computed in double precision.

    Parameters
    ----------
    input, exponent : Tensor, array or number
        x and y: base and exponent; their shapes broadcast.

    Returns
    -------
    Tensor, of the broadcast shape; float64, or complex128 if one is complex

    Notes
    -----
    Derivatives: those of `pow`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.float_power(cr.tensor([2, 3]), -1)
    tensor([0.5000, 0.3333], dtype=float64)
    """
    base, power = as_tensors((input, exponent))
    kind = promoted(base._array.dtype, power._array.dtype).kind
    dtype: Any = np.complex128 if kind == "c" else np.float64
    return _pow(cast(base, dtype), cast(power, dtype))


# --- interpolation and fused products -------------------------------------------------------------

_exp2 = unary_floating(binary.exp2)
_RADIANS_PER_DEGREE = 0.017453292519943295  # π / 180
_DEGREES_PER_RADIAN = 57.29577951308232


@operation()
def lerp(input: Operand, end: Operand, weight: Operand) -> Tensor:
    """Return input + weight · (end - input), the linear interpolation from `input` to `end`.

    Parameters
    ----------
    input, end : Tensor, array or number
        Start and end values; their shapes broadcast.
    weight : number or Tensor
        Interpolation weight: 0 gives `input`, 1 gives `end`, both exactly.

    Returns
    -------
    Tensor, of the broadcast shape and the promoted dtype

    Notes
    -----
    Derivatives: 1 - weight for `input`, weight for `end`, end - input for `weight`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.lerp(cr.tensor([0.0, 10.0]), cr.tensor([4.0, 20.0]), 0.25)
    tensor([ 1.0000, 12.5000])
    """
    difference = subtract(end, input)
    if isinstance(weight, int | float):
        if weight < 0.5:
            return add(input, multiply(difference, weight))
        return subtract(end, multiply(difference, 1 - weight))
    weight = as_tensors((weight, difference))[0]
    from_start = add(input, multiply(difference, weight))
    from_end = subtract(end, multiply(difference, subtract(1, weight)))
    magnitude = elementwise.abs.apply(weight)
    return where(elementwise.less.apply(magnitude, 0.5), from_start, from_end)


@operation()
def lerp_(x: Tensor, end: Operand, weight: Operand) -> Tensor:
    """Interpolate towards `end` by the fraction `weight` in place."""
    step = multiply(subtract(end, x), weight)
    return ufunc_in_place(x, "lerp_", elementwise.add, step)


@operation()
def addcmul(
    input: Operand, tensor1: Operand, tensor2: Operand, former: Any = None, *, value: Any = 1
) -> Tensor:
    """Return input + value · tensor1 · tensor2.

    Parameters
    ----------
    input, tensor1, tensor2 : Tensor, array or number
        Their shapes broadcast.
    former : Tensor, optional
        The second factor, where `tensor1` is `value`: PyTorch's order of arguments until 2020.
    value : number, default 1
        Factor of the product.

    Returns
    -------
    Tensor, of the broadcast shape and the promoted dtype

    Notes
    -----
    Derivatives: 1, value · tensor2, value · tensor1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addcmul(cr.tensor([1.0, 1.0]), cr.tensor([1.0, 2.0]), cr.tensor([3.0, 4.0]), value=10)
    tensor([31., 81.])
    """
    if former is not None:
        tensor1, tensor2, value = tensor2, former, tensor1
    return add(input, multiply(tensor1, tensor2), alpha=value)


@operation()
def addcmul_(
    x: Tensor, tensor1: Operand, tensor2: Operand, former: Any = None, *, value: Any = 1
) -> Tensor:
    """Add value · tensor1 · tensor2 in place."""
    if former is not None:
        tensor1, tensor2, value = tensor2, former, tensor1
    product = multiply(tensor1, tensor2)
    return ufunc_in_place(
        x, "addcmul_", elementwise.add, product if is_one(value) else multiply(product, value)
    )


@operation()
def addcdiv(
    input: Operand, tensor1: Operand, tensor2: Operand, former: Any = None, *, value: Any = 1
) -> Tensor:
    """Return input + value · tensor1 / tensor2; the arguments are those of `addcmul`.

    Notes
    -----
    Derivatives: 1, value / tensor2, -value · tensor1 / tensor2².

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.addcdiv(cr.tensor([1.0, 1.0]), cr.tensor([1.0, 2.0]), cr.tensor([2.0, 4.0]), value=10)
    tensor([6., 6.])
    """
    if former is not None:
        tensor1, tensor2, value = tensor2, former, tensor1
    return add(input, divide(tensor1, tensor2), alpha=value)


@operation()
def addcdiv_(
    x: Tensor, tensor1: Operand, tensor2: Operand, former: Any = None, *, value: Any = 1
) -> Tensor:
    """Add value · tensor1 / tensor2 in place."""
    if former is not None:
        tensor1, tensor2, value = tensor2, former, tensor1
    quotient = divide(tensor1, tensor2)
    return ufunc_in_place(
        x, "addcdiv_", elementwise.add, quotient if is_one(value) else multiply(quotient, value)
    )


# --- clipping, fractions, replacement of nan ------------------------------------------------------


@operation(inplace=True)
def clamp_min(input: Operand, min: Operand) -> Tensor:
    """Return max(input, min): `clamp` with a lower bound only.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.clamp_min(cr.tensor([-1.0, 3.0]), 0)
    tensor([0., 3.])
    """
    return elementary.clamp(input, min=min)


clamp_min_ = inplace_form(clamp_min)


@operation(inplace=True)
def clamp_max(input: Operand, max: Operand) -> Tensor:
    """Return min(input, max): `clamp` with an upper bound only.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.clamp_max(cr.tensor([-1.0, 3.0]), 0)
    tensor([-1.,  0.])
    """
    return elementary.clamp(input, max=max)


clamp_max_ = inplace_form(clamp_max)


@operation(inplace=True)
def frac(input: Operand) -> Tensor:
    """Return x - trunc(x), the fractional part of each element, with its sign.

    Notes
    -----
    Derivative: 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.frac(cr.tensor([1.5, -1.5]))
    tensor([ 0.5000, -0.5000])
    """
    input = tensor_of(input)
    return elementwise.subtract.apply(input, elementwise.trunc.apply(input))


frac_ = inplace_form(frac)


@operation(inplace=True)
def nan_to_num(
    input: Operand,
    nan: float | None = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Return `input` with nan and the infinities replaced by numbers.

    Parameters
    ----------
    input : Tensor
        Real or complex numbers; of complex ones, each part is treated separately.
    nan : float, default 0
        Replacement of nan.
    posinf, neginf : float, optional
        Replacements of the infinities; by default the largest and smallest finite number of the
        dtype.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where x is finite, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nan_to_num(cr.tensor([cr.nan, cr.inf, 1.0]), posinf=9.0)
    tensor([0., 9., 1.])
    """
    nan = 0.0 if nan is None else nan
    return binary.nan_to_num.apply(tensor_of(input), nan=nan, posinf=posinf, neginf=neginf)


nan_to_num_ = inplace_form(nan_to_num)


# --- angles and powers of two ---------------------------------------------------------------------


@operation(inplace=True, ufunc="deg2rad radians")
def deg2rad(input: Operand) -> Tensor:
    """Convert angles from degrees to radians.

    Notes
    -----
    Derivative: π / 180.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.deg2rad(cr.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """
    return elementwise.multiply.apply(floating(input), _RADIANS_PER_DEGREE)


deg2rad_ = inplace_form(deg2rad)


@operation(inplace=True, ufunc="rad2deg degrees")
def rad2deg(input: Operand) -> Tensor:
    """Convert angles from radians to degrees.

    Notes
    -----
    Derivative: 180 / π.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.rad2deg(cr.tensor([cr.pi, 1.0]))
    tensor([180.0000,  57.2958])
    """
    return elementwise.multiply.apply(floating(input), _DEGREES_PER_RADIAN)


rad2deg_ = inplace_form(rad2deg)


@operation(inplace=True, ufunc="exp2", scipy="exp2")
def exp2(input: Operand) -> Tensor:
    """Return 2 to the power of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: 2**x ln 2.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.exp2(cr.tensor([3, -1]))
    tensor([8.0000, 0.5000])
    """
    input = floating(input)
    return elementwise.pow.apply(2.0, input) if input._array.dtype.kind == "c" else _exp2(input)


exp2_ = inplace_form(exp2)


# --- signs and infinities -------------------------------------------------------------------------

_signbit = unary_real(binary.signbit)


@operation(ufunc="signbit", array_api=True)
def signbit(input: Operand) -> Tensor:
    """Test each element for a negative sign, which -0.0 has too.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signbit(cr.tensor([-1.0, -0.0, 0.0]))
    tensor([ True,  True, False])
    """
    input = tensor_of(input)
    return elementwise.less.apply(input, 0) if input.dtype.kind in "iub" else _signbit(input)


@operation()
def isposinf(input: Operand) -> Tensor:
    """Test each element for positive infinity.

    Raises
    ------
    DTypeError
        If `input` is complex.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isposinf(cr.tensor([cr.inf, -cr.inf, 0.0]))
    tensor([ True, False, False])
    """
    return _equals_infinity("isposinf", input, float("inf"))


@operation()
def isneginf(input: Operand) -> Tensor:
    """Test each element for negative infinity.

    Raises
    ------
    DTypeError
        If `input` is complex.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isneginf(cr.tensor([cr.inf, -cr.inf, 0.0]))
    tensor([False,  True, False])
    """
    return _equals_infinity("isneginf", input, -float("inf"))


def _equals_infinity(name: str, x: Operand, infinity: float) -> Tensor:
    x = tensor_of(x)
    if x.dtype.kind == "c":
        raise DTypeError(
            f"{name} does not support complex inputs, got {x.dtype}: use isinf, or test "
            "the real and the imaginary part separately"
        )
    return elementwise.equal.apply(floating(x), infinity)
