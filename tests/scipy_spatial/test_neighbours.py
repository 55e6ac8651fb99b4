"""Neighbours, hulls and interpolation of scattered points, beside differences of SciPy's values."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import chainrule as cr

spatial = pytest.importorskip("scipy.spatial")
interpolate = pytest.importorskip("scipy.interpolate")
signal = pytest.importorskip("scipy.signal")

OURS = SimpleNamespace(
    np=cr.numpy,
    spatial=cr.scipy.spatial,
    interpolate=cr.scipy.interpolate,
    signal=cr.scipy.signal,
)
SCIPYS = SimpleNamespace(np=np, spatial=spatial, interpolate=interpolate, signal=signal)

RNG = np.random.default_rng(0)
POINTS, CUBE = RNG.uniform(-1, 1, (12, 2)), RNG.uniform(-1, 1, (9, 3))
AT = np.array([[0.1, 0.2], [-0.2, 0.1]])
VALUES = np.sin(POINTS[:, 0]) + POINTS[:, 1] ** 2
WAVE = np.sin(np.arange(40) * 0.37) + 0.3 * np.cos(np.arange(40) * 1.1)
TIGHT = {"tol": 1e-13, "maxiter": 4000}


def _peaks(m: Any, x: Any) -> Any:
    _, found = m.signal.find_peaks(x, height=-9, threshold=0, prominence=0.01, width=0.1)
    names = "peak_heights right_thresholds prominences widths width_heights left_ips right_ips"
    return m.np.concatenate([found[name] for name in names.split()])


PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "KDTree-x": (lambda m, x: m.spatial.KDTree(POINTS).query(x, 2)[0], AT),
    "KDTree-one": (lambda m, x: m.spatial.KDTree(POINTS).query(x, p=1)[0], AT[0]),
    "cKDTree-points": (lambda m, p: m.spatial.cKDTree(p).query(AT, [1, 3])[0], POINTS),
    "ConvexHull-volume": (lambda m, p: m.spatial.ConvexHull(p).volume, CUBE),
    "ConvexHull-area": (lambda m, p: m.spatial.ConvexHull(p).area, CUBE),
    "ConvexHull-equations": (lambda m, p: m.spatial.ConvexHull(p).equations, CUBE),
    "Delaunay": (lambda m, p: p[m.spatial.Delaunay(p).simplices].prod(), POINTS),
    "Voronoi": (lambda m, p: m.spatial.Voronoi(p).vertices[:3], POINTS),
    "Linear-x": (lambda m, x: m.interpolate.LinearNDInterpolator(POINTS, VALUES)(x), AT),
    "Linear-values": (lambda m, v: m.interpolate.LinearNDInterpolator(POINTS, v)(AT), VALUES),
    "Linear-points": (lambda m, p: m.interpolate.LinearNDInterpolator(p, VALUES)(AT), POINTS),
    "Clough-x": (
        lambda m, x: m.interpolate.CloughTocher2DInterpolator(POINTS, VALUES)(x[:, 0], x[:, 1]),
        AT,
    ),
    "Clough-values": (
        lambda m, v: m.interpolate.CloughTocher2DInterpolator(POINTS, v, **TIGHT)(AT),
        VALUES,
    ),
    "Nearest-values": (lambda m, v: m.interpolate.NearestNDInterpolator(POINTS, v)(AT), VALUES),
    "griddata": (lambda m, x: m.interpolate.griddata(POINTS, VALUES, x, "cubic"), AT),
    "find_peaks": (_peaks, WAVE),
    "peak_widths": (
        lambda m, x: m.signal.peak_widths(x, m.signal.find_peaks(x)[0], 0.7)[0],
        WAVE,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_differences_are_scipys(name: str) -> None:
    program, at = PROGRAMS[name]

    def ours(x: Any) -> Any:
        return program(OURS, x)

    direction, h = np.cos(np.arange(at.size)).reshape(at.shape), 1e-6
    value, tangent = cr.jvp(ours, (at,), (direction,))
    np.testing.assert_allclose(value, program(SCIPYS, at), rtol=1e-9)
    ends = [program(SCIPYS, at + step * direction) for step in (h, -h)]
    np.testing.assert_allclose(tangent, (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-6)
    slope = cr.jacobian(ours)(at).reshape(*np.shape(value), -1)
    np.testing.assert_allclose(slope @ direction.ravel(), tangent, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", [*PROGRAMS][::2])
def test_second_derivatives(name: str) -> None:
    program, at = PROGRAMS[name]
    slope = cr.grad(lambda x: np.sum(program(OURS, x) ** 2))
    direction, h = np.cos(np.arange(at.size)).reshape(at.shape), 1e-6
    wanted = (slope(at + h * direction) - slope(at - h * direction)) / (2 * h)
    found = cr.jvp(slope, (at,), (direction,))[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.*runs for each of:UserWarning")
def test_in_mapped_and_compiled_functions() -> None:
    tree = cr.scipy.spatial.KDTree(POINTS)
    plane = cr.scipy.interpolate.LinearNDInterpolator(POINTS, VALUES)
    for function in (lambda x: tree.query(x, 2)[0], lambda x: plane(x)[0]):
        for each in (function, cr.jacobian(function)):
            np.testing.assert_allclose(cr.vmap(each)(AT), [each(x) for x in AT], rtol=1e-12)
        with pytest.raises(cr.CompileError, match=r"needs numbers"):
            cr.compile(function)(AT[0])
    program, values = PROGRAMS["Linear-values"]
    slope = cr.jacobian(lambda v: program(OURS, v))
    np.testing.assert_allclose(cr.compile(slope)(values), slope(values), rtol=1e-12)


def test_objects_are_scipys() -> None:
    tree = cr.scipy.spatial.KDTree(POINTS)
    assert isinstance(tree, spatial.KDTree)
    again = pickle.loads(pickle.dumps(tree))
    assert again.query(AT[0]) == spatial.KDTree(POINTS).query(AT[0])
    far = cr.grad(lambda x: tree.query(x, 3, distance_upper_bound=0.3)[0][0])(AT[0])
    assert np.isfinite(far).all()

    def program(points: Any) -> Any:
        made = cr.scipy.spatial.ConvexHull(points)
        assert isinstance(made, cr.scipy.spatial.ConvexHull)
        assert made.nsimplex == spatial.ConvexHull(POINTS).nsimplex
        near = cr.scipy.spatial.KDTree(points).count_neighbors(tree, 0.5)
        return near * made.points.sum()

    assert cr.grad(program)(POINTS)[0, 0] == tree.count_neighbors(tree, 0.5)


def test_what_has_no_derivative_is_named() -> None:
    kinds = cr.scipy.spatial
    for name, program in {
        "Delaunay.transform": lambda p: kinds.Delaunay(p).transform.sum(),
        "ConvexHull.max_bound": lambda p: kinds.ConvexHull(p).max_bound.sum(),
        "KDTree.sparse_distance_matrix": lambda p: (
            kinds.KDTree(p).sparse_distance_matrix(kinds.KDTree(p), 1.0).sum()
        ),
    }.items():
        with pytest.raises(cr.MissingRuleError, match=rf"{name} .* compute it from the points"):
            cr.grad(program)(POINTS)
    with pytest.raises(cr.MissingRuleError, match=r"CloughTocher2D.*: the derivative by points"):
        cr.grad(lambda p: cr.scipy.interpolate.CloughTocher2DInterpolator(p, VALUES)(AT).sum())(
            POINTS
        )
