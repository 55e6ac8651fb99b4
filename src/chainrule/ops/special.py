"""The special functions that PyTorch has at the top level; `chainrule.special` has more.

Those of real numbers take integers as numbers of the default dtype. erf, erfc, lgamma, digamma,
sinc, logit and xlogy need NumPy alone; the others need SciPy (the extra `scipy`).
"""

from __future__ import annotations

import math
from operator import index

from chainrule.arguments import RECORDERS, Operand, floating
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.ops.arithmetic import add, multiply
from chainrule.ops.kinks import clamp
from chainrule.ops.wrappers import of_reals, real_floating, real_pair

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "i0",
    "igamma",
    "igammac",
    "lgamma",
    "logit",
    "mvlgamma",
    "polygamma",
    "sinc",
]

_erf = of_reals("erf")
_erfc = of_reals("erfc")
_erfinv = of_reals("erfinv")
_lgamma = of_reals("lgamma")
_polygamma = of_reals("polygamma")
_digamma = of_reals("polygamma", "digamma")
_i0 = of_reals("bessel_i", "i0")
_logit = of_reals("logit")
_gammainc = real_pair("gammainc")
_gammaincc = real_pair("gammaincc")


def erf(input: Operand) -> Tensor:
    """Return the error function, 2/√π ∫ exp(-t²) dt from 0 to x.

    Parameters
    ----------
    input : Tensor
        Real numbers.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    DTypeError
        If `input` is complex.

    Notes
    -----
    Derivative: 2/√π exp(-x²). Computed by SciPy where it is installed, else by a Chebyshev series
    here, both to some units in the last place.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.erf(cr.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    return _erf(input)


def erfc(input: Operand) -> Tensor:
    """Return 1 - erf(x), precise also where that is tiny; the argument is that of `erf`.

    Notes
    -----
    Derivative: -2/√π exp(-x²). Computed as `erf` is, without SciPy by the method of [1]_.

    References
    ----------
    .. [1] M. M. Shepherd, J. G. Laframboise, Math. Comp. 36(153), 1981.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.erfc(cr.tensor([0.0, 4.0]))
    tensor([1.0000e+00, 1.5417e-08])
    """
    return _erfc(input)


def erfinv(input: Operand) -> Tensor:
    """Return the number whose `erf` is x: ±inf at ±1, nan beyond.

    Parameters
    ----------
    input : Tensor
        Real numbers.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    DTypeError
        If `input` is complex.
    MissingExtraError
        If SciPy is not installed.

    Notes
    -----
    Derivative: √π/2 exp(out²), which is inf at ±1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.erfinv(cr.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.4769,    inf])
    """
    return _erfinv(input)


def lgamma(input: Operand) -> Tensor:
    """Return log |Γ(x)|: inf at 0, -1, -2, …

    Parameters
    ----------
    input : Tensor
        Real numbers.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    DTypeError
        If `input` is complex.

    Notes
    -----
    Derivative: digamma(x). Computed by SciPy where it is installed, else from Stirling's series.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.lgamma(cr.tensor([1.0, 5.0, 0.0]))
    tensor([0.0000, 3.1781,    inf])
    """
    return _lgamma(input)


def digamma(input: Operand) -> Tensor:
    """Return the derivative of log Γ(x); the argument is that of `lgamma`.

    Notes
    -----
    ∓inf at ±0.0, nan at -1, -2, … Derivative: polygamma(1, x), which needs SciPy.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.digamma(cr.tensor([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """
    return _digamma(input, order=0)


def polygamma(n: int, input: Operand) -> Tensor:
    """Return the n-th derivative of digamma(x).

    Parameters
    ----------
    n : int, ≥ 0
        The order; 0 is `digamma`.
    input : Tensor
        Real numbers.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ArgumentError
        If `n` is negative.
    DTypeError
        If `input` is complex.
    MissingExtraError
        If n > 0 and SciPy is not installed.

    Notes
    -----
    Derivative: polygamma(n + 1, x).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.polygamma(1, cr.tensor([1.0, 2.0]))
    tensor([1.6449, 0.6449])
    """
    if index(n) < 0:
        raise ArgumentError(f"polygamma(n, x) does not support negative n, got n = {n}")
    return _polygamma(input, order=index(n))


def mvlgamma(input: Operand, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p.

    Parameters
    ----------
    input : Tensor
        Real numbers above (p - 1) / 2.
    p : int, ≥ 1
        The dimension; 1 gives `lgamma`.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    ArgumentError
        If `p` is less than 1.

    Notes
    -----
    p (p - 1) / 4 log π + Σ lgamma(x + (1 - j) / 2), j = 1 … p.
    Derivative: Σ digamma(x + (1 - j) / 2).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.mvlgamma(cr.tensor([2.0]), p=2)
    tensor([0.4516])
    """
    if index(p) < 1:
        raise ArgumentError(f"mvlgamma: p has to be greater than or equal to 1, got p = {p}")
    input = real_floating(input, "mvlgamma")
    total = _lgamma(input)
    for j in range(1, p):
        total = add(total, _lgamma(add(input, -j / 2)))
    return add(total, p * (p - 1) / 4 * math.log(math.pi))


def i0(input: Operand) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0.

    Parameters
    ----------
    input : Tensor
        Real numbers.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    DTypeError
        If `input` is complex.
    MissingExtraError
        If SciPy is not installed.

    Notes
    -----
    Derivative: the one of order 1, `chainrule.special.i1`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.i0(cr.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return _i0(input, order=0)


def igamma(input: Operand, other: Operand) -> Tensor:
    """Return the regularised lower incomplete gamma function, from 0 at x = 0 up to 1.

    It is `gammainc` in `chainrule.special`.

    Parameters
    ----------
    input, other : Tensor, array or number
        a and x: real numbers, a > 0 and x ≥ 0; their shapes broadcast.

    Returns
    -------
    Tensor, of the broadcast shape and the promoted dtype

    Raises
    ------
    DTypeError
        If one is complex.
    MissingExtraError
        If SciPy is not installed.
    AutogradError
        In a backward pass, if a requires grad.

    Notes
    -----
    Derivative for x: x^(a-1) exp(-x) / Γ(a). The one for a has no closed form.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.igamma(2.0, cr.tensor([1.0]))
    tensor([0.2642])
    """
    return _gammainc(input, other)


def igammac(input: Operand, other: Operand) -> Tensor:
    """Return the regularised upper incomplete gamma function, 1 - igamma(a, x), also in its tail.

    The arguments are those of `igamma`. It is `gammaincc` in `chainrule.special`.

    Raises
    ------
    AutogradError
        In a backward pass, if a requires grad.

    Notes
    -----
    Derivative for x: -x^(a-1) exp(-x) / Γ(a). The one for a has no closed form.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.igammac(2.0, cr.tensor([1.0]))
    tensor([0.7358])
    """
    return _gammaincc(input, other)


def sinc(input: Operand) -> Tensor:
    """Return sin(πx) / (πx), which is 1 at 0.

    Parameters
    ----------
    input : Tensor
        Real or complex numbers.

    Returns
    -------
    Tensor, shape of `input`

    Notes
    -----
    Derivative: (cos(πx) - out) / x, and 0 at 0. It is computed from the spherical Bessel functions
    and their power series, so that derivatives of every order are precise at 0 and around it.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sinc(cr.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    return RECORDERS["spherical_bessel_j"](multiply(floating(input), math.pi), order=0)


def logit(input: Operand, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), the inverse of `sigmoid`.

    Parameters
    ----------
    input : Tensor
        Probabilities: ±inf at 1 and 0, nan beyond.
    eps : float, optional
        Limit `input` to the range from eps to 1 - eps first.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    DTypeError
        If `input` is complex.

    Notes
    -----
    Derivative: 1 / (x (1 - x)); inf at 0 and 1, nan beyond. With `eps`, 0 outside of its range.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.logit(cr.tensor([0.5, 0.9]))
    tensor([0.0000, 2.1972])
    >>> cr.logit(cr.tensor([0.0, 1.0]), eps=0.1)
    tensor([-2.1972,  2.1972])
    """
    if eps is not None:
        input = clamp(real_floating(input, "logit"), eps, 1 - eps)
    return _logit(input)
