"""cr.scipy.optimize: SciPy's solvers on trees, with chainrule's derivatives, and their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

reference = pytest.importorskip("scipy.optimize")
optimize = cr.scipy.optimize

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 3)), RNG.normal(size=20)
T = np.linspace(0.0, 1.0, 20)


def rosenbrock(x: Any, a: Any = 1.0) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (a - x[:-1]) ** 2).sum()


def penalized(w: Any, lam: Any) -> Any:
    return ((X @ w - Y) ** 2).sum() + lam * (w**2).sum()


def ridge(lam: Any) -> Any:
    return np.linalg.solve(X.T @ X + lam * np.eye(3), X.T @ Y)


def differences(f: Callable[[Any], Any], point: float, step: float = 1e-3) -> Any:
    """The derivative by a number, by central differences of fourth order."""
    a, b = ((f(point + h) - f(point - h)) / (2 * h) for h in (step, 2 * step))
    return (4 * a - b) / 3


# --- minimize -------------------------------------------------------------------------------------

WITH_GRADIENT = ["CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP", "trust-constr", "dogleg"]
WITH_GRADIENT += ["trust-ncg", "trust-exact", "trust-krylov"]
WITHOUT = ["Nelder-Mead", "Powell", "COBYLA", "COBYQA"]


def some(names: Any, quick: set[str]) -> list[Any]:
    """Return parameters, the others among the thorough ones."""
    return [pytest.param(n, marks=() if n in quick else pytest.mark.thorough) for n in names]


EACH_KIND = {"BFGS", "L-BFGS-B", "SLSQP", "Newton-CG", "trust-exact", "trust-constr", "Nelder-Mead"}


@pytest.mark.parametrize("method", some([*WITH_GRADIENT, *WITHOUT], EACH_KIND))
def test_minimize_by_all_methods_and_its_derivatives(method: str) -> None:
    def fit(lam: Any) -> Any:
        return optimize.minimize(penalized, np.zeros(3), lam, method=method, tol=1e-8).x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's, and of a tolerance that isn't reached
        np.testing.assert_allclose(fit(0.7), ridge(0.7), atol=2e-4)
        for mode in ("reverse", "forward"):
            found = cr.jacobian(fit, mode=mode)(0.7)
            np.testing.assert_allclose(found, cr.jacobian(ridge)(0.7), atol=2e-5)
        second = cr.jacobian(cr.jacobian(fit, mode="reverse"), mode="forward")(0.7)
    np.testing.assert_allclose(second, cr.jacobian(cr.jacobian(ridge))(0.7), atol=2e-5)


@pytest.mark.parametrize("method", some(WITH_GRADIENT, {"BFGS", "Newton-CG", "trust-exact"}))
def test_minimize_uses_our_derivatives_and_returns_scipys_result(method: str) -> None:
    found = optimize.minimize(rosenbrock, [-1.2, 1.0], method=method)
    assert type(found) is reference.OptimizeResult
    assert type(found.x) is np.ndarray
    np.testing.assert_allclose(found.x, 1.0, atol=1e-2 if method == "CG" else 1e-3)
    settings: dict[str, Any] = {"jac": cr.grad(rosenbrock)}
    if method in ("dogleg", "trust-exact"):
        settings["hess"] = cr.hessian(rosenbrock)
    elif method in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"):
        settings["hessp"] = lambda x, p: cr.hvp(rosenbrock, x, p)
    wanted = reference.minimize(rosenbrock, [-1.2, 1.0], method=method, **settings)
    assert found.nit == wanted.nit
    np.testing.assert_allclose(found.x, wanted.x)


def of_parts(p: Any, target: Any) -> Any:
    return ((p["w"] - target) ** 2).sum() + (p["b"][0] - 2) ** 2 + (p["b"][1] - 0.1) ** 2


@pytest.mark.parametrize("kind", ["arrays", "tensors"])
def test_trees_keep_their_structure_and_kinds(kind: str) -> None:
    seen: list[type] = []

    def fun(p: Any, target: Any) -> Any:
        seen.append(type(p["w"]))
        return of_parts(p, target)

    if kind == "arrays":
        x0, target = {"w": np.zeros((2, 2)), "b": (1.0, 1.0)}, np.ones((2, 2))
        kinds, inner = [np.ndarray, float], {cr.numpy.ndarray}
    else:
        x0 = {"w": cr.zeros(2, 2, dtype=cr.float64), "b": (cr.tensor(1.0), cr.tensor(1.0))}
        target, kinds, inner = cr.ones(2, 2), [cr.Tensor, cr.Tensor], {cr.Tensor}
    shown: list[Any] = []
    found = optimize.minimize(fun, x0, target, callback=shown.append)
    assert [type(found.x["w"]), type(found.x["b"][0])] == kinds
    np.testing.assert_allclose(found.x["w"], 1.0, atol=1e-4)
    assert isinstance(found.x["b"], tuple)
    assert set(seen) == inner
    assert shown[0].keys() == {"w", "b"}

    def first(target: Any) -> Any:
        return optimize.minimize(of_parts, x0, target).x["w"][0, 0]

    np.testing.assert_allclose(cr.grad(first)(target), [[1, 0], [0, 0]], atol=1e-6)


def test_the_value_at_the_minimum_has_the_derivative_of_the_envelope() -> None:
    def least(lam: Any) -> Any:
        return optimize.minimize(penalized, np.zeros(3), lam, tol=1e-9).fun

    assert cr.grad(least)(0.7) == pytest.approx((ridge(0.7) ** 2).sum())
    wanted = cr.grad(lambda lam: (ridge(lam) ** 2).sum())(0.7)
    assert cr.grad(cr.grad(least))(0.7) == pytest.approx(wanted)


def test_derivatives_of_ones_own() -> None:
    calls = {"jac": 0, "hess": 0, "hessp": 0}

    def count(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            calls[name] += 1
            return f(*args)

        return counted

    lam = 0.7
    jac = count("jac", lambda w, lam: 2 * X.T @ (X @ w - Y) + 2 * lam * w)
    matrix = 2 * (X.T @ X + lam * np.eye(3))
    hess, hessp = count("hess", lambda w, lam: matrix), count("hessp", lambda w, p, lam: matrix @ p)
    for settings in (
        {"jac": jac},
        {"jac": jac, "hess": hess, "method": "trust-exact"},
        {"jac": jac, "hessp": hessp, "method": "Newton-CG"},
        {"jac": "2-point"},
        {"jac": cr.compile(cr.grad(penalized))},
    ):
        found = optimize.minimize(penalized, np.zeros(3), lam, **settings)
        np.testing.assert_allclose(found.x, ridge(lam), atol=1e-5)
    assert all(calls.values())
    for both in (cr.value_and_grad(penalized), cr.compile(cr.value_and_grad(penalized))):

        def fit(lam: Any, both: Any = both) -> Any:
            return optimize.minimize(both, np.zeros(3), lam, jac=True, tol=1e-9).x

        np.testing.assert_allclose(fit(np.array(0.7)), ridge(lam), atol=1e-7)
        found = cr.jacobian(fit)(np.array(0.7))
        np.testing.assert_allclose(found, cr.jacobian(ridge)(0.7), atol=1e-7)


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
def test_vmap() -> None:
    lams = np.array([0.1, 0.7, 3.0])

    def fit(lam: Any) -> Any:
        return optimize.minimize(penalized, np.zeros(3), lam, tol=1e-9).x

    np.testing.assert_allclose(cr.vmap(fit)(lams), [ridge(lam) for lam in lams], atol=1e-7)
    wanted = [cr.jacobian(ridge)(lam) for lam in lams]
    np.testing.assert_allclose(cr.vmap(cr.jacobian(fit))(lams), wanted, atol=1e-7)
    bounded = cr.vmap(
        lambda a: optimize.minimize(rosenbrock, np.zeros(2), a, bounds=[(None, 0.5)] * 2).x
    )
    slopes = cr.jacobian(lambda a: bounded(a).sum())(np.array([0.3, 1.0]))
    np.testing.assert_allclose(slopes, [1.6, 0.0], atol=1e-3)  # free, and held


def test_objectives_may_return_a_data_array() -> None:
    xarray = pytest.importorskip("xarray")
    values, hours = RNG.normal(size=(2, 3)), {"hour": range(3)}
    t = xarray.DataArray(values, dims=("station", "hour"), coords=hours)

    def misfit(p: Any, t: Any) -> Any:
        return ((t - p["mean"] - p["slope"] * t.hour) ** 2).mean()

    def mean(t: Any) -> Any:
        return optimize.minimize(misfit, {"mean": 0.0, "slope": 0.0}, t).x["mean"]

    def polyfit(values: Any) -> Any:
        return np.polyfit([0, 1, 2, 0, 1, 2], values.ravel(), 1)[1]

    np.testing.assert_allclose(mean(t), polyfit(t.values), atol=1e-6)
    influence = cr.grad(mean)(t)
    assert influence.dims == t.dims
    units = np.eye(6).reshape(6, 2, 3)
    np.testing.assert_allclose(influence.values.ravel(), [*map(polyfit, units)], atol=1e-6)


# --- bounds and constraints -----------------------------------------------------------------------


def test_a_bound_that_holds_the_solution_moves_it() -> None:
    def fit(bound: Any, a: Any) -> Any:
        bounds = [(None, bound), (None, None)]
        return optimize.minimize(rosenbrock, [-1.2, 1.0], a, bounds=bounds, tol=1e-10).x

    for bound, a, by_bound, by_a in [(0.5, 1.0, [1, 1], [0, 0]), (1.5, 1.0, [0, 0], [1, 2])]:
        found = cr.jacobian(fit, (0, 1))(bound, a)
        np.testing.assert_allclose(found, [by_bound, by_a], atol=1e-5)


def test_forms_of_bounds() -> None:
    def fit(x0: Any, bounds: Any) -> Any:
        return optimize.minimize(of_parts, x0, np.zeros(2), bounds=bounds).x

    x0 = {"w": np.ones(2), "b": (3.0, 1.0)}
    found = fit(x0, {"w": (0.5, None), "b": (None, (0.2, 5.0))})
    np.testing.assert_allclose(found["w"], 0.5)
    assert found["b"][1] == pytest.approx(0.2)
    found = fit(x0, {"w": (np.array([0.5, -1.0]), None), "b": ((None, None), (0.2, None))})
    np.testing.assert_allclose(found["w"], [0.5, 0.0], atol=1e-6)
    for bounds in ([(0.5, None)] * 2, optimize.Bounds([0.5, 0.5]), np.array([[0.5, 9.0]] * 2)):
        found = optimize.minimize(lambda x: (x**2).sum(), [1, 2], bounds=bounds)
        np.testing.assert_allclose(found.x, 0.5)
    assert optimize.minimize(lambda x: x**2, 1.0, bounds=(0.5, None)).x == pytest.approx(0.5)


def ball(v: Any, radius: Any = 1.0) -> Any:
    return radius**2 - (v**2).sum()


CONSTRAINTS: dict[str, Callable[[Any], Any]] = {
    "dict": lambda r: {"type": "ineq", "fun": ball, "args": (r,)},
    "closure": lambda r: [{"type": "eq", "fun": lambda v: ball(v, r)}],
    "NonlinearConstraint": lambda r: optimize.NonlinearConstraint(lambda v: (v / r) ** 2, 0, 0.5),
}


@pytest.mark.parametrize("form", ["dict", "closure"])
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints_and_their_derivatives(method: str, form: str) -> None:
    """The nearest point of a circle."""

    def nearest(p: Any, radius: Any) -> Any:
        return optimize.minimize(
            lambda v, p: ((v - p) ** 2).sum(),
            np.array([0.1, 0.2]),
            (p,),
            method=method,
            constraints=CONSTRAINTS[form](radius),
            options={"maxiter": 200},
            tol=1e-10,
        ).x

    def exact(p: Any, radius: Any) -> Any:
        return radius * p / np.sqrt((p**2).sum())

    p = np.array([1.0, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # SciPy's
        np.testing.assert_allclose(nearest(p, 1.5), exact(p, 1.5), atol=1e-3)
        found, wanted = (cr.jacobian(f, (0, 1))(p, 1.5) for f in (nearest, exact))
        inside = cr.jacobian(nearest, (0, 1))(p, 3.0) if form == "dict" else (np.eye(2), 0 * p)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)
    np.testing.assert_allclose(inside[0], np.eye(2), atol=1e-3)
    np.testing.assert_allclose(inside[1], 0, atol=1e-3)


def test_linear_and_nonlinear_constraints_with_bounds() -> None:
    """A portfolio: weights that sum to 1, none negative, and none above a limit."""
    returns, matrix = np.array([1.0, 0.8, -0.5]), np.diag([1.0, 2.0, 1.0])

    def weights(returns: Any, kind: str = "linear") -> Any:
        total = (
            optimize.LinearConstraint(np.ones((1, 3)), 1.0, 1.0)
            if kind == "linear"
            else optimize.NonlinearConstraint(lambda w: np.stack([w.sum(), w[0]]), [1, -9], [1, 9])
        )
        return optimize.minimize(
            lambda w: 0.5 * w @ matrix @ w - returns @ w,
            np.ones(3) / 3,
            constraints=total,
            bounds=[(0, None)] * 3,
            tol=1e-12,
        ).x

    free = np.block([[matrix[:2, :2], np.ones((2, 1))], [np.ones((1, 2)), np.zeros((1, 1))]])
    wanted = np.zeros((3, 3))
    wanted[:2, :2] = np.linalg.inv(free)[:2, :2]  # the third weight is held at 0
    for kind in ("linear", "nonlinear"):
        assert weights(returns, kind)[2] == pytest.approx(0.0, abs=1e-9)
        found = cr.jacobian(lambda r, kind=kind: weights(r, kind))(returns)
        np.testing.assert_allclose(found, wanted, atol=1e-8)


# --- least_squares --------------------------------------------------------------------------------


def misfit(p: Any, y: Any) -> Any:
    return p["height"] * np.exp(-p["rate"] * T) - y


DATA = 2 * np.exp(-3 * T) + 0.1 * np.sin(17 * T)
START = {"height": 1.0, "rate": 1.0}
TIGHT = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}
FITS: dict[str, dict[str, Any]] = {
    "trf": {},
    "dogbox": {"method": "dogbox"},
    "lm": {"method": "lm"},
    "soft_l1": {"loss": "soft_l1", "f_scale": 0.05},
    "huber": {"loss": "huber", "f_scale": 0.05},
    "cauchy": {"loss": "cauchy", "f_scale": 0.05},
    "arctan": {"loss": "arctan", "f_scale": 0.5},
    "a loss of ones own": {"loss": lambda z: np.stack([z, z**0, 0 * z])},
    "free": {"bounds": ({"height": 0.0, "rate": 0.0}, {"height": 5.0, "rate": np.inf})},
    "held": {"bounds": ([0, 0], [1.8, 9.0])},
    "both held": {"bounds": optimize.Bounds([0, 0], [1.5, 2.0])},
    "differences": {"jac": "3-point"},
    "gmres": {"linear_solver": "gmres"},
}


@pytest.mark.parametrize("name", some(FITS, {"trf", "lm", "huber", "free", "held", "gmres"}))
def test_least_squares_and_its_derivatives(name: str) -> None:
    settings = FITS[name]

    def rate(shift: Any) -> Any:
        y = DATA + shift * np.cos(5 * T)
        return optimize.least_squares(misfit, START, args=(y,), **TIGHT, **settings).x["rate"]

    wanted = differences(lambda s: float(rate(s)), 0.1)
    assert cr.grad(rate)(0.1) == pytest.approx(wanted, rel=1e-4, abs=1e-8)
    assert cr.jvp(rate, 0.1, 1.0)[1] == pytest.approx(wanted, rel=1e-4, abs=1e-8)
    second = differences(lambda s: cr.grad(rate)(s), 0.1)
    # The solver stops within 1e-8 of the solution, which the differences divide by their step.
    assert cr.grad(cr.grad(rate))(0.1) == pytest.approx(second, rel=1e-4, abs=2e-5)


def test_least_squares_as_scipys() -> None:
    found = optimize.least_squares(misfit, START, args=(DATA,))
    wanted = reference.least_squares(
        lambda v: v[0] * np.exp(-v[1] * T) - DATA,
        [1.0, 1.0],
        jac=lambda v: np.stack([np.exp(-v[1] * T), -v[0] * T * np.exp(-v[1] * T)], 1),
    )
    assert (found.nfev, found.njev) == (wanted.nfev, wanted.njev)
    np.testing.assert_allclose([found.x["height"], found.x["rate"]], wanted.x)
    np.testing.assert_allclose(found.jac, wanted.jac)

    def cost(y: Any) -> Any:
        return optimize.least_squares(misfit, START, kwargs={"y": y}).cost

    np.testing.assert_allclose(cr.grad(cost)(DATA), -found.fun, atol=1e-6)  # the envelope
    own = optimize.least_squares(
        lambda x: x - 1, np.zeros(2), jac=lambda x: np.eye(2), bounds=(-1, np.array([0.5, 2.0]))
    )
    np.testing.assert_allclose(own.x, [0.5, 1.0])
    moved = cr.jacobian(
        lambda b: optimize.least_squares(lambda x: x - 1, np.zeros(2), bounds=(-1, b)).x
    )(np.array([0.5, 2.0]))
    np.testing.assert_allclose(moved, [[1, 0], [0, 0]], atol=1e-9)


# --- roots ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "method", some(["hybr", "lm", "broyden1", "anderson", "krylov", "df-sane"], {"hybr", "krylov"})
)
def test_root_by_all_kinds_of_methods(method: str) -> None:
    def meet(radius: Any) -> Any:
        """The point of a circle and a line."""
        found = optimize.root(
            lambda p, r: {"circle": p["x"] ** 2 + p["y"] ** 2 - r**2, "line": p["x"] - p["y"]},
            {"x": 1.0, "y": 1.2},
            radius,
            method=method,
            tol=1e-10,
        )
        return found.x["x"]

    assert meet(2.0) == pytest.approx(2**0.5)
    assert cr.grad(meet)(2.0) == pytest.approx(0.5**0.5)
    assert cr.jvp(meet, 2.0, 1.0)[1] == pytest.approx(0.5**0.5)
    assert cr.grad(cr.grad(meet))(2.0) == pytest.approx(0.0, abs=1e-7)


def test_root_with_a_jacobian_of_ones_own() -> None:
    def fun(x: Any, a: Any) -> Any:
        return x**3 - a

    a = np.array([1.0, 8.0])
    for settings in (
        {"jac": lambda x, a: np.diag(3 * x**2)},
        {"jac": cr.jacobian(fun)},
        {"jac": False},
    ):
        found = optimize.root(fun, [1, 1], (a,), **settings)
        np.testing.assert_allclose(found.x, [1.0, 2.0])
    both = optimize.root(lambda x, a: (fun(x, a), np.diag(3 * x**2)), [1, 1], (a,), jac=True)
    np.testing.assert_allclose(both.x, [1.0, 2.0])
    slopes = cr.jacobian(
        lambda a: optimize.root(lambda x, a: (fun(x, a), np.diag(3 * x**2)), [1, 1], a, jac=True).x
    )(a)
    np.testing.assert_allclose(slopes, np.diag([1 / 3, 1 / 12]))


@pytest.mark.parametrize(
    "settings",
    [
        {"bracket": (0, 3)},
        {"bracket": [0.0, 3.0], "method": "bisect"},
        {"x0": 1.0},
        {"x0": 1.0, "method": "halley"},
        {"x0": 1, "x1": 2},
        {"x0": 1.0, "fprime": lambda E, e: 1 - e * np.cos(E)},
    ],
    ids=["bracket", "bisect", "newton", "halley", "secant", "own derivative"],
)
def test_root_scalar(settings: Any) -> None:
    def anomaly(e: Any) -> Any:
        found = optimize.root_scalar(lambda E, e: E - e * np.sin(E) - 1.0, e, **settings)
        assert type(found) is reference.RootResults
        return found.root

    root = anomaly(0.5)
    assert type(root) is float
    slope = np.sin(root) / (1 - 0.5 * np.cos(root))
    assert cr.grad(anomaly)(0.5) == pytest.approx(slope)
    assert cr.jvp(anomaly, 0.5, 1.0)[1] == pytest.approx(slope)
    second = differences(lambda e: float(cr.grad(anomaly)(e)), 0.5)
    assert cr.grad(cr.grad(anomaly))(0.5) == pytest.approx(second, rel=1e-6)


def test_fixed_point() -> None:
    def equilibrium(c: Any) -> Any:
        start = {"x": 0.5, "y": np.zeros(2)}

        def step(s: Any) -> Any:
            return {"x": np.cos(c * s["x"]), "y": 0.5 * s["y"] + s["x"]}

        return optimize.fixed_point(step, start, xtol=1e-12)

    found = equilibrium(1.0)
    np.testing.assert_allclose(found["y"], 2 * found["x"])
    x = found["x"]
    slope = -np.sin(x) * x / (1 + np.sin(x))
    jacobian = cr.jacobian(equilibrium)(1.0)
    assert jacobian["x"] == pytest.approx(slope)
    np.testing.assert_allclose(jacobian["y"], 2 * slope)


# --- faults ---------------------------------------------------------------------------------------


def fit_of(**settings: Any) -> Callable[[], Any]:
    return lambda: optimize.minimize(rosenbrock, np.zeros(2), **settings)


def squares(*args: Any, **settings: Any) -> Callable[[], Any]:
    return lambda: optimize.least_squares(*args, **settings)


NAN = np.array([np.nan, 1.0])
FAULTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "vector": (
        lambda: optimize.minimize(lambda x: x, [1, 2]),
        cr.ArgumentError,
        r"one real number, but .* shape \[2\].*sum\(\) or mean\(\)",
    ),
    "complex": (lambda: optimize.minimize(lambda x: x * 1j, 1.0), cr.ArgumentError, "complex128"),
    "constant": (lambda: optimize.minimize(lambda x: 3.0, 1.0), cr.AutogradError, "doesn't depend"),
    "detached": (
        lambda: optimize.minimize(lambda x: cr.tensor(3.0), 1.0),
        cr.AutogradError,
        "doesn't depend on the unknowns",
    ),
    "float": (lambda: optimize.minimize(lambda x: float(x), 1.0), cr.AutogradError, "a number of"),
    "nan at x0": (
        lambda: optimize.minimize(lambda x: x * np.nan, 1.0),
        cr.ArgumentError,
        "is nan at x0: look for nan in the data",
    ),
    "nan in the data": (
        lambda: optimize.minimize(lambda x, a, b: (x * b).sum(), np.ones(2), (1.0, NAN)),
        cr.ArgumentError,
        r"there is nan in args\[1\]",
    ),
    "nan in x0": (lambda: optimize.minimize(rosenbrock, NAN), cr.ArgumentError, "x0 has nan"),
    "integers": (
        lambda: optimize.minimize(lambda p: p["n"] ** 2, {"n": 3}),
        cr.DTypeError,
        r"x0\['n'\].*write 2.0 for 2",
    ),
    "nothing": (lambda: optimize.minimize(lambda p: 0.0, {}), cr.ArgumentError, "no numbers"),
    "bounds": (fit_of(bounds=[(0, 1)]), cr.ArgumentError, "each of the 2 unknowns, got 1"),
    "names in bounds": (
        lambda: optimize.minimize(lambda p: p["a"] ** 2, {"a": 1.0}, bounds={"c": (0, 1)}),
        cr.ArgumentError,
        r"bounds has \['c'\], which x0 doesn't have",
    ),
    "no pair": (
        lambda: optimize.minimize(lambda p: p["a"] ** 2, {"a": 1.0}, bounds={"a": 1}),
        cr.ArgumentError,
        r"pair \(low, high\) or None at bounds\['a'\]",
    ),
    "shape of bounds": (
        lambda: optimize.minimize(
            lambda p: (p["a"] ** 2).sum(), {"a": np.ones(2)}, bounds={"a": (np.zeros(3), None)}
        ),
        cr.ArgumentError,
        r"bounds of shape \[3\] for unknowns of shape \[2\]",
    ),
    "constraint": (fit_of(constraints={"fun": 1}), cr.ArgumentError, '"eq" or "ineq"'),
    "other constraint": (fit_of(constraints=[3]), cr.ArgumentError, "got int"),
    "gradient": (fit_of(jac=lambda x: np.zeros(3)), cr.ShapeError, "3 numbers for 2 unknowns"),
    "Hessian": (
        fit_of(hess=lambda x: np.zeros(3), method="trust-exact"),
        cr.ArgumentError,
        "2 rows and columns",
    ),
    "loss": (squares(lambda x: x, [1, 2], loss="l2"), cr.ArgumentError, "linear, soft_l1"),
    "bounds of squares": (squares(lambda x: x, [1, 2], bounds=(1,)), cr.ArgumentError, "a pair of"),
    "tree of bounds": (
        squares(lambda x: x, [1, 2], bounds=({"a": 1, "b": 2}, 3)),
        cr.ArgumentError,
        "has 1 parts: got 2",
    ),
    "nan residuals": (squares(lambda x: x * np.nan, [1, 2]), cr.ArgumentError, "is nan at x0"),
    "constant residuals": (
        squares(lambda x: np.ones(2), [1, 2]),
        cr.AutogradError,
        "doesn't depend on the unknowns",
    ),
    "matrix of squares": (
        squares(lambda x: x, [1, 2], jac=lambda x: np.ones(3)),
        cr.ArgumentError,
        "a matrix of 2 columns",
    ),
    "equations": (
        lambda: optimize.root(lambda x: x[:1], [1, 2]),
        cr.ShapeError,
        "1 numbers for 2 unknowns",
    ),
    "matrix": (
        lambda: optimize.root(lambda x: x, [1, 2], jac=lambda x: np.ones(3)),
        cr.ArgumentError,
        "2 rows and columns",
    ),
    "several": (
        lambda: optimize.root_scalar(lambda x: x, x0=np.ones(3)),
        cr.ArgumentError,
        "the unknown is one number",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_faults_are_named(name: str) -> None:
    call, error, text = FAULTS[name]
    with pytest.raises(error, match=text):
        call()


def test_a_singular_hessian_is_named_when_a_derivative_is_asked_for() -> None:
    def fit(a: Any) -> Any:
        return optimize.minimize(lambda x: (x[0] + x[1] - a) ** 2, np.zeros(2)).x

    np.testing.assert_allclose(fit(1.0).sum(), 1.0)
    with pytest.raises(cr.LinAlgError, match="singular at the solution"):
        cr.jacobian(fit)(1.0)


def warnings_of(function: Callable[[], Any]) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return " ".join(str(each.message) for each in caught)


def test_a_solver_that_did_not_converge_is_told_where_derivatives_are_asked_for() -> None:
    def fit(a: Any) -> Any:
        return optimize.minimize(rosenbrock, -np.ones(5), a, options={"maxiter": 3}).x

    assert not warnings_of(lambda: fit(1.0))
    told = warnings_of(lambda: cr.jacobian(fit)(1.0))
    assert "minimize did not converge: Maximum number of iterations" in told
    assert "the residual is not zero" in told
    told = warnings_of(
        lambda: cr.grad(lambda a: optimize.root(lambda x: np.exp(x) + a, 1.0).x)(1.0)
    )
    assert "root did not converge" in told


def test_a_bound_that_does_not_push_is_told() -> None:
    def fit(a: Any) -> Any:
        bounds = [(0, None)] * 2
        return optimize.minimize(lambda x: ((x - a) ** 2).sum(), np.ones(2), bounds=bounds).x

    assert "doesn't push it" in warnings_of(lambda: cr.jacobian(fit)(np.array([0.0, 1.0])))
    for a in (np.array([0.1, 1.0]), np.array([-0.1, 1.0])):
        assert not warnings_of(lambda a=a: cr.jacobian(fit)(a))
        wanted = np.diag((a > 0).astype(float))
        np.testing.assert_allclose(cr.jacobian(fit)(a), wanted, atol=1e-9)


def test_no_gradient_of_what_an_objective_closes_over_is_lost() -> None:
    t = cr.tensor([1.0, 2.0], dtype=cr.float64, requires_grad=True)
    found = optimize.minimize(lambda x: ((x - t) ** 2).sum(), np.zeros(2))
    found.x[0].backward()
    assert t.grad.tolist() == pytest.approx([1.0, 0.0])

    def lost(a: Any) -> Any:
        return optimize.minimize(lambda x: ((x - float(a)) ** 2).sum(), np.zeros(2)).x.sum()

    with pytest.raises(cr.AutogradError, match="makes a number of a Tensor"):
        cr.grad(lost)(1.0)


def test_no_gradient_of_other_fields_of_results_is_lost() -> None:
    """The residuals record, and what has no rule raises."""

    def residuals(x: Any, a: Any) -> Any:
        return np.concatenate([x - a, x**2])

    def cost(x: Any, a: Any) -> Any:
        return (residuals(x, a) ** 2).sum()

    def fit(a: Any) -> Any:
        exact = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}
        return optimize.least_squares(residuals, np.ones(2), args=(a,), **exact)

    solvers = {
        "least_squares": (fit, ["jac", "grad"]),
        "minimize": (lambda a: optimize.minimize(cost, np.ones(2), a), ["jac", "hess_inv"]),
        "root": (lambda a: optimize.root(lambda x: x**3 - a, np.ones(2)), ["fjac", "r"]),
    }
    at, way = np.array([1.0, 2.0]), np.array([0.3, -0.7])
    _, tangent = cr.jvp(lambda a: fit(a).fun, at, way)
    wanted = [fit(at + step * way).fun for step in (-1e-3, 1e-3)]  # SciPy's has 8 digits
    np.testing.assert_allclose(tangent, (wanted[1] - wanted[0]) / 2e-3, 1e-3)
    for solve, names in solvers.values():
        numbers = solve(at)
        for name in names:
            value = lambda a, solve=solve, name=name: np.sum(solve(a)[name])  # noqa: E731
            assert type(numbers[name]) is np.ndarray
            with pytest.raises(cr.AutogradError, match=f"`{name}` of the result, which SciPy"):
                cr.grad(value)(at)
            with pytest.raises(cr.AutogradError, match=f"`{name}` of the result, which SciPy"):
                cr.jvp(value, at, way)


def test_other_names_are_scipys() -> None:
    assert optimize.approx_fprime.__doc__ == reference.approx_fprime.__doc__
    assert optimize.elementwise.find_root
    assert optimize.Bounds is reference.Bounds
    with pytest.raises(AttributeError, match="nosuch"):
        _ = optimize.nosuch
