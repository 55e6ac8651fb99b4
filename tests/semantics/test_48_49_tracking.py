"""SEMANTICS 48–49: which arguments of a custom function are tracked, and which need a gradient."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict, namedtuple
from pathlib import Path

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf

# --- 48: what is tracked --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [None, 3, "text", [1, 2], {"a": 1}, {1}, object(), len, np.ones(2), type, 1j, (), cr.float32],
    ids=lambda value: type(value).__name__,
)
def test_s48_other_objects_pass_through_untouched(value):
    seen = []
    f = cr.autograd_function(
        lambda ctx, x, other: seen.append(other) or x * 2, lambda ctx, g: (g * 2, None)
    )
    x = leaf([1.0])
    f(x, value).backward()
    assert seen[0] is value
    assert x.grad.tolist() == [2.0]


Pair = namedtuple("Pair", "first second")

CONTAINERS = {
    "list": lambda t: [t],
    "tuple": lambda t: (1, t),
    "dict": lambda t: {"key": t},
    "nested list": lambda t: [[1], [t]],
    "dict of lists": lambda t: {"key": [t]},
    "named tuple": lambda t: Pair(1, t),
    "ordered dict": lambda t: OrderedDict(key=t),
}


@pytest.mark.parametrize("pack", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_s48_a_hidden_tensor_that_requires_grad_gets_a_warning(pack):
    f = cr.autograd_function(lambda ctx, x, held: x * 2, lambda ctx, g: (g, None), name="f")
    x, hidden = leaf([1.0]), leaf([2.0])
    with pytest.warns(UserWarning, match="Only direct tensor arguments are tracked") as caught:
        z = f(x, pack(hidden))
    assert Path(caught[0].filename).name == Path(__file__).name
    assert "f got a" in str(caught[0].message)
    z.backward()
    assert hidden.grad is None
    assert x.grad.tolist() == [1.0]


def test_s48_the_warning_points_at_the_call():
    f = cr.autograd_function(lambda ctx, held: held[0] * 2, lambda ctx, g: None, name="f")
    with pytest.warns(UserWarning, match="Only direct tensor arguments") as caught:
        f([leaf([1.0])])
    line = Path(__file__).read_text().splitlines()[caught[0].lineno - 1]
    assert line.strip() == "f([leaf([1.0])])"


def test_s48_the_warning_points_at_the_call_of_apply():
    class Held(cr.autograd.Function):
        @staticmethod
        def forward(ctx, held):
            return held[0] * 2

    with pytest.warns(UserWarning, match="Only direct tensor arguments") as caught:
        Held.apply([leaf([1.0])])
    line = Path(__file__).read_text().splitlines()[caught[0].lineno - 1]
    assert line.strip() == "Held.apply([leaf([1.0])])"


@pytest.mark.parametrize("pack", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_s48_a_hidden_tensor_without_grad_gets_no_warning(pack):
    f = cr.autograd_function(lambda ctx, x, held: x * 2, lambda ctx, g: (g, None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(leaf([1.0]), pack(cr.ones(1)))


def test_s48_hidden_tensors_are_not_tracked(lib):
    class Sum(lib.autograd.Function):
        @staticmethod
        def forward(ctx, tensors):
            return tensors[0] + tensors[1]

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("backward was called")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = Sum.apply([lib.leaf([1.0]), lib.leaf([2.0])])
    assert (z.requires_grad, z.tolist()) == (False, [3.0])


def test_s48_stars_track_every_tensor():
    @cr.autograd_function
    def total(ctx, *tensors):
        ctx.count = len(tensors)
        return sum(tensors)

    @total.backward
    def _(ctx, g):
        return tuple(g * (i + 1) for i in range(ctx.count))

    leaves = [leaf([1.0]) for _ in range(4)]
    total(*leaves).backward()
    assert [t.grad.item() for t in leaves] == [1.0, 2.0, 3.0, 4.0]


# --- 49: needs_input_grad -------------------------------------------------------------------------


def watched(log):
    """Return a product of two tensors and a constant that logs what it thinks is needed."""

    @cr.autograd_function
    def product(ctx, a, b, k=2.0, note=None):
        log.append(tuple(ctx.needs_input_grad))
        ctx.save_for_backward(a=a, b=b, k=k)
        return a * b * k

    @product.backward
    def _(ctx, g):
        saved, needs = ctx.saved_variables, ctx.needs_input_grad
        log.append(tuple(needs))
        return {
            "a": g * saved.b * saved.k if needs.a else None,
            "b": g * saved.a * saved.k if needs.b else None,
        }

    return product


def test_s49_it_maps_every_argument_to_a_bool():
    seen = []

    @cr.autograd_function
    def f(ctx, a, b, k, n=None, *rest, d=None, **others):
        seen.append(ctx.needs_input_grad)
        return a * 1

    f(leaf(1.0), cr.ones(1), 3, None, leaf(2.0), "text", d=leaf(3.0), y=leaf(4.0), z=4)
    needs = seen[0]
    assert tuple(needs) == (True, False, False, False, True, False, True, True, False)
    assert all(type(value) is bool for value in needs)
    assert (needs.a, needs["b"], needs[2], needs.d, needs.y) == (True, False, False, True, True)
    assert (needs["rest[0]"], needs["rest[1]"]) == (True, False)


def test_s49_an_unknown_name_says_which_there_are():
    seen = []
    f = cr.autograd_function(
        lambda ctx, a, b: seen.append(ctx.needs_input_grad) or a * b, lambda ctx, g: (g, g)
    )
    f(leaf(1.0), 2)
    with pytest.raises(AttributeError, match=r"'weight'.*'a', 'b'"):
        seen[0].weight  # noqa: B018
    with pytest.raises(KeyError, match="weight"):
        seen[0]["weight"]
    with pytest.raises(IndexError):
        seen[0][5]


@pytest.mark.parametrize("name", ["keys", "count", "index", "items", "values", "get", "_names"])
def test_s49_any_name_reads_as_the_argument(name):
    scope = {}
    exec(f"def f(ctx, {name}, other): return {name} * 2", scope)
    seen = []
    f = cr.autograd_function(
        scope["f"], lambda ctx, g: seen.append(ctx.needs_input_grad) or (g, None)
    )
    f(leaf([1.0]), 3).backward()
    assert seen[0][name] is True
    assert getattr(seen[0], name) is True


@pytest.mark.parametrize(
    ("a", "b"), [(True, True), (True, False), (False, True)], ids=["both", "a", "b"]
)
def test_s49_it_is_the_same_in_forward_and_in_a_full_pass(a, b):
    log = []
    x, y = cr.tensor(2.0, requires_grad=a), cr.tensor(3.0, requires_grad=b)
    watched(log)(x, y).backward()
    assert log == [(a, b, False, False)] * 2


def test_s49_integer_tensors_need_none():
    log = []
    watched(log)(leaf(2.0), cr.tensor(3))
    assert log == [(True, False, False, False)]


def test_s49_non_leaves_need_theirs():
    log = []
    watched(log)(leaf(2.0) * 1, leaf([1.0])[0])
    assert log == [(True, True, False, False)]


PASSES = {
    "grad of a": (lambda z, a, b: cr.autograd_grad(z, a, retain_graph=True), (True, False)),
    "grad of b": (lambda z, a, b: cr.autograd_grad(z, [b], retain_graph=True), (False, True)),
    "grad of both": (lambda z, a, b: cr.autograd_grad(z, [b, a], retain_graph=True), (True, True)),
    "grad of a dict": (
        lambda z, a, b: cr.autograd_grad(z, {"b": b}, retain_graph=True),
        (False, True),
    ),
    "inputs a": (lambda z, a, b: z.backward(inputs=[a], retain_graph=True), (True, False)),
    "inputs b": (lambda z, a, b: z.backward(inputs=b, retain_graph=True), (False, True)),
    "create_graph": (lambda z, a, b: cr.autograd_grad(z, a, create_graph=True), (True, False)),
    "full": (lambda z, a, b: z.backward(retain_graph=True), (True, True)),
}


@pytest.mark.parametrize(("walk", "needs"), PASSES.values(), ids=PASSES.keys())
def test_s49_in_backward_it_is_true_only_for_what_the_pass_needs(walk, needs):
    log = []
    a, b = leaf(2.0), leaf(3.0)
    walk(watched(log)(a, b), a, b)
    assert log[1:] == [(*needs, False, False)]


@pytest.mark.parametrize(("first", "_needs"), PASSES.values(), ids=PASSES.keys())
@pytest.mark.parametrize(("second", "needs"), PASSES.values(), ids=PASSES.keys())
def test_s49_each_pass_has_needs_of_its_own(first, _needs, second, needs):
    log = []
    a, b = leaf(2.0), leaf(3.0)
    z = watched(log)(a, b)
    first(z, a, b)
    second(z, a, b)
    assert log[2:] == [(*needs, False, False)]


def test_s49_a_full_pass_after_a_restricted_one_gives_every_gradient(lib):
    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            needs = ctx.needs_input_grad
            return g * b if needs[0] else None, g * a if needs[1] else None

    a, b = lib.leaf([2.0]), lib.leaf([3.0])
    z = Product.apply(a, b)
    lib.grad(z, a, retain_graph=True)
    z.backward()
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)


def test_s49_what_lies_on_the_way_to_the_inputs_is_needed():
    log = []
    a, b = leaf(2.0), leaf(3.0)
    z = watched(log)(a * a, b * b)
    cr.autograd_grad(z, a)
    assert log[1:] == [(True, False, False, False)]


def test_s49_a_node_off_the_way_is_not_run_at_all():
    log = []
    a, b = leaf(2.0), leaf(3.0)
    z = watched(log)(a, a) + b
    cr.autograd_grad(z, b)
    assert len(log) == 1


def test_s49_attributes_set_in_a_restricted_pass_are_seen_in_the_next():
    @cr.autograd_function
    def f(ctx, a, b):
        ctx.passes = 0
        return a * b

    @f.backward
    def _(ctx, g):
        ctx.passes += 1
        return g * ctx.passes, g * ctx.passes

    a, b = leaf(2.0), leaf(3.0)
    z = f(a, b)
    for number in (1.0, 2.0, 3.0):
        assert cr.autograd_grad(z, a, retain_graph=True)[0].item() == number
    z.backward()
    assert b.grad.item() == 4.0


def test_s49_a_pass_inside_backward_does_not_change_the_needs_of_the_outer():
    log = []
    depth = []

    @cr.autograd_function
    def f(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @f.backward
    def _(ctx, g):
        if not depth:
            depth.append(1)
            cr.autograd_grad(z, a, retain_graph=True)
        log.append(tuple(ctx.needs_input_grad))
        a_, b_ = ctx.saved_variables
        return g * b_, g * a_

    a, b = leaf(2.0), leaf(3.0)
    z = f(a, b)
    z.backward()
    assert log == [(True, False), (True, True)]
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)


def test_s49_it_prints_as_what_it_is():
    seen = []
    f = cr.autograd_function(lambda ctx, a, b: seen.append(ctx.needs_input_grad) or a * b)
    f(leaf(1.0), 2)
    assert re.fullmatch(r"\(a=True, b=False\)", repr(seen[0]))
