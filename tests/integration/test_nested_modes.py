"""Random functions of nested derivatives: forward and reverse mode agree in all combinations."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import chainrule as cr

Function = Callable[[Any], Any]


def forward(f: Function) -> Function:
    return lambda x: cr.jvp(f, x, cr.ones_like(x))[1]


def reverse(f: Function) -> Function:
    def derivative(x: Any) -> Any:
        with cr.enable_grad():
            x = x.clone() if x.requires_grad else x.detach().requires_grad_()
            y = f(x)
        if not y.requires_grad:
            return cr.zeros_like(x)
        return cr.autograd_grad(y, x, create_graph=True, materialize_grads=True)[0]

    return derivative


MODES = {"f": forward, "r": reverse}


def written(v: Any) -> Any:
    parts = cr.stack([v, v * v, v + 1])
    parts[1:].mul_(0.5)
    parts[0] = parts[2].clone() * v
    return parts[0:2].sum().sin_()


def scanned(v: Any) -> Any:
    steps = cr.arange(3.0, dtype=cr.float64)
    return cr.scan(lambda c, i: (cr.sin(c * v) + i * 0.1, None), v * 0.5, steps)[0]


def chosen(v: Any) -> Any:
    return cr.cond(v > 0.2, lambda w: cr.sin(w) * v, lambda w: w * w * v, v + 0.1)


def closed_over(v: Any) -> Any:
    square = v * v * 0.2
    return cr.compile(lambda t: cr.sin(t * square) + square, backend="numpy")(v)


@cr.autograd_function
def custom(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    return cr.sin(x) * x


@custom.backward
def _(ctx: Any, g: Any) -> Any:
    (x,) = ctx.saved_variables
    return g * (cr.cos(x) * x + cr.sin(x))


@custom.jvp
def _(ctx: Any, t: Any) -> Any:
    (x,) = ctx.saved_variables
    return t * (cr.cos(x) * x + cr.sin(x))


compiled = cr.compile(lambda v: cr.exp(-v * v) * cr.sin(v) + 0.1 * scanned(v), backend="numpy")
UNARY: list[Function] = [
    *(cr.sin, cr.tanh, lambda v: (v * v + 1).sqrt(), lambda v: 1 / (v * v + 2)),
    *(written, scanned, chosen, closed_over, custom, compiled),
]


class Program:
    """A random expression; the modes of the derivatives in it are chosen when it is called."""

    def __init__(self, seed: int) -> None:
        self.random, self.inner = random.Random(seed), 0
        self.run = self.expression(3, ["x"])

    def expression(self, depth: int, names: list[str]) -> Any:
        kind = self.random.random()
        if depth == 0 or kind < 0.1:
            name = self.random.choice(names)
            return lambda values, modes: values[name]
        first = self.expression(depth - 1, names)
        if kind < 0.45 or (kind >= 0.6 and self.inner == 2):
            function = self.random.choice(UNARY)
            return lambda values, modes: function(first(values, modes))
        if kind < 0.6:
            second = self.expression(depth - 1, names)
            return lambda values, modes: first(values, modes) * second(values, modes)
        number, self.inner = self.inner, self.inner + 1
        name = f"v{number}"
        body = self.expression(depth - 1, [*names, name, name])

        def derivative(values: dict[str, Any], modes: Any) -> Any:
            slope = MODES[modes[number]](lambda v: body({**values, name: v}, modes))
            return slope(first(values, modes))

        return derivative


@pytest.mark.sampled(7)
@pytest.mark.parametrize("seed", range(150))
def test_every_choice_of_modes_agrees(seed: int) -> None:
    program = Program(seed)
    x = cr.tensor(0.37, dtype=cr.float64)
    for order in range(3):
        found = {}
        for modes in itertools.product("rf", repeat=program.inner + order):
            inner, outer = modes[: program.inner], modes[program.inner :]
            f: Function = partial(lambda inner, x: program.run({"x": x}, inner), inner)
            for mode in outer:
                f = MODES[mode](f)
            found[modes] = f(x).item()
        expected = next(iter(found.values()))
        assert found == pytest.approx(dict.fromkeys(found, expected), rel=1e-7, abs=1e-10)
