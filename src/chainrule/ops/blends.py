"""What is blended, limited or repaired element by element; angles."""

from __future__ import annotations

from typing import Any

from chainrule.arguments import RECORDERS, Operand, floating, tensor_of
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError
from chainrule.ops import kinks
from chainrule.ops.arithmetic import add, divide, multiply, subtract
from chainrule.ops.where import where
from chainrule.ops.wrappers import of_floats, of_reals

__all__ = [
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
]

_exp2 = of_floats("exp2")
_deg2rad_factor = 0.017453292519943295  # π / 180
_rad2deg_factor = 57.29577951308232

# --- sums of products -----------------------------------------------------------------------------


def lerp(input: Operand, end: Operand, weight: Operand) -> Tensor:
    """Return input + weight · (end - input), a point on the way from `input` to `end`.

    Parameters
    ----------
    input, end : Tensor, array or number
        Where the way starts, and where it ends; their shapes broadcast.
    weight : number or Tensor
        Which part of the way was gone: 0 gives `input`, 1 gives `end`, both exactly.

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
    way = subtract(end, input)
    if isinstance(weight, int | float):
        if weight < 0.5:
            return add(input, multiply(way, weight))
        return subtract(end, multiply(way, 1 - weight))
    weight = as_tensors((weight, way))[0]
    from_start = add(input, multiply(way, weight))
    from_end = subtract(end, multiply(way, subtract(1, weight)))
    size = RECORDERS["abs"](weight)
    return where(RECORDERS["less"](size, 0.5), from_start, from_end)


def addcmul(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Tensor:
    """Return input + value · tensor1 · tensor2.

    Parameters
    ----------
    input, tensor1, tensor2 : Tensor, array or number
        Their shapes broadcast.
    value : number, default 1
        A factor of the product.

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
    return add(input, multiply(tensor1, tensor2), alpha=value)


def addcdiv(input: Operand, tensor1: Operand, tensor2: Operand, *, value: Any = 1) -> Tensor:
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
    return add(input, divide(tensor1, tensor2), alpha=value)


# --- limits, fractions, repairs -------------------------------------------------------------------


def clamp_min(input: Operand, min: Operand) -> Tensor:
    """Return `input`, limited to what is not below `min`: `clamp` with one bound.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.clamp_min(cr.tensor([-1.0, 3.0]), 0)
    tensor([0., 3.])
    """
    return kinks.clamp(input, min=min)


def clamp_max(input: Operand, max: Operand) -> Tensor:
    """Return `input`, limited to what is not above `max`: `clamp` with one bound.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.clamp_max(cr.tensor([-1.0, 3.0]), 0)
    tensor([-1.,  0.])
    """
    return kinks.clamp(input, max=max)


def frac(input: Operand) -> Tensor:
    """Return x - trunc(x), the fraction of each element, which has its sign.

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
    return RECORDERS["subtract"](input, RECORDERS["trunc"](input))


def nan_to_num(
    input: Operand,
    nan: float | None = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Return `input` with numbers in the place of nan and the infinities.

    Parameters
    ----------
    input : Tensor
        Real or complex numbers; of complex ones, each part is repaired.
    nan : float, default 0
        What replaces nan.
    posinf, neginf : float, optional
        What replaces the infinities; by default the largest and the smallest number of the dtype.

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
    return RECORDERS["nan_to_num"](tensor_of(input), nan=nan, posinf=posinf, neginf=neginf)


# --- angles, powers of two ------------------------------------------------------------------------


def deg2rad(input: Operand) -> Tensor:
    """Return angles in radians that were in degrees.

    Notes
    -----
    Derivative: π / 180.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.deg2rad(cr.tensor([180.0, 90.0]))
    tensor([3.1416, 1.5708])
    """
    return RECORDERS["multiply"](floating(input), _deg2rad_factor)


def rad2deg(input: Operand) -> Tensor:
    """Return angles in degrees that were in radians.

    Notes
    -----
    Derivative: 180 / π.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.rad2deg(cr.tensor([cr.pi, 1.0]))
    tensor([180.0000,  57.2958])
    """
    return RECORDERS["multiply"](floating(input), _rad2deg_factor)


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
    return RECORDERS["pow"](2.0, input) if input._array.dtype.kind == "c" else _exp2(input)


# --- questions ------------------------------------------------------------------------------------

_signbit = of_reals("signbit")


def signbit(input: Operand) -> Tensor:
    """Say of each element whether its sign is negative, also of -0.0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.signbit(cr.tensor([-1.0, -0.0, 0.0]))
    tensor([ True,  True, False])
    """
    input = tensor_of(input)
    return RECORDERS["less"](input, 0) if input.dtype.kind in "iub" else _signbit(input)


def isposinf(input: Operand) -> Tensor:
    """Say of each element whether it is positive infinity.

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
    return _is_infinity("isposinf", input, float("inf"))


def isneginf(input: Operand) -> Tensor:
    """Say of each element whether it is negative infinity.

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
    return _is_infinity("isneginf", input, -float("inf"))


def _is_infinity(name: str, x: Operand, infinity: float) -> Tensor:
    x = tensor_of(x)
    if x.dtype.kind == "c":
        raise DTypeError(
            f"{name} does not support complex inputs, got {x.dtype}: isinf takes them, and the "
            "real and imaginary parts can be asked one by one"
        )
    return RECORDERS["equal"](floating(x), infinity)
