"""LU factors, and solutions with them, compared with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.checks import gradcheck, gradgradcheck
from chainrule.kernels.lu import factorize, row_permutation
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

SHAPES = [
    (3, 3),
    (4, 2),
    (2, 4),
    (2, 3, 3),
    (3, 2, 4, 2),
    (1, 1),
    (0, 0),
    (0, 3, 3),
    (3, 0),
    (70, 70),
]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=str)
KINDS = ["float64", "complex128"]
kinds = pytest.mark.parametrize("kind", KINDS)


def numbers(shape, kind, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind == "complex128" else x


@kinds
@shapes
def test_factors_and_gradients(shape, kind):
    data = numbers(shape, kind)

    def program(lib):
        x = lib.leaf(data, kind)
        p, lower, upper = lib.linalg.lu(x)
        weights = [lib.tensor(numbers(t.shape, kind, 1), kind) for t in (lower, upper)]
        total = (lower * weights[0]).sum().real + (upper * weights[1]).sum().real
        return [p, lower, upper, *lib.grad(total, x)]

    same_as_torch(program, rtol=1e-7 if 70 in shape else 1e-9)


@kinds
@shapes
def test_packed_factors_pivots_and_info(shape, kind):
    data = numbers(shape, kind)

    def program(lib):
        x = lib.leaf(data, kind)
        packed, pivots, info = lib.linalg.lu_factor_ex(x)
        weight = lib.tensor(numbers(shape, kind, 1), kind)
        return [packed, pivots, info, *lib.grad((packed * weight).sum().real, x)]

    same_as_torch(program, rtol=1e-7 if 70 in shape else 1e-9)


@shapes
def test_unrecorded_factors_are_the_same(shape):
    x = leaf(numbers(shape, "float64"))
    with cr.no_grad():
        plain = cr.linalg.lu(x)
    for one, other in zip(cr.linalg.lu(x), plain, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.numpy(), atol=1e-12)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("sides", [(3, 2), (2, 3, 3), (5, 1, 3, 1)], ids=str)
@pytest.mark.parametrize("stack", [(), (2,)], ids=str)
@kinds
def test_solutions(kind, stack, sides, left, adjoint):
    if not left:
        sides = (*sides[:-2], sides[-1], sides[-2])
    a, b = numbers((*stack, 3, 3), kind), numbers(sides, kind, 2)

    def program(lib):
        x, y = lib.leaf(a, kind), lib.leaf(b, kind)
        packed, pivots = lib.linalg.lu_factor(x)
        out = lib.linalg.lu_solve(packed, pivots, y, left=left, adjoint=adjoint)
        return [out, *lib.grad((out * out).sum().real, (x, y))]

    same_as_torch(program, rtol=1e-7)


@pytest.mark.parametrize("shape", [(3, 3), (3, 2), (2, 3)], ids=str)
@kinds
def test_derivatives_agree_with_differences(shape, kind):
    x = leaf(numbers(shape, kind), kind)
    assert gradcheck(lambda x: cr.linalg.lu(x)[1:], (x,), fast_mode=True)
    assert gradgradcheck(lambda x: cr.linalg.lu(x)[1:], (x,), fast_mode=True)


def test_without_pivoting():
    x = leaf(numbers((2, 4, 4), "float64") + 5 * np.eye(4))
    p, lower, upper = cr.linalg.lu(x, pivot=False)
    assert p.shape == (0,)
    np.testing.assert_allclose((lower @ upper).detach().numpy(), x.detach().numpy(), atol=1e-12)
    packed, pivots = cr.linalg.lu_factor(x, pivot=False)
    assert (pivots == cr.arange(1, 5)).all()
    b = cr.tensor(numbers((4, 1), "float64"))
    np.testing.assert_allclose(
        (x @ cr.linalg.lu_solve(packed, pivots, b) - b).detach().numpy(), 0, atol=1e-12
    )
    assert not cr.linalg.lu(cr.tensor([[0.0, 1.0], [1.0, 0.0]]), pivot=False).U.isfinite().all()


SINGULAR = [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [0.0, 3.0]], [[1.0, 2.0], [3.0, 4.0]]]


def test_stacks_in_any_order_of_memory():
    x = numbers((2, 3, 4, 4), "float64")
    wanted = [t.numpy() for t in cr.linalg.lu(cr.from_numpy(x))]
    for turned in (np.asfortranarray(x), np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)):
        for found, right in zip(cr.linalg.lu(cr.from_numpy(turned)), wanted, strict=True):
            np.testing.assert_array_equal(found.numpy(), right)


def test_singular_matrices_have_factors_too():
    def program(lib):
        x = lib.tensor(SINGULAR)
        return [*lib.linalg.lu(x), *lib.linalg.lu_factor_ex(x)]

    same_as_torch(program)


def test_factors_of_singular_matrices_are_the_same_if_they_are_recorded():
    x = np.ones((4, 4))
    plain, tracked = cr.linalg.lu(cr.tensor(x)), cr.linalg.lu(cr.tensor(x, requires_grad=True))
    for right, found in zip(plain, tracked, strict=True):
        np.testing.assert_array_equal(found.numpy(force=True), right.numpy())


def test_errors():
    with pytest.raises(cr.linalg.LinAlgError, match=r"\(Batch element 0\): U\[2,2\] is zero"):
        cr.linalg.lu_factor(cr.tensor(SINGULAR))
    with pytest.raises(cr.linalg.LinAlgError, match=r"lu_factor: U\[1,1\] is zero"):
        cr.linalg.lu_factor_ex(cr.zeros(1, 1), check_errors=True)
    packed, pivots = cr.linalg.lu_factor(cr.eye(3))
    with pytest.raises(cr.ShapeError, match="Number of pivots per batch"):
        cr.linalg.lu_solve(packed, pivots[:2], cr.ones(3, 1))
    with pytest.raises(cr.ShapeError, match=r"equation AX = B \(3x3 and 2x1\)"):
        cr.linalg.lu_solve(packed, pivots, cr.ones(2, 1))
    with pytest.raises(cr.ShapeError, match=r"equation XA = B \(3x3 and 3x1\)"):
        cr.linalg.lu_solve(packed, pivots, cr.ones(3, 1), left=False)


@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_single_precision_is_kept(kind):
    x = cr.tensor(numbers((3, 3), "complex128" if "c" in kind else "float64"), dtype=kind)
    assert {t.dtype for t in cr.linalg.lu(x)} == {x.dtype}
    packed, pivots = cr.linalg.lu_factor(x.requires_grad_())
    assert packed.dtype == x.dtype
    assert cr.linalg.lu_solve(packed, pivots, x).dtype == x.dtype


def test_row_exchanges_in_a_stack_are_those_of_each_matrix() -> None:
    pivots = np.maximum(np.random.default_rng(0).integers(0, 5, size=(40, 4)), np.arange(4))
    each = [row_permutation(np, some, 5) for some in pivots]
    assert sorted(each[0].tolist()) == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(row_permutation(np, pivots, 5), each)


@pytest.mark.parametrize("pivot", [True, False])
@kinds
@pytest.mark.parametrize("shape", [(6, 6), (3, 5), (40, 37)], ids=str)
def test_a_matrix_alone_has_the_factors_that_it_has_in_a_stack(shape, kind, pivot):
    x = numbers(shape, kind)
    x[:, 2] = 0
    x[0, 0] = 0
    alone = factorize(np, x, pivot=pivot)
    stacked = factorize(np, np.stack([x, x]), pivot=pivot)
    for one, two in zip(alone, stacked, strict=True):
        np.testing.assert_array_equal(one, two[0])


@pytest.mark.parametrize("shape", [(3, 5), (40, 40)], ids=str)
def test_without_pivoting_a_zero_pivot_gives_infinities(shape):
    x = numbers(shape, "float64")
    x[0, 0] = 0
    _, lower, upper = cr.linalg.lu(cr.tensor(x), pivot=False)
    assert lower[1:, 0].isinf().all()
    assert not upper[1:].isfinite().all()
    assert upper[0].tolist() == x[0].tolist()
