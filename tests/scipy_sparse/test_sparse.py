"""`cr.scipy.sparse`: matrices of what is differentiated, beside differences of SciPy's values."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_sparse = pytest.importorskip("scipy.sparse")
scipy_linalg = pytest.importorskip("scipy.sparse.linalg")

N = 4
X = np.array([0.4, -1.3, 0.7, 2.1])
ROW, COL = np.array([0, 1, 2, 3, 0, 2]), np.array([0, 1, 2, 3, 2, 1])
A = scipy_sparse.csr_matrix((np.array([4.0, 3.0, 5.0, 2.0, 1.0, -1.0]), (ROW, COL)))

OURS = SimpleNamespace(sp=cr.scipy.sparse, la=cr.scipy.sparse.linalg, np=cr.numpy)
SCIPYS = SimpleNamespace(sp=scipy_sparse, la=scipy_linalg, np=np)


def laplacian(m: Any, x: Any) -> Any:
    return m.sp.diags([-x[1:], 3.0 + x * x, -x[:-1]], [-1, 0, 1])


def of(m: Any, x: Any) -> Any:
    """Return a matrix that is not symmetric, with elements at one place twice."""
    elements = m.np.concatenate([x * x, x[:2], x[2:] * 0.5])
    places = (np.r_[ROW, [0, 2]], np.r_[COL, [2, 3]])
    return m.sp.coo_matrix((elements, places), shape=(N, N))


def symmetric(m: Any, x: Any) -> Any:
    return laplacian(m, x) + laplacian(m, x).T


def operator(m: Any, x: Any) -> Any:
    return m.la.LinearOperator((N, N), matvec=lambda v: (5 + x * x) * v + x[::-1] * v.sum())


TIGHT = {"atol": 1e-15, "btol": 1e-15}


def written(m: Any, x: Any) -> Any:
    """Return a matrix that is written to: elements, a row, places of a mask, and a diagonal."""
    matrix = m.sp.lil_matrix(m.sp.diags([x, x[1:]], [0, 1], shape=(N, N)))
    before = matrix.copy()
    matrix[0, N - 1] = x[1] ** 2
    matrix[[2, 3], [0, 1]] = x[:2]
    matrix[1, :] = x * x
    matrix[2:, 3] *= 2.0
    matrix.setdiag(x[1:], -1)
    return matrix.tocsr() + before.tocsr()


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "constant@x": lambda m, x: A @ x,
    "number*constant": lambda m, x: (x[0] * A) @ x,
    "constant*number": lambda m, x: (A * x[0] / x[1]) @ x,
    "euler": lambda m, x: (m.sp.eye(N) - x[0] * A) @ x,
    "euler-array": lambda m, x: (m.sp.eye_array(N) - x[0] * m.sp.csr_array(A)) @ x,
    "coo": lambda m, x: of(m, x) @ X,
    "coo-matrix-product": lambda m, x: (of(m, x) @ np.outer(X, X)).ravel(),
    "coo-left": lambda m, x: X @ of(m, x),
    "csr": lambda m, x: m.sp.csr_matrix(
        (x, np.array([1, 0, 3, 2]), np.array([0, 1, 3, 3, 4])), shape=(N, N)
    ) @ X,
    "csc": lambda m, x: m.sp.csc_array(
        (x, np.array([1, 0, 3, 2]), np.array([0, 1, 3, 3, 4])), shape=(N, N)
    ) @ X,
    "dense": lambda m, x: m.sp.csr_matrix(m.np.outer(x, X)) @ X,
    "dia": lambda m, x: m.sp.dia_matrix((m.np.stack([x, 2 * x]), [0, 1]), shape=(N, N)) @ X,
    "spdiags": lambda m, x: m.sp.spdiags(m.np.stack([x, 2 * x]), [0, -1], N, N) @ X,
    "diags-numbers": lambda m, x: m.sp.diags([-x[0], x[1], -x[0]], [-1, 0, 1], shape=(N, N)) @ X,
    "diags-one": lambda m, x: m.sp.diags(x) @ X,
    "diags_array": lambda m, x: m.sp.diags_array([x, x[1:]], offsets=[0, 1]) @ X,
    "transpose-sum": lambda m, x: m.np.asarray((of(m, x).T + A).sum(0)).ravel(),
    "difference": lambda m, x: (A - of(m, x) - laplacian(m, x)).tocsr().dot(x),
    "diagonal": lambda m, x: laplacian(m, x).diagonal(),
    "diagonals": lambda m, x: m.np.concatenate([of(m, x).tocsr().diagonal(k) for k in (-1, 2)]),
    "toarray": lambda m, x: of(m, x).toarray().ravel(),
    "multiply": lambda m, x: of(m, x).multiply(np.outer(X, X)) @ X,
    "product": lambda m, x: (of(m, x) @ laplacian(m, x)) @ X,
    "product-with-constant": lambda m, x: (A @ of(m, x) @ A) @ X,
    "congruence": lambda m, x: (A.T @ m.sp.diags(x) @ A).toarray().ravel(),
    "kron": lambda m, x: m.sp.kron(of(m, x), m.sp.eye(2)) @ np.arange(8.0),
    "kronsum": lambda m, x: m.sp.kronsum(m.sp.diags(x), A) @ np.arange(16.0),
    "bmat": lambda m, x: m.sp.bmat([[of(m, x), None], [A, m.sp.diags(x)]]) @ np.arange(8.0),
    "stack": lambda m, x: m.sp.vstack([of(m, x), A, m.sp.diags(x)]) @ X,
    "blocks": lambda m, x: m.sp.block_diag([of(m, x), A]) @ np.arange(8.0),
    "triangle": lambda m, x: m.sp.tril(of(m, x), -1) @ X,
    "part": lambda m, x: of(m, x).tocsr()[1:3, [0, 1, 3]] @ X[:3],
    "element": lambda m, x: of(m, x).tocsr()[0, 2] * x,
    "written": lambda m, x: written(m, x) @ X,
    "spsolve": lambda m, x: m.la.spsolve(laplacian(m, x).tocsc(), X),
    "spsolve-both": lambda m, x: m.la.spsolve(laplacian(m, x).tocsc(), x),
    "spsolve-right": lambda m, x: m.la.spsolve(A.tocsc(), x),
    "spsolve-columns": lambda m, x: m.la.spsolve(
        (of(m, x) + 5 * m.sp.eye(N)).tocsc(), np.stack([X, X * X], 1)
    ).ravel(),
    "maximum": lambda m, x: of(m, x).maximum(of(m, x).T).minimum(2.5) @ X,
    "compared": lambda m, x: of(m, x).real.multiply(of(m, x) > 0.5) @ X,
    "merged": lambda m, x: [matrix := of(m, x).tocsr(), matrix.sum_duplicates()][0] @ X,
    "spsolve-column": lambda m, x: m.la.spsolve(A.tocsc(), x[:, None]),  # whose result is flat
    "spsolve-sparse": lambda m, x: m.la.spsolve(
        laplacian(m, x).tocsc(), m.sp.csc_matrix(np.stack([X, X * X], 1))).toarray().ravel(),
    "inv": lambda m, x: m.la.inv(laplacian(m, x).tocsc()) @ x,
    "splu": lambda m, x: m.la.splu(laplacian(m, x).tocsc()).solve(X, "T"),
    "splu-right": lambda m, x: m.la.splu(A.tocsc()).solve(x),
    "factorized": lambda m, x: m.la.factorized(A.tocsc())(x),
    "cg": lambda m, x: m.la.cg(laplacian(m, x) + laplacian(m, x).T, X, rtol=1e-13)[0],
    "gmres": lambda m, x: m.la.gmres(of(m, x) + 5 * m.sp.eye(N), X, rtol=1e-12)[0],
    "gmres-column": lambda m, x: m.la.gmres(
        of(m, x) + 5 * m.sp.eye(N), X[:, None], rtol=1e-12)[0],
    "gmres-operator": lambda m, x: m.la.gmres(operator(m, x), X, rtol=1e-12)[0],
    "cg-dense": lambda m, x: m.la.cg(m.np.diag(x * x) + 1, x, rtol=1e-13)[0],
    "cg-preconditioner": lambda m, x: m.la.cg(
        laplacian(m, x) + laplacian(m, x).T, X, rtol=1e-13, M=m.sp.diags(1 / (x * x + 3)))[0],
    "operator": lambda m, x: operator(m, x) @ x,
    "operators": lambda m, x: (
        2 * m.la.aslinearoperator(of(m, x)).T + m.la.aslinearoperator(A) @ operator(m, x)
    ).matvec(X),
    "lsqr": lambda m, x: m.la.lsqr(m.sp.vstack([of(m, x), A]), np.ones(2 * N), 0.1, **TIGHT)[0],
    "lsmr": lambda m, x: m.la.lsmr(m.sp.vstack([A, A]), m.np.concatenate([x, X]), **TIGHT)[0],
    "lsqr-wide": lambda m, x: m.la.lsqr(m.sp.hstack([of(m, x), A]), x, **TIGHT)[0],
    "lsqr-norms": lambda m, x: m.np.stack([
        m.la.lsqr(m.sp.vstack([of(m, x), A]), np.ones(2 * N), 0.1, **TIGHT)[i] for i in (3, 4, 8)]),
    "lsmr-norms": lambda m, x: m.np.stack([
        m.la.lsmr(m.sp.vstack([of(m, x), A]), np.ones(2 * N), 0.1, **TIGHT)[i] for i in (3, 4, 7)]),
    "eigsh": lambda m, x: m.la.eigsh(symmetric(m, x), 2, v0=X)[0],
    "eigsh-vectors": lambda m, x: (m.la.eigsh(symmetric(m, x), 2, v0=X)[1] ** 2).ravel(),
    "eigsh-mass": lambda m, x: (
        m.la.eigsh(symmetric(m, x), 1, m.sp.diags(x * x + 1).tocsc(), v0=X)[1] ** 2).ravel(),
    "eigsh-shift": lambda m, x: m.la.eigsh(
        symmetric(m, x), 1, sigma=0.5, v0=X, return_eigenvectors=False),
    "eigsh-smallest": lambda m, x: m.la.eigsh(
        symmetric(m, x), 2, which="SA", v0=X, return_eigenvectors=False),
    "eigs-values": lambda m, x: m.np.real(m.la.eigs(
        of(m, x), 2, which="LR", v0=X, return_eigenvectors=False)),
    "eigs": lambda m, x: m.np.real(m.la.eigs(of(m, x), 2, v0=X)[0]),
    "eigs-vectors": lambda m, x: abs(m.la.eigs(of(m, x), 1, v0=X)[1]).ravel(),
    "svds": lambda m, x: m.la.svds(of(m, x), 2, v0=X)[1],
    "svds-vectors": lambda m, x: m.la.svds(of(m, x), 2, v0=X)[2].ravel() ** 2,
    "svds-values": lambda m, x: m.la.svds(of(m, x), 2, v0=X, return_singular_vectors=False),
    "expm_multiply": lambda m, x: m.la.expm_multiply(of(m, x), x),
    "expm_multiply-times": lambda m, x: m.la.expm_multiply(
        of(m, x), X, start=0.0, stop=1.0, num=3, endpoint=True).ravel(),
    "expm": lambda m, x: m.la.expm(of(m, x).tocsc()) @ X,
    "matrix_power": lambda m, x: m.la.matrix_power(of(m, x), 3) @ X,
    "powers": lambda m, x: (of(m, x).power(2) + of(m, x) ** 2) @ X,
    "elements": lambda m, x: (abs(of(m, x)) + of(m, x).sinh() - of(m, x).getH()) @ X,
    "row": lambda m, x: of(m, x).getrow(2).trace(1) * x + of(m, x).max() + of(m, x).min(),
}  # fmt: skip

SOME = [n if i % 3 == 0 or "solve" in n else pytest.param(n, marks=pytest.mark.thorough)
        for i, n in enumerate(PROGRAMS)]  # fmt: skip


def total(m: Any, name: str) -> Callable[[Any], Any]:
    def program(x: Any) -> Any:
        found = PROGRAMS[name](m, x)
        return (found * m.np.cos(np.arange(1.0, found.size + 1))).sum()

    return program


def difference(f: Callable[[Any], Any], x: Any, direction: Any, h: float = 1e-5) -> Any:
    return (f(x + h * direction) - f(x - h * direction)) / (2 * h)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_differences_are_scipys(name: str) -> None:
    ours, scipys = total(OURS, name), total(SCIPYS, name)
    value, slopes = cr.value_and_grad(ours)(X)
    assert value == pytest.approx(scipys(X), rel=1e-9)
    wanted = [difference(scipys, X, e) for e in np.eye(N)]
    np.testing.assert_allclose(slopes, wanted, 1e-6, 1e-7)


@pytest.mark.parametrize("name", SOME)
def test_both_modes_and_second_derivatives(name: str) -> None:
    ours, direction = total(OURS, name), np.array([0.3, -0.2, 0.5, 0.1])
    slope = cr.grad(ours)
    assert cr.jvp(ours, (X,), (direction,))[1] == pytest.approx(slope(X) @ direction, rel=1e-7)
    wanted = difference(slope, X, direction)
    np.testing.assert_allclose(cr.hvp(ours, X, direction), wanted, 1e-5, 1e-6)


def test_what_was_multiplied_and_solved_for_may_be_written_to() -> None:
    def march(m: Any, x: Any) -> Any:
        matrix, states = m.sp.eye(N) - 0.1 * x[0] * A, m.np.zeros((N, 4))
        states[:, 0] = x
        for i in range(1, 4):
            states[:, i] = matrix @ states[:, i - 1]
            states[:, i] = m.la.spsolve(matrix.tocsc(), states[:, i])
            found = m.la.spsolve(matrix.tocsc(), states[:, i])
            found[0] = 0.5
            states[:, i] += found
        return (states**2).sum()

    wanted = [difference(lambda x: march(SCIPYS, x), X, e) for e in np.eye(N)]
    np.testing.assert_allclose(cr.grad(lambda x: march(OURS, x))(X), wanted, 1e-6)


def test_a_number_times_a_matrix() -> None:
    def f(t: float) -> Any:
        return ((t * A + A * t - A * (2.0 / t)) @ X).sum()

    assert cr.grad(f)(1.5) == pytest.approx(2 * (1 + 1 / 1.5**2) * (A @ X).sum())
    with pytest.raises(TypeError, match=r"unsupported operand type"):
        cr.grad(lambda t: t * object())(1.5)


def test_kinds() -> None:
    sparse = cr.scipy.sparse
    assert type(sparse.csr_matrix(A)) is scipy_sparse.csr_matrix
    assert type(sparse.diags([1.0, 2.0])) is type(scipy_sparse.diags([1.0, 2.0]))
    assert isinstance(A, sparse.csr_matrix)
    assert not isinstance(X, sparse.csr_matrix)
    assert type(sparse.linalg.spsolve(A.tocsc(), X)) is np.ndarray
    found = of(OURS, cr.numpy.array(X))
    assert isinstance(found, sparse.coo_matrix)
    assert sparse.issparse(found)
    assert (found.shape, found.nnz, found.dtype) == ((N, N), 8, np.float64)


def test_mistakes_are_errors() -> None:
    sparse, x = cr.scipy.sparse, cr.numpy.array(X)
    matrix = sparse.diags(x)
    with pytest.raises(IndexError, match=r"out of bounds"):
        matrix[4, 0] = 1.0
    with pytest.raises(cr.ShapeError, match=r"shape \(4, 4\) doesn't multiply"):
        matrix @ np.ones(3)
    with pytest.raises(cr.ShapeError, match="add: sparse matrices"):
        matrix + scipy_sparse.eye(3)
    with pytest.raises(cr.ShapeError, match="data, row and col need one length"):
        sparse.SparseMatrix(x, [0], [0], (4, 4))
    with pytest.raises(cr.LinAlgError, match=r"spsolve: .*singular"):
        sparse.linalg.spsolve(sparse.diags(0 * x), X)
    with pytest.raises(cr.MissingRuleError, match=r"linalg.onenormest .* take A.toarray\(\)"):
        sparse.linalg.onenormest(matrix)
    with pytest.raises(TypeError, match=r"exponent 0 makes a dense matrix"):
        matrix.power(0)
    with pytest.raises(cr.LinAlgError, match=r"Jacobian .* singular"):  # a double eigenvalue
        cr.grad(lambda x: sparse.linalg.eigsh(sparse.diags(x), 1, v0=X)[1].sum())(np.ones(N))


@pytest.mark.parametrize(
    "make",
    [
        lambda s, v: s.csr_matrix((v, (range(3), range(3))), shape=(3, 3), dtype=np.float32),
        lambda s, v: s.coo_array((v, (range(3), range(3))), (3, 3), np.float32, True),
        lambda s, v: s.diags(v, 0, (3, 3), None, np.float32),
        lambda s, v: s.hstack([s.diags([v], [0])] * 2, dtype=np.float32),
    ],
)
def test_elements_have_the_type_that_is_asked_for(make: Any) -> None:
    found = []

    def total(t: Any) -> Any:
        found.append(make(cr.scipy.sparse, t * np.ones(3)))
        return found[0].sum()

    wanted = make(scipy_sparse, np.ones(3))
    assert cr.grad(total)(2.0) == wanted.sum()
    assert (found[0].dtype, found[0].shape) == (wanted.dtype, wanted.shape)


MAPPED = [
    *("spsolve", "spsolve-both", "spsolve-right", "spsolve-columns", "gmres-operator"),
    *("lsqr", "lsqr-wide", "eigsh", "eigsh-vectors", "eigsh-smallest", "svds"),
]


@pytest.mark.parametrize("name", MAPPED)
def test_jacobians_and_vmap_of_solutions(name: str) -> None:
    def function(x: Any) -> Any:
        return PROGRAMS[name](OURS, x)

    slope = cr.jacobian(function)(X)
    for k, row in enumerate(slope):
        np.testing.assert_allclose(row, cr.grad(lambda x, k=k: function(x)[k])(X), rtol=1e-10)
    points = np.stack([X, X + 0.1])
    for each in (function, cr.jacobian(function)):
        np.testing.assert_allclose(cr.vmap(each)(points), [each(x) for x in points], rtol=1e-10)
