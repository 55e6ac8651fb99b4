"""Memory that arrays of `chainrule.numpy` share: with results, with callers, with copies."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy
import pytest

import chainrule as cr
import chainrule.numpy as np
from chainrule.compat.autograd.scipy import special as compat_special


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_are_arrays_with_memory_of_their_own(copied: Any) -> None:
    a = np.zeros(3)
    b = copied(a)
    b[0] = 1.0
    assert type(b) is np.ndarray
    assert a.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("function", [np.asarray, np.squeeze, np.real, np.atleast_1d, np.ravel])
def test_tensors_of_the_caller_keep_their_class(function: Any) -> None:
    x = cr.tensor([1.0, 2.0, 3.0], dtype=cr.float64)
    y = function(x)
    assert (type(x), type(y)) == (cr.Tensor, np.ndarray)
    y[0] = 7.0
    assert x[0] == 7.0


def test_a_result_that_was_written_keeps_the_history_of_other_tensors() -> None:
    w = cr.tensor(2.0, dtype=cr.float64, requires_grad=True)

    def f(v: Any) -> Any:
        y = np.zeros(3)
        y[0] = v[0] * w
        y[1] = w
        return y[:2]

    out, pull = cr.vjp(f, numpy.array([3.0, 4.0]))
    out.sum().backward(retain_graph=True)
    assert w.grad == 4.0
    (g,) = cr.autograd_grad(pull(numpy.ones(2))[0], w)
    assert g == 1.0


def test_work_arrays_are_free_of_history_after_a_call() -> None:
    work = np.zeros(2)

    def f(v: Any) -> Any:
        work[0] = v[0] ** 2
        return work.sum()

    for _ in range(2):
        numpy.testing.assert_allclose(cr.grad(f)(numpy.array([3.0])), [6.0])
    assert not work.requires_grad


VIEWS = """
    np.lib.stride_tricks.as_strided(a,(3,),(8,)) | np.nan_to_num(a,copy=False) | np.diagonal(m)
    np.asarray_chkfinite(a) | np.meshgrid(a,a,copy=False)[0] | np.rollaxis(m,1) | np.fliplr(m)
    np.apply_over_axes(lambda q,axis:q,m,0) | np.require(a) | np.vsplit(m,1)[0] | np.diag(m)
    np.real_if_close(a) | np.emath.sqrt(a) | np.take(a,[0]) | np.trim_zeros(a) | np.array(a)
    np.moveaxis(m,0,1) | np.lib.stride_tricks.sliding_window_view(a,2) | np.broadcast_to(a,(2,3))"""


@pytest.mark.parametrize("code", [" ".join(c.split()) for c in VIEWS.replace("\n", "|").split("|")])
def test_writes_to_a_result_reach_what_shares_its_memory_or_are_refused(code: str) -> None:
    if not code:
        return
    a, m = np.array([1.0, 2.0, 3.0]), np.array([[1.0, 2.0], [3.0, 4.0]])
    before = a.tolist(), m.tolist()
    saved = a * cr.ones(3, dtype=cr.float64, requires_grad=True)
    result = eval(code)
    shares = any([numpy.may_share_memory(result._array, x._array) for x in (a, m)])
    if not result.flags.writeable:
        with pytest.raises(cr.errors.InPlaceError, match="read-only"):
            result[...] = 0.5
        return
    result[...] = 0.5
    assert ((a.tolist(), m.tolist()) != before) == shares
    assert saved.tolist() == [1.0, 2.0, 3.0]


def test_functions_that_write_are_writes_to_the_array() -> None:
    def f(w: Any) -> Any:
        x = np.array([1.0, 2.0, 3.0])
        y = w * x
        np.random.shuffle(x)
        return y.sum() + (w * x)[0]

    numpy.random.seed(4)
    shuffled = numpy.array([1.0, 2.0, 3.0])
    numpy.random.shuffle(shuffled)
    numpy.random.seed(4)
    wanted = [1.0 + shuffled[0], 2.0, 3.0]
    numpy.testing.assert_allclose(cr.grad(f)(numpy.ones(3)), wanted)
    a = np.array([numpy.nan, 1.0])
    assert np.nan_to_num(a, copy=False) is a
    assert a.tolist() == [0.0, 1.0]
    out = np.zeros(2)
    assert np.cumsum(np.array([1.0, 2.0]), out=out) is out
    assert out.tolist() == [1.0, 3.0]


def test_functions_of_functions_see_what_these_close_over() -> None:
    def f(w: Any) -> Any:
        x = np.array([[1.0, 2.0], [3.0, 4.0]])
        whole = np.apply_along_axis(lambda row: row * w, 0, x)
        return whole.sum() + np.piecewise(x[0], [x[0] > 1.5], [lambda t: w * t, 0.0]).sum()

    assert cr.grad(f)(2.0) == 12.0


def test_lists_are_arrays_for_methods_of_ufuncs() -> None:
    def f(v: Any) -> Any:
        largest = np.maximum.reduce([v[0], v[1] * 2])
        return (
            largest + np.add.accumulate([v[0], v[1]])[1] + np.multiply.outer([v[0]], [v[1]]).sum()
        )

    numpy.testing.assert_allclose(cr.grad(f)(numpy.array([3.0, 4.0])), [5.0, 6.0])


def test_special_functions_of_autograds_namespace_are_chainrules() -> None:
    x = numpy.array([0.5, 2.0])
    for name, arguments in {
        "polygamma": (1, x),
        "multigammaln": (x + 3, 2),
        "rgamma": (x,),
    }.items():
        f = getattr(compat_special, name)
        *fixed, y = arguments if name != "multigammaln" else (x + 3,)
        more = (2,) if name == "multigammaln" else ()
        cr.gradcheck(
            lambda t, f=f, fixed=fixed, more=more: f(*fixed, t, *more),
            cr.tensor(y, requires_grad=True),
        )
