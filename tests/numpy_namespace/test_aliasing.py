"""Whether a result shares memory with its argument: what is written to it reaches both, or one.

The same holds in every way to run a program. NumPy says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as xp

EXPRESSIONS = """
a.ravel() | a.T.ravel() | np.flip(a).ravel() | np.flip(a).reshape(-1) | a[:, ::2].ravel()
a[:, 0].ravel() | a[::-1].reshape(-1) | a[:, ::-1].ravel() | a[::2].ravel()
a[:, :2].reshape(-1) | a[0][::2].ravel() | a[:, 1:2].ravel() | np.ravel(a) | np.ravel(a.T)
np.ravel(np.flip(a)) | np.ravel(a[0][::2]) | np.ravel(a[0][::-1].reshape(2, 2)) | a.ravel('F')
a.T.ravel('F') | a.T.ravel('A') | a.reshape(-1, order='F') | a.T.reshape(-1, order='F')
a[1:2].ravel() | a.flatten() | a.T.reshape(2, 2, 3) | np.flip(a).T.reshape(2, 6) | +a
np.positive(a) | np.conj(a) | a.conj() | a.conjugate() | a.real | np.real(a)
np.real_if_close(a) | np.block(a) | np.block([[a]]) | np.pad(a, 0) | np.choose([0], [a])
a.flat[:] | np.diff(a, 0) | np.meshgrid(a[0], a[1])[0] | np.meshgrid(a[0], copy=False)[0]
np.meshgrid(a[0], a[1], sparse=True)[1] | np.linalg.matrix_power(a[:, 1:], 1)
np.linalg.matrix_power(a[:, 1:], 2) | np.squeeze(a[:1]) | a[None][0] | np.ascontiguousarray(a)
np.ascontiguousarray(a.T) | a.astype(float) | a.astype(float, copy=False) | np.atleast_3d(a)
np.concatenate([a]) | np.roll(a, 0) | np.rot90(a) | np.rot90(a, 0) | np.repeat(a, 1, 0)
np.tile(a, 1) | np.clip(a, None, None) | a.sum(axis=()) | a[[0, 1]] | a[np.arange(3)]
np.copy(a) | a.view() | np.array_split(a, 2)[0] | np.hsplit(a, 2)[1] | np.triu(a)
np.where(a > 0, a, a) | np.round(a) | a.swapaxes(0, 1)
"""
CODES = [code.strip() for code in EXPRESSIONS.replace("\n", "|").split("|") if code.strip()]
X = np.arange(1.0, 13.0).reshape(3, 4)


def after_writing(code: str, x: Any, np: Any) -> Any:
    a = x * 1.0
    result = eval(code, {"a": a, "np": np})
    result[...] = -5.0
    return a


WAYS: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "eager": lambda f: f(xp.array(X)),
    "forward mode": lambda f: cr.jvp(f, (X,), (X,))[0],
    "vmap": lambda f: [part[1] for part in cr.vmap(f)(np.stack([X, X]))],
    "vmap of forward mode": lambda f: [
        part[1] for part in cr.vmap(lambda x: cr.jvp(f, (x,), (x,))[0])(np.stack([X, X]))
    ],
    "compiled": lambda f: cr.compile(f, backend="numpy")(X),
    "compiled forward mode": lambda f: cr.compile(
        lambda x: cr.jvp(f, (x,), (x,))[0], backend="numpy"
    )(X),
}


@pytest.mark.parametrize("way", WAYS)
def test_writes_reach_the_argument_as_in_numpy(way: str) -> None:
    found = WAYS[way](lambda x: tuple([after_writing(code, x, xp) for code in CODES]))
    for code, array in zip(CODES, found, strict=True):
        np.testing.assert_array_equal(array, after_writing(code, X, np), err_msg=code)


PARTS = ("a.real", "a.imag", "np.real(a)", "np.imag(a)")


@pytest.mark.parametrize("way", WAYS)
def test_writes_to_parts_of_complex_numbers_reach_them(way: str) -> None:
    for code in PARTS:
        found = WAYS[way](lambda x, code=code: (after_writing(code, x * (1 + 2j), xp),))
        np.testing.assert_array_equal(found[0], after_writing(code, X * (1 + 2j), np))


def test_parts_whose_numbers_are_gone_may_be_written_to() -> None:
    def f(x: Any) -> Any:
        part = xp.fft.fft(x).real
        part *= 2.0
        part[0] = 1.0
        return part.sum()

    for g in (f, cr.compile(f), lambda x: cr.vmap(f)(x[None])[0]):
        np.testing.assert_allclose(g(X[0]), 1.0 + 2 * np.fft.fft(X[0]).real[1:].sum())
    gradients = cr.grad(f)(X[0]), cr.compile(cr.grad(f))(X[0]), cr.vmap(cr.grad(f))(X[:1])[0]
    for gradient in gradients[1:]:
        np.testing.assert_allclose(gradient, gradients[0])


OVERLAPPING = [  # a key, and what is written there of the same array
    ("np.ones(a.shape, bool)", "a[::-1, ::-1].ravel()"),
    ("np.ones(a.shape, bool)", "a.ravel()"),
    ("a.ravel()[::-1].reshape(a.shape) > 3", "a.reshape(-1)[8::-1]"),
    ("(a > 2,)", "a.reshape(-1)[:10]"),
    ("a[:, 0] > 1", "a[1::-1]"),
    ("[0, 1]", "a[1::-1]"),
    ("slice(1, None)", "a[:-1]"),
]
"""Writes that read the memory they write to; NumPy's own at a mask mix old and new elements."""


@pytest.mark.no_verify("arrays of NumPy, written by NumPy, are what differs")
@pytest.mark.parametrize("way", WAYS)
def test_a_write_takes_the_elements_from_before_it(way: str) -> None:
    def f(x: Any) -> Any:
        results = []
        for key, value in OVERLAPPING:
            a = x * 1.0
            scope = {"a": a, "np": np}
            a[eval(key, {"a": X, "np": np})] = eval(value, scope)
            results.append(a)
        return tuple(results)

    for (key, value), array in zip(OVERLAPPING, WAYS[way](f), strict=True):
        wanted, scope = X.copy(), {"a": X, "np": np}
        wanted[eval(key, scope)] = np.array(eval(value, scope))
        np.testing.assert_array_equal(array, wanted, err_msg=f"a[{key}] = {value}")
