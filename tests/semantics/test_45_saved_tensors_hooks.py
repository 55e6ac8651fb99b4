"""SEMANTICS 45: what the graph saves goes through the user's pack and unpack."""

from __future__ import annotations

import threading
import weakref

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf


@pytest.fixture
def hooks(lib):
    """The context manager, which PyTorch keeps in a module of its own."""
    return getattr(lib, "saved_tensors_hooks", None) or lib.autograd.graph.saved_tensors_hooks


def same(t):
    return t


class Counter:
    """A pack hook and an unpack hook that count their calls."""

    def __init__(self):
        self.packed = self.unpacked = 0

    def pack(self, t):
        self.packed += 1
        return t

    def unpack(self, t):
        self.unpacked += 1
        return t


OPERATIONS = {
    "exp": (lambda x: x.exp(), 1),
    "sin": (lambda x: x.sin(), 1),
    "x * x": (lambda x: x * x, 2),
    "x * 2": (lambda x: x * 2, None),
    "add": (lambda x: x + x, 0),
    "sum": (lambda x: x.sum(), 0),
    "reshape": (lambda x: x.reshape(2, 1), 0),
    "matmul": (lambda x: x @ x, 2),
    "chain": (lambda x: x.exp().tanh(), 2),
}


@pytest.mark.parametrize(("operation", "count"), OPERATIONS.values(), ids=OPERATIONS.keys())
def test_s45_pack_is_called_once_for_each_saved_tensor(lib, hooks, operation, count):
    counter = Counter()
    x = lib.leaf([1.0, 2.0])
    with hooks(counter.pack, counter.unpack):
        z = operation(x)
    if count is not None:
        assert counter.packed == count
    assert counter.unpacked == 0
    packed = counter.packed
    z.sum().backward()
    assert counter.packed == packed


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_s45_unpack_is_called_in_every_pass(lib, hooks, passes):
    counter = Counter()
    x = lib.leaf([1.0, 2.0])
    with hooks(counter.pack, counter.unpack):
        z = x.exp().sum()
    for _ in range(passes):
        z.backward(retain_graph=True)
    assert (counter.packed, counter.unpacked) == (1, passes)


def test_s45_without_a_pass_nothing_is_unpacked(lib, hooks):
    counter = Counter()
    x = lib.leaf([1.0])
    with hooks(counter.pack, counter.unpack):
        x.exp()
    assert counter.unpacked == 0


def test_s45_nothing_is_packed_where_nothing_is_recorded(lib, hooks):
    counter = Counter()
    with hooks(counter.pack, counter.unpack):
        lib.ones(2).exp()
        with lib.no_grad():
            lib.leaf([1.0]).exp()
    assert counter.packed == 0


def test_s45_the_value_comes_back_through_any_object(lib, hooks):
    x = lib.leaf([1.0, 2.0])
    with hooks(
        lambda t: {"values": t.tolist()}, lambda d: lib.tensor(d["values"], dtype="float64")
    ):
        z = (x * x * x).sum()
    z.backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_s45_what_unpack_returns_is_what_the_rule_sees(lib, hooks):
    x = lib.leaf([1.0, 2.0])
    with hooks(same, lambda t: t * 0 + 10):
        z = (x * x).sum()
    z.backward()
    assert x.grad.tolist() == [20.0, 20.0]


def test_s45_saved_values_may_go_to_the_disk(tmp_path):
    x = leaf([1.0, 2.0])
    paths = []

    def pack(t):
        paths.append(tmp_path / f"{len(paths)}.npy")
        np.save(paths[-1], t.numpy())
        return paths[-1]

    with cr.saved_tensors_hooks(pack, lambda path: cr.tensor(np.load(path))):
        z = (x.exp() * x).sum()
    assert len(list(tmp_path.iterdir())) == 3
    z.backward()
    with cr.no_grad():
        expected = x.exp() * (x + 1)
    assert cr.allclose(x.grad, expected)


def test_s45_half_precision_is_seen_in_the_gradient():
    x = leaf([1.0, 2.0])
    with cr.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        z = x.exp().sum()
    z.backward()
    assert x.grad.tolist() == np.exp(np.float32([1, 2])).astype(np.float16).tolist()


def test_s45_pack_and_unpack_run_unrecorded(lib, hooks):
    x = lib.leaf([1.0, 2.0])
    modes = []

    def pack(t):
        modes.append(lib.is_grad_enabled())
        return t * 1

    def unpack(t):
        modes.append(lib.is_grad_enabled())
        return t

    with hooks(pack, unpack):
        z = x.exp().sum()
    z.backward()
    assert modes == [False, False]


def test_s45_what_pack_records_is_not_packed_again():
    x, w = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    packed = []

    def pack(t):
        packed.append(t)
        with cr.enable_grad():
            w.exp()
        return t

    with cr.saved_tensors_hooks(pack, same):  # where PyTorch would recurse without end
        x.exp()
    assert len(packed) == 1


def test_s45_the_innermost_pair_wins(lib, hooks):
    order = []

    def pair(name):
        return hooks(lambda t: order.append(("pack", name)) or (name, t), unpack)

    def unpack(packed):
        order.append(("unpack", packed[0]))
        return packed[1]

    x = lib.leaf([1.0])
    with pair("outer"):
        y = x.exp()
        with pair("inner"):
            y = y.exp()
        y = y.exp()
    assert order == [("pack", "outer"), ("pack", "inner"), ("pack", "outer")]
    y.backward()
    assert order[3:] == [("unpack", "outer"), ("unpack", "inner"), ("unpack", "outer")]


def test_s45_outside_the_block_nothing_is_packed(lib, hooks):
    counter = Counter()
    x = lib.leaf([1.0])
    with hooks(counter.pack, counter.unpack):
        pass
    x.exp().backward()
    assert counter.packed == 0


def test_s45_the_block_ends_with_an_exception(lib, hooks):
    counter = Counter()
    with pytest.raises(KeyError), hooks(counter.pack, counter.unpack):
        raise KeyError
    lib.leaf([1.0]).exp()
    assert counter.packed == 0


def test_s45_no_grad_and_saved_hooks_nest_both_ways(lib, hooks):
    counter = Counter()
    x = lib.leaf([1.0])
    with hooks(counter.pack, counter.unpack):
        with lib.no_grad():
            x.exp()
            with lib.enable_grad():
                x.exp()
        x.exp()
    assert counter.packed == 2


def test_s45_other_threads_do_not_see_the_hooks():
    counter = Counter()

    def work():
        leaf([1.0]).exp()

    with cr.saved_tensors_hooks(counter.pack, counter.unpack):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert counter.packed == 0


def test_s45_second_order(lib, hooks):
    x = lib.leaf([2.0])
    counter = Counter()
    with hooks(counter.pack, counter.unpack):
        (g,) = lib.grad((x**3).sum(), x, create_graph=True)
        (h,) = lib.grad(g.sum(), x, create_graph=True)
        (i,) = lib.grad(h.sum(), x)
    assert (g.item(), h.item(), i.item()) == (12.0, 12.0, 6.0)
    assert counter.packed > 2


def test_s45_second_order_where_only_the_first_was_packed(lib, hooks):
    x = lib.leaf([2.0])
    with hooks(lambda t: t.tolist(), lambda v: lib.tensor(v, dtype="float64")):
        y = x.exp() * x
    (g,) = lib.grad(y.sum(), x, create_graph=True)
    (h,) = lib.grad(g.sum(), x)
    np.testing.assert_allclose(h.item(), 4 * np.exp(2.0))


def test_s45_a_tensor_with_history_from_unpack_does_not_leak_into_the_graph():
    x, other = leaf([2.0]), leaf([3.0])
    with cr.saved_tensors_hooks(same, lambda t: other * 1):
        y = x * x
    (g,) = cr.autograd_grad(y.sum(), x, create_graph=True)
    assert g.item() == 6.0
    g.sum().backward()
    assert other.grad is None
    assert x.grad is not None


def test_s45_custom_functions_save_through_the_hooks(lib, hooks):
    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            out = a * b
            ctx.save_for_backward(a, b, out)
            return out

        @staticmethod
        def backward(ctx, g):
            a, b, _ = ctx.saved_tensors
            return g * b, g * a

    counter = Counter()
    a, b = lib.leaf([2.0]), lib.leaf([3.0])
    with hooks(counter.pack, counter.unpack):
        z = Product.apply(a, b)
    assert (counter.packed, counter.unpacked) == (3, 0)
    z.backward()
    assert (counter.packed, counter.unpacked) == (3, 3)
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)


def test_s45_only_tensors_of_custom_functions_are_packed():
    @cr.autograd_function
    def scale(ctx, x, factor):
        ctx.save_for_backward(x=x, factor=factor, nothing=None)
        return x * factor

    @scale.backward
    def _(ctx, g):
        return {"x": g * ctx.saved_variables.factor}

    counter = Counter()
    x = leaf([2.0])
    with cr.saved_tensors_hooks(counter.pack, counter.unpack):
        z = scale(x, 5)
    z.backward()
    assert counter.packed == 1
    assert x.grad.item() == 5.0


def test_s45_what_forward_of_a_custom_function_computes_is_not_packed(lib, hooks):
    class Plain(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a.exp() * a

        @staticmethod
        def backward(ctx, g):
            return g

    counter = Counter()
    with hooks(counter.pack, counter.unpack):
        Plain.apply(lib.leaf([2.0]))
    assert counter.packed == 0


def test_s45_a_custom_second_order_through_the_hooks(lib, hooks):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return 2 * g * a

    x = lib.leaf([3.0])
    with hooks(same, same):
        (g,) = lib.grad(Square.apply(x).sum(), x, create_graph=True)
        (h,) = lib.grad(g.sum(), x)
    assert (g.item(), h.item()) == (6.0, 2.0)


def test_s45_a_freed_graph_says_so(lib, hooks):
    x = lib.leaf([1.0])
    with hooks(same, same):
        z = x.exp()
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()


def test_s45_what_pack_returned_dies_with_the_pass():
    class Box:
        def __init__(self, t):
            self.value = t

    boxes = []

    def pack(t):
        box = Box(t)
        boxes.append(weakref.ref(box))
        return box

    with cr.saved_tensors_hooks(pack, lambda box: box.value):
        z = leaf([1.0]).exp()
    assert boxes[0]() is not None
    z.backward()
    assert boxes[0]() is None


@pytest.mark.parametrize("value", [3, None, [1.0], "text"])
def test_s45_unpack_has_to_return_a_tensor(lib, hooks, value):
    with hooks(same, lambda t: value):
        z = lib.leaf([1.0]).exp()
    with pytest.raises(TypeError, match=r"unpack.*Tensor"):
        z.backward()


def test_s45_an_exception_in_pack_reaches_the_caller_and_records_nothing(lib, hooks):
    x = lib.leaf([1.0])

    def pack(t):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), hooks(pack, same):
        x.exp()
    assert lib.is_grad_enabled()
    x.exp().backward()
    assert x.grad is not None


def test_s45_an_exception_in_unpack_reaches_the_caller(lib, hooks):
    x = lib.leaf([1.0])

    def unpack(t):
        raise KeyError("mine")

    with hooks(same, unpack):
        z = x.exp()
    with pytest.raises(KeyError, match="mine"):
        z.backward()
    assert lib.is_grad_enabled()
    assert x.grad is None


def test_s45_pack_must_not_write_to_the_tensor(lib, hooks):
    x = lib.leaf([1.0])
    with (
        pytest.raises(RuntimeError, match="pack hook is modifying its input in place"),
        hooks(lambda t: t.mul_(2), same),
    ):
        (x * 1).exp()


def test_s45_writes_are_noticed_where_pack_kept_the_memory():
    y = leaf([1.0, 2.0]) * 1
    with cr.saved_tensors_hooks(same, same):
        z = y * y
    y.mul_(10)
    with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
        z.sum().backward()


def test_s45_writes_do_no_harm_where_pack_made_a_copy(lib, hooks):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    with hooks(lambda t: t.detach().clone(), same):
        z = y * y
    y.mul_(10)
    z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_s45_writes_go_through_the_hooks_too(lib, hooks):
    x = lib.leaf([1.0, 2.0])
    counter = Counter()
    with hooks(counter.pack, counter.unpack):
        y = x * 1
        y.exp_()
        y[0:1].mul_(x[0:1])
    y.sum().backward()
    assert counter.packed >= 2
    np.testing.assert_allclose(x.grad.tolist(), [2 * np.e, np.e**2])
