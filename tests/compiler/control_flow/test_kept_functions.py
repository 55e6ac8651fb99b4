"""The backward pass of loops and branches uses what their functions found when they were called."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import chainrule as cr

W = np.array([0.5, 1.0, -0.2])


def rebound_in_cond(w: Any) -> Any:
    x = w * 2
    y = cr.cond(x.sum() > 0, lambda: cr.sin(x), lambda: x * 0.5)
    x = y * 3
    return (y * x).sum()


def rebound_in_a_loop(w: Any) -> Any:
    x = w
    for _ in range(3):
        x = cr.cond(x.sum() > 0, lambda: x * x, lambda: cr.exp(x))  # noqa: B023
    return x.sum()


def rebound_in_scan(w: Any) -> Any:
    scale = w * 2
    c, ys = cr.scan(lambda c, x: (c * scale + x, c.sum()), w, cr.ones(4, 3, dtype=w.dtype))
    scale = c
    return (c * scale).sum() + ys.sum()


def rebound_within_steps(w: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        y = c * w
        z = cr.cond(y.sum() > x, lambda: cr.sin(y), lambda: y * 0.5)
        y = z + 1
        return y, z.sum()

    c, ys = cr.scan(step, w, cr.zeros(4, dtype=w.dtype))
    return c.sum() + (ys * ys).sum()


def rebound_in_a_helper(w: Any) -> Any:
    x = w * 2

    def helper(y: Any) -> Any:
        return y * x

    y = cr.cond(w.sum() > 0, functools.partial(lambda a: helper(a) + 1, w), lambda: w)
    x = y * 0
    return y.sum() + x.sum()


def recursion(w: Any) -> Any:
    def power(x: Any, n: int) -> Any:
        return x if n == 0 else x * power(x, n - 1)

    y = cr.cond(w.sum() > 0, lambda: power(w, 3), lambda: w)
    return y.sum()


FUNCTIONS = [
    *(rebound_in_cond, rebound_in_a_loop, rebound_in_scan, rebound_within_steps),
    *(rebound_in_a_helper, recursion),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_variables_with_new_values(function: Callable[[Any], Any]) -> None:
    w = cr.tensor(W)
    for made in (cr.grad(function), cr.hessian(function)):
        np.testing.assert_allclose(cr.compile(made, backend="numpy")(w), made(w), rtol=1e-12)


def test_attributes_with_new_values_are_refused() -> None:
    model = SimpleNamespace(scale=2.0)

    def function(w: Any) -> Any:
        model.scale = 2.0
        y = cr.cond(w.sum() > 0, lambda: w * model.scale, lambda: w)
        model.scale = 3.0
        return (y * y).sum()

    with pytest.raises(cr.CompileError, match=r"finds by name \(of type float\) is changed after"):
        cr.compile(cr.grad(function), backend="numpy", verify=False)(cr.tensor(W))


def test_items_with_new_values_are_refused() -> None:
    def function(w: Any) -> Any:
        scales = [2.0, 5.0]
        y = cr.cond(w.sum() > 0, lambda: w * scales[0], lambda: w)
        scales[0] = 3.0
        return (y * y).sum()

    with pytest.raises(cr.CompileError, match="is changed after the cond"):
        cr.compile(cr.grad(function), backend="numpy", verify=False)(cr.tensor(W))
