"""Distribution functions of statistics, and their inverses (DLMF 7, 8; SciPy's documentation).

A distribution function is an incomplete gamma or beta function, whose derivatives with respect to
the parameters are moments of the density. The inverses follow by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.primitives.primitive import Rule
from chainrule.scipy.special.ufunc import inverse, ufunc

Array = Any

# --- incomplete gamma functions: P(a, x), and Q = 1 - P -------------------------------------------


def _gamma_x(xp: Any, a: Array, x: Array) -> Array:
    """Return the density x^(a-1) e^(-x) / Γ(a)."""
    return xp.exp(xp.special.xlogy(a - 1, x) - x - xp.special.gammaln(a))


def _gamma_a(xp: Any, a: Array, x: Array) -> Array:
    return xp.gammainc_moment(a, x, order=1)


_P: Mapping[str, Rule] = {"a": _gamma_a, "x": _gamma_x}
_Q: Mapping[str, Rule] = {
    "a": lambda xp, a, x: -_gamma_a(xp, a, x),
    "x": lambda xp, a, x: -_gamma_x(xp, a, x),
}
inverse("gammaincinv", "a y", of=_P, solves="x")
inverse("gammainccinv", "a y", of=_Q, solves="x")

# χ² of v degrees of freedom: P(v/2, x/2); the gamma distribution: P(b, ax)
_CHI: Mapping[str, Rule] = {
    "v": lambda xp, v, x: _gamma_a(xp, v / 2, x / 2) / 2,
    "x": lambda xp, v, x: _gamma_x(xp, v / 2, x / 2) / 2,
}
_GAMMA: Mapping[str, Rule] = {
    "a": lambda xp, a, b, x: x * _gamma_x(xp, b, a * x),
    "b": lambda xp, a, b, x: _gamma_a(xp, b, a * x),
    "x": lambda xp, a, b, x: a * _gamma_x(xp, b, a * x),
}


def _complement(partials: Mapping[str, Rule], names: str) -> dict[str, Rule]:
    """Return the partials of 1 - F from those of F, which all take these arguments."""
    scope = {"partials": partials}
    return {
        x: eval(
            f"lambda xp, {names.replace(' ', ', ')}: -partials[{x!r}]"
            f"(xp, {names.replace(' ', ', ')})",
            scope,
        )
        for x in partials
    }


_CHI_C, _GAMMA_C = _complement(_CHI, "v x"), _complement(_GAMMA, "a b x")
ufunc("chdtr", "v x", given=_CHI)
ufunc("chdtrc", "v x", given=_CHI_C)
inverse("chdtri", "v p", of=_CHI_C, solves="x")
inverse("chdtriv", "p x", of=_CHI, solves="v")
ufunc("gdtr", "a b x", given=_GAMMA)
ufunc("gdtrc", "a b x", given=_GAMMA_C)
inverse("gdtria", "p b x", of=_GAMMA, solves="a")
inverse("gdtrib", "a p x", of=_GAMMA, solves="b")
inverse("gdtrix", "a b p", of=_GAMMA, solves="x")

# Poisson's: Q(k + 1, m), of the integer part of k
_POISSON: Mapping[str, Rule] = {
    "k": lambda xp, k, m: -_gamma_a(xp, k + 1, m),
    "m": lambda xp, k, m: -_gamma_x(xp, k + 1, m),
}


def _floored(rule: Rule) -> Rule:
    return lambda xp, k, m: rule(xp, xp.floor(k), m)


ufunc("pdtr", "k m", integer="k", m=_floored(_POISSON["m"]))
ufunc("pdtrc", "k m", integer="k", m=_floored(_complement(_POISSON, "k m")["m"]))
inverse("pdtri", "k y", of={"m": _POISSON["m"]}, solves="m", integer="k")
inverse("pdtrik", "p m", of=_POISSON, solves="k")

# --- incomplete beta functions: I_x(a, b) ---------------------------------------------------------


def _beta_x(xp: Any, a: Array, b: Array, x: Array) -> Array:
    """Return the density x^(a-1) (1-x)^(b-1) / B(a, b)."""
    special = xp.special
    return xp.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b))


def _beta_a(xp: Any, a: Array, b: Array, x: Array) -> Array:
    return xp.betainc_moment(a, b, x, order=(1, 0))


def _beta_b(xp: Any, a: Array, b: Array, x: Array) -> Array:
    return xp.betainc_moment(a, b, x, order=(0, 1))


_BETA: Mapping[str, Rule] = {"a": _beta_a, "b": _beta_b, "x": _beta_x}
_BETA_C = _complement(_BETA, "a b x")
ufunc("betaincc", "a b x", given=_BETA_C)
inverse("betaincinv", "a b y", of=_BETA, solves="x")
inverse("betainccinv", "a b y", of=_BETA_C, solves="x")
inverse("btdtria", "p b x", of=_BETA, solves="a")
inverse("btdtrib", "a p x", of=_BETA, solves="b")

# The binomial distribution: I of (n - k, k + 1) at 1 - p
_BINOMIAL: Mapping[str, Rule] = {
    "k": lambda xp, k, n, p: _beta_b(xp, n - k, k + 1, 1 - p) - _beta_a(xp, n - k, k + 1, 1 - p),
    "n": lambda xp, k, n, p: _beta_a(xp, n - k, k + 1, 1 - p),
    "p": lambda xp, k, n, p: -_beta_x(xp, n - k, k + 1, 1 - p),
}


def _binomial_p(xp: Any, k: Array, n: Array, p: Array) -> Array:
    """Return the derivative by p, which is 0 for k ≥ n."""
    k = xp.floor(k)
    inside = k < n
    k = xp.where(inside, k, xp.zeros_like(k))
    n = xp.where(inside, n, xp.ones_like(n))
    return xp.masked(_BINOMIAL["p"](xp, k, n, p), inside)


def _of_integer_n(name: str) -> Rule:
    """Return the forward function of a ufunc whose n SciPy takes as an integer."""

    def forward(xp: Any, k: Array, n: Array, p: Array) -> Array:
        found = getattr(xp.special, name)(k, xp.astype(n, np.dtype("l")), p)
        return xp.astype(found, p.dtype)

    return forward


ufunc("bdtr", "k n p", integer="k n", forward=_of_integer_n("bdtr"), p=_binomial_p)
ufunc(
    "bdtrc",
    "k n p",
    integer="k n",
    forward=_of_integer_n("bdtrc"),
    p=lambda xp, k, n, p: -_binomial_p(xp, k, n, p),
)
inverse(
    "bdtri",
    "k n y",
    of={"p": _binomial_p},
    solves="p",
    integer="k n",
    forward=_of_integer_n("bdtri"),
)
inverse("bdtrik", "y n p", of=_BINOMIAL, solves="k")
inverse("bdtrin", "k y p", of=_BINOMIAL, solves="n")

# The negative binomial distribution: I of (n, k + 1) at p
_NEGATIVE: Mapping[str, Rule] = {
    "k": lambda xp, k, n, p: _beta_b(xp, n, k + 1, p),
    "n": lambda xp, k, n, p: _beta_a(xp, n, k + 1, p),
    "p": lambda xp, k, n, p: _beta_x(xp, n, k + 1, p),
}


def _negative_p(xp: Any, k: Array, n: Array, p: Array) -> Array:
    return _NEGATIVE["p"](xp, xp.floor(k), n, p)


ufunc("nbdtr", "k n p", integer="k n", p=_negative_p)
ufunc("nbdtrc", "k n p", integer="k n", p=lambda xp, k, n, p: -_negative_p(xp, k, n, p))
inverse("nbdtri", "k n y", of={"p": _negative_p}, solves="p", integer="k n")
inverse("nbdtrik", "y n p", of=_NEGATIVE, solves="k")
inverse("nbdtrin", "k y p", of=_NEGATIVE, solves="n")

# Fisher's: I of (d₁/2, d₂/2) at d₁x/(d₁x + d₂)


def _fisher(rule: Rule) -> Rule:
    """Return the partial by a value w of a rule of (a, b, w), as a rule of (dfn, dfd, x)."""
    return lambda xp, dfn, dfd, x: rule(xp, dfn / 2, dfd / 2, dfn * x / (dfn * x + dfd))


def _fisher_change(xp: Any, dfn: Array, dfd: Array, x: Array) -> Array:
    """Return the density times w(1 - w), of which the changes of w are multiples."""
    total = dfn * x + dfd
    return _fisher(_beta_x)(xp, dfn, dfd, x) * (dfn * x / total) * (dfd / total)


_FISHER: Mapping[str, Rule] = {
    "dfn": lambda xp, dfn, dfd, x: (
        _fisher(_beta_a)(xp, dfn, dfd, x) / 2 + _fisher_change(xp, dfn, dfd, x) / dfn
    ),
    "dfd": lambda xp, dfn, dfd, x: (
        _fisher(_beta_b)(xp, dfn, dfd, x) / 2 - _fisher_change(xp, dfn, dfd, x) / dfd
    ),
    "x": lambda xp, dfn, dfd, x: (
        _fisher(_beta_x)(xp, dfn, dfd, x) * (dfn / (dfn * x + dfd)) * (dfd / (dfn * x + dfd))
    ),
}
ufunc("fdtr", "dfn dfd x", given=_FISHER)
ufunc("fdtrc", "dfn dfd x", given=_complement(_FISHER, "dfn dfd x"))
inverse("fdtri", "dfn dfd p", of=_FISHER, solves="x")
inverse("fdtridfd", "dfn p x", of=_FISHER, solves="dfd")

# Student's: for x < 0 half of I of (df/2, 1/2) at df/(df + x²)


def _student_t(xp: Any, df: Array, x: Array) -> Array:
    special = xp.special
    half = df / 2
    log = special.betaln(half, 0.5 * xp.ones_like(df)) + (half + 0.5) * xp.log1p(x * x / df)
    return xp.exp(-log) / xp.sqrt(df)


def _student_df(xp: Any, df: Array, x: Array) -> Array:
    w = x * x / (df + x * x)
    half = 0.5 * xp.ones_like(df)
    moment = -_beta_b(xp, half, df / 2, w) / 2  # of the tail, by the other parameter
    return -xp.sign(x) * moment / 2 - x / df * _student_t(xp, df, x) / 2


_STUDENT: Mapping[str, Rule] = {"df": _student_df, "x": _student_t}
ufunc("stdtr", "df x", given=_STUDENT)
inverse("stdtridf", "p x", of=_STUDENT, solves="df")
inverse("stdtrit", "df p", of=_STUDENT, solves="x")

# --- normal distributions of given mean or deviation ----------------------------------------------


def _density_root(xp: Any, q: Array) -> Array:
    """Return the derivative of the normal quantile q by its probability."""
    return 2.5066282746310002 * xp.exp(q * q / 2)


ufunc(
    "nrdtrimn",  # x - std Φ⁻¹(p)
    "p std x",
    p=lambda xp, p, std: -std * _density_root(xp, xp.special.ndtri(p)),
    std=lambda xp, p: -xp.special.ndtri(p),
    x=lambda xp, x: xp.ones_like(x),
)
ufunc(
    "nrdtrisd",  # (x - mn) / Φ⁻¹(p)
    "mn p x",
    mn=lambda xp, p: -1 / xp.special.ndtri(p),
    p=lambda xp, p, out: -out / xp.special.ndtri(p) * _density_root(xp, xp.special.ndtri(p)),
    x=lambda xp, p: 1 / xp.special.ndtri(p),
)
