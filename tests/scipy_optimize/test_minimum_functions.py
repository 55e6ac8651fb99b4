"""SciPy's other names for minima: values are SciPy's, derivatives those of differences of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy

reference = pytest.importorskip("scipy.optimize")
optimize = cr.scipy.optimize

T = np.linspace(0.0, 1.0, 9)
DATA = np.sin(5 * T)


def bowl(x: Any, a: Any) -> Any:
    return ((x - a) ** 2).sum() + 0.3 * (x**4).sum()


def slope(x: Any, a: Any) -> Any:
    return 2 * (x - a) + 1.2 * x**3


def both(x: Any, a: Any) -> Any:
    return bowl(x, a), slope(x, a)


def hill(x: Any, a: Any) -> Any:
    return np.cosh(x - a[0]) + a[1] * x**2


def misfit(p: Any, a: Any) -> Any:
    return p[0] * np.exp(p[1] * T) - DATA * a[0] - a[1]


def columns(p: Any, a: Any) -> Any:
    return np.stack([np.exp(p[1] * T), p[0] * T * np.exp(p[1] * T)])


START, QUIET = np.zeros(2), {"disp": 0}
BOUNDED: dict[str, Any] = {"method": "bounded", "options": {"xatol": 1e-10}}
CASES: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "fmin": lambda s: lambda a: s.fmin(bowl, START, (a,), 1e-9, 1e-9, **QUIET),
    "fmin_powell": lambda s: lambda a: s.fmin_powell(bowl, START, (a,), 1e-9, 1e-9, **QUIET),
    "fmin_cg": lambda s: lambda a: s.fmin_cg(bowl, START, slope, (a,), gtol=1e-9, **QUIET),
    "fmin_cg alone": lambda s: lambda a: s.fmin_cg(bowl, START, args=(a,), **QUIET),
    "fmin_bfgs": lambda s: lambda a: s.fmin_bfgs(bowl, START, slope, (a,), 1e-9, **QUIET),
    "fmin_bfgs value": lambda s: (
        lambda a: s.fmin_bfgs(bowl, START, args=(a,), full_output=True, **QUIET)[1]
    ),
    "fmin_ncg": lambda s: lambda a: s.fmin_ncg(bowl, START, slope, args=(a,), **QUIET),
    "fmin_l_bfgs_b": lambda s: lambda a: s.fmin_l_bfgs_b(bowl, START, slope, (a,))[0],
    "fmin_l_bfgs_b value": lambda s: lambda a: s.fmin_l_bfgs_b(bowl, START, slope, (a,))[1],
    "fmin_l_bfgs_b pair": lambda s: lambda a: s.fmin_l_bfgs_b(both, START, args=(a,))[0],
    "fmin_l_bfgs_b alone": lambda s: (
        lambda a: s.fmin_l_bfgs_b(bowl, START, args=(a,), approx_grad=True)[0]
    ),
    "fmin_l_bfgs_b bounds": lambda s: (
        lambda a: s.fmin_l_bfgs_b(bowl, START, slope, (a,), bounds=[(0, 0.4), (None, None)])[0]
    ),
    "minimize_scalar": lambda s: lambda a: s.minimize_scalar(hill, args=(a,)).x,
    "minimize_scalar value": lambda s: lambda a: s.minimize_scalar(hill, (0, 1), args=(a,)).fun,
    "minimize_scalar bounded": lambda s: (
        lambda a: s.minimize_scalar(hill, bounds=(0, 4), args=(a,), **BOUNDED).x
    ),
    "leastsq": lambda s: lambda a: s.leastsq(misfit, [1.0, 0.1], (a,))[0],
    "leastsq columns": lambda s: (
        lambda a: s.leastsq(misfit, [1.0, 0.1], (a,), columns, col_deriv=True)[0]
    ),
    "leastsq matrix": lambda s: lambda a: s.leastsq(misfit, [1.0, 0.1], (a,), full_output=True)[1],
}


@pytest.mark.parametrize("name", CASES)
def test_minima_and_their_derivatives(name: str) -> None:
    at, step = np.array([1.0, 2.0]), 1e-4
    ours, scipys = CASES[name](optimize), CASES[name](reference)
    found = ours(at)
    np.testing.assert_allclose(found, scipys(at), 1e-5, 1e-6)
    assert isinstance(found, np.ndarray | np.generic | float)
    ways = np.eye(2) * step
    wanted = [(scipys(at + way) - scipys(at - way)) / (2 * step) for way in ways]
    np.testing.assert_allclose(cr.jacobian(ours)(at), np.stack(wanted, -1), 1e-2, 1e-3)


def test_matrices_of_older_functions_do_not_count_as_constants() -> None:
    def variance(a: Any) -> Any:
        return optimize.fmin_bfgs(bowl, START, slope, (a,), full_output=True, **QUIET)[3][0, 0]

    with pytest.raises(cr.AutogradError, match="`hess_inv` of the result"):
        cr.grad(variance)(np.array([1.0, 2.0]))


def test_solvers_without_derivatives_take_our_arrays_and_say_so() -> None:
    def pair(x: Any) -> Any:
        slopes = cr.numpy.zeros(2)
        slopes[0], slopes[1] = 2 * x[0] - 1, 2 * x[1]
        return (x[0] - 0.5) ** 2 + x[1] ** 2, slopes

    settings = {"method": "L-BFGS-B", "jac": True}
    start = cr.numpy.array([1.0, 1.0])
    found = optimize.basinhopping(pair, start, niter=2, minimizer_kwargs=settings)
    np.testing.assert_allclose(found.x, [0.5, 0.0], atol=1e-6)
    matrix = cr.numpy.array([[1.0, 2.0], [0.0, 3.0]])
    np.testing.assert_array_equal(optimize.linear_sum_assignment(matrix), [[0, 1], [1, 0]])
    programs = {
        "approx_fprime": lambda a: optimize.approx_fprime(np.ones(2) * a, np.sum).sum(),
        "fmin_slsqp": lambda a: optimize.fmin_slsqp(lambda x: ((x - a) ** 2).sum(), [0.0]).sum(),
    }
    for name, program in programs.items():
        with pytest.raises(cr.MissingRuleError, match=rf"optimize\.{name} .*implicit_function"):
            cr.grad(program)(0.5)


def test_rosen_records() -> None:
    x = np.array([1.3, 0.7, 0.8])
    np.testing.assert_allclose(cr.grad(optimize.rosen)(x), reference.rosen_der(x), 1e-12)
    np.testing.assert_allclose(cr.hessian(optimize.rosen)(x), reference.rosen_hess(x), 1e-12)
