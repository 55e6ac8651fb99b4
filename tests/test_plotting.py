"""Plots: their content, their axes, and the error if matplotlib is missing."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import plotting

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

X = cr.linspace(0, 2, 5)
DRAWINGS = {
    "learning_curve": lambda ax: plotting.learning_curve({"training": [2.0, 1.0]}, ax=ax),
    "digit_grid": lambda ax: plotting.digit_grid(cr.rand(2, 8, 8), [1, 2], [1, 3], ax=ax),
    "confusion_matrix": lambda ax: plotting.confusion_matrix([0, 1, 1], [0, 2, 1], ax=ax),
    "linear_approximation": lambda ax: plotting.linear_approximation(
        X, X**2, 2 * X - 1, at=1.0, ax=ax
    ),
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def drawn(ax: Any) -> None:
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", DRAWINGS)
def test_draws_into_given_axes_or_a_new_figure(name: str) -> None:
    ax = pyplot.figure().subplots()
    assert DRAWINGS[name](ax) is ax
    drawn(ax)
    other = DRAWINGS[name](None)
    assert other is not ax
    assert other.figure is not ax.figure
    drawn(other)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_missing_matplotlib_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(cr.MissingExtraError, match=r"pip install 'chainrule\[plot\]'"):
        DRAWINGS[name](None)


def test_curves_start_at_epoch_1_and_are_labelled() -> None:
    curves = {"training": [2.0, 1.0, 0.5], "held out": [2.0, 1.5]}
    ax = plotting.learning_curve(curves, label="loss (nats)", log=True)
    lines = ax.get_lines()
    assert [list(line.get_xdata()) for line in lines] == [[1, 2, 3], [1, 2]]
    assert [list(line.get_ydata()) for line in lines] == list(curves.values())
    assert [text.get_text() for text in ax.texts] == list(curves)
    assert ax.get_ylabel() == "loss (nats)"
    assert ax.get_yscale() == "log"


@pytest.mark.parametrize("shape", [(5, 8, 8), (5, 16, 8)])
def test_digits_with_their_predictions(shape: tuple[int, ...]) -> None:
    labels, predictions = cr.tensor([0, 1, 2, 3, 4]), cr.tensor([0, 1, 7, 3, 9])
    ax = plotting.digit_grid(cr.rand(shape), labels, predictions, columns=3)
    assert [text.get_text() for text in ax.texts] == ["0", "1", "7, not 2", "3", "9, not 4"]
    boxes = [tuple(image.get_extent()) for image in ax.images]
    assert len(set(boxes)) == 5
    left, right = sorted(ax.get_xlim())
    low, high = sorted(ax.get_ylim())
    for x0, x1, y0, y1 in boxes:
        assert left < x0 < x1 < right
        assert low < y1 < y0 < high


def test_a_function_and_its_tangent_of_tensors_that_require_grad() -> None:
    x = cr.linspace(0, 2, 5, requires_grad=True)
    ax = plotting.linear_approximation(x, x**2, 2 * x - 1, at=1.0, label="x²")
    function, line, point = ax.get_lines()
    np.testing.assert_allclose(function.get_ydata(), [0, 0.25, 1, 2.25, 4])
    np.testing.assert_allclose(line.get_ydata(), [-1, 0, 1, 2, 3])
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (1.0, 1.0)
    assert function.get_label() == "x²"


def test_names_of_curves_that_end_together_do_not_overlap() -> None:
    curves = {"training": [2.0, 0.030], "held out": [2.0, 0.031], "other": [2.0, 0.030]}
    ax = plotting.learning_curve(curves, log=True)
    drawn(ax)
    boxes = sorted([text.get_window_extent() for text in ax.texts], key=lambda box: box.y0)
    assert all(low.y1 - 3 < high.y0 for low, high in itertools.pairwise(boxes))


def test_a_confusion_matrix_counts() -> None:
    ax = plotting.confusion_matrix(cr.tensor([0, 1, 1, 2, 2]), np.array([0, 1, 1, 0, 2]))
    found = {(*map(int, text.get_position()[::-1]),): text.get_text() for text in ax.texts}
    assert found == {(0, 0): "1", (1, 1): "2", (2, 0): "1", (2, 2): "1"}
    wrong = {text.get_text() for text in ax.texts if text.get_color() == plotting.RED}
    assert wrong == {"1"}
