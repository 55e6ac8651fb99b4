"""SEMANTICS 67: anomaly mode."""

from __future__ import annotations

import traceback

import pytest

import chainrule as cr
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

INF = float("inf")


def nan_from(function, *values, **settings):
    """Run a backward pass under anomaly mode and return its error's text."""
    leaves = [leaf(value, cr.float64) for value in values]
    with pytest.raises(RuntimeError) as caught, cr.detect_anomaly():
        function(*leaves).sum().backward(**settings)
    return str(caught.value)


NANS = {
    "sqrt": (
        lambda x: x.sqrt() * 0,
        [0.0],
        "'SqrtBackward0' returned nan values in its 0th output.",
    ),
    "div by x": (lambda x: (x / x) * 0, [0.0], "'DivBackward0' returned nan values in its 0th"),
    "second input": (
        lambda x: 1 / (1 / x),
        [0.0],
        "'DivBackward0' returned nan values in its 1th output.",
    ),
    "mul": (lambda x: x * INF * 0, [1.0], "'MulBackward0' returned nan values in its 0th output."),
    "norm": (lambda x: (x * INF).exp() * 0, [1.0], "'ExpBackward0' returned nan values in its 0th"),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("function", "value", "text"), NANS.values(), ids=NANS.keys())
def test_s67_nan_in_backward_raises(function, value, text):
    assert f"Function {text}" in nan_from(function, value)


def test_s67_switching_it_on_warns_that_it_is_for_debugging():
    with pytest.warns(UserWarning, match="should be enabled only for debugging") as found:
        cr.detect_anomaly()
    assert found[0].filename == __file__


def test_s67_the_error_shows_the_forward_line():
    text = nan_from(lambda x: cr.sqrt(x) * 0, [0.0])  # here
    assert "test_67_anomaly.py" in text
    assert "cr.sqrt(x) * 0" in text


def test_s67_without_the_mode_nan_passes():
    x = leaf([0.0])
    (x.sqrt() * 0).backward()
    assert str(x.grad.item()) == "nan"


def test_s67_check_nan_can_be_left_out():
    x = leaf([0.0])
    with cr.detect_anomaly(check_nan=False):
        (x.sqrt() * 0).backward()
    assert str(x.grad.item()) == "nan"
    with cr.set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).backward()


def test_s67_infinity_is_no_anomaly():
    x = leaf([0.0])
    with cr.detect_anomaly():
        x.sqrt().backward()
    assert x.grad.item() == INF


def test_s67_nan_in_the_forward_is_none_either():
    x = leaf([float("nan"), 1.0])
    with cr.detect_anomaly():
        (x + 1).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_s67_switched_on_for_the_backward_alone():
    x = leaf([0.0])
    y = x.sqrt() * 0
    with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"), cr.detect_anomaly():
        y.backward()


def test_s67_as_a_call():
    cr.set_detect_anomaly(True)
    try:
        x = leaf([0.0])
        with pytest.raises(RuntimeError, match="returned nan"):
            (x.sqrt() * 0).backward()
    finally:
        cr.set_detect_anomaly(False)
    assert not cr.is_anomaly_enabled()


def test_s67_as_a_decorator():
    @cr.detect_anomaly()
    def step(x):
        (x.sqrt() * 0).backward()

    with pytest.raises(RuntimeError, match="returned nan"):
        step(leaf([0.0]))


def test_s67_nan_for_an_input_that_needs_no_grad_does_not_count():
    x = leaf([1.0])
    with cr.detect_anomaly():
        (x * cr.tensor([INF]) * cr.tensor([1.0])).backward(cr.tensor([1.0]))
    assert x.grad.item() == INF


def test_s67_nan_off_the_path_does_not_count():
    x, w = leaf([0.0]), leaf([1.0])
    with cr.detect_anomaly():
        ((x.sqrt() * 0) + w).backward(inputs=[w])
    assert w.grad.item() == 1


def test_s67_several_outputs():
    x = leaf([0.0, 4.0])
    first, second = x.sqrt().unbind()
    with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"), cr.detect_anomaly():
        (first * 0 + second).backward()


def test_s67_under_create_graph():
    x = leaf([0.0])
    with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan"), cr.detect_anomaly():
        (x.sqrt() * 0).backward(create_graph=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_s67_in_the_second_derivative():
    x = leaf([0.0])
    (g,) = cr.autograd_grad(x.sqrt(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="returned nan values"), cr.detect_anomaly():
        (g * 0).backward()


def test_s67_complex_nan():
    z = leaf([0j], cr.complex128)
    with pytest.raises(RuntimeError, match="returned nan"), cr.detect_anomaly():
        (z.sqrt() * 0).backward(cr.ones(1, dtype=cr.complex128))


def test_s67_a_custom_function():
    @cr.autograd_function
    def broken(ctx, x):
        return x + 0

    @broken.backward
    def _(ctx, g):
        return g * float("nan")

    assert "Function 'brokenBackward' returned nan values in its 0th output." in nan_from(
        broken, [1.0]
    )


def test_s67_the_failed_pass_leaves_grad_alone():
    x = leaf([0.0])
    with pytest.raises(RuntimeError, match="returned nan"), cr.detect_anomaly():
        (x.sqrt() * 0).backward()
    assert x.grad is None
    assert not cr.is_anomaly_enabled()
    assert cr.is_grad_enabled()


def shown(function):
    """Return everything that a user sees of the error that `function` raises."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the test looks at the text
        function()
    return "".join(traceback.format_exception(caught.value))


@cr.autograd_function
def failing(ctx, x):
    return x + 0


@failing.backward
def _(ctx, g):
    raise ValueError("my own words")


@pytest.mark.parametrize("anomaly", [True, False])
def test_s67_a_failing_backward_shows_the_forward_line(anomaly):
    def run():
        y = failing(leaf([1.0]))  # made here
        with cr.set_detect_anomaly(anomaly):
            y.backward()

    text = shown(run)
    assert "my own words" in text
    assert "failingBackward" in text
    assert "# made here" in text


def test_s67_a_freed_graph_does():
    def run():
        y = leaf([1.0]).exp()  # made here
        y.backward()
        y.backward()

    text = shown(run)
    assert "ExpBackward0" in text
    assert "# made here" in text


def test_s67_a_value_written_in_place_does():
    def run():
        y = leaf([1.0]).exp()  # made here
        y.add_(1)  # written here
        y.sum().backward()

    text = shown(run)
    assert "# made here" in text
    assert "# written here" in text


def test_s67_a_failing_hook_does():
    def run():
        y = leaf([1.0]).exp()  # made here

        def hook(g):
            raise ValueError("from a hook")

        y.register_hook(hook)
        y.backward()

    text = shown(run)
    assert "from a hook" in text
    assert "# made here" in text


def helper(x):
    return x.sqrt() * 0  # the line inside


def test_s67_the_line_is_the_users_and_the_innermost():
    assert "# the line inside" in nan_from(helper, [0.0])


def test_s67_lines_of_a_loop_and_of_several_lines():
    def spread(x):
        for _ in range(3):
            x = x + 1
        return cr.sqrt(
            x - 3,
        ) * (0)

    text = nan_from(spread, [0.0])
    assert "SqrtBackward0" in text
    assert "cr.sqrt(" in text


@pytest.mark.filterwarnings("ignore")
def test_s67_the_sentence_is_that_of_torch():
    def program(m):
        texts = []
        functions = [
            lambda x: x.sqrt() * 0,
            lambda x: (x / x) * 0,
            lambda x: x * INF * 0,
            lambda x: x.log() * x,
        ]
        for function in functions:
            try:
                with m.autograd.detect_anomaly():
                    function(m.leaf([0.0])).backward()
            except RuntimeError as error:
                texts.append(str(error).partition("output.")[0])
        return texts

    same_as_torch(program)
