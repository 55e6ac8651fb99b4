"""`cr.scipy.integrate`: SciPy's values, and derivatives beside formulas and differences."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

integrate = cr.scipy.integrate
scipy_integrate = pytest.importorskip("scipy.integrate")

RNG = np.random.default_rng(3)


# --- samples --------------------------------------------------------------------------------------

SAMPLES: list[tuple[str, int, bool, dict[str, Any]]] = [
    (name, n, with_x, settings)
    for name in ("trapezoid", "cumulative_trapezoid", "simpson", "cumulative_simpson")
    for n in (2, 3, 5, 6)
    for with_x in (False, True)
    for settings in ({},)
]
SAMPLES += [
    ("cumulative_trapezoid", 4, True, {"initial": 0}),
    ("cumulative_simpson", 5, True, {"initial": 0}),
    ("cumulative_simpson", 2, False, {"initial": 1.5}),
    *[("romb", n, False, {}) for n in (2, 3, 5, 9)],
    *[(name, 5, False, {"axis": 0}) for name in ("simpson", "cumulative_simpson", "romb")],
    *[(name, 5, False, {"dx": 0.3}) for name in ("simpson", "trapezoid", "romb")],
]


@pytest.mark.parametrize(
    ("name", "n", "with_x", "settings"),
    [
        case if i % 4 == 0 else pytest.param(*case, marks=pytest.mark.thorough)
        for i, case in enumerate(SAMPLES)
    ],
)
def test_integrals_of_samples(name: str, n: int, with_x: bool, settings: dict[str, Any]) -> None:
    ours = getattr(cr.scipy.integrate, name)
    y = RNG.normal(size=(2, n) if "axis" not in settings else (n, 2))
    x = {"x": np.cumsum(RNG.uniform(0.2, 1.0, n))} if with_x else {}
    wanted = getattr(scipy_integrate, name)(y, **x, **settings)
    np.testing.assert_array_equal(ours(y, **x, **settings), wanted)

    def integral(y: Any, *points: Any) -> Any:
        return ours(y, **dict(zip(x, points, strict=True)), **settings)

    tensors = [cr.tensor(a, requires_grad=True) for a in (y, *x.values())]
    found = integral(*tensors)
    np.testing.assert_allclose(found.detach().numpy(), wanted, 1e-12)
    assert cr.gradcheck(integral, tensors, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(integral, tensors, fast_mode=True)
    compiled = cr.compile(integral)(*tensors)
    np.testing.assert_allclose(compiled.detach().numpy(), wanted, 1e-12)
    if "axis" not in settings:
        np.testing.assert_allclose(cr.vmap(lambda y: integral(y, *x.values()))(y), wanted, 1e-12)
    assert integral(*[cr.tensor(a.astype(np.float32)) for a in (y, *x.values())]).dtype == "float32"
    assert type(cr.vjp(integral, y, *x.values())[0]) is np.ndarray


def test_a_step_may_be_a_tensor() -> None:
    y = RNG.normal(size=5)
    for name in ("trapezoid", "simpson", "cumulative_simpson", "romb", "cumulative_trapezoid"):
        total = getattr(cr.scipy.integrate, name)
        assert cr.gradcheck(
            lambda dx, f=total: f(y, dx=dx),
            cr.tensor(0.3, dtype=cr.float64, requires_grad=True),
            fast_mode=True,
        )


def test_wrong_samples() -> None:
    integrate, y = cr.scipy.integrate, cr.tensor([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(cr.ShapeError, match="simpson: shape of `x` must be the same as `y` or 1-D"):
        integrate.simpson(y, x=[0.0, 1.0])
    with pytest.raises(cr.ShapeError, match=r"romb: Number of samples must be one plus a .* got 4"):
        integrate.romb(y)
    with pytest.raises(cr.ArgumentError, match="x must be strictly increasing"):
        integrate.cumulative_simpson(y, x=[0.0, 2.0, 1.0, 3.0])
    with pytest.raises(cr.ArgumentError, match="`initial` must be `None` or `0`"):
        integrate.cumulative_trapezoid(y, initial=1.0)
    with pytest.raises(cr.ShapeError, match="simpson: At least one point is required"):
        integrate.simpson(y[:0])
    assert integrate.simpson(y, x=[0.0, 0.0, 1.0, 1.0]).item() == pytest.approx(
        scipy_integrate.simpson(y.numpy(), x=[0.0, 0.0, 1.0, 1.0])
    )
    with pytest.raises(TypeError, match="romb of tensors takes no show"):
        integrate.romb(y, show=True)


# --- functions ------------------------------------------------------------------------------------

Integral = Callable[[Any], Any]
INF = math.inf

# an integral as a function of its parameter, where, the derivative there, and the second one
INTEGRALS: dict[str, tuple[Integral, float, float, float]] = {
    "closed over": (
        lambda c: cr.scipy.integrate.quad(lambda x: np.exp(-c * x), 0, INF)[0], 2.0, -0.25, 0.25,
    ),
    "argument": (
        lambda c: cr.scipy.integrate.quad(lambda x, c: np.exp(-c * x), 0, INF, args=(c,))[0],
        2.0, -0.25, 0.25,
    ),
    "upper limit": (
        lambda b: cr.scipy.integrate.quad(np.sin, 0.0, b)[0], 1.2, math.sin(1.2), math.cos(1.2),
    ),
    "lower limit": (
        lambda a: cr.scipy.integrate.quad(lambda x: np.exp(-x), a, INF)[0],
        0.7, -math.exp(-0.7), math.exp(-0.7),
    ),
    "all of them": (  # ∫ cx from c to 2c = 3c³/2
        lambda c: cr.scipy.integrate.quad(lambda x, d: d * x, c, 2 * c, args=(c,))[0],
        1.5, 4.5 * 1.5**2, 9 * 1.5,
    ),
    "both infinite": (
        lambda s: cr.scipy.integrate.quad(lambda x: np.exp(-x * x / (2 * s * s)), -INF, INF)[0],
        1.5, math.sqrt(2 * math.pi), 0.0,
    ),
    "left infinite": (
        lambda c: cr.scipy.integrate.quad(lambda x: np.exp(c * x), -INF, 0)[0], 2.0, -0.25, 0.25,
    ),
    "reversed": (
        lambda c: cr.scipy.integrate.quad(lambda x: np.exp(-c * x), INF, 0)[0], 2.0, 0.25, -0.25,
    ),
    "singular": (  # -1/(c + 1)²
        lambda c: cr.scipy.integrate.quad(lambda x: np.log(x) * x**c, 0, 1)[0],
        0.5, 2 / 1.5**3, -6 / 1.5**4,
    ),
    "vector": (
        lambda c: cr.scipy.integrate.quad_vec(
            lambda x: c * np.array([1.0, 2.0]) * x, 0, c
        )[0].sum(),
        2.0, 4.5 * 4.0, 9 * 2.0,
    ),
    "half a line of vectors": (
        lambda c: cr.scipy.integrate.quad_vec(
            lambda x: np.exp(-c * np.array([1.0, 2.0]) * x), 0, INF
        )[0].sum(),
        2.0, -1.5 / 4, 2 * 1.5 / 8,
    ),
    "fixed": (  # ∫ cx² from 0 to c = c⁴/3
        lambda c: cr.scipy.integrate.fixed_quad(lambda x: c * x**2, 0.0, c)[0],
        1.5, 4 * 1.5**3 / 3, 4 * 1.5**2,
    ),
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", INTEGRALS)
def test_derivatives_of_integrals(name: str) -> None:
    integral, at, first, second = INTEGRALS[name]
    value = integral(at)
    assert isinstance(value, float)
    assert cr.grad(integral)(at) == pytest.approx(first, 1e-9)
    assert cr.grad(cr.grad(integral))(at) == pytest.approx(second, 1e-8, 1e-8)
    assert cr.jvp(integral, (at,), (2.0,)) == (
        pytest.approx(value, 1e-12), pytest.approx(2 * first, 1e-9),
    )  # fmt: skip
    t = cr.tensor(at, dtype=cr.float64, requires_grad=True)
    found = integral(t)
    assert type(found) is cr.Tensor
    assert found.item() == pytest.approx(value, 1e-12)
    found.backward()
    assert t.grad.item() == pytest.approx(first, 1e-9)
    with cr.no_grad():
        assert not integral(t).requires_grad


@pytest.mark.thorough
def test_several_variables() -> None:

    def double(c: Any) -> Any:  # c²/2 ∫ x⁴ from 0 to 1
        return integrate.dblquad(lambda y, x: c * c * x * x * y, 0, 1, 0, lambda x: x)[0]

    assert double(2.0) == pytest.approx(0.4)
    assert cr.grad(double)(2.0) == pytest.approx(0.4, 1e-9)
    value, error = integrate.nquad(lambda x, y: x * y, [[0, 1], [0, 2]])
    assert (value, error) == pytest.approx(
        scipy_integrate.nquad(lambda x, y: x * y, [[0, 1], [0, 2]])
    )
    assert len(integrate.nquad(np.sin, [[0, 1]], full_output=True)) == 3


@pytest.mark.thorough
def test_three_variables() -> None:
    triple = integrate.tplquad(lambda z, y, x: x * y * z, 0, 1, 0, 2, 0, lambda x, y: x)
    wanted = scipy_integrate.tplquad(lambda z, y, x: x * y * z, 0, 1, 0, 2, 0, lambda x, y: x)
    assert triple == pytest.approx(wanted)


def test_an_integrand_with_a_kink() -> None:
    kinked = cr.grad(lambda c: cr.scipy.integrate.quad(lambda x: abs(x - c), 0, 1)[0])
    assert kinked(0.3) == pytest.approx(-0.4, 1e-9)


def test_many_parameters() -> None:
    def integral(w: Any) -> Any:
        return cr.scipy.integrate.quad(lambda x: np.exp(-((w[0] + w[1] * x) ** 2)) * w[2], 0, 2)[0]

    w = np.array([0.2, 0.7, 1.5])
    step = 1e-6 * np.eye(3)
    wanted = [(integral(w + d) - integral(w - d)) / 2e-6 for d in step]
    np.testing.assert_allclose(cr.grad(integral)(w), wanted, 1e-8)


def test_what_returns_numbers_is_scipys() -> None:
    quad = cr.scipy.integrate.quad
    assert quad(math.sin, 0, 1) == scipy_integrate.quad(math.sin, 0, 1)
    assert quad(math.sin, 0, 1, full_output=1)[2]["last"] == 1
    assert quad(math.sin, 0, 1, weight="cos", wvar=2) == scipy_integrate.quad(
        math.sin, 0, 1, weight="cos", wvar=2
    )
    assert cr.scipy.integrate.fixed_quad(np.sin, 0, 1) == scipy_integrate.fixed_quad(np.sin, 0, 1)
    with pytest.raises(ValueError, match="only available for finite limits"):
        cr.scipy.integrate.fixed_quad(np.sin, 0, INF)
    assert cr.scipy.integrate.newton_cotes(3)[0].tolist() == [0.375, 1.125, 1.125, 0.375]


def test_a_fixed_rule_is_compiled_and_mapped() -> None:
    def integral(c: Any) -> Any:
        return cr.scipy.integrate.fixed_quad(lambda x: cr.exp(-c * x), 0.0, 1.0, n=9)[0]

    c = cr.tensor(0.7, dtype=cr.float64)
    wanted = (1 - math.exp(-0.7)) / 0.7
    assert cr.compile(integral)(c).item() == pytest.approx(wanted, 1e-12)
    assert cr.vmap(integral)(np.array([0.7, 0.7])).tolist() == pytest.approx([wanted] * 2, 1e-12)


def tracked(value: float) -> cr.Tensor:
    return cr.tensor(value, dtype=cr.float64, requires_grad=True)


def test_what_has_no_derivative_raises() -> None:
    quad, quad_vec = cr.scipy.integrate.quad, cr.scipy.integrate.quad_vec
    with pytest.raises(cr.AutogradError, match="no derivatives with weight= or complex_func="):
        quad(lambda x: tracked(2.0) * x, 0, 1, weight="cos", wvar=2)
    with pytest.raises(cr.AutogradError, match=r"not finite at the limit 0.0, .* limit.detach\(\)"):
        quad(lambda x: x**-0.5, tracked(0.0), 1)
    with pytest.raises(cr.AutogradError, match=r"looks at values, .* call fixed_quad"):
        cr.vmap(lambda b: quad(np.sin, 0, b)[0])(np.array([1.0, 2.0]))
    for of_parameter in (cr.vmap, cr.compile):
        for integral in (quad, quad_vec):
            with pytest.raises(cr.AutogradError, match=r"looks at values, .* call fixed_quad"):
                of_parameter(lambda p, f=integral: f(lambda x: p * x, 0, 1)[0])(np.ones(2))
    with pytest.raises(cr.ShapeError, match=r"a limit is a number, got shape \[2\]"):
        quad(np.sin, 0, cr.tensor([1.0, 2.0]))
    with pytest.raises(cr.ShapeError, match=r"func to return a number, .* quad_vec integrates"):
        quad(lambda x: cr.tensor([1.0, 2.0]) * x, 0, 1)
    assert quad_vec(lambda x: np.array([x, x]), 0, 1)[0].tolist() == pytest.approx([0.5, 0.5])


@pytest.mark.thorough
def test_an_integrand_that_is_too_rough() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(cr.AutogradError, match=r"differs from the value, .* singularity"):
            cr.scipy.integrate.quad(lambda x: tracked(1.0) * math.sin(1e5 * x), 0, 3.0)


@pytest.mark.parametrize(
    ("integral", "wanted"),  # d/da at 1.0
    [
        (
            lambda a: integrate.tanhsinh(lambda x: np.exp(-a * x * x), -np.inf, np.inf).integral,
            -np.sqrt(np.pi) / 2,
        ),
        (lambda a: integrate.tanhsinh(lambda x: x ** (a - 1.5), 0.0, 1.0).integral, -4.0),
        (lambda a: integrate.tanhsinh(lambda x: a - x, -1.0, a).integral, 2.0),
        (lambda a: integrate.nsum(lambda k: 1 / k ** (1.5 + a), 1, np.inf).sum, -0.3873419),
        (  # exp(x) is infinite where the other factor is zero
            lambda a: integrate.quad(
                lambda x: np.exp(0.3 * a * x) * np.exp(-x * x / 2), -np.inf, np.inf
            )[0],
            0.09 * np.exp(0.045) * np.sqrt(2 * np.pi),
        ),
    ],
)
def test_far_away_nodes_leave_derivatives_finite(integral: Any, wanted: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        assert cr.grad(integral)(1.0) == pytest.approx(wanted, rel=1e-6)
        jvp = cr.jvp(integral, (1.0,), (1.0,))[1]
    assert jvp == pytest.approx(wanted, rel=1e-6)


def test_rules_that_look_at_values_are_not_compiled() -> None:
    def total(a: Any) -> Any:
        return integrate.tanhsinh(lambda x: np.exp(-a[0] * x * x), 0.0, 1.0).integral

    with pytest.raises(cr.AutogradError, match=r"tanhsinh looks at values"):
        cr.compile(total)(np.array([1.0, 2.0]))
