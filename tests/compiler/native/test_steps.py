"""Operations within steps of loops, as machine code: they agree with the eager engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
import chainrule.nn.functional as F
from chainrule.compiler.native import dense_kernels

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

Function = Callable[..., Any]

SPECIAL = [
    *(0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.3, -0.3, np.inf, -np.inf, np.nan, 1e300, -1e300),
    *(5e-324, 1e-300, 7.0, -7.0, 0.5, 1.5, -1.5, 171.5),
]
WHOLE = [-7, -3, -1, 0, 1, 2, 5, 100, -(2**63), 2**63 - 1]


def in_a_scan(function: Function, *arrays: Any) -> tuple[list[Any], list[Any]]:
    """Return what machine code and the eager engine compute; a step that isn't native raises."""

    def scan(*xs: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            return carry * 0.5, function(*xs)

        return cr.scan(step, cr.ones((), dtype=cr.float64), cr.arange(2))[1]

    xs = [cr.tensor(array) for array in arrays]
    with np.errstate(all="ignore"):
        found = cr.compile(scan, backend="native", strict=True)(*xs)
        wanted = function(*xs)
    found = found if isinstance(found, tuple | list) else [found]
    wanted = wanted if isinstance(wanted, tuple | list) else [wanted]
    return [t.detach().numpy()[1] for t in found], [t.detach().numpy() for t in wanted]


def assert_equal_bits(function: Function, *arrays: Any) -> None:
    for got, wanted in zip(*in_a_scan(function, *arrays), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(got, wanted)
        if wanted.dtype.kind == "f":
            is_number = wanted == wanted
            np.testing.assert_array_equal(np.signbit(got)[is_number], np.signbit(wanted)[is_number])


def assert_close(function: Function, *arrays: Any) -> None:
    for got, wanted in zip(*in_a_scan(function, *arrays), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        bar = 2e-6 if wanted.dtype == np.float32 else 1e-13
        np.testing.assert_allclose(got, wanted, rtol=bar, atol=bar)


ARITHMETIC: dict[str, Function] = {
    "remainder and quotient": lambda a, b: (a % b, a // b, cr.fmod(a, b)),
    "by a number": lambda a, b: (a % 0.3, 3.0 % a, a // -0.7),
    "neighbours": lambda a, b: (cr.nextafter(a, b), cr.heaviside(a, b), cr.signbit(a)),
    "rounding": lambda a, b: (a.round(), a.round(decimals=2), a.round(decimals=-1)),
    "replacing": lambda a, b: (cr.nan_to_num(a), cr.nan_to_num(a, nan=3.0, posinf=1.0)),
    "moves": lambda a, b: (a.roll(3), a.roll((1, -2), (0, 1)), cr.triu(a, 1), cr.tril(a, -2)),
    "truth": lambda a, b: (a.any(), (a > 0).all(1), cr.count_nonzero(a, dim=0)),
    "places": lambda a, b: (a.argmax(), b.argmax(0), a.argmin(1), (a * 2).argmin()),
    "sorts": lambda a, b: (cr.sort(a)[0], cr.sort(b, 0, stable=True)[1], cr.topk(b, 3)[1]),
    "integers": lambda a, b: (a.long(), b.to(cr.int32)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", ARITHMETIC.values(), ids=ARITHMETIC)
def test_arithmetic_has_the_bits_of_numpy(function: Function, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        numbers = np.array(SPECIAL, dtype)
    assert_equal_bits(function, *map(np.copy, np.meshgrid(numbers, numbers, indexing="ij")))


ELEMENTARY: dict[str, Function] = {
    "sums of exponentials": lambda a, b: (cr.logaddexp(a, b), cr.logaddexp2(a, b)),
    "running": lambda a, b: (cr.logcumsumexp(a[:9], 0), cr.logcumsumexp(a, 1)),
    "products with logarithms": lambda a, b: (cr.xlogy(a, b), cr.special.xlog1py(a, b)),
    "inverse": lambda a, b: (cr.asinh(a), cr.acosh(a), cr.atanh(a)),
    "error functions": lambda a, b: (cr.special.erfc(a), F.gelu(a), cr.sinc(a)),
}


def test_products_in_stacks_of_many_axes() -> None:
    def powers(x: Any) -> Any:
        return cr.scan(lambda a, _: (a @ a.mT, a), x, cr.arange(3))[0]

    most, more = (
        cr.tensor(np.random.default_rng(4).random((*[1] * axes, 2, 2, 2))) for axes in (11, 12)
    )
    native = cr.compile(powers, backend="native", strict=True)
    np.testing.assert_allclose(native(most), powers(most), rtol=1e-12)
    with pytest.raises(cr.CompileError, match="a stack with many axes"):
        native(more)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", ELEMENTARY.values(), ids=ELEMENTARY)
def test_elementary_functions_agree(function: Function, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        numbers = np.array(SPECIAL, dtype)
    assert_close(function, *map(np.copy, np.meshgrid(numbers, numbers, indexing="ij")))


INTEGERS: dict[str, Function] = {
    "division": lambda a, b: (a // b, a % b, a // 3, a % 3),
    "bits": lambda a, b: (a & b, a | b, a ^ b, ~a),
    "powers": lambda a, b: (a**0, a**1, a**2, a**3, a**4),
    "extrema": lambda a, b: (a.max(), a.amin(0), a.argmax(1), cr.sort(a)[0], a.prod(0)),
    "members": lambda a, b: (cr.isin(a, cr.tensor([1, 2])), a.any(1), cr.cat([a, b], 0)),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("function", INTEGERS.values(), ids=INTEGERS)
def test_integers_have_the_bits_of_numpy(function: Function, dtype: Any) -> None:
    numbers = np.array(WHOLE).astype(dtype)
    assert_equal_bits(function, *map(np.copy, np.meshgrid(numbers, numbers, indexing="ij")))


MATRICES: dict[str, Function] = {
    "products": lambda a: (a @ a, a @ a[0], a[0] @ a, a @ a[0, 0], a[0, 0] @ a, a.mT @ a),
    "broadcast products": lambda a: (a[:, None] @ a, cr.ones_like(a) @ a),
    "factors": lambda a: cr.linalg.cholesky(a @ a.mT + 3 * cr.eye(3, dtype=a.dtype), upper=True),
    "systems": lambda a: (cr.linalg.solve(a, a[:, 0]), cr.linalg.solve(a[0], a[0, 0])),
    "determinants": lambda a: (cr.linalg.det(a), a.prod(-1), cr.linalg.cross(a, a[:, :1])),
    "norms": lambda a: (cr.linalg.norm(a), a.norm(dim=1), cr.linalg.vector_norm(a, 3, dim=(0, 2))),
    "norms of tiny and huge numbers": lambda a: ((a * 1e-30).norm(), (a * 1e30).norm(dim=0)),
    "layers": lambda a: (F.layer_norm(a, (3,)), F.normalize(a), F.rms_norm(a, (3,))),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", MATRICES.values(), ids=MATRICES)
def test_matrices_agree(function: Function, dtype: Any) -> None:
    matrices = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(dtype)
    assert_close(function, matrices)


@pytest.mark.parametrize("pair", [(0, 0), (np.inf, 1), (np.nan, 1), (1e300, 1e300), (5e-324, 0)])
def test_norms_do_not_overflow(pair: tuple[float, float]) -> None:
    assert_close(lambda a: cr.linalg.norm(a), np.array(pair, np.float64))


def test_singular_matrices_are_left_to_numpy() -> None:
    def slope(x: Any) -> Any:
        x = x.detach().requires_grad_()
        return cr.autograd_grad(cr.linalg.det(x), x)[0]

    singular = np.arange(9.0).reshape(3, 3)
    assert_close(slope, singular)
    assert_close(slope, singular + np.eye(3))


def test_equal_numbers_are_sorted() -> None:
    for alike in (cr.zeros_like, lambda x: cr.tensor(2.0).expand(x.shape)):
        assert_equal_bits(lambda x, f=alike: (x * 2, *cr.sort(f(x), 0)), np.ones((3, 4)))


# --- random shapes --------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.0, np.nan, np.inf]), min_size=1, max_size=40))
def test_sorts_are_stable_and_put_nan_last(numbers: list[float]) -> None:
    x, n = np.array(numbers), len(numbers)
    order = np.zeros(2 * n, np.int64)
    unsigned = [np.uint64(number) for number in (0, 1, n)]
    dense_kernels.sort_order(x, *unsigned, order, np.uint64(0))
    np.testing.assert_array_equal(order[:n], np.argsort(x, kind="stable"))


RANDOM: list[Function] = [
    lambda x: x.roll(2, -1),
    lambda x: x.mT @ x,
    lambda x: cr.triu(x) + cr.tril(x, 1),
    lambda x: cr.sort(x, -2, stable=True)[0],
    lambda x: x.argmax(0),
    lambda x: x.prod(-1),
    lambda x: (x > 0).all(-2),
    lambda x: x.norm(dim=-1),
]
shapes = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@pytest.mark.usefixtures("interpreted")
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(RANDOM), shapes, st.booleans())
def test_random_shapes_agree(function: Function, shape: list[int], is_reversed: bool) -> None:
    x = np.random.default_rng(len(shape)).normal(size=shape)
    with np.errstate(all="ignore"):
        assert_close(lambda a: function(a.flip(-1) if is_reversed else a), x)


def test_writes_at_index_arrays_of_which_the_last_to_a_place_remains() -> None:
    """Also in the backward pass, for indices that a call may change."""

    def values(a: Any, b: Any, i: Any, j: Any) -> Any:
        for k in range(12):
            a = a.clone()
            a[i] = a[j] * 0.5 + b[k]
            a[j] -= 0.1 * a[i].clone()
        return cr.autograd_grad((a**2).sum(), (a0, b))

    a0 = cr.tensor(np.linspace(-1, 1, 8), requires_grad=True)
    b = cr.tensor(np.linspace(0, 1, 12), requires_grad=True)
    compiled = cr.compile(values, backend="native", strict=True)
    for i in ([3, 1, 3, 7], [0, 0, 0, -8]):
        indices = cr.tensor(i), cr.tensor([0, 2, 5, 6])
        wanted = values(a0, b, *indices)
        for got, want in zip(compiled(a0, b, *indices), wanted, strict=True):
            np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-12)
