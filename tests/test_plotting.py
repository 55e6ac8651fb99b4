"""Plots: their content, their axes, and the error if matplotlib is missing."""

from __future__ import annotations

import io
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import plotting

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
from matplotlib import pyplot  # noqa: E402

X = cr.linspace(0, 2, 5)
NET = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.ReLU(), cr.nn.Linear(4, 1))
NET(cr.ones(2, 3)).pow(2).sum().backward()
SINE = cr.taylor(cr.sin, 0.5, 5)
DRAWINGS = {
    "learning_curve": lambda ax: plotting.learning_curve({"training": [2.0, 1.0]}, ax=ax),
    "digit_grid": lambda ax: plotting.digit_grid(cr.rand(2, 8, 8), [1, 2], [1, 3], ax=ax),
    "confusion_matrix": lambda ax: plotting.confusion_matrix([0, 1, 1], [0, 2, 1], ax=ax),
    "linear_approximation": lambda ax: plotting.linear_approximation(
        X, X**2, 2 * X - 1, at=1.0, ax=ax
    ),
    "taylor_plot": lambda ax: plotting.taylor_plot(SINE, ax=ax),
    "jacobian_spy": lambda ax: plotting.jacobian_spy(cr.eye(3), ax=ax),
    "gradient_flow": lambda ax: plotting.gradient_flow(NET, ax=ax),
    "gradient_histograms": lambda ax: plotting.gradient_histograms(NET, ax=ax),
    "activation_histograms": lambda ax: plotting.activation_histograms(NET, cr.ones(2, 3), ax=ax),
    "LiveCurve.plot": lambda ax: plotting.LiveCurve().plot(ax=ax),
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


# --- curves ---------------------------------------------------------------------------------------


def test_more_curves_than_colours_differ_by_style() -> None:
    ax = plotting.learning_curve({f"net {i}": [2.0, 1.0 + i] for i in range(16)})
    looks = {(line.get_color(), line.get_linestyle()) for line in ax.get_lines()}
    assert len(looks) == 16


def test_a_curve_that_ends_in_nan_is_named_at_its_last_number() -> None:
    ax = plotting.learning_curve({"a": [3.0, 2.0, float("nan")], "b": [float("nan")] * 3})
    drawn(ax)
    assert [(text.get_text(), *text.xy) for text in ax.texts] == [("a", 2.0, 2.0)]


def luminance(color: Any) -> float:
    return float(np.dot(matplotlib.colors.to_rgb(color), (0.2126, 0.7152, 0.0722)))


def test_curves_stand_out_from_a_light_and_a_dark_background() -> None:
    for style, background in (("default", 1.0), ("dark_background", 0.0)):
        with pyplot.style.context(style):
            ax = plotting.learning_curve({"a": [2.0, 1.0], "b": [2.0, 1.5]})
        for line in ax.get_lines():
            assert abs(luminance(line.get_color()) - background) > 0.5


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, 3.0, 8.0], "▁▂▃█"),
        ([2.0, 2.0], "▁▁"),
        ([1.0, float("nan"), float("inf"), 0.0], "█!!▁"),
        ([], ""),
        (range(100), "▁▂▃▄▅▆▇█"),
    ],
)
def test_a_sparkline(values: Any, text: str) -> None:
    assert plotting.sparkline(values, width=8) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_live_curve_in_a_terminal_rewrites_its_line() -> None:
    file = Terminal()
    with plotting.LiveCurve(every=0, file=file) as live:
        for loss in (cr.tensor(4.0, requires_grad=True), 2.0, np.float32(1.0)):
            live.add(loss=loss)
    assert file.getvalue().split("\r\x1b[2K") == [
        "",
        "loss ▁ 4",
        "loss █▁ 2",
        "loss █▃▁ 1",
        "loss █▃▁ 1\n",
    ]
    assert live.curves == {"loss": [4.0, 2.0, 1.0]}


def test_a_live_curve_draws_seldom_and_writes_one_line_to_a_file() -> None:
    terminal, log = Terminal(), io.StringIO()
    for file in (terminal, log):
        with plotting.LiveCurve(every=3600, file=file) as live:
            for i in range(50):
                live.add(loss=1 / (i + 1))
    assert terminal.getvalue().count("\r") == 2  # the first value, and the end
    assert log.getvalue().count("\n") == 1
    empty = io.StringIO()
    with plotting.LiveCurve(file=empty):
        pass
    assert empty.getvalue() == ""


def test_a_live_curve_in_a_notebook_replaces_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Handle:
        def update(self, live: Any) -> None:
            shown.append(live._repr_png_()[:4])

    def display(live: Any, *, display_id: bool) -> Handle:
        assert display_id
        shown.append(live._repr_png_()[:4])
        return Handle()

    notebook = types.ModuleType("IPython")
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=True)  # type: ignore[attr-defined]
    notebook.display = types.SimpleNamespace(display=display)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    with plotting.LiveCurve(every=0) as live:
        live.add(loss=2.0)
        live.add(loss=1.0)
    assert shown == 3 * [b"\x89PNG"]
    assert not pyplot.get_fignums()


@pytest.mark.skipif(find_spec("nbclient") is None, reason="it comes with the documentation's tools")
def test_a_notebook_shows_one_picture_and_tells_lines_by_their_cell() -> None:
    import nbclient
    import nbformat

    cells = [
        "import chainrule as cr",
        "with cr.plotting.LiveCurve(every=0) as live:\n"
        "    for epoch in range(3):\n"
        "        live.add(loss=1 / (epoch + 1))",
        "cr.ones(3) + cr.ones(2)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=60, allow_errors=True).execute()
    _, curve, error = [cell.outputs for cell in book.cells]
    assert [(part.output_type, "image/png" in part.data) for part in curve] == [
        ("display_data", True)
    ]
    assert error[0].evalue.endswith("(Cell In[3]:1, in <module>: cr.ones(3) + cr.ones(2))")


# --- networks -------------------------------------------------------------------------------------


def test_the_flow_of_gradients_names_what_has_none() -> None:
    named = {name: cr.ones(3, requires_grad=True) for name in "abcd"}
    named["a"].grad = cr.tensor([1.0, -2.0, 3.0])
    named["b"].grad = cr.zeros(3)
    named["c"].grad = cr.tensor([1.0, float("nan"), 2.0])
    ax = plotting.gradient_flow(named)
    found = {text.get_position()[1]: text.get_text() for text in ax.texts}
    assert found == {1: "zero", 2: "nan or infinite", 3: "no gradient"}
    means, largest = ax.get_lines()
    assert (list(means.get_xdata()), list(means.get_ydata())) == ([2.0], [0])
    assert list(largest.get_xdata()) == [3.0]
    drawn(ax)


@pytest.mark.parametrize("count", [1, 30, 31, 200])
def test_plots_of_many_layers_stay_within_a_page(count: int) -> None:
    named = {f"layer {i}": cr.ones(5, requires_grad=True) for i in range(count)}
    for i, each in enumerate(named.values()):
        each.grad = cr.randn(5) * 10.0 ** (-i % 30)
    for plot in (plotting.gradient_flow, plotting.gradient_histograms):
        ax = plot(named)
        drawn(ax)
        assert ax.figure.get_size_inches()[1] <= 12
        assert 1 <= len(ax.get_yticklabels()) <= 45
        low, high = sorted(ax.get_ylim())
        assert low <= 0 < count - 1 <= high or count == 1


def test_activations_are_those_of_the_innermost_modules_in_order() -> None:
    class Net(cr.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.second, self.first = cr.nn.ReLU(), cr.nn.Linear(2, 3)

        def forward(self, x: cr.Tensor) -> cr.Tensor:
            return self.second(self.second(self.first(x)))

    net = Net()
    ax = plotting.activation_histograms(net, -10 * cr.ones(4, 2))
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["first", "second", "second (2)"]


def test_histograms_note_zeros_and_nan() -> None:
    ax = plotting.activation_histograms(
        {"dead": cr.zeros(4), "half": cr.tensor([0.0, 1.0]), "bad": [1.0, float("nan")], "none": []}
    )
    assert [text.get_text() for text in ax.texts] == [
        "100% zero",
        "50% zero",
        "50% nan or inf",
        "empty",
    ]
    drawn(ax)


def test_histograms_of_very_different_scales_have_a_logarithmic_axis() -> None:
    near = plotting.activation_histograms({"a": cr.randn(99), "b": 10 * cr.randn(99)})
    far = plotting.activation_histograms({"a": cr.randn(99), "b": 1e-4 * cr.randn(99)})
    assert (near.get_xscale(), far.get_xscale()) == ("linear", "symlog")
    drawn(far)


# --- functions ------------------------------------------------------------------------------------


def test_taylor_polynomials_of_the_orders_asked_for() -> None:
    xs = np.array([0.0, 0.5, 1.0])
    ax = plotting.taylor_plot(SINE, orders=(1, 5), xs=xs)
    function, first, fifth, point = ax.get_lines()
    np.testing.assert_allclose(function.get_ydata(), np.sin(xs))
    np.testing.assert_allclose(first.get_ydata(), np.sin(0.5) + (xs - 0.5) * np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(fifth.get_ydata(), SINE(xs), rtol=1e-6)
    assert [first.get_label(), fifth.get_label()] == ["order 1", "order 5"]
    assert point.get_xdata()[0] == 0.5


def test_a_single_entry_of_a_large_jacobian_stays_visible() -> None:
    large = np.zeros((1500, 900))
    large[700, 13], large[3, 800] = 1e-3, np.nan
    ax = plotting.jacobian_spy(large)
    assert ax.get_title().startswith("1500 by 900, 2 of 1350000 entries are not zero\n1 nan")
    picture = ax.images[0].get_array()
    assert max(picture.shape) <= 400
    assert picture.count() == 1
    ((x,), (y,)) = ax.get_lines()[0].get_data()
    assert abs(x - 800) < 5
    assert abs(y - 3) < 5
    drawn(ax)


def test_a_jacobian_of_arrays_is_flattened() -> None:
    jacobian = cr.jacobian(lambda x: (x * x).sum(0))(cr.ones(2, 3))
    ax = plotting.jacobian_spy(jacobian, output_ndim=1)
    assert ax.get_title() == "3 by 6, 6 of 18 entries are not zero"


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: plotting.learning_curve([1.0, 2.0]), r"must be a dict .*got list: write {'trai"),
        (lambda: plotting.learning_curve({"a": ["x"]}), r"curves\['a'\] must be real numbers"),
        (lambda: plotting.learning_curve({"a": cr.ones(2, 2)}), r"one dimension, .*\[2, 2\]"),
        (lambda: plotting.sparkline(cr.ones(2, 2)), "sparkline: values must have one dimension"),
        (lambda: plotting.LiveCurve().add(loss=cr.ones(2)), "loss must be one number, .*mean"),
        (lambda: plotting.gradient_flow([X]), "a module, or a dict of Tensors by name, got list"),
        (lambda: plotting.gradient_flow({}), "gradient_flow: there are no parameters"),
        (
            lambda: plotting.gradient_histograms(cr.nn.Linear(2, 2)),
            r"none of the 2 parameters has a gradient: call backward\(\) first",
        ),
        (lambda: plotting.activation_histograms(3), "expected a module and its inputs"),
        (lambda: plotting.jacobian_spy(cr.ones(3)), r"two or more dimensions, .*\[3\]"),
        (lambda: plotting.jacobian_spy(cr.ones(0, 3)), r"shape \[0, 3\] is empty"),
        (lambda: plotting.taylor_plot(cr.sin), r"write taylor_plot\(cr.taylor\(f, x0, order"),
        (lambda: plotting.taylor_plot(SINE, orders=(6,)), "order 6 is not from 0 to 5"),
        (
            lambda: plotting.taylor_plot(cr.taylor(lambda x: x.sum(), X, 1)),
            "go along a line",
        ),
        (
            lambda: plotting.gradient_flow(NET, ax=pyplot.subplots(1, 2)[1]),
            r"ax must be matplotlib Axes, but got ndarray: write ax=ax\[0\]",
        ),
    ],
)
def test_bad_input_is_named(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(cr.ArgumentError, match=text):
        call()
