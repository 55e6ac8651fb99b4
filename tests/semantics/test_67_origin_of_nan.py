"""SEMANTICS 67: the first operation that makes a nan or an infinity, its element and the mend."""

from __future__ import annotations

import contextlib
import warnings

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf

INF = float("inf")

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Anomaly Detection")


def found(function, *values, **settings):
    """Return the error of a function of new leaves in anomaly mode."""
    leaves = [leaf(value, cr.float64) for value in values]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(cr.AutogradError) as caught, cr.detect_anomaly(**settings):
            function(*leaves)
    return str(caught.value)


X = [4.0, 0.0, 1.0]
BACKWARD = {
    "where": (
        lambda x: cr.where(x > 0, cr.sqrt(x), 0.0).sum(),
        [
            *("'SqrtBackward0' returned nan", "element [1]", "x = 0.0", "0 * inf"),
            *("gradient that arrives is 0.0", "behind a where", "safe = cr.where(x > 0, x, 1.0)"),
            "`cr.where(x > 0, cr.sqrt(safe), 0.0)`",
        ],
    ),
    "other branch": (
        lambda x: cr.where(x <= 0, 0.0, 1 / x).sum(),
        ["safe = cr.where(x <= 0, 1.0, x)", "cr.where(x <= 0, 0.0, 1 / safe)", "division by zero"],
    ),
    "method": (
        lambda x: cr.where(x > 0, x.log() + 1, 0.0).sum() + cr.where(x > 0, x.sqrt(), x).sum(),
        ["cr.where(x > 0, safe.sqrt(), x)"],
    ),
    "root of squares": (
        lambda x: (x - x).square().sum().sqrt(),
        ["inf * 0", "began at SqrtBackward0", "derivative of a root at 0", "vector_norm"],
    ),
    "overflow": (
        lambda x: ((x * 1000).exp() / (x * 1000).exp()).sum(),
        ["inf / inf", "exp made an infinity at element [0]", "x = 4000.0", "overflow", "softmax"],
    ),
    "power": (
        lambda x: cr.where(x > 0, x**0.5, 0.0).sum(),
        ["0 to a power", "exponent = 0.5", "cr.where(x > 0, safe ** 0.5, 0.0)"],
    ),
    "mask by product": (
        lambda x: ((1 / x) * (x > 0)).sum(),
        ["'DivBackward0'", "0 * inf", "division by zero"],
    ),
}


@pytest.mark.parametrize(("function", "texts"), BACKWARD.values(), ids=BACKWARD.keys())
def test_a_nan_in_backward_has_its_element_values_pattern_and_mend(function, texts):
    text = found(lambda x: function(x).backward(), X)
    assert [part for part in texts if part not in text] == [], text


FORWARD = {
    "log of 0 less 1": (lambda x: cr.log(x - 1), X, ["log made a nan", "[1]", "negative number"]),
    "root": (lambda x: cr.sqrt(x - 1), X, ["sqrt made a nan", "x = -1.0", "root of a negative"]),
    "0/0": (lambda x: x / x, X, ["divide made a nan", "x = 0.0, y = 0.0", "0 / 0", "cr.where(y"]),
    "inf - inf": (lambda x: 1 / x - 1 / x, X, ["inf - inf", "an infinity at element [1]"]),
    "0 * inf": (lambda x: x * (1 / x), X, ["0 * inf", "division by zero"]),
    "softmax": (
        lambda x: cr.softmax(x + cr.full((2, 3), -INF), 1),
        X,
        ["softmax made a nan at element [0, 0]", "from -inf to -inf", "every element of the row"],
    ),
    "negative base": (lambda x: (x - 5) ** 0.5, X, ["negative number to a power", "x.abs()"]),
    "acos": (lambda x: cr.acos(x), X, ["acos made a nan", "x = 4.0", "outside of [-1, 1]"]),
    "equal values": (
        lambda x: cr.nn.functional.layer_norm(0 * x, (3,), eps=0.0),
        X,
        ["its row is from 0.0 to 0.0", "normalisation of equal values", "give eps"],
    ),
    "mean of none": (lambda x: x[x > 9].mean(), X, ["mean", "no elements", "max(count, 1)"]),
    "sine": (lambda x: cr.sin(1 / x), X, ["periodic function of an infinity"]),
    "broadcast": (
        lambda x: x.expand(2, 3) / cr.zeros(1, dtype=cr.float64),
        X,
        ["divide made a nan at element [0, 1], where x = 0.0, y = 0.0"],
    ),
    "constants": (lambda x: cr.log(x.detach() - 1), X, ["log made a nan at element [1]"]),
    "where of constants": (
        lambda x: cr.where(x.detach() > 0, x.detach(), cr.log(x.detach() - 1)),
        X,
        ["log made a nan"],
    ),
}


@pytest.mark.parametrize(("function", "value", "texts"), FORWARD.values(), ids=FORWARD.keys())
def test_forward_raises_at_the_operation(function, value, texts):
    text = found(function, value, forward=True)
    assert [part for part in texts if part not in text] == [], text
    assert __file__ in text


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 1e200 * x * 1e200,
        lambda x: x * 1e308 + x * 1e308,
        lambda x: (x * 1e200) @ (x * 1e200),
        lambda x: (x * 1e308).expand(9, 3).sum(0),
        lambda x: x / 1e-308,
    ],
)
def test_sums_and_products_overflow(function):
    text = found(function, X, forward=True, infinity=True)
    assert "overflow" in text
    assert "smaller learning rate" in text


def test_a_nan_that_is_selected_away_was_not_got():
    data = cr.tensor([1.0, INF * 0])
    x = leaf([1.0, 2.0])
    with cr.detect_anomaly(forward=True):
        cr.where(cr.isnan(data), 0.0, data)
        (x * cr.nan_to_num(data)).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]


def test_the_logarithm_of_a_singular_determinant():
    text = found(lambda a: cr.logdet(a).backward(), [[0.0, 0.0], [0.0, 0.0]])
    assert "singular matrix" in text
    assert "cr.eye(n)" in text


@pytest.mark.parametrize("raises", [True, False])
def test_a_nan_of_the_data_or_of_an_update_is_told_of(raises):
    data, w = cr.tensor([[1.0, INF * 0], [2.0, 3.0]]), leaf([1.0, 2.0])
    factor = w if raises else cr.ones(2)
    with warnings.catch_warnings(record=True) as told, cr.detect_anomaly():
        warnings.simplefilter("always")
        try:
            ((data @ factor) ** 2).mean().add(w.sum()).backward()
        except cr.AutogradError as error:
            text = str(error)
        else:
            text = str(told[-1].message)
    assert ("It began in the forward" in text) == raises
    assert "matmul got a nan at element [0, 1] of x" in text
    assert "a nan from before" in text
    assert "learning rate" in text


@pytest.mark.parametrize("name", FORWARD)
def test_forward_nan_is_remembered_by_default_and_told_at_the_pass(name):
    function, value, texts = FORWARD[name]
    x = leaf(value, cr.float64)
    with (
        warnings.catch_warnings(record=True) as told,
        cr.detect_anomaly(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("always")
        y = function(x).sum() + 0 * x.sum()
        try:
            y.backward()
        except cr.AutogradError:
            assert name != "constants"
    texts = [str(w.message) for w in told if "starts at a nan" in str(w.message)]
    assert len(texts) == 1
    assert all(part in texts[0] for part in FORWARD[name][2]), texts


def test_a_nan_that_came_with_the_data_is_nobodys():
    x = leaf([float("nan"), 1.0])
    with cr.detect_anomaly(forward=True, infinity=True):
        y = cr.where(x > 0, x * 2, 0.0).sum()
    y.backward()
    assert x.grad.tolist() == [0, 2]


def test_a_masked_nan_raises_and_warns_of_nothing():
    x = leaf(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mode = cr.detect_anomaly()
    with warnings.catch_warnings(), mode, np.errstate(all="ignore"):
        warnings.simplefilter("error")
        cr.where(x > 2, cr.log(x - 1.5), 0.0).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.4, 0, 0])


def test_infinities_count_where_asked_for():
    assert "log made an infinity at element [1]" in found(cr.log, X, forward=True, infinity=True)
    text = found(lambda x: cr.log(x).sum().backward(), X, infinity=True)
    assert "'LogBackward0' returned infinite values in its 0th output" in text
    with cr.detect_anomaly(forward=True):
        cr.log(leaf(X))
    masked = cr.tensor([-INF, 0.0])
    with cr.detect_anomaly(forward=True, infinity=True):
        (masked + 1).exp()


def test_under_vmap_the_example_is_named():
    rows = [[1.0, 2.0], [3.0, 0.0]]

    def loss(r):
        return cr.where(r > 0, cr.sqrt(r), 0.0).sum()

    text = found(lambda x: cr.vmap(cr.grad(loss))(x.detach()), rows)
    assert "element [1] of example 1" in text
    assert "cr.where(r > 0, cr.sqrt(safe), 0.0)" in text
    text = found(lambda x: cr.vmap(lambda r: cr.log(r - 1))(x), rows, forward=True)
    assert "log made a nan at element [1] of example 1, where x = -1.0" in text


@pytest.mark.parametrize("forward_in_mode", [True, False])
def test_in_a_compiled_function_the_line_is_that_of_the_operation(forward_in_mode):
    @cr.compile
    def loss(x):
        inner = cr.sqrt(x)  # the line inside
        return cr.where(x > 0, inner, 0.0).sum()

    x = leaf(X)
    y = loss(x)
    text = found(lambda: (loss(x) if forward_in_mode else y).backward())
    assert "'SqrtBackward0'" in text
    assert "# the line inside" in text
    assert "`cr.sqrt(safe)` in the place of `cr.sqrt(x)`" in text


def test_in_a_custom_function_the_line_of_backward_is_named():
    @cr.autograd_function
    def identity(ctx, x):
        ctx.save_for_backward(x=x)
        return x.clone()

    @identity.backward
    def _(ctx, g):
        return g * ctx.saved_variables.x / ctx.saved_variables.x  # in backward

    text = found(lambda x: identity(x).sum().backward(), X)
    assert "'identityBackward' returned nan values" in text
    assert "# in backward" in text
    assert "0 / 0" in text


def test_in_the_second_derivative_and_forward_mode():
    def second(x):
        (g,) = cr.autograd_grad(cr.where(x > 0, x**1.5, 0.0).sum(), x, create_graph=True)
        g.sum().backward()

    assert "derivative of a root at 0" in found(second, X)
    text = found(lambda x: cr.jvp(lambda x: x.square().sqrt(), (x.detach(),), (cr.ones(3),)), X)
    assert "Forward mode: the tangent of SqrtBackward0" in text
    assert "element [1]" in text


def test_views_writes_hooks_and_modules_keep_the_origin():
    layer = cr.nn.Linear(3, 2)

    def step(x):
        h = layer(cr.log(x - 1).view(1, 3).T.T)
        h.register_hook(lambda g: g * 2)
        h.add_(1)
        h.sum().backward()

    x = leaf(X, cr.float32)
    with (
        pytest.warns(UserWarning, match="log made a nan"),
        cr.detect_anomaly(),
        contextlib.suppress(cr.AutogradError),
    ):
        step(x)


def test_operations_of_several_outputs_pass_the_origin_on():
    x, mode = leaf([4.0, 0.5, 3.0]), cr.detect_anomaly()
    with mode:
        parts = cr.log(x - 1).unbind()
    with pytest.warns(UserWarning, match="log made a nan at element \\[1\\]"), mode:
        parts[1].backward()
    assert x.grad.tolist() == [0, -2, 0]


def test_rules_of_a_recorded_pass_are_no_forward_computation():
    text = found(lambda x: (x.sqrt() * 0).sum().backward(create_graph=True), X, forward=True)
    assert "'SqrtBackward0' returned nan values" in text


def test_a_where_that_selects_the_element_is_not_to_blame():
    text = found(lambda x: cr.where(x == 0, x / x, x).sum().backward(), X)
    assert "'DivBackward0' returned nan" in text
    assert "leaves this element out" not in text


def test_without_check_nan_nothing_is_looked_at():
    x = leaf(X)
    with (
        cr.detect_anomaly(check_nan=False, forward=True),
        cr.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        cr.log(x - 1).sum().backward()


def test_hooks_of_saved_values_still_see_them_once():
    packed = []
    x = leaf(X)
    with (
        cr.detect_anomaly(),
        cr.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t),
    ):
        ((x + 1) * x.T.sum()).sum().backward()
    assert len(packed) == 2


def test_a_pass_releases_what_it_saved():
    x = leaf([1.0, 2.0])
    with cr.detect_anomaly():
        y = cr.exp(x).sum()
        y.backward()
        with pytest.raises(cr.FreedGraphError):
            y.backward()
        z = cr.exp(x).sum()
        z.backward(retain_graph=True)
        z.backward()
        compiled, custom = cr.compile(lambda x: cr.exp(x).sum())(x), _squared(x).sum()
        for loss in (compiled, custom):
            loss.backward()
            with pytest.raises(cr.FreedGraphError):
                loss.backward()


@cr.autograd_function
def _squared(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x


@_squared.backward
def _(ctx, g):
    return 2 * g * ctx.saved_variables.x


def test_a_compiled_call_from_before_is_released_too():
    x = leaf([1.0, 2.0])
    y = cr.compile(lambda x: cr.exp(x).sum())(x)
    with cr.detect_anomaly():
        y.backward()
        with pytest.raises(cr.FreedGraphError):
            y.backward()


def test_values_that_were_written_since_are_not_shown():
    x, scale = leaf([1.0]), cr.tensor([2.0])

    def step(x):
        y = cr.sqrt((x - x) + scale * 0)
        scale.add_(5)
        (y * 0).sum().backward()

    assert "derivative of a root at 0" in found(step, [1.0])
    y = x.detach() * 0
    leaf_of_y = y.requires_grad_()

    def written(_):
        z = cr.sqrt(leaf_of_y)
        leaf_of_y.data.add_(9)
        (z * 0).sum().backward()

    text = found(written, [1.0])
    assert "the result is 0.0" in text
    assert "x = " not in text


def test_the_mode_forgets_arrays_that_are_gone():
    mode = cr.detect_anomaly()
    state = mode._changes["anomaly"]
    with mode, np.errstate(all="ignore"):
        y = cr.log(leaf(X) - 1)
        assert state.origins
        assert state.operands
        del y
    assert not state.origins
    assert not state.operands
