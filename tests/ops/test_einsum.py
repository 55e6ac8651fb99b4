"""einsum: NumPy's and PyTorch's notation, PyTorch's gradients, and malformed equations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch, random_arrays

SHAPES: list[tuple[str, Any]] = [
    # one operand
    ("i->i", [(3,)]),
    ("ij->ji", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("ii->i", [(3, 3)]),
    ("iij->ji", [(3, 3, 2)]),
    ("ijij->j", [(2, 3, 2, 3)]),
    ("iii->i", [(2, 2, 2)]),
    ("iijj", [(2, 2, 3, 3)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("...", [(2, 3)]),
    ("ba", [(2, 3)]),
    ("BbaA", [(1, 2, 3, 4)]),
    # two
    ("ij,jk", [(2, 3), (3, 2)]),
    ("ij,jk->ik", [(2, 3), (3, 2)]),
    ("ji,kj->ik", [(3, 2), (2, 3)]),
    ("ij,ij", [(2, 3), (2, 3)]),
    ("i,i->", [(3,), (3,)]),
    ("i,j->ji", [(3,), (2,)]),
    ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 2, 2), (2, 2, 2, 2)]),
    ("ii,ij->j", [(3, 3), (3, 2)]),
    ("ij,kl->", [(2, 3), (2, 2)]),
    ("ijk,jil->kl", [(2, 3, 2), (3, 2, 2)]),
    ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 2)]),
    ("i...,i...->...", [(3, 2), (3, 4, 2)]),
    ("...,...->...", [(2, 3), (3,)]),
    ("a...b,b", [(2, 3, 2), (2,)]),
    ("...a,...a->", [(2, 3), (3,)]),
    (",i->i", [(), (3,)]),
    (",", [(), ()]),
    (" i j , j -> i ", [(2, 3), (3,)]),
    # three and more
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
    ("bi,kij,bj->bk", [(2, 3), (2, 3, 2), (2, 2)]),
    ("i,i,i->i", [(3,), (3,), (3,)]),
    ("i,j,k->kji", [(2,), (3,), (2,)]),
    ("ij,ij,jk,ki->", [(2, 3), (2, 3), (3, 2), (2, 2)]),
    ("a,ab,abc,cd,de,e->", [(2,), (2, 3), (2, 3, 2), (2, 2), (2, 3), (3,)]),
    # dimensions of size 1 broadcast
    ("ij,ij->ij", [(1, 3), (2, 1)]),
    ("ij,ij->j", [(2, 3), (1, 3)]),
    ("ij,jk->ik", [(2, 1), (3, 2)]),
    ("i,i->", [(1,), (3,)]),
    ("i,i,i->i", [(1,), (3,), (1,)]),
    ("ij,jk->ik", [(1, 3), (3, 1)]),
    ("ii,i->i", [(1, 1), (3,)]),
    # nothing
    ("ij,jk->ki", [(2, 0), (0, 3)]),
    ("ij->i", [(2, 0)]),
    ("ii->", [(0, 0)]),
    ("i,j->ij", [(0,), (2,)]),
]
CASES = [
    pytest.param(equation, shapes, id=f"{equation.replace(' ', '_')}-{shapes}")
    for equation, shapes in SHAPES
]


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_values_and_derivatives_are_pytorchs(equation: str, shapes: Any, dtype: str) -> None:
    compare_with_torch(lambda lib, *xs: lib.einsum(equation, *xs), *random_arrays(shapes, dtype))


def is_numpys(equation: str) -> bool:
    """NumPy requires the ellipsis in the result, too."""
    return "->" not in equation or ("..." in equation) == ("..." in equation.split("->")[1])


@pytest.mark.parametrize(
    ("equation", "shapes"), [case for case in CASES if is_numpys(case.values[0])]
)
def test_values_are_numpys(equation: str, shapes: Any) -> None:
    arrays = random_arrays(shapes)
    wanted = np.einsum(equation, *arrays)
    got = cr.einsum(equation, *map(cr.tensor, arrays))
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64"])
def test_sums_of_integers_have_pytorchs_dtype(dtype: str) -> None:
    x = np.array([[200, 100], [3, 4]]).astype(dtype)
    compare_with_torch(
        lambda lib, x: (lib.einsum("ij->", x), lib.einsum("ij->j", x), x.sum_to_size(1, 2)),
        x,
        order=0,
    )


def test_second_derivatives_of_three_operands() -> None:
    leaves = [cr.tensor(a, requires_grad=True) for a in random_arrays([(2, 3), (3, 2), (2, 2)])]
    assert cr.gradcheck(lambda *xs: cr.einsum("ij,jk,kl->il", *xs), leaves, fast_mode=True)
    assert cr.gradgradcheck(lambda *xs: cr.einsum("ij,jk,kl->il", *xs), leaves, fast_mode=True)


@pytest.mark.parametrize(
    ("arguments", "equation"),
    [
        (([0, 1], [1, 2], [0, 2]), "ab,bc->ac"),
        (([0, 1], [1, 2]), "ab,bc"),
        (([Ellipsis, 26, 1], [1, 51], [Ellipsis, 51, 26]), "...ab,bc->...ca"),
    ],
    ids=range(3),
)
def test_lists_of_labels(arguments: Any, equation: str) -> None:
    x, y = map(cr.tensor, random_arrays([(2, 3), (3, 2)]))
    lists = [x, arguments[0], y, arguments[1], *arguments[2:]]
    assert cr.einsum(*lists).equal(cr.einsum(equation, x, y))
    torch = pytest.importorskip("torch")
    theirs = [torch.from_numpy(v.numpy()) if isinstance(v, cr.Tensor) else v for v in lists]
    np.testing.assert_allclose(cr.einsum(*lists).numpy(), torch.einsum(*theirs).numpy())


def test_operands_in_one_list_of_several_dtypes_and_of_integers() -> None:
    x, y = cr.tensor([[1, 2], [3, 4]]), cr.tensor([0.5, 1.0])
    assert cr.einsum("ij,j->i", [x, y]).equal(cr.tensor([2.5, 5.5]))
    assert cr.einsum("ij,jk", x, x).tolist() == [[7, 10], [15, 22]]
    assert cr.einsum("ij,j", x, np.array([1, 1j], np.complex64)).dtype == cr.complex64
    half = cr.ones(2, 2, dtype=cr.float16, requires_grad=True)
    cr.einsum("ij,jk", half, half).sum().backward()
    assert half.grad.dtype == cr.float16
    assert half.grad.tolist() == [[4, 4], [4, 4]]


def test_many_operands_take_few_steps() -> None:
    # From left to right the first product alone would have 10¹² elements.
    x = [cr.ones(1000, 1000, dtype=cr.float64) for _ in range(3)]
    assert cr.einsum("ab,cd,bc->", *x).item() == pytest.approx(1e12)


def test_numpys_einsum_is_recorded() -> None:
    x = cr.ones(2, 2, requires_grad=True)
    np.einsum("ij,jk->", x, np.ones((2, 2), np.float32)).backward()
    assert x.grad.tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    ("equation", "shapes", "error", "text"),
    [
        ("ij,jk", [(2, 3)], ValueError, "fewer operands were provided than specified"),
        ("ij", [(2, 3), (2, 3)], ValueError, "more operands were provided than specified"),
        ("ij", [], ValueError, "must provide at least one operand"),
        ("ij", [(2,)], cr.ShapeError, r"the number of subscripts in the equation \(2\) does not"),
        ("i", [(2, 2)], cr.ShapeError, "operand 0 and no ellipsis was given"),
        ("...ij", [(2,)], cr.ShapeError, r"\(2\) is more than the number of dimensions \(1\)"),
        ("i$", [(2, 2)], ValueError, r"invalid subscript '\$' given for operand 0"),
        ("i->é", [(2,)], ValueError, "invalid subscript 'é' given for output"),
        ("i-j", [(2, 2, 2)], ValueError, "invalid subscript '-' given for operand 0"),
        ("i->j->k", [(2,)], ValueError, "invalid subscript '-' given for output"),
        ("i.", [(2,)], ValueError, "found '.' for operand 0 that is not part of any ellipsis"),
        ("...i...", [(2,)], ValueError, r"found '.' for operand 0 but an ellipsis \(...\) was"),
        ("i->....", [(2,)], ValueError, "found '.' for output but an ellipsis"),
        ("i->ii", [(2,)], ValueError, "output subscript i appears more than once in the output"),
        ("i->j", [(2,)], ValueError, "output subscript j does not appear in the equation"),
        ("ii", [(2, 3)], cr.ShapeError, "subscript i is repeated for operand 0 but the sizes"),
        ("ij,jk", [(2, 3), (2, 3)], cr.ShapeError, "subscript j has size 2 for operand 1 which"),
        ("...,...", [(2, 3), (2,)], cr.ShapeError, r"subscript ... \(-1\) has size 2 for operand"),
    ],
    ids=range(18),
)
def test_malformed_equations(equation: str, shapes: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=rf"einsum\(\): .*{text}"):
        cr.einsum(equation, *[cr.ones(*shape) for shape in shapes])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ((cr.ones(2), cr.ones(2)), TypeError, "the first argument must be an equation string"),
        ((cr.ones(2),), TypeError, "the first argument must be an equation string"),
        ((cr.ones(2), [0], "a"), TypeError, "expected a list of ints as labels, got str"),
        ((cr.ones(2), [52]), ValueError, r"subscript 52 is not within the valid range \[0, 52\)"),
    ],
    ids=range(4),
)
def test_malformed_lists(arguments: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        cr.einsum(*arguments)
