"""`np.polynomial` and `np.poly1d` of `chainrule.numpy`: NumPy's values, and their differences."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy
import pytest

import chainrule as cr
import chainrule.numpy as np
from chainrule.interop.source_code import run_code

X = numpy.linspace(0.1, 1.5, 5)

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "poly1d": lambda np, t: np.poly1d([1.0, t, 2.0])(t),
    "poly1d-arithmetic": lambda np, t: (
        np.poly1d([1.0, t]) * np.poly1d([t, 2.0]) ** 2 + t - np.poly1d([1.0, 2.0]).deriv()
    )(0.3),
    "poly1d-integral": lambda np, t: np.poly1d([t, 1.0, 2.0]).integ()(t) - np.poly1d([1.0, t])[0],
    "poly1d-coefficients": lambda np, t: (np.poly1d([1.0, 2.0]) * t).coeffs.sum(),
    "poly1d-of-roots": lambda np, t: np.poly1d([t, 2.0 * t], True)(1.0),
    "polynomial": lambda np, t: np.polynomial.Polynomial([1.0, 2.0, t])(t),
    "polynomial-product": lambda np, t: (
        np.polynomial.Polynomial([1.0, t]) * np.polynomial.Polynomial([t, 3.0]).deriv()
    )(t),
    "polynomial-of-a-number": lambda np, t: (t * np.polynomial.Polynomial([1.0, 2.0]) + t)(0.5),
    "polynomial-of-an-array": lambda np, t: (
        np.array([t, 1.0]) * np.polynomial.Polynomial([1.0, 2.0])
    )(0.5),
    "polynomial-fit": lambda np, t: np.polynomial.Polynomial.fit(t * X, X**2 + t, 1)(0.3),
    "polynomial-roots": lambda np, t: np.polynomial.Polynomial([1.0, -3 * t, 1.0]).roots().max(),
    "polynomial-of-a-polynomial": lambda np, t: np.polynomial.Polynomial([t, 2.0, t])(
        np.polynomial.Polynomial([1.0, t])
    )(t),
    "polynomial-converted": lambda np, t: np.polynomial.Polynomial([t, 2.0, t]).convert(
        kind=np.polynomial.Chebyshev
    )(t),
    "polynomial-quotient": lambda np, t: divmod(
        np.polynomial.Polynomial([t, 2.0, t]), np.polynomial.Polynomial([1.0, t])
    )[1](t),
    "chebyshev": lambda np, t: np.polynomial.Chebyshev([1.0, t, 0.3]).integ()(t),
    "chebval": lambda np, t: np.polynomial.chebyshev.chebval(t * X, [1.0, t, 0.2]).sum(),
    "legendre": lambda np, t: np.polynomial.Legendre([1.0, t, 0.3]).deriv()(t),
    "hermval": lambda np, t: np.polynomial.hermite.hermval(t, [0.4, t, 1.0]),
    "lagval": lambda np, t: np.polynomial.laguerre.lagval(t * X, [0.4, t, 1.0]).sum(),
    "polyval2d": lambda np, t: np.polynomial.polynomial.polyval2d(t, 2.0, [[1.0, t], [t, 0.5]]),
    "quadrature": lambda np, t: (lambda x, w: (w * np.exp(t * x)).sum())(
        *np.polynomial.legendre.leggauss(5)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_differences_are_numpys(name: str) -> None:
    program, at, h = CASES[name], numpy.float64(1.3), 1e-5
    value, slope = cr.value_and_grad(lambda t: program(np, t))(at)
    assert value == pytest.approx(program(numpy, at), rel=1e-12)
    difference = (program(numpy, at + h) - program(numpy, at - h)) / (2 * h)
    assert slope == pytest.approx(difference, rel=1e-8)
    second = cr.grad(cr.grad(lambda t: program(np, t)))(at)
    assert second == pytest.approx(
        (cr.grad(lambda t: program(np, t))(at + h) - cr.grad(lambda t: program(np, t))(at - h))
        / (2 * h),
        rel=1e-6,
        abs=1e-8,
    )
    assert cr.jvp(lambda t: program(np, t), (at,), (numpy.float64(1.0),))[1] == pytest.approx(slope)


def test_a_polynomial_is_also_evaluated_in_a_compiled_function() -> None:
    p = np.polynomial.Polynomial([1.0, 2.0, 3.0])
    assert cr.compile(cr.grad(lambda t: p(t)))(2.0) == 14.0
    assert isinstance(p, np.polynomial.Polynomial)


def test_examples_of_vmap_have_polynomials_of_their_own() -> None:
    at = numpy.array([1.0, 2.0])
    found = cr.vmap(lambda t: np.polynomial.Polynomial([1.0, t, 3.0])(2.0))(at)
    assert found.tolist() == [15.0, 17.0]


def test_constants_of_a_module_outlive_the_transform_that_was_the_first_to_use_it() -> None:
    module = ModuleType("late")
    code = compile("import numpy\nDOMAIN = numpy.array([-1.0, 1.0])", "late.py", "exec")

    def first_use(t: Any) -> Any:
        run_code(code, module, lambda name, names: np if name == "numpy" else None)
        return t * module.DOMAIN

    cr.vmap(first_use)(numpy.array([1.0, 2.0]))
    assert module.DOMAIN.tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("text", [
    "np.asarray(np.poly1d([a, 2.0, 1.0]))[0] ** 2",
    "np.polyval(np.poly1d([a, 2.0, 1.0]), 3.0)",
    "np.real(np.roots(np.poly1d([a, -5.0, 1.0]))[0])",
    "np.polyder(np.poly1d([a, 2.0, 1.0]))[1]",
    "np.polyint([1.0, 2.0])[0] * np.polyadd(np.poly1d([a, 2.0]), [a, 1.0])(2.0)",
    "np.polydiv(np.poly1d([a, 2.0, 1.0]), [1.0, a])[0][0]",
    "(np.poly1d([a, 2.0, 1.0]) / np.poly1d([1.0, a]))[1].coeffs[0]",
    "(2.0 * np.poly1d([a, 2.0]) ** 2)[1]",
])  # fmt: skip
def test_poly1d_stands_for_its_coefficients(text: str) -> None:
    def of(module: ModuleType) -> Callable[[Any], Any]:
        function: Callable[[Any], Any] = eval(f"lambda a: {text}", {"np": module})
        return function

    ours, numpys = of(np), of(numpy)
    value, slope = cr.value_and_grad(ours)(1.5)
    numpy.testing.assert_allclose(value, numpys(1.5), 1e-12)
    numpy.testing.assert_allclose(slope, (numpys(1.5 + 1e-6) - numpys(1.5 - 1e-6)) / 2e-6, 1e-6)
