"""Roots, exponentials, logarithms and what is made of them."""

from __future__ import annotations

from chainrule.arguments import RECORDERS, Operand
from chainrule.autograd.tensor import Tensor
from chainrule.ops.wrappers import of_floats

__all__ = ["sqrt", "rsqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sigmoid"]

_sqrt = of_floats("sqrt")
_exp = of_floats("exp")
_expm1 = of_floats("expm1")
_log = of_floats("log")
_log1p = of_floats("log1p")
_log2 = of_floats("log2")
_log10 = of_floats("log10")
_sigmoid = of_floats("sigmoid")


def sqrt(input: Operand) -> Tensor:
    """Return the square root of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return _sqrt(input)


def exp(input: Operand) -> Tensor:
    """Return e to the power of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return _exp(input)


def expm1(input: Operand) -> Tensor:
    """Return exp x - 1, precise also where x is small.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return _expm1(input)


def log(input: Operand) -> Tensor:
    """Return the natural logarithm of each element.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return _log(input)


def log1p(input: Operand) -> Tensor:
    """Return log(1 + x), precise also where x is small.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return _log1p(input)


def log2(input: Operand) -> Tensor:
    """Return the logarithm of each element to the base 2.

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


def log10(input: Operand) -> Tensor:
    """Return the logarithm of each element to the base 10.

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


def sigmoid(input: Operand) -> Tensor:
    """Return the logistic function 1 / (1 + exp -x).

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: s (1 - s), where s is the result. No exponential overflows.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sigmoid(cr.tensor([0.0, -800.0]))
    tensor([0.5000, 0.0000])
    """
    return _sigmoid(input)


def rsqrt(input: Operand) -> Tensor:
    """Return 1 / √x.

    Parameters
    ----------
    input : Tensor
        Integers are taken as numbers of the default dtype.

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
    return RECORDERS["reciprocal"](_sqrt(input))
