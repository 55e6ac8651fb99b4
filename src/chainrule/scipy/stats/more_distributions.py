"""Distributions that are described by SciPy's own formulas."""

from __future__ import annotations

from typing import Any

from chainrule import ops
from chainrule.scipy.stats.description import Description, Function
from chainrule.scipy.stats.distribution import Distribution
from chainrule.scipy.stats.ratios import SQRT_2PI_LOG, sp
from chainrule.scipy.stats.scipy_formulas import (
    conditions,
    formulas,
    moment,
    own_method,
    recorded,
    support,
)

CONTINUOUS = """
    alpha argus crystalball dgamma dpareto_lognorm dweibull erlang exponpow foldcauchy foldnorm
    gausshyper genexpon genhalflogistic genhyperbolic geninvgauss gibrat gompertz halfgennorm
    irwinhall jf_skew_t kappa3 kappa4 levy_l loglaplace mielke ncf nct ncx2 norminvgauss pearson3
    powerlognorm powernorm rdist recipinvgauss rel_breitwigner rice skewcauchy trapezoid truncpareto
    truncweibull_min tukeylambda wald wrapcauchy"""
DISCRETE = "boltzmann nhypergeom skellam"
NAMES = f"{CONTINUOUS} {DISCRETE}"
"""Names of distributions. The others of SciPy's are computed in compiled code."""

_COUNTS = {"nhypergeom": "M n r", "boltzmann": "N", "irwinhall": "n"}
"""Shapes that are integers, by name."""


def _log_generalized_inverse_gauss(x: Any, p: Any, b: Any) -> Any:
    return (p - 1) * ops.log(x) - b * (x + 1 / x) / 2 - ops.log(2 * sp.kve(p, b)) + b


def _log_generalized_hyperbolic(x: Any, p: Any, a: Any, b: Any) -> Any:
    root, radius = ops.sqrt((a - b) * (a + b)), ops.sqrt(1 + x * x)
    return (
        p * ops.log(root)
        - SQRT_2PI_LOG
        - (p - 0.5) * ops.log(a / radius)
        - ops.log(sp.kve(p, root))
        + root
        + ops.log(sp.kve(p - 0.5, a * radius))
        - a * radius
        + b * x
    )


def _log_skellam(k: Any, mu1: Any, mu2: Any) -> Any:
    mean = ops.sqrt(mu1 * mu2)
    distance = ops.square(ops.sqrt(mu1) - ops.sqrt(mu2))
    return k / 2 * ops.log(mu1 / mu2) + ops.log(sp.ive(ops.abs(k), 2 * mean)) - distance


def _double_gamma(sign: int) -> Function:
    """Return the probability up to x, or above it, with formulas that hold on both sides of 0."""

    def probability(x: Any, a: Any) -> Any:
        below = ops.greater(0.0, x * sign)
        size = ops.abs(x)
        return ops.where(below, sp.gammaincc(a, size) / 2, 0.5 + sp.gammainc(a, size) / 2)

    return probability


_IN_PLACE: dict[str, dict[str, Any]] = {
    "dgamma": {"cdf": _double_gamma(1), "sf": _double_gamma(-1), "ppf": None, "isf": None},
    "geninvgauss": {"log_density": _log_generalized_inverse_gauss, "cdf": None, "sf": None},
    "genhyperbolic": {"log_density": _log_generalized_hyperbolic, "cdf": None, "sf": None},
    "skellam": {"log_density": _log_skellam, "cdf": None, "sf": None},
    "norminvgauss": {"ppf": None, "isf": None},
}
"""What replaces SciPy's formulas, where these are compiled or searched for, or NaN on one side."""


def distribution_of(name: str) -> Distribution:
    """Return a distribution of SciPy's, with SciPy's formulas."""
    own = formulas(name)
    shapes = (own.shapes or "").replace(",", " ").split()
    density, log_density = own_method(own, "pdf", "pmf"), own_method(own, "logpdf", "logpmf")
    given: dict[str, Any] = {
        key: recorded(name, method) for key in _METHODS if (method := own_method(own, key))
    }
    if log_density is None and density is not None:
        given["pdf"] = recorded(name, density)
    given["log_density"] = _log_density(name, density, log_density)
    given |= _IN_PLACE.get(name, {})
    if "log_density" in _IN_PLACE.get(name, {}):
        given.pop("pdf", None)
    described = Description(
        name,
        " ".join(shapes),
        support=support(own),
        valid=conditions(own) if own_method(own, "argcheck") else None,
        discrete=name in DISCRETE.split(),
        is_open=own._support_mask.__name__ == "_open_support_mask",
        counts=_COUNTS.get(name, ""),
        mean=moment(name, 0),
        var=moment(name, 1),
        **given,
    )
    return Distribution(described)


_METHODS = ("cdf", "sf", "logcdf", "logsf", "ppf", "isf", "entropy")


def _log_density(name: str, density: Any, log_density: Any) -> Function:
    if log_density is not None:
        return recorded(name, log_density)
    density = recorded(name, density)
    return lambda *args: ops.log(density(*args))
