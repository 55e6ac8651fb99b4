"""Functions whose exported modules are the files in golden/; run as a script to rewrite these."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import chainrule as cr

FOLDER = pathlib.Path(__file__).parents[1] / "compiler" / "golden"


def numbers(*shape: int, seed: int = 0, **options: Any) -> cr.Tensor:
    return cr.tensor(np.random.default_rng(seed).uniform(-1, 1, shape), dtype="float32", **options)


def line_loss(slope: Any, offset: Any, x: Any, y: Any) -> Any:
    """The mean squared distance of a line from points."""
    return (slope * x + offset - y).pow(2).mean()


def line_gradient(slope: Any, offset: Any, x: Any, y: Any) -> Any:
    """The gradient of `line_loss` with respect to the line."""
    return cr.autograd_grad(line_loss(slope, offset, x, y), {"slope": slope, "offset": offset})


def two_layers(x: Any, y: Any, weights: Any) -> Any:
    """One step of gradient descent of the tutorial's network; returns the loss and new weights."""
    hidden = (x @ weights["w1"]).clamp(min=0)
    loss = (hidden @ weights["w2"] - y).pow(2).sum()
    gradients = cr.autograd_grad(loss, weights)
    with cr.no_grad():
        return loss.detach(), {name: w - 1e-2 * gradients[name] for name, w in weights.items()}


def attention(q: Any, k: Any, v: Any) -> Any:
    """Scaled dot-product attention, and its gradient in `q`."""
    scores = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    out = scores @ v
    (gradient,) = cr.autograd_grad(out.sum(), q)
    return out.detach(), gradient


def picked(table: Any, rows: Any) -> Any:
    """The gradient of a sum of squares of some rows of a table."""
    (gradient,) = cr.autograd_grad(table[rows].pow(2).sum(), table)
    return gradient


def second_derivative(x: Any) -> Any:
    """The second derivative of x³ · exp(x), one element at a time."""
    (first,) = cr.autograd_grad((x**3 * x.exp()).sum(), x, create_graph=True)
    (second,) = cr.autograd_grad(first.sum(), x)
    return second


def bump(x: Any) -> Any:
    """A bell curve on many points, and its gradient; the points go half a unit to the right."""
    with cr.no_grad():
        x += 0.5
    y = (-x * x).exp() * x.sin()
    (gradient,) = cr.autograd_grad(y.sum(), x)
    return y.detach(), gradient


def running_sums(x: Any, decay: float) -> Any:
    """Neighbours added in place, and what is left of them summed over ten steps."""
    y = x * 2
    y[1:] = y[:-1] + x[1:]

    def step(carry: Any, _: Any) -> Any:
        total, rest = carry
        return (total + rest, rest * decay), None

    (total, _), _ = cr.scan(step, (cr.zeros_like(y), y), length=10)
    return y, total


def examples() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...]]]:
    slope, offset = numbers(1, requires_grad=True), numbers(1, seed=1, requires_grad=True)
    x, y = numbers(20, seed=2), numbers(20, seed=3)
    yield line_loss, (slope, offset, x, y)
    yield line_gradient, (slope, offset, x, y)
    weights = {
        "w1": numbers(30, 100, seed=4, requires_grad=True),
        "w2": numbers(100, 10, seed=5, requires_grad=True),
    }
    yield two_layers, (numbers(64, 30, seed=6), numbers(64, 10, seed=7), weights)
    q, k, v = (numbers(2, 5, 4, seed=i, requires_grad=i == 8) for i in (8, 9, 10))
    yield attention, (q, k, v)
    yield picked, (numbers(6, 3, seed=11, requires_grad=True), cr.tensor([4, 0, 4]))
    yield second_derivative, (numbers(3, seed=12, requires_grad=True),)
    yield running_sums, (numbers(5, seed=14), 0.5)
    yield bump, (numbers(1000, 600, seed=13, requires_grad=True),)


if __name__ == "__main__":
    for function, arguments in examples():
        cr.export(function, FOLDER / f"{function.__name__}.py", *arguments)
