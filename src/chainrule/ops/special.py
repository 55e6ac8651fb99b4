"""Special functions: error, gamma, beta, zeta and Bessel functions, normal distribution, entropies.

Functions of real numbers convert integers to the default dtype. erf, erfc, lgamma, digamma, sinc,
logit, ndtr, log_expit, entr, xlog1py and spherical_bessel_j0 need NumPy only; the others need SciPy
(the extra `scipy`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index

from chainrule.arguments import Operand, floating, written
from chainrule.autograd.inplace import in_place
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.operation import inplace_form, operation
from chainrule.ops.arithmetic import add, multiply, negative, subtract
from chainrule.ops.binary import logaddexp
from chainrule.ops.elementary import clamp
from chainrule.ops.wrappers import binary_real, real_floating, real_operands, unary_real
from chainrule.primitives import binary, special
from chainrule.primitives.primitive import Primitive

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
    "erf_",
    "erfc_",
    "i0_",
    "logit_",
    "sinc_",
]

_erf = unary_real(special.erf)
_erfc = unary_real(special.erfc)
_erfinv = unary_real(special.erfinv)
_lgamma = unary_real(special.lgamma)
_polygamma = unary_real(special.polygamma)
_digamma = unary_real(special.polygamma, "digamma")
_i0 = unary_real(special.bessel_i, "i0")
_logit = unary_real(special.logit)
_gammainc = binary_real(special.gammainc)
_gammaincc = binary_real(special.gammaincc)


@operation(inplace=True, scipy="erf")
def erf(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """Return the error function, 2/√π ∫ exp(-t²) dt from 0 to x.

    Parameters
    ----------
    input : Tensor
        Real numbers.
    out : Tensor, optional
        Where the result is written, if nothing requires grad.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    DTypeError
        If `input` is complex.

    Notes
    -----
    Derivative: 2/√π exp(-x²). Computed by SciPy where it is installed, else by a Chebyshev
    series; both are accurate to some units in the last place.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.erf(cr.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8427])
    """
    return _erf(input) if out is None else written(_erf(input), out)


erf_ = inplace_form(erf)


@operation(inplace=True, scipy="erfc")
def erfc(input: Operand) -> Tensor:
    """Return 1 - erf(x), accurate also where it is tiny; the argument is that of `erf`.

    Notes
    -----
    Derivative: -2/√π exp(-x²). Computed by SciPy where it is installed, else by the method of [1]_.

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


erfc_ = inplace_form(erfc)


@operation(inplace=True, scipy="erfinv")
def erfinv(input: Operand) -> Tensor:
    """Return the inverse of `erf`: ±inf at ±1, nan outside of [-1, 1].

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


@operation(inplace=True, scipy="gammaln")
def lgamma(input: Operand) -> Tensor:
    """Return log |Γ(x)|, which is inf at 0, -1, -2, …

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


@operation(inplace=True, scipy="psi")
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


@operation()
def polygamma_(x: Tensor, n: int) -> Tensor:
    """Replace each element x by the n-th derivative of digamma at x."""
    return in_place(x, "polygamma_", lambda t: polygamma(n, t))


@operation(inplace=True)
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
    Definition: p (p - 1) / 4 log π + Σ lgamma(x + (1 - j) / 2), j = 1 … p.
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


@operation(inplace=True, scipy="i0", numpy="i0 x")
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
    Derivative: the Bessel function of order 1, `chainrule.special.i1`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.i0(cr.tensor([0.0, 1.0]))
    tensor([1.0000, 1.2661])
    """
    return _i0(input, order=0)


i0_ = inplace_form(i0)


@operation(inplace=True, scipy="gammainc")
def igamma(input: Operand, other: Operand) -> Tensor:
    """Return the regularised lower incomplete gamma function, which rises from 0 at x = 0 to 1.

    Also named `gammainc` in `chainrule.special`.

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
        If an operand is complex.
    MissingExtraError
        If SciPy is not installed.

    Notes
    -----
    Derivative for x: x^(a-1) exp(-x) / Γ(a); for a: the integral of the density times log t -
    digamma(a), by quadrature.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.igamma(2.0, cr.tensor([1.0]))
    tensor([0.2642])
    """
    return _gammainc(input, other)


@operation(inplace=True, scipy="gammaincc")
def igammac(input: Operand, other: Operand) -> Tensor:
    """Return the regularised upper incomplete gamma function, 1 - igamma(a, x).

    Accurate also where it is tiny. The arguments are those of `igamma`. Also named `gammaincc` in
    `chainrule.special`.

    Notes
    -----
    Derivative for x: -x^(a-1) exp(-x) / Γ(a); for a: minus that of `igamma`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.igammac(2.0, cr.tensor([1.0]))
    tensor([0.7358])
    """
    return _gammaincc(input, other)


@operation(inplace=True, numpy="sinc x")
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
    and their power series, so that derivatives of every order are accurate at and near 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sinc(cr.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """
    return special.spherical_bessel_j.apply(multiply(floating(input), math.pi), order=0)


sinc_ = inplace_form(sinc)


@operation(inplace=True, scipy="logit")
def logit(input: Operand, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), the inverse of `sigmoid`.

    Parameters
    ----------
    input : Tensor
        Probabilities. The result is -inf at 0, inf at 1, and nan outside of [0, 1].
    eps : float, optional
        Clamp `input` to the range from eps to 1 - eps first.

    Returns
    -------
    Tensor, shape of `input`

    Raises
    ------
    DTypeError
        If `input` is complex.

    Notes
    -----
    Derivative: 1 / (x (1 - x)); inf at 0 and 1, nan outside of [0, 1]. With `eps`, 0 where `input`
    is clamped.

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


logit_ = inplace_form(logit)


# --- error functions and the normal distribution --------------------------------------------------

_erfcx = unary_real(special.erfcx)
_erfi = unary_real(special.erfi)
_dawsn = unary_real(special.dawsn)
_ndtri = unary_real(special.ndtri)
_log_ndtr = unary_real(special.log_ndtr)
_entr = unary_real(special.entr)
_rel_entr = binary_real(special.rel_entr)
_xlog1py = binary_real(binary.xlog1py)
_gamma = unary_real(special.gamma)
_beta = binary_real(special.beta)
_betaln = binary_real(special.betaln)
_zeta = binary_real(special.zeta)
_expi = unary_real(special.expi)
_exp1 = unary_real(special.exp1)


@operation(method=False, scipy="erfcx")
def erfcx(input: Operand) -> Tensor:
    """Return exp(x²) erfc(x), without overflow or underflow for large x.

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


@operation(method=False, scipy="erfi")
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


@operation(method=False, scipy="dawsn")
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


@operation(method=False, scipy="ndtr")
def ndtr(input: Operand) -> Tensor:
    """Return the cumulative distribution function of the normal distribution. Needs NumPy only.

    Notes
    -----
    Computed as erfc(-x/√2) / 2, accurate in both tails. Derivative: the density,
    exp(-x²/2) / √(2π).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.ndtr(cr.tensor([-1.0, 0.0]))
    tensor([0.1587, 0.5000])
    """
    scaled = multiply(real_floating(input, "ndtr"), -0.7071067811865476)  # 1/√2
    return multiply(special.erfc.apply(scaled), 0.5)


@operation(method=False, scipy="ndtri")
def ndtri(input: Operand) -> Tensor:
    """Return the inverse of `ndtr`: -inf at 0, inf at 1, nan outside of [0, 1].

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


@operation(method=False, scipy="log_ndtr")
def log_ndtr(input: Operand) -> Tensor:
    """Return log ndtr(x), accurate also where ndtr(x) underflows.

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


@operation(method=False, scipy="log_expit")
def log_expit(input: Operand) -> Tensor:
    """Return log sigmoid(x), without underflow. Needs NumPy only.

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


@operation(method=False, scipy="entr")
def entr(input: Operand) -> Tensor:
    """Return -x log x, which is 0 at 0 and -inf for x < 0. Needs NumPy only.

    Notes
    -----
    Derivative: -1 - log x; inf at 0, nan for x < 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.entr(cr.tensor([0.0, 0.5]))
    tensor([0.0000, 0.3466])
    """
    return _entr(input)


@operation(method=False, scipy="rel_entr")
def rel_entr(x: Operand, y: Operand, /) -> Tensor:
    """Return x log(x/y), which is 0 for x = 0, y ≥ 0, and inf if x or y is negative.

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


@operation(method=False, scipy="kl_div")
def kl_div(x: Operand, y: Operand, /) -> Tensor:
    """Return x log(x/y) - x + y, as scipy.special.kl_div does.

    The loss of the same name is `chainrule.nn.functional.kl_div`.

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


@operation(method=False, scipy="xlog1py")
def xlog1py(input: Operand, other: Operand) -> Tensor:
    """Return x log(1 + y), which is 0 where x is 0. Needs NumPy only.

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


# --- gamma, beta and zeta functions ---------------------------------------------------------------


@operation(method=False, scipy="gamma")
def gamma(input: Operand) -> Tensor:
    """Return Γ(x), which overflows for moderate x; `lgamma` does not.

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


@operation(method=False, scipy="beta")
def beta(a: Operand, b: Operand, /) -> Tensor:
    """Return Γ(a) Γ(b) / Γ(a + b).

    Notes
    -----
    Derivative for a: out · (digamma(a) - digamma(a + b)); for b likewise.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.beta(cr.tensor([1.0, 2.0]), 3.0)
    tensor([0.3333, 0.0833])
    """
    return _beta(a, b)


@operation(method=False, scipy="betaln")
def betaln(a: Operand, b: Operand, /) -> Tensor:
    """Return log |beta(a, b)|.

    Notes
    -----
    Derivative for a: digamma(a) - digamma(a + b); for b likewise.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.betaln(cr.tensor([1.0, 2.0]), 3.0)
    tensor([-1.0986, -2.4849])
    """
    return _betaln(a, b)


@operation(method=False, scipy="betainc")
def betainc(a: Operand, b: Operand, x: Operand, /) -> Tensor:
    """Return the regularised incomplete beta function, which rises from 0 at x = 0 to 1 at x = 1.

    Notes
    -----
    Derivative for x: x^(a-1) (1 - x)^(b-1) / beta(a, b); for a: the integral of the density times
    log t less its mean, by quadrature; for b likewise of log(1 - t).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.betainc(2.0, 3.0, cr.tensor([0.5]))
    tensor([0.6875])
    """
    return special.betainc.apply(*real_operands("betainc", a, b, x))


@operation(method=False, scipy="_zeta")
def zeta(input: Operand, other: Operand) -> Tensor:
    """Return the Hurwitz zeta function, Σ (k + q)^(-x) over k = 0, 1, …; Riemann's has q = 1.

    `input` is x, `other` is q.

    Raises
    ------
    AutogradError
        In a backward pass, if x requires grad.

    Notes
    -----
    Derivative for q: -x zeta(x + 1, q). The derivative for x has no closed form.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.zeta(cr.tensor([2.0]), 1.0)
    tensor([1.6449])
    """
    return _zeta(input, other)


# --- exponential integrals ------------------------------------------------------------------------


@operation(method=False, scipy="expi")
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


@operation(method=False, scipy="exp1")
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


# --- Bessel functions -----------------------------------------------------------------------------
#
# Derivatives combine the functions of adjacent orders (DLMF 10.6.1, 10.29.1, 10.51.2), which also
# holds at 0.


def _bessel_function(
    primitive: Primitive,
    order: int,
    name: str,
    summary: str,
    derivative: str,
    values: str,
    scipy: str = "",
) -> Callable[[Operand], Tensor]:
    """Return the public function of one order of a family of Bessel functions."""
    apply = unary_real(primitive, name)

    def function(input: Operand) -> Tensor:
        return apply(input, order=order)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Return {summary}.

    Notes
    -----
    Derivative: {derivative}.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.special.{name}(cr.tensor([1.0, 2.0]))
    tensor([{values}])
    """
    operation(method=False, scipy=scipy)(function)
    return function


bessel_j0 = _bessel_function(
    *(special.bessel_j, 0, "bessel_j0", "the Bessel function of the first kind of order 0"),
    *("-bessel_j1(x)", "0.7652, 0.2239", "j0"),
)
bessel_j1 = _bessel_function(
    *(special.bessel_j, 1, "bessel_j1", "the Bessel function of the first kind of order 1"),
    *("(J₀(x) - J₂(x)) / 2", "0.4401, 0.5767", "j1"),
)
bessel_y0 = _bessel_function(
    *(special.bessel_y, 0, "bessel_y0", "the Bessel function of the second kind of order 0"),
    *("-bessel_y1(x)", "0.0883, 0.5104", "y0"),
)
bessel_y1 = _bessel_function(
    *(special.bessel_y, 1, "bessel_y1", "the Bessel function of the second kind of order 1"),
    *("(Y₀(x) - Y₂(x)) / 2", "-0.7812, -0.1070", "y1"),
)
spherical_bessel_j0 = _bessel_function(
    *(special.spherical_bessel_j, 0, "spherical_bessel_j0", "sin(x) / x, which is 1 at 0"),
    *("(cos x - out) / x, and 0 at 0", "0.8415, 0.4546"),
)
modified_bessel_i0 = _bessel_function(
    *(
        special.bessel_i,
        0,
        "modified_bessel_i0",
        "the modified Bessel function of the first kind, I₀",
    ),
    *("i1(x)", "1.2661, 2.2796"),
)
modified_bessel_i1 = _bessel_function(
    *(
        special.bessel_i,
        1,
        "modified_bessel_i1",
        "the modified Bessel function of the first kind, I₁",
    ),
    *("(I₀(x) + I₂(x)) / 2", "0.5652, 1.5906"),
)
modified_bessel_k0 = _bessel_function(
    *(
        special.bessel_k,
        0,
        "modified_bessel_k0",
        "the modified Bessel function of the second kind, K₀",
    ),
    *("-modified_bessel_k1(x)", "0.4210, 0.1139", "k0"),
)
modified_bessel_k1 = _bessel_function(
    *(
        special.bessel_k,
        1,
        "modified_bessel_k1",
        "the modified Bessel function of the second kind, K₁",
    ),
    *("-(K₀(x) + K₂(x)) / 2", "0.6019, 0.1399", "k1"),
)
scaled_modified_bessel_k0 = _bessel_function(
    *(special.bessel_ke, 0, "scaled_modified_bessel_k0", "exp(x) modified_bessel_k0(x)"),
    *("out - scaled_modified_bessel_k1(x)", "1.1445, 0.8416", "k0e"),
)
scaled_modified_bessel_k1 = _bessel_function(
    *(special.bessel_ke, 1, "scaled_modified_bessel_k1", "exp(x) modified_bessel_k1(x)"),
    *("out - exp(x) (K₀(x) + K₂(x)) / 2", "1.6362, 1.0335", "k1e"),
)
i0e = _bessel_function(
    *(
        special.bessel_ie,
        0,
        "i0e",
        "exp(-|x|) i0(x)",
        "i1e(x) - sign(x) · out",
        "0.4658, 0.3085",
        "i0e",
    ),
)
i1 = _bessel_function(
    *(special.bessel_i, 1, "i1", "the modified Bessel function of the first kind of order 1"),
    *("(I₀(x) + I₂(x)) / 2", "0.5652, 1.5906", "i1"),
)
i1e = _bessel_function(
    *(special.bessel_ie, 1, "i1e", "exp(-|x|) i1(x)"),
    *("exp(-|x|) (I₀(x) + I₂(x)) / 2 - sign(x) · out", "0.2079, 0.2153", "i1e"),
)


@operation(method="polygamma")
def polygamma_method(x: Tensor, n: int) -> Tensor:
    """Return the n-th derivative of digamma at each element."""
    return polygamma(n, x)
