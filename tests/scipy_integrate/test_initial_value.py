"""`solve_ivp` and `odeint`: SciPy's values, and derivatives beside formulas and differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_integrate = pytest.importorskip("scipy.integrate")
solve_ivp, odeint = cr.scipy.integrate.solve_ivp, cr.scipy.integrate.odeint

METHODS = ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"]
TIGHT = {"rtol": 1e-9, "atol": 1e-11}


def tolerances(method: str) -> dict[str, float]:
    return {"rtol": 1e-6, "atol": 1e-8} if method == "RK23" else TIGHT


def oscillator(t: Any, y: Any, damping: Any, force: Any) -> Any:
    return [y[1], damping * (1 - y[0] ** 2) * y[1] - y[0] + force * np.cos(t)]


def differences(f: Any, p: Any, step: float = 1e-4) -> Any:
    columns = [(np.asarray(f(p + d)) - np.asarray(f(p - d))) / 2 for d in step * np.eye(len(p))]
    return np.stack(columns, -1) / step


POINT = np.array([1.2, -0.3, 1.5, 0.4, 0.1, 2.0])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("method", METHODS)
def test_derivatives_by_all_that_the_end_depends_on(method: str) -> None:
    def end(p: Any, solve: Any = solve_ivp) -> Any:
        force = p[3]  # closed over

        def rate(t: Any, y: Any, damping: Any) -> Any:
            return oscillator(t, y, damping, force)

        settings = tolerances(method)
        return solve(rate, (p[4], p[5]), p[:2], method, args=(p[2],), **settings).y[:, -1]

    found = cr.jacobian(end)(POINT)
    wanted = differences(lambda p: end(p, scipy_integrate.solve_ivp), POINT)
    np.testing.assert_allclose(found, wanted, atol=1e-3 if method == "RK23" else 2e-5)
    np.testing.assert_array_equal(end(POINT), end(POINT, scipy_integrate.solve_ivp))
    direction = np.arange(6.0)
    np.testing.assert_allclose(cr.jvp(end, (POINT,), (direction,))[1], found @ direction)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("back", [False, True], ids=["forward", "backward"])
def test_states_at_given_times_and_dense_output(method: str, back: bool) -> None:
    def states(p: Any, solve: Any = solve_ivp) -> Any:
        times = np.stack([0 * p[0], p[2], p[3], 1 + 0 * p[0]])
        span, times = ((1.0, 0.0), times[::-1]) if back else ((0.0, 1.0), times)
        settings = {"rtol": 1e-5, "atol": 1e-7, "max_step": 0.2}
        found = solve(oscillator, span, p[:2], method, times, True, args=(1.5, 0.4), **settings)
        return np.concatenate([found.y[0], found.sol(p[2:])[1], found.sol(p[3] + 0.1)])

    p = np.array([1.2, -0.3, 0.25, 0.7])
    wanted = differences(lambda q: states(q, scipy_integrate.solve_ivp), p)
    np.testing.assert_allclose(cr.jacobian(states)(p), wanted, atol=4e-3)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau", "BDF", "LSODA"])
def test_second_derivatives(method: str) -> None:
    def end(p: Any) -> Any:  # 1 / (1 + a t)
        return solve_ivp(lambda t, y: -p[0] * y**2, (0, p[1]), [1.0], method, **TIGHT).y[0, -1]

    a, t = 0.7, 2.0
    d = 1 + a * t
    mixed = -1 / d**2 + 2 * a * t / d**3
    wanted = [[2 * t**2 / d**3, mixed], [mixed, 2 * a**2 / d**3]]
    np.testing.assert_allclose(cr.hessian(end)(np.array([a, t])), wanted, atol=1e-6)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_times_and_states_of_events(method: str) -> None:
    def fall(p: Any) -> Any:
        def ground(t: Any, y: Any, gravity: Any) -> Any:
            return y[0]

        def quarter(t: Any, y: Any, gravity: Any) -> Any:
            return y[0] - 0.75 * p[0]

        ground.terminal = True  # type: ignore[attr-defined] # as SciPy wants it
        found = solve_ivp(
            lambda t, y, gravity: [y[1], -gravity],
            *((0.0, 100.0), [p[0], 0.0], method),
            events=[ground, quarter],
            args=(p[1],),
            **TIGHT,
        )
        last = (found.t[-1], found.y[1, -1], found.y_events[0][0, 1], found.t_events[1][0])
        return np.stack([found.t_events[0][0], *last])

    h, g = point = np.array([10.0, 9.81])
    t, v = np.sqrt(2 * h / g), -np.sqrt(2 * h * g)
    np.testing.assert_allclose(fall(point), [t, t, v, v, t / 2], rtol=1e-7)
    time, speed = np.array([t / h, -t / g]) / 2, np.array([v / h, v / g]) / 2
    wanted = np.stack([time, time, speed, speed, time / 2])
    np.testing.assert_allclose(cr.jacobian(fall)(point), wanted, rtol=1e-7)
    second = t / 4 * np.array([[-1 / h**2, -1 / (h * g)], [-1 / (h * g), 3 / g**2]])
    np.testing.assert_allclose(cr.hessian(lambda p: fall(p)[0])(point), second, rtol=1e-7)


def test_an_event_that_crosses_zero_without_a_slope_has_no_derivative() -> None:
    def touching(p: Any) -> Any:
        jump = [lambda t, y: np.where(y[0] > 0, 1.0, -1.0) + 0 * y[0]]
        return solve_ivp(lambda t, y: [1.0], (0, 1), [p], events=jump).t_events[0][0]

    assert touching(-0.5) == pytest.approx(0.5)
    with pytest.raises(cr.LinAlgError, match="solve_ivp: an event: the Jacobian"):
        cr.grad(touching)(-0.5)


STIFF_JACOBIANS = {
    "none": lambda f: None,
    "eager": lambda f: cr.jacobian(f, 1),
    "compiled": lambda f: cr.compile(cr.jacobian(f, 1)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("jacobian", STIFF_JACOBIANS.values(), ids=STIFF_JACOBIANS)
@pytest.mark.parametrize("method", ["Radau", "BDF"])
def test_a_stiff_problem(method: str, jacobian: Any) -> None:
    def reactions(t: Any, y: Any, k: Any) -> Any:  # H. H. Robertson, 1966
        forward, back = k * y[0], 1e4 * y[1] * y[2]
        fast = 3e7 * y[1] ** 2
        return np.stack([back - forward, forward - back - fast, fast])

    def left(k: Any, solve: Any = solve_ivp, **settings: Any) -> Any:
        start = [1.0, 0.0, 0.0]
        return solve(reactions, (0.0, 4.0), start, method, args=(k,), **settings).y[0, -1]

    found = cr.grad(left)(0.04, rtol=1e-6, atol=1e-10, jac=jacobian(reactions))
    fine = {"rtol": 1e-10, "atol": 1e-13}
    plain = scipy_integrate.solve_ivp
    wanted = (left(0.0404, plain, **fine) - left(0.0396, plain, **fine)) / 0.0008
    assert found == pytest.approx(wanted, rel=1e-3)


def test_gradients_by_tensors_and_the_kinds_of_results() -> None:
    rate = cr.tensor(0.5, dtype=cr.float64, requires_grad=True)
    found = solve_ivp(lambda t, y: -rate * y, (0, 2.0), [1.0, 2.0], **TIGHT)
    assert type(found.y) is cr.numpy.ndarray
    assert type(found.t) is np.ndarray
    (slope,) = cr.autograd_grad(found.y[:, -1].sum(), rate)
    assert slope.item() == pytest.approx(-6 * np.exp(-1), rel=1e-6)
    start = cr.tensor([1.0, 2.0], dtype=cr.float64, requires_grad=True)

    def of_tensors(t: float, y: Any) -> Any:
        assert type(y) is cr.Tensor
        return -y

    found = solve_ivp(of_tensors, (0, 1.0), start, **TIGHT)
    found.y[0, -1].backward()
    assert type(found.y) is cr.Tensor
    np.testing.assert_allclose(start.grad, [np.exp(-1), 0], atol=1e-7)
    assert type(solve_ivp(of_tensors, (0, 1.0), start.detach()).y) is cr.Tensor
    assert type(solve_ivp(lambda t, y: -y, (0, 1.0), [1.0]).y) is np.ndarray


def test_a_function_that_records_late() -> None:
    rate = cr.tensor(0.5, dtype=cr.float64, requires_grad=True)

    def late(t: float, y: Any) -> Any:
        return -rate * y if t > 1 else -y

    found = solve_ivp(late, (0, 2.0), [1.0], max_step=0.05)
    (slope,) = cr.autograd_grad(found.y[0, -1], rate)
    assert slope.item() == pytest.approx(-np.exp(-1.5), rel=1e-2)


def test_complex_states() -> None:
    for method in ("RK45", "BDF"):

        def away(w: Any, method: str = method) -> Any:
            start = np.array([1 + 0j])
            found = solve_ivp(lambda t, y: 1j * w * y, (0, 1), start, method, rtol=1e-8, atol=1e-9)
            return abs(found.y[0, -1] - 1)

        assert cr.grad(away)(2.0) == pytest.approx(np.cos(1.0), rel=1e-6)


def test_odeint() -> None:
    times = np.linspace(0.0, 3.0, 4)

    def states(p: Any, t: Any, solve: Any = odeint) -> Any:
        return solve(lambda y, t, a, b: oscillator(t, y, a, b), p[:2], t, (p[2], p[3]))

    p = POINT[:4]
    plain = scipy_integrate.odeint
    np.testing.assert_array_equal(states(p, times), states(p, times, plain))
    by_p, by_t = cr.jacobian(states, (0, 1))(p, times)
    np.testing.assert_allclose(
        by_p, differences(lambda q: states(q, times, plain), p, 1e-3), atol=1e-4
    )
    np.testing.assert_allclose(
        by_t, differences(lambda t: states(p, t, plain), times, 1e-3), atol=1e-4
    )
    decay = cr.grad(lambda k: odeint(lambda t, y: -k * y, [1.0], times, tfirst=True)[-1, 0])
    assert decay(0.5) == pytest.approx(-3 * np.exp(-1.5), rel=1e-6)
    states_and_more = odeint(lambda y, t: -y, cr.tensor([1.0]), times, full_output=True)
    assert type(states_and_more[0]) is cr.Tensor
    assert "nfe" in states_and_more[1]


def test_what_is_refused() -> None:
    def end(y: Any) -> Any:
        return solve_ivp(lambda t, y: -y, (0, 1.0), y).y[:, -1]

    with pytest.raises(cr.AutogradError, match="solve_ivp chooses its steps by values"):
        cr.compile(end)(np.ones(2))
    with pytest.raises(cr.AutogradError, match="solve_ivp chooses its steps by values"):
        cr.vmap(end)(np.ones((2, 2)))
    with pytest.raises(cr.ShapeError, match="returned 1 numbers for 2 unknowns"):
        cr.grad(lambda p: solve_ivp(lambda t, y: [p], (0, 1), [1.0, 2.0]).y[0, -1])(1.0)
