"""Results of the forward-mode rule of a custom function."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr


def slopes(rule, outputs=1, x=(1.0, 2.0)):
    """Return the tangents of a function of this many outputs, whose jvp is `rule(t)`."""

    def forward(ctx, x):
        made = tuple(x * (i + 1) for i in range(outputs))
        return made if outputs > 1 else made[0]

    f = cr.autograd_function(forward, jvp=lambda ctx, t: rule(t), name="f")
    x = cr.tensor(x)
    return cr.jvp(f, x, cr.ones_like(x))[1]


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: (t,), lambda t: [t], lambda t: t.numpy()])
def test_one_tangent_for_one_output(wrap):
    assert slopes(lambda t: wrap(t * 3)).tolist() == [3.0, 3.0]


@pytest.mark.parametrize("value", [3, 3.0, np.float64(3.0), np.array(3.0)])
def test_numbers_are_tangents_of_numbers(value):
    slope = slopes(lambda t: value, x=1.0)
    assert (slope.item(), slope.dtype) == (3.0, cr.float32)


def test_none_is_a_tangent_of_zeros():
    assert slopes(lambda t: None).tolist() == [0.0, 0.0]
    assert [t.tolist() for t in slopes(lambda t: (None, t), 2)] == [[0.0, 0.0], [1.0, 1.0]]
    assert [t.tolist() for t in slopes(lambda t: None, 2)] == [[0.0, 0.0], [0.0, 0.0]]


def test_a_tangent_has_the_dtype_of_its_output():
    assert slopes(lambda t: t.double()).dtype == cr.float32
    assert slopes(lambda t: t * (2 + 1j)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_tangent_of_another_shape_is_refused(outputs):
    text = r"the jvp of f returned a tangent of shape \[7\] for output 0, which has shape \[2\]"
    with pytest.raises(cr.ShapeError, match=text):
        slopes(lambda t: (cr.ones(7), t)[:outputs], outputs)


@pytest.mark.parametrize("result", [lambda t: t, lambda t: (t,), lambda t: (t, t, t)])
def test_another_number_of_tangents_is_refused(result):
    text = r"the jvp of f returned an incorrect number of tangents \(expected 2, got [13]\)"
    with pytest.raises(cr.AutogradError, match=text):
        slopes(result, 2)


def test_another_type_of_tangent_is_refused():
    text = "the jvp of f returned str as the tangent of output 0, expected a Tensor or None"
    with pytest.raises(TypeError, match=text):
        slopes(lambda t: "text")


def test_a_tangent_without_a_history_is_not_differentiated():
    f = cr.autograd_function(
        lambda ctx, x: x * x, jvp=lambda ctx, t: 2 * t.detach().numpy(), name="f"
    )
    x = cr.tensor(1.0, requires_grad=True)
    slope = cr.jvp(f, x, cr.tensor(1.0))[1]
    assert slope.item() == 2.0
    with pytest.raises(cr.AutogradError, match=r"jvp of f returned .*no history"):
        slope.backward()


@pytest.mark.parametrize("way", ["as it is", "written", "a view"])
def test_the_tangent_of_an_argument_that_is_returned_has_its_shape(way):
    class Returned(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if way == "written":
                ctx.mark_dirty(x.mul_(2))
            return x.view(3) if way == "a view" else x

        @staticmethod
        def jvp(ctx, t):
            return t.sum()

    with pytest.raises(cr.ShapeError, match=r"tangent of shape \[\] for output 0, which has shape"):
        cr.jvp(lambda x: Returned.apply(x * 1), (cr.ones(3),), (cr.ones(3),))
