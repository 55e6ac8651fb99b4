"""Functions with kinks and steps: at a kink the derivative is the one that each docstring says."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, cast, floating, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.ops.wrappers import binary, real_pair

__all__ = [
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
]

_relu = RECORDERS["relu"]
_clamp = RECORDERS["clamp"]

_maximum = binary("maximum")
_clamp_min = real_pair("clamp_min", floats=False)
_clamp_max = real_pair("clamp_max", floats=False)
_minimum = binary("minimum")

_PLAIN = frozenset([float, int, type(None)])
"""Bounds of floating numbers that are taken as they are."""


def abs(input: Operand) -> Tensor:
    """Return the absolute value of each element.

    Parameters
    ----------
    input : Tensor
        Real or complex numbers.

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
    return RECORDERS["abs"](tensor_of(input))


absolute = abs


def sign(input: Operand) -> Tensor:
    """Return -1, 0 or 1, the sign of each element; z / |z| of a complex number z.

    Notes
    -----
    Derivative: 0 everywhere; of complex numbers, that of z / |z|.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sign(cr.tensor([-1.5, 0.0, 2.0]))
    tensor([-1.,  0.,  1.])
    """
    if isinstance(input, Tensor) and input.is_complex():
        size = RECORDERS["abs"](input)
        zero = RECORDERS["equal"](size, 0.0)
        phase = RECORDERS["divide"](input, RECORDERS["where"](zero, 1.0, size))
        return RECORDERS["masked"](phase, RECORDERS["logical_not"](zero))
    if tensor_of(input).dtype.kind == "b":
        return RECORDERS["clone"](tensor_of(input))  # NumPy has no sign of bools
    return _step("sign", input)


def _step(name: str, x: Operand) -> Tensor:
    return RECORDERS[name](tensor_of(x))


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


def maximum(input: Operand, other: Operand) -> Tensor:
    """Return the larger of x and y, element by element; nan if one is nan.

    Parameters
    ----------
    input, other : Tensor, array or number
        x and y: their shapes broadcast.

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
    return _maximum(input, other)


def minimum(input: Operand, other: Operand) -> Tensor:
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
    return _minimum(input, other)


def clamp(input: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Return `input`, limited to the range from `min` to `max`.

    Parameters
    ----------
    input : Tensor
        Real numbers.
    min, max : number or Tensor, optional
        The bounds; one may be left out. Where `min` is above `max`, the result is `max`.

    Returns
    -------
    Tensor, shape of `input` (broadcast with bounds that are tensors)

    Raises
    ------
    ArgumentError
        If there is no bound.

    Notes
    -----
    Derivative: 1 inside and at a bound, 0 outside; a bound that is a tensor has the rest.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.clamp(cr.tensor([-1.0, 0.5, 3.0]), min=0, max=1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise ArgumentError("clamp: At least one of 'min' or 'max' must not be None")
    input = tensor_of(input)
    if min.__class__ in _PLAIN and max.__class__ in _PLAIN and input._array.dtype.kind == "f":
        return _clamp(input, low=min, high=max)
    if not _is_number(min) or not _is_number(max):
        return _clamp_to_tensors(input, min, max)
    low, high = [float(bound) if isinstance(bound, float) else bound for bound in (min, max)]
    if input._array.dtype.kind not in "fc" and (isinstance(low, float) or isinstance(high, float)):
        input = floating(input)
    elif input._array.dtype.kind == "b" and not {type(low), type(high)} <= {bool, type(None)}:
        input = cast(input, np.dtype(np.int64))
    return _clamp(input, low=low, high=high)


clip = clamp


def _is_number(bound: Any) -> bool:
    return bound is None or isinstance(bound, bool | int | float)


def _clamp_to_tensors(x: Tensor, low: Any, high: Any) -> Tensor:
    if low is not None:
        x = _clamp_min(x, low)
    return x if high is None else _clamp_max(x, high)


def floor(input: Operand) -> Tensor:
    """Return the largest integer that is not above x, element by element.

    Notes
    -----
    Derivative: 0 everywhere.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.floor(cr.tensor([-1.5, 1.5]))
    tensor([-2.,  1.])
    """
    return _step("floor", input)


def ceil(input: Operand) -> Tensor:
    """Return the smallest integer that is not below x, element by element.

    Notes
    -----
    Derivative: 0 everywhere.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ceil(cr.tensor([-1.5, 1.5]))
    tensor([-1.,  2.])
    """
    return _step("ceil", input)


def trunc(input: Operand) -> Tensor:
    """Return each element without its fraction: rounded towards zero.

    Notes
    -----
    Derivative: 0 everywhere.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.trunc(cr.tensor([-1.5, 1.5]))
    tensor([-1.,  1.])
    """
    return _step("trunc", input)


fix = trunc


def round(input: Operand, *, decimals: int = 0) -> Tensor:
    """Return each element rounded to the nearest integer, halves to the even one.

    Parameters
    ----------
    input : Tensor
        Numbers.
    decimals : int, default 0
        Round to this many decimal places; negative ones stand left of the point.

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
    return RECORDERS["round"](tensor_of(input), decimals=decimals)
