"""SEMANTICS 41: hooks on tensors."""

from __future__ import annotations

import gc
import weakref

import pytest

from helpers.tensors import leaf


def test_s41_a_hook_sees_the_total_gradient_once(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 2 + y * 3 + y[[0, 0]].sum()).sum().backward()
    assert seen == [[9.0, 5.0]]


def test_s41_a_hook_runs_once_in_every_pass(lib):
    x = lib.leaf([1.0])
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    z = (x * x).sum()
    z.backward(retain_graph=True)
    lib.grad(z, x, retain_graph=True)
    (x * 5).backward()
    assert seen == [2.0, 2.0, 5.0]


def test_s41_a_hook_on_a_leaf_sees_the_gradient_of_this_pass_alone(lib):
    x = lib.leaf([1.0])
    x.grad = lib.tensor([100.0], dtype="float64")
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * 2).backward()
    assert seen == [2.0]
    assert x.grad.tolist() == [102.0]


def test_s41_a_replacement_goes_on_downwards(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 3
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_s41_a_replacement_on_a_leaf_is_what_is_accumulated(lib):
    x = lib.leaf([1.0, 2.0])
    x.register_hook(lambda g: g * 10)
    for _ in range(2):
        x.sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]


def test_s41_none_keeps_the_gradient(lib):
    x = lib.leaf([1.0])
    x.register_hook(lambda g: None)
    (x * 3).backward()
    assert x.grad.tolist() == [3.0]


def test_s41_hooks_run_in_order_and_see_earlier_changes(lib):
    x = lib.leaf([1.0])
    seen = []

    def times(factor):
        def hook(g):
            seen.append((factor, g.item()))
            return g * factor

        return hook

    for factor in (2, 3, 5):
        x.register_hook(times(factor))
    x.backward(lib.tensor([1.0], dtype="float64"))
    assert seen == [(2, 1.0), (3, 2.0), (5, 6.0)]
    assert x.grad.tolist() == [30.0]


def test_s41_the_same_hook_twice_runs_twice(lib):
    x = lib.leaf([1.0])

    def double(g):
        return g * 2

    first, _ = x.register_hook(double), x.register_hook(double)
    (x * 1).backward()
    assert x.grad.tolist() == [4.0]
    first.remove()
    assert lib.grad(x * 1, x)[0].tolist() == [2.0]


def test_s41_a_handle_removes_its_hook(lib):
    x = lib.leaf([1.0])
    handle = x.register_hook(lambda g: g * 10)
    handle.remove()
    handle.remove()
    (x * 1).backward()
    assert x.grad.tolist() == [1.0]


def test_s41_a_handle_is_a_block(lib):
    x = lib.leaf([1.0])
    with x.register_hook(lambda g: g * 10):
        (x * 1).backward()
    (x * 1).backward()
    assert x.grad.tolist() == [11.0]


def test_s41_removing_between_two_passes_over_one_graph(lib):
    x = lib.leaf([1.0])
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    y.backward(retain_graph=True)
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [22.0]


def test_s41_a_hook_may_remove_itself(lib):
    x = lib.leaf([1.0])
    seen = []

    def once(g):
        seen.append("once")
        handle.remove()

    handle = x.register_hook(once)
    x.register_hook(lambda g: seen.append("always"))
    for _ in range(2):
        (x * 1).backward()
    assert seen == ["once", "always", "always"]


def test_s41_a_hook_that_another_removed_still_runs_in_this_pass(lib):
    x = lib.leaf([1.0])
    seen = []
    x.register_hook(lambda g: handle.remove())
    handle = x.register_hook(lambda g: seen.append("removed"))
    for _ in range(2):
        (x * 1).backward()
    assert seen == ["removed"]


def test_s41_a_hook_that_another_adds_runs_from_the_next_pass_on(lib):
    x = lib.leaf([1.0])
    seen = []
    handle = x.register_hook(lambda g: x.register_hook(lambda g: seen.append("new")) and None)
    (x * 1).backward()
    assert seen == []
    handle.remove()
    (x * 1).backward()
    assert seen == ["new"]


def test_s41_downstream_fires_before_upstream(lib):
    x = lib.leaf([1.0])
    a = x * 2
    b = a * 3
    c = b * 4
    order = []
    for name, t in {"a": a, "x": x, "c": c, "b": b}.items():
        t.register_hook(lambda g, name=name: order.append((name, g.item())))
    c.backward()
    assert order == [("c", 1.0), ("b", 4.0), ("a", 12.0), ("x", 24.0)]


def test_s41_a_hook_on_the_root_sees_and_changes_the_gradient_that_was_given(lib):
    x = lib.leaf([1.0, 2.0])
    y = x * 1
    y.register_hook(lambda g: g * 3)
    y.backward(lib.tensor([5.0, 7.0], dtype="float64"))
    assert x.grad.tolist() == [15.0, 21.0]


def test_s41_each_output_of_a_node_has_hooks_of_its_own(lib):
    x = lib.leaf([1.0, 2.0])
    a, b = x.unbind()
    seen = []
    a.register_hook(lambda g: seen.append(("a", g.item())))
    b.register_hook(lambda g: g * 100)
    (a * 3 + b * 5).backward()
    assert seen == [("a", 3.0)]
    assert x.grad.tolist() == [3.0, 500.0]


def test_s41_a_hook_on_an_output_that_got_nothing_sees_nothing():
    a, b = leaf([1.0, 2.0]).unbind()
    seen = []
    a.register_hook(seen.append)
    b.backward()
    assert seen == []


def test_s41_a_hook_in_a_branch_that_is_not_walked_is_not_called(lib):
    x = lib.leaf([1.0])
    y, z = x * 2, x * 3
    seen = []
    z.register_hook(seen.append)
    y.backward()
    assert seen == []


def test_s41_a_hook_on_a_view_sees_the_gradient_of_the_view(lib):
    y = lib.leaf([1.0, 2.0]) * 1
    v = y[0:1]
    seen = []
    v.register_hook(lambda g: seen.append(g.tolist()))
    (v * 3 + y.sum()).sum().backward()
    assert seen == [[3.0]]


def test_s41_complex_gradients_are_shown_in_pytorchs_convention(lib):
    x = lib.leaf([1 + 2j], "complex128")
    y = x * 3j
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()) or g * 1j)
    (y * y).backward(lib.tensor([1 + 0j], dtype="complex128"))
    assert seen == [[-12 - 6j]]
    assert x.grad.tolist() == [-36 - 18j]


def test_s41_freezing_a_leaf_for_a_while_keeps_its_hooks(lib):
    x = lib.leaf([1.0])
    x.register_hook(lambda g: g * 10)
    x.requires_grad_(False)
    x.requires_grad_(True)
    (x * 1).backward()
    assert x.grad.tolist() == [10.0]


def test_s41_updating_a_leaf_keeps_its_hooks(lib):
    x = lib.leaf([1.0])
    x.register_hook(lambda g: g * 10)
    with lib.no_grad():
        x.sub_(0.5)
    (x * 1).backward()
    assert x.grad.tolist() == [10.0]


def test_s41_without_grad_there_is_nothing_to_hook(lib):
    text = "cannot register a hook on a tensor that doesn't require gradient"
    for x in (lib.ones(2), lib.leaf([1.0]).detach(), lib.tensor([1, 2])):
        with pytest.raises(RuntimeError, match=text):
            x.register_hook(print)
        with pytest.raises(RuntimeError, match=text):
            x.register_post_accumulate_grad_hook(print)


def test_s41_what_is_no_function_fails_in_the_pass(lib):
    class Watched:  # PyTorch's tests hook such things to see a graph die
        pass

    y = lib.leaf([1.0]) * 2
    watched = Watched()
    alive = weakref.ref(watched)
    y.register_hook(watched)
    with pytest.raises(TypeError, match="'Watched' object is not callable"):
        y.backward()
    del y, watched
    gc.collect()
    assert alive() is None


def test_s41_a_handle_does_not_keep_what_the_hook_holds(lib):
    class Held:
        pass

    y = lib.leaf([1.0]) * 2
    held = [Held(), Held()]
    alive = [weakref.ref(one) for one in held]
    handles = [
        y.register_hook(lambda g, held=held[0]: None),
        y.grad_fn.register_prehook(lambda g, held=held[1]: None),
    ]
    del y, held
    assert [reference() for reference in alive] == [None, None]
    for handle in handles:
        handle.remove()


def test_s41_what_to_do_about_it_is_said():
    with pytest.raises(RuntimeError, match=r"no gradient arrives at it"):
        leaf([1.0]).detach().register_hook(print)


@pytest.mark.parametrize("value", [3, 2.5, "text", [1.0], (None,), False])
def test_s41_anything_but_a_tensor_or_none_is_a_type_error(lib, value):
    x = lib.leaf([1.0])
    y = x * 2
    y.register_hook(lambda g: value)
    with pytest.raises(TypeError, match=type(value).__name__):
        y.backward()
    assert x.grad is None


def test_s41_an_array_is_no_tensor():
    y = leaf([1.0]) * 2
    y.register_hook(lambda g: g.numpy())
    with pytest.raises(TypeError, match="a hook must return a Tensor or None"):
        y.backward()


def test_s41_a_replacement_of_another_size_is_refused(lib):
    def shorten(g):
        return g[:1]

    x = lib.leaf([1.0, 2.0])
    x.register_hook(shorten)
    with pytest.raises(RuntimeError, match="hook 'shorten' has changed the size of value"):
        x.sum().backward()


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32"])
def test_s41_a_replacement_of_another_dtype_is_refused(lib, dtype):
    def cast(g):
        return g.to(getattr(lib, dtype))

    x = lib.leaf([1.0, 2.0])
    y = x * 2
    y.register_hook(cast)
    with pytest.raises(RuntimeError, match="hook 'cast' has changed the type of value"):
        y.sum().backward()


def test_s41_a_hook_that_writes_into_the_gradient_harms_no_sibling():
    x = leaf([1.0, 2.0])
    y, z = x * 1, x * 1
    y.register_hook(lambda g: g.copy_(g * 5))
    (y + z).sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_s41_gradients_that_a_hook_keeps_stay_as_they_were(lib):
    x = lib.leaf([1.0])
    kept = []
    x.register_hook(kept.append)
    for factor in (2, 3):
        (x * factor).backward()
    x.grad.zero_()
    assert [g.item() for g in kept] == [2.0, 3.0]


def test_s41_a_hook_runs_unrecorded_unless_the_pass_is_recorded(lib):
    x = lib.leaf([2.0])
    modes = []
    x.register_hook(lambda g: modes.append((lib.is_grad_enabled(), g.requires_grad)))
    (x * x).backward()
    lib.grad((x * x).sum(), x, create_graph=True)
    assert modes == [(False, False), (True, True)]


def test_s41_a_replacement_is_part_of_the_graph_of_the_gradient(lib):
    x = lib.leaf([2.0])
    x.register_hook(lambda g: g * g)
    (g,) = lib.grad((x * x).sum(), x, create_graph=True)
    assert g.item() == 16.0
    g.sum().backward()  # (4x²)' = 8x = 16, which the hook squares
    assert x.grad.item() == 256.0


def test_s41_dropping_the_tensor_keeps_its_hook(lib):
    x = lib.leaf([1.0])
    y = x * 1
    y.register_hook(lambda g: g * 7)
    z = y * 1
    del y
    z.backward()
    assert x.grad.tolist() == [7.0]


def test_s41_a_hook_dies_with_the_graph():
    class Hook:
        def __call__(self, g):
            return None

    hook = Hook()
    dead = weakref.ref(hook)
    y = leaf([1.0]) * 1
    y.register_hook(hook)
    del hook
    assert dead() is not None
    del y
    assert dead() is None
