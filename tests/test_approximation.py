"""cr.taylor: derivatives, values, remainders, tables, plots, and the order of convergence."""

from __future__ import annotations

import gc
import math
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.approximation import Table


def f(x: Any) -> Any:
    return np.sin(np.exp(x)) * np.log1p(x**2)


@pytest.mark.parametrize("order", range(11))
def test_the_remainder_vanishes_with_the_next_power(order: int) -> None:
    found = cr.taylor(f, 0.3, order).order_of_convergence()
    assert found == pytest.approx(order + 1, abs=0.7)


def test_kinds_of_results_are_those_of_the_points() -> None:
    p = cr.taylor(f, 0.3, 2)
    assert [type(d) for d in p.derivatives] == [float] * 3
    assert type(p(0.5)) is type(p.remainder(1)) is float
    assert type(p(np.float64(0.5))) is np.float64
    assert type(p(np.array([0.5]))) is type(p([0.5, 1])) is np.ndarray
    assert type(p(cr.tensor(0.5))) is cr.Tensor
    p = cr.taylor(f, np.array(0.3), 2)
    assert [type(d) for d in p.derivatives] == [np.float64] * 3
    p = cr.taylor(f, cr.tensor(0.3), 2)
    assert all(d.dtype == cr.float32 for d in p.derivatives)
    assert p(0.5).dtype == p(np.array(0.5, "f4")).dtype == cr.float32
    assert type(p.remainder([0.5, 1.0])) is cr.Tensor


def test_shapes_of_values_and_remainders() -> None:
    p = cr.taylor(lambda x: np.stack([x, np.sin(x), x * x]), 0.5, 4)
    assert [np.shape(d) for d in p.derivatives] == [(3,)] * 5
    assert p(0.6).shape == (3,)
    assert p(np.ones((2, 4))).shape == p.remainder(np.ones((2, 4))).shape == (2, 4, 3)
    q = cr.taylor(lambda x: np.sin(x).sum(0), np.ones((2, 3)), 2)
    assert [d.shape for d in q.derivatives] == [(3,), (3, 2, 3), (3, 2, 3, 2, 3)]
    assert q(np.ones((5, 2, 3))).shape == q.remainder(np.ones((5, 2, 3))).shape == (5, 3)
    assert q(np.ones((0, 2, 3))).shape == q.remainder(np.ones((0, 2, 3))).shape == (0, 3)
    with pytest.raises(cr.ShapeError, match=r"points have the shape \(..., 2, 3\), .* got \[3\]"):
        q(np.ones(3))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_several_variables(order: int) -> None:
    x0 = np.array([0.3, -0.7, 1.2])

    def energy(x: Any) -> Any:
        return np.sin(x[0] * x[1]) + np.exp(x[2]) * x[0] ** 2

    p = cr.taylor(energy, x0, order)
    wanted = [energy(x0), cr.grad(energy)(x0), cr.hessian(energy)(x0)]
    for found, expected in zip(p.derivatives, wanted, strict=False):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert p.order_of_convergence() == pytest.approx(order + 1, abs=0.1)
    assert p.order_of_convergence([1.0, 0.0, 0.0]) == pytest.approx(order + 1, abs=0.1)
    points = x0 + 0.1 * np.random.default_rng(0).normal(size=(4, 3))
    true = [energy(x) for x in points]
    np.testing.assert_allclose(p(points) + p.remainder(points), true, rtol=1e-12)


def test_polynomials_are_their_own() -> None:
    def cubic(x: Any) -> Any:
        return 2 * x**3 - x + 1

    p = cr.taylor(cubic, 2.0, 3)
    assert p.derivatives == (15.0, 23.0, 24.0, 12.0)
    xs = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(p(xs), cubic(xs))
    assert p.order_of_convergence() == math.inf
    assert cr.taylor(cubic, 2.0, 6).derivatives[4:] == (0.0, 0.0, 0.0)
    assert cr.taylor(lambda x: 3.0, 2.0, 2).derivatives == (3.0, 0.0, 0.0)


def custom(factor: float, *, forward_rule: bool) -> Any:
    """Return x³ as a custom function whose derivative is multiplied by a factor."""

    @cr.autograd_function
    def cube(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        return x**3

    @cube.backward
    def _(ctx: Any, grad_output: Any) -> Any:
        return {"x": factor * 3 * ctx.saved_variables.x**2 * grad_output}

    if forward_rule:

        @cube.jvp
        def _(ctx: Any, t: Any) -> Any:
            return factor * 3 * ctx.saved_variables.x**2 * t

    return cube


@pytest.mark.parametrize("forward_rule", [True, False], ids=["jvp", "backward"])
def test_a_wrong_derivative_is_noticed(forward_rule: bool) -> None:
    right, wrong = (custom(k, forward_rule=forward_rule) for k in (1.0, 1.001))
    for order in (1, 2):
        p = cr.taylor(lambda x: right(x) * cr.exp(x), 0.5, order)
        assert p.order_of_convergence() == pytest.approx(order + 1, abs=0.1)
        p = cr.taylor(lambda x: wrong(x) * cr.exp(x), 0.5, order)
        assert p.order_of_convergence() == pytest.approx(1, abs=0.3)


def test_the_polynomial_is_differentiated_and_compiled() -> None:
    def value(a: Any, x0: Any, x: Any) -> Any:
        return cr.taylor(lambda x: cr.sin(a * x), x0, 3)(x)

    point = (2.0, 0.3, 0.5)
    found = cr.grad(value, (0, 1, 2))(*point)
    step = 1e-6
    for i in range(3):
        up, down = ([v + s * step * (j == i) for j, v in enumerate(point)] for s in (1, -1))
        slope = (value(*up) - value(*down)) / (2 * step)
        assert found[i] == pytest.approx(float(slope), rel=1e-6, abs=1e-9)
    assert cr.compile(value)(*point) == pytest.approx(float(value(*point)))
    a = cr.tensor(2.0, requires_grad=True, dtype=cr.float64)
    p = cr.taylor(lambda x: cr.sin(a * x), 0.3, 3)
    p.derivatives[3].backward()
    assert a.grad.item() == pytest.approx(-12 * math.cos(0.6) + 8 * 0.3 * math.sin(0.6), rel=1e-9)


def test_an_array_that_changes_later_is_no_matter() -> None:
    x0 = np.array([1.0, 2.0])
    p = cr.taylor(lambda x: (x**2).sum(), x0, 2)
    x0[:] = 7.0
    assert p(np.array([1.0, 2.0])) == 5.0


def test_nothing_keeps_the_graph() -> None:
    a = cr.ones(100, dtype=cr.float64)
    watched = weakref.ref(a)
    gc.disable()
    try:
        p = cr.taylor(lambda x, a=a: (cr.tanh(x * a) / (1 + x)).sum(), 0.3, 4)
        derivatives = p.derivatives
        del p, a
        assert watched() is None
    finally:
        gc.enable()
    assert len(derivatives) == 5


# --- tables and plots -----------------------------------------------------------------------------


def parabola(x: Any) -> Any:
    return x**2 + 3 * x + 2


XS = [-1.0, 2.0, 3.0]


def test_the_table_is_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    table = cr.taylor(parabola, 2.0, 1).table(XS)
    assert isinstance(table, pandas.DataFrame)
    assert list(table.columns) == ["x", "y_true", "y_approx"]
    assert table["y_approx"].tolist() == [-9.0, 12.0, 19.0]


def test_without_pandas_the_table_has_the_same_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    table = cr.taylor(parabola, 2.0, 1).table(cr.tensor(XS))
    assert isinstance(table, Table)
    assert list(table) == table.columns == ["x", "y_true", "y_approx"]
    assert table.y_true.tolist() == [0.0, 12.0, 20.0]
    assert table["y_approx"].tolist() == [-9.0, 12.0, 19.0]
    assert len(table) == 3
    assert repr(table).splitlines()[0].split() == table.columns
    assert repr(table).splitlines()[3].split() == ["3", "20", "19"]
    with pytest.raises(AttributeError, match="no column 'z'"):
        _ = table.z


def test_the_plot_shows_both_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    ax = cr.taylor(parabola, 2.0, 1).plot(np.linspace(-4, 4, 9))
    true, line, point = ax.get_lines()
    assert true.get_label() == "parabola"
    assert line.get_label() == "its linear approximation at 2"
    np.testing.assert_allclose(line.get_ydata(), 12 + 7 * (line.get_xdata() - 2))
    assert point.get_xdata()[0] == 2.0
    own = pyplot.figure().subplots()
    assert cr.taylor(np.sin, 0.5, 5).plot(ax=own) is own
    assert own.get_xlim() == (-1.5, 2.5)
    assert own.get_lines()[1].get_label() == "its approximation of order 5 at 0.5"
    own.figure.canvas.draw()
    pyplot.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(cr.MissingExtraError, match=r"pip install 'chainrule\[plot\]'"):
        cr.taylor(np.sin, 0.5, 5).plot()


# --- errors ---------------------------------------------------------------------------------------

ERRORS: dict[str, tuple[Any, type[Exception], str]] = {
    "order": (
        lambda: cr.taylor(f, 0.0, -1),
        cr.ArgumentError,
        "order is an integer from 0 on, but got -1",
    ),
    "order of several": (
        lambda: cr.taylor(lambda x: x.sum(), np.ones(3), 3),
        cr.ArgumentError,
        r"at most 2 for 3 variables, but got 3: .* cr.taylor\(lambda t: f\(x0 \+ t \* v\), 0.0",
    ),
    "tree": (
        lambda: cr.taylor(f, {"a": 1.0}, 1),
        TypeError,
        r"got a dict of 1 \('a'\): vector, unravel = cr.tree.ravel\(x0\)",
    ),
    "integer": (lambda: cr.taylor(f, 2, 1), cr.DTypeError, "got int64 .*write 2.0 for 2"),
    "text": (lambda: cr.taylor(f, "2", 1), TypeError, "taylor: expected a tensor, .* got str"),
    "several results": (
        lambda: cr.taylor(lambda x: (x, x), 2.0, 1),
        TypeError,
        "taylor: expected .* to return a tensor, .* but got a tuple",
    ),
    "result of text": (
        lambda: cr.taylor(lambda x: "x", 2.0, 1),
        TypeError,
        "taylor: expected .* to return a tensor, .* but got a str",
    ),
    "table of several": (
        lambda: cr.taylor(lambda x: x.sum(), np.ones(3), 1).table([1.0]),
        cr.ArgumentError,
        "table: of a real function of one variable .* has 3 variables of float64",
    ),
    "plot of several results": (
        lambda: cr.taylor(lambda x: np.stack([x, x]), 1.0, 1).plot(),
        cr.ArgumentError,
        r"plot: .* returns 2 numbers: go along a line",
    ),
    "table of a matrix": (
        lambda: cr.taylor(f, 1.0, 1).table(np.ones((2, 2))),
        cr.ShapeError,
        r"table: xs has one dimension, but got \[2, 2\]",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        call()
