"""Tests of the errors that SciPy's functions raise: they tell the call, the line and a remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import LocatedError

scipy = pytest.importorskip("scipy")

optimize, integrate, linalg = cr.scipy.optimize, cr.scipy.integrate, cr.scipy.linalg
matrix = cr.tensor([[1.0, 2.0], [2.0, 1.0]], dtype=cr.float64)

MISTAKES: list[tuple[str, Callable[[], Any], type[Exception], list[str]]] = [
    (
        "a typing error in a method",
        lambda: optimize.minimize(lambda x: (x * x).sum(), np.ones(3), method="BGFS"),
        ValueError,
        ["scipy.optimize.minimize(<lambda>, float64 [3], method='BGFS')", "methods are listed by"],
    ),
    (
        "a bracket without a change of sign",
        lambda: optimize.root_scalar(lambda x: x * x + 1, bracket=(0.0, 1.0)),
        ValueError,
        ["bracket=(0.0, 1.0)", "must have different signs", "or give x0"],
    ),
    (
        "too few residuals",
        lambda: optimize.least_squares(lambda x: x[:1], np.ones(2), method="lm"),
        ValueError,
        ["scipy.optimize.least_squares", "method='trf'"],
    ),
    (
        "an unknown method of integration",
        lambda: integrate.solve_ivp(lambda s, y: -y, (0, 1), [1.0], method="RK54"),
        ValueError,
        ["solve_ivp", "RK45", "got 'RK54'"],
    ),
    (
        "a rate of another shape",
        lambda: integrate.solve_ivp(lambda s, y: np.ones(3), (0, 1), np.ones(2)),
        ValueError,
        ["scipy.integrate.solve_ivp", "(3,)", "shapes of arguments"],
    ),
    (
        "an argument that the function doesn't get",
        lambda: integrate.solve_ivp(lambda s, y, k: -k * y, (0, 1), np.ones(2)),
        TypeError,
        ["scipy.integrate.solve_ivp", "'k'", "what args= holds"],
    ),
    (
        "one end in the place of two",
        lambda: integrate.solve_ivp(lambda s, y: -y, 1.0, np.ones(2)),
        TypeError,
        ["solve_ivp(<lambda>, 1.0, float64 [2])", "(0.0, 1.0)"],
    ),
    (
        "a matrix that isn't positive definite",
        lambda: linalg.cholesky(matrix),
        np.linalg.LinAlgError,
        ["scipy.linalg.cholesky(float64 [2, 2])", "multiple of the identity"],
    ),
    (
        "right sides of another length",
        lambda: linalg.solve(matrix, cr.ones(3)),
        ValueError,
        ["scipy.linalg.solve(float64 [2, 2], float32 [3])", "have to fit"],
    ),
]


@pytest.mark.parametrize(
    ("mistake", "kind", "words"), [pytest.param(*rest, id=name) for name, *rest in MISTAKES]
)
def test_the_call_the_line_and_a_remedy_are_told(
    mistake: Callable[[], Any], kind: type[Exception], words: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        mistake()
    assert isinstance(caught.value, LocatedError)
    text = str(caught.value)
    assert [word for word in [*words, "test_error_texts.py:"] if word not in text] == []
    shown = None if caught.value.__suppress_context__ else caught.value.__context__
    assert shown is None  # SciPy's traceback says nothing more


def test_errors_of_the_users_function_are_left_alone() -> None:
    def rate(s: float, y: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$") as caught:
        integrate.solve_ivp(rate, (0, 1), [1.0])
    assert not isinstance(caught.value, LocatedError)


def test_a_misspelt_namespace_of_scipys_is_named() -> None:
    with pytest.raises(AttributeError, match="did you mean 'optimize'"):
        cr.scipy.optimise  # noqa: B018 - the access is what raises


def test_functions_that_are_named_as_a_mend_record() -> None:
    signal = pytest.importorskip("scipy.signal")
    special = pytest.importorskip("scipy.special")
    with pytest.raises(cr.AutogradError, match=r"Call chainrule\.scipy\.signal\.lfilter, which"):
        cr.grad(lambda a: signal.lfilter([1.0], [1.0, 0.1], a * np.ones(3)).sum())(0.5)
    for program in (
        lambda a: signal.lti([[a]], [[1.0]], [[1.0]], [[0.0]]).A.sum(),
        lambda a: special.diric(a, 3),
    ):
        with pytest.raises(cr.AutogradError) as caught:
            cr.grad(program)(0.5)
        assert "Call chainrule" not in str(caught.value)


def test_other_names_of_spatial_are_scipys() -> None:
    from chainrule.scipy.spatial import HalfspaceIntersection

    assert HalfspaceIntersection is pytest.importorskip("scipy.spatial").HalfspaceIntersection
    with pytest.raises(AttributeError, match="nosuch"):
        cr.scipy.spatial.nosuch  # noqa: B018 - the access is what raises
