"""Rows of functions of SciPy's that are defined by an equation, or whose steps are constants.

They are no primitives, but rules all the same: splines, fits, solutions, operators, statistics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.row import Input, Row, row, situation

scipy = pytest.importorskip("scipy")
for module in (
    *("cluster.vq", "interpolate", "linalg", "optimize", "signal", "sparse.linalg", "spatial"),
    *("special", "stats"),
):
    pytest.importorskip(f"scipy.{module}")

NODES = np.arange(8.0)
WAVE = np.cos(1.3 * NODES) + 0.1 * NODES
AT = np.array([0.4, 2.5, 6.1])
BAND = np.diag(np.arange(3.0, 7.0)) + np.eye(4, k=1)
DATA = np.array([1.3, 0.4, 2.2, 3.1, 1.9, 0.8, 2.7, 1.1])


def both(name: str, call: Callable[..., Any], *inputs: Input, smooth: bool = True) -> Row:
    """Return the row of a call ``call(scipy, *arrays)``, near given points.

    It isn't `smooth` if SciPy computes it to few digits.
    """

    def spelled(library: Any, *arrays: Any) -> Any:
        if library is np:
            return call(scipy, *arrays)
        found = call(library.scipy, *arrays)
        return found if isinstance(found, library.Tensor) else library.as_tensor(np.asarray(found))

    situations = (situation("plain", *inputs, smooth=smooth),)
    return row(name, situations, dtypes=("float64",), call=spelled, torch=None)


def finite(values: Any) -> Any:
    return values[np.isfinite(np.asarray(values.detach() if hasattr(values, "detach") else values))]


def listed(a: Any) -> list[Any]:
    return np.asarray(a).tolist()


ROWS = (
    # Polynomials and functions of Legendre's.
    both("legendre_p", lambda s, x: s.special.legendre_p(3, x), [0.3, -0.7]),
    both("assoc_legendre_p", lambda s, x: s.special.assoc_legendre_p(3, 2, x), [0.3, -0.7]),
    both("sph_legendre_p", lambda s, x: s.special.sph_legendre_p(3, 1, x), [0.3, 1.7]),
    both("sph_harm_y", lambda s, x, y: s.special.sph_harm_y(2, 1, x, y).real, [0.3], [0.8]),
    both("legendre_p_all", lambda s, x: s.special.legendre_p_all(3, x), [0.3, -0.7]),
    # Splines and rational interpolants.
    both("splrep", lambda s, y: s.interpolate.splev(AT, s.interpolate.splrep(NODES, y, s=0.2)),
         listed(WAVE), smooth=False),
    both("make_splrep", lambda s, y: s.interpolate.make_splrep(NODES, y, s=0.2)(AT), listed(WAVE),
         smooth=False),
    both("make_smoothing_spline",
         lambda s, y, v: s.interpolate.make_smoothing_spline(NODES, y, lam=v[0])(AT),
         listed(WAVE), [0.4]),
    both("insert_knot", lambda s, y: s.interpolate.make_interp_spline(NODES, y).insert_knot(2.5).c,
         listed(WAVE)),
    both("sproot", lambda s, y: s.interpolate.sproot(s.interpolate.splrep(NODES, y, s=0)),
         listed(WAVE)),
    both("FloaterHormannInterpolator",
         lambda s, y, t: s.interpolate.FloaterHormannInterpolator(NODES, y)(t),
         listed(WAVE), [0.4, 5.3]),
    both("RectBivariateSpline",
         lambda s, z: s.interpolate.RectBivariateSpline(np.arange(4.0), np.arange(5.0), z)(1.3, AT),
         listed(np.outer(WAVE[:4], WAVE[:5]))),
    # Solutions.
    both("curve_fit",
         lambda s, y: s.optimize.curve_fit(lambda t, p, q: p * np.sin(t) + q * t, NODES, y)[0],
         listed(WAVE)),
    both("isotonic_regression",
         lambda s, y, w: s.optimize.isotonic_regression(y, weights=w).x,
         [1.0, 3.0, 2.0, 4.0], [1.0, 2.0, 1.0, 0.5]),
    both("milp",
         lambda s, c, u: s.optimize.milp(
             c, integrality=[1, 0, 0], constraints=([[2.0, 1.0, 1.0], [1.0, 3.0, 0.5]], -np.inf, u)
         ).fun,
         [-3.0, -2.0, -1.1], [5.3, 6.1]),
    both("minimize_scalar",
         lambda s, a: s.optimize.minimize_scalar(
             lambda x: (x - a[0]) ** 2 + 0.3 * x**4).x, [1.2], smooth=False),
    both("eigvals of a singular pair",
         lambda s, a: abs(finite(s.linalg.eigvals(a, np.diag([0.0, 1.0, 2.0, 3.0])))).sum(),
         listed(BAND)),
    # Operators.
    both("expm_multiply", lambda s, a, b: s.sparse.linalg.expm_multiply(a / 5, b),
         listed(BAND), [1.0, 2.0, 0.5, -1.0]),
    both("lsqr", lambda s, a, b: s.sparse.linalg.lsqr(a, b, atol=1e-14, btol=1e-14)[0],
         listed(BAND), [1.0, 2.0, 0.5, -1.0]),
    both("LinearOperator",
         lambda s, b: s.sparse.linalg.gmres(
             2 * s.sparse.linalg.aslinearoperator(BAND).T + s.sparse.linalg.aslinearoperator(BAND),
             b, rtol=1e-13)[0],
         [1.0, 2.0, 0.5, -1.0]),
    # Filters, rotations, neighbours.
    both("freqz", lambda s, b, a, w: abs(s.signal.freqz(b, a, w)[1]),
         [0.5, 1.0, 0.2], [1.0, 0.3], [0.3, 1.1]),
    both("sosfilt_zi", lambda s, r: s.signal.sosfilt_zi(r), [[0.2, 0.4, 0.2, 1.0, -0.4, 0.2]]),
    both("Rotation.from_matrix",
         lambda s, m: s.spatial.transform.Rotation.from_matrix(m).as_rotvec(),
         listed(scipy.spatial.transform.Rotation.from_rotvec([0.3, -0.4, 0.7]).as_matrix())),
    both("KDTree.query",
         lambda s, x: s.spatial.KDTree(np.stack([DATA, DATA**2], 1) / 10, boxsize=1.0).query(x)[0],
         [[0.3, 0.9], [1.2, -0.3]]),
    # Fits and statistics.
    both("gamma.fit", lambda s, x: s.stats.gamma.fit(x, floc=0)[0], listed(DATA)),
    both("laplace.fit", lambda s, x: s.stats.laplace.fit(x)[1], listed(DATA[:7])),
    both("siegelslopes", lambda s, y: s.stats.siegelslopes(y, NODES)[0], listed(DATA)),
    both("binned_statistic",
         lambda s, v: s.stats.binned_statistic(NODES, v, "std", bins=3).statistic, listed(DATA)),
    both("qmc.discrepancy", lambda s, x: s.stats.qmc.discrepancy(x),
         listed(np.stack([DATA, DATA[::-1]], 1) / 4)),
)  # fmt: skip
