"""Python features in compiled functions: custom functions, hooks, modes, views, threads."""

from __future__ import annotations

import contextlib
import gc
import runpy
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as cnp
from chainrule.autograd.tensor import make
from chainrule.backend import namespace
from chainrule.compiler.tracing import names, run, trace
from chainrule.compiler.tracing.namespace import SYMBOL_XP
from chainrule.interrupts import without_collector
from chainrule.primitives.primitive import TABLE
from helpers.compile_comparison import agree


def values(*numbers: float) -> cr.Tensor:
    return cr.tensor(numbers, dtype=cr.float64)


def leaf(*numbers: float) -> cr.Tensor:
    return cr.tensor(numbers, dtype=cr.float64, requires_grad=True)


# --- custom functions -----------------------------------------------------------------------------


@cr.autograd_function
def scaled_exp(ctx: Any, x: Any, scale: Any, power: int = 1) -> Any:
    out = (x * scale).exp() ** power
    ctx.save_for_backward(x=x, scale=scale, out=out)
    ctx.power = power
    return out


@scaled_exp.backward
def _(ctx: Any, g: Any) -> Any:
    saved, needs = ctx.saved_variables, ctx.needs_input_grad
    slope = g * saved.out * ctx.power
    return {
        "x": slope * saved.scale if needs.x else None,
        "scale": slope * saved.x if needs.scale else None,
    }


@scaled_exp.jvp
def _(ctx: Any, x: Any, scale: Any, power: Any = None) -> Any:
    saved = ctx.saved_variables
    moved = 0 if x is None else x * saved.scale
    return (moved + (0 if scale is None else scale * saved.x)) * saved.out * ctx.power


class Cube(cr.autograd.Function):
    """PyTorch's form."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


@cr.autograd_function
def doubled_in_place(ctx: Any, x: Any) -> Any:
    x.mul_(2)
    ctx.mark_dirty(x)
    return x


@doubled_in_place.backward
def _(ctx: Any, g: Any) -> Any:
    return g * 2


@cr.autograd_function
def with_numbers(ctx: Any, x: Any) -> Any:
    order = x.argsort()
    ctx.mark_non_differentiable(order)
    ctx.save_for_backward(order=order)
    return x[order] * 2, order


@with_numbers.backward
def _(ctx: Any, g: Any, _order: Any) -> Any:
    out = cr.zeros_like(g)
    out[ctx.saved_variables.order] = g * 2
    return out


@cr.autograd_function
@cr.once_differentiable
def in_numpy(ctx: Any, x: Any) -> Any:
    array = x.detach().numpy()
    ctx.array = array
    return cr.tensor(np.sin(array))


@in_numpy.backward
def _(ctx: Any, g: Any) -> Any:
    return g * cr.tensor(np.cos(ctx.array))


CUSTOM: dict[str, Callable[..., Any]] = {
    "a decorator": lambda x, y: scaled_exp(x, y),
    "of one that needs no gradient": lambda x, y: scaled_exp(x.detach(), y, 2),
    "by keywords": lambda x, y: scaled_exp(scale=y, x=x, power=2),
    "PyTorch's form": lambda x, y: Cube.apply(x) * y,
    "a pair of functions": lambda x, y: cr.autograd_function(_forward, _backward)(x) * y,
    "two outputs": lambda x, y: with_numbers(x * y),
    "in place": lambda x, y: doubled_in_place(x * y) + x,
    "in NumPy": lambda x, y: in_numpy(x * y),
    "none of it used": lambda x, y: (scaled_exp(x, y), y * 2)[1],
}


def _forward(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x=x)
    return x.sin()


def _backward(ctx: Any, g: Any) -> Any:
    return g * ctx.saved_variables.x.cos()


@pytest.mark.parametrize("name", CUSTOM)
def test_custom_functions(name: str) -> None:
    agree(CUSTOM[name], (values(0.5, -1.0, 2.0), values(1.0, 0.25, -0.5)), {})


@pytest.mark.parametrize("name", ["a decorator", "PyTorch's form", "a pair of functions"])
def test_second_derivatives_of_custom_functions(name: str) -> None:
    def second(x: Any, y: Any) -> Any:
        g = cr.autograd_grad(CUSTOM[name](x, y).sum(), [x, y], create_graph=True)
        return cr.autograd_grad((g[0] * g[1]).sum(), [x, y])

    x, y = leaf(0.5, -1.0), leaf(1.0, 0.25)
    wanted = second(x, y)
    compiled = cr.compile(second)
    for _ in range(2):
        for a, b in zip(compiled(x, y), wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy())


def test_second_derivatives_from_outside() -> None:
    compiled = cr.compile(lambda x, y: (x * y).sin() * scaled_exp(x, y))
    x, y = leaf(0.5, -1.0), leaf(1.0, 0.25)
    for _ in range(2):
        assert cr.gradcheck(compiled, (x, y))
        assert cr.gradgradcheck(compiled, (x, y))


def test_recorded_gradients_of_arguments_that_depend_on_each_other() -> None:
    square = cr.tensor(0.0)

    def product(a: Any, b: Any) -> Any:
        return a.sin() * b + a * square, b * 2

    for f in (product, cr.compile(product)):
        x, y = leaf(0.5, -1.0), leaf(1.0, 0.25)
        square = y * y  # a tensor from outside, made of what is an argument, too
        total = sum(part.sum() for part in f(x * y, y))
        first = cr.autograd_grad(total, [x, y], create_graph=True)
        second = cr.autograd_grad(first[0].sum() + (first[1] * x).sum(), [x, y])
        found = [t.tolist() for t in (*first, *second)]
        if f is product:
            expected = found
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_forward_mode_from_outside() -> None:
    function = cr.compile(lambda x, y: ((x * y).sin() * scaled_exp(x, y), x.sum()))
    x, t = values(0.5, -1.0), values(2.0, 1.0)

    def around(f: Callable[..., Any], x: Any) -> Any:
        y = x.exp()  # tangents arrive at both arguments, one of them made of the other
        first, second = f(x * y, y)
        return first * y, second

    for _ in range(2):
        found = cr.jvp(lambda x: around(function, x), x, t)
        wanted = cr.jvp(lambda x: around(function.function, x), x, t)
        for a, b in zip((*found[0], *found[1]), (*wanted[0], *wanted[1]), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy())


def test_forward_mode_over_and_under_other_passes() -> None:
    function = cr.compile(lambda x: (x.sin() * x.exp()).sum())

    def gradient(f: Any, x: Any) -> Any:
        return cr.autograd_grad(f(x), x, create_graph=True)[0]

    def curvature(f: Any, x: Any) -> Any:
        return cr.jvp(lambda x: cr.jvp(f, x, cr.ones_like(x))[1], x, cr.ones_like(x))[1]

    x, t = leaf(0.5, -1.0), values(2.0, 1.0)
    for f in (function, function):
        found = cr.jvp(lambda x, f=f: gradient(f, x), x, t)[1]
        wanted = cr.jvp(lambda x: gradient(function.function, x), x, t)[1]
        np.testing.assert_allclose(found.detach().numpy(), wanted.detach().numpy())
        slope = cr.jvp(f, x, t)[1]
        (back,) = cr.autograd_grad(slope, x)
        np.testing.assert_allclose(back.detach().numpy(), wanted.detach().numpy())
        assert curvature(f, x).item() == pytest.approx(curvature(function.function, x).item())


def test_forward_mode_goes_through_what_was_drawn() -> None:
    def noisy(x: cr.Tensor) -> cr.Tensor:
        return (x * cr.rand(2)).exp()

    found = []
    for function in (noisy, cr.compile(noisy)):
        cr.manual_seed(0)
        found.append(cr.jvp(function, values(1.0, 2.0), values(1.0, 0.5)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-6)


def test_forward_mode_goes_through_what_writes() -> None:
    found = []
    for wrap in (lambda f: f, cr.compile):
        state = values(1.0, 2.0)

        def counting(x: cr.Tensor, state: cr.Tensor = state) -> cr.Tensor:
            y = (x + state).sin()
            state.add_(1.0)
            return y.exp() * x

        function = wrap(counting)
        found.append([cr.jvp(function, values(1.0, 2.0), values(1.0, 0.5)) for _ in range(2)])
    for eager, compiled in zip(*found, strict=True):
        for a, b in zip(eager, compiled, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-6)


# --- derivatives inside ---------------------------------------------------------------------------


def _hessian_vector(x: Any, y: Any) -> Any:
    (g,) = cr.autograd_grad((x * x * y).exp().sum(), x, create_graph=True)
    (h,) = cr.autograd_grad(g, x, y, create_graph=True)
    return h, g


def _penalty(x: Any, y: Any) -> Any:
    (g,) = cr.autograd_grad((x * y).tanh().sum(), x, create_graph=True)
    return (g**2).sum() + (x * y).sum()


def _forward_mode(x: Any, y: Any) -> Any:
    return cr.jvp(lambda a: a.sin() * y + scaled_exp(a, y), x, y.detach())


def _some_without_grad(x: Any, y: Any) -> Any:
    with cr.no_grad():
        z = x * y
        with cr.enable_grad():
            w = x * 2
    return z * w, z.requires_grad, w.requires_grad, cr.is_grad_enabled()


def _decorated(x: Any, y: Any) -> Any:
    @cr.no_grad()
    def frozen(a: Any) -> Any:
        return a * 3

    return frozen(x) * y


def _cut(x: Any, y: Any) -> Any:
    return (x.detach() * y).requires_grad_().sum() * x


def _by_name(x: Any, y: Any) -> Any:
    return cr.autograd_grad((x * y).sum(), {"x": x, "y": y})


def _unused(x: Any, y: Any) -> Any:
    return cr.autograd_grad((x * 2).sum(), [x, y], allow_unused=True)


def _partly(x: Any, y: Any) -> Any:
    loss = (x * y).sum()
    loss.backward(inputs=[x], retain_graph=True)
    loss.backward()
    return x.grad * 1, y.grad * 1


DERIVATIVES = [
    *(_hessian_vector, _penalty, _forward_mode, _some_without_grad, _decorated, _by_name),
    *(_unused, _partly),
]


@pytest.mark.parametrize("function", DERIVATIVES, ids=lambda f: f.__name__)
def test_derivatives_and_modes(function: Callable[..., Any]) -> None:
    x, y = leaf(0.5, -1.0), leaf(1.0, 0.25)
    compiled = cr.compile(function)
    for _ in range(3):
        x.grad = y.grad = None
        wanted = list(_flat(function(x, y)))
        x.grad = y.grad = None
        got = list(_flat(compiled(x, y)))
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            if isinstance(b, cr.Tensor):
                np.testing.assert_allclose(a.numpy(force=True), b.numpy(force=True))
            else:
                assert a == b


def _flat(result: Any) -> Any:
    if isinstance(result, dict):
        result = list(result.values())
    for part in result if isinstance(result, tuple | list) else [result]:
        yield from _flat(part) if isinstance(part, tuple | list) else [part]


def test_gradients_accumulate_in_the_tensors_that_are_there() -> None:
    def step(w: Any, x: Any) -> None:
        (w * x).sum().backward()

    compiled, w = cr.compile(step), leaf(1.0, 2.0)
    compiled(w, values(1.0, 1.0))
    held = w.grad
    for number in range(4):
        compiled(w, values(1.0, float(number)))
    assert w.grad is held
    assert w.grad.tolist() == [5.0, 7.0]
    w.grad.zero_()
    compiled(w, values(3.0, 3.0))
    assert w.grad.tolist() == [3.0, 3.0]


# --- rules that ran before ------------------------------------------------------------------------


def test_a_rule_runs_once_for_all_steps_of_the_same_types(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = TABLE["sin"].plan((True,))
    calls = []
    vjp = plan.vjp
    monkeypatch.setattr(plan, "vjp", lambda *args: (calls.append(args[0]), vjp(*args))[1])

    def waves(x: Any) -> Any:
        for _ in range(20):
            x = cr.sin(x) * x
        return x

    agree_in_derivatives(waves)
    assert calls.count(SYMBOL_XP) == 1


def agree_in_derivatives(function: Callable[[Any], Any]) -> None:
    x = values(0.3, 0.6, 0.2, 0.9).reshape(2, 2)
    compiled = cr.compile(cr.value_and_grad(lambda x: function(x).sum()), backend="numpy")
    eager = cr.value_and_grad(lambda x: function(x).sum())
    for got, wanted in zip(compiled(x), eager(x), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x + x * (x + 1) + (x + 2) * x,  # one value twice, and two values
        lambda x: x * (x + 1) + x * x,
        lambda x: (x * 2) * 3.0 * -0.0 + (x * 0.0).exp() * x,
        lambda x: x**2 + x**3 + x**0.5,
        lambda x: x.sum(0) * x.sum(1) + x.sum(0, keepdim=True) + x.sum(1, keepdim=True),
        lambda x: x.T @ x + x @ x.T + x @ x,
        lambda x: x[[True, False]] + x[[False, True]] + x[0] + x[1],
        lambda x: cr.where(x > 0.5, x, x * x) + cr.where(x > 0.25, x * x, x),
        lambda x: cr.stack([x[i, j] * x[j, i] for i in range(2) for j in range(2)]),
        lambda x: x.to(cr.float32).to(cr.float64) * x + x.to(cr.float64),
        lambda x: sum(a * k + a * b for k in (2, 3, 5) for a, b in [(x * k).split(1), x.split(1)]),
        lambda x: sum(a.sum() * b[k % 2] for k in (0, 1, 2) for a, b in [cr.linalg.eigh(x + x.T)]),
        lambda x: x[0] * x[-1] + x[1] * x[-2] + x[0, -1] * x[-1:, 0] + x[:1, 1] * x[1:, -2],
    ],
)
def test_a_rule_for_other_arguments_is_another(function: Callable[[Any], Any]) -> None:
    agree_in_derivatives(function)


def test_gradients_by_a_repeated_rule_have_memory_of_their_own() -> None:
    def gradients(x: Any, y: Any) -> Any:
        g = cr.ones_like(x)
        first = cr.autograd_grad(x.T, x, g.T)[0]
        second = cr.autograd_grad(y.T, y, g.T)[0]
        third = first.clone()
        second.mul_(3.0)
        return first, second, third, g

    args = [values(1.0, 2.0, 3.0, 4.0).reshape(2, 2).requires_grad_() for _ in range(2)]
    for got, wanted in zip(cr.compile(gradients)(*args), gradients(*args), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_repeated_rule_knows_the_order_in_memory() -> None:
    def orders(x: Any) -> Any:
        g = cr.ones_like(x)
        found = [cr.autograd_grad(x.T, x, each)[0] for each in (g, g.T)]
        return [x * (1.0 if each.is_contiguous() else 2.0) for each in found]

    matrix = values(1.0, 2.0, 3.0, 4.0).reshape(2, 2)
    for x, factors in ((matrix.clone(), (1.0, 1.0)), (matrix.T.detach(), (2.0, 1.0))):
        x.requires_grad_()
        for got, factor in zip(cr.compile(orders)(x), factors, strict=True):
            np.testing.assert_array_equal(got.detach(), x.detach() * factor)
        for got, factor in zip(orders(x), factors, strict=True):
            np.testing.assert_array_equal(got.detach(), x.detach() * factor)


# --- what the user's code reads -------------------------------------------------------------------

FACTOR = 2.0


def times_factor(x: Any) -> Any:
    return x * FACTOR


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_code_after_operations_and_their_errors_is_seen(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "FACTOR", 2.0)

    def function(x: Any) -> Any:
        x = cnp.sin(x) + x @ np.eye(2) if kind == "array" else cr.sin(x) + x * 2
        with contextlib.suppress(ValueError):
            x = x + (np.ones(7) if kind == "array" else cr.ones(7))
        return times_factor(x)

    x = cnp.array([0.5, 1.0]) if kind == "array" else values(0.5, 1.0)
    compiled = cr.compile(function)
    before = compiled(x)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    np.testing.assert_allclose(compiled(x) / before, 1.5)


def test_hooks_of_saved_tensors_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "FACTOR", 2.0)

    def gradient(x: Any) -> Any:
        with cr.saved_tensors_hooks(times_factor, lambda x: x):
            y = x * x
        return cr.autograd_grad(y.sum(), x)[0]

    compiled = cr.compile(gradient)
    x = leaf(1.0, 2.0)
    np.testing.assert_allclose(compiled(x), gradient(x))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    np.testing.assert_allclose(compiled(x), gradient(x))


@pytest.mark.parametrize("place", ["function", "hook", "pre-hook", "post-hook"])
def test_code_of_users_in_a_backward_pass_is_seen(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of what is called is put together at run time, so that only watching tells."""
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    module = sys.modules[__name__]

    def scaled(g: Any) -> Any:
        return getattr(module, "_".join(["times", "factor"]))(g)

    @cr.autograd_function
    def same(ctx: Any, x: Any) -> Any:
        return x * 1.0

    @same.backward
    def _(ctx: Any, g: Any) -> Any:
        return scaled(g) if place == "function" else g

    def gradient(x: Any) -> Any:
        y = same((x * x).sin())
        if place == "hook":
            y.register_hook(scaled)
        elif place == "pre-hook":
            y.grad_fn.register_prehook(lambda grads: (scaled(grads[0]),))
        elif place == "post-hook":
            y.grad_fn.register_hook(lambda grads, _: (scaled(grads[0]),))
        return cr.autograd_grad((y * x).sum(), x)[0]

    compiled = cr.compile(gradient)
    x = leaf(1.0, 2.0)
    np.testing.assert_allclose(compiled(x), gradient(x))
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    np.testing.assert_allclose(compiled(x), gradient(x))


@pytest.mark.parametrize("steps", [1, 40])  # so many that the backward pass rolls them up
def test_a_trace_is_freed_without_the_collector(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = []

    def loss(x: Any) -> Any:
        for _ in range(steps):
            x = cr.sin(x) * x + 0.5
        return x.sum()

    class Watched(trace.Trace):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            traces.append(weakref.ref(self))

    monkeypatch.setattr(run, "Trace", Watched)
    gc.collect()
    gc.disable()
    try:
        cr.compile(cr.grad(loss))(values(1.0, 2.0))
        assert [each() for each in traces] == [None]
    finally:
        gc.enable()


# --- hooks ----------------------------------------------------------------------------------------


def test_hooks_set_inside() -> None:
    def function(x: Any, y: Any) -> Any:
        z = x * y
        z.register_hook(lambda g: g * 3)
        z.retain_grad()
        z.sum().backward()
        return z.grad * 1, x.grad * 1

    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    compiled = cr.compile(function)
    for _ in range(2):
        x.grad = y.grad = None
        wanted = [t.tolist() for t in function(x, y)]
        x.grad = y.grad = None
        assert [t.tolist() for t in compiled(x, y)] == wanted


def test_hooks_of_leaves_are_part_of_what_is_compiled() -> None:
    x = leaf(1.0, 2.0)
    compiled = cr.compile(lambda: (x * x).sum().backward())
    compiled()
    handle = x.register_hook(lambda g: g * 10)
    x.grad = None
    compiled()
    assert x.grad.tolist() == [20.0, 40.0]
    factor = 5.0
    other = x.register_hook(lambda g: g * factor)
    x.grad = None
    compiled()
    assert x.grad.tolist() == [100.0, 200.0]
    factor = 2.0
    x.grad = None
    compiled()
    assert x.grad.tolist() == [40.0, 80.0]
    handle.remove()
    other.remove()
    x.grad = None
    compiled()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_hook_after_accumulation_may_take_the_step() -> None:
    x = leaf(1.0, 2.0)

    def descend(w: Any) -> None:
        with cr.no_grad():
            w.sub_(0.25 * w.grad)
        w.grad = None

    x.register_post_accumulate_grad_hook(descend)
    compiled = cr.compile(lambda: (x * x).sum().backward())
    for wanted in ([0.5, 1.0], [0.25, 0.5], [0.125, 0.25]):
        compiled()
        assert x.tolist() == wanted
        assert x.grad is None


def test_a_hook_on_a_leaf_and_a_result_differentiated_outside() -> None:
    x = leaf(1.0)
    x.register_hook(lambda g: g * 10)
    with pytest.raises(cr.CompileError, match="a tensor with a hook"):
        cr.compile(lambda: x * 2)()


# --- views and writes -----------------------------------------------------------------------------


def _through_views(x: Any, y: Any) -> Any:
    z = x * 2
    z[1:] = y[:1]
    row = z.view(1, -1)
    row.mul_(3)
    z.t_() if z.ndim > 1 else None
    return z, row


def _accumulated(x: Any, y: Any) -> Any:
    total = cr.zeros(2, dtype=cr.float64)
    for i in range(3):
        total[0] += (x[0] * i).sin()
        total[1] -= y[1] ** i
    return total


def _turned_inside(x: Any, y: Any) -> Any:
    z = cr.stack([x, y]) * 1
    z.t_()
    z[0] += 1
    return z.unsqueeze_(0).squeeze_(0) * 2


def _clamped(x: Any, y: Any) -> Any:
    z = (x * y).clamp_(min=-0.1)
    z += 1
    z *= y
    z **= 2
    return z.add_(x, alpha=2).sigmoid_()


def _real_part(x: Any, y: Any) -> Any:
    z = cr.complex(x, y)
    return cr.view_as_real(z).sum(-1) * z.real + z.imag


def _reshaped(x: Any, y: Any) -> Any:
    z = cr.stack([x, y]) * 1
    copied, viewed, first = z.T.reshape(-1), z.reshape(4), z.T[None].squeeze(0)
    copied += 1
    viewed *= 2
    first[0] -= 3
    z[:, :1].reshape(2).add_(5)
    return copied, viewed, z, z.T.contiguous().mul_(2), z, z.T.is_contiguous()


def _fewer_dimensions(x: Any, y: Any) -> Any:
    z, total = x * 1, y.sum()
    z.copy_(y[None])
    total.copy_(z[None, :1])
    return z, total


def _constant(x: Any, y: Any) -> Any:
    table = cr.from_numpy(np.array([[1.0, 2.0], [3.0, 4.0]], order="F"))
    table.T.reshape(-1).mul_(2)
    return table * x + y


def _copies(x: Any, y: Any) -> Any:
    turned = cr.stack([x, y]).T
    found = []
    for copy in (turned.clone(), x.expand(3, 2).clone(), turned.float(), cr.asarray(turned)):
        copy.reshape(-1).mul_(2)  # of a view where that is one, else of a copy
        found.append(copy)
    return found


def _windows(x: Any, y: Any) -> Any:
    rows = cr.stack([x, y, x * y, x + y], dim=1)
    found = []
    for size, step in ((2, 2), (2, 1), (3, 1)):
        z = rows * 1
        flat, turned = z.unfold(1, size, step).reshape(-1), z.t().unfold(0, size, step).flatten()
        flat.mul_(2)  # of windows that don't overlap, and of copies
        turned.add_(1)
        found += [z, flat, turned]
    return found


def _parts(x: Any, y: Any) -> Any:
    z = cr.complex(cr.stack([x, y]), cr.stack([y, x]))
    real, both = z.real.reshape(-1), cr.view_as_real(z).reshape(-1)
    real.mul_(2)
    both.add_(1)
    return z, real, both


@pytest.mark.parametrize(
    "function",
    [
        _windows,
        _parts,
        _reshaped,
        _through_views,
        _accumulated,
        _turned_inside,
        _clamped,
        _real_part,
        _copies,
        _constant,
        _fewer_dimensions,
    ],
)
def test_views_and_writes_inside(function: Callable[..., Any]) -> None:
    agree(function, (values(0.5, -1.0), values(1.0, 0.25)), {})


def test_a_write_to_what_may_be_a_copy_is_refused() -> None:
    def function(x: Any, y: Any) -> Any:
        z = (x.T + y).reshape(-1)
        return z.mul_(2)

    with pytest.raises(cr.CompileError, match="may be a view or a copy"):
        cr.compile(function)(cr.ones(2, 2), cr.ones(2, 2))
    with pytest.raises(cr.CompileError, match="may be a view or a copy"):
        cr.compile(lambda x: x[..., [0, 1]].reshape(-1).mul_(2))(cr.ones(2, 3, 4))
    kept = cr.compile(lambda x, y: (x.T + y).reshape(-1).clone().mul_(2))
    assert kept(cr.ones(2, 2), cr.ones(2, 2)).tolist() == [4.0] * 4


def test_a_write_is_refused_for_its_order_before_its_grad_mode() -> None:
    """Eagerly the reshaped tensor is a copy, and such a write is right."""

    def function(w: Any, x: Any) -> Any:
        with cr.no_grad():
            flat = (x.T * 1).reshape(-1)
        return flat.mul_(w.sum()).sum()

    w, x = cr.ones(2, requires_grad=True), cr.tensor(np.ones((2, 3), order="F"))
    assert function(w, x).item() == 12
    with pytest.raises(cr.CompileError, match="may be a view or a copy"):
        cr.compile(function)(w, x)


def test_writes_to_arguments_and_to_what_is_closed_over() -> None:
    buffers = [[cr.zeros(2), cr.zeros(2, dtype=cr.int64)] for _ in range(2)]

    def stepper(mean: Any, count: Any) -> Callable[[Any], Any]:
        def step(x: Any) -> Any:
            count.add_(1)
            mean[0] = x.sum()
            mean[1:].mul_(0.5).add_(x[1:])
            x.zero_()
            return mean * 2, mean

        return step

    eager, compiled = stepper(*buffers[0]), cr.compile(stepper(*buffers[1]))
    for number in range(4):
        xs = [cr.tensor([1.0, float(number)]) for _ in range(2)]
        wanted, got = eager(xs[0]), compiled(xs[1])
        assert got[1] is buffers[1][0]
        for a, b in zip([*wanted, xs[0], *buffers[0]], [*got, xs[1], *buffers[1]], strict=True):
            assert a.tolist() == b.tolist()


@pytest.mark.parametrize("write", [lambda x: x.mul_(2), lambda x: x[0].fill_(1)])
def test_a_write_to_read_only_memory_is_refused_as_eagerly(write: Callable[..., Any]) -> None:
    locked = np.ones((2, 3))
    locked.flags.writeable = False
    for x in (cr.from_numpy(locked), cr.ones(3).expand(2, 3)):
        for function in (write, cr.compile(write)):
            with pytest.raises(cr.InPlaceError, match="the memory is read-only"):
                function(x)


def test_a_write_to_a_leaf_that_requires_grad_is_refused_as_eagerly() -> None:
    with pytest.raises(cr.InPlaceError, match="leaf"):
        cr.compile(lambda x: x.mul_(2))(leaf(1.0))


def test_a_write_to_a_saved_value_is_found_as_eagerly() -> None:
    def function(x: Any) -> None:
        y = x.exp()
        y.mul_(2)
        z = y * y
        with cr.no_grad():
            y.add_(1)
        z.sum().backward()

    with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
        cr.compile(function)(leaf(1.0))


# --- arguments ------------------------------------------------------------------------------------


def test_one_tensor_as_two_arguments() -> None:
    compiled = cr.compile(lambda a, b: (a * b).sum().backward())
    x, y = leaf(2.0), leaf(3.0)
    compiled(x, x)
    assert x.grad.tolist() == [4.0]
    compiled(x, y)
    assert y.grad.tolist() == [2.0]
    x.grad = None
    compiled(x, x)
    assert x.grad.tolist() == [4.0]


def test_arguments_with_a_history_of_their_own() -> None:
    compiled = cr.compile(lambda a, b: (a * b).sin().sum())
    x, y = leaf(2.0, 1.0), leaf(3.0, 0.5)
    for _ in range(3):
        gs = cr.autograd_grad(compiled(x * x, (x * y)[:]), [x, y])
        wanted = cr.autograd_grad((x * x * (x * y)).sin().sum(), [x, y])
        for a, b in zip(gs, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy())


def test_methods_and_callable_objects() -> None:
    class Model:
        def __init__(self, weight: float) -> None:
            self.weight = leaf(weight)

        @cr.compile
        def forward(self, x: Any) -> Any:
            return x * self.weight

        def __call__(self, x: Any) -> Any:
            return self.forward(x) + 1

    one, two = Model(2.0), Model(5.0)
    x = values(3.0)
    assert [one.forward(x).item(), two.forward(x).item(), one.forward(x).item()] == [6, 15, 6]
    compiled = cr.compile(two)
    assert [compiled(x).item() for _ in range(2)] == [16, 16]
    compiled(x).sum().backward()
    assert two.weight.grad.tolist() == [3.0]
    assert cr.compile(one.forward)(x).item() == 6
    one.weight = leaf(7.0)
    assert one.forward(x).item() == 21


def test_a_compiled_method_has_what_a_compiled_function_has(tmp_path: Any) -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = values(2.0, 3.0)

        @cr.compile
        def forward(self, x: Any) -> Any:
            return x @ self.weight

    model, x = Model(), values(1.0, 10.0)
    assert model.forward(x).item() == 32
    assert "x @ weight" in model.forward.source
    assert [row.seconds > 0 for row in cr.profile(model.forward, x).rows] == [True]
    module = runpy.run_path(str(cr.export(model.forward, tmp_path / "model.py", x)))
    assert module["forward"](x.numpy()) == 32


def test_compiled_functions_that_call_each_other() -> None:
    inner = cr.compile(lambda x: x.exp())
    outer = cr.compile(lambda x: inner(x) * inner(2 * x))
    x = leaf(0.5)
    for _ in range(2):
        x.grad = None
        outer(x).sum().backward()
        assert x.grad.item() == pytest.approx(3 * np.exp(1.5))


def test_generators_and_iteration() -> None:
    def function(x: Any, rows: Any) -> Any:
        total = sum((row * i for i, row in enumerate(rows)), x)
        return total + sum(a * b for a, b in zip(x, rows[0], strict=True))

    agree(function, (values(1.0, 2.0), cr.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=cr.float64)), {})


# --- values that are unknown while tracing --------------------------------------------------------


def _if(x: Any) -> Any:
    if x.sum() > 0:  # the line that is named
        return x
    return -x


def _while(x: Any) -> Any:
    while x.sum() < 10:
        x = x * 2
    return x


UNKNOWN: dict[str, Callable[[Any], Any]] = {
    "if x.sum() > 0": _if,
    "while x.sum() < 10": _while,
    "float(x[0])": lambda x: float(x[0]),
    "int(x[0])": lambda x: int(x[0]),
    "range(x.long()": lambda x: list(range(x.long()[0])),
    "x.tolist()": lambda x: x.tolist(),
    "assert": lambda x: _asserted(x),
    "np.asarray": lambda x: np.asarray(x.detach()),
    "x in": lambda x: x.sum() in [x.max()],
    "max(": lambda x: max(x[0], x[1]),
}


def _asserted(x: Any) -> Any:
    assert x.sum() > 0
    return x


@pytest.mark.parametrize("text", UNKNOWN)
def test_values_that_python_asks_for(text: str) -> None:
    with pytest.raises(cr.CompileError) as raised:
        cr.compile(UNKNOWN[text])(cr.tensor([1.0, 2.0]))
    message = str(raised.value)
    assert "only shapes and dtypes are known" in message
    assert f"{__file__}:" in message
    assert text in message
    mends = {"np.asarray": "numpy.stack", "range(x.long()": "loop with cr.scan()"}
    assert mends.get(text, "cr.where() in the place of `if`") in message


@pytest.mark.no_verify("a search of all that this module holds, for a call that is refused")
@pytest.mark.parametrize("text", UNKNOWN)
def test_what_is_refused_leaves_everything_as_it_was(text: str) -> None:
    w, held = leaf(1.0, 2.0), values(3.0, 3.0)
    w.grad = held
    buffer = values(0.0)

    def function(x: Any) -> Any:
        with cr.no_grad():
            w.mul_(2)
            buffer.add_(1)
        w.grad = None
        (w * x).sum().backward()
        with cr.no_grad():
            return UNKNOWN[text](w)

    for _ in range(2):
        with pytest.raises(cr.CompileError):
            cr.compile(function)(values(1.0, 1.0))
        assert w.tolist() == [1.0, 2.0]
        assert w.grad is held
        assert held.tolist() == [3.0, 3.0]
        assert buffer.tolist() == [0.0]
        assert cr.is_grad_enabled()
        assert w._version == buffer._version == 0
    (w * 2).sum().backward()
    assert w.grad.tolist() == [5.0, 5.0]


def test_an_exception_of_the_functions_own_comes_through() -> None:
    w = leaf(1.0)

    def function(x: Any) -> Any:
        with cr.no_grad():
            w.zero_()
        raise KeyError("mine")

    compiled = cr.compile(function)
    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            compiled(values(1.0))
        assert w.tolist() == [1.0]


def test_an_exception_while_it_runs_leaves_the_next_call_alone() -> None:
    compiled = cr.compile(lambda x: cr.linalg.inv(x))
    singular, fine = cr.zeros(2, 2), 2 * cr.eye(2)
    assert compiled(fine).tolist() == [[0.5, 0.0], [0.0, 0.5]]
    with pytest.raises((cr.LinAlgError, np.linalg.LinAlgError)):
        compiled(singular)
    assert compiled(fine).tolist() == [[0.5, 0.0], [0.0, 0.5]]


def test_an_array_that_outlives_its_compilation() -> None:
    kept: list[Any] = []

    def function(x: Any, a: Any) -> Any:
        kept.append(a * 2)
        return x

    cr.compile(function)(values(1.0), np.ones(2))
    with pytest.raises(cr.CompileError, match="outlived its compilation"):
        kept[0] + 1
    with pytest.raises(cr.CompileError, match="outlived its compilation"):
        kept[0].item()


def test_a_tensor_that_outlives_its_compilation_holds_numbers() -> None:
    kept: list[Any] = []

    def function(x: Any) -> Any:
        kept.append(x * 2)
        return x + 1

    compiled = cr.compile(function)
    for number in range(3):
        compiled(values(float(number)))
        assert kept[-1].tolist() == [2.0 * number]


def test_a_tensor_that_is_kept_and_returned_holds_numbers() -> None:
    losses: list[Any] = []

    def function(x: Any) -> Any:
        losses.append((x * x).sum())
        return losses[-1]

    compiled = cr.compile(function)
    for number in range(3):
        x = leaf(float(number), 1.0)
        compiled(x)
        assert losses[-1].item() == number**2 + 1
        losses[-1].backward()
        assert x.grad.tolist() == [2.0 * number, 2.0]
    assert len(losses) == 3


def test_what_only_the_caller_holds_dies_with_it() -> None:
    compiled = cr.compile(lambda x: x * 2)
    reference = weakref.ref(compiled(values(1.0, 2.0)))
    assert reference() is None


# --- threads and memory ---------------------------------------------------------------------------


def test_several_threads_compile_and_call() -> None:
    @cr.compile
    def loss(w: Any, x: Any) -> Any:
        return ((w * x).sin() * cr.ones(len(x), dtype=cr.float64)).sum()

    failures: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for number in range(30):
                a = rng.standard_normal(3 + number % 3)
                w, x = leaf(*a), values(*a[::-1])
                loss(w, x).backward()
                wanted = np.cos(a * a[::-1]) * a[::-1]
                np.testing.assert_allclose(w.grad.numpy(), wanted)
                y = leaf(*a)
                (y * y).sum().backward()  # eagerly, while others may be tracing
                np.testing.assert_allclose(y.grad.numpy(), 2 * a)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(loss._entries) == 3


def test_large_calls_in_several_threads_keep_their_scratch_memory_apart() -> None:
    compiled = cr.compile(lambda x: ((x * 2).exp().sin() + x).tanh().sum(0))
    inputs = [cr.tensor(np.random.default_rng(i).standard_normal((50, 400))) for i in range(4)]
    wanted = [((x * 2).exp().sin() + x).tanh().sum(0).numpy() for x in inputs]
    failures: list[Any] = []

    def work(i: int) -> None:
        for _ in range(20):
            if not np.allclose(compiled(inputs[i]).numpy(), wanted[i]):
                failures.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_memory_does_not_grow() -> None:
    w = leaf(*range(200))

    @cr.compile
    def step(x: Any) -> Any:
        w.grad = None
        loss = ((w * x).tanh() ** 2).sum()
        loss.backward()
        with cr.no_grad():
            w.sub_(0.1 * w.grad)
        return loss

    outside = cr.compile(lambda a, x: (a * x).exp().sum())

    def calls(count: int) -> None:
        for _ in range(count):
            x = values(*range(200))
            step(x)
            outside(w, x).backward()

    calls(20)
    gc.collect()
    tracemalloc.start()
    calls(20)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    calls(200)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert after - before < 20_000


def test_results_free_what_they_were_made_of() -> None:
    compiled = cr.compile(lambda x: x.exp())
    x = leaf(1.0)
    y = compiled(x)
    node = y.grad_fn
    y.sum().backward()
    with pytest.raises(cr.FreedGraphError):
        y.sum().backward()
    assert node.name.endswith("Backward")


def _tried(x: Any) -> Any:
    try:
        return x * 2 if x.sum() > 0 else x
    except RuntimeError:
        return x * 3


def _looked_for(x: Any) -> Any:
    with contextlib.suppress(Exception):
        return cr.tensor(x.tolist())
    return x


def _tried_in_a_loop(x: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        with contextlib.suppress(Exception):
            c = c * c.sum().item()
        return c, None

    return cr.scan(step, x, length=3)[0]


@pytest.mark.parametrize("function", [_tried, _looked_for, _tried_in_a_loop])
def test_a_function_does_not_hide_that_it_asks_for_a_value(function: Any) -> None:
    for _ in range(2):
        with pytest.raises(cr.CompileError, match="a value was asked for"):
            cr.compile(function)(cr.ones(2))
    assert cr.compile(lambda x: x * 2)(cr.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_enabled_again_when_the_last_thread_has_traced(enabled: bool) -> None:
    begun, end = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        end.wait(30)

    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        thread = threading.Thread(target=without_collector, args=(wait,))
        thread.start()
        begun.wait(30)
        without_collector(lambda: None)
        assert not gc.isenabled()
        end.set()
        thread.join()
        assert gc.isenabled() == enabled
    finally:
        end.set()
        (gc.enable if before else gc.disable)()


# --- names and lines of long functions ------------------------------------------------------------


def made_of(lines: int, first: int = 0) -> Callable[[Any], Any]:
    """Return a function of so many lines, each of which binds a name of its own."""
    body = [
        f"    v{first + i} = {f'v{first + i - 1}' if i else 'x'} * {i + 2}" for i in range(lines)
    ]
    text = "\n".join(["def long(x):", *body, f"    return v{first + lines - 1}"])
    scope: dict[str, Any] = {}
    exec(compile(text, f"<long {first}>", "exec"), scope)
    function: Callable[[Any], Any] = scope["long"]
    return function


def test_names_of_functions_that_come_and_go() -> None:
    limit = names._MAX_NAMES
    for first in range(0, 2 * (limit + 5), 2):  # beyond the functions that are remembered
        compiled = cr.compile(made_of(2, first), backend="numpy")
        compiled(values(1.0))
        assert f"v{first} = x * 2" in compiled.source
    assert len(names._NAMES) <= limit


def test_the_instructions_of_a_function_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    read = names._read_names
    monkeypatch.setattr(names, "_read_names", lambda code: calls.append(code) or read(code))
    function = made_of(50, 7)
    cr.compile(function, backend="numpy")(values(1.0))
    cr.compile(function, backend="numpy")(values(1.0, 2.0))
    assert [code.co_name for code in calls].count("long") == 1


def test_rules_may_take_views_of_numpy_arrays() -> None:
    def transposed(x: Any) -> Any:
        turned = namespace(x._array).permute_dims(np.arange(6.0).reshape(2, 3), (1, 0))
        return make(turned, None) * x

    x = cr.ones(3, 2, dtype=cr.float64)
    np.testing.assert_array_equal(cr.compile(transposed)(x), np.arange(6.0).reshape(2, 3).T)


def test_operations_that_repeat_are_those_of_results_before_they_were_written_to() -> None:
    def repeated(x: cr.Tensor) -> list[cr.Tensor]:
        first = x * 2.0
        first[0] = 7.0
        second = x * 2.0
        second[1:].mul_(3.0)
        third, view = x * 2.0, second[1:]
        view.add_(1.0)
        return [first, second, third, second[1:], x * x, x * third, third * third]

    x = cr.tensor([1.0, 2.0, 3.0])
    for found, expected in zip(cr.compile(repeated)(x), repeated(x), strict=True):
        assert found.tolist() == expected.tolist()


def test_what_no_grad_computes_is_a_constant_for_gradients() -> None:
    def f(x: cr.Tensor) -> Any:
        with cr.no_grad():
            y = x * 2
        (gradient,) = cr.autograd_grad((x * y).sum(), x)
        return gradient, y.requires_grad

    x = cr.tensor([1.0, 2.0], requires_grad=True)
    gradient, requires_grad = cr.compile(f, backend="numpy")(x)
    assert gradient.tolist() == [2.0, 4.0]
    assert not requires_grad
