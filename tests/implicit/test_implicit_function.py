"""implicit_function: derivatives of solutions of equations, of any order, whatever solved them."""

from __future__ import annotations

import gc
import itertools
import math
import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.implicit import inverse

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 3)), RNG.normal(size=20)
MATRIX = RNG.normal(size=(3, 3)) + 3 * np.eye(3)


# --- problems whose solutions are known in closed form --------------------------------------------


def newton(a: Any) -> Any:
    x = 1.0
    for _ in range(60):
        x = x - (x**3 - a) / (3 * x**2)
    return x


def bisection(e: Any) -> Any:
    low, high = 0.0, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle - e * math.sin(middle) < 1 else (low, middle)
    return low


def kepler_by_series(e: Any) -> Any:
    """The root of E - e sin E = 1, by Newton's method recorded step by step."""
    x = 1.0 + 0 * e
    for _ in range(8):
        x = x - (x - e * np.sin(x) - 1) / (1 - e * np.cos(x))
    return x


def ridge(lam: Any) -> Any:
    return np.linalg.solve(X.T @ X + lam * np.eye(3), X.T @ Y)


def quadratic_program(b: Any) -> Any:
    """The minimum of ½ x·x - b·x where the sum of x is 1, with its multiplier."""
    multiplier = (b.sum() - 1) / 3
    return {"x": b - multiplier, "multiplier": multiplier}


def of_quadratic_program(s: Any, b: Any) -> Any:
    return {"x": s["x"] - b + s["multiplier"], "multiplier": s["x"].sum() - 1}


def conjugated(z: Any) -> Any:
    return z + 0.5 * np.conj(z)


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], Any]] = {
    # solver, residual, the same function recorded, where
    "cube root": (newton, lambda x, a: x**3 - a, np.cbrt, 8.0),
    "Kepler": (bisection, lambda x, e: x - e * np.sin(x) - 1, kepler_by_series, 0.5),
    "ridge": (ridge, lambda w, lam: X.T @ (X @ w - Y) + lam * w, ridge, 0.7),
    "linear": (
        lambda b: np.linalg.solve(MATRIX, b),
        lambda x, b: MATRIX @ x - b,
        lambda b: np.linalg.solve(MATRIX, b),
        np.array([1.0, -2.0, 0.5]),
    ),
    "matrix": (
        lambda p: np.linalg.inv(p),
        lambda x, p: x @ p - np.eye(2),
        np.linalg.inv,
        np.array([[2.0, 1.0], [0.5, 3.0]]),
    ),
    "quadratic program": (
        quadratic_program,
        of_quadratic_program,
        quadratic_program,
        np.array([0.2, 1.5, -0.4]),
    ),
}


def flat(tree: Any) -> Any:
    return np.concatenate([np.ravel(leaf) for leaf in cr.tree.leaves(tree)])


def energy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A nonlinear function of the solution, so that no derivative is zero by accident."""
    return lambda *args: sum((np.sin(leaf) ** 2).sum() for leaf in cr.tree.leaves(function(*args)))


WAYS: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "reverse": cr.grad,
    "forward": lambda f: cr.jacobian(f, mode="forward"),
    "reverse over reverse": lambda f: cr.jacobian(cr.grad(f), mode="reverse"),
    "forward over reverse": lambda f: cr.jacobian(cr.grad(f), mode="forward"),
    "reverse over forward": lambda f: cr.jacobian(cr.jacobian(f, mode="forward"), mode="reverse"),
    "forward over forward": lambda f: cr.jacobian(cr.jacobian(f, mode="forward"), mode="forward"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_those_of_the_closed_form(name: str, way: str) -> None:
    solver, residual, exact, point = CASES[name]
    found = WAYS[way](energy(cr.implicit_function(solver, residual)))(point)
    wanted = WAYS[way](energy(exact))(point)
    np.testing.assert_allclose(flat(found), flat(wanted), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["cube root", "ridge"])
def test_third_order(name: str) -> None:
    solver, residual, exact, point = CASES[name]
    f, g = (energy(h) for h in (cr.implicit_function(solver, residual), exact))
    third = cr.jacobian(cr.grad(cr.grad(f)), mode="forward")(point)
    assert cr.grad(cr.grad(cr.grad(f)))(point) == pytest.approx(third, rel=1e-9)
    assert third == pytest.approx(cr.grad(cr.grad(cr.grad(g)))(point), rel=1e-7)


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
@pytest.mark.parametrize("way", ["value", "reverse", "reverse over reverse"])
@pytest.mark.parametrize("name", ["cube root", "Kepler", "ridge", "linear"])
def test_vmap(name: str, way: str) -> None:
    solver, residual, _, point = CASES[name]
    f = WAYS[way](energy(cr.implicit_function(solver, residual)))
    points = np.stack([point, 1.1 * point, 0.9 * point])
    np.testing.assert_allclose(cr.vmap(f)(points), [f(p) for p in points], rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
def test_derivatives_through_a_vmap_and_nested_vmaps() -> None:
    f = cr.implicit_function(newton, lambda x, a: x**3 - a)
    points = np.array([[1.0, 8.0], [27.0, 64.0]])
    np.testing.assert_allclose(cr.vmap(cr.vmap(f))(points), np.cbrt(points))
    total, wanted = (lambda p, g=g: (cr.vmap(g)(p) ** 2).sum() for g in (f, np.cbrt))
    for way in WAYS:
        found = WAYS[way](total)(points[0])
        np.testing.assert_allclose(found, WAYS[way](wanted)(points[0]), rtol=1e-9, atol=1e-12)


def test_a_vmap_tells_of_its_loop_once_and_not_of_what_all_examples_share() -> None:
    def solver(a: Any) -> Any:
        return newton(a)

    f = cr.implicit_function(solver, lambda x, a: x**3 - a)
    with pytest.warns(cr.PerformanceWarning, match=r"implicit_function\(.*solver .* for each of 2"):
        cr.vmap(f)(np.array([1.0, 8.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cr.vmap(lambda a: a * f(8.0))(np.array([1.0, 8.0]))
    with pytest.raises(cr.ArgumentError, match="over no examples"):
        cr.vmap(f)(np.ones(0))
    aux = cr.implicit_function(lambda a: (newton(a), "info"), lambda x, a: x**3 - a, has_aux=True)
    infos = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cr.vmap(lambda a: infos.append(aux(a)[1]) or a)(np.array([1.0, 8.0]))
    assert infos == [["info", "info"]]


@pytest.mark.parametrize("z", [1 + 2j, -0.3 + 0.1j])
def test_complex_equations_need_not_be_holomorphic(z: complex) -> None:
    for solver, residual in (
        (np.sqrt, lambda x, a: x * x - a),
        (conjugated, lambda x, a: x - a - 0.5 * np.conj(a)),
    ):
        f = cr.implicit_function(solver, residual)
        for g in (1.0 + 0j, 0.3 - 2j):
            wanted = cr.vjp(solver, z)[1](g)
            assert cr.vjp(f, z)[1](g) == pytest.approx(wanted)
            assert cr.jvp(f, z, g)[1] == pytest.approx(cr.jvp(solver, z, g)[1])


def total(tree: Any) -> Any:
    return sum((np.sin(leaf) ** 2).sum() for leaf in cr.tree.leaves(tree))


@pytest.mark.parametrize("name", ["cube root", "ridge", "linear", "matrix", "quadratic program"])
def test_solvers_in_recorded_operations_are_compiled(name: str) -> None:
    solver, residual, recorded, at = CASES[name]
    solve = cr.implicit_function(solver, residual)
    at = np.asarray(at)

    def derivatives(function: Any, x: Any) -> Any:
        loss = lambda x: total(function(x))  # noqa: E731
        return cr.grad(loss)(x), cr.hessian(loss)(x), cr.jvp(loss, x, x)[1]

    got = cr.compile(lambda x: derivatives(solve, x), backend="numpy")(at)
    for found, wanted in zip(got, derivatives(recorded, at), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_a_compiled_solver_loops_until_it_has_converged() -> None:
    def steps(a: Any) -> Any:
        step = lambda x: x - (x**3 - a) / (3 * x**2)  # noqa: E731
        return cr.while_loop(lambda x: cr.abs(x**3 - a) > 1e-12 * a, step, 0 * a + 1)

    root = cr.compile(cr.grad(cr.implicit_function(steps, lambda x, a: x**3 - a)), backend="numpy")
    assert [root(np.array(a)) for a in (8.0, 1000.0)] == pytest.approx([1 / 12, 1 / 300])


def test_a_compiled_function_says_what_to_compile_instead() -> None:
    f = cr.implicit_function(bisection, lambda x, e: x - e * np.sin(x) - 1)
    with pytest.raises(cr.CompileError, match=r"compile what it calls.*while_loop"):
        cr.compile(f)(cr.tensor(0.5))
    compiled = cr.implicit_function(newton, cr.compile(lambda x, a: x**3 - a))
    a = cr.tensor(8.0, dtype=cr.float64)
    assert cr.grad(compiled)(a).item() == pytest.approx(1 / 12)
    assert cr.grad(cr.grad(compiled))(a).item() == pytest.approx(-1 / 144)


# --- closures -------------------------------------------------------------------------------------


def test_gradients_of_what_solver_and_residual_close_over() -> None:
    a = cr.tensor(MATRIX, requires_grad=True)
    b = cr.tensor([1.0, 2.0, 3.0], dtype=cr.float64, requires_grad=True)
    solve = cr.implicit_function(
        lambda: np.linalg.solve(a.detach().numpy(), b.detach().numpy()), lambda x: a @ x - b
    )
    x = solve()
    x.pow(3).sum().backward()
    wanted = cr.autograd_grad(cr.linalg.solve(a, b).pow(3).sum(), {"a": a, "b": b})
    np.testing.assert_allclose(a.grad.numpy(), wanted["a"].numpy())
    np.testing.assert_allclose(b.grad.numpy(), wanted["b"].numpy())


def test_hooks_run_once_and_a_freed_graph_is_freed() -> None:
    a = cr.tensor(8.0, dtype=cr.float64, requires_grad=True)
    doubled, seen = 2 * a, []
    doubled.register_hook(lambda g: seen.append(g.item()))
    x = cr.implicit_function(newton, lambda x, a: x**3 - a)(doubled)
    y = 3 * x
    y.backward()
    assert seen == [pytest.approx(3 / (3 * 16 ** (2 / 3)))]
    assert a.grad.item() == pytest.approx(2 * seen[0])
    with pytest.raises(cr.FreedGraphError, match="second time"):
        x.backward()


def test_no_reference_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        a = cr.tensor(8.0, dtype=cr.float64, requires_grad=True)
        x = cr.implicit_function(newton, lambda x, a: x**3 - a)(a)
        (g,) = cr.autograd_grad(x, a, create_graph=True)
        alive = weakref.ref(x), weakref.ref(g)
        del x, g
        assert alive[0]() is None is alive[1]()
    finally:
        gc.enable()


def test_a_write_to_the_result_or_the_solvers_array_changes_no_derivative() -> None:
    kept: list[Any] = []

    def solver(a: Any) -> Any:
        kept.append(np.sqrt(a))
        return kept[-1]

    a = cr.tensor([4.0, 9.0], dtype=cr.float64, requires_grad=True)
    x = cr.implicit_function(solver, lambda x, a: x * x - a)(a)
    kept[-1][...] = 7.0 if isinstance(kept[-1], np.ndarray) else kept[-1]
    y = (x * 1).mul_(2)
    x.detach()[...] = 100.0
    (g,) = cr.autograd_grad(y.sum(), a, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), [0.5, 1 / 3])


def test_a_residual_that_has_changed_is_noticed_at_second_order() -> None:
    factor = 2.0
    f = cr.implicit_function(lambda a: np.sqrt(factor * a), lambda x, a: x * x - factor * a)
    a = cr.tensor(3.0, dtype=cr.float64, requires_grad=True)
    x = f(a)
    factor = 4.0
    with pytest.raises(cr.AutogradError, match="closes over was assigned anew"):
        cr.autograd_grad(x, a, create_graph=True)
    (g,) = cr.autograd_grad(f(a), a, create_graph=True)
    assert cr.autograd_grad(g, a)[0].item() == pytest.approx(-0.25 * 2 * 3**-1.5)


def test_no_gradient_is_lost_in_silence() -> None:
    """What becomes a number in the residual raises in a transform."""

    def lost(a: Any) -> Any:
        return cr.implicit_function(lambda: np.sqrt(float(a)), lambda x: x * x - float(a))()

    with pytest.raises(cr.AutogradError, match="makes a number of a Tensor"):
        cr.grad(lost)(4.0)
    constant = cr.implicit_function(lambda: np.sqrt(4.0), lambda x: x * x - 4.0)
    assert type(constant()) is np.float64
    assert cr.grad(lambda a: a * constant())(3.0) == 2.0


# --- kinds, trees and settings --------------------------------------------------------------------


def test_kinds_of_solutions() -> None:
    f = cr.implicit_function(lambda a: {"x": np.sqrt(a)}, lambda s, a: {"x": s["x"] ** 2 - a})
    assert type(f(np.ones(2))["x"]) is np.ndarray
    found: list[Any] = []

    def kept(a: Any) -> Any:
        found.append(f(a)["x"])
        return found[-1].sum()

    cr.grad(kept)(np.ones(2))
    assert type(found[-1]) is cr.numpy.ndarray
    cr.grad(kept)(cr.ones(2))
    assert type(found[-1]) is cr.Tensor
    assert found[-1].dtype == cr.float32
    with cr.no_grad():
        assert not f(cr.ones(2, requires_grad=True))["x"].requires_grad


def test_the_solver_gets_numbers_and_settings() -> None:
    given: list[Any] = []

    def solver(a: Any, steps: int = 3) -> Any:
        given.append((type(a), getattr(a, "requires_grad", False), steps))
        return np.sqrt(np.asarray(a))

    f = cr.implicit_function(solver, lambda x, a, steps=3: x * x - a)
    assert cr.grad(lambda a: f(a, steps=5).sum())(np.ones(2)).tolist() == [0.5, 0.5]
    f(cr.ones(2, requires_grad=True))
    assert given == [(np.ndarray, False, 5), (cr.Tensor, False, 3)]


def test_auxiliary_data_are_returned_as_they_are() -> None:
    f = cr.implicit_function(
        lambda a: (np.sqrt(a), {"steps": 3}), lambda x, a: x * x - a, has_aux=True
    )
    value, aux = f(cr.tensor(4.0, requires_grad=True))
    assert value.requires_grad
    assert aux == {"steps": 3}
    with pytest.raises(TypeError, match="has_aux"):
        cr.implicit_function(np.sqrt, lambda x, a: x * x - a, has_aux=True)(4.0)


def test_pickle() -> None:
    f = pickle.loads(pickle.dumps(cr.implicit_function(newton, _cube)))
    assert cr.grad(f)(8.0) == pytest.approx(1 / 12)


def _cube(x: Any, a: Any) -> Any:
    return x**3 - a


@pytest.mark.parametrize("method", ["dense", "gmres", "cg"])
def test_linear_solvers(method: str) -> None:
    pytest.importorskip("scipy")
    root = RNG.normal(size=(30, 30)) / 6
    matrix = root @ root.T + np.eye(30)  # symmetric, for cg
    f = cr.implicit_function(
        lambda b: np.linalg.solve(matrix, b), lambda x, b: matrix @ x - b, linear_solver=method
    )
    exact, point = energy(lambda b: np.linalg.solve(matrix, b)), np.ones(30)
    direction = RNG.normal(size=30)
    g = energy(f)
    np.testing.assert_allclose(cr.grad(g)(point), cr.grad(exact)(point), rtol=1e-8, atol=1e-10)
    for way in (cr.hvp, lambda h, x, t: cr.jvp(cr.grad(h), x, t)[1]):
        wanted = way(exact, point, direction)
        np.testing.assert_allclose(way(g, point, direction), wanted, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        cr.jvp(g, point, direction)[1], cr.jvp(exact, point, direction)[1], rtol=1e-8
    )


@pytest.mark.parametrize(("limit", "kind"), [(3, "DenseInverse"), (2, "KrylovInverse")])
def test_the_size_chooses_the_linear_solver(
    limit: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("scipy")
    used: list[str] = []
    for cls in (inverse.DenseInverse, inverse.KrylovInverse):
        solve = cls._solve
        monkeypatch.setattr(
            cls, "_solve", lambda self, *a, f=solve: used.append(type(self).__name__) or f(self, *a)
        )
    monkeypatch.setattr(inverse, "MAX_DENSE", limit)
    f = cr.implicit_function(np.sqrt, lambda x, a: x * x - a)
    np.testing.assert_allclose(cr.grad(lambda a: f(a).sum())(np.ones(3)), 0.5 * np.ones(3))
    assert set(used) == {kind}


# --- faults ---------------------------------------------------------------------------------------


def of(solver: Any, residual: Any, **settings: Any) -> Callable[[], Any]:
    f = cr.implicit_function(solver, residual, **settings)
    return lambda: cr.grad(lambda a: f(a).sum())(np.array([2.0, 3.0]))


FAULTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "independent": (of(np.sqrt, lambda x, a: a), cr.AutogradError, "doesn't depend on the solut"),
    "detached": (of(np.sqrt, lambda x, a: x.detach() - a), cr.AutogradError, "doesn't depend on"),
    "singular": (
        of(np.sqrt, lambda x, a: (x * x - a).sum() * np.ones(2)),
        cr.LinAlgError,
        "singular at the solution",
    ),
    "count": (of(np.sqrt, lambda x, a: (x * x - a)[:1]), cr.ShapeError, "1 numbers for 2 unknowns"),
    "integers": (of(lambda a: 3, lambda x, a: x - a), cr.DTypeError, "write 2.0 for 2"),
    "other objects": (of(lambda a: "x", lambda x, a: x - a), TypeError, "got str"),
    "nan solution": (of(lambda a: a * np.nan, lambda x, a: x - a), cr.AutogradError, "has nan"),
    "nan residual": (
        of(lambda a: -a, lambda x, a: np.log(x) - a),
        cr.AutogradError,
        "the residual has nan",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_faults_are_named(name: str) -> None:
    call, error, text = FAULTS[name]
    with pytest.raises(error, match=text):
        call()


def test_an_unknown_linear_solver_is_named_at_once() -> None:
    with pytest.raises(cr.ArgumentError, match='"dense", "gmres", "cg"'):
        cr.implicit_function(np.sqrt, lambda x, a: x - a, linear_solver="lu")


@pytest.mark.parametrize(("error", "warns"), [(1e-4, False), (1e-2, True)])
def test_a_solution_that_is_none_is_told(error: float, warns: bool) -> None:
    f = cr.implicit_function(lambda a: np.sqrt(a) * (1 + error), lambda x, a: x * x - a)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert cr.grad(f)(4.0) == pytest.approx(0.25, rel=0.1)
    assert ["the residual is not zero" in str(each.message) for each in caught] == [True] * warns


def test_a_linear_system_that_krylov_methods_do_not_solve_is_named() -> None:
    pytest.importorskip("scipy")
    f = cr.implicit_function(
        lambda a: a * 1.0, lambda x, a: (x - a).sum() * np.arange(3.0), linear_solver="gmres"
    )
    with pytest.raises(cr.AutogradError, match="gmres did not solve"):
        cr.grad(lambda a: (f(a) ** 2).sum())(np.array([1.0, 2.0, -1.0]))


def test_a_derivative_wrong_by_a_ten_thousandth_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    own = inverse.DenseInverse._solve
    monkeypatch.setattr(inverse.DenseInverse, "_solve", lambda *args: own(*args) * 1.0001)
    for way in ("reverse", "forward", "forward over reverse"):
        with pytest.raises(AssertionError):
            test_derivatives_are_those_of_the_closed_form("ridge", way)


def two(b: Any) -> Any:
    return np.stack([np.sqrt(b[0] * b[1]), b[1] ** 2 * b[0]])


def of_two(x: Any, b: Any) -> Any:
    return np.stack([x[0] ** 2 - b[0] * b[1], (x[1] - b[1] ** 2 * b[0]) * x[0]])


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
@pytest.mark.parametrize(
    "modes", list(itertools.product(("reverse", "forward"), repeat=3)), ids="-".join
)
def test_third_order_of_several_unknowns_in_all_modes(modes: tuple[str, ...]) -> None:
    found = []
    for f in (cr.implicit_function(two, of_two), two):
        g, h = energy(f), lambda q, f=f: cr.vmap(energy(f))(q).sum()
        for mode in modes:
            g = cr.jacobian(g, mode=mode)
        for mode in modes[1:]:
            h = cr.jacobian(h, mode=mode)
        point = np.array([1.3, 0.7])
        found.append((g(point), h(np.stack([point, 1.1 * point]))))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
