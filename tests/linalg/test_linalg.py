"""Names, results and errors of cr.linalg."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr


def test_linear_algebra_is_imported_when_it_is_first_asked_for() -> None:
    script = """
import sys, chainrule as cr
assert not any(name.startswith("chainrule.linalg") for name in sys.modules)
assert cr.eye(2).det().item() == 1
assert "chainrule.linalg" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", cr.linalg.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    assert getattr(cr.linalg, name).__doc__


def test_tensors_have_pytorchs_methods() -> None:
    x = cr.tensor([[4.0, 1.0], [1.0, 3.0]])
    b = cr.tensor([[1.0], [2.0]])
    factor = x.cholesky()
    for ours, function in (
        (x.det(), cr.det(x)),
        (x.logdet(), cr.logdet(x)),
        (x.slogdet().logabsdet, cr.slogdet(x).logabsdet),
        (x.inverse(), cr.inverse(x)),
        (x.pinverse(), cr.pinverse(x)),
        (x.matrix_power(3), cr.matrix_power(x, 3)),
        (x.matrix_exp(), cr.matrix_exp(x)),
        (factor, cr.linalg.cholesky(x)),
        (b.cholesky_solve(factor), cr.cholesky_solve(b, factor)),
        (factor.cholesky_inverse(), cr.cholesky_inverse(factor)),
    ):
        assert ours.tolist() == function.tolist()
    assert cr.Tensor.det.__doc__ == "Return `chainrule.linalg.det` of the tensor."


def test_results_have_the_names_of_pytorch_and_of_the_array_api() -> None:
    x = cr.eye(2)
    for name, fields in (
        ("slogdet", ("sign", "logabsdet")),
        ("eigh", ("eigenvalues", "eigenvectors")),
        ("eig", ("eigenvalues", "eigenvectors")),
        ("qr", ("Q", "R")),
        ("svd", ("U", "S", "Vh")),
    ):
        assert getattr(cr.linalg, name)(x)._fields == fields
    assert cr.linalg.lstsq(x, x)._fields == ("solution", "residuals", "rank", "singular_values")


def test_both_spellings_of_dimensions() -> None:
    x = cr.tensor([[3.0, 4.0], [6.0, 8.0]])
    assert cr.linalg.vector_norm(x, axis=1, keepdims=True).tolist() == [[5], [10]]
    assert cr.linalg.vector_norm(x, dim=1, keepdim=True).tolist() == [[5], [10]]
    assert cr.linalg.matrix_norm(x, 1, axis=(1, 0), keepdims=True).tolist() == [[14]]
    assert cr.linalg.matrix_norm(x, "nuc", keepdim=True).shape == (1, 1)
    assert cr.linalg.norm(x, 1, axis=0).tolist() == [9, 12]
    assert cr.linalg.norm(x, dtype=cr.float64).dtype == cr.float64


def test_nodes_have_pytorchs_names() -> None:
    torch = pytest.importorskip("torch")
    x, t = cr.eye(2).requires_grad_(), torch.eye(2).requires_grad_()
    for name in ("eigh", "eig", "qr", "svd", "slogdet", "inv", "matrix_exp", "cholesky", "det"):
        ours, theirs = [getattr(library.linalg, name)(y) for library, y in ((cr, x), (torch, t))]
        if isinstance(ours, tuple):
            ours, theirs = ours[1], theirs[1]
        assert ours.grad_fn.name == theirs.grad_fn.name()


@pytest.fixture
def saved() -> list[tuple[int, ...]]:
    return []


def test_saved_factors_go_through_saved_tensor_hooks(saved: list[tuple[int, ...]]) -> None:
    x = cr.tensor([[3.0, 1.0], [1.0, 2.0]], requires_grad=True)

    def pack(t: cr.Tensor) -> cr.Tensor:
        saved.append(t.shape)
        return t * 2

    with cr.saved_tensors_hooks(pack, lambda t: t / 2):
        values, vectors = cr.linalg.eigh(x)
    assert saved == [(2,), (2, 2)]
    loss = values.sum() + (vectors**2)[0, 0]
    (first,) = cr.autograd_grad(loss, x, create_graph=True)
    plain = cr.linalg.eigh(x)
    wanted = plain[0].sum() + (plain[1] ** 2)[0, 0]
    assert first.tolist() == cr.autograd_grad(wanted, x)[0].tolist()


def test_a_factor_that_was_written_to_is_refused() -> None:
    x = cr.tensor([[3.0, 1.0], [1.0, 2.0]], requires_grad=True)
    values, vectors = cr.linalg.eigh(x)
    with cr.no_grad():
        vectors.mul_(2)
    with pytest.raises(cr.InPlaceError, match="which is output 1 of LinalgEighBackward0"):
        values.sum().backward()


# --- errors ---------------------------------------------------------------------------------------

NAN = float("nan")
EYE, SINGULAR = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]]
BAD = [[1.0, NAN], [NAN, 1.0]]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda la: la.inv(cr.tensor(SINGULAR)), "linalg.inv: The inversion could not be comple"),
        (lambda la: la.inv(cr.tensor([EYE, SINGULAR])), r"linalg.inv: \(Batch element 1\): The in"),
        (
            lambda la: la.solve(cr.tensor([EYE, EYE, SINGULAR]), cr.ones(2)),
            r"linalg.solve: \(Batch element 2\): The solver failed because the input matrix is sin",
        ),
        (
            lambda la: la.solve_triangular(cr.tensor([[1.0, 2.0], [0, 0]]), cr.eye(2), upper=True),
            "linalg.solve_triangular: The solver failed because the input matrix is singular",
        ),
        (
            lambda la: la.cholesky(cr.tensor([[1.0, 2.0], [2.0, 1.0]])),
            r"not positive-definite \(the leading minor of order 2 is not positive-definite\)",
        ),
        (
            lambda la: la.cholesky(cr.tensor([[1.0, 2.0], [0.0, 1.0]]), upper=True),
            r"not positive-definite \(the leading minor of order 2 is not positive-definite\)",
        ),
        (
            lambda la: la.cholesky(cr.tensor([EYE, [[-1.0, 0.0], [0.0, 1.0]]])),
            r"linalg.cholesky: \(Batch element 1\): .* leading minor of order 1",
        ),
        (lambda la: la.cholesky(cr.tensor([EYE, BAD])), r"element 1\): .* minor of order 2"),
        (lambda la: la.eig(cr.tensor(BAD)), "linalg.eig: The algorithm failed to converge"),
        (lambda la: la.eigvals(cr.tensor(BAD)), "contained non-finite values"),
        (lambda la: la.svd(cr.tensor(BAD)), "linalg.svd: The algorithm failed to converge"),
        (lambda la: la.svdvals(cr.tensor(BAD)), "contained non-finite values"),
        (lambda la: la.pinv(cr.tensor(BAD)), "linalg.pinv: The algorithm failed to converge"),
        (lambda la: la.tensorinv(cr.tensor(SINGULAR), ind=1), "the input matrix is singular"),
    ],
)
def test_matrices_without_a_result_are_linalg_errors(call: Any, text: str) -> None:
    with pytest.raises(cr.LinAlgError, match=text) as caught:
        call(cr.linalg)
    assert isinstance(caught.value, RuntimeError)
    assert isinstance(caught.value, np.linalg.LinAlgError)
    assert isinstance(caught.value, cr.linalg.LinAlgError)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_eigenvalues_that_do_not_converge(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> None:
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(cr.backend.numpy_xp.linalg, name, refuse)
    with pytest.raises(cr.LinAlgError, match=rf"linalg.{name}: .* failed to converge .* repeated"):
        getattr(cr.linalg, name)(cr.eye(2))


def test_a_singular_matrix_inside_a_recorded_pass_says_so() -> None:
    x = cr.tensor([[0.0, 1.0], [0.0, 1.0]], dtype=cr.float64, requires_grad=True)
    out = cr.linalg.qr(x).R.sum()
    with pytest.raises(cr.LinAlgError, match="solve_triangular: Singular matrix"):
        out.backward(create_graph=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda la: la.det(cr.ones(2)), cr.ShapeError, "must have at least 2 dim"),
        (lambda la: la.inv(cr.ones(2, 3)), cr.ShapeError, "they are 2 by 3 matrices"),
        (lambda la: la.inv(cr.eye(2).half()), cr.DTypeError, "Low precision dtypes .* Got Half"),
        (
            lambda la: la.solve(cr.eye(2), cr.ones(3)),
            cr.ShapeError,
            r"Incompatible shapes of A and B for the equation AX = B \(2x2 and 3x1\)",
        ),
        (
            lambda la: la.solve(cr.eye(2), cr.ones(2, 3), left=False),
            cr.ShapeError,
            r"for the equation XA = B \(2x2 and 2x3\)",
        ),
        (
            lambda la: la.solve(cr.eye(2), cr.ones(2), left=False),
            cr.ShapeError,
            "Vector broadcasting of the left hand side is not supported for left=False",
        ),
        (
            lambda la: la.solve(cr.eye(2).expand(3, 2, 2), cr.ones(2, 2, 1)),
            cr.ShapeError,
            "solve: .*broadcast",
        ),
        (lambda la: la.lstsq(cr.eye(2), cr.ones(3, 1)), cr.ShapeError, r"input.size\(-2\) should"),
        (lambda la: la.lstsq(cr.eye(2), cr.eye(2), driver="x"), ValueError, "`driver` should"),
        (lambda la: la.svd(cr.eye(2), driver="gesvd"), ValueError, "only supported on CUDA inputs"),
        (lambda la: la.svdvals(cr.eye(2), driver="gesvd"), ValueError, "only supported on CUDA"),
        (lambda la: la.qr(cr.eye(2), "full"), ValueError, "qr received unrecognized mode 'full'"),
        (lambda la: la.eigh(cr.eye(2), "X"), ValueError, "Expected UPLO argument to be 'L' or 'U'"),
        (lambda la: la.eigvalsh(cr.eye(2), "X"), ValueError, "linalg.eigvalsh: Expected UPLO"),
        (lambda la: la.matrix_norm(cr.eye(2), 3), ValueError, "Order 3 not supported"),
        (lambda la: la.matrix_norm(cr.ones(2)), cr.ShapeError, "matrix_norm: .* at least 2 dimens"),
        (lambda la: la.matrix_norm(cr.eye(2), dim=1), cr.ShapeError, "a 2-tuple. Got 1"),
        (lambda la: la.norm(cr.ones(2, 2, 2), 1), cr.ShapeError, "1D or 2D. Got 3D"),
        (lambda la: la.norm(cr.ones(2), "nuc"), ValueError, "Order 'nuc' is of matrices"),
        (
            lambda la: la.vector_norm(cr.ones(0), float("inf")),
            cr.ShapeError,
            "cannot compute the inf norm on an empty dimension",
        ),
        (lambda la: la.matrix_power(cr.ones(2, 3), 2), cr.ShapeError, "matrix_power: A must"),
        (lambda la: la.multi_dot([cr.eye(2)]), ValueError, "expected at least 2 tensors but got 1"),
        (
            lambda la: la.multi_dot([cr.eye(2), cr.eye(3)]),
            cr.ShapeError,
            r"tensors 0 and 1 with shapes \[2, 2\] and \[3, 3\] cannot be multiplied",
        ),
        (
            lambda la: la.multi_dot([cr.eye(2), cr.ones(2, 2, 2), cr.eye(2)]),
            cr.ShapeError,
            "tensor 1 must be 2D but got 3D",
        ),
        (lambda la: la.vander(cr.tensor(1.0)), cr.ShapeError, "must have at least one dimension"),
        (lambda la: la.vander(cr.ones(2), N=0), ValueError, "N must be at least 1, but got 0"),
        (lambda la: la.tensorinv(cr.eye(2)), cr.ShapeError, "Expected ind to be positive and prod"),
        (
            lambda la: la.tensorsolve(cr.ones(2, 3), cr.ones(2)),
            cr.ShapeError,
            "Expected self to satisfy the requirement prod",
        ),
    ],
)
def test_arguments_that_do_not_fit(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(cr.linalg)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_inverses_of_many_small_matrices(n, dtype):
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (700, n, n)) + 1j * rng.integers(-1, 2, (700, n, n))  # many zeros
    x = (x if dtype.startswith("complex") else x.real).astype(dtype)
    x = x[np.abs(np.linalg.det(x)) > 0.1][:300].reshape(2, -1, n, n)
    assert x.size >= 256 * n * n or n == 1
    found = cr.linalg.inv(cr.from_numpy(x)).numpy()
    assert found.dtype == x.dtype
    np.testing.assert_allclose(found @ x, np.broadcast_to(np.eye(n), x.shape), atol=1e-5)
    x[1, 5, :, 0] = np.nan
    found = cr.linalg.inv(cr.from_numpy(x)).numpy()
    assert np.isnan(found).any((2, 3)).sum() == 1
    x[1, 5] = 0
    with pytest.raises(cr.linalg.LinAlgError, match=r"[Ss]ingular"):
        cr.linalg.inv(cr.from_numpy(x))
