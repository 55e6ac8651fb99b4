"""Rows of the ufuncs of `scipy.special`: the points at which each is tried.

A row has one situation for each point, and the usual shapes near the first point. Arguments that
have no derivative are constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.scipy.special.ufunc import UFUNCS
from conformance.row import REAL, Row, Situation, row, situation

special = pytest.importorskip("scipy.special")

Point = tuple[float | complex, ...]

_AROUND = ((0.3,), (1.7,), (5.2,), (-0.7,), (0.0,))
_RIGHT = _AROUND[:3]
_PLANE = ((0.4 + 0.6j,),)
_ORDERS = ((0.0, 1.3), (1.0, 2.2), (2.5, 0.7), (-0.5, 3.0))
_COUNTS = ((0, 1.3), (1, 2.2), (3, 0.7))
_IN_PLANE = ((1.5, 0.4 + 0.7j),)
_DEGREES = ((4.0, 0.7), (0.0, 0.3), (1.0, 0.3), (2.5, 0.3))
_INCOMPLETE = ((0.6, 0.3), (0.6, 0.0), (1.2, 0.8), (2.5, 0.3), (5.0, -0.7), (-1.0, 0.9))
_POWERS = ((1.3, 0.5), (0.4, -1.2), (2.0, 0.0))

POINTS: dict[str, tuple[Point, ...]] = {
    # Airy, Bessel, Kelvin and Struve functions
    "airy": _AROUND + _PLANE,
    "airye": _RIGHT,
    "itairy": _AROUND,
    **dict.fromkeys(["jv", "yv", "iv", "kv", "kve"], _ORDERS + _IN_PLANE),
    **dict.fromkeys(["jve", "yve", "ive"], _ORDERS),
    **dict.fromkeys(["hankel1", "hankel2", "hankel1e", "hankel2e"], _ORDERS[:1] + _IN_PLANE),
    **dict.fromkeys(["yn", "kn"], _COUNTS),
    **dict.fromkeys(
        ["spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"],
        (*_COUNTS, (2, 0.4 + 0.7j)),
    ),
    **dict.fromkeys(["itj0y0", "it2j0y0", "iti0k0", "it2i0k0"], _RIGHT),
    "besselpoly": ((0.7, 1.0, 0.0), (1.3, 0.5, 1.0), (2.0, 2.0, 1.5)),
    **dict.fromkeys(["ber", "bei", "berp", "beip"], _AROUND),
    **dict.fromkeys(["ker", "kei", "kerp", "keip", "kelvin"], _RIGHT),
    "struve": ((0.0, 1.3), (1.0, 2.3), (2.5, 4.0), (0.0, 30.0)),
    "modstruve": ((0.0, 1.3), (1.0, 2.3), (2.5, 4.0)),
    **dict.fromkeys(["itstruve0", "it2struve0", "itmodstruve0"], _RIGHT),
    # gamma functions, integrals, powers, losses
    **dict.fromkeys(["gammasgn", "round"], _RIGHT),
    "loggamma": _RIGHT,
    "rgamma": (*_AROUND, (-1.0,), (-2.3,)),
    "poch": ((1.3, 2.4), (0.4, -0.2)),
    "binom": ((5.3, 2.1), (3.2, 1.0)),
    "expn": ((0, 1.2), (1, 0.4), (3, 2.2)),
    **dict.fromkeys(["sici", "shichi"], _RIGHT + _PLANE),
    "fresnel": _AROUND + _PLANE,
    **dict.fromkeys(["modfresnelp", "modfresnelm"], ((0.3,), (1.7,))),
    "spence": ((0.3,), (1.0,), (1.0001,), (2.5,), (30.0,), (0.5 + 0.4j,)),
    "exprel": (*_AROUND, (1e-6,)),
    "wrightomega": _AROUND + _PLANE,
    "lambertw": ((0.4 + 0.6j, 0, 1e-8), (-0.3 + 0.1j, -1, 1e-8), (2.0 + 0j, 1, 1e-8)),
    "wofz": _PLANE,
    "voigt_profile": ((0.3, 1.2, 0.7), (2.0, 0.5, 0.1), (-1.0, 1.0, 2.0)),
    "owens_t": ((0.4, 1.2), (-1.0, 0.3), (2.0, -3.0)),
    "ndtri_exp": ((-0.1,), (-0.7,), (-5.0,), (-100.0,)),
    **dict.fromkeys(["boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p"], _POWERS),
    "powm1": ((1.3, 0.6), (0.4, -2.0)),
    **dict.fromkeys(["huber", "pseudo_huber"], ((1.0, 0.3), (1.0, 2.3), (0.5, -2.0))),
    **dict.fromkeys(["sindg", "cosdg", "tandg"], _AROUND),
    "cotdg": _RIGHT,
    "radian": ((1.0, 2.0, 3.0),),
    # polynomials, Legendre and hypergeometric functions
    **{
        f"eval_{name}": (*_DEGREES, (3.0, 1.0))
        for name in ("legendre", "chebyt", "chebyu", "chebyc", "chebys", "laguerre")
    },
    **{f"eval_sh_{name}": _DEGREES for name in ("legendre", "chebyt", "chebyu")},
    "eval_jacobi": ((4.0, 1.0, 0.5, 0.7), (0.0, 0.3, 0.4, 0.2), (1.0, 0.3, 0.4, 0.2)),
    "eval_sh_jacobi": ((3.0, 2.0, 1.5, 0.7), (0.0, 1.3, 0.4, 0.2), (1.0, 1.3, 0.4, 0.2)),
    **dict.fromkeys(
        ["eval_gegenbauer", "eval_genlaguerre"], ((4.0, 0.3, 0.7), (0.0, 1.3, 0.4), (1.0, 1.3, 0.4))
    ),
    **dict.fromkeys(["eval_hermite", "eval_hermitenorm"], ((4, 1.2), (0, 0.3), (1, 0.3))),
    "lpmv": (
        (0, 2.0, 0.3),
        (1, 3.0, 0.4),
        (2, 1.0, 0.3),
        (1, 2.0, -0.6),
        (1, 2.5, 0.3),
        (-2, 2.0, 0.3),
    ),
    "sph_legendre_p": ((3, 2, 0.7), (2, -1, 1.9), (4, 0, 4.0), (1, 3, 0.7)),
    "hyp0f1": ((1.3, 0.7), (2.0, -3.0), (0.5, 0.4 + 0.3j)),
    "hyp1f1": ((1.0, 2.0, 0.4), (0.3, 1.2, -3.0), (0.3, 1.2, 0.4 + 0.3j)),
    "hyp2f1": ((0.5, 1.2, 2.0, 0.3), (1.0, 1.0, 2.0, -4.0), (0.5, 1.2, 2.0, 0.2 + 0.3j)),
    "hyperu": ((1.2, 0.7, 1.4),),
    **dict.fromkeys(["wright_bessel", "log_wright_bessel"], ((0.5, 1.2, 0.7),)),
    # Mathieu, spheroidal and parabolic cylinder functions
    **dict.fromkeys(["pbdv", "pbvv", "pbwa"], ((0.5, 0.7), (-1.3, 1.2))),
    "mathieu_cem": ((1, 2.0, 30.0), (0, 0.5, 70.0)),
    "mathieu_sem": ((1, 2.0, 30.0), (2, 0.5, 70.0)),
    **{f"mathieu_mod{kind}": ((1, 2.0, 0.7),) for kind in ("cem1", "cem2", "sem1", "sem2")},
    **dict.fromkeys(["pro_ang1", "obl_ang1"], ((1, 2, 1.2, 0.3),)),
    **dict.fromkeys(["pro_rad1", "pro_rad2", "obl_rad2"], ((1, 1, 3.2, 1.6),)),
    "obl_rad1": ((1, 2, 1.2, 0.6),),
    "pro_ang1_cv": ((1, 2, 1.2, float(special.pro_cv(1, 2, 1.2)), 0.3),),
    "obl_ang1_cv": ((1, 2, 1.2, float(special.obl_cv(1, 2, 1.2)), 0.3),),
    **dict.fromkeys(
        ["pro_rad1_cv", "pro_rad2_cv"], ((1, 1, 3.2, float(special.pro_cv(1, 1, 3.2)), 1.6),)
    ),
    **dict.fromkeys(
        ["obl_rad1_cv", "obl_rad2_cv"], ((1, 1, 3.2, float(special.obl_cv(1, 1, 3.2)), 1.6),)
    ),
    # elliptic integrals and functions
    "ellipk": ((0.3,), (0.0,), (0.7,), (-3.0,), (0.5,), (-0.5,)),
    "ellipkm1": ((0.3,), (0.6,), (1.0,), (0.5,)),
    "ellipe": ((0.3,), (0.0,), (0.7,), (-3.0,)),
    **dict.fromkeys(["ellipkinc", "ellipeinc"], _INCOMPLETE),
    "ellipj": ((0.6, 0.3), (1.2, 0.8), (3.5, 0.3), (0.4, 0.02)),
    "elliprc": ((1.2, 0.7), (0.4, 2.0), (0.7, 0.7)),
    **dict.fromkeys(["elliprf", "elliprd", "elliprg"], ((1.2, 0.7, 0.4),)),
    "elliprj": ((1.2, 0.7, 0.4, 2.0),),
    "agm": ((1.2, 0.7), (1.0, 1.0), (30.0, 0.1)),
    # distributions
    **dict.fromkeys(["gammaincinv", "gammainccinv"], ((1.2, 0.4), (0.3, 0.9))),
    **dict.fromkeys(["chdtr", "chdtrc"], ((3.0, 2.2), (1.0, 0.4))),
    "chdtri": ((3.0, 0.4),),
    "chdtriv": ((0.4, 3.0),),
    **dict.fromkeys(["gdtr", "gdtrc"], ((1.2, 2.3, 1.4),)),
    "gdtria": ((0.4, 2.3, 1.4),),
    "gdtrib": ((1.2, 0.4, 1.4),),
    "gdtrix": ((1.2, 2.3, 0.4),),
    **dict.fromkeys(["pdtr", "pdtrc"], ((3, 2.4),)),
    "pdtri": ((3, 0.4),),
    "pdtrik": ((0.4, 2.4),),
    **dict.fromkeys(["betaincc", "betaincinv", "betainccinv"], ((1.2, 2.3, 0.4),)),
    "btdtria": ((0.4, 2.3, 0.3),),
    "btdtrib": ((1.2, 0.4, 0.3),),
    **dict.fromkeys(["bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri"], ((3, 7, 0.4),)),
    **dict.fromkeys(["bdtrik", "nbdtrik"], ((0.4, 7.0, 0.4),)),
    **dict.fromkeys(["bdtrin", "nbdtrin"], ((3.0, 0.4, 0.4),)),
    **dict.fromkeys(["fdtr", "fdtrc"], ((3.0, 4.0, 1.2),)),
    "fdtri": ((3.0, 4.0, 0.4),),
    "fdtridfd": ((3.0, 0.4, 0.8),),
    "stdtr": ((3.0, 1.2), (2.5, -0.7)),
    "stdtridf": ((0.8, 1.2),),
    "stdtrit": ((3.0, 0.7), (4.0, 0.2)),
    "nrdtrimn": ((0.3, 1.2, 0.7),),
    "nrdtrisd": ((0.3, 0.8, 0.7),),
    "chndtr": ((2.0, 3.0, 1.2), (20.0, 1.5, 4.0), (150.0, 3.0, 120.0)),
    "chndtrix": ((0.4, 3.0, 1.2),),
    "chndtrinc": ((2.0, 3.0, 0.4),),
    "ncfdtr": ((3.0, 5.0, 1.2, 0.8),),
    "ncfdtri": ((3.0, 5.0, 1.2, 0.4),),
    "ncfdtrinc": ((3.0, 5.0, 0.3, 1.2),),
    "nctdtr": ((3.0, 0.7, 1.2), (5.0, -1.0, 0.3)),
    "nctdtrit": ((3.0, 0.7, 0.4),),
    "nctdtrinc": ((3.0, 0.6, 1.2),),
    "kolmogorov": ((0.5,), (0.9,), (1.3,), (2.0,)),
    "kolmogi": ((0.3,), (0.9,)),
    "tklmbda": ((0.3, 0.5), (0.8, -0.4)),
}
"""Arguments, which are in the order of the ufunc's."""

IMPRECISE = frozenset(
    ["itairy", "ncfdtri", "ncfdtrinc", "nctdtrit", "nctdtrinc", "chndtrix", "chndtrinc"]
)
"""Ufuncs that SciPy computes to few digits, by searching: differences say nothing."""


def _near(value: float | complex) -> list[float | complex]:
    """Return some numbers from a value on towards 0, where all domains go on."""
    return [value - 0.02 * k * (value or 1) for k in range(3)]


def _row(name: str, points: tuple[Point, ...]) -> Row:
    declared = UFUNCS[name]
    positions = [i for i, x in enumerate(declared.inputs) if x in declared.partials]
    if declared.constant:
        positions = list(range(len(declared.inputs)))
    smooth = name not in IMPRECISE
    situations: list[Situation] = []
    for k, point in enumerate(points):
        constants = {
            x: float(v)
            for i, (x, v) in enumerate(zip(declared.inputs, point, strict=True))
            if i not in positions
        }
        values = [point[i] for i in positions]
        if any(isinstance(v, complex) for v in values):
            plane = [[*_near(v)] for v in values]
            situations.append(situation(f"plane-{k}", *plane, dtypes=("complex128",), **constants))
            continue
        lists = [_near(v) for v in values]
        situations.append(situation(f"point-{k}", *lists, smooth=smooth, **constants))
        if k == 0:
            first = [[[v] for v in part] if i == 0 else part for i, part in enumerate(lists)]
            situations += [
                situation("0-d", *[()] * len(values), smooth=smooth, **constants),
                situation("size-0", *[(2, 0)] * len(values), **constants),
                situation("broadcast", *first, smooth=smooth, **constants),
            ]
    return row(
        declared.primitive.name,
        tuple(situations),
        *[(np.real(points[0][i]), np.real(points[0][i])) for i in positions],
        dtypes=REAL[1:] if declared.double else REAL,
        cr=_spelling(name, positions),
        np=_spelling(name, positions),
        torch=None,
    )


def _spelling(name: str, positions: list[int]) -> Any:
    inputs = UFUNCS[name].inputs  # the table is not read in `call`: compiled calls would check it

    def call(library: Any, *arrays: Any, **constants: float) -> Any:
        functions = special if library is np else library.scipy.special
        operands: list[Any] = list(arrays)
        for x, value in constants.items():
            if library is np:  # whose loops for numbers are those of double precision
                value = arrays[-1].real.dtype.type(value)
            operands.insert(inputs.index(x), value)
        if library is np and name in ("bdtr", "bdtrc", "bdtri", "eval_hermite", "eval_hermitenorm"):
            operands[-2] = int(operands[-2])
            return getattr(functions, name)(*operands).astype(arrays[0].dtype)
        if library is np and name == "sph_legendre_p":
            operands[:2] = map(int, operands[:2])
        return getattr(functions, name)(*operands)

    return call


ROWS = tuple([_row(name, points) for name, points in POINTS.items()])
