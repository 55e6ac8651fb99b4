"""What the examples with solvers claim is true."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")


def load(name: str) -> Any:
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_penalties_chosen_by_gradients_are_better_than_those_of_a_search() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    example = load("ridge_bilevel")
    losses = example.main()
    x, y, x_new, y_new = example.data()

    def loss(penalty: float) -> float:
        model = linear_model.Ridge(penalty, fit_intercept=False).fit(x, y)
        return float(((model.predict(x_new) - y_new) ** 2).mean())

    searched = min(map(loss, np.geomspace(0.1, 1000, 200)))
    assert losses["one for all"] == pytest.approx(searched, rel=1e-4)
    assert losses["one for all"] <= searched
    assert losses["one for each"] < losses["one for all"] < losses["none"]


def test_coefficients_are_those_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    example = load("logistic_laplace")
    w, errors = example.main()
    x, y, _ = example.data()
    model = linear_model.LogisticRegression(C=9.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    np.testing.assert_allclose(w, model.fit(x, y).coef_[0], rtol=1e-5)
    p = 1 / (1 + np.exp(-x @ w))
    information = (x.T * (p * (1 - p))) @ x + np.eye(len(w)) / 9
    np.testing.assert_allclose(errors**2, np.diag(np.linalg.inv(information)), rtol=1e-8)
