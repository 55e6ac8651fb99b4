"""The backward pass: NumPy's error state, leaves, and memory that cotangents share."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.errors import InPlaceError

# --- NumPy's reports of floating-point errors -----------------------------------------------------


def _endless() -> tuple[Any, Any]:
    """Return a leaf and a root whose derivative there is infinite."""
    x = cr.tensor([0.0], requires_grad=True)
    return x, cr.sqrt(x).sum()


def test_a_pass_is_silent_where_numpy_is_to_raise():
    x, y = _endless()
    with np.errstate(all="raise"):
        y.backward()
        assert set(np.geterr().values()) == {"raise"}
    assert x.grad.tolist() == [np.inf]


def test_reports_are_as_they_were_after_a_pass_that_failed():
    x, y = _endless()

    def fail(_: Any) -> None:
        assert set(np.geterr().values()) == {"ignore"}
        raise ValueError("mine")

    x.register_hook(fail)
    before = np.geterr()
    with pytest.raises(ValueError, match="mine"):
        y.backward()
    assert np.geterr() == before


def test_a_pass_keeps_numpys_error_callback_and_buffer_size():
    x, y = _endless()
    seen = []
    x.register_hook(lambda _: seen.append((np.geterrcall(), np.getbufsize())))

    def called(*_: Any) -> None:
        raise AssertionError

    size = np.setbufsize(16384)
    try:
        with np.errstate(all="call", call=called):
            y.backward()
    finally:
        np.setbufsize(size)
    assert seen == [(called, 16384)]


# --- leaves ---------------------------------------------------------------------------------------


def test_a_leaf_that_gets_its_hook_during_the_pass_runs_it():
    x, w = cr.ones(2).requires_grad_(), cr.ones(2).requires_grad_()
    y = x * w
    seen = []

    def hook(_: Any) -> None:
        w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))

    z = y * w  # by now w has got a gradient, and the node of y is still to run
    y.register_hook(hook)
    z.sum().backward()
    assert seen == [[2.0, 2.0]]
    assert x.grad.tolist() == [1.0, 1.0]


def test_an_error_at_a_leaf_says_where():
    x = cr.ones(2).requires_grad_()
    locked = np.zeros(2, np.float32)
    locked.flags.writeable = False
    x.grad = cr.from_numpy(locked)
    with pytest.raises(InPlaceError, match="clone") as caught:
        (x * 2).sum().backward()
    assert caught.value.__notes__ == ["In the backward pass, at AccumulateGrad."]


def test_a_leaf_among_the_roots_and_one_below_them_get_all():
    x, w = cr.ones(()).requires_grad_(), cr.ones(()).requires_grad_()
    cr.autograd_backward([x, x * w, x])
    assert x.grad.item() == 3
    assert w.grad.item() == 1


# --- what passes begin with -----------------------------------------------------------------------


@cr.autograd_function
def _careless(ctx: Any, x: Any) -> Any:
    return x * 1


@_careless.backward
def _(ctx: Any, grad_output: Any) -> Any:
    return grad_output.mul_(10)


@pytest.mark.parametrize("shape", [(), (3,), (40, 50)])
def test_a_backward_that_writes_to_its_gradient_harms_no_other_pass(shape: tuple[int, ...]):
    x = cr.ones(shape).requires_grad_()
    for count in (1, 2):
        _careless(x).sum().backward()
        assert (x.grad == 10 * count).all()
    y = cr.ones(()).requires_grad_()
    _careless(y).backward()
    assert y.grad.item() == 10
    (gradient,) = cr.autograd_grad(y * 1, y)
    gradient.mul_(5)
    y.grad = None
    y.backward()
    y.grad.mul_(7)
    assert cr.autograd_grad(y * 1, y)[0].item() == 1


def test_gradients_of_sums_share_no_memory():
    x, y = cr.ones(3).requires_grad_(), cr.ones(3).requires_grad_()
    (x + y).sum().backward()
    x.grad.mul_(2)
    assert y.grad.tolist() == [1.0, 1.0, 1.0]


def test_needs_input_grad_is_one_immutable_object():
    seen = []

    @cr.autograd_function
    def double(ctx: Any, x: Any, factor: Any = 2.0) -> Any:
        seen.append(ctx.needs_input_grad)
        return x * factor

    x = cr.ones(2).requires_grad_()
    double(x)
    with pytest.raises(AttributeError, match="needs_input_grad can't be changed"):
        seen[0].x = False
    double(x)
    assert [(needs.x, needs.factor) for needs in seen] == [(True, False)] * 2


# --- compiled functions look at the modes ---------------------------------------------------------


def test_a_compiled_function_knows_grad_mode():
    function = cr.compile(lambda x: x * x)
    x = cr.ones(2).requires_grad_()
    results = []
    for _ in range(2):
        with cr.no_grad():
            results.append(function(x))
        results.append(function(x))
    assert [y.requires_grad for y in results] == [False, True] * 2


def test_an_unshared_gradient_is_not_copied() -> None:
    x = cr.ones(1 << 18, requires_grad=True)
    y = x.log()
    cotangent = cr.ones_like(y.detach())
    y.backward(cotangent, retain_graph=True)
    x.grad = None
    tracemalloc.start()
    y.backward(cotangent)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1.5 * cotangent.nbytes
