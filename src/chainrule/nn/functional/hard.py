"""Activations of straight pieces: bounded ones, and those that cut out what is near 0."""

from __future__ import annotations

import math

from chainrule.arguments import RECORDERS, Operand, floating
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.nn.functional.inplace import applied, writing
from chainrule.ops import clamp, where

__all__ = [
    "hardtanh",
    "hardtanh_",
    "hardsigmoid",
    "hardswish",
    "hardshrink",
    "softshrink",
    "threshold",
    "threshold_",
]


def hardtanh(
    input: Operand, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return x, limited to the range from `min_val` to `max_val`.

    Parameters
    ----------
    input, inplace
        As for `relu`.
    min_val, max_val : number, default -1 and 1
        The bounds.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `min_val` is above `max_val`.

    Notes
    -----
    Derivative: 1 inside, 0 outside and at the bounds (where that of `clamp` is 1).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.hardtanh(cr.tensor([-2.0, 0.5, 3.0]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ArgumentError(
            f"hardtanh: min_val cannot be greater than max_val, but got {min_val} and {max_val}"
        )
    low, high = float(min_val), float(max_val)
    return applied(
        lambda x: RECORDERS["hardtanh"](x, low=low, high=high),
        input,
        "hardtanh",
        inplace,
        (lambda x: clamp(x, int(low), int(high))) if _are_whole(low, high) else None,
    )


def _are_whole(*bounds: float) -> bool:
    return all([float(bound).is_integer() for bound in bounds])


def hardsigmoid(input: Operand, inplace: bool = False) -> Tensor:
    """Return min(max(x + 3, 0), 6) / 6; the arguments are those of `relu`.

    Notes
    -----
    Derivative: 1/6 between -3 and 3, else 0, also at both.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.hardsigmoid(cr.tensor([-9.0, 0.0, 9.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def function(x: Tensor) -> Tensor:
        shifted = RECORDERS["hardtanh"](RECORDERS["add"](x, 3.0), low=0.0, high=6.0)
        return RECORDERS["divide"](shifted, 6.0)

    return applied(function, input, "hardsigmoid", inplace)


def hardswish(input: Operand, inplace: bool = False) -> Tensor:
    """Return x · min(max(x + 3, 0), 6) / 6; the arguments are those of `relu`.

    Notes
    -----
    Derivative: 0 up to -3 (there too), x/3 + 1/2, and 1 from 3 on [1]_.

    References
    ----------
    .. [1] A. Howard et al., Searching for MobileNetV3, ICCV 2019.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.hardswish(cr.tensor([-9.0, 1.0, 9.0]))
    tensor([-0.0000, 0.6667, 9.0000])
    """
    return applied(RECORDERS["hardswish"], input, "hardswish", inplace)


def hardshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """Return x where it is farther than `lambd` from 0, else 0.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape.
    lambd : number, default 0.5
        Up to this magnitude numbers become 0.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where |x| > `lambd`, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.hardshrink(cr.tensor([-2.0, 0.25, 0.75]))
    tensor([-2.0000,  0.0000,  0.7500])
    """
    x = floating(input)
    small = RECORDERS["less_equal"](RECORDERS["abs"](x.detach()), float(lambd))
    return RECORDERS["masked"](x, RECORDERS["logical_not"](small))


def softshrink(input: Operand, lambd: float = 0.5) -> Tensor:
    """Return x moved towards 0 by `lambd`, and 0 where it is nearer than that.

    Parameters
    ----------
    input : Tensor
        Real numbers x, of any shape.
    lambd : number, default 0.5
        How far; not negative.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ArgumentError
        If `lambd` is negative.

    Notes
    -----
    Derivative: 1 where |x| > `lambd`, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.softshrink(cr.tensor([-2.0, 0.25, 0.75]))
    tensor([-1.5000,  0.0000,  0.2500])
    """
    if lambd < 0:
        raise ArgumentError(
            f"softshrink: lambda must be greater or equal to 0, but found to be {lambd}"
        )
    x = floating(input)
    near = RECORDERS["clamp"](x, low=-float(lambd), high=float(lambd))
    return RECORDERS["subtract"](x, near)


def threshold(input: Operand, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above `threshold`, else `value`.

    Parameters
    ----------
    input, inplace
        As for `relu`.
    threshold, value : number
        What to be above, and what to be otherwise.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: 1 where x > `threshold`, else 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.threshold(cr.tensor([-1.0, 3.0]), 0.5, 9.0)
    tensor([9., 3.])
    """

    def function(x: Tensor) -> Tensor:
        low = RECORDERS["less_equal"](x.detach(), float(threshold))
        kept = RECORDERS["masked"](x, RECORDERS["logical_not"](low))
        if not math.isfinite(value):
            return where(low, float(value), kept)
        if value == 0:
            return kept
        filling = RECORDERS["multiply"](RECORDERS["astype"](low, dtype=x.dtype), float(value))
        return RECORDERS["add"](kept, filling)

    def of_integers(x: Tensor) -> Tensor:
        return where(x > threshold, x, int(value))

    whole = of_integers if _are_whole(value) else None
    return applied(function, input, "threshold", inplace, whole)


hardtanh_ = writing(hardtanh)
threshold_ = writing(threshold)
