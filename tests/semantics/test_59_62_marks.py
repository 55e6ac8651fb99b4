"""SEMANTICS 59–62: marks on inputs and outputs, unused outputs, and inputs that are returned."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf, share_memory

# --- 59: mark_dirty -------------------------------------------------------------------------------


def doubled(lib):
    """Return a function that doubles its argument in place."""

    class Double(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Double.apply


def test_s59_the_returned_object_is_the_callers_with_this_grad_fn(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 3
    z = doubled(lib)(y)
    assert z is y
    assert (y.grad_fn.name(), y.tolist()) == ("DoubleBackward", [6.0, 12.0])
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def assigned(lib):
    """Return a function that puts a value into its argument, and doesn't mark it as dirty."""

    class Assign(lib.autograd.Function):
        @staticmethod
        def forward(ctx, into, value, index):
            ctx.index = index
            into.data[index] = value
            return into

        @staticmethod
        def backward(ctx, g):
            rest = g.clone()
            rest[ctx.index] = 0
            return rest, g[ctx.index], None

    return Assign.apply


@pytest.mark.parametrize("grown", [False, True])
def test_s59_an_input_that_was_written_and_returned_is_dirty_unmarked(lib, grown):
    """As in the solvers of torchdiffeq, which collect their stages so."""
    x = lib.leaf([1.0, 2.0])
    stages = x.detach()[:1].repeat(3) if grown else x[:1].repeat(3)
    total, put = 0.0, assigned(lib)
    for i in range(3):
        stages = put(stages, x[1] * (i + 1), i)
        total = total + (stages[: i + 1] * stages[: i + 1].detach()).sum()
    total.backward()
    # Σᵢ of the stages up to i: each is 2 k, of derivative k, in 3 - k + 1 sums.
    assert (total.item(), x.grad.tolist()) == (4 * 3 + 16 * 2 + 36, [0.0, 2 * 3 + 8 * 2 + 18])


def test_s59_by_name_in_the_decorators_form():
    @cr.autograd_function
    def shift(ctx, x, by):
        ctx.mark_dirty(x)
        return x.add_(by)

    @shift.backward
    def _(ctx, g):
        return {"x": g * 10, "by": g * 100}

    x, by = leaf([1.0]), leaf([5.0])
    y = x * 1
    assert shift(by=by, x=y) is y
    y.backward()
    assert (x.grad.item(), by.grad.item()) == (10.0, 100.0)


def test_s59_a_plain_tensor_starts_to_require_grad(lib):
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.mark_dirty(x)
            return x.mul_(w)

        @staticmethod
        def backward(ctx, g):
            return None, g * 5

    x, w = lib.ones(2, dtype=lib.float64), lib.leaf([3.0, 4.0])
    assert Scale.apply(x, w) is x
    assert (x.requires_grad, x.is_leaf) == (True, False)
    x.sum().backward()
    assert w.grad.tolist() == [5.0, 5.0]


def test_s59_without_tensors_that_require_grad_it_stays_plain(lib):
    x = lib.ones(2)
    assert doubled(lib)(x) is x
    assert (x.requires_grad, x.grad_fn, x.tolist()) == (False, None, [2.0, 2.0])


def test_s59_a_leaf_that_requires_grad_raises(lib):
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        doubled(lib)(lib.leaf([1.0]))


def test_s59_a_view_of_a_leaf_raises_and_the_leaf_stays_one(lib):
    x = lib.leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        doubled(lib)(x[0:1])
    assert (x.is_leaf, x.grad_fn) == (True, None)


def test_s59_under_no_grad_a_leaf_may_be_written():
    x = leaf([1.0])
    with cr.no_grad():
        assert doubled(cr)(x) is x
    assert (x.tolist(), x.is_leaf, x.grad_fn, x.requires_grad) == ([2.0], True, None, True)


def test_s59_a_dirty_input_has_to_be_returned(lib):
    class Hide(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2) * 1

        @staticmethod
        def backward(ctx, g):
            return g

    text = "Some elements marked as dirty during the forward method were not returned as output"
    with pytest.raises(RuntimeError, match=text):
        Hide.apply(lib.leaf([1.0]) * 1)


def test_s59_only_inputs_can_be_dirty():
    def forward(ctx, x):
        out = x * 1
        ctx.mark_dirty(out)
        return out

    with pytest.raises(RuntimeError, match="mark_dirty got a tensor that is no direct argument"):
        cr.autograd_function(forward, lambda ctx, g: g)(leaf([1.0]))


@pytest.mark.parametrize("method", ["mark_dirty", "mark_non_differentiable"])
def test_s59_only_tensors_can_be_marked(method):
    def forward(ctx, x):
        getattr(ctx, method)(x, None)
        return x

    text = f"{method} should only accept tensors, but argument 1 is of type NoneType"
    with pytest.raises(TypeError, match=text):
        cr.autograd_function(forward, lambda ctx, g: g)(leaf([1.0]) * 1)


def test_s59_a_view_of_a_non_leaf_writes_history_into_its_base(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 3
    v = y[0:1]
    assert doubled(lib)(v) is v
    assert y.grad_fn.name().split("::")[-1] == "CopySlices"
    (y.sum() + v.sum()).backward()
    assert x.grad.tolist() == [12.0, 3.0]


@pytest.mark.parametrize("split", [lambda y: y.unbind(), lambda y: y.split(1), list])
def test_s59_one_of_several_views_raises(lib, split):
    y = lib.leaf([1.0, 2.0]) * 1
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        doubled(lib)(split(y)[0])


def test_s59_a_view_made_under_no_grad_raises(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    with lib.no_grad():
        v = y[0:1]
    with pytest.raises(RuntimeError, match=r"created in no_grad mode|a leaf Variable"):
        doubled(lib)(v)


def test_s59_two_dirty_inputs(lib):
    class Both(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(a, b)
            return b.mul_(3), a.mul_(2)

        @staticmethod
        def backward(ctx, g, h):
            return h * 2, g * 3

    x = lib.leaf([1.0])
    a, b = x * 1, x * 10
    q, p = Both.apply(a, b)
    assert p is a
    assert q is b
    (a + b).backward()
    assert x.grad.tolist() == [32.0]


def test_s59_two_calls_add_up():
    def forward(ctx, a, b):
        ctx.mark_dirty(a.mul_(2))
        ctx.mark_dirty(b.mul_(2))
        return a, b

    x = leaf([1.0])
    a, b = x * 1, x * 1
    outs = cr.autograd_function(forward, lambda ctx, g, h: (g * 2, h * 2))(a, b)
    assert outs[0] is a
    assert outs[1] is b


def test_s59_a_dirty_output_beside_a_new_one(lib):
    class Mixed(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x, x * 10

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 20

    x = lib.leaf([1.0])
    y = x * 1
    z, new = Mixed.apply(y)
    assert z is y
    (z + new).backward()
    assert x.grad.tolist() == [22.0]


def test_s59_what_was_saved_of_the_old_value_is_noticed(lib):
    y = lib.leaf([3.0]) * 1
    z = y * y
    doubled(lib)(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_s59_the_write_counts():
    y = leaf([3.0]) * 1
    doubled(cr)(y)
    assert y._version >= 1


def test_s59_a_saved_dirty_input_is_the_output(lib):
    class Exp(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.exp_()
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = lib.leaf([0.5])
    y = x * 1
    Exp.apply(y)
    grad = y.sum()
    for _ in range(3):
        (grad,) = lib.grad(grad, x, create_graph=True)
    np.testing.assert_allclose(grad.item(), np.exp(0.5))


def test_s59_hooks_and_earlier_consumers_stay_with_the_old_history(lib):
    x = lib.leaf([1.0])
    y = x * 3
    early = y + 0
    seen = []
    y.register_hook(lambda g: seen.append(("old", g.item())))
    doubled(lib)(y)
    y.register_hook(lambda g: seen.append(("new", g.item())))
    (y * 5 + early).backward()
    assert seen == [("new", 5.0), ("old", 11.0)]
    assert x.grad.tolist() == [33.0]


def test_s59_retain_grad_goes_along(lib):
    x = lib.leaf([1.0])
    y = x * 3
    y.retain_grad()
    doubled(lib)(y)
    (y * 5).backward()
    assert y.grad.tolist() == [5.0]


def test_s59_the_same_tensor_dirty_and_as_another_argument(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            a.mul_(2)
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 2, g * 3

    x = lib.leaf([1.0])
    y = x * 1
    assert f.apply(y, y) is y
    y.backward()
    assert x.grad.tolist() == [5.0]


def test_s59_no_cycle_is_left():
    gc.collect()
    gc.disable()
    try:
        y = leaf([1.0]) * 1
        doubled(cr)(y)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


# --- 60: mark_non_differentiable ------------------------------------------------------------------


def test_s60_a_marked_output_does_not_require_grad(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            a, b, c = x * 1, x * 2, x * 3
            ctx.mark_non_differentiable(a, c)
            return a, b, c

        @staticmethod
        def backward(ctx, g, h, i):
            seen.append([t.tolist() for t in (g, h, i)])
            return h * 2

    x = lib.leaf([1.0, 2.0])
    a, b, c = f.apply(x)
    for out in (a, c):
        assert (out.requires_grad, out.is_leaf, out.grad_fn) == (False, True, None)
    assert b.requires_grad
    (a + b + c).sum().backward()
    assert seen == [[[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]]
    assert x.grad.tolist() == [2.0, 2.0]


def test_s60_a_marked_input_that_was_written_loses_its_history():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.round_()

    def backward(ctx, g):
        raise AssertionError("backward was called")

    x = leaf([1.4])
    y = x * 1
    assert cr.autograd_function(forward, backward)(y) is y
    assert (y.requires_grad, y.grad_fn, y.tolist()) == (False, None, [1.0])
    (x * y).sum().backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
def test_s60_an_output_without_a_gradient_is_a_constant_where_it_was_saved(lib, dtype):
    seen = []

    class ReLU(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mask = lib.tensor([0.0, 1.0], dtype)
            ctx.mark_non_differentiable(mask)
            ctx.save_for_backward(mask)
            return x.clamp(min=0), mask

        @staticmethod
        def backward(ctx, g, _):
            (mask,) = ctx.saved_tensors
            seen.append((mask.requires_grad, mask.grad_fn))
            return g * mask

    x = lib.leaf([-1.0, 2.0])
    y, _ = ReLU.apply(x)
    (grad,) = lib.grad((y**3).sum(), x, create_graph=True)
    (second,) = lib.grad(grad.sum(), x)
    assert (grad.tolist(), second.tolist()) == ([0.0, 12.0], [0.0, 12.0])
    assert set(seen) == {(False, None)}


def test_s60_where_all_are_marked_nothing_requires_grad(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.round()
            ctx.mark_non_differentiable(out)
            return out

        @staticmethod
        def backward(ctx, g):
            raise AssertionError

    out = f.apply(lib.leaf([1.4]))
    assert (out.requires_grad, out.tolist()) == (False, [1.0])


def test_s60_integer_and_bool_outputs_are_so_by_themselves(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.argmax(), x * 2, x > 1

        @staticmethod
        def backward(ctx, g, h, i):
            seen.append([g.tolist(), h.tolist(), i.tolist()])
            return h * 2

    x = lib.leaf([1.0, 2.0])
    position, out, mask = f.apply(x)
    assert (position.requires_grad, mask.requires_grad) == (False, False)
    assert (position.dtype, mask.dtype) == (lib.int64, lib.bool)
    out.sum().backward()
    assert seen == [[0, [1.0, 1.0], [0, 0]]]
    assert x.grad.tolist() == [2.0, 2.0]


def test_s60_a_single_integer_output_is_plain(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.argmax()

        @staticmethod
        def backward(ctx, g):
            raise AssertionError

    assert not f.apply(lib.leaf([1.0, 2.0])).requires_grad


def test_s60_a_marked_output_may_start_a_graph_of_its_own():
    def forward(ctx, x):
        out = x * 2
        ctx.mark_non_differentiable(out)
        return out

    x = leaf([1.0])
    out = cr.autograd_function(forward, lambda ctx, g: g)(x)
    out.requires_grad_()
    (out * x).backward()
    assert (out.grad.item(), x.grad.item()) == (1.0, 2.0)


def test_s60_a_marked_input_that_is_returned_comes_back_plain():
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x, x * 2

    x = leaf([1.0])
    same, out = cr.autograd_function(forward, lambda ctx, g, h: h * 2)(x)
    assert (same.requires_grad, x.requires_grad) == (False, True)
    (same + out).backward()
    assert x.grad.tolist() == [2.0]


def test_s60_without_materialized_gradients_it_gets_none():
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        out = x * 2
        ctx.mark_non_differentiable(out)
        return out, x * 3

    def backward(ctx, g, h):
        seen.append((g, h.item()))
        return h * 3

    cr.autograd_function(forward, backward)(leaf([1.0]))[1].backward()
    assert seen == [(None, 1.0)]


# --- 61: unused outputs ---------------------------------------------------------------------------


def three(lib, seen, materialize=None):
    class Three(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if materialize is not None:
                ctx.set_materialize_grads(materialize)
            return x * 1, x.sum() * 2, x[None] * 3

        @staticmethod
        def backward(ctx, *grads):
            seen.append([None if g is None else g.tolist() for g in grads])
            return None if grads[0] is None else grads[0] * 1

    return Three.apply


@pytest.mark.parametrize("materialize", [None, True])
def test_s61_gradients_of_unused_outputs_arrive_as_zeros(lib, materialize):
    seen = []
    outs = three(lib, seen, materialize)(lib.leaf([1.0, 2.0]))
    outs[0].sum().backward(retain_graph=True)
    outs[1].backward(retain_graph=True)
    outs[2].sum().backward()
    assert seen == [
        [[1.0, 1.0], 0.0, [[0.0, 0.0]]],
        [[0.0, 0.0], 1.0, [[0.0, 0.0]]],
        [[0.0, 0.0], 0.0, [[1.0, 1.0]]],
    ]


def test_s61_with_materialize_off_they_arrive_as_none(lib):
    seen = []
    outs = three(lib, seen, False)(lib.leaf([1.0, 2.0]))
    outs[0].sum().backward(retain_graph=True)
    outs[1].backward(retain_graph=True)
    outs[2].sum().backward()
    assert seen == [[[1.0, 1.0], None, None], [None, 1.0, None], [None, None, [[1.0, 1.0]]]]


@pytest.mark.parametrize("materialize", [True, False])
def test_s61_an_output_that_leads_nowhere_counts_as_unused(lib, materialize):
    seen = []
    a, b, _ = three(lib, seen, materialize)(lib.leaf([1.0, 2.0]))
    b * 5
    a.sum().backward()
    assert seen[0][1] == (0.0 if materialize else None)


def test_s61_zeros_that_were_computed_are_no_none(lib):
    seen = []
    a, b, _ = three(lib, seen, False)(lib.leaf([1.0, 2.0]))
    (a.sum() + b * 0).backward()
    assert seen == [[[1.0, 1.0], 0.0, None]]


def test_s61_zeros_have_shape_and_dtype_of_their_output(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x.double()[None], x.sum()

        @staticmethod
        def backward(ctx, *grads):
            seen.extend((tuple(g.shape), g.dtype) for g in grads)
            return grads[0]

    f.apply(lib.leaf([1.0, 2.0], "float32"))[0].sum().backward()
    assert seen == [((2,), lib.float32), ((1, 2), lib.float64), ((), lib.float32)]


def test_s61_the_zeros_may_be_written_to():
    seen = []

    def backward(ctx, g, h):
        seen.append(h.tolist())
        h.add_(100)
        return g

    x = leaf([1.0])
    out = cr.autograd_function(lambda ctx, x: (x * 1, x * 2), backward)(x)[0]
    out.backward(retain_graph=True)
    out.backward()
    assert seen == [[0.0], [0.0]]


def test_s61_under_create_graph_too(lib):
    seen = []
    x = lib.leaf([1.0, 2.0])
    a, _, _ = three(lib, seen)(x)
    (grad,) = lib.grad((a * a).sum(), x, create_graph=True)
    assert seen == [[[2.0, 4.0], 0.0, [[0.0, 0.0]]]]
    assert lib.grad(grad.sum(), x)[0].tolist() == [2.0, 2.0]


# --- 62: the same tensor in several places --------------------------------------------------------


def returned(lib):
    class Same(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    return Same.apply


def test_s62_an_input_returned_unmodified_comes_back_as_an_alias(lib):
    x = lib.leaf([1.0, 2.0])
    z = returned(lib)(x)
    assert z is not x
    assert (x.is_leaf, x.grad_fn) == (True, None)
    assert (z.is_leaf, z.grad_fn.name()) == (False, "SameBackward")
    z.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_s62_the_alias_shares_memory_and_version():
    y = leaf([1.0, 2.0]) * 1
    z = returned(cr)(y)
    assert share_memory(y, z)
    y.detach().add_(1)
    assert (z.tolist(), z._version) == ([2.0, 3.0], 1)


def test_s62_the_original_keeps_history_and_hooks(lib):
    x = lib.leaf([1.0])
    y = x * 3
    node = y.grad_fn
    seen = []
    y.register_hook(lambda g: seen.append(("y", g.item())))
    z = returned(lib)(y)
    z.register_hook(lambda g: seen.append(("z", g.item())))
    assert y.grad_fn is node
    (z * 2).backward()
    assert seen == [("z", 2.0), ("y", 10.0)]
    assert x.grad.tolist() == [30.0]


def test_s62_the_original_and_the_alias_may_both_be_used(lib):
    x = lib.leaf([1.0])
    z = returned(lib)(x)
    (z + x).backward()
    assert x.grad.tolist() == [6.0]


def test_s62_a_plain_input_that_is_returned_stays_plain_itself(lib):
    class First(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            return x

        @staticmethod
        def backward(ctx, g):
            return None, g * 5

    x, w = lib.ones(2, dtype=lib.float64), lib.leaf([3.0, 4.0])
    z = First.apply(x, w)
    assert z is not x
    assert (x.requires_grad, z.requires_grad) == (False, True)
    z.sum().backward()
    assert w.grad.tolist() == [5.0, 5.0]


def test_s62_without_recording_it_comes_back_plain(lib):
    x = lib.leaf([1.0])
    with lib.no_grad():
        z = returned(lib)(x)
    assert (z.requires_grad, x.requires_grad) == (False, True)


def test_s62_the_alias_refuses_writes(lib):
    z = returned(lib)(lib.leaf([1.0]) * 1)
    with pytest.raises(RuntimeError, match=r"input was returned as-is|clone\(\)"):
        z.mul_(2)
    assert z.tolist() == [1.0]


def test_s62_a_part_of_an_input_refuses_writes(lib):
    class Head(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1]

        @staticmethod
        def backward(ctx, g):
            return lib.cat([g * 5, g * 0])

    y = lib.leaf([1.0, 2.0]) * 1
    z = Head.apply(y)
    with pytest.raises(RuntimeError, match="created inside a custom"):
        z.mul_(2)
    assert y.tolist() == [1.0, 2.0]


def test_s62_a_write_to_the_original_does_not_leave_the_alias_with_a_wrong_history(lib):
    x = lib.leaf([1.0])
    y = x * 1
    z = returned(lib)(y)
    y.mul_(10)
    with pytest.raises(RuntimeError, match=r"modified inplace|modified by an inplace"):
        z.sum().backward()


def test_s62_an_alias_among_other_outputs(lib):
    class Both(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 5

    x = lib.leaf([1.0])
    new, same = Both.apply(x)
    assert same is not x
    (new * 10 + same * 100).backward()
    assert x.grad.tolist() == [520.0]


def test_s62_a_saved_input_that_is_returned_too(lib):
    class Keep(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x, x * x

        @staticmethod
        def backward(ctx, g, h):
            return g + 2 * h * ctx.saved_tensors[0]

    x = lib.leaf([3.0])
    (grad,) = lib.grad(Keep.apply(x)[1].sum(), x, create_graph=True)
    assert grad.item() == 6.0
    assert lib.grad(grad.sum(), x)[0].item() == 2.0


def test_s62_the_same_tensor_for_two_arguments_sums_both_gradients(lib):
    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b, c):
            ctx.save_for_backward(a, b, c)
            return a * b * c

        @staticmethod
        def backward(ctx, g):
            a, b, c = ctx.saved_tensors
            return g * b * c, g * a * c, g * a * b

    x = lib.leaf([2.0])
    (grad,) = lib.grad(Product.apply(x, x, x).sum(), x, create_graph=True)
    assert grad.item() == 12.0
    assert lib.grad(grad.sum(), x)[0].item() == 12.0


def test_s62_the_same_tensor_by_position_and_by_name():
    f = cr.autograd_function(lambda ctx, a, *, b: a + b, lambda ctx, g: {"a": g * 2, "b": g * 3})
    x = leaf([1.0])
    f(x, b=x).backward()
    assert x.grad.tolist() == [5.0]


def test_s62_the_same_output_twice_is_one_object(lib):
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x * 2
            return out, out

        @staticmethod
        def backward(ctx, g, h):
            return (g + h) * 2

    x = lib.leaf([1.0])
    a, b = Twice.apply(x)
    assert a is b
    (a * 10 + b * 100).backward()
    assert x.grad.tolist() == [220.0]


def test_s62_the_same_input_returned_twice_sums_both(lib):
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x, x

        @staticmethod
        def backward(ctx, g, h):
            return (g + h) * 2

    x = lib.leaf([1.0])
    a, b = Twice.apply(x)
    (a * 10 + b * 100).backward()
    assert x.grad.tolist() == [220.0]


@pytest.mark.parametrize("marked", [False, True])
def test_s62_an_input_comes_back_as_an_alias_for_each_place(lib, marked):
    class Swap(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            if marked:
                ctx.mark_non_differentiable(b)
            return b, a

        @staticmethod
        def backward(ctx, g, h):
            return h * 3, g * 5

    x, y = lib.leaf([1.0]), lib.leaf([1.0])
    b, a = Swap.apply(x, y)
    assert (b.requires_grad, a.requires_grad) == (not marked, True)
    (b * 10 + a * 100).backward()
    assert (x.grad.item(), y.grad.item()) == (300.0, 0.0 if marked else 50.0)
    if not marked:
        b, a = Swap.apply(x, x)
        assert b is not a
        (b * 10 + a * 100).backward()
        assert x.grad.item() == 300.0 + 350.0


def test_s62_the_same_output_twice_has_the_gradient_of_its_last_place(lib):
    seen = []

    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out)
            return out, out

        @staticmethod
        def backward(ctx, g, h):
            seen.append((g.item(), h.item()))
            return h * ctx.saved_tensors[0]

    x = lib.leaf([0.0])
    a, b = Twice.apply(x)
    (grad,) = lib.grad((a * 10 + b * 100).sum(), x, create_graph=True)
    assert seen == [(0.0, 110.0)]
    assert lib.grad(grad.sum(), x)[0].item() == 110.0


def test_s62_a_returned_input_that_was_saved_is_the_input(lib):
    class Keep(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x, x**3

        @staticmethod
        def backward(ctx, g, h):
            return g * 100 + 3 * h * ctx.saved_tensors[0] ** 2

    x = lib.leaf([2.0])
    (grad,) = lib.grad(Keep.apply(x)[1].sum(), x, create_graph=True)
    assert lib.grad(grad.sum(), x)[0].item() == 12.0


def test_s62_a_tensor_from_outside_that_is_returned_is_left_alone():
    outside = leaf([7.0]) * 1
    node = outside.grad_fn
    f = cr.autograd_function(lambda ctx, x: outside, lambda ctx, g: g * 5)
    x = leaf([1.0])
    z = f(x)
    assert z is not outside
    assert outside.grad_fn is node
    z.backward()
    assert x.grad.tolist() == [5.0]


def test_s62_a_function_applied_to_its_own_output(lib):
    x = lib.leaf([1.0])
    z = x
    for _ in range(3):
        z = returned(lib)(z)
    z.backward()
    assert x.grad.tolist() == [125.0]


def test_s62_a_stale_alias_and_its_views_may_be_asked_but_not_used():
    unchanged = cr.autograd_function(lambda ctx, x: x, lambda ctx, g: g)
    alias = unchanged(cr.ones(2, requires_grad=True) * 2)
    part = alias[0]
    with cr.no_grad():
        alias.mul_(3)
    for tensor in (alias, part):
        assert tensor.requires_grad
        with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
            assert tensor.grad is None
        with pytest.raises(RuntimeError, match="base has been modified inplace"):
            tensor * 2
        with pytest.raises(RuntimeError, match="base has been modified inplace"):
            tensor.register_hook(print)
        assert "grad_fn" in repr(tensor)
    assert part.detach().item() == 6
