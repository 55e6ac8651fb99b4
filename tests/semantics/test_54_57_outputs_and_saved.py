"""SEMANTICS 54–57: what a custom forward returns, and what it saves for its backward."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections import namedtuple

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import equal, leaf

FREED = "Trying to backward through the graph a second time"
CHANGED = "modified by an inplace operation"


def function(forward, backward=lambda ctx, g, *rest: g, name="f"):
    return cr.autograd_function(forward, backward, name=name)


# --- 54: kinds of outputs -------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("kind", [tuple, list])
def test_s54_a_sequence_comes_back_as_its_own_kind(kind, count):
    x = leaf([1.0])
    outs = function(lambda ctx, x: kind([x * (i + 1) for i in range(count)]))(x)
    assert type(outs) is kind
    assert [out.item() for out in outs] == [i + 1.0 for i in range(count)]
    assert all(out.requires_grad for out in outs)
    outs[0].backward()
    assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("kind", [tuple, list])
def test_s54_an_empty_sequence_stays_empty(kind):
    assert function(lambda ctx, x: kind())(leaf([1.0])) == kind()


Moments = namedtuple("Moments", "mean var")


def test_s54_a_named_tuple_comes_back_as_such():
    x = leaf([1.0, 2.0])
    f = function(lambda ctx, x: Moments(x.mean(), x.var()), lambda ctx, m, v: x * m + v)
    out = f(x)
    assert isinstance(out, Moments)
    assert out.mean.item() == 1.5
    (out.mean * 2 + out.var * 3).backward()
    assert x.grad.tolist() == [5.0, 7.0]


def test_s54_a_bare_tensor_comes_back_bare():
    out = function(lambda ctx, x: x * 2)(leaf([1.0]))
    assert isinstance(out, cr.Tensor)
    assert out.output_nr == 0


@pytest.mark.parametrize(
    "value",
    [None, 3, 2.5, "text", {"a": 1}, np.ones(2), object(), [1, 2], ()],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("tracked", [True, False])
def test_s54_other_outputs_pass_through(value, tracked):
    x = cr.tensor([1.0], requires_grad=tracked)
    out, other = function(lambda ctx, x: (x * 2, value))(x)
    assert other is value
    assert out.requires_grad == tracked
    if tracked:
        out.backward()
        assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize("value", [None, 3, "text", {"a": 1}], ids=repr)
def test_s54_a_function_may_return_no_tensor_at_all(value):
    assert function(lambda ctx, x: value)(leaf([1.0])) is value


def test_s54_other_outputs_may_stand_in_front(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return "note", x * 2, None, x * 3

        @staticmethod
        def backward(ctx, *grads):
            seen.append([None if g is None else g.item() for g in grads])
            return grads[1] * 2 + grads[3] * 3

    x = lib.leaf([1.0])
    _, a, _, b = f.apply(x)
    (a * 10 + b * 100).backward()
    assert seen == [[None, 10.0, None, 100.0]]
    assert x.grad.tolist() == [320.0]


# --- 55: what may be saved, and how it is read ----------------------------------------------------


def saved_by(save, *arguments):
    """Return what backward reads from ctx after `save(ctx, x, *arguments)` in forward."""
    seen = []

    def forward(ctx, x, *rest):
        save(ctx, x, *rest)
        return x * 2

    def backward(ctx, g):
        seen.append(ctx.saved_variables)
        return g

    function(forward, backward)(leaf([1.0]), *arguments).backward()
    return seen[0]


def test_s55_by_position():
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(x, 3, None, "text"))
    assert len(saved) == 4
    a, *others = saved
    assert a.tolist() == saved[0].tolist() == [1.0]
    assert others == list(saved[1:]) == [3, None, "text"]
    assert saved[-1] == "text"


def test_s55_by_name():
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(input=x, bias=None, i=3))
    assert (saved.i, saved["i"], saved[2]) == (3, 3, 3)
    assert saved.bias is saved["bias"] is saved[1] is None
    assert saved.input.tolist() == saved["input"].tolist() == saved[0].tolist() == [1.0]
    assert len(saved) == 3


def test_s55_by_position_and_by_name():
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(7, x, k=8, n=None))
    assert tuple(saved[:1]) == (7,)
    assert (saved.k, saved["n"], saved[2]) == (8, None, 8)


def test_s55_the_last_call_wins():
    def save(ctx, x):
        ctx.save_for_backward(x, a=1)
        ctx.save_for_backward(b=2)

    saved = saved_by(save)
    assert tuple(saved) == (2,)
    assert saved.b == 2
    with pytest.raises(AttributeError, match="'b'"):
        saved.a  # noqa: B018


def test_s55_saving_nothing_reads_as_empty():
    assert tuple(saved_by(lambda ctx, x: None)) == ()
    assert tuple(saved_by(lambda ctx, x: ctx.save_for_backward())) == ()


OBJECTS = [
    3, 2.5, 1j, "text", b"bytes", None, True, (1, 2), [1, 2], {"a": 1}, {1, 2}, np.ones(3),
    np.float32(1), len, object(), cr.float32, slice(1, 2), ..., Moments(1, 2), cr.device("cpu"),
]  # fmt: skip


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_s55_any_object_comes_back_itself(value):
    saved = saved_by(lambda ctx, x, v: ctx.save_for_backward(v, name=v), value)
    assert saved[0] is value
    assert saved.name is value


@pytest.mark.parametrize(
    "name",
    ["keys", "count", "index", "items", "values", "self", "ctx", "_names", "_saved", "args", "λ"],
)
def test_s55_any_name_reads_as_the_users_value(name):
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(**{"first": 1, name: 5}))
    assert saved[name] == 5
    assert saved[1] == 5
    if not name.startswith("_"):
        assert getattr(saved, name) == 5


def test_s55_an_unknown_name_says_which_there_are():
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(input=x, weight=3))
    with pytest.raises(AttributeError, match=r"'wieght'.*'input', 'weight'"):
        saved.wieght  # noqa: B018
    with pytest.raises(KeyError, match="wieght"):
        saved["wieght"]
    with pytest.raises(IndexError):
        saved[2]


def test_s55_without_names_the_error_says_so():
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(1, 2))
    with pytest.raises(AttributeError, match="2 by position, as"):
        saved.first  # noqa: B018


def test_s55_what_was_saved_prints_with_its_names():
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(3, k="text"))
    assert repr(saved) == "(3, k='text')"


def test_s55_it_can_be_read_in_forward_already():
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(x=x, k=3)
        seen.append((ctx.saved_variables.x is x, ctx.saved_variables.k))
        return x * 2

    function(forward)(leaf([1.0]))
    assert seen == [(True, 3)]


def test_s55_pytorchs_saved_tensors_is_a_plain_tuple(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, None, w)
            return x * w

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.saved_tensors)
            return g, None

    f.apply(lib.leaf([1.0]), lib.ones(1)).backward()
    (saved,) = seen
    assert type(saved) is tuple
    assert saved[1] is None
    assert saved[0].tolist() == [1.0]


def test_s55_attributes_of_ctx_are_the_users(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k, ctx.names, ctx.saved = k, ["mine"], 5
            return x * k

        @staticmethod
        def backward(ctx, g):
            assert (ctx.names, ctx.saved) == (["mine"], 5)
            return g * ctx.k, None

    x = lib.leaf([1.0])
    f.apply(x, 7).backward()
    assert x.grad.tolist() == [7.0]


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "int64", "bool"])
def test_s55_tensors_keep_shape_dtype_and_values(dtype, shape):
    value = cr.ones(shape, dtype=dtype)
    saved = saved_by(lambda ctx, x, v: ctx.save_for_backward(v), value)
    assert equal(saved[0], value)
    assert not saved[0].requires_grad


def test_s55_a_tensor_that_is_no_argument_may_be_saved():
    outside = leaf([5.0])
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(outside))
    assert saved[0].requires_grad
    assert saved[0].tolist() == [5.0]


def test_s55_the_same_tensor_twice():
    saved = saved_by(lambda ctx, x: ctx.save_for_backward(x, x, again=x))
    assert [value.tolist() for value in saved] == [[1.0], [1.0], [1.0]]


# --- 56: when it is read --------------------------------------------------------------------------


def square(save=lambda ctx, x, out: ctx.save_for_backward(x)):
    def forward(ctx, x):
        out = x * x
        save(ctx, x, out)
        return out

    return function(forward, lambda ctx, g: 2 * g * ctx.saved_variables[0], "square")


def test_s56_a_second_pass_that_reads_raises(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    z = f.apply(lib.leaf([3.0]))
    z.backward()
    with pytest.raises(RuntimeError, match=FREED):
        z.backward()


def test_s56_the_error_says_the_mend_and_the_node():
    z = square()(leaf([3.0]))
    z.backward()
    with pytest.raises(cr.FreedGraphError, match=r"retain_graph=True.*squareBackward"):
        z.backward()


def test_s56_non_tensors_are_freed_too():
    f = function(
        lambda ctx, x: ctx.save_for_backward(3) or x * 3,
        lambda ctx, g: g * ctx.saved_variables[0],
    )
    z = f(leaf([1.0]))
    z.backward()
    with pytest.raises(RuntimeError, match=FREED):
        z.backward()


def test_s56_a_backward_that_reads_nothing_may_run_twice(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.k = 3
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k

    x = lib.leaf([1.0])
    z = f.apply(x)
    z.backward()
    z.backward()
    assert x.grad.tolist() == [6.0]


def test_s56_retain_graph_keeps_it_for_any_number_of_passes(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    x = lib.leaf([3.0])
    z = f.apply(x)
    for _ in range(3):
        z.backward(retain_graph=True)
    z.backward()
    assert x.grad.tolist() == [24.0]
    with pytest.raises(RuntimeError, match=FREED):
        z.backward()


def test_s56_it_may_be_read_any_number_of_times_in_one_backward():
    f = function(
        lambda ctx, x: ctx.save_for_backward(x=x) or x * x,
        lambda ctx, g: g * ctx.saved_variables.x + g * ctx.saved_variables["x"],
    )
    x = leaf([3.0])
    f(x).backward()
    assert x.grad.tolist() == [6.0]


def test_s56_a_write_to_a_saved_input_is_noticed(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    y = lib.leaf([3.0]) * 1
    z = f.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0"):
        z.backward()


def test_s56_a_write_to_a_saved_output_is_noticed(lib):
    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    z = f.apply(lib.leaf([3.0]))
    z.add_(1)
    with pytest.raises(RuntimeError, match=r"is output 0 of f\w*, is at version 1"):
        z.backward()


@pytest.mark.parametrize("by_name", [False, True])
def test_s56_a_write_to_anything_saved_is_noticed(by_name):
    constant = cr.ones(1)

    def save(ctx, x):
        if by_name:
            ctx.save_for_backward(k=3, constant=constant)
        else:
            ctx.save_for_backward(3, constant)

    f = function(
        lambda ctx, x: save(ctx, x) or x * 2, lambda ctx, g: ctx.saved_variables and g, "f"
    )
    z = f(leaf([1.0]))
    constant.add_(1)
    with pytest.raises(cr.InPlaceError, match=CHANGED):
        z.backward()


def test_s56_a_backward_that_reads_nothing_does_not_mind():
    f = function(lambda ctx, x: ctx.save_for_backward(x) or x * 2, lambda ctx, g: g * 2)
    x = leaf([1.0])
    y = x * 1
    z = f(y)
    y.add_(1)
    z.backward()
    assert x.grad.tolist() == [2.0]


def test_s56_writes_in_forward_before_the_save_do_no_harm():
    def forward(ctx, x):
        buffer = x * 1
        buffer.mul_(2)
        ctx.save_for_backward(buffer)
        buffer.add_(0)
        return x * 2

    x = leaf([1.0])
    function(forward, lambda ctx, g: g * ctx.saved_variables[0])(x).backward()
    assert x.grad.tolist() == [2.0]


def test_s56_whoever_wrote_it_is_named():
    y = leaf([3.0]) * 1
    z = square()(y)
    y.mul_(2)
    with pytest.raises(cr.InPlaceError, match=r"written by mul_ at .*y\.mul_\(2\)"):
        z.backward()


def test_s56_a_ctx_that_the_user_kept_reads_until_the_graph_is_freed():
    kept = []
    z = square(lambda ctx, x, out: kept.append(ctx) or ctx.save_for_backward(x))(leaf([3.0]))
    assert kept[0].saved_variables[0].tolist() == [3.0]
    z.backward()
    with pytest.raises(cr.FreedGraphError, match=FREED):
        kept[0].saved_variables  # noqa: B018


def test_s56_a_ctx_that_the_user_kept_may_outlive_the_graph():
    kept = []
    z = square(lambda ctx, x, out: kept.append(ctx) or ctx.save_for_backward(x, 5))(leaf([3.0]))
    del z
    gc.collect()
    x, five = kept[0].saved_variables
    assert (x.tolist(), five) == ([3.0], 5)


def test_s56_a_pass_inside_backward_over_the_same_node():
    @cr.autograd_function
    def f(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    seen = []

    @f.backward
    def _(ctx, g):
        before = ctx.saved_variables[0]
        if not seen:
            seen.append(None)
            seen[0] = cr.autograd_grad(z, x, retain_graph=True)[0].item()
        return g * before + g * ctx.saved_variables[0]

    x = leaf(3.0)
    z = f(x)
    z.backward()
    assert seen == [6.0]
    assert x.grad.item() == 6.0


def test_s56_passes_in_several_threads_over_the_same_node():
    x = leaf([3.0])
    z = square()(x)
    errors = []

    def work():
        try:
            for _ in range(50):
                z.backward(retain_graph=True)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert x.grad.tolist() == [6.0 * 200]


# --- 57: saved outputs, and memory ----------------------------------------------------------------


def test_s57_a_saved_output_comes_back_with_this_node(lib):
    seen = []

    class f(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x.exp(), x.sin()
            ctx.save_for_backward(b, a, x)
            return a, b

        @staticmethod
        def backward(ctx, g, h):
            seen.extend(ctx.saved_tensors)
            return g

    x = lib.leaf([1.0])
    a, b = f.apply(x)
    (a + b).backward()
    assert seen[0].grad_fn is seen[1].grad_fn is a.grad_fn is b.grad_fn
    assert (seen[0].output_nr, seen[1].output_nr) == (1, 0)
    assert (seen[2].is_leaf, seen[2].requires_grad) == (True, True)


def test_s57_the_second_order_through_a_saved_output_is_right(lib):
    class exp(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x.exp()
            ctx.save_for_backward(out)
            return out

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = lib.leaf([0.5, 1.0])
    grad = exp.apply(x).sum()
    for _ in range(4):
        (grad,) = lib.grad(grad.sum(), x, create_graph=True)
    np.testing.assert_allclose(grad.tolist(), np.exp([0.5, 1.0]))


SAVED = {
    "input": lambda ctx, x, out: ctx.save_for_backward(x),
    "output": lambda ctx, x, out: ctx.save_for_backward(out),
    "both by name": lambda ctx, x, out: ctx.save_for_backward(x=x, out=out),
    "a view of the input": lambda ctx, x, out: ctx.save_for_backward(x[:1]),
    "a view of the output": lambda ctx, x, out: ctx.save_for_backward(out[:1]),
    "something between": lambda ctx, x, out: ctx.save_for_backward(x * 3),
}
saves = pytest.mark.parametrize("save", SAVED.values(), ids=SAVED.keys())


class Marker:
    pass


@pytest.fixture
def no_collector():
    """What is freed, is freed by reference count alone."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def traced(save, keep):
    """Return a function that saves so, and puts weak references into `keep`."""

    def forward(ctx, x):
        out = x * x
        save(ctx, x, out)
        ctx.marker = Marker()
        keep.extend([weakref.ref(ctx), weakref.ref(ctx.marker), weakref.ref(out.numpy())])
        return out

    return function(forward, lambda ctx, g: g * 2 * x_of(ctx), "traced")


def x_of(ctx):
    return ctx.saved_variables[0]


@saves
def test_s57_dropping_the_output_frees_everything_at_once(no_collector, save):
    keep = []
    z = traced(save, keep)(leaf([1.0, 2.0]))
    assert all(reference() is not None for reference in keep)
    del z
    assert all(reference() is None for reference in keep)


@saves
def test_s57_so_it_does_after_a_pass(no_collector, save):
    keep = []
    z = traced(save, keep)(leaf([1.0, 2.0]))
    z.sum().backward()
    del z
    assert all(reference() is None for reference in keep)


@saves
def test_s57_so_it_does_when_the_graph_was_retained(no_collector, save):
    keep = []
    x = leaf([1.0, 2.0])
    z = traced(save, keep)(x)
    z.sum().backward(retain_graph=True)
    z.sum().backward(retain_graph=True)
    del z
    assert all(reference() is None for reference in keep)


@saves
def test_s57_so_it_does_when_the_pass_failed(no_collector, save):
    keep = []
    f = traced(save, keep)
    f.backward(lambda ctx, g: 1 / 0)
    z = f(leaf([1.0, 2.0]))
    with pytest.raises(ZeroDivisionError) as info:
        z.sum().backward()
    info.value.__traceback__ = None
    del z, info
    assert all(reference() is None for reference in keep)


@saves
def test_s57_so_it_does_when_forward_failed(no_collector, save):
    keep = []

    def forward(ctx, x):
        save(ctx, x, x * 1)
        keep.append(weakref.ref(ctx))
        raise KeyError

    with pytest.raises(KeyError) as info:
        function(forward)(leaf([1.0, 2.0]))
    info.value.__traceback__ = None
    del info
    assert all(reference() is None for reference in keep)


def test_s57_a_pass_lets_saved_values_go_while_the_output_lives(no_collector):
    memory = []

    def forward(ctx, x):
        between = x * 3
        memory.append(weakref.ref(between.numpy()))
        ctx.save_for_backward(between)
        return x * 2

    z = function(forward, lambda ctx, g: g * ctx.saved_variables[0])(leaf([1.0]))
    assert memory[0]() is not None
    z.backward()
    assert memory[0]() is None


def test_s57_outputs_of_several_do_not_hold_each_other(no_collector):
    memory = []

    def forward(ctx, x):
        a, b = x * 1, x * 2
        memory.append(weakref.ref(b.numpy()))
        return a, b

    a, b = function(forward)(leaf([1.0]))
    del b
    assert memory[0]() is None
    a.backward()


def test_s57_functions_themselves_can_be_dropped():
    f = function(lambda ctx, x: x * 2)
    dead = weakref.ref(f.spec)
    z = f(leaf([1.0]))
    del f
    z.backward()
    del z
    gc.collect()
    assert dead() is None


def test_s57_what_was_saved_can_be_pickled_by_backward():
    f = function(
        lambda ctx, x: ctx.save_for_backward({"a": [1, 2]}) or x * 1,
        lambda ctx, g: g * pickle.loads(pickle.dumps(ctx.saved_variables[0]))["a"][1],
    )
    x = leaf([1.0])
    f(x).backward()
    assert x.grad.tolist() == [2.0]


@pytest.mark.parametrize(
    "operation",
    [lambda x: x.exp(), lambda x: x * x, lambda x: x.amax(0), lambda x: x.norm()],
    ids=["unary", "binary", "reduction", "norm"],
)
def test_s57_hooks_get_what_an_operation_of_any_form_saves(operation):
    packed = []

    def pack(tensor):
        packed.append(tensor)
        return len(packed) - 1

    x = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with cr.autograd.graph.saved_tensors_hooks(pack, packed.__getitem__):
        y = operation(x).sum()
    assert packed
    (g,) = cr.autograd_grad(y, x)
    assert g.tolist() == cr.autograd_grad(operation(x).sum(), x)[0].tolist()
