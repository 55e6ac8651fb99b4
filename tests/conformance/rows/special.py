"""Rows of the special functions, compared with SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.backend import numpy_xp
from conformance.row import REAL, Row, Strided, kink, row, situation
from conformance.situations import BINARY, UNARY, recorded


def _scipy(name: str) -> Callable[..., Any]:
    """Return the spelling for NumPy: SciPy's function of that name."""

    def function(np: Any, *arrays: Any) -> Any:
        import scipy.special

        return getattr(scipy.special, name)(*arrays)

    return function


def _special(name: str) -> Callable[..., Any]:
    return lambda library, *arrays: getattr(library.special, name)(*arrays)


def _unary(name: str, domain: tuple[float, float], *more: Any, torch: Any = "") -> Row:
    """Return the row of a function that has one name in `cr.special`, SciPy and torch.special."""
    here = _special(name)
    return row(
        name,
        (*UNARY, *more),
        domain,
        dtypes=REAL,
        cr=here,
        np=_scipy(name),
        torch=here if torch == "" else torch,
    )


_ERROR = (
    _unary("erf", (-2, 2), kink("far", [0, 7, -7, np.inf, np.nan])),
    _unary("erfc", (-2, 3), kink("far", [0, 7, -7, np.inf, np.nan])),
    _unary("erfcx", (-1, 3)),
    _unary("erfi", (-1.5, 1.5), torch=None),
    _unary("erfinv", (-0.8, 0.8), kink("ends", [1, -1, 0])),
    _unary("dawsn", (-2, 2), torch=None),
    _unary("ndtri", (0.1, 0.9)),
    _unary(
        "log_ndtr",
        (-5, 3),
        situation("far", [-40.0, 8.0], peer=False),  # we have more digits
    ),
)

_GAMMA = (
    row(
        "lgamma",
        (*UNARY, situation("negative", [-0.5, -1.3, -2.7])),
        (0.5, 4),
        dtypes=REAL,
        np=_scipy("gammaln"),
        torch=None,  # whose trigamma is right to nine digits
    ),
    row(
        "polygamma",
        (
            *[
                situation(f"{s.name}-{order}", *s.inputs, order=order)
                for s in UNARY[:2]
                for order in (0, 1, 3)
            ],
            situation("negative", [-0.5, -1.3, -2.7], order=0),
            situation("size-0", (2, 0), order=1),
            situation("non-contiguous", Strided((2, 3)), order=1),
        ),
        (0.8, 4),
        dtypes=REAL,
        cr=lambda cr, x, order: cr.polygamma(order, x),
        np=lambda np, x, order: _scipy("polygamma")(np, order, x).astype(x.dtype),
        torch=None,
    ),
    _unary("gamma", (0.5, 4), situation("negative", [-0.5, -1.3, -2.7]), torch=None),
    row(
        "betaln",
        BINARY,
        (0.5, 4),
        dtypes=REAL,
        cr=_special("betaln"),
        np=_scipy("betaln"),
        torch=None,
    ),
    row("beta", BINARY, (0.5, 4), dtypes=REAL, cr=_special("beta"), np=_scipy("beta"), torch=None),
)

# The derivative for the integers is not implemented: they count as constant.
_N = np.array([[2, 3, 4], [2, 2, 3]])


def _with_orders(count: int) -> tuple[Any, ...]:
    return (
        situation("plain", *[_N] * count, (2, 3)),
        situation("broadcast", *[_N[0]] * count, (2, 1)),
        situation("0-d", *[np.array(2)] * count, ()),
        situation("size-0", *[_N[:, :1]] * count, (2, 0)),
        situation("non-contiguous", *[_N] * count, Strided((2, 3))),
    )


def _after_orders(name: str, count: int, domain: tuple[float, float]) -> Row:
    return row(
        name,
        _with_orders(count),
        domain,
        dtypes=REAL,
        cr=_special(name),
        np=lambda np, *arrays: _scipy(name)(np, *arrays).astype(arrays[-1].dtype),
        torch=None,  # which computes with the integers in float32
    )


def _of_parameters(name: str, count: int, domain: tuple[float, float]) -> Row:
    """Return the row of an incomplete function of `count` arguments, all of which differentiate."""
    shapes = [(2, 1), (3,), (1, 3)][:count]
    return row(
        name,
        (
            situation("plain", *[(2, 3)] * count),
            situation("broadcast", *shapes),
            situation("0-d", *[()] * count),
            situation("size-0", *[(2, 0)] * count),
            situation("non-contiguous", *[Strided((2, 3))] * count),
        ),
        domain,
        dtypes=REAL,
        cr=_special(name),
        np=_scipy(name),
        torch=None,  # which has no derivatives by the parameters
    )


def _moment(name: str, count: int, *orders: Any) -> Row:
    """Return the row of the derivatives of an incomplete function by its parameters."""

    def call(np: Any, *arrays: Any, order: Any) -> Any:
        return getattr(numpy_xp, name)(*arrays, order=order)

    return row(
        name,
        (
            *[situation(f"plain-{order}", *[(2, 3)] * count, order=order) for order in orders],
            situation("broadcast", *[(2, 1), (3,), (1, 3)][:count], order=orders[0]),
            situation("0-d", *[()] * count, order=orders[0]),
            situation("size-0", *[(2, 0)] * count, order=orders[0]),
            situation("non-contiguous", *[Strided((2, 3))] * count, order=orders[0]),
        ),
        (0.5, 4) if count == 2 else (0.2, 0.8),
        dtypes=REAL,
        cr=recorded(name),
        np=call,
        torch=None,
    )


_INCOMPLETE = (
    _of_parameters("gammainc", 2, (0.5, 4)),
    _of_parameters("gammaincc", 2, (0.5, 4)),
    _of_parameters("betainc", 3, (0.2, 0.8)),
    _moment("gammainc_moment", 2, 1, 2),
    _moment("betainc_moment", 3, (1, 0), (0, 1), (1, 1), (2, 0)),
    _after_orders("zeta", 1, (0.5, 3)),
    _unary("expi", (0.3, 2), torch=None),
    _unary("exp1", (0.3, 2), torch=None),
)


def _bessel(name: str, ufunc: str, domain: tuple[float, float], *more: Any) -> Row:
    """Return the row of a family of Bessel functions, in several orders."""
    return row(
        name,
        (
            *[situation(f"{s.name}-{n}", *s.inputs, order=n) for s in UNARY[:2] for n in (0, 1, 2)],
            situation("order-1.5", [0.7, 1.9, 3.0], order=1.5),
            situation("order-minus-3", [0.7, 1.9, 3.0], order=-3),
            situation("size-0", (2, 0), order=1),
            situation("non-contiguous", Strided((2, 3)), order=1),
            *more,
        ),
        domain,
        dtypes=REAL,
        cr=recorded(name),
        np=lambda np, x, order: _scipy(ufunc)(np, x.dtype.type(order), x),
        torch=None,
    )


_AT_0 = tuple(situation(f"at-0-{n}", [0.0, 1e-9, -1e-5], order=n) for n in (0, 1, 2))

_BESSEL = (
    _bessel("bessel_j", "jv", (0.5, 4), *_AT_0),
    _bessel("bessel_y", "yv", (1, 4)),
    _bessel("bessel_i", "iv", (0.5, 2), *_AT_0),
    _bessel("bessel_ie", "ive", (0.5, 2)),
    _bessel("bessel_k", "kv", (1, 3)),
    _bessel("bessel_ke", "kve", (1, 3)),
    row(
        "spherical_bessel_j",
        (
            *[situation(f"{s.name}-{n}", *s.inputs, order=n) for s in UNARY for n in (0, 1, 3)],
            *[situation(f"at-0-{n}", [0.0, 1e-9, -1e-5], order=n) for n in (0, 1, 2)],
            situation("size-0", (2, 0), order=0),
            situation("non-contiguous", Strided((2, 3)), order=0),
        ),
        (0.5, 8),
        dtypes=REAL,
        cr=recorded("spherical_bessel_j"),
        np=lambda np, x, order: (
            np.where(x < 0, (-1.0) ** order, 1.0).astype(x.dtype)
            * _scipy("spherical_jn")(np, order, np.abs(x)).astype(x.dtype)
        ),
        torch=None,
    ),
)

_PROBABILITY = (
    row(
        "logit",
        UNARY,
        (0.1, 0.9),
        dtypes=REAL,
        np=_scipy("logit"),
    ),
    _unary("entr", (0.2, 3)),
    row(
        "rel_entr",
        BINARY,
        (0.5, 2),
        dtypes=REAL,
        cr=_special("rel_entr"),
        np=_scipy("rel_entr"),
        torch=lambda torch, x, y: x * torch.log(x / y),
    ),
)

ROWS = (*_ERROR, *_GAMMA, *_INCOMPLETE, *_BESSEL, *_PROBABILITY)
