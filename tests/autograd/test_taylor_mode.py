"""Taylor mode: coefficients of high order, their cost, and what the propagation goes through."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import taylor_mode
from chainrule.autograd.function_call import FunctionCall
from chainrule.primitives.primitive import TABLE, parameters

mpmath = pytest.importorskip("mpmath")

ORDER = 10


def coefficients(function: Callable[[Any], Any], at: float, order: int = ORDER) -> list[float]:
    """Return the Taylor coefficients 1 to `order` of a function of a number."""
    x = cr.tensor(at, dtype=cr.float64)
    call = FunctionCall(function, [x], [x])
    (found,) = call.taylor([cr.ones_like(x)], order)
    return [0.0 if c is None else c.item() for c in found]


def matrix(lib: Any, x: Any) -> Any:
    """Return a matrix of a number, of chainrule or of mpmath."""
    rows = [[2 + x, 1 + x * x], [-x, 3 + lib.cos(x)]]
    if lib is mpmath.mp:
        return lib.matrix(rows)
    return cr.stack([cr.stack([e + 0 * x for e in row]) for row in rows])


M = mpmath.mp
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = {
    "of the issue": (
        lambda x: cr.sin(cr.exp(x)) * cr.log1p(x**2),
        lambda x: M.sin(M.exp(x)) * M.log(1 + x**2),
        0.3,
    ),
    "quotients and roots": (
        lambda x: cr.sin(x) / cr.sqrt(1 + x**2) / x**1.5,
        lambda x: M.sin(x) / M.sqrt(1 + x**2) / x**1.5,
        0.7,
    ),
    "power": (lambda x: x**x, lambda x: x**x, 0.7),
    "tanh, atan, erf": (
        lambda x: cr.tanh(x) * cr.atan(x) * cr.erf(x),
        lambda x: M.tanh(x) * M.atan(x) * M.erf(x),
        0.4,
    ),
    "lgamma": (cr.lgamma, M.loggamma, 2.7),
    "Bessel": (cr.special.bessel_j0, lambda x: M.besselj(0, x), 0.7),
    "two arguments": (
        lambda x: cr.hypot(x, x * x) * cr.atan2(x, 1 + x),
        lambda x: M.sqrt(x**2 + x**4) * M.atan(x / (1 + x)),
        0.7,
    ),
    "softmax": (
        lambda x: cr.logsumexp(cr.stack([x, x * x, cr.sin(x)]), 0),
        lambda x: M.log(M.exp(x) + M.exp(x * x) + M.exp(M.sin(x))),
        0.7,
    ),
    "solve": (
        lambda x: cr.linalg.solve(matrix(cr, x), cr.stack([x, cr.exp(x)]))[0],
        lambda x: (matrix(M, x) ** -1 * M.matrix([x, M.exp(x)]))[0],
        0.3,
    ),
    "solve with a constant matrix": (
        lambda x: cr.linalg.solve(cr.tensor([[2.0, 1], [0, 3]]).double(), cr.stack([x, x**3]))[0],
        lambda x: x / 2 - x**3 / 6,
        0.3,
    ),
    "solve with a constant side": (
        lambda x: cr.linalg.solve(matrix(cr, x), cr.ones(2, dtype=cr.float64))[1],
        lambda x: (matrix(M, x) ** -1 * M.matrix([1, 1]))[1],
        0.3,
    ),
    "inverse": (
        lambda x: cr.linalg.inv(matrix(cr, x))[0, 1],
        lambda x: (matrix(M, x) ** -1)[0, 1],
        0.3,
    ),
    "triangular": (
        lambda x: cr.linalg.solve_triangular(
            matrix(cr, x), cr.stack([cr.stack([x]), cr.stack([cr.sin(x)])]), upper=True
        )[0, 0],
        lambda x: (x - (1 + x * x) * M.sin(x) / (3 + M.cos(x))) / (2 + x),
        0.3,
    ),
    "eigenvalues": (
        lambda x: cr.linalg.eigvalsh(matrix(cr, x) + matrix(cr, x).mT)[0],
        lambda x: 5 + x + M.cos(x) - M.sqrt((M.cos(x) + 1 - x) ** 2 + (1 + x * x - x) ** 2),
        0.3,
    ),
    "in-place writes and views": (
        lambda x: _written(x),
        lambda x: M.sin(x) ** 2 * M.exp(x) + x,
        0.3,
    ),
    "a polynomial ends": (lambda x: x**3 * (x - 1), lambda x: x**3 * (x - 1), 0.7),
}


def _written(x: Any) -> Any:
    a = cr.zeros(3, dtype=cr.float64)
    a[0] = x.sin()
    a[1:] = a[:1].clone() * x.exp()
    a[:2].mul_(x.sin())
    return a[1] + x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_coefficients_to_order_10(name: str) -> None:
    ours, theirs, at = FUNCTIONS[name]
    with mpmath.workdps(50):
        wanted = [float(c) for c in mpmath.taylor(theirs, mpmath.mpf(at), ORDER)[1:]]
    np.testing.assert_allclose(coefficients(ours, at), wanted, rtol=1e-9, atol=1e-11)


def test_coefficients_of_a_deep_graph() -> None:
    def deep(x: Any) -> Any:
        y = x
        for _ in range(1200):
            y = cr.sin(y) + 0.001 * y * y
        return y

    found = coefficients(deep, 0.01, 2)
    assert found[0] == pytest.approx(cr.grad(deep)(0.01), rel=1e-9)
    assert 2 * found[1] == pytest.approx(cr.grad(cr.grad(deep))(0.01), rel=1e-9)


def test_the_cost_does_not_double_with_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    plain = taylor_mode.SeriesGraph._outputs_of

    def counted(self: Any, node: Any) -> Any:
        made.append(1)
        return plain(self, node)

    monkeypatch.setattr(taylor_mode.SeriesGraph, "_outputs_of", counted)

    def count(function: Callable[[Any], Any], at: float, order: int) -> int:
        made.clear()
        coefficients(function, at, order)
        return len(made)

    for name in ("of the issue", "power", "Bessel", "solve", "eigenvalues", "lgamma"):
        ours, _, at = FUNCTIONS[name]
        assert count(ours, at, 12) < 5 * count(ours, at, 6), name


def test_bilinear_primitives_are_those_whose_rules_say_so() -> None:
    def is_candidate(primitive: Any) -> bool:
        rules = primitive.jvp
        if not isinstance(rules, tuple) or len(rules) != 2 or None in rules:
            return False
        reads = [{name for name in parameters(rule)[0] if name != "t"} for rule in rules]
        x, y = primitive.inputs
        return reads == [{y}, {x}]

    products = {name for name, primitive in TABLE.items() if primitive.series == "product"}
    names = {name for name, primitive in TABLE.items() if is_candidate(primitive)}
    assert {name for name in names if not name.startswith("special_")} == products
    for primitive in TABLE.values():
        if primitive.series == "solution":
            assert primitive.inputs[:2] == ("a", "b")
            a, b = [set(parameters(rule)[0]) for rule in primitive.jvp[:2]]
            assert a - b == {"out"}


# --- other transforms -----------------------------------------------------------------------------


def third(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def derivative(x: Any) -> Any:
        call = FunctionCall(function, [x], [x])
        (found,) = call.taylor([cr.ones_like(x)], 3)
        return 6 * found[2]

    return derivative


def g(x: Any) -> Any:
    return cr.sin(x) / (1 + x * x)


def test_coefficients_compiled_mapped_and_differentiated() -> None:
    x = cr.tensor(0.4, dtype=cr.float64)
    orders = [x]
    f: Any = g
    for _ in range(4):
        f = cr.grad(f)
        orders.append(f(x))
    assert third(g)(x).item() == pytest.approx(orders[3].item())
    assert cr.compile(third(g))(x).item() == pytest.approx(orders[3].item())
    assert cr.vmap(third(g))(cr.stack([x, x]))[1].item() == pytest.approx(orders[3].item())
    assert cr.grad(third(g))(x).item() == pytest.approx(orders[4].item())
    assert cr.jvp(third(g), x, cr.ones_like(x))[1].item() == pytest.approx(orders[4].item())


def test_functions_with_vmap_scan_and_custom_rules_inside() -> None:
    @cr.autograd_function
    def cube(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        return x**3

    @cube.backward
    def _(ctx: Any, grad_output: Any) -> Any:
        return {"x": 3 * ctx.saved_variables.x**2 * grad_output}

    @cube.jvp
    def _(ctx: Any, x: Any) -> Any:
        return 3 * ctx.saved_variables.x**2 * x

    def inside(x: Any) -> Any:
        total = cr.vmap(lambda a: cr.sin(a * x))(cr.arange(1.0, 4.0, dtype=cr.float64)).sum()
        last, _ = cr.scan(lambda c, a: (c * cr.exp(a * x), None), x, cr.ones(3, dtype=cr.float64))
        return cube(total) + last

    def plain(x: Any) -> Any:
        total = cr.sin(x) + cr.sin(2 * x) + cr.sin(3 * x)
        return total**3 + x * cr.exp(3 * x)

    found, wanted = coefficients(inside, 0.3, 5), coefficients(plain, 0.3, 5)
    np.testing.assert_allclose(found, wanted, rtol=1e-11)
    compiled = cr.compile(inside)
    np.testing.assert_allclose(coefficients(compiled, 0.3, 3), wanted[:3], rtol=1e-11)


def test_complex_numbers_and_several_inputs() -> None:
    z = cr.tensor(0.3 + 0.2j)
    call = FunctionCall(cr.exp, [z], [z])
    (found,) = call.taylor([cr.tensor(1j)], 4)
    for k, c in enumerate(found, 1):
        assert c.item() == pytest.approx(np.exp(0.3 + 0.2j) * 1j**k / math.factorial(k), rel=1e-5)
    x, y = cr.ones(3), cr.ones(2, 3)
    call = FunctionCall(lambda x, y: [x * y, y.sum(), 2 * x.sum()], [x, y], [x, y])
    product, total, other = call.taylor([cr.ones_like(x), None], 2)
    assert product[0].tolist() == [[1.0] * 3] * 2
    assert (product[1], total, other[0].item()) == (None, [None, None], 6.0)
