"""SciPy's solvers take derivatives of chainrule, plain and compiled, and give back plain arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr

optimize = pytest.importorskip("scipy.optimize")
integrate = pytest.importorskip("scipy.integrate")

X0 = np.array([-1.2, 1.0, 0.5])


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def rosenbrock_of_tensors(x: Any) -> Any:
    """The same, which returns a Tensor for an array."""
    return cr.sum(cr.square(10 * (x[1:] - x[:-1] ** 2)) + cr.square(1 - x[:-1]))


def residuals(x: Any) -> Any:
    return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def residuals_of_tensors(x: Any) -> Any:
    return cr.stack([cr.as_tensor(10 * (x[1] - x[0] ** 2)), cr.as_tensor(1 - x[0])])


functions = pytest.mark.parametrize("f", [rosenbrock, rosenbrock_of_tensors])
systems = pytest.mark.parametrize("f", [residuals, residuals_of_tensors])
plain_and_compiled = pytest.mark.parametrize(
    "made", [lambda f: f, cr.compile], ids=["plain", "jit"]
)


def leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, dict):
        result = tuple(result.values())
    if isinstance(result, tuple | list):
        for part in result:
            yield from leaves(part)
    else:
        yield result


def plain(result: Any) -> Any:
    """Check that no tensor is in a result of SciPy, and return it."""
    assert not any(isinstance(leaf, cr.Tensor) for leaf in leaves(result))
    return result


def reached(result: Any, wanted: Any = 1.0) -> None:
    assert type(plain(result).x) is np.ndarray
    np.testing.assert_allclose(result.x, wanted, atol=1e-2)


WITH_HESSIAN = ["Newton-CG", "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov"]
METHODS = ["CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP", *WITH_HESSIAN]
OPTIONS: dict[str, Any] = {"TNC": {"maxfun": 2000}}


@pytest.mark.sampled(5)
@functions
@plain_and_compiled
@pytest.mark.parametrize("method", METHODS)
def test_minimize_with_a_gradient(method: str, made: Any, f: Any) -> None:
    hess = made(cr.hessian(f)) if method in WITH_HESSIAN else None
    reached(
        optimize.minimize(
            f, X0, jac=made(cr.grad(f)), hess=hess, method=method, options=OPTIONS.get(method)
        )
    )


@functions
@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYQA"])
def test_minimize_without_a_gradient(method: str, f: Any) -> None:
    reached(optimize.minimize(f, X0, method=method))


@pytest.mark.sampled(5)
@plain_and_compiled
@pytest.mark.parametrize("method", METHODS)
def test_minimize_with_value_and_gradient_of_one_function(method: str, made: Any) -> None:
    both = made(cr.value_and_grad(rosenbrock))
    hess = cr.hessian(rosenbrock) if method in WITH_HESSIAN else None
    options = OPTIONS.get(method)
    reached(optimize.minimize(both, X0, jac=True, hess=hess, method=method, options=options))


@pytest.mark.sampled(3)
@plain_and_compiled
@pytest.mark.parametrize("method", ["Newton-CG", "trust-constr", "trust-ncg", "trust-krylov"])
def test_minimize_with_hessian_vector_products(method: str, made: Any) -> None:
    hessp = made(lambda x, p: cr.hvp(rosenbrock, x, p))
    jac = made(cr.grad(rosenbrock))
    reached(optimize.minimize(rosenbrock, X0, jac=jac, hessp=hessp, method=method))


def test_minimize_with_constraints() -> None:
    def excess(x: Any) -> Any:
        return 2.0 - (x * x).sum()

    constraint = {"type": "ineq", "fun": excess, "jac": cr.grad(excess)}
    for method in ("SLSQP", "trust-constr"):
        found = optimize.minimize(
            rosenbrock, X0, jac=cr.grad(rosenbrock), method=method, constraints=constraint
        )
        assert excess(plain(found).x) == pytest.approx(0.0, abs=1e-3)
    nonlinear = optimize.NonlinearConstraint(
        excess, 0, np.inf, jac=cr.grad(excess), hess=lambda x, v: v[0] * cr.hessian(excess)(x)
    )
    found = optimize.minimize(
        rosenbrock,
        X0,
        jac=cr.grad(rosenbrock),
        hess=cr.hessian(rosenbrock),
        method="trust-constr",
        constraints=nonlinear,
    )
    assert excess(plain(found).x) == pytest.approx(0.0, abs=1e-3)


@systems
@plain_and_compiled
@pytest.mark.parametrize(
    "settings",
    [
        {"method": "trf"},
        {"method": "dogbox"},
        {"method": "lm"},
        {"loss": "soft_l1"},
        {"loss": "cauchy", "bounds": ([-2, -2], [2, 2])},
        {"tr_solver": "lsmr", "x_scale": "jac"},
    ],
    ids=str,
)
def test_least_squares(settings: Any, made: Any, f: Any) -> None:
    jac = made(cr.jacobian(f))
    reached(optimize.least_squares(made(f), [-1.2, 1.0], jac=jac, **settings))


@systems
@plain_and_compiled
@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_root(method: str, made: Any, f: Any) -> None:
    reached(optimize.root(f, [-1.2, 1.0], jac=made(cr.jacobian(f)), method=method))
    reached(
        optimize.root(made(lambda x: (f(x), cr.jacobian(f)(x))), X0[:2], jac=True, method=method)
    )


@systems
@pytest.mark.parametrize("method", ["broyden1", "broyden2", "anderson", "krylov", "df-sane"])
def test_root_by_methods_without_a_jacobian(method: str, f: Any) -> None:
    reached(optimize.root(f, [0.9, 0.9], method=method))


@systems
@plain_and_compiled
def test_fsolve_and_leastsq(made: Any, f: Any) -> None:
    jac = made(cr.jacobian(f))
    solution, *_ = plain(optimize.fsolve(f, [-1.2, 1.0], fprime=jac, full_output=True))
    np.testing.assert_allclose(solution, 1.0)
    solution, *_ = plain(optimize.leastsq(f, [-1.2, 1.0], Dfun=jac, full_output=True))
    np.testing.assert_allclose(solution, 1.0)


T = np.linspace(0, 1, 20)
MODELS: dict[str, Callable[..., Any]] = {
    "numpy": lambda t, a, b: a * np.exp(-b * t),
    "chainrule": lambda t, a, b: a * cr.exp(-b * t),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@plain_and_compiled
@pytest.mark.parametrize("method", ["lm", "trf", "dogbox"])
def test_curve_fit(method: str, made: Any, model: Any) -> None:
    data = MODELS["numpy"](T, 2.0, 3.0)
    jac = made(lambda t, *p: np.stack(cr.jacobian(model, (1, 2))(t, *p), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a program for each value of the parameters
        found, covariance = plain(
            optimize.curve_fit(model, T, data, p0=[1.0, 1.0], jac=jac, method=method)
        )
    np.testing.assert_allclose(found, [2.0, 3.0], rtol=1e-6)
    assert type(covariance) is np.ndarray


@pytest.mark.parametrize("system", ["numpy", "chainrule"])
@plain_and_compiled
@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF", "LSODA"])
def test_solve_ivp(method: str, made: Any, system: str) -> None:
    xp = np if system == "numpy" else cr
    as_part = (lambda x: x) if xp is np else cr.as_tensor

    def pendulum(t: Any, y: Any) -> Any:
        return xp.stack([as_part(y[1]), as_part(-np.sin(y[0]) - 0.1 * y[1])])

    jac = None if method == "RK45" else made(lambda t, y: cr.jacobian(pendulum, "y")(t, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a program for each time
        found = integrate.solve_ivp(
            pendulum, (0, 2), [1.0, 0.0], method=method, jac=jac, rtol=1e-6, atol=1e-8
        )
    assert type(plain(dict(found)).get("y")) is np.ndarray
    wanted = integrate.solve_ivp(
        lambda t, y: [y[1], -np.sin(y[0]) - 0.1 * y[1]], (0, 2), [1.0, 0.0], rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(found.y[:, -1], wanted.y[:, -1], atol=1e-4)


@pytest.mark.parametrize("method", ["newton", "halley"])
def test_root_scalar(method: str) -> None:
    def f(x: Any) -> Any:
        return x**3 - 2 * x - 5

    slope, curvature = cr.grad(f), cr.grad(cr.grad(f))
    found = optimize.root_scalar(f, x0=2.0, fprime=slope, fprime2=curvature, method=method)
    assert f(plain(found.root)) == pytest.approx(0.0, abs=1e-9)
    found = optimize.root_scalar(cr.value_and_grad(f), x0=2.0, fprime=True, method="newton")
    assert f(plain(found.root)) == pytest.approx(0.0, abs=1e-9)
    assert f(plain(optimize.newton(f, 2.0, fprime=slope))) == pytest.approx(0.0, abs=1e-9)


def test_squares_of_arrays_are_compiled_as_those_of_tensors() -> None:
    """A power with a number as exponent isn't compiled as one with an array of exponents."""
    sources = []
    for x in (np.ones(5), cr.ones(5, dtype=cr.float64)):
        slope = cr.compile(cr.grad(lambda x: (x**2).sum()))
        slope(x)
        sources.append(slope.source)
    assert sources[0] == sources[1]
