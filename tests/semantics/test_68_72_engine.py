"""SEMANTICS 68, 69, 71 and 72: depth, order, whose memory it is, and what is left over."""

from __future__ import annotations

import gc
import sys
import time
import weakref

import numpy as np
import pytest

import chainrule as cr
from helpers.parameters import thorough
from helpers.tensors import equal, leaf, memory, share_memory
from helpers.torch_comparison import raises_runtime_error, same_as_torch

# --- 68: deep graphs ------------------------------------------------------------------------------


@cr.autograd_function
def step(ctx, x):
    return x + 1


@step.backward
def _(ctx, g):
    return g


@pytest.mark.parametrize("nodes", [100_000, thorough(1_000_000)])
def test_s68_a_million_nodes_are_built_run_and_freed(nodes):
    x = leaf([1.0])
    y = x
    for _ in range(nodes):
        y = y + 1.0
    y.backward()
    assert x.grad.tolist() == [1]
    node = weakref.ref(y.grad_fn)
    del y
    assert node() is None


def test_s68_freed_without_ever_being_run():
    x = leaf([1.0])
    y = x * 1.0
    first = weakref.ref(y.grad_fn)
    for _ in range(200_000):
        y = y * 1.0
    del y
    assert first() is None


def test_s68_custom_functions_included():
    x = leaf([1.0])
    y = step(x)
    first = weakref.ref(y.grad_fn)
    for _ in range(50_000):
        y = step(y)
    y.backward()
    assert x.grad.tolist() == [1]
    del y
    assert first() is None


DEEP = {
    "views": lambda y: y.T,
    "indexing": lambda y: y[:],
    "in place": lambda y: y.add_(1.0),
    "setitem": lambda y: y.__setitem__(0, 2.0) or y,
    "unbind and stack": lambda y: cr.stack(y.unbind()),
    "two inputs": lambda y: y + y * 0.0,
    "custom": step,
}


@pytest.mark.parametrize("grow", DEEP.values(), ids=DEEP.keys())
@pytest.mark.parametrize("settings", [{}, {"create_graph": True}], ids=["plain", "create_graph"])
def test_s68_deeper_than_the_stack(grow, settings):
    x = cr.ones(2, 2, requires_grad=True)
    y = x * 1.0
    first = weakref.ref(y.grad_fn)
    for _ in range(3 * sys.getrecursionlimit()):
        y = grow(y)
    y.sum().backward(**settings)
    assert x.grad.shape == (2, 2)
    x.grad = None
    del y
    assert first() is None


def test_s68_the_other_ways_to_walk_a_deep_graph():
    x = leaf([1.0])
    y, tensors = x, []
    for _ in range(3 * sys.getrecursionlimit()):
        y = y * 1.0
        tensors.append(y)
    assert cr.autograd_grad(y, tensors[1], retain_graph=True)[0].tolist() == [1]
    y.backward(inputs=[x, tensors[0]], retain_graph=True)
    assert x.grad.tolist() == [1]
    _, tangent = cr.jvp(lambda t: _chain(t, 3 * sys.getrecursionlimit()), x, cr.ones(1))
    assert tangent.tolist() == [1]


def _chain(y, n):
    for _ in range(n):
        y = y * 1.0
    return y


def test_s68_writes_through_deep_views_and_beside_them():
    x = cr.ones(2, 2, requires_grad=True)
    y = x * 1.0
    view = y
    for _ in range(3 * sys.getrecursionlimit()):
        view = view.T
    view.mul_(2.0)
    y.mul_(3.0)
    assert view.tolist() == [[6, 6], [6, 6]]
    view.sum().backward()
    assert x.grad.tolist() == [[6, 6], [6, 6]]


def test_s68_wide_graphs():
    leaves = [leaf(1.0) for _ in range(20_000)]
    cr.stack(leaves).sum().backward()
    assert all(x.grad.item() == 1 for x in leaves)
    x = leaf(1.0)
    total = x * 0.0
    for _ in range(20_000):
        total = total + x
    total.backward()
    assert x.grad.item() == 20_000


def test_s68_diamonds_are_visited_once():
    x = leaf([1.0], cr.float64)
    y = x
    for _ in range(500):  # 2^500 paths
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**500


def test_s68_diamonds_of_two_branches_too():
    ran = []
    x = leaf([1.0], cr.float64)
    y = x
    for _ in range(60):
        y = y * 0.5 + y * 0.5
        y.grad_fn.register_hook(lambda *_: ran.append(1))
    y.backward()
    assert len(ran) == 60
    assert x.grad.item() == 1


@pytest.mark.parametrize(
    "grow", [lambda y: y + 1.0, lambda y: y.T, step], ids=["add", "T", "custom"]
)
def test_s68_time_is_linear(grow):
    def seconds(n):
        y = cr.ones(2, 2, requires_grad=True) * 1.0
        start = time.process_time()
        for _ in range(n):
            y = grow(y)
        y.sum().backward()
        return time.process_time() - start

    gc.disable()
    try:
        short = max(seconds(4_000) for _ in range(3))
        long = min(seconds(32_000) for _ in range(3))
    finally:
        gc.enable()
    assert long < 4 * 8 * short


# --- 69: order ------------------------------------------------------------------------------------


def ran_by(root, nodes):
    """Run a pass from `root`, and return the names of the nodes in the order they ran in."""
    order = []
    for name, tensor in nodes.items():
        tensor.grad_fn.register_hook(lambda *_, name=name: order.append(name))
    root.backward()
    return "".join(order)


def test_s69_ready_nodes_run_in_reverse_creation_order():
    x = leaf(1.0)
    a = x * 2
    b = x * 3
    c = x * 4
    assert ran_by(c + a + b, {"a": a, "b": b, "c": c}) == "cba"


@pytest.mark.parametrize("order", ["abc", "cab", "bca"])
def test_s69_whatever_order_they_are_used_in(order):
    x = leaf(1.0)
    made = {"a": x * 2, "b": x * 3, "c": x * 4}
    first, second, third = (made[name] for name in order)
    assert ran_by(first * second + third, made) == "cba"


def test_s69_a_node_waits_for_all_its_consumers():
    x = leaf(1.0)
    a = x * 2
    b = a * 3
    c = a * b
    d = b + c
    assert ran_by(d * a, {"a": a, "b": b, "c": c, "d": d}) == "dcba"


def test_s69_roots_in_any_order():
    for swap in (False, True):
        x = leaf(1.0)
        a, b = x * 2, x * 3
        order = []
        a.register_hook(lambda g, order=order: order.append("a"))
        b.register_hook(lambda g, order=order: order.append("b"))
        cr.autograd_backward([b, a] if swap else [a, b])
        assert order == ["b", "a"]


def test_s69_a_view_regenerated_after_a_write_counts_as_new():
    x = leaf([1.0, 2.0])
    y = x * 1
    view = y[:1]
    y.mul_(2)
    total = view.sum() + y.sum()
    total.backward()
    assert x.grad.tolist() == [4, 2]


def test_s69_the_same_bits_every_run():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((3, 50, 50)).astype(np.float32)

    def gradients():
        leaves = [cr.tensor(d, requires_grad=True) for d in data]
        h = leaves[0]
        for i in range(20):
            h = (h @ leaves[i % 3] / 7).tanh() + h * leaves[(i + 1) % 3] + h.exp() / 3
            h = h / h.norm()
        h.sum().backward()
        return [memory(x.grad).tobytes() for x in leaves]

    assert gradients() == gradients() == gradients()


def test_s69_hooks_fire_in_the_same_order_every_run():
    def order():
        fired = []
        leaves = [leaf(1.0) for _ in range(5)]
        h = leaves[0] + 0
        for i in range(30):
            h = h * leaves[i % 5] + leaves[(3 * i) % 5]
            h.register_hook(lambda g, i=i: fired.append(i))
        for i, x in enumerate(leaves):
            x.register_hook(lambda g, i=i: fired.append(-1 - i))
        h.backward()
        return fired

    first = order()
    assert first == order()
    assert [i for i in first if i >= 0] == list(range(29, -1, -1))


def test_s69_an_exception_leaves_nothing_for_the_next_pass():
    x = leaf([1.0, 2.0])
    y = x * 3
    z = y.exp().sum() + y.sum()
    handle = y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        z.backward(retain_graph=True)
    handle.remove()
    assert x.grad is None
    z.backward()
    expected = memory(x.grad).copy()
    x.grad = None
    y = x * 3
    (y.exp().sum() + y.sum()).backward()
    assert equal(x.grad, expected)


def test_s69_nor_does_one_in_a_custom_backward():
    fail = [True]

    @cr.autograd_function
    def moody(ctx, x):
        ctx.save_for_backward(x=x)
        return x * 2

    @moody.backward
    def _(ctx, g):
        if fail[0]:
            raise OSError("not today")
        return g * 2

    x = leaf([1.0])
    y = moody(x) + x * 5
    with pytest.raises(OSError, match="not today"):
        y.backward(retain_graph=True)
    fail[0] = False
    x.grad = None
    y.backward()
    assert x.grad.tolist() == [7]


# --- 71: what autograd_grad returns shares memory with nothing ------------------------------------

PATHS = {
    "the leaves": lambda x, y: [x, y],
    "x + y": lambda x, y: [x + y],
    "x + 0, y + 0": lambda x, y: [x + 0, y + 0],
    "view": lambda x, y: [(x + y).view(4).view(2, 2)],
    "T": lambda x, y: [x.T + y.T],
    "clone": lambda x, y: [x.clone() + y.clone()],
    "cat": lambda x, y: [cr.cat([x[:1], y[1:]])],
    "stack": lambda x, y: [cr.stack([x[0], y[0]])],
    "expand": lambda x, y: [(x + y).expand(2, 2)],
    "where": lambda x, y: [cr.where(x > 0, x, y)],
    "sub": lambda x, y: [y - x],
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_s71_results_share_nothing_with_the_caller_or_each_other(path, create_graph):
    x, y = cr.ones(2, 2, requires_grad=True), cr.ones(2, 2, requires_grad=True)
    outputs = path(x, y)
    g = cr.ones(2, 2)
    grads = cr.autograd_grad(outputs, [x, y, x], [g] * len(outputs), create_graph=create_graph)
    held = [*grads, g, x, y]
    for i, a in enumerate(held):
        for b in held[i + 1 :]:
            assert not share_memory(a, b)
    assert all(0 not in memory(grad).strides for grad in grads)
    assert all(memory(grad).flags.writeable for grad in grads)


def test_s71_nor_with_the_gradients_of_non_leaves():
    x = leaf([1.0, 2.0])
    y = x + 0
    z = y + 0
    g = cr.ones(2)
    grads = [*cr.autograd_grad(z, [x, y, z], g), g]
    for i, a in enumerate(grads):
        assert not any(share_memory(a, b) for b in grads[i + 1 :])


def test_s71_nor_with_saved_values():
    x = leaf([1.0, 2.0])
    w = leaf([3.0, 4.0])
    y = (x * w).sum()
    gx, gw = cr.autograd_grad(y, [x, w], retain_graph=True)
    gx.zero_()
    gw.zero_()
    assert x.tolist() == [1, 2]
    assert w.tolist() == [3, 4]
    y.backward()
    assert x.grad.tolist() == [3, 4]


def test_s71_nor_with_the_constant_of_a_product():
    x, c = leaf([1.0, 2.0]), cr.tensor([3.0, 4.0])
    for root in ((x * c).sum(), x @ c):
        (g,) = cr.autograd_grad(root, x)
        assert not share_memory(g, c)


def writing_hook(g):
    g.mul_(100)


@pytest.mark.parametrize("create_graph", [False, True])
def test_s71_a_hook_that_writes_into_its_gradient_does_not_change_a_siblings(create_graph):
    x, y = leaf([1.0]), leaf([1.0])
    try:
        x.register_hook(writing_hook)
        (x + y).backward(create_graph=create_graph)
    except RuntimeError:
        assert create_graph  # writing may be refused there
    else:
        assert y.grad.tolist() == [1]


def test_s71_nor_one_upstream():
    x = leaf([1.0])
    y = x + 0
    z, w = y + 0, leaf([1.0])
    z.register_hook(lambda g: [g.mul_(100), None][1])
    (z + w).backward()
    assert w.grad.tolist() == [1]


def test_s71_nor_the_gradient_that_came_in():
    x, g = leaf([1.0]), cr.ones(1)
    y = x + 0
    y.register_hook(writing_hook)
    y.backward(g)
    assert g.tolist() == [1]


def test_s71_a_node_hook_that_writes_does_not_either():
    x, y, g = leaf([1.0]), leaf([1.0]), cr.ones(1)
    z = x + y
    z.grad_fn.register_prehook(lambda grads: [grads[0].mul_(100), None][1])
    z.grad_fn.register_hook(lambda inputs, outputs: [inputs[0].mul_(100), None][1])
    z.backward(g)
    assert g.tolist() == [1]
    assert y.grad.tolist() in ([1], [100])


@cr.autograd_function
def scribbler(ctx, x):
    return x + 0


@scribbler.backward
def _(ctx, g):
    return g.mul_(100)


def test_s71_a_backward_that_writes_into_its_gradient_does_not_change_a_siblings():
    x, y, g = leaf([1.0]), leaf([1.0]), cr.ones(1)
    z = scribbler(x) + y
    z.backward(g)
    assert g.tolist() == [1]
    assert y.grad.tolist() == [1]
    assert x.grad.tolist() == [100]


def test_s71_nor_of_two_scribblers():
    x, y = leaf([1.0]), leaf([1.0])
    (scribbler(x) + scribbler(y)).backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([100], [100])


def test_s71_nor_what_another_hook_or_grad_retained():
    kept = []
    x = leaf([1.0])
    y = x + 0
    y.register_hook(kept.append)
    y.retain_grad()
    y.register_hook(writing_hook)
    scribbler(y).backward()
    assert kept[0].tolist() == [100]
    assert y.grad.tolist() in ([100], [10000])


def test_s71_writing_to_a_result_under_create_graph():
    x = leaf([3.0])
    y = x * x
    (g,) = cr.autograd_grad(y, x, create_graph=True)
    with cr.no_grad():
        g.zero_()
    assert x.tolist() == [3]


# --- 72: no cycles --------------------------------------------------------------------------------


@pytest.fixture
def _no_gc():
    gc.disable()
    yield
    gc.enable()


@cr.autograd_function
def keeper(ctx, x):
    y = x * 2
    ctx.save_for_backward(x=x, y=y, view=y[:1], extra=x * 3)
    ctx.anything = x
    return y


@keeper.backward
def _(ctx, g):
    saved = ctx.saved_variables
    return g * 2 + 0 * (saved.y.sum() + saved.view.sum() + saved.x.sum())


@cr.autograd_function
def dirty(ctx, x):
    ctx.mark_dirty(x)
    ctx.save_for_backward(x=x)
    return x.mul_(2)


@dirty.backward
def _(ctx, g):
    return g * 2


@cr.autograd_function
def pair(ctx, x):
    a, b = x * 2, x * 3
    ctx.save_for_backward(a, b)
    return a, b


@pair.backward
def _(ctx, ga, gb):
    return 2 * ga + 3 * gb


@cr.autograd_function
def viewer(ctx, x):
    y = x * 2
    ctx.save_for_backward(y[:1])
    return y


@viewer.backward
def _(ctx, g):
    return g * 2


def written(x):
    y = x * 2
    y[0] = 5.0
    y.T.mul_(3.0)
    return y.exp_()


GRAPHS = {
    "arithmetic": lambda x: x * x + 1,
    "saved output": lambda x: x.exp().tanh().sigmoid(),
    "views": lambda x: x.T[:1].view(-1)[None],
    "views of a non-leaf": lambda x: (x * 2).T[:1],
    "several outputs": lambda x: cr.stack([*x.unbind(), *x.split(1)[0].unbind()]),
    "indexing": lambda x: x[[0, 1, 0]],
    "max": lambda x: x.max(0)[0] + x.max(),
    "matmul": lambda x: x @ x.T,
    "in place": written,
    "custom": keeper,
    "custom, dirty": lambda x: dirty(x * 1),
    "custom, two outputs": lambda x: pair(x)[0] + pair(x)[1],
    "custom, a view of the output saved": viewer,
    "softmax": lambda x: x.softmax(0) + x.log_softmax(0) + x.logsumexp(0),
    "cat": lambda x: cr.cat([x, x * 2]),
    "where": lambda x: cr.where(x > 0, x, -x),
    "prod": lambda x: x.prod() + x.cumprod(0).sum() + x.norm() + x.std(),
}
BEFORE = {
    "unused": lambda y: None,
    "after backward": lambda y: y.sum().backward(),
    "after two": lambda y: [y.sum().backward(retain_graph=True) for _ in range(2)],
    "after a failed one": lambda y: raises_runtime_error(lambda: y.backward(cr.ones(7))),
    "after create_graph": lambda y: cr.autograd_grad(y.sum(), y, create_graph=True),
    "after retain_grad": lambda y: [y.retain_grad(), y.sum().backward()],
    "after printing": lambda y: (repr(y), y.grad_fn.next_functions, y.grad_fn.name),
}


@pytest.mark.usefixtures("_no_gc")
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE.keys())
@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS.keys())
def test_s72_reference_counts_free_the_graph(build, before):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    h = x * 1.5
    y = build(h)
    alive = [
        weakref.ref(thing)
        for thing in (
            y,
            memory(y).base if memory(y).base is not None else memory(y),
            y.grad_fn,
            h,
            h.grad_fn,
            memory(h),
        )
    ]
    before(y)
    del h, y
    assert [ref() for ref in alive] == [None] * len(alive)


@pytest.mark.usefixtures("_no_gc")
@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "custom"])
def test_s72_second_order_included(name):
    build = GRAPHS[name]
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = build(x * 1.5)
    (g,) = cr.autograd_grad(y.sum(), x, create_graph=True)
    alive = [weakref.ref(y.grad_fn), weakref.ref(g), weakref.ref(memory(g))]
    if g.requires_grad:
        cr.autograd_grad(g.sum(), x, allow_unused=True)
        alive.append(weakref.ref(g.grad_fn))
    del y, g
    assert [ref() for ref in alive] == [None] * len(alive)


@pytest.mark.usefixtures("_no_gc")
def test_s72_the_context_of_a_custom_function_is_freed():
    contexts = []

    @cr.autograd_function
    def spy(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        contexts.append(weakref.ref(ctx))
        return y

    @spy.backward
    def _(ctx, g):
        return g * 2 + 0 * ctx.saved_variables[0]

    for run in (False, True):
        y = spy(leaf([1.0]))
        assert contexts[-1]() is not None
        if run:
            y.backward()
        del y
        assert contexts[-1]() is None


@pytest.mark.usefixtures("_no_gc")
def test_s72_leaves_and_their_gradients_are_freed():
    x = leaf([1.0])
    (x * x).backward()
    alive = weakref.ref(x), weakref.ref(x.grad)
    del x
    assert [ref() for ref in alive] == [None, None]


@pytest.mark.usefixtures("_no_gc")
def test_s72_views_do_not_tie_base_and_view_together():
    base = leaf([1.0, 2.0]) * 1
    view = base[:1]
    alive = weakref.ref(base), weakref.ref(view)
    base.mul_(2)
    assert view.tolist() == [2]
    view.sum().backward()
    del base, view
    assert [ref() for ref in alive] == [None, None]


FAILURES = {
    "add": lambda x, other: x + other,
    "matmul": lambda x, other: x @ other,
    "in place": lambda x, other: x.add_(other),
    "in place, unrecorded": lambda x, other: x.detach().add_(other),
    "index": lambda x, other: x[5],
    "setitem": lambda x, other: x.__setitem__(5, 0),
    "view": lambda x, other: x.view(7),
    "cat": lambda x, other: cr.cat([x, other[None]]),
    "sum": lambda x, other: x.sum(7),
    "divide": lambda x, other: x / 0.0,
    "sqrt": lambda x, other: (x - 5).sqrt(),
    "custom": lambda x, other: step(x + other),
    "backward": lambda x, other: x.backward(other),
    "a leaf in place": lambda x, other: x.requires_grad_().exp_(),
}


@pytest.mark.usefixtures("_no_gc")
@pytest.mark.parametrize("attempt", FAILURES.values(), ids=FAILURES.keys())
def test_s72_failed_operations_leave_nothing(attempt):
    x, other = leaf([1.0, 2.0]), cr.ones(3)
    alive = [weakref.ref(t) for t in (x, other, memory(x), memory(other))]
    try:
        with np.errstate(all="raise"):
            attempt(x, other)
    except (RuntimeError, IndexError, FloatingPointError):
        pass
    else:
        pytest.fail("did not raise")
    del x, other
    assert [ref() for ref in alive] == [None] * 4


@pytest.mark.usefixtures("_no_gc")
def test_s72_an_error_is_not_its_own_cause():
    with np.errstate(all="raise"), pytest.raises(FloatingPointError) as caught:
        leaf([1.0]) / cr.zeros(1)
    assert caught.value.__cause__ is not caught.value


@pytest.mark.usefixtures("_no_gc")
def test_s72_intermediates_that_nobody_needs_die_at_once():
    x = leaf([1.0, 2.0])
    y = x + 1
    alive = weakref.ref(memory(y))
    z = y + 1
    del y
    assert alive() is None
    z.sum().backward()


@pytest.mark.usefixtures("_no_gc")
def test_s72_modes_generators_and_hooks_leave_nothing():
    x = leaf([1.0])
    y = x * 2
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_hook(lambda *_: None)
    handle = x.register_hook(lambda g: None)
    with cr.detect_anomaly(), cr.saved_tensors_hooks(lambda t: t, lambda t: t):
        z = y * y
    z.backward()
    handle.remove()
    alive = [weakref.ref(t) for t in (x, y, z, y.grad_fn, z.grad_fn)]
    del x, y, z
    assert [ref() for ref in alive] == [None] * 5


def test_s72_what_create_graph_ties_together_gc_frees():
    x = leaf([3.0])
    y = x * x * x
    y.backward(create_graph=True)
    alive = [weakref.ref(t) for t in (x, y, x.grad, y.grad_fn)]
    del x, y
    gc.collect()
    assert [ref() for ref in alive] == [None] * 4


@pytest.mark.parametrize("leafy", [True, False])
def test_s72_what_a_hook_ties_together_gc_frees(leafy):
    x = leaf([3.0])
    y = x if leafy else x * 2
    y.register_hook(lambda g, y=y: g * y.detach())
    y.grad_fn and y.grad_fn.register_hook(lambda *_, y=y: None)
    (y * 2).backward()
    alive = [weakref.ref(x), weakref.ref(y), weakref.ref(memory(y))]
    del x, y
    gc.collect()
    assert [ref() for ref in alive] == [None] * 3


def test_s72_also_when_the_leaf_was_frozen_meanwhile():
    x = leaf([3.0])
    x.register_hook(lambda g, x=x: g * x.detach())
    x.requires_grad_(False)
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


def test_s72_a_context_that_holds_an_output_gc_frees():
    @cr.autograd_function
    def selfish(ctx, x):
        ctx.mine = x * 2
        return ctx.mine

    y = selfish(leaf([1.0]))
    alive = weakref.ref(y)
    del y
    gc.collect()
    assert alive() is None


def test_s72_many_passes_leave_no_garbage():
    def once():
        x = leaf([[1.0, 2.0], [3.0, 4.0]])
        y = (keeper(x * 1) + 1).T
        y.mul_(2.0)
        y.sum().backward()

    once()
    gc.collect()
    before = len(gc.get_objects())
    gc.disable()
    try:
        for _ in range(50):
            once()
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()


def test_s72_storages_that_were_written_are_forgotten_when_they_die():
    from chainrule.autograd.versions import write_log

    gc.collect()
    before = len(write_log.storages)
    for _ in range(100):
        x = cr.ones(2)
        x.add_(1)
        x[:1].mul_(2)
    del x
    assert len(write_log.storages) <= before


def test_s72_as_in_torch():
    def program(m):
        alive = []
        gc.collect()
        gc.disable()
        try:
            x = m.leaf([1.0, 2.0])
            y = (x * x).exp()
            z = y.sum()
            z.backward()
            alive = [weakref.ref(t) for t in (y, z)]
            del y, z
            return [ref() is None for ref in alive]
        finally:
            gc.enable()

    same_as_torch(program)
