"""Points where textbook formulas for derivatives fail, with known results: SEMANTICS 63, 64 and 75.

tests/semantics tests a single backward pass; here are forward mode, higher orders, and the details
of the rules.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.primitives import elementwise
from chainrule.transforms import jvp

INF, NAN = math.inf, math.nan


def leaf(values: Any, dtype: Any = np.float64) -> cr.Tensor:
    return cr.tensor(values, dtype=dtype, requires_grad=True)


def gradient(function: Callable[..., cr.Tensor], *inputs: Any, weights: Any = None) -> list[Any]:
    """Return the gradients of a function of numbers, its outputs weighted (by ones)."""
    xs = [leaf(values) for values in inputs]
    out = function(*xs)
    g = cr.ones_like(out) if weights is None else cr.tensor(weights, dtype=out.dtype)
    grads = [x.tolist() for x in cr.autograd_grad(out, xs, g)]
    return grads[0] if len(grads) == 1 else grads


def tangent(function: Callable[..., cr.Tensor], x: Any) -> Any:
    """Return the derivative of a function of numbers along ones, by forward mode."""
    point = cr.tensor(x, dtype=np.float64)
    return jvp(function, point, cr.ones_like(point))[1].tolist()


def derivatives(function: Callable[[cr.Tensor], cr.Tensor], x: float, order: int) -> list[float]:
    """Return the first derivatives of a function of one number."""
    point = leaf(x)
    values, last = [], function(point)
    for _ in range(order):
        if not last.requires_grad:
            values.append(0.0)
            continue
        (last,) = cr.autograd_grad(last, point, create_graph=True, materialize_grads=True)
        values.append(last.item())
    return values


def hessian(function: Callable[[cr.Tensor], cr.Tensor], x: list[float]) -> list[list[float]]:
    point = leaf(x)
    (first,) = cr.autograd_grad(function(point), point, create_graph=True)
    return [
        cr.autograd_grad(part, point, retain_graph=True, materialize_grads=True)[0].tolist()
        for part in first
    ]


@pytest.fixture
def no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# --- 63: at kinks and ties ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "slopes"),
    [
        (cr.relu, [0, 0, 1]),
        (cr.abs, [-1, 0, 1]),
        (cr.sign, [0, 0, 0]),
        (cr.floor, [0, 0, 0]),
        (cr.ceil, [0, 0, 0]),
        (cr.trunc, [0, 0, 0]),
        (cr.round, [0, 0, 0]),
        (lambda x: cr.clamp(x, -2, 2), [1, 1, 1]),
        (lambda x: cr.clamp(x, -1, 1), [0, 1, 0]),
        (lambda x: cr.clamp(x, min=0), [0, 1, 1]),
        (lambda x: cr.clamp(x, max=0), [1, 1, 0]),
        (lambda x: cr.clamp(x, cr.tensor(0.0), cr.tensor(2.0)), [0, 1, 1]),
        (lambda x: cr.maximum(x, cr.zeros(3)), [0, 0.5, 1]),
        (lambda x: cr.minimum(x, cr.zeros(3)), [1, 0.5, 0]),
    ],
    ids=[
        "relu",
        "abs",
        "sign",
        "floor",
        "ceil",
        "trunc",
        "round",
        "clamp-at-bounds",
        "clamp",
        "clamp-low",
        "clamp-high",
        "clamp-tensors",
        "maximum",
        "minimum",
    ],
)
def test_s63_at_kinks_the_derivative_is_the_agreed_one(function: Any, slopes: list[float]) -> None:
    assert gradient(function, [-2, 0, 2]) == slopes
    assert tangent(function, [-2, 0, 2]) == slopes


def test_s63_norm_of_complex_zeros_has_derivative_zero() -> None:
    z = cr.zeros(2, dtype=cr.complex128, requires_grad=True)
    cr.norm(z).backward()
    assert z.grad.tolist() == [0, 0]


def test_s63_sort_moves_each_gradient_back_to_its_element_also_of_ties() -> None:
    x = leaf([2, 1, 2, 1])
    values, indices = cr.sort(x)
    (g,) = cr.autograd_grad(values, x, cr.tensor([1.0, 2.0, 3.0, 4.0], dtype=cr.float64))
    assert g[indices].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("x", "partials"),
    [
        ([2, 0, 3], [0, 6, 0]),
        ([2, 0, 0], [0, 0, 0]),
        ([0, 0, 0], [0, 0, 0]),
        ([0], [1]),
        ([2, 3, 4], [12, 8, 6]),
    ],
)
def test_s63_prod_is_exact_where_there_are_zeros(x: list[float], partials: list[float]) -> None:
    assert gradient(cr.prod, x) == partials
    assert tangent(cr.prod, x) == sum(partials)


def test_s63_prod_of_zeros_has_exact_second_derivatives() -> None:
    assert hessian(cr.prod, [2, 0, 0]) == [[0, 0, 0], [0, 0, 2], [0, 2, 0]]
    assert hessian(cr.prod, [2, 0, 3]) == [[0, 3, 0], [3, 0, 2], [0, 2, 0]]


def test_s63_powers_with_exponent_zero_are_constant() -> None:
    assert gradient(lambda x: x**0, [0, 2, -1]) == [0, 0, 0]
    assert gradient(lambda x, y: x**y, [0, 2], [0, 0])[0] == [0, 0]
    assert derivatives(lambda x: x**0, 0, 3) == [0, 0, 0]


@pytest.mark.parametrize(
    ("exponent", "values"), [(1, [1, 0, 0]), (2, [0, 2, 0]), (3, [0, 0, 6]), (4, [0, 0, 0])]
)
def test_s63_integer_powers_have_every_derivative_at_zero(exponent: int, values: Any) -> None:
    assert derivatives(lambda x: x**exponent, 0, 3) == values
    assert derivatives(lambda x: x ** cr.tensor(float(exponent)), 0, 3) == values


def test_s63_negative_bases_have_integer_powers() -> None:
    assert gradient(lambda x: x**3, [-2, -1]) == [12, 3]
    assert gradient(lambda x: x**-1, [-2]) == [-0.25]


def test_s63_powers_of_nan_and_inf_with_exponent_zero_are_constant() -> None:
    assert gradient(lambda x, y: x**y, [NAN, INF], [0, 0])[0] == [0, 0]


# --- 64: where, and the branch that was not selected ----------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: cr.where(cr.tensor([True, False]), x, 0.0),
        lambda x: cr.where(cr.tensor([False, True]), 0.0, x),
        lambda x: cr.masked_fill(x, cr.tensor([False, True]), 0.0),
        lambda x: cr.relu(x),
        lambda x: cr.clamp(x, min=0),
        lambda x: cr.maximum(x, cr.zeros(2)),
    ],
    ids=["where", "where-other", "masked_fill", "relu", "clamp", "maximum"],
)
def test_s64_an_infinite_gradient_of_an_element_not_selected_becomes_zero(function: Any) -> None:
    assert gradient(lambda x: cr.sqrt(function(x)), [4, -1]) == [0.25, 0]


def test_s64_an_infinite_gradient_of_a_maximum_reaches_nothing_else() -> None:
    assert gradient(lambda x: cr.sqrt(cr.amax(x)), [-1, 0]) == [0, INF]
    assert gradient(lambda x: cr.sqrt(cr.amin(x)), [0, 1]) == [INF, 0]


def test_s64_where_selects_tangents_and_second_derivatives_too() -> None:
    mask = cr.tensor([True, False])
    point = cr.tensor([4.0, -1.0])
    slope = jvp(lambda x: cr.where(mask, x, 1.0), point, cr.tensor([3.0, NAN]))[1]
    assert slope.tolist() == [3, 0]

    def cubed(x: cr.Tensor) -> cr.Tensor:
        return cr.where(mask, x * x * x, 0.0).sum()

    assert hessian(cubed, [2, 5]) == [[12, 0], [0, 0]]


# --- 75: huge, tiny, infinite ---------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1.0, 1e200, 1e307])
def test_s75_norms_of_huge_and_of_tiny_numbers(scale: float) -> None:
    x = [3 * scale, 4 * scale]
    np.testing.assert_allclose(cr.norm(leaf(x)).item(), 5 * scale, rtol=1e-15)
    np.testing.assert_allclose(gradient(cr.norm, x), [0.6, 0.8], rtol=1e-15)
    np.testing.assert_allclose(tangent(cr.norm, x), 1.4, rtol=1e-15)


def test_s75_norms_of_denormal_numbers() -> None:
    np.testing.assert_allclose(cr.norm(leaf([3e-320, 4e-320])).item(), 5e-320, rtol=1e-3)
    np.testing.assert_allclose(gradient(cr.norm, [3e-320, 4e-320]), [0.6, 0.8], rtol=1e-3)


def test_s75_cumprod_is_exact_where_there_are_zeros() -> None:
    def first_column(x: cr.Tensor) -> cr.Tensor:
        return cr.cumprod(x, 0)

    assert gradient(first_column, [2, 0, 3, 0]) == [1, 8, 0, 0]
    assert gradient(first_column, [2, 0, 3, 4], weights=[0, 0, 0, 1]) == [0, 24, 0, 0]
    assert gradient(first_column, [0, 0, 3], weights=[0, 0, 1]) == [0, 0, 0]
    assert tangent(first_column, [2, 0, 3]) == [1, 2, 6]


def test_s75_cumprod_of_zeros_has_exact_second_derivatives() -> None:
    assert hessian(lambda x: cr.cumprod(x, 0)[2], [2, 0, 0]) == [[0, 0, 0], [0, 0, 2], [0, 2, 0]]


def test_s75_logsumexp_of_minus_infinities(no_warnings: None) -> None:
    assert cr.logsumexp(leaf([-INF, -INF]), 0).item() == -INF
    assert gradient(lambda x: cr.logsumexp(x, 0), [-INF, -INF]) == [0, 0]
    assert tangent(lambda x: cr.logsumexp(x, 0), [-INF, -INF]) == 0
    assert gradient(lambda x: cr.logsumexp(x, 1), [[-INF, -INF], [2, -INF]]) == [[0, 0], [1, 0]]


def test_s75_logsumexp_with_minus_infinity(no_warnings: None) -> None:
    assert gradient(lambda x: cr.logsumexp(x, 0), [-INF, 0, 0]) == [0, 0.5, 0.5]


def test_s75_logsumexp_of_an_infinity_and_a_large_number(no_warnings: None) -> None:
    assert cr.logsumexp(leaf([INF, 800.0]), 0).item() == INF


def test_s75_logsumexp_hides_no_nan() -> None:
    assert np.isnan(gradient(lambda x: cr.logsumexp(x, 0), [NAN, 1])).all()


def test_s65_logsumexp_of_an_empty_tensor_is_minus_infinity(no_warnings: None) -> None:
    assert cr.logsumexp(cr.zeros(2, 0), 1).tolist() == [-INF, -INF]


def test_s65_softmax_of_an_empty_tensor_is_empty() -> None:
    assert cr.softmax(cr.zeros(0), 0).shape == cr.log_softmax(cr.zeros(0), 0).shape == (0,)


def test_s65_the_mean_of_an_empty_tensor_is_nan(no_warnings: None) -> None:
    assert math.isnan(cr.mean(cr.zeros(0)).item())


def test_s75_softmax_with_masked_elements(no_warnings: None) -> None:
    x = [-INF, 0, 0]
    assert cr.softmax(leaf(x), 0).tolist() == [0, 0.5, 0.5]
    assert gradient(lambda v: cr.softmax(v, 0), x, weights=[1, 2, 3]) == [0, -0.25, 0.25]
    assert gradient(lambda v: cr.log_softmax(v, 0), x, weights=[0, 1, 0]) == [0, 0.5, -0.5]


def test_s75_sigmoid_keeps_its_precision_where_it_is_tiny() -> None:
    np.testing.assert_allclose(cr.sigmoid(leaf([-40])).tolist(), [math.exp(-40)], rtol=1e-15)
    np.testing.assert_allclose(gradient(cr.sigmoid, [-40]), [math.exp(-40)], rtol=1e-15)


def test_s75_sigmoid_of_complex_numbers() -> None:
    z = cr.tensor([0.5j, -3 + 1j, 3 + 1j], dtype=cr.complex128)
    reflected = cr.sigmoid(z) + cr.sigmoid(-z)  # is 1 everywhere
    np.testing.assert_allclose(reflected.numpy(), 1, rtol=1e-14)


def test_s75_expm1_and_log1p_near_zero() -> None:
    assert cr.expm1(leaf([1e-20])).tolist() == cr.log1p(leaf([1e-20])).tolist() == [1e-20]
    assert gradient(cr.expm1, [1e-20]) == gradient(cr.log1p, [1e-20]) == [1]


def test_s75_inverse_hyperbolic_functions_of_huge_numbers() -> None:
    np.testing.assert_allclose(gradient(cr.acosh, [1e200]), [1e-200], rtol=1e-12)
    np.testing.assert_allclose(gradient(cr.asinh, [1e200, -1e200]), [1e-200, 1e-200], rtol=1e-12)


def test_s75_quotients_of_huge_and_tiny_numbers() -> None:
    by_x, by_y = gradient(lambda x, y: x / y, [1, 1e-300], [1e200, 1e-200])
    np.testing.assert_allclose(by_x, [1e-200, 1e200], rtol=1e-12)
    np.testing.assert_allclose(by_y, [-0.0, -1e100], rtol=1e-12)


def test_s75_remainder_of_a_quotient_that_rounds_up() -> None:
    # 0.1 is a bit more than a tenth: 1 = 9 · 0.1 + 0.0999…, though 1 / 0.1 rounds to 10.
    assert gradient(cr.remainder, [1, 6, -7], [0.1, 0.1, 4])[1] == [-9, -59, 2]


def test_s75_std_of_one_element_is_nan() -> None:
    assert math.isnan(cr.std(leaf([2])).item())
    assert gradient(lambda x: cr.std(x, correction=0), [2]) == [0]


def test_s75_mixed_second_derivative_of_powers_at_exponent_zero() -> None:
    x, y = leaf(2), leaf(0)
    (by_x,) = cr.autograd_grad(x**y, x, create_graph=True)
    (by_y,) = cr.autograd_grad(x**y, y, create_graph=True)
    assert cr.autograd_grad(by_y, x)[0].item() == 0.5
    assert cr.autograd_grad(by_x, y)[0].item() == 0.5


def test_s75_second_derivative_of_a_complex_magnitude_is_not_dropped() -> None:
    # Across the direction of z, |z| is curved by 1/|z|.
    z = cr.tensor(2 + 0j, dtype=cr.complex128, requires_grad=True)
    (first,) = cr.autograd_grad(cr.abs(z), z, create_graph=True)
    (second,) = cr.autograd_grad(first, z, cr.tensor(1j, dtype=cr.complex128))
    np.testing.assert_allclose(second.item(), 0.5j, atol=1e-15)


def test_s63_second_derivatives_of_magnitudes_at_zero_are_zero() -> None:
    for kind in (cr.float64, cr.complex128):
        z = cr.tensor(0, dtype=kind, requires_grad=True)
        (first,) = cr.autograd_grad(cr.abs(z), z, create_graph=True)
        assert first.item() == 0
        assert cr.autograd_grad(first, z, cr.tensor(1, dtype=kind))[0].item() == 0


# --- real and complex cotangents meet -------------------------------------------------------------


def test_s70_real_and_complex_contributions_to_one_gradient_add_up() -> None:
    # ∂/∂z* of Re z counts three times, and of Re z² = x² − y² once: 3 + 2 z* at z = 1 + 2i.
    real = elementwise.real.apply
    z = cr.tensor([1 + 2j], dtype=cr.complex128, requires_grad=True)
    (real(z * z) + real(z) + real(z) + real(z)).sum().backward()
    assert z.grad.tolist() == [5 - 4j]


# --- forward mode is as quiet as reverse mode -----------------------------------------------------


def test_forward_mode_does_not_warn_of_infinite_derivatives(no_warnings: None) -> None:
    assert tangent(cr.sqrt, [0]) == [INF]
    assert tangent(lambda x: x**0.5, [0]) == [INF]


@pytest.mark.parametrize("name", ["asin", "acos", "acosh"])
@pytest.mark.parametrize("x", [2.0, -2.0, 1.5, -7.0])
@pytest.mark.parametrize("side", [0.0, -0.0])
def test_on_a_branch_cut_the_derivative_is_that_of_the_side_of_the_value(
    name: str, x: float, side: float
) -> None:
    def along_the_cut(real: cr.Tensor) -> cr.Tensor:
        return getattr(cr, name)(cr.complex(real, cr.full_like(real, side)))

    assert cr.gradcheck(along_the_cut, cr.tensor(x, dtype=cr.float64, requires_grad=True))
