"""SciPy's older names, as programs use them: fsolve, newton, brentq and relatives, curve_fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

reference = pytest.importorskip("scipy.optimize")
optimize = cr.scipy.optimize

T = np.linspace(0.0, 1.0, 20)
NOISY = 2.0 * np.exp(-3.0 * T) + 0.05 * np.cos(40 * T)


def differences(f: Any, point: Any, step: float = 1e-5) -> Any:
    """The Jacobian by central differences."""
    point = np.asarray(point, float)
    units = step * np.eye(point.size).reshape(point.size, *point.shape)
    return np.stack([(f(point + h) - f(point - h)) / (2 * step) for h in units], -1)


def decay(t: Any, height: Any, rate: Any) -> Any:
    return height * np.exp(-rate * t)


# --- roots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bisect", "brenth", "brentq", "ridder"])
def test_brackets(name: str) -> None:
    def f(x: Any, a: Any) -> Any:
        return x**3 - a * np.cos(x)

    ours, theirs = getattr(optimize, name), getattr(reference, name)
    value = ours(f, 0, 2, 1.5, 1e-13)
    assert type(value) is float
    assert value == theirs(f, 0, 2, (1.5,), 1e-13)
    slope = cr.grad(lambda a: ours(f, 0, 2, (a,), xtol=1e-13))(1.5)
    np.testing.assert_allclose(slope, differences(lambda a: theirs(f, 0, 2, a, 1e-13), 1.5), 1e-6)
    root, result = ours(f, 0, 2, 1.5, full_output=True)
    assert result.converged
    assert root == result.root
    with pytest.raises(RuntimeError, match=f"{name}: failed to converge after 2 iterations"):
        ours(f, 0, 2, 1.5, maxiter=2)
    assert not ours(f, 0, 2, 1.5, maxiter=2, full_output=True, disp=False)[1].converged
    with pytest.raises(ValueError, match="different signs"):
        ours(f, 1.9, 2, 1.5)


def test_newton_reports_its_run() -> None:
    def both(a: Any) -> Any:
        root, report = optimize.newton(lambda x, c: x**3 - c, 1.5, args=[a], full_output=True)
        assert report.converged
        assert report.root is root
        return report.root

    assert cr.grad(both)(8.0) == pytest.approx(1 / 12)
    several, converged, _ = optimize.newton(lambda x: x**2 - 4, np.ones(2), full_output=True)
    assert np.allclose(several, 2)
    assert converged.all()
    _, report = optimize.newton(
        lambda x: np.exp(x), 1.0, lambda x: np.exp(x), maxiter=2, full_output=True, disp=False
    )
    assert not report.converged
    with pytest.raises(cr.ArgumentError, match="full_output=True reports one run, got 2"):
        cr.vmap(both)(np.array([1.0, 8.0]))


def test_newton_by_each_of_its_methods_for_numbers_and_arrays() -> None:
    def f(x: Any, a: Any) -> Any:
        return x**3 - a

    a = np.array([2.0, 5.0])

    def slope(x: Any, a: Any) -> Any:
        return 3 * x**2

    def curvature(x: Any, a: Any) -> Any:
        return 6 * x

    for given in ({}, {"fprime": slope}, {"fprime": slope, "fprime2": curvature}, {"x1": a}):
        found = cr.jacobian(lambda a, g=given: optimize.newton(f, np.ones(2), args=(a,), **g))(a)
        np.testing.assert_allclose(found, np.diag(np.cbrt(a) / (3 * a)), rtol=1e-6)
    third = cr.grad(cr.grad(cr.grad(lambda a: optimize.newton(f, 1.5, args=(a,), tol=1e-13))))(8.0)
    np.testing.assert_allclose(third, 10 / 27 * 8.0 ** (-8 / 3), rtol=1e-6)
    with pytest.raises(RuntimeError, match="converge"):
        optimize.newton(lambda x: x**2 + 1, 0.5)


def circle_and_line(p: Any, radius: Any) -> Any:
    x, y = p
    return [x**2 + y**2 - radius**2, x - 2 * y]


def test_fsolve() -> None:
    def meet(radius: Any, **settings: Any) -> Any:
        return optimize.fsolve(circle_and_line, [1.0, 2.0], radius, **settings)

    assert type(meet(2.0)) is np.ndarray
    np.testing.assert_allclose(meet(2.0), reference.fsolve(circle_and_line, [1.0, 2.0], 2.0))
    expected = differences(lambda r: reference.fsolve(circle_and_line, [1, 2], r, xtol=1e-13), 2.0)

    def matrix(p: Any, radius: Any) -> Any:
        return np.array([[2 * p[0], 2 * p[1]], [1.0, -2.0]])

    transposed = {"fprime": lambda p, r: matrix(p, r).T, "col_deriv": True}
    for settings in ({}, {"fprime": matrix}, transposed):
        found = cr.jacobian(lambda r, s=settings: meet(r, **s))(2.0)
        np.testing.assert_allclose(found, expected[:, 0], rtol=1e-6)
    _, info, flag, message = meet(2.0, full_output=True)
    assert flag == 1
    assert "converged" in message
    np.testing.assert_allclose(info["fvec"], 0, atol=1e-8)


def test_fsolve_of_a_number_and_without_success() -> None:
    found = optimize.fsolve(lambda x: np.cos(x) - x, 0.5)
    np.testing.assert_allclose(found, reference.fsolve(lambda x: np.cos(x) - x, 0.5))
    assert found.shape == (1,)
    with pytest.warns(RuntimeWarning, match="not making good progress"):
        optimize.fsolve(lambda x: x**2 + 1, 0.5)
    with pytest.warns(UserWarning, match="did not converge"):
        cr.jacobian(lambda a: optimize.fsolve(lambda x: x**2 + a, 0.5))(1.0)


# --- curve_fit ------------------------------------------------------------------------------------

CORRELATED = 0.01 * (np.eye(20) + 0.3 * np.eye(20, k=1) + 0.3 * np.eye(20, k=-1))


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("sigma", [None, 0.1 + T, CORRELATED], ids=["none", "errors", "matrix"])
@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0, [5.0, 10.0])])
def test_curve_fit_and_derivatives_of_all_it_returns(
    absolute: bool, sigma: Any, bounds: Any
) -> None:
    def fit(curve_fit: Any, y: Any, **settings: Any) -> Any:
        shared = {"sigma": sigma, "absolute_sigma": absolute, "bounds": bounds}
        return curve_fit(decay, T, y, **shared, **settings)

    found, expected = fit(optimize.curve_fit, NOISY), fit(reference.curve_fit, NOISY)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4)
    precise = {"ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}
    for part in (0, 1):
        derivative = cr.jacobian(lambda y, i=part: fit(optimize.curve_fit, y, **precise)[i])(NOISY)
        by_differences = differences(
            lambda y, i=part: fit(reference.curve_fit, y, p0=found[0], **precise)[i], NOISY, 1e-4
        )
        np.testing.assert_allclose(derivative, by_differences, rtol=2e-2, atol=2e-4)


def test_curve_fit_takes_jacobians_and_tells_of_all() -> None:
    def matrix(t: Any, height: Any, rate: Any) -> Any:
        return np.stack([np.exp(-rate * t), -height * t * np.exp(-rate * t)], -1)

    values, _, info, message, flag = optimize.curve_fit(
        decay, list(T), list(NOISY), [1, 1], 0.1 + T, jac=matrix, maxfev=50, full_output=True
    )
    np.testing.assert_allclose(values, reference.curve_fit(decay, T, NOISY, sigma=0.1 + T)[0], 1e-6)
    assert info["nfev"] > 1
    assert flag > 0
    assert message
    with pytest.raises(RuntimeError, match="Optimal parameters not found"):
        optimize.curve_fit(decay, T, NOISY, maxfev=1)
    with pytest.raises(RuntimeError, match="Optimal parameters not found"):
        reference.curve_fit(decay, T, NOISY, maxfev=1)


def test_curve_fit_of_data_that_dont_determine_it() -> None:
    def twice(t: Any, a: Any, b: Any) -> Any:
        return (a + b) * t

    with pytest.warns(reference.OptimizeWarning, match="could not be estimated"):
        _, covariance = optimize.curve_fit(twice, T, 3 * T)
    assert np.isinf(covariance).all()


def test_curve_fit_of_bad_input() -> None:
    bad = NOISY.copy()
    bad[3] = np.nan
    with pytest.raises(cr.ArgumentError, match="ydata has nan or infinity"):
        optimize.curve_fit(decay, T, bad)
    with pytest.raises(cr.ArgumentError, match="doesn't name its parameters"):
        optimize.curve_fit(lambda t, *p: p[0] * t, T, NOISY)
    with pytest.raises(cr.ArgumentError, match=r"sigma has the shape \[3\], but ydata \[20\]"):
        optimize.curve_fit(decay, T, NOISY, sigma=np.ones(3))
    with pytest.raises(cr.CompileError, match="Call it outside of the compiled function"):
        cr.compile(lambda y: optimize.curve_fit(decay, T, y)[0])(NOISY)


# --- SciPy's names that are not ours --------------------------------------------------------------


def test_a_name_that_is_only_scipys_is_not_called_recorded() -> None:
    def lowest(a: Any) -> Any:
        return optimize.fmin_tnc(lambda x: ((x - a) ** 2).sum(), np.zeros(2), approx_grad=True)[0]

    with pytest.raises(cr.MissingRuleError, match="fmin_tnc has no derivative rule") as error:
        cr.grad(lowest)(1.0)
    assert "fmin_tnc, which is recorded" not in str(error.value)
