"""Trigonometric and hyperbolic functions, and their inverses. Angles are in radians."""

from __future__ import annotations

from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor
from chainrule.ops.wrappers import of_floats

__all__ = [
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
]

_sin = of_floats("sin")
_cos = of_floats("cos")
_tan = of_floats("tan")
_asin = of_floats("asin")
_acos = of_floats("acos")
_atan = of_floats("atan")
_sinh = of_floats("sinh")
_cosh = of_floats("cosh")
_tanh = of_floats("tanh")
_asinh = of_floats("asinh")
_acosh = of_floats("acosh")
_atanh = of_floats("atanh")


def sin(input: Operand) -> Tensor:
    """Return the sine of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return _sin(input)


def cos(input: Operand) -> Tensor:
    """Return the cosine of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return _cos(input)


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


def tanh(input: Operand) -> Tensor:
    """Return the hyperbolic tangent of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return _tanh(input)


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


arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh
