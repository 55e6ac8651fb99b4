"""SEMANTICS 74 and 76: results that can be trusted, and failures that change nothing."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import equal, leaf, memory
from helpers.torch_comparison import same_as_torch

# --- 74: the first order does not depend on create_graph ------------------------------------------

X = np.random.default_rng(0).uniform(0.5, 1.5, (3, 3))
FUNCTIONS = {
    "arithmetic": lambda x: x * x / (x + 1) - 2 / x,
    "powers": lambda x: x**3 + x**0.5 + 2**x + x**x,
    "exponentials": lambda x: x.exp() + x.log() + x.expm1() + x.log1p() + x.log2() + x.log10(),
    "roots": lambda x: x.sqrt() + x.rsqrt() + x.square() + x.reciprocal(),
    "trigonometry": lambda x: (
        x.sin() + x.cos() + x.tan() + x.atan() + (x / 2).asin() + (x / 2).acos()
    ),
    "hyperbolic": lambda x: x.sinh() + x.cosh() + x.tanh() + x.asinh() + (x + 1).acosh(),
    "activations": lambda x: x.relu() + x.sigmoid() + x.softmax(0) + x.log_softmax(1),
    "gelu": lambda x: cr.nn.functional.gelu(x) + cr.nn.functional.gelu(x, approximate="tanh"),
    "kinks": lambda x: x.abs() + x.clamp(0.7, 1.2) + cr.maximum(x, x.T) + cr.minimum(x, x.T),
    "reductions": lambda x: x.sum(0) + x.mean(1) + x.prod(0) + x.var(1) + x.std(0) + x.norm(),
    "extrema": lambda x: x.max() + x.min(0)[0] + x.amax(1) + x.logsumexp(0),
    "cumulative": lambda x: x.cumsum(0) * x.cumprod(1),
    "matmul": lambda x: x @ x.T @ x[0] + x[0] @ x + (x[0] @ x[1]),
    "shaping": lambda x: x.T * x.reshape(9).view(3, 3) * x.flip(0) * x.roll(1),
    "indexing": lambda x: (
        x[0] * x[[0, 2]] * x[x > 0].sum() * x[:, 1] * x.gather(0, x.argmax(0)[None])
    ),
    "joining": lambda x: cr.cat([x, x * 2]).sum() * cr.stack(x.unbind()) * x.split(1)[2],
    "where": lambda x: cr.where(x > 1, x * x, x.exp()) * x.masked_fill(x > 1, 2.0),
    "in place": lambda x: (x * 1).mul_(x).exp_(),
    "setitem": lambda x: [y := x * 1, y.__setitem__(0, x[1] * x[2])][0] * x,
    "casts": lambda x: x.to(cr.float32).to(cr.float64) * x,
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_s74_first_order_is_the_same_to_the_bit(function):
    x = leaf(X)
    weights = cr.from_numpy(np.random.default_rng(1).uniform(-1, 1, function(x).shape))
    (plain,) = cr.autograd_grad(function(x), x, weights)
    (recorded,) = cr.autograd_grad(function(x), x, weights, create_graph=True)
    assert equal(plain, recorded)
    (function(x) * weights).sum().backward(create_graph=True)
    first, x.grad = x.grad, None
    (function(x) * weights).sum().backward()
    assert equal(first, x.grad)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_s74_nor_on_who_else_is_asked(function):
    x = leaf(X)
    y = x * 1
    (alone,) = cr.autograd_grad(function(y).sum(), x)
    y = x * 1
    both = cr.autograd_grad(function(y).sum(), [y, x])
    assert equal(both[0], both[1])
    assert equal(alone, both[1])


# --- 74: the second order raises rather than drops a term -----------------------------------------


def cubed(compute, differentiate, decorate=lambda rule: rule):
    """Return x³ as a custom function."""

    def forward(ctx, x):
        return compute(ctx, x)

    def backward(ctx, g):
        return differentiate(ctx, g)

    return cr.autograd_function(forward, decorate(backward), name="cubed")


def save_input(ctx, x):
    ctx.save_for_backward(x=x)
    return x * x * x


def save_output(ctx, x):
    y = x * x * x
    ctx.save_for_backward(x=x, y=y)
    return y


def save_intermediate(ctx, x):
    square = x * x
    ctx.save_for_backward(square=square)
    return square * x


HONEST = {
    "input": cubed(save_input, lambda ctx, g: 3 * g * ctx.saved_variables.x**2),
    "output": cubed(
        save_output, lambda ctx, g: 3 * g * ctx.saved_variables.y / ctx.saved_variables.x
    ),
}
SEVERED = {
    "intermediate": cubed(save_intermediate, lambda ctx, g: 3 * g * ctx.saved_variables.square),
    "once": cubed(
        save_input, lambda ctx, g: 3 * g * ctx.saved_variables.x**2, cr.once_differentiable
    ),
}


@pytest.mark.parametrize("function", [*HONEST.values(), *SEVERED.values()], ids=[*HONEST, *SEVERED])
@pytest.mark.parametrize("create_graph", [False, True])
def test_s74_the_first_order_of_custom_functions_is_right(function, create_graph):
    x = leaf([2.0])
    (g,) = cr.autograd_grad(function(x), x, create_graph=create_graph)
    assert g.tolist() == [12]


@pytest.mark.parametrize("function", HONEST.values(), ids=HONEST.keys())
def test_s74_the_second_order_is_right(function):
    x = leaf([2.0])
    (g,) = cr.autograd_grad(function(x), x, create_graph=True)
    assert cr.autograd_grad(g, x)[0].tolist() == [12]


@pytest.mark.parametrize("function", SEVERED.values(), ids=SEVERED.keys())
def test_s74_or_it_raises(function):
    x = leaf([2.0])
    (g,) = cr.autograd_grad(function(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"second derivative|differentiate twice"):
        cr.autograd_grad(g, x)
    (g,) = cr.autograd_grad(function(x) * x, x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"second derivative|differentiate twice"):
        g.backward()


@pytest.mark.parametrize("function", SEVERED.values(), ids=SEVERED.keys())
def test_s74_also_where_backward_is_reached_through_another_gradient(function):
    x, w = leaf([2.0]), leaf([3.0])
    (g,) = cr.autograd_grad(function(x) * w, x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"second derivative|differentiate twice"):
        g.backward()


# --- 74: gradcheck's bar --------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1.0001, 0.9999, 2.0, 0.0, -1.0, 1.001])
@pytest.mark.parametrize(
    "function", [cr.sin, cr.exp, lambda x: x * x], ids=["sin", "exp", "square"]
)
def test_s74_gradcheck_catches_a_wrong_factor(function, factor):
    @cr.autograd_function
    def wrong(ctx, x):
        ctx.save_for_backward(x=x)
        return function(x)

    @wrong.backward
    def _(ctx, g):
        with cr.enable_grad():
            x = ctx.saved_variables.x.detach().requires_grad_()
            return cr.autograd_grad(function(x), x, g)[0] * factor

    x = leaf([0.3, 1.1, 2.0], cr.float64)
    assert cr.gradcheck(function, x)
    with pytest.raises(RuntimeError):
        cr.gradcheck(wrong, x)


def test_s74_gradcheck_catches_one_wrong_element_of_many():
    @cr.autograd_function
    def wrong(ctx, x):
        return x * 2

    @wrong.backward
    def _(ctx, g):
        g = g * 2
        g[1, 2] *= 1.0001
        return g

    with pytest.raises(RuntimeError):
        cr.gradcheck(wrong, leaf(X))


def test_s74_gradgradcheck_catches_a_wrong_second_order():
    @cr.autograd_function
    def inner(ctx, x, g):
        ctx.save_for_backward(x, g)
        return 3 * x * x * g

    @inner.backward
    def _(ctx, gg):
        x, g = ctx.saved_variables
        return 6 * x * g * gg * 1.0001, 3 * x * x * gg

    @cr.autograd_function
    def outer(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @outer.backward
    def _(ctx, g):
        return inner(ctx.saved_variables[0], g)

    x = leaf([0.5, 1.5], cr.float64)
    assert cr.gradcheck(outer, x)
    assert cr.gradgradcheck(lambda x: x * x * x, x)
    with pytest.raises(RuntimeError):
        cr.gradgradcheck(outer, x)


# --- 76: a failed operation changes nothing -------------------------------------------------------


def state(tensor):
    return memory(tensor).copy(), tensor._version, tensor.grad_fn, tensor.requires_grad


def unchanged(tensor, before):
    after = state(tensor)
    return equal(after[0], before[0]) and after[1:] == before[1:]


ERRORS = (RuntimeError, IndexError, TypeError, ValueError, MemoryError)
FAILING = {
    "add_ of another size": lambda t: t.add_(cr.ones(7)),
    "add_ that would grow": lambda t: t.add_(cr.ones(4, 2, 3)),
    "add_ of complex": lambda t: t.add_(cr.tensor(1j)),
    "mul_ of another size": lambda t: t.mul_(cr.ones(2, 7)),
    "+= a list": lambda t: t.__iadd__(np.ones(7)),
    "copy_ of another size": lambda t: t.copy_(cr.ones(7)),
    "fill_ of a vector": lambda t: t.fill_(cr.ones(2)),
    "setitem out of range": lambda t: t.__setitem__(9, 0.0),
    "setitem list out of range": lambda t: t.__setitem__([0, 1, 9], 0.0),
    "setitem tensor out of range": lambda t: t.__setitem__(cr.tensor([0, 9]), 0.0),
    "setitem of another size": lambda t: t.__setitem__(0, cr.ones(7)),
    "setitem mask of another size": lambda t: t.__setitem__(cr.ones(7, dtype=cr.bool), 0.0),
    "setitem mask with too many": lambda t: t.__setitem__(t.detach() > 0, cr.ones(5)),
    "setitem of complex": lambda t: t.__setitem__(0, cr.tensor(1j)),
    "setitem of text": lambda t: t.__setitem__(0, "no"),
    "setitem of None": lambda t: t.__setitem__(0, None),
    "setitem too many indices": lambda t: t.__setitem__((0, 0, 0), 1.0),
    "clamp_ without bounds": lambda t: t.clamp_(),
    "masked_fill_ of another size": lambda t: t.masked_fill_(cr.ones(7, dtype=cr.bool), 0.0),
    "sub_ out of memory": lambda t: t.sub_(cr.ones(1).expand(2**45, 2, 3)),
    "view of another size": lambda t: t.view(7),
    "matmul": lambda t: t @ cr.ones(7),
    "a huge result": lambda t: t[0, 0].expand(2**50) * 2.0,
    "requires_grad_": lambda t: t.long().requires_grad_(),
    "grad of another size": lambda t: setattr(t, "grad", cr.ones(7)),
    "detach_ of a view": lambda t: t.T.detach_(),
    "pow_ with a bad exponent": lambda t: t.pow_("no"),
}
TARGETS = {
    "constant": lambda: cr.ones(2, 3),
    "leaf": lambda: cr.ones(2, 3, requires_grad=True),
    "non-leaf": lambda: cr.ones(2, 3, requires_grad=True) * 2,
    "view": lambda: (cr.ones(3, 2, requires_grad=True) * 2).T,
    "expanded": lambda: cr.ones(3, requires_grad=True).expand(2, 3),
    "from numpy": lambda: cr.from_numpy(np.ones((2, 3), np.float32)),
}


@pytest.mark.parametrize("attempt", FAILING.values(), ids=FAILING.keys())
@pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.parametrize("recording", [True, False])
def test_s76_data_version_and_history_stay(attempt, make, recording):
    target = make()
    before = state(target)
    with pytest.raises(ERRORS), cr.set_grad_enabled(recording):
        attempt(target)
    assert unchanged(target, before)
    assert cr.is_grad_enabled()


def test_s76_base_and_siblings_of_a_view_too():
    base = leaf([1.0, 2.0, 3.0]) * 1
    view, sibling = base[:2], base[1:]
    before = [state(t) for t in (base, view, sibling)]
    for attempt in (
        lambda: view.add_(cr.ones(3)),
        lambda: view.__setitem__(5, 0.0),
        lambda: view.mul_(leaf([1.0, 2.0, 3.0])),
    ):
        with pytest.raises(ERRORS):
            attempt()
    assert all(unchanged(t, b) for t, b in zip((base, view, sibling), before, strict=True))
    (view.sum() + sibling.sum()).backward()


def test_s76_a_graph_recorded_before_the_failure_still_works():
    x = leaf([1.0, 2.0])
    h = x * 2
    y = (h * h).sum()
    for attempt in (lambda: h.add_(cr.ones(3)), lambda: h.__setitem__(7, 0.0), lambda: x.exp_()):
        with pytest.raises(ERRORS):
            attempt()
    y.backward()
    assert x.grad.tolist() == [8, 16]


def test_s76_leaves_that_refuse_to_be_written():
    x = leaf([1.0, 2.0])
    before = state(x)
    for attempt in (
        lambda: x.add_(1),
        lambda: x.zero_(),
        lambda: x.__setitem__(0, 5.0),
        lambda: x[:1].mul_(2),
        lambda: x.exp_(),
        lambda: x.copy_(cr.zeros(2)),
    ):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            attempt()
    assert unchanged(x, before)


STRICT = {
    "div_": lambda t: t.div_(0.0),
    "/= a tensor": lambda t: t.__itruediv__(cr.zeros(2)),
    "mul_": lambda t: t.mul_(3e38),
    "add_": lambda t: t.add_(cr.tensor([3e38, 3e38])),
    "sub_": lambda t: t.sub_(cr.tensor([3e38, -3e38])),
    "exp_": lambda t: t.exp_(),
    "log_": lambda t: t.mul(-1).log_(),
    "pow_": lambda t: t.pow_(100.0),
    "setitem": lambda t: t.__setitem__(0, cr.tensor(1e300, dtype=cr.float64)),
    "copy_": lambda t: t.copy_(cr.tensor([1e300, 0.0], dtype=cr.float64)),
}


@pytest.mark.parametrize("attempt", STRICT.values(), ids=STRICT.keys())
@pytest.mark.parametrize("tracked", [True, False])
def test_s76_where_numpy_is_told_to_raise(attempt, tracked):
    t = cr.tensor([2e38, 3e38], requires_grad=tracked) * 1
    before = state(t)
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        attempt(t)
    assert unchanged(t, before)


@pytest.mark.parametrize("attempt", STRICT.values(), ids=STRICT.keys())
@pytest.mark.parametrize("tracked", [True, False])
def test_s76_where_warnings_are_errors(attempt, tracked):
    t = cr.tensor([2e38, 3e38], requires_grad=tracked) * 1
    before = state(t)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            attempt(t)
    assert unchanged(t, before)


def test_s76_out_of_memory():
    x = leaf([1.0])
    for attempt in (
        lambda: x.expand(2**50) * 2.0,
        lambda: cr.zeros(2**50),
        lambda: cr.cat([x.expand(2**50), x]),
        lambda: x.expand(2**50).clone(),
    ):
        with pytest.raises(MemoryError):
            attempt()
    (x * 2).backward()
    assert x.grad.tolist() == [2]


def test_s76_out_of_memory_in_a_pass():
    @cr.autograd_function
    def greedy(ctx, x):
        return x + 0

    @greedy.backward
    def _(ctx, g):
        return g.expand(2**50) * 2.0

    x = leaf([1.0])
    y = greedy(x)
    with pytest.raises(MemoryError):
        y.backward()
    assert x.grad is None
    assert cr.is_grad_enabled()
    (x * 2).backward()
    assert x.grad.tolist() == [2]


def test_s76_a_failed_pack_hook():
    def pack(t):
        raise OSError("disk full")

    x = leaf([1.0, 2.0])
    h = x * 2
    before = state(h)
    with cr.saved_tensors_hooks(pack, lambda t: t):
        for attempt in (lambda: h.mul_(h), lambda: h.exp_(), lambda: h * h):
            with pytest.raises(OSError, match="disk full"):
                attempt()
    assert unchanged(h, before)
    h.sum().backward()


def test_s76_a_failed_forward_of_a_custom_function():
    @cr.autograd_function
    def broken(ctx, x):
        ctx.save_for_backward(x)
        raise ValueError("no")

    h = leaf([1.0]) * 2
    before = state(h)
    with pytest.raises(ValueError, match="no"):
        broken(h)
    assert unchanged(h, before)
    assert cr.is_grad_enabled()


@pytest.mark.parametrize(
    "attempt",
    [lambda m, t: t.add_(m.ones(7)), lambda m, t: t.__setitem__(9, 0.0), lambda m, t: t.view(7)],
)
def test_s76_as_in_torch(attempt):
    def program(m):
        t = m.ones(2, 3) * 2
        with pytest.raises((RuntimeError, IndexError)):
            attempt(m, t)
        return t._version, t

    same_as_torch(program)
