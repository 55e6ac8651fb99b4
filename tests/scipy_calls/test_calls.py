"""Calls that SciPy's own tests make, on arrays that record: values, and differences of SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy = pytest.importorskip("scipy")
for module in ("signal", "ndimage", "spatial", "optimize", "interpolate", "linalg", "stats"):
    pytest.importorskip(f"scipy.{module}")

RNG = np.random.default_rng(16)
IMAGE, VOLUME = RNG.normal(size=(5, 6)), RNG.normal(size=(4, 5, 3))
SYSTEM = ([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
SECTIONS = np.array([[0.2, 0.4, 0.2, 1.0, -0.4, 0.2], [0.5, 0.3, 0.1, 1.0, 0.3, 0.1]])
POINTS = RNG.uniform(0.1, 0.9, size=(9, 3))
AXES = np.array([0, 2])
scipy_rotation = scipy.spatial.transform.Rotation

NODES = np.arange(7.0)
PROGRAM = [[-3.0, -2.0, -1.1], [[2.0, 1.0, 1.0], [1.0, 3.0, 0.5]], [5.3, 6.1]]

# Calls, and the arrays that are differentiated.
CALLS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    # Where a coefficient is 1, or a signal 0, SciPy leaves out what depends on it.
    "lfiltic": (
        lambda s, b, a, y, x: s.signal.lfiltic(b, a, y, x),
        [[0.5, 1.0, 0.2], [1.0, 0.3], [7.1, 5.4], [5.0, 4.0, 3.0]],
    ),
    "lfilter_zi": (lambda s, b, a: s.signal.lfilter_zi(b, a), [[0.5, 1.0, 0.2], [1.0, 0.3]]),
    "sosfilt_zi": (lambda s, r: s.signal.sosfilt_zi(r), [SECTIONS]),
    "sosfilt_zi-scaled": (lambda s, r: s.signal.sosfilt_zi(r), [1.5 * SECTIONS]),
    "lsim": (lambda s, u: s.signal.lsim(SYSTEM, u, np.linspace(0, 1, 4))[1], [np.zeros(4)]),
    # Settings that have derivatives.
    "freqz-at": (
        lambda s, b, a, w: np.abs(s.signal.freqz(b, a, w)[1]),
        [[0.5, 1.0, 0.2], [1.0, 0.3], [0.3, 1.1]],
    ),
    "freqz-fs": (lambda s, fs: s.signal.freqz([0.5, 1.0], 1, 3, fs=fs[0])[0], [[2.5]]),
    "freqz-several": (
        lambda s, b, a: np.abs(s.signal.freqz(b, a, 4)[1]),
        [RNG.normal(size=(3, 2, 1)), [1.0, 0.3]],
    ),
    # Filters of images: modes and axes as in SciPy.
    "laplace-modes": (
        lambda s, x: s.ndimage.gaussian_laplace(x, 1.0, mode=["reflect", "constant"]), [IMAGE],
    ),
    "magnitude-modes": (
        lambda s, x: s.ndimage.gaussian_gradient_magnitude(x, 1.0, mode=["wrap", "mirror"]),
        [IMAGE],
    ),
    "magnitude-axes": (
        lambda s, x: s.ndimage.gaussian_gradient_magnitude(x, 1.0, axes=(0, 1)), [VOLUME],
    ),
    "gaussian-axes": (
        lambda s, x: s.ndimage.gaussian_filter(
            x, [1.0, 0.8], axes=AXES, radius=np.array([2, 3]), order=np.array([0, 1])
        ),
        [VOLUME],
    ),
    "output": (lambda s, x: s.ndimage.sobel(x, output="float64"), [IMAGE.astype("float32")]),
    "of-integers": (
        lambda s, w: s.ndimage.correlate(np.arange(12).reshape(3, 4), w, output=float),
        [IMAGE[:2, :2]],
    ),
    # Neighbours in a period, and lists that SciPy's compiled code writes to.
    "periodic": (
        lambda s, x, at: s.spatial.KDTree(x, boxsize=[1.0, 1.5, 0.0]).query(at, 3)[0],
        [POINTS, 3 * POINTS[:2]],
    ),
    "areas": (
        lambda s, x: s.spatial.SphericalVoronoi(
            (x - 0.5) / np.linalg.norm(x - 0.5, axis=1)[:, None]
        ).calculate_areas(),
        [POINTS],
    ),
    # Rational interpolants at their points, knots that are inserted, roots of splines.
    "rational": (
        lambda s, x, y, t: s.interpolate.FloaterHormannInterpolator(x, y, d=3)(t),
        [NODES, np.cos(NODES), [2.0, 0.4, 6.0]],
    ),
    "rational-poles": (
        lambda s, y: np.abs(s.interpolate.FloaterHormannInterpolator(NODES, y, d=2).roots()),
        [np.cos(NODES)],
    ),
    "AAA": (
        lambda s, t: s.interpolate.AAA(NODES, 1 / (1 + NODES**2))(t),
        [[2.0, 0.4]],
    ),
    "insert_knot": (
        lambda s, y: s.interpolate.make_interp_spline(NODES, y).insert_knot(2.5, 2).c,
        [np.cos(NODES)],
    ),
    "insert": (
        lambda s, y: s.interpolate.insert(2.5, s.interpolate.splrep(NODES, y, s=0))[1][:-4],
        [np.cos(NODES)],
    ),
    "sproot": (
        lambda s, y: s.interpolate.sproot(s.interpolate.splrep(NODES, y, s=0)), [np.cos(NODES)],
    ),
    "make_splrep": (
        lambda s, y: s.interpolate.make_splrep(NODES, y)([0.3, 4.4]), [np.cos(NODES)],
    ),
    "eigvals-of-a-pair": (
        lambda s, a: np.prod(finite(s.linalg.eigvals(a, np.diag([0.0, 1.0, 2.0, 0.5])))).real,
        [RNG.normal(size=(4, 4))],
    ),
    # Means of blocks, and linear programs with integers.
    "isotonic": (
        lambda s, y, w: s.optimize.isotonic_regression(y, weights=w).x,
        [[1.0, 3.0, 2.0, 4.0, 3.5, 3.6, 6.0], [1.0, 2.0, 1.0, 0.5, 3.0, 1.0, 1.0]],
    ),
    "isotonic-weights": (
        lambda s, y, w: s.optimize.isotonic_regression(y, weights=w, increasing=False).weights,
        [[1.0, 3.0, 2.0, 4.0], [1.0, 2.0, 1.0, 0.5]],
    ),
    **{
        f"milp-{label}": (lambda s, c, A, u, f=call: f(s, c, A, u).x, PROGRAM)
        for label, call in {
            "integer": lambda s, c, A, u: s.optimize.milp(
                c, integrality=[1, 0, 0], constraints=(A, -np.inf, u)
            ),
            "equation": lambda s, c, A, u: s.optimize.milp(
                c, integrality=[0, 1, 0],
                constraints=[(A[:1], u[:1], u[:1]), (A[1:], -np.inf, u[1:])],
            ),
            "bounds": lambda s, c, A, u: s.optimize.milp(
                c, integrality=[2, 1, 0], constraints=[(A, u - 9, u)],
                bounds=scipy.optimize.Bounds(1, [1.5, 4, 3.7]),
            ),
        }.items()
    },
    "milp-fun": (
        lambda s, c, A, u: s.optimize.milp(c, integrality=1, constraints=(A, -np.inf, u)).fun,
        PROGRAM,
    ),
    # Statistics whose bins, clipped data and medians are constants.
    **{
        f"binned-{name}": (
            lambda s, x, v, name=name: s.stats.binned_statistic(x, v, name, bins=3).statistic,
            [POINTS[:, 0], POINTS[:, 1]],
        )
        for name in ("mean", "std", "median")
    },
    "binned-by-two": (
        lambda s, v: s.stats.binned_statistic_2d(*POINTS.T[:2], v, "sum", bins=2).statistic,
        [POINTS[:, 2]],
    ),
    "sigmaclip": (lambda s, x: s.stats.sigmaclip(x, 1.2, 1.2).clipped, [POINTS[:, 0]]),
    "percentile": (lambda s, x: s.stats.scoreatpercentile(x, [30, 55]), [POINTS[:, 0]]),
    **{
        f"siegelslopes-{how}": (
            lambda s, y, x, how=how: np.stack(list(s.stats.siegelslopes(y, x, method=how))),
            [POINTS[:, 0], POINTS[:, 1]],
        )
        for how in ("hierarchical", "separate")
    },
    "epps_singleton": (
        lambda s, x, y: s.stats.epps_singleton_2samp(x, y).statistic,
        [POINTS.ravel()[:10], POINTS.ravel()[10:] ** 2],
    ),
    **{
        f"discrepancy-{name}": (
            lambda s, x, name=name, more=more: s.stats.qmc.discrepancy(
                x, method=name, iterative=more
            ),
            [POINTS],
        )
        for name, more in (("CD", True), ("WD", False), ("MD", True), ("L2-star", False))
    },
    "geometric": (lambda s, x: s.stats.qmc.geometric_discrepancy(x), [POINTS]),
    # Signs of complex sums, and a distribution that is constant.
    **{
        f"logsumexp-{'weights' if b else 'plain'}": (
            lambda s, x, b=b: np.abs(
                1 + np.stack(list(s.special.logsumexp(x + 1j * x**2, b=b, return_sign=True)))
            ),
            [[0.3, -1.2, 0.8]],
        )
        for b in (None, [1.0, -2.0, 0.5])
    },
    "kolmogorov": (lambda s, x: s.special.kolmogorov(x), [[-3.0, -0.2, 0.7, 1.4]]),
    # Rotations, where SciPy's code for arrays of other libraries differs from that for NumPy's.
    "reduce": (
        lambda s, v: turn(s).from_rotvec(v).reduce(turn(s).create_group("O")).as_rotvec(),
        [[0.3, -0.4, 0.7]],
    ),
    "from_matrix": (
        lambda s, m: turn(s).from_matrix(m).as_rotvec(),
        [scipy_rotation.from_rotvec([[0.3, -0.4, 0.7], [1.0, 0.0, 0.2]]).as_matrix()],
    ),
    "rigid": (
        lambda s, t, v: s.spatial.transform.RigidTransform.from_components(
            t, turn(s).from_rotvec(v)
        ).apply(POINTS),
        [[1.0, 2.0, -0.5], [0.3, -0.4, 0.7]],
    ),
}  # fmt: skip


def finite(values: Any) -> Any:
    return values[np.isfinite(values)]


def turn(s: Any) -> Any:
    return s.spatial.transform.Rotation


def steps_of(arrays: list[Any]) -> tuple[Any, ...]:
    return tuple([np.cos(np.arange(x.size) + 1.0).reshape(x.shape).astype(x.dtype) for x in arrays])


def moved(call: Callable[..., Any], arrays: list[Any], h: float) -> Any:
    doubles = [x + h * step.astype(float) for x, step in zip(arrays, steps_of(arrays), strict=True)]
    return np.asarray(call(scipy, *doubles))


@pytest.mark.parametrize("label", CALLS)
def test_calls(label: str) -> None:
    call, given = CALLS[label]
    arrays = [np.asarray(x) for x in given]
    wanted, steps = np.asarray(call(scipy, *arrays)), steps_of(arrays)
    ours = lambda *xs: call(cr.scipy, *xs)  # noqa: E731
    values, slopes = cr.jvp(ours, tuple(arrays), steps)
    precision = 1e-3 if any(x.dtype == np.float32 for x in arrays) else 1e-6
    np.testing.assert_allclose(values, wanted, 1e-3 * precision, 1e-5 * precision)
    assert values.dtype == wanted.dtype
    differences = (moved(call, arrays, 1e-6) - moved(call, arrays, -1e-6)) / 2e-6
    np.testing.assert_allclose(slopes, differences, precision, 0.1 * precision)
    weights = np.cos(np.arange(wanted.size)).reshape(wanted.shape)
    every = tuple(range(len(arrays)))
    back = cr.grad(lambda *xs: (ours(*xs) * weights).sum(), every)(*arrays)
    total = sum((g * s).sum() for g, s in zip(back, steps, strict=True))
    np.testing.assert_allclose(total, (slopes * weights).sum(), precision, precision)


def test_examples_of_a_map_raise_where_values_decide() -> None:
    rows = np.stack([POINTS[:, 0], POINTS[:, 1]])
    optimize, stats = cr.scipy.optimize, cr.scipy.stats
    calls: dict[str, Callable[[Any], Any]] = {
        "siegelslopes has derivatives of one row": lambda y: stats.siegelslopes(y)[0],
        "isotonic_regression looks at values": lambda y: optimize.isotonic_regression(y).x,
        "milp looks at values": lambda y: optimize.milp(-y, constraints=([y], 0, 1)).x,
    }
    for text, call in calls.items():
        with pytest.raises(cr.AutogradError, match=text):
            cr.vmap(call)(rows)
