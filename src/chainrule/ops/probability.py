"""Special functions of probability: normal, gamma and beta distributions, entropies.

All take real numbers, integers as numbers of the default dtype, and need SciPy (the extra `scipy`)
but where it says otherwise.
"""

from __future__ import annotations

from chainrule.arguments import RECORDERS, Operand
from chainrule.autograd.tensor import Tensor
from chainrule.ops.arithmetic import add, multiply, negative, subtract
from chainrule.ops.binary import logaddexp
from chainrule.ops.wrappers import of_reals, real_floating, real_operands, real_pair

__all__ = [
    "erfcx",
    "erfi",
    "dawsn",
    "ndtr",
    "ndtri",
    "log_ndtr",
    "log_expit",
    "entr",
    "rel_entr",
    "kl_div",
    "xlog1py",
    "gamma",
    "beta",
    "betaln",
    "betainc",
    "zeta",
    "expi",
    "exp1",
]

_erfcx = of_reals("erfcx")
_erfi = of_reals("erfi")
_dawsn = of_reals("dawsn")
_ndtri = of_reals("ndtri")
_log_ndtr = of_reals("log_ndtr")
_entr = of_reals("entr")
_rel_entr = real_pair("rel_entr")
_xlog1py = real_pair("xlog1py")
_gamma = of_reals("gamma")
_beta = real_pair("beta")
_betaln = real_pair("betaln")
_zeta = real_pair("zeta")
_expi = of_reals("expi")
_exp1 = of_reals("exp1")

# --- error functions and the normal distribution --------------------------------------------------


def erfcx(input: Operand) -> Tensor:
    """Return exp(x²) erfc(x), which neither over- nor underflows for large x.

    Notes
    -----
    Derivative: 2x · out - 2/√π.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.erfcx(cr.tensor([0.0, 100.0]))
    tensor([1.0000, 0.0056])
    """
    return _erfcx(input)


def erfi(input: Operand) -> Tensor:
    """Return the imaginary error function, 2/√π ∫ exp(t²) dt from 0 to x.

    Notes
    -----
    Derivative: 2/√π exp(x²).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.erfi(cr.tensor([0.0, 1.0]))
    tensor([0.0000, 1.6504])
    """
    return _erfi(input)


def dawsn(input: Operand) -> Tensor:
    """Return Dawson's integral, exp(-x²) ∫ exp(t²) dt from 0 to x.

    Notes
    -----
    Derivative: 1 - 2x · out.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.dawsn(cr.tensor([0.0, 1.0]))
    tensor([0.0000, 0.5381])
    """
    return _dawsn(input)


def ndtr(input: Operand) -> Tensor:
    """Return the probability that a standard normal number is at most x. Needs NumPy alone.

    Notes
    -----
    erfc(-x/√2) / 2, precise in both tails. Derivative: the density, exp(-x²/2) / √(2π).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.ndtr(cr.tensor([-1.0, 0.0]))
    tensor([0.1587, 0.5000])
    """
    scaled = multiply(real_floating(input, "ndtr"), -0.7071067811865476)  # 1/√2
    return multiply(RECORDERS["erfc"](scaled), 0.5)


def ndtri(input: Operand) -> Tensor:
    """Return the number whose `ndtr` is x: ±inf at 1 and 0, nan beyond.

    Notes
    -----
    Derivative: √(2π) exp(out²/2).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.ndtri(cr.tensor([0.5, 0.975]))
    tensor([0.0000, 1.9600])
    """
    return _ndtri(input)


def log_ndtr(input: Operand) -> Tensor:
    """Return log ndtr(x), precise also where that underflows.

    Notes
    -----
    Derivative: √(2/π) / erfcx(-x/√2), the density over the probability.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.log_ndtr(cr.tensor([-100.0, 0.0]))
    tensor([-5.0055e+03, -6.9315e-01])
    """
    return _log_ndtr(input)


def log_expit(input: Operand) -> Tensor:
    """Return log sigmoid(x), without underflow. Needs NumPy alone.

    Notes
    -----
    Derivative: sigmoid(-x).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.log_expit(cr.tensor([-1000.0, 0.0]))
    tensor([-1.0000e+03, -6.9315e-01])
    """
    return negative(logaddexp(0.0, negative(real_floating(input, "log_expit"))))


# --- entropies ------------------------------------------------------------------------------------


def entr(input: Operand) -> Tensor:
    """Return -x log x, which is 0 at 0 and -inf below. Needs NumPy alone.

    Notes
    -----
    Derivative: -1 - log x; inf at 0, nan below.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.entr(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """
    return _entr(input)


def rel_entr(x: Operand, y: Operand, /) -> Tensor:
    """Return x log(x/y), which is 0 at x = 0, y ≥ 0, and inf where one is negative.

    Notes
    -----
    Derivatives: 1 + log(x/y) for x, -x/y for y.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.rel_entr(cr.tensor([0.0, 2.0]), 1.0)
    tensor([0.0000, 1.3863])
    """
    return _rel_entr(x, y)


def kl_div(x: Operand, y: Operand, /) -> Tensor:
    """Return x log(x/y) - x + y, as scipy.special.kl_div does.

    The loss of that name is `chainrule.nn.functional.kl_div`.

    Notes
    -----
    Derivatives: log(x/y) for x, 1 - x/y for y.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.kl_div(cr.tensor([0.0, 2.0]), 1.0)
    tensor([1.0000, 0.3863])
    """
    return add(subtract(_rel_entr(x, y), x), y)


def xlog1py(input: Operand, other: Operand) -> Tensor:
    """Return x log(1 + y), which is 0 where x is 0. Needs NumPy alone.

    Notes
    -----
    nan where y is nan. Derivatives: log(1 + y) for x, x / (1 + y) for y; 0 at x = 0, y = -1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.xlog1py(cr.tensor([0.0, 2.0]), cr.tensor([-1.0, 1.0]))
    tensor([0.0000, 1.3863])
    """
    return _xlog1py(input, other)


# --- gamma, beta, zeta ----------------------------------------------------------------------------


def gamma(input: Operand) -> Tensor:
    """Return Γ(x); it overflows soon, `lgamma` doesn't.

    Notes
    -----
    Derivative: out · digamma(x).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.gamma(cr.tensor([5.0, 0.5]))
    tensor([24.0000,  1.7725])
    """
    return _gamma(input)


def beta(a: Operand, b: Operand, /) -> Tensor:
    """Return Γ(a) Γ(b) / Γ(a + b).

    Notes
    -----
    Derivatives: out · (digamma(a) - digamma(a + b)), and likewise for b.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.beta(cr.tensor([1.0, 2.0]), 3.0)
    tensor([0.3333, 0.0833])
    """
    return _beta(a, b)


def betaln(a: Operand, b: Operand, /) -> Tensor:
    """Return log |beta(a, b)|.

    Notes
    -----
    Derivatives: digamma(a) - digamma(a + b), and likewise for b.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.betaln(cr.tensor([1.0, 2.0]), 3.0)
    tensor([-1.0986, -2.4849])
    """
    return _betaln(a, b)


def betainc(a: Operand, b: Operand, x: Operand, /) -> Tensor:
    """Return the regularised incomplete beta function, 0 at x = 0 and 1 at x = 1.

    Raises
    ------
    AutogradError
        In a backward pass, if a or b requires grad.

    Notes
    -----
    Derivative for x: x^(a-1) (1 - x)^(b-1) / beta(a, b). Those for a and b have no closed form.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.betainc(2.0, 3.0, cr.tensor([0.5]))
    tensor([0.6875])
    """
    return RECORDERS["betainc"](*real_operands("betainc", a, b, x))


def zeta(input: Operand, other: Operand) -> Tensor:
    """Return Hurwitz' zeta function, Σ (k + q)^(-x) over k = 0, 1, …; Riemann's has q = 1.

    `input` is x, `other` is q.

    Raises
    ------
    AutogradError
        In a backward pass, if x requires grad.

    Notes
    -----
    Derivative for q: -x zeta(x + 1, q). The one for x has no closed form.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.zeta(cr.tensor([2.0]), 1.0)
    tensor([1.6449])
    """
    return _zeta(input, other)


# --- exponential integrals ------------------------------------------------------------------------


def expi(input: Operand) -> Tensor:
    """Return the exponential integral Ei(x), ∫ exp(t)/t dt from -∞ to x.

    Notes
    -----
    Derivative: exp(x) / x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.expi(cr.tensor([1.0]))
    tensor([1.8951])
    """
    return _expi(input)


def exp1(input: Operand) -> Tensor:
    """Return the exponential integral E₁(x), ∫ exp(-t)/t dt from x to ∞.

    Notes
    -----
    Derivative: -exp(-x) / x.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.exp1(cr.tensor([1.0]))
    tensor([0.2194])
    """
    return _exp1(input)
