"""Loops whose steps have slices of other lengths are rolled up, with the results of each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as cnp
from chainrule.compiler import backward, build, passes
from helpers.parameters import thorough

RNG = np.random.default_rng(3)
N = 14  # of which steps at either end may be unlike the others


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    for module in (build, backward):
        monkeypatch.setattr(module, "optimize", lambda program: optimize(program, check=True))


def covariance(a: Any, x: Any, y: Any) -> Any:
    found = cnp.zeros(a.shape)
    for i in range(len(a)):
        found[i:, i] = found[i, i:] = a[:, i] @ a[:, i:] / (len(a) - 1.0)
    return found


def cholesky(a: Any, x: Any, y: Any) -> Any:
    a = a @ a.T + 3 * cnp.eye(len(a))
    found = cnp.zeros(a.shape)
    for j in range(len(a)):
        column = a[j:, j] - found[j:, :j] @ found[j, :j]
        found[j:, j] = column / cnp.sqrt(column[0])
    return found


def lu(a: Any, x: Any, y: Any) -> Any:
    a = a + 9 * cnp.eye(len(a))
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= cnp.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def back_substitution(a: Any, x: Any, y: Any) -> Any:
    found = cnp.zeros(len(x))
    for i in range(len(x) - 1, -1, -1):
        found[i] = (x[i] - a[i, i + 1 :] @ found[i + 1 :]) / (3 + a[i, i])
    return found


def levinson(a: Any, x: Any, y: Any) -> Any:
    r, found, beta = x / 10, cnp.empty_like(x), 1.0
    found[0] = alpha = -r[0]
    for k in range(1, len(r)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + cnp.dot(cnp.flip(r[:k]), found[:k])) / beta
        found[:k] += alpha * cnp.flip(found[:k])
        found[k] = alpha
    return found


def neville(a: Any, x: Any, y: Any) -> Any:
    points, found = cnp.cumsum(1 + x**2), y
    for k in range(1, len(x)):
        far, near = points[k:], points[:-k]
        found = ((0.3 - far) * found[:-1] - (0.3 - near) * found[1:]) / (near - far)
    return found[0]


def triangle(a: Any, x: Any, y: Any) -> Any:
    """Fill one diagonal of a table after the other."""
    table, n = cnp.zeros(a.shape), len(x)
    for d in range(1, n):
        i = cnp.arange(n - d)
        table[i, i + d] = 0.5 * (table[i, i + d - 1] + table[i + 1, i + d]) + x[: n - d] * x[d:]
    return table


def both_ends(a: Any, x: Any, y: Any) -> Any:
    """Take slices that begin and end elsewhere in each step, strided and reversed ones."""
    n, found = len(x), x * 1.0
    for k in range(n):
        found[k // 2 : n - k // 3] *= cnp.cos(y[k // 2 : n - k // 3])
        found[k] += (x[k::-1] * y[: k + 1]).sum() + cnp.max(a[k, : k + 1]) + y[: k + 1].mean()
        found[::2] += 0.1 * a[k, ::2]
    return found


def rows_times_columns(a: Any, x: Any, y: Any) -> Any:
    found = a * 1.0
    for i in range(len(a)):
        for j in range(3):
            found[i, j] += a[i + 1 :, i] @ found[i + 1 :, j]
    return found * x


def factors(a: Any, x: Any, y: Any) -> Any:
    """Run a loop of equal steps in each step."""
    found, weights = a * 1.0, y * 1.0
    for i in range(len(a) - 1):
        for j in range(12):
            found[i, j] = cnp.cos(found[i, j]) * weights[j] + x[: i + 1].sum()
            weights[j] += found[i, i:] @ found[: len(a) - i, i]
        weights = weights * 0.1
    return found * weights


def of_matrices(a: Any, x: Any, y: Any) -> Any:
    found = cnp.zeros(a.shape)
    for k in range(1, len(a)):
        found[:k, k:] += (a[:k, :k] @ a[:k, k:]) * 0.1 + a[k:, :k].T
    return found


FUNCTIONS = [
    *(lu, neville, triangle),
    *map(thorough, (both_ends, levinson, covariance, cholesky, back_substitution)),
    *map(thorough, (rows_times_columns, factors, of_matrices)),
]


def arguments(n: int) -> tuple[Any, Any, Any]:
    return RNG.normal(size=(n, n)), RNG.normal(size=n), RNG.normal(size=n)


def gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    return cr.value_and_grad(lambda *args: cnp.sin(function(*args)).sum(), (0, 1, 2))


def check(function: Callable[..., Any], n: int, backend: Any) -> str:
    """Compare values and gradients with eager ones; return the source for gradients."""
    given = arguments(n)
    compiled = cr.compile(function, backend=backend)
    np.testing.assert_allclose(compiled(*given), function(*given), rtol=1e-9, atol=1e-12)
    compiled = cr.compile(gradients(function), backend=backend)
    value, found = compiled(*given)
    expected, wanted = gradients(function)(*given)
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    return compiled.source


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_steps_of_other_lengths_are_rolled_up(function: Callable[..., Any]) -> None:
    source = check(function, N, "numpy")
    assert source.count("for i") > 1
    assert len(source.splitlines()) < 400  # and more than 1,000 unrolled


@pytest.mark.parametrize("n", [3, 9, thorough(10), 11])
def test_few_steps_on_both_sides_of_what_is_rolled_up(n: int) -> None:
    check(lu, n, "numpy")


@pytest.mark.parametrize("size", [64, 128])
def test_steps_that_would_take_much_longer_are_loops_of_their_own(size: int) -> None:
    def butterflies(x: Any) -> Any:
        found, half = x * 1.0, 1
        while half < size:
            for i in range(0, size, 2 * half):
                one, other = found[i : i + half] * 1.0, found[i + half : i + 2 * half] * 1.0
                found[i : i + half] = one + other
                found[i + half : i + 2 * half] = one - other
            half *= 2
        return found

    x = RNG.normal(size=size)
    compiled = cr.compile(butterflies)
    np.testing.assert_array_equal(compiled(x), butterflies(x))
    assert (compiled.source.count("for i") == 1) == (size == 64)


def test_nan_beside_the_elements_of_a_step_stays_there() -> None:
    def sums(a: Any) -> Any:
        found = cnp.zeros(len(a))
        for i in range(len(a)):
            found[i] = a[i, : i + 1] @ a[i, : i + 1] + cnp.max(a[i, : i + 1])
        return found

    a = np.where(np.tri(N, dtype=bool), RNG.normal(size=(N, N)), np.nan)
    np.testing.assert_allclose(cr.compile(sums)(a), sums(a), rtol=1e-12)


def test_signs_of_zeros_beside_what_is_written_stay() -> None:
    def added(a: Any) -> Any:
        found = a * 1.0
        for i in range(1, N):
            found[i:] += a[i:] * found[i - 1]
        return found

    a = np.full(N, -0.0)
    a[N - 1] = 2.0
    np.testing.assert_array_equal(np.signbit(cr.compile(added)(a)), np.signbit(added(a)))


def test_what_no_later_step_overwrites_is_read_where_it_is() -> None:
    compiled = cr.compile(gradients(cholesky), backend="numpy")
    compiled(*arguments(N))
    stacked = [line for line in compiled.source.splitlines() if "np.empty((" in line]
    assert not [line for line in stacked if line.count(", 1") > 1]  # no stack of matrices


def test_writes_of_one_value_beside_each_other() -> None:
    def filled(a: Any, x: Any) -> Any:
        found = a * 1.0
        for k in range(1, N - 1):
            found[1 : N - k] = x
            found[k : N - 1] = x
            found = found * 2.0
        return found

    given = RNG.normal(size=N), np.array(0.3)
    np.testing.assert_array_equal(cr.compile(filled)(*given), filled(*given))


def test_an_argument_that_a_loop_passes_on_is_not_written_to() -> None:
    def first_is_zero(a: Any, x: Any) -> Any:
        found = a * 1.0
        for i in range(N):
            found[N:] += x[i]
            x[i] = cnp.sin(x[i]) + cnp.cos(found[0]) + x[i] * x[i]
        found[0] = 0.0
        return found

    a = RNG.normal(size=N)
    before = a.copy()
    found = cr.compile(first_is_zero)(a, RNG.normal(size=N))
    np.testing.assert_array_equal(a, before)
    np.testing.assert_array_equal(found, [0.0, *before[1:]])


def test_integers_that_could_be_divided_by_zero_are_left_to_each_step() -> None:
    def parts(n: Any, d: Any) -> Any:
        found = n * 0
        for i in range(1, N):
            found[i:] += n[i:] // d[i:] % 7
        return found

    n, d = np.arange(N), np.arange(N)
    compiled = cr.compile(parts, backend="numpy")
    np.testing.assert_array_equal(compiled(n, d), parts(n, d))
    assert "for i in range(" not in compiled.source
