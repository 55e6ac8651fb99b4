"""Sparse tensors: conversions, products and their derivatives, beside PyTorch's and dense ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr

INDICES = np.array([[0, 2, 1, 2, 0], [1, 0, 1, 3, 1]])  # (0, 1) occurs twice
VALUES = np.array([1.0, -2.0, 3.0, 0.5, 4.0])
SHAPE = (3, 4)

pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:.*deprecated")


def sparse(m: Any, grad: bool = True) -> tuple[Any, Any]:
    values = m.tensor(VALUES, requires_grad=grad)
    return m.sparse_coo_tensor(m.tensor(INDICES), values, SHAPE), values


def both(program: Any) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = program(cr), program(torch)
    assert len(results[0]) == len(results[1])
    for own, other in zip(*results, strict=True):
        if isinstance(other, torch.Tensor):
            assert tuple(own.shape) == tuple(other.shape)
            own, other = own.detach().numpy(), other.detach().numpy()
        np.testing.assert_allclose(own, other, rtol=1e-12)


@pytest.fixture(params=["scipy", "scatter"])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "scipy":
        pytest.importorskip("scipy")
    else:
        monkeypatch.setattr("chainrule.ops.triplets.find_spec", lambda name: None)


def test_conversions_follow_pytorch() -> None:
    def program(m: Any) -> list[Any]:
        s, values = sparse(m)
        c = s.coalesce()
        (c.values() ** 2).sum().backward()
        again = s.to_dense().to_sparse()
        total = m.sparse.sum(s, 0)
        return [
            *(s._indices(), s._values(), c.indices(), c.values(), s.to_dense(), values.grad),
            *(again.indices(), again.values(), s.t().to_dense(), s.transpose(0, 1).to_dense()),
            *((s * 2).to_dense(), (s / 2).to_dense(), (s + s).to_dense(), total.to_dense()),
            *(s._nnz(), c._nnz(), s.dim(), s.size(1), s.is_sparse, s.is_coalesced()),
            *(c.is_coalesced(), m.sparse.sum(s), s.float().double().to_dense()),
        ]

    both(program)


@pytest.mark.parametrize("vector", [True, False])
def test_products_follow_pytorch(backend: None, vector: bool) -> None:
    rng = np.random.default_rng(0)
    x0 = rng.normal(size=4 if vector else (4, 2))

    def program(m: Any) -> list[Any]:
        s, values = sparse(m)
        x = m.tensor(x0, requires_grad=True)
        if vector:
            found = [s @ x, m.matmul(s, x), s.matmul(x)]
        else:
            found = [s @ x, m.mm(s, x), m.spmm(s, x), m.sparse.mm(s, x), m.matmul(s, x), s.mm(x)]
            found.append(m.sparse.addmm(m.ones(3, 2, dtype=m.float64), s, x, beta=2, alpha=3))
        sum((y**3).sum() for y in found).backward()
        return [*found, values.grad, x.grad]

    both(program)


def test_the_product_from_the_right_and_with_a_dense_tensor() -> None:
    s, _ = sparse(cr)
    x = cr.randn(2, 3, dtype=cr.float64)
    np.testing.assert_allclose((x @ s).tolist(), (x @ s.to_dense()).tolist(), rtol=1e-12)
    y = cr.randn(3, 4, dtype=cr.float64)
    np.testing.assert_allclose((s * y).to_dense().tolist(), (s.to_dense() * y).tolist())
    np.testing.assert_allclose((y + s).tolist(), (s + y).tolist())


def test_all_derivatives_of_the_product(backend: None) -> None:
    index = cr.tensor(INDICES)

    def f(values: cr.Tensor, x: cr.Tensor) -> cr.Tensor:
        return cr.sparse_coo_tensor(index, values, SHAPE) @ x

    x = cr.randn(4, 2, dtype=cr.float64, requires_grad=True)
    point = cr.tensor(VALUES, requires_grad=True), x
    assert cr.gradcheck(f, point, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(f, point, fast_mode=True)
    batch = cr.randn(3, 4, 2, dtype=cr.float64)
    mapped = cr.vmap(lambda x: f(point[0].detach(), x))(batch)
    np.testing.assert_allclose(mapped.numpy(), [f(point[0].detach(), x).numpy() for x in batch])


def test_softmax_over_rows_and_columns_follows_pytorch() -> None:
    def program(m: Any) -> list[Any]:
        s, values = sparse(m)
        rows, columns = (m.sparse.softmax(s.coalesce(), dim) for dim in (1, 0))
        (rows.to_dense() ** 2).sum().backward()
        return [rows.to_dense(), columns.to_dense(), values.grad]

    both(program)


def test_a_leaf_of_ones_own_gets_a_gradient() -> None:
    s = cr.sparse_coo_tensor(INDICES, VALUES, SHAPE, requires_grad=True, dtype=cr.float32)
    assert s.requires_grad
    assert s.grad is None
    cr.spmm(s, cr.ones(4, 1)).sum().backward()
    assert s.grad.to_dense().sum().item() == 5
    assert not s.detach().requires_grad
    assert s.clone().dtype == cr.float32


@pytest.mark.parametrize("backend", ["numpy", None])
def test_a_compiled_step_with_a_sparse_matrix(backend: str | None) -> None:
    s, _ = sparse(cr, grad=False)
    weight = cr.ones(4, 2, dtype=cr.float64, requires_grad=True)

    def step(weight: cr.Tensor) -> cr.Tensor:
        weight.grad = None
        loss = (cr.spmm(s, weight) ** 2).sum()
        loss.backward()
        return weight.grad.clone()

    expected = step(weight)
    compiled = cr.compile(step, backend=backend)
    for _ in range(3):
        np.testing.assert_allclose(compiled(weight).numpy(), expected.numpy())


def test_constructors_and_printing() -> None:
    s = cr.sparse.FloatTensor(cr.LongTensor([[0, 1], [2, 0]]), cr.tensor([3.0, 4.0]), (2, 3))
    assert isinstance(s, cr.sparse.FloatTensor)
    assert s.double().dtype == cr.float64
    assert isinstance(s.double(), cr.sparse.DoubleTensor)
    assert repr(s) == (
        "tensor(indices=tensor([[0, 1],\n                       [2, 0]]),\n"
        "       values=tensor([3., 4.]),\n       size=(2, 3), nnz=2, layout=torch.sparse_coo)"
    )
    assert cr.sparse_coo_tensor([[0, 4]], [1, 2]).shape == (5,)
    assert cr.sparse_coo_tensor(np.zeros((2, 0), int), [], (2, 2)).to_dense().tolist() == [
        [0, 0],
        [0, 0],
    ]
    assert cr.eye(2).to_dense().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda s: cr.sparse_coo_tensor([[0, 1]], [1.0]), r"got \[1, 2\] and \[1\]"),
        (lambda s: cr.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 2)), "expected 2 rows"),
        (lambda s: cr.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (2,)), "outside of the shape"),
        (lambda s: cr.sparse_coo_tensor([[-1, 0]], [1.0, 2.0], (2,)), "outside of the shape"),
        (lambda s: s.values(), r"call .coalesce\(\) first"),
        (lambda s: s @ cr.ones(3, 2).double(), r"got the shapes \[3, 4\] and \[3, 2\]"),
        (lambda s: s @ cr.ones(4, 2), "the same dtype"),
        (lambda s: s @ s.t(), "two sparse tensors"),
        (lambda s: s + s.t(), "of one shape"),
        (lambda s: cr.ones(2, 2).to_sparse(1), "sparse_dim=1 for 2"),
        (lambda s: cr.sparse.FloatTensor(), "expected indices, values and a size"),
    ],
)
def test_errors(call: Any, text: str) -> None:
    s, _ = sparse(cr)
    with pytest.raises((ValueError, TypeError, IndexError, RuntimeError), match=text):
        call(s)


# --- by rows --------------------------------------------------------------------------------------

CROW, COLUMNS = [0, 2, 2, 5], [1, 3, 0, 1, 3]


def by_rows(m: Any) -> tuple[Any, Any]:
    values = m.tensor(VALUES, requires_grad=True)
    return m.sparse_csr_tensor(m.tensor(CROW), m.tensor(COLUMNS), values, SHAPE), values


def test_conversions_by_rows_follow_pytorch() -> None:
    dense = np.arange(12.0).reshape(3, 4) % 5

    def program(m: Any) -> list[Any]:
        s, values = by_rows(m)
        (s.to_dense() ** 2).sum().backward()
        found = [m.tensor(dense).to_sparse_csr(), m.tensor(dense).to_sparse(layout=m.sparse_csr)]
        found.append(m.tensor(dense).to_sparse().to_sparse_csr())
        parts = [part for t in found for part in (t.crow_indices(), t.col_indices(), t.values())]
        coo = s.detach().to_sparse()
        assert s.layout == m.sparse_csr
        assert s.is_sparse_csr
        assert not s.is_sparse
        assert not m.ones(2).is_sparse_csr
        return [
            *(*parts, coo.indices() if m is not cr else coo._indices(), s.values(), values.grad),
            *(s.crow_indices(), s.col_indices(), s.to_dense(), s._nnz(), s.size(0), s.dim()),
            *(s.detach().float().double().to_dense(), (s.detach() * 2).to_dense()),
        ]

    both(program)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_products_reduced_otherwise_follow_pytorch(reduce: str) -> None:
    x0 = np.random.default_rng(0).normal(size=(4, 2))

    def program(m: Any) -> list[Any]:
        s, values = by_rows(m)
        x = m.tensor(x0, requires_grad=True)
        found = m.sparse.mm(s, x, reduce)
        (found**3).sum().backward()
        return [found, values.grad, x.grad]

    both(program)


def test_products_at_the_coordinates_of_a_matrix_follow_pytorch() -> None:
    rng = np.random.default_rng(0)
    a0, b0 = rng.normal(size=(3, 2)), rng.normal(size=(2, 4))

    def program(m: Any) -> list[Any]:
        s, values = by_rows(m)
        a, b = m.tensor(a0, requires_grad=True), m.tensor(b0, requires_grad=True)
        found = m.sparse.sampled_addmm(s, a, b, beta=2, alpha=3)
        (found.to_dense() ** 3).sum().backward()
        return [found.to_dense(), found.crow_indices(), values.grad, a.grad, b.grad]

    both(program)
    s, a, b = sparse(cr)[0].detach(), cr.tensor(a0), cr.tensor(b0)
    wanted = np.where(s.to_dense() != 0, s.to_dense() + a @ b, 0)
    np.testing.assert_allclose(cr.sparse.sampled_addmm(s, a, b).to_dense(), wanted)
    twice = cr.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (3, 4), dtype=cr.float64)
    assert cr.sparse.sampled_addmm(twice, a, b).to_dense().sum().item() == 3 + (a @ b)[0, 1].item()
    with pytest.raises(ValueError, match=r"of shape \[3, 4\], got \[3, 2\] and \[4, 2\]"):
        cr.sparse.sampled_addmm(s, a, b.T)


@pytest.mark.parametrize("vector", [True, False])
def test_products_by_rows_follow_pytorch(backend: None, vector: bool) -> None:
    x0 = np.random.default_rng(0).normal(size=4 if vector else (4, 2))

    def program(m: Any) -> list[Any]:
        s, values = by_rows(m)
        x = m.tensor(x0, requires_grad=True)
        found = [s @ x, s.matmul(x)]
        if not vector:
            found += [m.mm(s, x), m.sparse.mm(s, x), s.mm(x)]
        sum((y**3).sum() for y in found).backward()
        by_values = values.grad
        return [*found, by_values, x.grad]

    both(program)


@pytest.mark.parametrize("backend", ["numpy", None])
def test_a_compiled_step_with_a_matrix_by_rows(backend: str | None) -> None:
    def step(values: cr.Tensor, x: cr.Tensor) -> cr.Tensor:
        return cr.grad(lambda v: ((cr.sparse_csr_tensor(CROW, COLUMNS, v, SHAPE) @ x) ** 2).sum())(
            values
        )

    arguments = cr.tensor(VALUES), cr.ones(4, 2, dtype=cr.float64)
    found = cr.compile(step, backend=backend)(*arguments)
    np.testing.assert_allclose(found.numpy(), step(*arguments).numpy(), rtol=1e-12)


def test_a_matrix_by_rows_of_ones_own() -> None:
    s = cr.sparse_csr_tensor(CROW, COLUMNS, VALUES, requires_grad=True, dtype=cr.float64)
    assert s.shape == SHAPE
    assert s.to_sparse_csr() is s.to_sparse(layout=cr.sparse_csr) is s
    (s @ cr.ones(4, 1, dtype=cr.float64)).sum().backward()
    assert s.grad.to_dense().sum().item() == 5
    assert s.grad.layout == cr.sparse_csr
    assert s.to_sparse_coo().layout == cr.sparse_coo
    assert "crow_indices=tensor([0, 2, 2, 5])" in repr(s)
    np.testing.assert_array_equal(s.t().to_dense().tolist(), s.to_dense().T.tolist())
    empty = cr.sparse_csr_tensor([0, 0], [], cr.zeros(0))
    assert empty.shape == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (([0, 1], [0, 1], [1.0]), cr.ShapeError, "values of shape"),
        (([0, 2, 1, 2], [0, 1], [1.0, 2.0]), cr.ArgumentError, "must grow from 0"),
        (([0, 1], [0, 1], [1.0, 2.0]), cr.ArgumentError, "to the number of values, 2"),
        (([0, 2], [0, 5], [1.0, 2.0], (1, 3)), cr.OutOfBoundsError, "between 0 and 5"),
        (([0, 2], [0, 1], [1.0, 2.0], (2, 2)), cr.ShapeError, "are of 1 rows"),
    ],
)
def test_errors_of_matrices_by_rows(arguments: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        cr.sparse_csr_tensor(*arguments)
    with pytest.raises(cr.ShapeError, match="expected a matrix"):
        cr.ones(2).to_sparse_csr()
