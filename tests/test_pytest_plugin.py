"""The plugin of pytest: the fixture `gradcheck`, and `chainrule.testing.assert_gradients`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.testing import assert_gradients

PROGRAM = """
import chainrule as cr

@cr.autograd_function
def cube(ctx, x):
    ctx.save_for_backward(x)
    return x ** 3

@cube.backward
def _(ctx, g):
    (x,) = ctx.saved_tensors
    return FACTOR * g * x ** 2

def test_cube(gradcheck):
    gradcheck(cube, [0.5, 2.0], order=2)
"""


@pytest.mark.parametrize("factor", [3, 2])
def test_the_fixture_checks_a_function(pytester: pytest.Pytester, factor: int) -> None:
    pytester.makepyfile(PROGRAM.replace("FACTOR", str(factor)))
    result = pytester.runpytest_inprocess("-ppytest_chainrule", "-pno:cacheprovider", "-pno:xdist")
    result.assert_outcomes(passed=int(factor == 3), failed=int(factor != 3))
    if factor != 3:
        text = result.stdout.str()
        assert "output 0 with respect to element [1] of input 0 ('x')" in text
        assert "analytical: 8" in text
        assert "numerical:  12" in text
        assert "gradcheck(cube, [0.5, 2.0], order=2)" in text
        assert "testing.py" not in text.partition("short test summary")[0]  # only the user's lines


def test_the_plugin_leaves_chainrule_alone_until_it_is_used() -> None:
    code = "import sys, pytest_chainrule; assert not [m for m in sys.modules if m == 'chainrule']"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arguments_of_all_kinds() -> None:
    seen: list[Any] = []

    def f(x: Any, n: int, options: Any, *, w: Any) -> Any:
        seen.append((x.dtype, n, options["b"], w.shape))
        return (x * w).sum() ** n + options["a"] * options["b"]

    assert_gradients(f, cr.ones(3), 2, {"a": 0.5, "b": 4}, w=np.ones(3, "f4"), modes="both")
    assert set(seen) == {(cr.float64, 2, 4, (3,))}
    assert_gradients(lambda z: (z * z.conj()).real, 1.0 + 2.0j)


@pytest.mark.parametrize(
    ("function", "args", "text"),
    [
        (lambda x: x.detach() * x, (2.0,), "analytical: 2\nnumerical:  4"),
        (lambda d: d["a"] * d["b"].detach(), ({"a": 1.0, "b": 3.0},), r"to input 1 \(.d\['b'\]"),
        (lambda x: x * cr.rand(()), (1.0,), "not deterministic"),
    ],
)
def test_a_wrong_gradient_is_an_assertion_error(function: Any, args: Any, text: str) -> None:
    with pytest.raises(AssertionError, match=text):
        assert_gradients(function, *args)


def test_a_second_derivative_is_checked_on_request() -> None:
    @cr.autograd_function
    def square(ctx: Any, x: Any) -> Any:
        ctx.two_x = 2 * x
        return x * x

    @square.backward
    def _(ctx: Any, g: Any) -> Any:
        return g * ctx.two_x.detach()

    assert_gradients(square, 1.5)
    with pytest.raises(AssertionError, match="second order"):
        assert_gradients(square, 1.5, order=2)


def test_bad_calls_are_named() -> None:
    with pytest.raises(cr.ArgumentError, match="at least one input tensor to require gradient"):
        assert_gradients(lambda n: cr.tensor(n), 3)
    with pytest.raises(ValueError, match="order is 1 or 2"):
        assert_gradients(cr.sin, 1.0, order=3)
    with pytest.raises(cr.DTypeError, match="output 0 is float32"):
        assert_gradients(lambda x: x.float(), 1.0)
