"""SciPy's formulas of distributions, run on arrays that record."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.conversions import DifferentiatedError
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.operands import plain
from chainrule.errors import AutogradError, MissingRuleError
from chainrule.interop.operands import tensor_of
from chainrule.numpy.array_class import as_ndarrays, in_float64
from chainrule.scipy.own_code import replace_compiled, run_again
from chainrule.scipy.special.noncentral import DENSITIES
from chainrule.scipy.stats.description import Function, scipy_stats
from chainrule.scipy.stats.ratios import sp

__all__ = ["conditions", "formulas", "moment", "own_method", "recorded", "support"]

_TAILS: dict[str, Callable[..., Any]] = {
    "_ncx2_sf": lambda x, df, nc: 1 - sp.chndtr(x, df, nc),
    "_ncf_sf": lambda x, dfn, dfd, nc: 1 - sp.ncfdtr(dfn, dfd, nc, x),
    "_nct_sf": lambda x, df, nc: 1 - sp.nctdtr(df, nc, x),
    "_beta_pdf": lambda x, a, b: np.exp(
        sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b)
    ),
    "_log1mexp": lambda x: np.log(-np.expm1(x)),
    "_beta_ppf": lambda q, a, b: sp.betaincinv(a, b, q),
    "_ncx2_pdf": lambda x, df, nc: DENSITIES["ncx2"](TENSOR_XP, x, df, nc),
    "_ncf_pdf": lambda x, dfn, dfd, nc: DENSITIES["ncf"](TENSOR_XP, dfn, dfd, nc, x),
    "_nct_pdf": lambda x, df, nc: DENSITIES["nct"](TENSOR_XP, df, nc, x),
}
"""Private ufuncs of SciPy's, by public ones."""
replace_compiled("scipy.special._ufuncs", **_TAILS)


@functools.cache
def formulas(name: str) -> Any:
    """Return SciPy's distribution, of a class whose code was run again."""
    kind = type(getattr(scipy_stats, name))
    for base in ("rv_continuous", "rv_discrete"):
        replace_compiled(_BASES, **{base: _light(base)})
    return getattr(run_again(kind.__module__), kind.__name__)(name=name)


_BASES = "scipy.stats._distn_infrastructure"


@functools.cache
def _light(base: str) -> type:
    """Return SciPy's base class, whose instances don't write documentation when they are made."""
    kind = getattr(scipy_stats, base)

    def __init__(self: Any, *_: Any, **settings: Any) -> None:
        original = getattr(scipy_stats, settings["name"])
        vars(self).update({k: v for k, v in vars(original).items() if k in _KEPT})

    own: dict[str, Any] = {"__init__": __init__, "is_light": True}
    if base == "rv_continuous":
        own |= {
            "_logpdf": lambda self, x, *shapes: np.log(self._pdf(x, *shapes)),
            "_sf": lambda self, x, *shapes: 1 - self._cdf(x, *shapes),
            "_logcdf": lambda self, x, *shapes: np.log(self._cdf(x, *shapes)),
            "_logsf": lambda self, x, *shapes: np.log(self._sf(x, *shapes)),
        }
    return type(base, (kind,), own)


_KEPT = frozenset(["a", "b", "name", "shapes", "numargs", "badvalue", "xtol", "inc", "moment_type"])


def own_method(own: Any, *names: str) -> Callable[..., Any] | None:
    """Return a method that a class of SciPy's defines itself."""
    for kind in type(own).__mro__:
        if "is_light" in vars(kind):
            return None
        for name in names:
            if f"_{name}" in vars(kind):
                found: Callable[..., Any] = getattr(own, f"_{name}")
                return found
    return None


def recorded(name: str, formula: Callable[..., Any]) -> Function:
    """Return a formula of SciPy's as one of tensors; SciPy has vectors of one length."""

    @functools.wraps(formula)
    def function(*args: Any) -> Any:
        shape, vectors = _vectors(args)
        try:
            found = in_float64(formula, *as_ndarrays(vectors))
        except (DifferentiatedError, MissingRuleError, TypeError, AttributeError) as error:
            method = formula.__name__[1:]
            raise AutogradError(
                f"scipy.stats.{name}.{method} has no derivative: SciPy computes it, in part, in "
                "compiled code. Pass x.detach() if it is to count as constant"
            ) from error
        found = plain(tensor_of(found))
        return ops.reshape(found, shape) if found.ndim else found

    return function


def _vectors(args: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return the shape of operands together, and each as a vector of so many elements."""
    tensors = ops.broadcast_tensors(*map(tensor_of, args)) if args else ()
    shape = tensors[0].shape if tensors else ()
    return shape, [ops.reshape(x, (-1,)) for x in tensors]


def conditions(own: Any) -> Function:
    """Return where SciPy takes the shapes, as a function of these."""

    def valid(*shapes: Any) -> Any:
        return tensor_of(own._argcheck(*as_ndarrays([s.detach() for s in shapes])))

    return valid


def support(own: Any) -> Any:
    """Return both ends of the support, or a function of the shapes that does."""
    if not own_method(own, "get_support"):
        return own.a, own.b

    def ends(*shapes: Any) -> Any:
        given, vectors = _vectors(shapes)
        found = own._get_support(*as_ndarrays(vectors))
        return tuple([_end(end, given) for end in found])

    return ends


def _end(end: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(end, int | float) and math.isinf(end):
        return end
    found = plain(tensor_of(end))
    return ops.reshape(found, shape) if found.ndim else found


def moment(name: str, which: int) -> Function | None:
    """Return the mean, the variance, the skewness or the kurtosis: of 0 to 3, or None.

    By SciPy's formula for it, or by the one for powers.
    """
    own = formulas(name)
    stats, powers = own_method(own, "stats"), own_method(own, "munp")
    if stats is None and powers is None:
        return None
    has_choice = stats is not None and "moments" in inspect.signature(stats).parameters
    settings = {"moments": "mvsk"} if has_choice else {}

    def found(*shapes: Any) -> Any:
        value = stats(*shapes, **settings)[which] if stats is not None else None
        if value is None and powers is not None:
            value = _central(which, *[powers(n, *shapes) for n in range(1, which + 2)])
        if value is None:
            raise MissingRuleError("no formula")
        return value

    found.__name__ = ("_mean", "_var", "_skewness", "_kurtosis")[which]
    return recorded(name, found)


def _central(which: int, mean: Any, *powers: Any) -> Any:
    """Return a moment of the mean of powers."""
    if not which:
        return mean
    var = powers[0] - mean**2
    if which == 1:
        return var
    third = powers[1] - 3 * mean * powers[0] + 2 * mean**3
    if which == 2:
        return third / var**1.5
    fourth = powers[2] - 4 * mean * powers[1] + 6 * mean**2 * powers[0] - 3 * mean**4
    return fourth / var**2 - 3
