"""Noncentral distribution functions, and those of test statistics (Kolmogorov, Tukey).

Partials of the noncentral ones: N. L. Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate
Distributions 2, 1995, chapters 29 to 31.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chainrule.primitives.primitive import Rule
from chainrule.scipy.special.ufunc import inverse, ufunc

Array = Any

# --- noncentral χ² --------------------------------------------------------------------------------


def _chi_density(xp: Any, x: Array, df: Array, nc: Array) -> Array:
    """Return exp(-(x + nc)/2) (x/2)^(df/2 - 1) 0F1(df/2, x nc/4) / (2Γ(df/2)).

    For a large product of x and nc by the scaled Bessel function, as both factors overflow.
    """
    special = xp.special
    product = x * nc
    large = product > 1e4
    small = xp.where(large, xp.ones_like(product), product)
    base = special.xlogy(df / 2 - 1, x / 2) - (x + nc) / 2
    direct = xp.exp(base - special.gammaln(df / 2)) * special.hyp0f1(df / 2, small / 4) / 2
    root = xp.sqrt(xp.where(large, product, xp.ones_like(product)))
    order = df / 2 - 1
    shift = special.xlogy(order, root / 2)
    return xp.where(large, xp.exp(base + root - shift) * special.ive(order, root) / 2, direct)


_CHI: Mapping[str, Rule] = {
    "x": _chi_density,
    "nc": lambda xp, x, df, nc: -_chi_density(xp, x, df + 2, nc),
}
ufunc("chndtr", "x df nc", given=_CHI)
inverse("chndtrix", "p df nc", of=_CHI, solves="x")
inverse("chndtrinc", "x df p", of=_CHI, solves="nc")
ufunc("chndtridf", "x p nc")

# --- noncentral F ---------------------------------------------------------------------------------


def _f_density(xp: Any, dfn: Array, dfd: Array, nc: Array, f: Array) -> Array:
    special = xp.special
    total = dfn * f + dfd
    x, rest, a, b = dfn * f / total, dfd / total, dfn / 2, dfd / 2
    log = special.xlogy(a - 1, x) + special.xlogy(b, rest) - special.betaln(a, b) - nc * rest / 2
    return xp.exp(log) * special.hyp1f1(-b, a, -nc * x / 2) * dfn / total  # x / f, also at 0


_F: Mapping[str, Rule] = {
    "f": _f_density,
    "nc": lambda xp, dfn, dfd, nc, f: (
        (
            xp.special.ncfdtr(dfn + 2, dfd, nc, f * dfn / (dfn + 2))
            - xp.special.ncfdtr(dfn, dfd, nc, f)
        )
        / 2
    ),
}
ufunc("ncfdtr", "dfn dfd nc f", given=_F)
inverse("ncfdtri", "dfn dfd nc p", of=_F, solves="f")
inverse("ncfdtrinc", "dfn dfd p f", of=_F, solves="nc")
ufunc("ncfdtridfd", "dfn p nc f")
ufunc("ncfdtridfn", "p dfd nc f")

# --- noncentral t ---------------------------------------------------------------------------------


def _moment(xp: Any, power: Array, df: Array, nc: Array, x: Array) -> Array:
    """Return ∫ z^power exp(-(z - c)²/2) dz over z > 0, c = nc x / √(t² + df) (DLMF 12.5.1)."""
    c = nc * x / xp.sqrt(x * x + df)
    return xp.exp(xp.special.gammaln(power + 1) - c * c / 4) * xp.special.pbdv(-power - 1, -c)[0]


def _t_factor(xp: Any, df: Array, nc: Array, x: Array) -> Array:
    share = df / (df + x * x)
    log = xp.special.gammaln(df / 2) + 0.6931471805599453 * (df / 2 - 1)  # log 2
    return 0.3989422804014327 * xp.exp(-share * nc * nc / 2 + df / 2 * xp.log(share) - log)


_T: Mapping[str, Rule] = {
    "nc": lambda xp, df, nc, x: -_t_factor(xp, df, nc, x) * _moment(xp, df - 1, df, nc, x),
    "x": lambda xp, df, nc, x: (
        _t_factor(xp, df, nc, x) * _moment(xp, df, df, nc, x) / xp.sqrt(df + x * x)
    ),
}
ufunc("nctdtr", "df nc x", given=_T)
inverse("nctdtrit", "df nc p", of=_T, solves="x")
inverse("nctdtrinc", "df p x", of=_T, solves="nc")
ufunc("nctdtridf", "p nc x")

DENSITIES: Mapping[str, Rule] = {"ncx2": _CHI["x"], "ncf": _F["f"], "nct": _T["x"]}
"""Densities of the distributions, with the parameters of their probabilities."""

# --- Kolmogorov's and Smirnov's statistics --------------------------------------------------------


def _kolmogorov_y(xp: Any, y: Array) -> Array:
    """Return the derivative of 2 Σ (-1)^(k-1) exp(-2k²y²); for y < 1 of its theta transform."""
    small = y < 1
    near = xp.where(small, y, xp.ones_like(y))
    far = xp.where(small, xp.ones_like(y), y)
    left = right = xp.zeros_like(y)
    square = near * near
    for k in range(1, 5):
        odd = (2 * k - 1) ** 2 * 1.2337005501361697  # π²/8
        left = left + (2 * odd / square - 1) / square * xp.exp(-odd / square)
        right = right + (-1) ** (k - 1) * k * k * xp.exp(-2 * k * k * far * far)
    # y = 0: exp(-∞) · ∞; the function is 1 from there on
    left = xp.where((square < 1e-3) | (near < 0), xp.zeros_like(left), left)
    return xp.where(small, -2.5066282746310002 * left, -8 * far * right)


_STEPS = "it is a sum of n terms, which is not written out"
ufunc("kolmogorov", "y", y=_kolmogorov_y)
inverse("kolmogi", "p", of={"y": _kolmogorov_y}, solves="y")
ufunc("smirnov", "n d", integer="n", reasons={"d": _STEPS})
ufunc("smirnovi", "n p", integer="n", reasons={"p": _STEPS})

# --- Tukey's lambda: the quantile is (p^λ - (1 - p)^λ) / λ ----------------------------------------


def _tukey_x(xp: Any, lmbda: Array, out: Array) -> Array:
    inside = (out > 0) & (out < 1)  # the support ends where λ > 0
    out = xp.where(inside, out, 0.5 * xp.ones_like(out))
    found = 1 / (xp.pow(out, lmbda - 1) + xp.pow(1 - out, lmbda - 1))
    return xp.where(inside, found, xp.zeros_like(found))


def _tukey_lambda(xp: Any, lmbda: Array, out: Array) -> Array:
    inside = (out > 0) & (out < 1)
    slope, out = _tukey_x(xp, lmbda, out), xp.where(inside, out, 0.5 * xp.ones_like(out))
    total: Array = None
    for p, sign in ((out, 1), (1 - out, -1)):
        log = xp.log(p)
        one = xp.ones_like(lmbda * log)
        term = sign * log * log * xp.special.hyp1f1(2 * one, 3 * one, lmbda * log) / 2
        total = term if total is None else total + term
    return -total * slope


ufunc("tklmbda", "x lmbda", x=_tukey_x, lmbda=_tukey_lambda)
