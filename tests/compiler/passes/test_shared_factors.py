"""Operations of a compiled function on one matrix use the same factors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.blas import lapack

RNG = np.random.default_rng(3)
LARGE = lapack.MIN_FACTORED_ROWS

pytestmark = pytest.mark.skipif(lapack.routines("d") is None, reason="there is no LAPACK to call")


def likelihood(s: Any, d: Any) -> Any:
    return d @ cr.linalg.solve(s, d) + cr.linalg.slogdet(s)[1]


def two_solutions(s: Any, d: Any) -> Any:
    return (cr.linalg.solve(s, d) * cr.linalg.solve(s.T, d)).sum()


def solution_and_inverse(s: Any, d: Any) -> Any:
    return (cr.linalg.solve(s, d) * cr.linalg.inv(s).sum(1)).sum()


def determinant(s: Any, d: Any) -> Any:
    return cr.linalg.slogdet(s)[1] + d.sum()


PROGRAMS = [likelihood, two_solutions, solution_and_inverse, determinant]


@pytest.mark.parametrize("backend", ["numpy", None])
@pytest.mark.parametrize("n", [LARGE - 1, LARGE])
@pytest.mark.parametrize("loss", PROGRAMS)
def test_values_and_gradients_are_those_of_eager_mode(
    loss: Callable[..., Any], n: int, backend: str | None
) -> None:
    s = cr.tensor(RNG.standard_normal((n, n)) / n + 2 * np.eye(n))
    d = cr.tensor(RNG.standard_normal(n))
    function = cr.value_and_grad(loss, (0, 1))
    compiled = cr.compile(function, backend=backend)
    value, gradients = function(s, d)
    found, found_gradients = compiled(s, d)
    np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-9)
    for mine, other in zip(found_gradients, gradients, strict=True):
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-7, atol=1e-11)
    assert compiled.source.count("kernels.lu_factor(") == (n >= LARGE)


def test_a_matrix_that_is_used_once_is_left_to_numpy() -> None:
    compiled = cr.compile(lambda s, d: cr.linalg.solve(s, d))
    compiled(cr.eye(LARGE, dtype=cr.float64), cr.ones(LARGE, 1, dtype=cr.float64))
    assert "np.linalg.solve(" in compiled.source


def test_singular_matrices_raise_and_a_singular_determinant_does_not() -> None:
    s, d = cr.ones(LARGE, LARGE, dtype=cr.float64), cr.ones(LARGE, dtype=cr.float64)
    with pytest.raises(np.linalg.LinAlgError):
        cr.compile(cr.value_and_grad(likelihood, (0, 1)))(s, d)
    function = cr.value_and_grad(determinant, (0, 1))
    value, (gradient, _) = cr.compile(function, verify=False)(s, d)
    assert value.item() == -np.inf
    assert not np.isfinite(gradient.numpy()).all()


def test_an_export_needs_only_numpy(tmp_path: Path) -> None:
    s, d = (
        cr.tensor(RNG.standard_normal((LARGE, LARGE)) / LARGE + 2 * np.eye(LARGE)),
        cr.ones(LARGE),
    )
    d = d.double()

    def loss(s: Any, d: Any) -> Any:
        z = cr.linalg.solve_triangular(s, d[:, None], upper=False)
        return two_solutions(s, d) + (z * z).sum()

    function = cr.value_and_grad(loss, (0, 1))
    path = cr.export(function, tmp_path / "model.py", s, d)
    text = path.read_text()
    assert "kernels" not in text
    assert "chainrule as" not in text
    scope: dict[str, Any] = {}
    exec(text, scope)
    expected, _ = function(s, d)
    found, _ = scope["loss"](s.numpy(), d.numpy())
    np.testing.assert_allclose(found, expected.numpy())
