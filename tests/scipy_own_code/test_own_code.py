"""Functions of SciPy's without a rule of their own: its Python code on arrays that record.

Each row is a program of one number, with SciPy's modules and arrays.
"""

from __future__ import annotations

import abc
import functools
import importlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import chainrule as cr

scipy = pytest.importorskip("scipy")
IS_NEW = numpy.lib.NumpyVersion(scipy.__version__) >= "1.18.0"
pytestmark = pytest.mark.filterwarnings("ignore:.*will be removed in SciPy:DeprecationWarning")

X = numpy.random.default_rng(0).normal(size=30)
TABLE = numpy.array([[10.0, 20.0], [30.0, 15.0]])

AXES = X[:9].reshape(3, 3) / 3
IS_OF_ARRAYS = numpy.lib.NumpyVersion(scipy.__version__) >= "1.17.0"  # rotations in Python

PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    # filters, by their frequencies and widths
    "signal.butter": lambda s, t: s.butter(3, 0.2 * t)[0].sum(),
    "signal.butter-sos": lambda s, t: s.butter(3, 0.2 * t, output="sos").sum(),
    "signal.cheby1": lambda s, t: s.cheby1(3, 0.2 * t, 0.3 * t)[1].sum(),
    "signal.iirnotch": lambda s, t: s.iirnotch(0.2 * t, 30 * t)[1] @ numpy.arange(3.0),
    "signal.iirpeak": lambda s, t: s.iirpeak(0.2 * t, 30 * t)[0] @ numpy.arange(3.0),
    "signal.iircomb": lambda s, t: s.iircomb(0.2, 30 * t)[0].sum(),
    "signal.bilinear": lambda s, t: s.bilinear([1.0, t], [1.0, t, 3.0], 2.0)[1].sum(),
    "signal.firwin": lambda s, t: s.firwin(7, 0.3 * t)[:3] @ numpy.arange(3.0),
    "signal.lp2lp_zpk": lambda s, t: s.lp2lp_zpk([], [-1.0 * t, -2.0], 3.0, t)[2],
    # statistics
    "stats.describe": lambda s, t: s.describe(X * t)[3],
    "stats.circmean": lambda s, t: s.circmean(X * t),
    "stats.iqr": lambda s, t: s.iqr(X * t),
    "stats.tmean": lambda s, t: s.tmean(X * t, (-1, 1)),
    "stats.trimboth": lambda s, t: (s.trimboth(X * t, 0.1) ** 2).sum(),
    "stats.quantile": lambda s, t: s.quantile(X * t, 0.3),
    "stats.normaltest": lambda s, t: s.normaltest(X**2 * t + t**2 * X)[0],
    "stats.kurtosistest": lambda s, t: s.kurtosistest(X * X * t + X)[0],
    "stats.levene": lambda s, t: s.levene(X[:10] * t, X[10:20], X[20:])[0],
    "stats.alexandergovern": lambda s, t: s.alexandergovern(X[:10] * t, X[10:20]).statistic,
    "stats.combine_pvalues": lambda s, t: s.combine_pvalues([0.1 * t, 0.2])[0],
    "stats.pointbiserialr": lambda s, t: s.pointbiserialr([0, 1, 0, 1], X[:4] + t * X[4:8] ** 2)[0],
    "stats.directional_stats": lambda s, t: s.directional_stats(
        X.reshape(10, 3) * numpy.arange(1.0, 4) + t
    ).mean_direction.sum(),
    "stats.expectile": lambda s, t: s.expectile(X * t, 0.3),
    "stats.lmoment": lambda s, t: s.lmoment(X * t).sum(),
    "stats.median_abs_deviation": lambda s, t: s.median_abs_deviation(X * t),
    "stats.kstat": lambda s, t: s.kstat(X * t, 3),
    "stats.chi2_contingency": lambda s, t: s.chi2_contingency(TABLE * t)[0],
    "stats.obrientransform": lambda s, t: s.obrientransform(X[:10] * t, X[10:20])[0].sum(),
    "stats.probplot": lambda s, t: s.probplot(X * t)[1][0],
    # geometry, splines and polynomials
    "spatial.geometric_slerp": lambda s, t: s.geometric_slerp(
        [1.0, 0.0], [0.0, 1.0], 0.3 * t
    ).sum(),
    "spatial.procrustes": lambda s, t: s.procrustes(
        X[:20].reshape(10, 2), X[10:].reshape(10, 2) + t * X[:20].reshape(10, 2) ** 2
    )[2],
    "interpolate.splder": lambda s, t: s.splev(
        0.5, s.splder(s.splrep(numpy.arange(5.0) * t, X[:5]))
    ),
    "interpolate.lagrange": lambda s, t: s.lagrange(numpy.arange(3.0) * t, X[:3])(0.3),
    **{
        f"spatial.transform.{name}": run
        for name, run in {
            "rotvec": lambda s, t: s.Rotation.from_rotvec(AXES[0] * t).apply(AXES[1])[0],
            "euler": lambda s, t: s.Rotation.from_euler("zyx", [90 * t, 45, 30], True).as_quat()[1],
            "quat": lambda s, t: s.Rotation.from_quat([0.1 * t, 0.2, 0.3, 1]).as_matrix()[0, 1],
            "product": lambda s, t: (
                (s.Rotation.from_rotvec(AXES[0] * t) * s.Rotation.from_euler("x", 0.3)).inv()
            ).as_euler("xyz")[2],
            "power": lambda s, t: (s.Rotation.from_rotvec(AXES[0]) ** t).as_mrp()[0],
            "mean": lambda s, t: s.Rotation.from_rotvec(AXES * t).mean().magnitude(),
            "align": lambda s, t: s.Rotation.align_vectors(AXES * t, AXES[::-1] + t)[0].as_rotvec()[
                0
            ],
            "Slerp": lambda s, t: (
                s.Slerp([0, 1, 2], s.Rotation.from_rotvec(AXES * t))(0.5 * t).as_rotvec().sum()
            ),
            "RotationSpline": lambda s, t: s.RotationSpline(
                [0, 1, 2], s.Rotation.from_rotvec(AXES * t)
            )(0.5).as_rotvec()[1],
            "RigidTransform": lambda s, t: (
                s.RigidTransform.from_translation(AXES[0] * t).apply(AXES[1]).sum()
            ),
        }.items()
        if IS_OF_ARRAYS
    },
    # modules without a rule of ours, and functions that close over what is differentiated
    "signal.windows.kaiser": lambda s, t: s.kaiser(7, 2 * t).sum(),
    "signal.windows.tukey": lambda s, t: s.tukey(17, 0.5 * t) @ numpy.arange(17.0),
    "cluster.vq.whiten": lambda s, t: s.whiten(X.reshape(10, 3) * t + t**2 * numpy.arange(3.0))[
        0
    ].sum(),
    "stats.qmc.scale": lambda s, t: s.scale(X.reshape(10, 3) ** 2 / 9, [0, 0, 0], [t, 2, 3]).sum(),
    "stats.qmc.MultivariateNormalQMC": lambda s, t: (
        s.MultivariateNormalQMC([t, 2 * t], seed=1).random(4).sum()
    ),
    "constants.convert_temperature": lambda s, t: s.convert_temperature(t, "C", "F"),
    "sparse.csgraph.laplacian": lambda s, t: s.laplacian(TABLE * t)[0, 0],
    "interpolate.Rbf": lambda s, t: s.Rbf(numpy.arange(5.0), X[:5] * t)(2.3),
    "interpolate.approximate_taylor_polynomial": lambda s, t: s.approximate_taylor_polynomial(
        lambda x: t * x**2, 0.1, 3, 1.0
    )(0.3),
    "differentiate.derivative": lambda s, t: s.derivative(lambda x: numpy.sin(x * t), 0.5).df,
    "integrate.tanhsinh": lambda s, t: (
        s.tanhsinh(lambda x: numpy.exp(-t * x * x), 0.0, 1.0).integral
    ),
    "interpolate.pade": lambda s, t: s.pade([1, 1 * t, 0.5, 1 / 6], 1)[0](0.3),
}
if IS_NEW:
    del PROGRAMS["stats.expectile"]  # by a solver

FIRST = [
    name if i % 4 == 0 else pytest.param(name, marks=pytest.mark.thorough)
    for i, name in enumerate(PROGRAMS)
]


def program(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return the program with chainrule's module, and with SciPy's."""
    module, run = name.rpartition(".")[0], PROGRAMS[name]
    ours = importlib.import_module(f"chainrule.scipy.{module}")
    scipys = importlib.import_module(f"scipy.{module}")
    return (lambda t: run(ours, t)), (lambda t: run(scipys, t))


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_differences_are_scipys(name: str) -> None:
    ours, scipys = program(name)
    at, h = numpy.float64(1.1), 1e-5
    value, slope = cr.value_and_grad(ours)(at)
    assert value == pytest.approx(float(scipys(at)), rel=1e-10)
    difference = float(scipys(at + h) - scipys(at - h)) / (2 * h)
    assert slope == pytest.approx(difference, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", FIRST)
def test_both_modes_and_second_derivatives(name: str) -> None:
    ours, _ = program(name)
    at, h = numpy.float64(1.1), 1e-4
    slope = cr.grad(ours)
    assert cr.jvp(ours, (at,), (numpy.float64(1.0),))[1] == pytest.approx(slope(at), rel=1e-8)
    difference = (slope(at + h) - slope(at - h)) / (2 * h)
    assert cr.grad(slope)(at) == pytest.approx(difference, rel=1e-4, abs=1e-6)


def test_in_compiled_and_mapped_functions() -> None:
    points = numpy.array([0.9, 1.1])
    for name in ("signal.iirnotch", "stats.kstat", "spatial.geometric_slerp"):
        slope = cr.grad(program(name)[0])
        wanted = [slope(t) for t in points]
        compiled = cr.compile(slope)
        numpy.testing.assert_allclose([compiled(t) for t in points], wanted, 1e-10)
    if not IS_NEW:  # which asks whether there are nan
        numpy.testing.assert_allclose(
            cr.vmap(cr.grad(program("stats.kstat")[0]))(points),
            [cr.grad(program("stats.kstat")[0])(t) for t in points],
        )
    with pytest.raises(cr.AutogradError, match=r"vmap: a value was asked for"):  # to check it
        cr.vmap(cr.grad(program("signal.iirnotch")[0]))(points)


def test_numbers_are_scipys_own() -> None:
    signal, x = cr.scipy.signal, cr.numpy.array(X)
    peaks, found = signal.find_peaks(x, height=0)
    wanted, theirs = scipy.signal.find_peaks(X, height=0)
    assert peaks.tolist() == wanted.tolist()
    assert found["peak_heights"].tolist() == theirs["peak_heights"].tolist()
    labels, count = cr.scipy.ndimage.label(x.reshape(5, 6) > 0)
    assert count == scipy.ndimage.label(X.reshape(5, 6) > 0)[1] == labels.max()


def test_indices_and_labels_of_what_is_differentiated() -> None:
    costs = numpy.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])

    def least(t: Any) -> Any:
        scaled = t * costs
        return scaled[cr.scipy.optimize.linear_sum_assignment(scaled)].sum()

    assert cr.grad(least)(1.5) == 5.0
    image = X.reshape(5, 6).clip(0)
    count = cr.grad(lambda t: t * cr.scipy.ndimage.label(t * image)[1])(2.0)
    assert count == scipy.ndimage.label(image)[1]


def test_what_is_compiled_is_an_error() -> None:
    with pytest.raises(cr.MissingRuleError, match=r"has no derivative rule .* compiled code"):
        cr.grad(lambda t: cr.scipy.signal.symiirorder1(X * t, 1.0, 0.5).sum())(1.1)


# --- classes --------------------------------------------------------------------------------------

OBJECTS: dict[str, Callable[[Any, Any], Any]] = {
    "signal.lti": lambda s, t: s.lti([1.0], [1.0, t, 1.0]).step(T=numpy.linspace(0, 5, 6))[1].sum(),
    "signal.StateSpace": lambda s, t: (
        s.StateSpace([[-t]], [[1.0]], [[2.0]], [[0.0]])
        .output(numpy.ones(5), numpy.linspace(0, 1, 5))[1]
        .sum()
    ),
    "signal.bode": lambda s, t: s.bode(s.lti([1.0], [1.0, t, 1.0]), [1.0, 2.0])[1].sum(),
    "signal.lsim": lambda s, t: s.lsim(
        s.lti([1.0], [1.0, t]), numpy.ones(5), numpy.linspace(0, 1, 5)
    )[1].sum(),
    "signal.CZT": lambda s, t: abs(s.CZT(16, 4)(X[:16] * t)).sum(),
    "signal.ShortTimeFFT": lambda s, t: (
        abs(s.ShortTimeFFT(numpy.ones(4), 2, 1.0).stft(X[:16] * t)) ** 2
    ).sum(),
    "interpolate.FloaterHormann": lambda s, t: s.FloaterHormannInterpolator(
        numpy.arange(6.0), X[:6] * t, d=2
    )(2.5 * t),
    "special.chebyt": lambda s, t: s.chebyt(3)(0.3 * t),
    "special.jacobi": lambda s, t: s.jacobi(3, 0.5, 0.2)(0.3 * t),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_of_classes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROGRAMS, name, OBJECTS[name])
    test_values_and_differences_are_scipys(name)


@pytest.mark.skipif(not IS_OF_ARRAYS, reason="SciPy computes rotations in Cython")
def test_objects_of_numbers_take_what_is_differentiated() -> None:
    kinds = cr.scipy.spatial.transform
    turn = kinds.Rotation.from_euler("zyx", [90, 45, 30], degrees=True)
    both = (turn * kinds.Rotation.from_rotvec(AXES[0])).inv()
    assert isinstance(both, scipy.spatial.transform.Rotation)
    assert type(both.apply(AXES[1])) is numpy.ndarray
    numpy.testing.assert_allclose(cr.jacobian(both.apply)(AXES[1]), both.as_matrix(), 1e-12)
    way = kinds.Slerp([0, 1], kinds.Rotation.from_rotvec([[0, 0, 0], [0, 0, 1.0]]))
    slope = cr.jacobian(lambda t: way(t).as_rotvec())(0.5)
    numpy.testing.assert_allclose(slope, [0, 0, 1], atol=1e-12)
    assert pickle.loads(pickle.dumps(both)).approx_equal(both)

    several = kinds.Rotation.from_rotvec(AXES)
    several[0] = turn
    slope = cr.jacobian(several.apply)(AXES[1])
    numpy.testing.assert_allclose(slope, several.as_matrix(), 1e-12)

    system, times = cr.scipy.signal.lti([1.0], [1.0, 2.0]), numpy.linspace(0, 1, 3)
    theirs = scipy.signal.lti([1.0], [1.0, 2.0])
    for output in (system.output, functools.partial(cr.scipy.signal.lsim, theirs)):
        slope = cr.jacobian(lambda u, output=output: output(u, times)[1])(numpy.ones(3))
        numpy.testing.assert_allclose(slope.sum(1), theirs.output(numpy.ones(3), times)[1], 1e-12)


def test_draws_are_scipys_where_a_function_closes_over_what_is_differentiated() -> None:
    def program(s: Any, t: Any) -> Any:
        draws = scipy.stats.qmc.Halton(2, seed=1)
        settings: Any = {"n_points": 16, "n_estimates": 2, "qrng": draws}
        return s.qmc_quad(lambda x: numpy.exp(-t * x.sum(0)), [0, 0], [1, 1], **settings).integral

    value, slope = cr.value_and_grad(lambda t: program(cr.scipy.integrate, t))(1.1)
    ends = [program(scipy.integrate, t) for t in (1.1, 1.1 + 1e-6)]
    assert value == pytest.approx(ends[0], rel=1e-12)
    assert slope == pytest.approx((ends[1] - ends[0]) / 1e-6, rel=1e-4)


def test_kinds_of_objects() -> None:
    signal = cr.scipy.signal
    seen = []

    def program(t: Any) -> Any:
        seen.append(signal.lti([1.0], [1.0, t]))
        return seen[0].to_ss().A.sum()

    assert cr.grad(program)(2.0) == -1.0
    plain = signal.lti([1.0], [1.0, 2.0])
    assert isinstance(plain, type(scipy.signal.lti([1.0], [1.0, 2.0])))
    for system in (plain, seen[0]):
        assert isinstance(system, signal.lti)
    assert not isinstance(1.0, signal.lti)
    (derived,) = [type("Own", (signal.ZoomFFT,), {})(16, 0.5)]
    assert isinstance(derived, scipy.signal.ZoomFFT)


@pytest.mark.parametrize("name", ["linalg", "optimize", "sparse", "special", "stats"])
def test_a_star_imports_the_names_of_scipys(name: str) -> None:
    ours: dict[str, Any] = {}
    scipys: dict[str, Any] = {}
    exec(f"from chainrule.scipy.{name} import *", ours)
    exec(f"from scipy.{name} import *", scipys)
    assert ours.keys() == scipys.keys()
    assert set(dir(getattr(cr.scipy, name))) >= scipys.keys() - {"__builtins__"}


def test_private_modules_and_names_of_the_package() -> None:
    search = importlib.import_module("chainrule.scipy.optimize._linesearch").scalar_search_armijo

    def step(scale: Any) -> Any:
        return search(lambda a: (scale * a - 1) ** 2, 1.0, -2 * scale, alpha0=1.0)[0]

    e = 1e-6
    wanted = (step(3.0 + e) - step(3.0 - e)) / (2 * e)
    numpy.testing.assert_allclose(cr.grad(step)(3.0), wanted, rtol=1e-6)
    below = importlib.import_module("chainrule.scipy.sparse.linalg._interface")
    assert issubclass(below.MatrixLinearOperator, below.LinearOperator)
    assert cr.scipy.__version__ == scipy.__version__
    with pytest.raises(AttributeError, match="scipy"):
        cr.scipy.no_such_module  # noqa: B018


def test_functions_that_close_over_what_is_differentiated_beside_arrays_that_record() -> None:
    slopes = importlib.import_module("chainrule.scipy.optimize._numdiff").approx_derivative

    def total(a: Any) -> Any:
        return slopes(lambda t: cr.numpy.sin(a * t), cr.numpy.array([0.3, 0.4])).sum()

    e = 1e-3
    numpy.testing.assert_allclose(
        cr.grad(total)(1.5), (total(1.5 + e) - total(1.5 - e)) / (2 * e), rtol=1e-4
    )


def test_classes_of_users_derive_from_several_of_scipys() -> None:
    ours = cr.scipy.interpolate

    class Base(abc.ABC):
        @abc.abstractmethod
        def name(self) -> str: ...

    class Curve(Base, ours.PPoly):
        def name(self) -> str:
            return "curve"

    class Both(ours.PPoly, ours.BPoly):
        pass

    curve = Curve(numpy.array([[1.0], [2.0]]), numpy.array([0.0, 1.0]))
    assert curve(0.5) == 2.5
    assert curve.name() == "curve"
    assert not isinstance(ours.PPoly(curve.c, curve.x), Curve)
    assert issubclass(Both, ours.BPoly)
    with pytest.raises(TypeError, match="abstract"):
        type("Nameless", (Base, ours.PPoly), {})(curve.c, curve.x)
