"""Every transform of loops and branches, eager and compiled, agrees with that of a Python loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree

Function = Callable[..., Any]

SLICES = cr.tensor([0.3, 0.7, 1.1], dtype=cr.float64)
X = cr.tensor([0.4, 0.7], dtype=cr.float64)
T = cr.tensor([0.5, -0.2], dtype=cr.float64)
BATCH = cr.tensor([[0.1, 0.9], [0.6, -0.4], [0.3, 0.2]], dtype=cr.float64)


def step(c: Any, x: Any, w: Any) -> Any:
    c = (c * x + w[1]).sin()
    return c, c * x * w[0]


def scanned(checkpoint: bool, reverse: bool) -> Function:
    def function(w: cr.Tensor) -> cr.Tensor:
        xs = SLICES * w[0]
        settings: Any = {"reverse": reverse, "checkpoint": checkpoint}
        c, ys = cr.scan(lambda c, x: step(c, x, w), w[1] * 1.0, xs, **settings)
        return c + (ys * ys).sum()

    return function


def looped(reverse: bool) -> Function:
    def function(w: cr.Tensor) -> cr.Tensor:
        c, xs, total = w[1] * 1.0, SLICES * w[0], cr.zeros((), dtype=cr.float64)
        for i in reversed(range(3)) if reverse else range(3):
            c, y = step(c, xs[i], w)
            total = total + y * y
        return c + total

    return function


def nested(w: cr.Tensor) -> cr.Tensor:
    def outer(c: Any, x: Any) -> Any:
        inner, _ = cr.scan(lambda d, v: (d * v + w[0], None), c, SLICES)
        return inner.sin() * x, inner

    c, ys = cr.scan(outer, w[1] * 1.0, SLICES)
    return c * ys.sum()


def nested_loops(w: cr.Tensor) -> cr.Tensor:
    c, total = w[1] * 1.0, cr.zeros((), dtype=cr.float64)
    for i in range(3):
        for j in range(3):
            c = c * SLICES[j] + w[0]
        total = total + c
        c = c.sin() * SLICES[i]
    return c * total


def branched(w: cr.Tensor) -> cr.Tensor:
    return cr.cond(SLICES.sum() > 0, lambda v: (v * v * w[0]).sum(), lambda v: v.sin().sum(), w)


def branched_twice(w: cr.Tensor) -> cr.Tensor:
    """Two results, of which one depends on the outer tensor only."""
    a, b = cr.cond(SLICES[0] > 1, lambda: (w[0], w[1]), lambda: ((w**3).sum(), w[1].exp()))
    return a * b


FUNCTIONS: dict[str, tuple[Function, Function]] = {
    "scan": (scanned(False, False), looped(False)),
    "reversed scan": (scanned(False, True), looped(True)),
    "checkpoint": (scanned(True, False), looped(False)),
    "nested scan": (nested, nested_loops),
    "cond": (branched, lambda w: (w * w * w[0]).sum()),
    "cond of two": (branched_twice, lambda w: (w**3).sum() * w[1].exp()),
}


def sum_of_squares(f: Function) -> Function:
    return lambda w: (cr.grad(f)(w) ** 2).sum()


def both_orders(f: Function) -> Function:
    """Return the value and gradients of two orders, for which the graph is kept."""

    def function(w: cr.Tensor) -> Any:
        w = w.detach().requires_grad_()
        y = f(w)
        (first,) = cr.autograd_grad(y, w, create_graph=True)
        (second,) = cr.autograd_grad((first * first).sum(), w, create_graph=True)
        return y, first, second

    return function


def mapped(f: Function) -> Function:
    return lambda w: cr.vmap(f)(w + BATCH)


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "value": lambda f: f,
    "grad": cr.grad,
    "hessian": cr.hessian,
    "forward hessian": lambda f: cr.hessian(f, mode="forward"),
    "jacobian of gradient of squares": lambda f: cr.jacobian(cr.grad(sum_of_squares(f))),
    "both orders": both_orders,
    "jvp": lambda f: lambda w: cr.jvp(f, (w,), (T,)),
    "jvp of grad": lambda f: lambda w: cr.jvp(cr.grad(f), (w,), (T,)),
    "grad of jvp": lambda f: cr.grad(lambda w: cr.jvp(f, (w,), (T,))[1]),
    "jvp of jvp": lambda f: lambda w: cr.jvp(lambda v: cr.jvp(f, (v,), (T,))[1], (w,), (T,)),
    "vmap": mapped,
    "vmap of grad": lambda f: mapped(cr.grad(f)),
    "vmap of hessian": lambda f: mapped(cr.hessian(f)),
    "vmap of jvp": lambda f: mapped(lambda w: cr.jvp(f, (w,), (T,))),
    "vmap of vmap": lambda f: lambda w: cr.vmap(mapped(f))(BATCH),
    "hessian of vmap": lambda f: cr.hessian(lambda w: mapped(f)(w).sum()),
    "jacobian of vmap": lambda f: cr.jacobian(mapped(f)),
}

# Where the compiler is: nowhere, inside of the transform, or around it.
PLACES: dict[str, Callable[[Function, Any], Function]] = {
    "eager": lambda f, transform: transform(f),
    "inside": lambda f, transform: transform(cr.compile(f)),
    "around": lambda f, transform: cr.compile(transform(f)),
    "native inside": lambda f, transform: transform(cr.compile(f, backend="native")),
}


def leaves(tree: Any) -> list[Any]:
    return [leaf.detach().numpy() for _, leaf in pytree.leaves(tree)]


_SLOW = ("jvp of jvp", "jacobian of gradient of squares", "vmap of hessian", "hessian of vmap")


def _situations() -> Iterator[tuple[str, str, str]]:
    for name, transform, place in itertools.product(FUNCTIONS, TRANSFORMS, PLACES):
        if place == "native inside" and (name, transform) not in _NATIVE:
            continue  # they compile for long
        if name == "nested scan" and (transform in _SLOW or "jvp" in transform):
            continue
        if place == "around" and name.startswith("cond") and "vmap" in transform:
            continue  # only eager mode knows the value of the condition
        yield name, transform, place


_NATIVE = [("checkpoint", "both orders"), ("cond of two", "jvp")]


@pytest.mark.sampled(13)
@pytest.mark.parametrize(("name", "transform", "place"), list(_situations()))
def test_transforms_of_control_flow(name: str, transform: str, place: str) -> None:
    if place == "native inside":
        pytest.importorskip("llvmlite")
    function, wanted = FUNCTIONS[name]
    got = leaves(PLACES[place](function, TRANSFORMS[transform])(X))
    for a, b in zip(got, leaves(TRANSFORMS[transform](wanted)(X)), strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)


@pytest.mark.parametrize("transform", ["grad", "both orders", "vmap of hessian"])
@pytest.mark.parametrize("place", ["inside", "around"])
def test_transforms_of_a_scan_whose_steps_use_vmap(transform: str, place: str) -> None:
    def function(w: cr.Tensor, scan: Any = cr.scan) -> cr.Tensor:
        slopes = cr.vmap(cr.grad(lambda z, c: (z * z * z * c).sum()), (0, None))
        xs = SLICES.reshape(3, 1, 1) * w.reshape(2, 1)
        c, ys = scan(lambda c, x: (c + slopes(x, c).sum(), slopes(x, c)), w[0], xs)
        return c + (ys * w.reshape(2, 1)).sum()

    def loop(f: Any, c: Any, xs: Any) -> Any:
        ys = []
        for x in xs:
            c, y = f(c, x)
            ys.append(y)
        return c, cr.stack(ys)

    wanted = leaves(TRANSFORMS[transform](lambda w: function(w, loop))(X))
    for a, b in zip(leaves(PLACES[place](function, TRANSFORMS[transform])(X)), wanted, strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-12)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_with_two_orders_are_differentiated_outside(name: str) -> None:
    """A compiled function returns a value and its gradient, and both are differentiated."""

    def both(f: Function) -> Function:
        def function(w: cr.Tensor) -> Any:
            y = f(w)
            return y, *cr.autograd_grad(y, w, create_graph=True)

        return function

    found = []
    for function in (both(FUNCTIONS[name][1]), cr.compile(both(FUNCTIONS[name][0]))):
        w = X.detach().requires_grad_()
        y, g = function(w)
        (second,) = cr.autograd_grad((g * g).sum() + y * y, w, create_graph=True)
        (third,) = cr.autograd_grad((second * second).sum(), w)
        found.append(leaves([y, g, second, third]))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, 1e-9)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_a_checkpointed_scan_draws_the_same_numbers_again_under_vmap(randomness: str) -> None:
    def function(checkpoint: bool) -> Any:
        def one(w: cr.Tensor) -> cr.Tensor:
            def noisy(c: Any, x: Any) -> Any:
                c = (c * x * (1 + cr.rand((), dtype=cr.float64))).sin()
                return c, c * c

            c, ys = cr.scan(noisy, w[0] * w[1], SLICES, checkpoint=checkpoint)
            return c * ys.sum()

        cr.manual_seed(0)
        w = BATCH.detach().requires_grad_()
        y = cr.vmap(one, randomness=randomness)(w)
        state = cr.get_rng_state()
        (g,) = cr.autograd_grad(y.sum(), w)
        now = cr.get_rng_state()
        assert str(state) == str(now)
        return leaves([y, g])

    for a, b in zip(function(True), function(False), strict=True):
        np.testing.assert_allclose(a, b, 1e-12)


def test_a_checkpointed_scan_saves_less_under_vmap() -> None:
    counts = []
    for checkpoint in (False, True):
        saved: list[int] = []

        def pack(t: cr.Tensor, saved: list[int] = saved) -> cr.Tensor:
            saved.append(1)
            return t

        w = BATCH.detach().requires_grad_()
        with cr.saved_tensors_hooks(pack, lambda t: t):
            cr.vmap(scanned(checkpoint, False))(w)
        counts.append(len(saved))
    assert counts[1] < counts[0]
