"""cr.utils.checkpoint: parts of a function recomputed in the backward pass."""

from __future__ import annotations

import contextlib
import gc
import importlib
import weakref

import numpy as np
import pytest

import chainrule as cr
from chainrule.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    get_device_states,
    set_device_states,
)
from helpers.tensors import equal, leaf, memory
from helpers.torch_comparison import same_as_torch


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.function(*args, **kwargs)


def block(x, w):
    return ((x @ w).sin() * x).exp()


def point():
    rng = np.random.default_rng(0)
    return leaf(rng.normal(size=(3, 3))), leaf(rng.normal(size=(3, 3)))


# --- the same derivatives -------------------------------------------------------------------------


def wrapped(lib):
    module = importlib.import_module(f"{lib.module.__name__}.utils.checkpoint")
    return lambda function, *args, **kwargs: module.checkpoint(
        function, *args, use_reentrant=False, **kwargs
    )


def test_derivatives_are_those_of_the_plain_call():
    x, w = point()
    expected = cr.autograd_grad(block(x, w).sum(), [x, w])
    once = Counted(block)
    out = checkpoint(once, x, w)
    assert once.calls == 1
    assert all(map(equal, cr.autograd_grad(out.sum(), [x, w]), expected))
    assert once.calls == 2


def test_second_derivatives_and_chains_of_parts_are_those_of_torch():
    def program(lib):
        part = wrapped(lib)
        x, w = lib.leaf([[1.0, 2.0], [3.0, 4.0]]), lib.leaf([[0.5, -1.0], [0.25, 2.0]])
        y = part(block, part(block, x * 0.1, w), w).sum()
        g = lib.grad(y, [x, w], create_graph=True)
        return g, lib.grad((g[0] * g[1]).sum(), [x, w])

    same_as_torch(program, rtol=1e-10)


def test_a_part_inside_a_part():
    def program(lib):
        part = wrapped(lib)

        def outer(x):
            return part(lambda x: (x.sin() * x).exp(), x * 2).cos() + x.exp()

        x = lib.leaf([0.1, 0.2])
        lib.backward(part(outer, x).sum())
        return x.grad

    same_as_torch(program)


def test_a_nested_part_is_recomputed_when_its_values_are_needed():
    inner = Counted(lambda x: x.sin().exp())
    x = leaf([0.1, 0.2], cr.float64)
    out = checkpoint(lambda x: checkpoint(inner, x * 2).cos(), x)
    assert inner.calls == 1
    out.sum().backward()
    assert 2 <= inner.calls <= 3
    y = leaf([0.1, 0.2], cr.float64)
    (y * 2).sin().exp().cos().sum().backward()
    assert equal(x.grad, y.grad)


def test_what_it_closes_over_has_gradients_too():
    w = leaf([2.0, 3.0])
    checkpoint(lambda x: x * w.exp(), cr.ones(2)).sum().backward()
    assert equal(w.grad, np.exp(np.float32([2.0, 3.0])))


def test_arguments_by_keyword_and_other_than_tensors_and_several_results():
    def function(x, power, *, scale, names):
        assert names == ["a"]
        return {"first": (x**power).exp(), "second": [x.sin() * scale, 3]}

    x, scale = leaf([1.0, 0.5]), leaf(2.0)
    result = checkpoint(function, x, 2, scale=scale, names=["a"])
    (result["first"].sum() + result["second"][0].sum()).backward()
    y, other = leaf([1.0, 0.5]), leaf(2.0)
    ((y**2).exp().sum() + (y.sin() * other).sum()).backward()
    assert result["second"][1] == 3
    assert equal(x.grad, y.grad)
    assert equal(scale.grad, other.grad)


def test_custom_functions_and_views_and_writes_inside():
    class Square(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * g * x

    def function(x):
        y = x.exp() + 1
        y[0] = x[1] * 2
        y[1:].mul_(3)
        return Square.apply(y) * y

    x, y = leaf([0.1, 0.2, 0.3]), leaf([0.1, 0.2, 0.3])
    checkpoint(function, x).sum().backward()
    function(y).sum().backward()
    assert equal(x.grad, y.grad)


def test_a_pass_that_keeps_the_graph_can_be_repeated():
    x, w = point()
    once = Counted(block)
    out = checkpoint(once, x, w).sum()
    first = cr.autograd_grad(out, [x, w], retain_graph=True)
    second = cr.autograd_grad(out, [x, w])
    assert all(map(equal, first, second))
    assert once.calls == 3


def test_a_pass_to_some_inputs_needs_some_of_the_values():
    x, w = point()
    out = checkpoint(block, x, w).sum()
    (alone,) = cr.autograd_grad(out, w, retain_graph=True)
    assert equal(alone, cr.autograd_grad(out, [x, w])[1])


# --- what it keeps, and when it runs --------------------------------------------------------------


def test_values_of_a_part_are_freed_after_the_call_and_during_the_pass():
    alive: list[weakref.ref] = []

    def watched(x):
        for _ in range(3):
            x = x.sin()
            alive.append(weakref.ref(memory(x)))
        return x * 0.1

    def count():
        return sum(each() is not None for each in alive)

    gc.disable()
    try:
        x = leaf([0.1])
        out = checkpoint(watched, checkpoint(watched, x))
        assert count() == 0
        at_most = []
        out.register_hook(lambda g: at_most.append(count()))
        x.register_hook(lambda g: at_most.append(count()))
        out.backward()
        assert len(alive) == 10  # the second calls end early
        assert max(at_most) == 0
    finally:
        gc.enable()


def test_nothing_is_computed_again_for_what_needs_no_saved_values():
    once = Counted(lambda x: (x + 1).sum())
    x = leaf([1.0, 2.0])
    checkpoint(once, x).backward()
    assert once.calls == 1
    with cr.no_grad():
        assert not checkpoint(once, x).requires_grad
    assert once.calls == 2


def test_the_second_call_ends_with_the_last_value_that_is_needed():
    reached = []

    def function(x):
        y = x.exp()
        reached.append("exp")
        y = y + 1
        reached.append("end")
        return y

    checkpoint(function, leaf([1.0])).backward()
    assert reached == ["exp", "end"]


def test_random_numbers_are_those_of_the_first_call():
    def noisy(x):
        return (x * cr.rand(4)).exp() * cr.rand(4)

    cr.manual_seed(3)
    x = leaf([1.0, 2.0, 3.0, 4.0])
    out = checkpoint(noisy, x)
    drawn = cr.rand(2)
    out.sum().backward()
    after = cr.rand(2)
    cr.manual_seed(3)
    y = leaf([1.0, 2.0, 3.0, 4.0])
    noisy(y).sum().backward()
    assert equal(x.grad, y.grad)
    assert equal(cr.rand(2), drawn)
    assert equal(cr.rand(2), after)


def test_without_the_state_of_the_generator_it_goes_on():
    x = leaf([1.0])
    drawn = []

    def noisy(x):
        drawn.append(cr.rand(1).item())
        return x.exp() * 2

    checkpoint(noisy, x, preserve_rng_state=False).backward()
    assert drawn[0] != drawn[1]


def test_each_call_has_a_context_of_its_own():
    log = []

    @contextlib.contextmanager
    def noted(what):
        log.append(what)
        yield
        log.append(f"end of {what}")

    def contexts():
        return noted("first"), noted("second")

    checkpoint(lambda x: x.exp(), leaf([1.0]), context_fn=contexts).backward()
    assert log == ["first", "end of first", "second", "end of second"]


def test_arguments_go_through_hooks_on_saved_values():
    packed = []

    def pack(tensor):
        packed.append(tensor.tolist())
        return tensor.numpy()

    x = leaf([1.0, 2.0])
    with cr.saved_tensors_hooks(pack, cr.tensor):
        out = checkpoint(lambda x: (x * x).exp(), x)
    assert packed == [[1.0, 2.0]]
    out.sum().backward()
    y = leaf([1.0, 2.0])
    (y * y).exp().sum().backward()
    assert equal(x.grad, y.grad)


def test_a_row_of_functions_in_segments():
    steps = [Counted(f) for f in (cr.sin, cr.exp, cr.cos, cr.tanh, cr.exp)]
    x, y = leaf(0.5), leaf(0.5)
    checkpoint_sequential(steps, 2, x, use_reentrant=False).backward()
    assert [step.calls for step in steps] == [2, 2, 1, 1, 1]
    cr.exp(cr.tanh(cr.cos(cr.exp(cr.sin(y))))).backward()
    assert equal(x.grad, y.grad)
    with pytest.raises(ValueError, match="from 1 to the 5 functions, got 6"):
        checkpoint_sequential(steps, 6, x)


# --- what goes wrong ------------------------------------------------------------------------------


def test_another_number_of_saved_values_is_an_error():
    calls = []

    def moody(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x + 1

    out = checkpoint(moody, leaf([1.0]))
    with pytest.raises(CheckpointError, match="A different number of tensors was saved"):
        out.backward()


def test_values_of_other_shapes_are_an_error_unless_the_check_is_off():
    calls = []

    def moody(x):
        calls.append(1)
        return (x if len(calls) == 1 else x.reshape(2, 1)).exp().sum()

    x = leaf([1.0, 2.0])
    out = checkpoint(moody, x)
    with pytest.raises(CheckpointError, match=r"was float32 \[2\], and is float32 \[2, 1\] now"):
        out.backward()
    calls.clear()
    checkpoint(moody, x, determinism_check="none").backward()
    with pytest.raises(ValueError, match="one of 'default', 'none', got 'strict'"):
        checkpoint(moody, x, determinism_check="strict")


def test_a_tensor_found_by_name_that_was_written_to_is_an_error_unless_the_check_is_off():
    x, shift = leaf([1.0, 2.0]), cr.ones(2)
    shifted = lambda x: (x + shift).sin().exp()  # noqa: E731
    out, unchecked = (
        checkpoint(shifted, x, determinism_check=c).sum() for c in ("default", "none")
    )
    shift.mul_(2)
    with pytest.raises(CheckpointError, match="the recomputation saves other values: the sum of"):
        out.backward()
    unchecked.backward()


@pytest.mark.parametrize("dtype", [cr.float16, cr.float64])
def test_values_that_are_not_finite_are_the_same_as_before(dtype):
    x = cr.tensor([0.0, float("inf"), float("nan")], dtype=dtype, requires_grad=True)
    found = []
    for wrap in (lambda f: f, cr.checkpoint):
        y = wrap(lambda x: (x * x).exp() * x)(x)
        found.append(cr.autograd_grad(y, x, cr.ones_like(y))[0].numpy())
    np.testing.assert_array_equal(*found)


def test_an_argument_that_was_written_to_is_an_error():
    x = leaf([1.0, 2.0])
    y = x * 1
    out = checkpoint(lambda y: y.exp().sum(), y)
    y.mul_(2)
    with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
        out.backward()


def test_a_value_that_the_function_itself_wrote_to_is_an_error():
    def careless(x):
        y = x.exp()
        y[0] = 0
        return y.sin()

    with pytest.raises(cr.InPlaceError, match="wrote to after the graph had saved it"):
        checkpoint(careless, leaf([1.0, 2.0])).sum().backward()


def test_an_exception_of_the_second_call_comes_through_and_leaves_modes_as_they_were():
    calls = []

    def once(x):
        calls.append(1)
        if len(calls) == 2:
            raise KeyError("mine")
        return x.exp()

    x = leaf([1.0])
    out = checkpoint(once, x)
    state = cr.get_rng_state()
    with pytest.raises(KeyError, match="mine"):
        out.backward()
    assert cr.get_rng_state() == state
    assert cr.is_grad_enabled()
    out.backward(retain_graph=True)
    assert equal(x.grad, np.exp(np.float32([1.0])))


def test_nothing_is_left_when_the_result_is_dropped():
    gc.disable()
    try:
        x = cr.ones(3, requires_grad=True) * 2
        gone = weakref.ref(memory(x))
        out = checkpoint(lambda x: x.exp().sin(), x)
        out.sum().backward()
        del x, out
        assert gone() is None
    finally:
        gc.enable()


def test_in_a_compiled_function_it_is_a_plain_call():
    def step(x, w):
        return cr.autograd_grad(checkpoint(block, x, w).sum(), w)[0]

    x, w = point()
    assert equal(cr.compile(step)(x, w), step(x, w))


def test_the_end_of_the_second_call_is_no_exception_to_the_function():
    def careful(x):
        try:
            return x.exp() + 1
        except Exception:  # pragma: no cover
            raise AssertionError from None

    x = leaf([0.0])
    checkpoint(careful, x).backward()
    assert x.grad.tolist() == [1.0]


def test_reversible_layers_draw_again_what_they_drew():
    """By the functions that their `Function` in scripts of PyTorch calls."""
    x = cr.ones(2)
    state, devices = cr.get_rng_state(), get_device_states(x)
    first = cr.dropout(x, 0.5, True)
    cr.set_rng_state(state)
    set_device_states(*devices)
    assert cr.dropout(x, 0.5, True).tolist() == first.tolist()
