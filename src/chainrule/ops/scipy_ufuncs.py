"""scipy.special's ufuncs called on tensors: which function of ours each of them is, by its name.

They are found by name, so that SciPy is imported only by who calls it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand
from chainrule.autograd.tensor import Tensor
from chainrule.ops import (
    arithmetic,
    bessel,
    binary,
    blends,
    comparison,
    elementary,
    probability,
    special,
)
from chainrule.ops.wrappers import of_reals

where: Any = import_module("chainrule.ops.where")

Function = Callable[..., Any]


def _of_order(primitive: str) -> Function:
    """Return the ufunc of order and argument of a family of Bessel functions."""
    recorded = of_reals(primitive)

    def function(order: Operand, x: Operand) -> Tensor:
        if isinstance(order, Tensor) or np.ndim(order):
            raise TypeError(
                f"{primitive}: expected a number as the order, got {type(order).__name__}: it has "
                "no derivative for the order. Call it for one order after the other"
            )
        return recorded(x, order=getattr(order, "item", lambda: order)())

    return function


def _exp10(x: Operand) -> Tensor:
    return arithmetic.pow(10.0, x)


def _loggamma(x: Operand) -> Any:
    value = special.lgamma(x)
    return where.where(comparison.less(x, 0), float("nan"), value)  # complex, left of 0


def _cosm1(x: Operand) -> Tensor:
    half = RECORDERS["sin"](arithmetic.multiply(x, 0.5))
    return arithmetic.multiply(RECORDERS["square"](half), -2.0)


def _erfcinv(x: Operand) -> Tensor:
    return arithmetic.multiply(probability.ndtri(arithmetic.multiply(x, 0.5)), -math.sqrt(0.5))


_SAME_NAMES = {
    special: "erf erfc erfinv i0 logit",
    binary: "xlogy",
    blends: "exp2",
    elementary: "expm1 log1p",
    bessel: "i0e i1 i1e",
    probability: """
        erfcx erfi dawsn ndtr ndtri log_ndtr log_expit entr rel_entr kl_div xlog1py gamma beta
        betaln betainc expi exp1""",
}

TABLE: dict[str, Function] = {
    name: getattr(module, name) for module, names in _SAME_NAMES.items() for name in names.split()
} | {
    "gammaln": special.lgamma,
    "gammainc": special.igamma,
    "gammaincc": special.igammac,
    "psi": special.digamma,
    "expit": elementary.sigmoid,
    "cbrt": of_reals("cbrt"),
    "exp10": _exp10,
    "erfcinv": _erfcinv,
    "loggamma": _loggamma,
    "cosm1": _cosm1,
    "_zeta": probability.zeta,
    "j0": bessel.bessel_j0,
    "j1": bessel.bessel_j1,
    "y0": bessel.bessel_y0,
    "y1": bessel.bessel_y1,
    "k0": bessel.modified_bessel_k0,
    "k1": bessel.modified_bessel_k1,
    "k0e": bessel.scaled_modified_bessel_k0,
    "k1e": bessel.scaled_modified_bessel_k1,
    "jv": _of_order("bessel_j"),
    "yn": _of_order("bessel_y"),
    "yv": _of_order("bessel_y"),
    "iv": _of_order("bessel_i"),
    "ive": _of_order("bessel_ie"),
    "kn": _of_order("bessel_k"),
    "kv": _of_order("bessel_k"),
    "kve": _of_order("bessel_ke"),
}
"""By the names of the ufuncs themselves, which are not always those they are called by."""


def find(ufunc: Any) -> Function | None:
    """Return the function of tensors that a ufunc of SciPy's is; None if there is none."""
    library = sys.modules.get("scipy.special")
    name = ufunc.__name__
    ours = getattr(library, name.lstrip("_"), None) is ufunc or name.startswith("_")
    return TABLE.get(name) if library is not None and ours else None
