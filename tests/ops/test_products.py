"""Products of tensors: PyTorch's values and derivatives, NumPy's functions, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch, random_arrays

CALLS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "tensordot": (lambda lib, x, y: lib.tensordot(x, y), [(2, 3, 2), (3, 2, 2)]),
    "tensordot-1": (lambda lib, x, y: lib.tensordot(x, y, 1), [(2, 3), (3, 2)]),
    "tensordot-0": (lambda lib, x, y: lib.tensordot(x, y, dims=0), [(2, 3), (2,)]),
    "tensordot-all": (lambda lib, x, y: lib.tensordot(x, y, 2), [(2, 3), (2, 3)]),
    "tensordot-pairs": (
        lambda lib, x, y: lib.tensordot(x, y, ([2, 0], [0, -1])),
        [(2, 3, 2), (2, 4, 2)],
    ),
    "tensordot-size-1": (lambda lib, x, y: lib.tensordot(x, y, ([0], [1])), [(2, 3), (2, 1)]),
    "tensordot-other-size-1": (lambda lib, x, y: lib.tensordot(x, y, ([0], [0])), [(1, 3), (2, 2)]),
    "tensordot-empty": (lambda lib, x, y: lib.tensordot(x, y, 1), [(2, 0), (0, 3)]),
    "inner": (lambda lib, x, y: lib.inner(x, y), [(2, 3), (2, 2, 3)]),
    "inner-vectors": (lambda lib, x, y: lib.inner(x, y), [(3,), (3,)]),
    "inner-scalar": (lambda lib, x, y: lib.inner(x, y), [(), (2, 3)]),
    "vecdot": (lambda lib, x, y: _linalg(lib).vecdot(x, y), [(2, 3), (2, 3)]),
    "vecdot-dim": (lambda lib, x, y: _linalg(lib).vecdot(x, y, dim=0), [(2, 3), (2, 3)]),
    "vecdot-broadcast": (lambda lib, x, y: _linalg(lib).vecdot(x, y), [(2, 1, 3), (4, 3)]),
    "vecdot-size-1": (lambda lib, x, y: _linalg(lib).vecdot(x, y), [(2, 3), (2, 1)]),
    "vdot": (lambda lib, x, y: lib.vdot(x, y), [(3,), (3,)]),
    "cross": (lambda lib, x, y: lib.cross(x, y, dim=-1), [(2, 3), (2, 3)]),
    "cross-first-of-three": (lambda lib, x, y: lib.cross(x, y), [(2, 3, 3), (2, 3, 3)]),
    "cross-broadcast": (lambda lib, x, y: lib.cross(x, y, dim=1), [(2, 3, 1), (1, 3, 2)]),
    "kron": (lambda lib, x, y: lib.kron(x, y), [(2, 3), (3, 2)]),
    "kron-vectors": (lambda lib, x, y: lib.kron(x, y), [(2,), (3,)]),
    "kron-mixed": (lambda lib, x, y: lib.kron(x, y), [(2, 1, 2), (3,)]),
    "kron-numbers": (lambda lib, x, y: lib.kron(x, y), [(), (2,)]),
    "kron-transposed": (lambda lib, x, y: lib.kron(_packed(lib, x.T), y), [(2, 3), (2, 2)]),
    "bilinear": (lambda lib, *xs: lib.bilinear(*xs), [(2, 3), (2, 2), (4, 3, 2), (4,)]),
    "bilinear-batches": (
        lambda lib, x, y, w: lib.bilinear(x, y, w, bias=None),
        [(2, 2, 3), (2, 2, 2), (2, 3, 2)],
    ),
    "addmm": (lambda lib, *xs: lib.addmm(*xs), [(2, 2), (2, 3), (3, 2)]),
    "addmm-factors": (
        lambda lib, *xs: lib.addmm(*xs, beta=2, alpha=-0.5),
        [(2,), (2, 3), (3, 2)],
    ),
    "addmm-beta-0": (lambda lib, *xs: lib.addmm(*xs, beta=0), [(2, 1), (2, 3), (3, 2)]),
    "addmm-keywords": (
        lambda lib, x, y, z: x.addmm(mat1=y, mat2=z, alpha=3),
        [(1,), (2, 3), (3, 2)],
    ),
    "addmv": (lambda lib, *xs: lib.addmv(*xs, beta=3), [(2,), (2, 3), (3,)]),
    "addr": (lambda lib, *xs: lib.addr(*xs, alpha=3), [(2, 3), (2,), (3,)]),
    "addbmm": (lambda lib, *xs: lib.addbmm(*xs, alpha=3), [(2, 2), (4, 2, 3), (4, 3, 2)]),
    "addbmm-empty": (lambda lib, *xs: lib.addbmm(*xs), [(2, 2), (0, 2, 3), (0, 3, 2)]),
    "baddbmm": (
        lambda lib, *xs: lib.baddbmm(*xs, beta=0.5, alpha=2),
        [(2, 1), (4, 2, 3), (4, 3, 2)],
    ),
    "chain_matmul": (
        lambda lib, *xs: (lib.chain_matmul if lib is cr else lib.linalg.multi_dot)(
            *_listed(lib, xs)
        ),
        [(2, 3), (3, 4), (4, 1), (1, 2)],
    ),
    "mm-keyword": (lambda lib, x, y: x.mm(mat2=y), [(2, 3), (3, 2)]),
    "bmm-keyword": (lambda lib, x, y: x.bmm(mat2=y), [(2, 2, 3), (2, 3, 2)]),
    "mv-keyword": (lambda lib, x, y: x.mv(vec=y), [(2, 3), (3,)]),
    "outer-keyword": (lambda lib, x, y: x.outer(vec2=y), [(2,), (3,)]),
}


def _listed(library: Any, xs: Any) -> Any:
    return xs if library is cr else (list(xs),)  # PyTorch warns of its chain_matmul


def _packed(library: Any, x: Any) -> Any:
    return x if library is cr else x.contiguous()  # else PyTorch's kron fails


def _linalg(library: Any) -> Any:
    return library if library is cr else library.linalg


@pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim arg")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in CALLS
        for dtype in ("float64", "complex128")
        if not name.startswith("bilinear") or dtype == "float64"  # PyTorch has no derivative there
    ],
)
def test_values_and_derivatives_are_pytorchs(name: str, dtype: str) -> None:
    call, shapes = CALLS[name]
    compare_with_torch(call, *random_arrays(shapes, dtype))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: np.dot(x, y),
        lambda x, y: np.dot(x[0], y),
        lambda x, y: np.dot(x, y[0, 0]),
        lambda x, y: np.dot(x, 2.0),
        lambda x, y: np.outer(x, y[0]),
        lambda x, y: np.vdot(x, y),
        lambda x, y: np.inner(x, y),
        lambda x, y: np.tensordot(x, y, axes=([2], [0])),
        lambda x, y: np.kron(x, y),
        lambda x, y: np.cross(x, y),
        lambda x, y: np.cross(x, y, axisa=0, axisc=1),
        lambda x, y: np.cross(x, y, axis=1),
        lambda x, y: np.vecdot(x, y),
    ],
    ids=range(13),
)
def test_numpys_functions_are_recorded(call: Any) -> None:
    x, y = random_arrays([(3, 3, 3), (3, 3, 3)], "complex128")
    wanted, leaf = None, cr.tensor(x, requires_grad=True)
    try:
        wanted = call(x, y)
    except ValueError:
        x, y = x[0], y[0]
        wanted, leaf = call(x, y), cr.tensor(x, requires_grad=True)
    got = call(leaf, y)
    assert got.requires_grad
    np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=1e-13)


def test_nothing_is_taken_from_an_input_with_beta_0() -> None:
    x = cr.tensor([[np.nan, np.inf]], requires_grad=True)
    out = cr.addmm(x, cr.ones(1, 2), cr.ones(2, 2), beta=0)
    assert out.tolist() == [[2, 2]]
    out.sum().backward()
    assert x.grad.tolist() == [[0, 0]]
    assert not cr.addmm(x.detach(), cr.ones(1, 2), cr.ones(2, 2), beta=0).requires_grad


@pytest.mark.parametrize("name", ["addmm_", "addbmm_", "baddbmm_", "addmv_", "addr_"])
def test_in_place(name: str) -> None:
    shapes = {
        "addmm_": [(2, 2), (2, 3), (3, 2)],
        "addbmm_": [(2, 2), (4, 2, 3), (4, 3, 2)],
        "baddbmm_": [(4, 2, 2), (4, 2, 3), (4, 3, 2)],
        "addmv_": [(2,), (2, 3), (3,)],
        "addr_": [(2, 3), (2,), (3,)],
    }[name]
    x, y, z = map(cr.tensor, random_arrays(shapes))
    wanted = getattr(x, name[:-1])(y, z, beta=2)
    assert getattr(x, name)(y, z, beta=2) is x
    assert x.equal(wanted)


def test_dtypes_are_promoted_and_integers_multiplied() -> None:
    whole, single = cr.tensor([[1, 2], [3, 4]]), cr.ones(2, 2)
    assert cr.tensordot(whole, single, 1).dtype == cr.float32
    assert cr.inner(whole, whole).tolist() == [[5, 11], [11, 25]]
    assert cr.kron(whole[0], whole[1]).tolist() == [3, 4, 6, 8]
    assert cr.vecdot(whole, single * 1j).dtype == cr.complex64
    assert cr.cross(cr.tensor([1, 0, 0]), cr.tensor([0.0, 1.0, 0.0])).dtype == cr.float32
    assert cr.addmm(whole, whole, whole, beta=2).dtype == cr.int64


def test_a_chain_of_one_matrix_is_that_matrix() -> None:
    x = cr.ones(2, 3)
    assert cr.chain_matmul(x).equal(x)


def test_bilinear_of_complex_numbers() -> None:
    shapes = [(2, 3), (2, 2), (4, 3, 2)]
    leaves = [cr.tensor(a, requires_grad=True) for a in random_arrays(shapes, "complex128")]
    x, y, w = leaves
    np.testing.assert_allclose(
        cr.bilinear(x, y, w).detach().numpy(),
        np.einsum("bi,kij,bj->bk", *[t.detach().numpy() for t in (x, w, y)]),
    )
    assert cr.gradcheck(cr.bilinear, leaves, fast_mode=True)


def test_array_api_spellings() -> None:
    x, y = map(cr.tensor, random_arrays([(3, 2), (3, 2)]))
    assert cr.vecdot(x, y, axis=0).equal(cr.vecdot(x, y, dim=0))
    assert cr.tensordot(x, y, axes=([0], [0])).equal(cr.tensordot(x, y, ([0], [0])))
    assert cr.cross(x, y, axis=0).equal(cr.cross(x, y, 0))
    assert cr.tensordot(x, y, dims=cr.tensor([[0], [0]])).equal(cr.tensordot(x, y, (0, 0)))
    with pytest.raises(TypeError, match="dim and axis are two names of one argument"):
        cr.vecdot(x, y, dim=0, axis=0)
    with pytest.raises(TypeError, match="dims and axes are two names of one argument"):
        cr.tensordot(x, y, dims=0, axes=0)


def o(*shape: int) -> cr.Tensor:
    return cr.ones(*shape)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: cr.tensordot(o(2, 3), o(4, 3), 1), cr.ShapeError, "contracted dimensions need"),
        (lambda: cr.tensordot(o(2), o(2), ([0], [])), ValueError, "should have same length"),
        (lambda: cr.tensordot(o(2), o(2), 2), cr.ShapeError, "expects dims < ndim_a or ndim_b"),
        (lambda: cr.tensordot(o(2), o(2), -1), ValueError, "expects dims >= 0, but got dims=-1"),
        (lambda: cr.tensordot(o(2), o(2), (1, 2, 3)), ValueError, "an int or a pair of sequences"),
        (
            lambda: cr.tensordot(o(2, 2), o(2, 2), ([0, 0], [0, 1])),
            ValueError,
            "repeats a dimension",
        ),
        (lambda: cr.tensordot(o(2), o(2), ([1], [0])), IndexError, "Dimension out of range"),
        (lambda: cr.inner(o(2), o(3)), cr.ShapeError, "the last dimension must match on both"),
        (lambda: cr.vdot(o(2, 2), o(2)), cr.ShapeError, "1D tensors expected, but got 2D and 1D"),
        (lambda: cr.vdot(o(2), o(3)), cr.ShapeError, "inconsistent tensor size, expected tensor"),
        (lambda: cr.vdot(o(2), o(2).to(cr.float64)), cr.DTypeError, "to have same dtype"),
        (lambda: cr.vecdot(o(2, 3), o(2)), cr.ShapeError, "must match the size of tensor b"),
        (lambda: cr.cross(o(2), o(2)), cr.ShapeError, "no dimension of size 3 in input"),
        (lambda: cr.cross(o(2), o(2), 0), cr.ShapeError, "inputs dimension 0 must have length 3"),
        (lambda: cr.cross(o(2, 3), o(4, 3), 1), cr.ShapeError, "must match the size of tensor b"),
        (lambda: cr.bilinear(o(2), o(2), o(1, 2, 3)), cr.ShapeError, "input2 size does not match"),
        (lambda: cr.bilinear(o(4, 2), o(2), o(1, 2, 2)), cr.ShapeError, "batch dimensions do not"),
        (lambda: cr.addmm(o(5), o(2, 2), o(2, 2)), cr.ShapeError, "must match the existing size"),
        (lambda: cr.addmm(o(1, 2, 2), o(2, 2), o(2, 2)), cr.ShapeError, "must match the existing"),
        (lambda: cr.addbmm(o(2), o(2, 2), o(2, 2)), cr.ShapeError, "expected stacks of matrices"),
        (lambda: cr.addmv(o(2), o(2, 3), o(2)), cr.ShapeError, "cannot be multiplied"),
        (lambda: cr.chain_matmul(), ValueError, "Expected one or more matrices"),
        (lambda: cr.chain_matmul(o(2, 2), o(2)), cr.ShapeError, "Tensor dimension is 1, expected"),
        (lambda: cr.chain_matmul(o(2, 2), o(3, 2)), cr.ShapeError, "cannot be multiplied"),
    ],
    ids=range(24),
)
def test_what_does_not_fit(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_integers_stay_narrow():
    x, y = cr.ones(2, 3, dtype=cr.int8), cr.ones(2, 1, dtype=cr.int8)
    assert cr.vecdot(x, y).dtype == cr.tensordot(x, y, ([0, 1], [0, 1])).dtype == cr.int8
    assert cr.vecdot(x, x).dtype == cr.int8


def test_networks_have_their_names_too() -> None:
    functional = cr.nn.functional
    assert functional.pdist is cr.pdist
