"""Orthogonal polynomials: those of Chebyshev, Hermite, Laguerre and Legendre."""

from __future__ import annotations

from collections.abc import Callable

from chainrule.arguments import Operand, floating, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.creation import ones_like, zeros_like
from chainrule.ops.comparison import isfinite
from chainrule.ops.elementary import trunc
from chainrule.ops.reshape import broadcast_tensors
from chainrule.ops.where import where

__all__ = [
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
]

Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]


def chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """Return the Chebyshev polynomial of the first kind, T_n(x).

    Parameters
    ----------
    input : Tensor, array or number
        x.
    n : int, or Tensor
        The degree; its shape broadcasts with that of `input`. Negative ones give 0, fractions are
        cut off, and nan and infinities give nan.

    Returns
    -------
    Tensor
        By the recurrence T_{n+1} = 2 x T_n - T_{n-1}, in as many steps as the largest degree.

    Notes
    -----
    Differentiable in `input` to every order, as all functions of this module.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.chebyshev_polynomial_t(cr.tensor([0.5, 1.0]), 2)
    tensor([-0.5000,  1.0000])
    """
    return _polynomial(input, n, lambda x: x, _chebyshev)


def chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """Return the Chebyshev polynomial of the second kind, U_n(x): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.chebyshev_polynomial_u(cr.tensor([0.5, 1.0]), 2)
    tensor([0., 3.])
    """
    return _polynomial(input, n, lambda x: 2 * x, _chebyshev)


def chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Return the Chebyshev polynomial of the third kind, V_n(x): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.chebyshev_polynomial_v(cr.tensor([0.5, 1.0]), 1)
    tensor([0., 1.])
    """
    return _polynomial(input, n, lambda x: 2 * x - 1, _chebyshev)


def chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Return the Chebyshev polynomial of the fourth kind, W_n(x): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.chebyshev_polynomial_w(cr.tensor([0.5, 1.0]), 1)
    tensor([2., 3.])
    """
    return _polynomial(input, n, lambda x: 2 * x + 1, _chebyshev)


def shifted_chebyshev_polynomial_t(input: Operand, n: Operand) -> Tensor:
    """Return T_n(2x - 1): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.shifted_chebyshev_polynomial_t(cr.tensor([0.75]), 2)
    tensor([-0.5000])
    """
    return chebyshev_polynomial_t(_shifted(input), n)


def shifted_chebyshev_polynomial_u(input: Operand, n: Operand) -> Tensor:
    """Return U_n(2x - 1): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.shifted_chebyshev_polynomial_u(cr.tensor([0.75]), 2)
    tensor([0.])
    """
    return chebyshev_polynomial_u(_shifted(input), n)


def shifted_chebyshev_polynomial_v(input: Operand, n: Operand) -> Tensor:
    """Return V_n(2x - 1): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.shifted_chebyshev_polynomial_v(cr.tensor([0.75]), 1)
    tensor([0.])
    """
    return chebyshev_polynomial_v(_shifted(input), n)


def shifted_chebyshev_polynomial_w(input: Operand, n: Operand) -> Tensor:
    """Return W_n(2x - 1): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.shifted_chebyshev_polynomial_w(cr.tensor([0.75]), 1)
    tensor([2.])
    """
    return chebyshev_polynomial_w(_shifted(input), n)


def hermite_polynomial_h(input: Operand, n: Operand) -> Tensor:
    """Return the Hermite polynomial of physics, H_n(x): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.hermite_polynomial_h(cr.tensor([0.5, 1.0]), 2)
    tensor([-1.,  2.])
    """
    return _polynomial(input, n, lambda x: 2 * x, lambda k, x, p, q: 2 * x * p - 2 * k * q)


def hermite_polynomial_he(input: Operand, n: Operand) -> Tensor:
    """Return the Hermite polynomial of probability theory, He_n(x): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.hermite_polynomial_he(cr.tensor([0.5, 1.0]), 2)
    tensor([-0.7500,  0.0000])
    """
    return _polynomial(input, n, lambda x: x, lambda k, x, p, q: x * p - k * q)


def laguerre_polynomial_l(input: Operand, n: Operand) -> Tensor:
    """Return the Laguerre polynomial L_n(x): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.laguerre_polynomial_l(cr.tensor([0.0, 1.0]), 2)
    tensor([ 1.0000, -0.5000])
    """

    def step(k: int, x: Tensor, p: Tensor, q: Tensor) -> Tensor:
        return ((2 * k + 1 - x) * p - k * q) / (k + 1)

    return _polynomial(input, n, lambda x: 1 - x, step)


def legendre_polynomial_p(input: Operand, n: Operand) -> Tensor:
    """Return the Legendre polynomial P_n(x): see `chebyshev_polynomial_t`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.legendre_polynomial_p(cr.tensor([0.0, 1.0]), 2)
    tensor([-0.5000,  1.0000])
    """

    def step(k: int, x: Tensor, p: Tensor, q: Tensor) -> Tensor:
        return ((2 * k + 1) * x * p - k * q) / (k + 1)

    return _polynomial(input, n, lambda x: x, step)


def _chebyshev(k: int, x: Tensor, p: Tensor, q: Tensor) -> Tensor:
    return 2 * x * p - q


def _shifted(input: Operand) -> Tensor:
    return 2 * floating(input) - 1


def _polynomial(
    input: Operand, n: Operand, first: Callable[[Tensor], Tensor], step: Step
) -> Tensor:
    """Return a polynomial by the recurrence p_{k+1} = step(k, x, p_k, p_{k-1}), from p_0 = 1."""
    x = floating(input)
    if isinstance(n, int):
        terms = [ones_like(x), first(x)]
        for k in range(1, n):
            terms = [terms[1], step(k, x, terms[1], terms[0])]
        return zeros_like(x) if n < 0 else terms[min(n, 1)]
    x, degree = broadcast_tensors(x, trunc(tensor_of(n).detach()))
    known = isfinite(degree)
    terms, found = [ones_like(x), first(x)], where(known, zeros_like(x), float("nan"))
    largest = where(known, degree, 0).max().item() if degree.numel() else -1
    for k in range(int(largest) + 1):
        found = where(degree == k, terms[0], found)
        terms = [terms[1], step(k + 1, x, terms[1], terms[0])]
    return found
