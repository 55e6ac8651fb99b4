"""`cr.scipy.linalg`: coverage, kinds, errors, degenerate places, and other libraries."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.primitives import TABLE as PRIMITIVES
from chainrule.scipy.linalg.arguments import TABLE
from conformance import cases_of, checks
from conformance.rows.scipy_linalg import ROWS, linalg

TOOL = Path(__file__).resolve().parents[2] / "tools" / "scipy_page.py"
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
S = A @ A.T + np.diag([1.0, 2.0, 4.0])


def leaf(a: Any) -> cr.Tensor:
    return cr.tensor(a, requires_grad=True)


# --- coverage -------------------------------------------------------------------------------------

WITHOUT_ARRAYS = (
    *("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"),
    *("find_best_blas_type", "get_blas_funcs", "get_lapack_funcs"),
)


def test_every_function_differentiates_or_says_why_not() -> None:
    names = {
        name
        for name in linalg.__all__
        if callable(found := getattr(linalg, name)) and not inspect.isclass(found)
    }
    known = {*TABLE.declared, *TABLE.refused, *TABLE.of_values, *WITHOUT_ARRAYS}
    assert names <= known
    assert not TABLE.declared.keys() & TABLE.refused.keys()
    rows = {row.primitive.partition(" ")[0] for row in ROWS}
    same_as_another = {"solve_lyapunov", "null_space", "kron"}
    assert set(TABLE.declared) <= rows | same_as_another


def test_every_primitive_has_a_row() -> None:
    elsewhere = {"scipy_real_transform", "scipy_lfilter", "scipy_spline_filter"}  # fft, signal, …
    names = {name for name in PRIMITIVES if name.startswith("scipy_")} - elsewhere
    found = set()
    for row in ROWS:
        case = next(cases_of(row))
        subject = checks.Subject(case)
        stack: list[Any] = [out.grad_fn for out in subject(*checks.leaves(subject.points))]
        while stack:
            node = stack.pop()
            if node is not None:
                found.add(getattr(getattr(node, "plan", None), "primitive", None))
                stack += [checks.endpoint(edge)[0] for edge in node.edges if edge is not None]
    assert names - {p.name for p in found if p is not None} == {"scipy_qr_pivots"}


def test_the_page_is_current() -> None:
    spec = importlib.util.spec_from_file_location("scipy_page", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run tools/scipy_page.py"


@pytest.mark.parametrize("name", sorted(TABLE.refused))
def test_functions_without_a_derivative_raise(name: str) -> None:
    with pytest.raises(cr.MissingRuleError, match=f"linalg.{name} has no derivative rule"):
        getattr(cr.scipy.linalg, name)(leaf(A), leaf(B))


def test_without_gradient_scipy_computes() -> None:
    t, z = cr.scipy.linalg.schur(cr.tensor(A))
    np.testing.assert_array_equal(t.numpy(), linalg.schur(A)[0])
    assert isinstance(z, cr.Tensor)
    assert cr.scipy.linalg.issymmetric(leaf(S)) is True
    assert cr.scipy.linalg.bandwidth(leaf(np.triu(A))) == (0, 2)
    assert isinstance(cr.scipy.linalg.norm(cr.tensor(np.asfortranarray(A)), 1), cr.Tensor)
    assert cr.scipy.linalg.hilbert(2).tolist() == linalg.hilbert(2).tolist()
    with pytest.raises(AttributeError, match="hilbertt"):
        cr.scipy.linalg.hilbertt  # noqa: B018
    assert {"expm", "hilbert"} <= set(dir(cr.scipy.linalg))


def test_scipy_is_imported_when_a_function_is_called() -> None:
    code = (
        "import sys, chainrule as cr; cr.scipy.linalg, cr.scipy.fft; "
        "assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- kinds and dtypes -----------------------------------------------------------------------------


def test_arrays_get_scipys_own_results() -> None:
    assert type(cr.scipy.linalg.expm(A)) is np.ndarray
    assert type(cr.scipy.linalg.det(A)) is np.float64
    assert cr.scipy.linalg.solve.__name__ == "solve"
    assert list(inspect.signature(cr.scipy.linalg.solve).parameters)[:3] == ["a", "b", "lower"]


def test_functions_under_transforms_get_arrays() -> None:
    def f(a: Any) -> Any:
        found = cr.scipy.linalg.lu_factor(a)
        assert type(found[1]) is np.ndarray  # integers, as NumPy has them
        assert isinstance(found[0], cr.numpy.ndarray)
        return found[0].std() + cr.scipy.linalg.polar(a)[1].max(0).sum()

    assert type(cr.grad(f)(A)) is np.ndarray
    compiled = cr.compile(
        lambda a: cr.scipy.linalg.expm(a) @ cr.scipy.linalg.solve_sylvester(a, a, a)
    )
    wanted = linalg.expm(S) @ linalg.solve_sylvester(S, S, S)
    np.testing.assert_allclose(np.asarray(compiled(S)), wanted, rtol=1e-10)
    mapped = cr.vmap(cr.scipy.linalg.sqrtm)(np.stack([S, 2 * S]))
    np.testing.assert_allclose(mapped[1], linalg.sqrtm(2 * S), rtol=1e-10)


def test_single_precision_and_operands() -> None:
    narrow = cr.tensor(S.astype("float32"))
    for t in (narrow, narrow.clone().requires_grad_()):
        assert cr.scipy.linalg.solve_continuous_are(t, t, t, t).dtype == "float32"
        assert cr.scipy.linalg.eig(t)[0].dtype == "complex64"
        assert cr.scipy.linalg.det(t).dtype == "float32"
    x = cr.scipy.linalg.solve([[2, 0], [0, 4]], cr.tensor([2, 2], dtype="int64"))
    assert (x.dtype, x.tolist()) == ("float64", [1.0, 0.5])
    assert cr.scipy.linalg.expm(leaf(np.eye(2, dtype="float16"))).dtype == "float32"
    assert cr.scipy.linalg.solve(2.0, leaf([4.0])).tolist() == [2.0]
    x = cr.scipy.linalg.block_diag(leaf([1.0, 2.0]), [[3, 4]])
    assert x.tolist() == [[1, 2, 0, 0], [0, 0, 3, 4]]


def test_nothing_is_overwritten() -> None:
    for t in (cr.tensor(np.asfortranarray(S)), leaf(np.asfortranarray(S))):
        cr.scipy.linalg.inv(t, True)
        cr.scipy.linalg.cholesky(t, overwrite_a=True)
        np.testing.assert_array_equal(t.detach().numpy(), S)


def test_stacks_of_matrices() -> None:
    a = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)
    for name in ("sqrtm", "logm", "expm", "polar", "eigvalsh"):
        found = getattr(cr.scipy.linalg, name)(leaf(a))
        for part, one in zip(found, a, strict=False) if name != "polar" else ():
            wanted = getattr(linalg, name)(one)
            np.testing.assert_allclose(part.detach().numpy(), wanted, rtol=1e-9)
    x = cr.scipy.linalg.lstsq(leaf(a[:, :, :2]), [1.0, 2.0, 3.0])
    wanted = linalg.lstsq(a[1, :, :2], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(x[0][1].detach().numpy(), wanted[0])
    assert x[2].tolist() == [2, 2]
    with pytest.raises(cr.ShapeError, match=r"orth: the matrices of a stack must have one rank"):
        cr.scipy.linalg.orth(leaf(np.stack([np.eye(2), np.ones((2, 2))])))


def test_null_spaces() -> None:
    t = leaf(A[:2])
    found = cr.scipy.linalg.null_space(t)
    np.testing.assert_allclose(abs(found.detach().numpy()), abs(linalg.null_space(A[:2])))

    def projection(t: Any) -> Any:  # which doesn't depend on the choice of the basis
        n = cr.scipy.linalg.null_space(t)
        return n @ n.T

    assert cr.gradcheck(projection, leaf(A[:2]), fast_mode=True)
    assert cr.gradgradcheck(projection, leaf(A[:2]), fast_mode=True)


# --- errors ---------------------------------------------------------------------------------------

RAISED: list[tuple[type[Exception], str, Callable[[Any], Any]]] = [
    (cr.LinAlgError, "singular", lambda la: la.solve(leaf(np.ones((2, 2))), [1.0, 2.0])),
    (cr.LinAlgError, "singular", lambda la: la.inv(leaf(np.zeros((2, 2))))),
    (
        cr.LinAlgError,
        "0 on its diagonal",
        lambda la: la.solve(leaf(np.zeros((2, 2))), [1.0, 2.0], assume_a="diagonal"),
    ),
    (cr.LinAlgError, "not positive-definite", lambda la: la.cholesky(leaf(-S))),
    (
        cr.LinAlgError,
        "solveh_banded: .th leading minor",
        lambda la: la.solveh_banded(leaf(-S), [1.0, 2, 3]),
    ),
    (
        cr.LinAlgError,
        "solve_banded: singular matrix",
        lambda la: la.solve_banded((0, 0), leaf(np.zeros((1, 2))), [1.0, 2.0]),
    ),
    (
        cr.LinAlgError,
        "near singular circulant",
        lambda la: la.solve_circulant(leaf(np.ones(3)), [1.0, 2, 3]),
    ),
    (
        ValueError,
        "expm: expected a square matrix, got the shape .2, 3.",
        lambda la: la.expm(leaf(A[:2])),
    ),
    (ValueError, "of one size", lambda la: la.eigh(leaf(S), np.eye(2))),
    (
        ValueError,
        r"solve: incompatible shapes: a matrix of shape \[3, 3\]",
        lambda la: la.solve(leaf(S), [1.0]),
    ),
    (ValueError, "must not contain infs or NaNs", lambda la: la.det(leaf([[np.nan]]))),
    (
        ValueError,
        "'odd' is not a recognized matrix structure",
        lambda la: la.solve(leaf(S), S, assume_a="odd"),
    ),
    (
        NotImplementedError,
        "can currently not solve a.T x = b",
        lambda la: la.solve(leaf(S + 0j), S, transposed=True),
    ),
    (ValueError, "expected trans", lambda la: la.solve_triangular(leaf(S), S, trans="Q")),
    (ValueError, "expected trans", lambda la: la.lu_solve((leaf(S), np.arange(3)), S, trans=7)),
    (ValueError, "expected q of shape .3, 3.", lambda la: la.solve_sylvester(leaf(A), B, B[:2])),
    (
        ValueError,
        "expected b of shape .3, 2.",
        lambda la: la.solve_continuous_are(leaf(A), B, S, S[:2, :2]),
    ),
    (ValueError, "'fast'", lambda la: la.solve_discrete_lyapunov(leaf(A), B, "fast")),
    (ValueError, "'GUESS'", lambda la: la.expm_frechet(leaf(A), B, "GUESS")),
    (
        cr.MissingRuleError,
        "disp=False asks for an error estimate",
        lambda la: la.logm(leaf(A), disp=False),
    ),
    (
        cr.MissingRuleError,
        r"linalg.expm\(t \* ",
        lambda la: la.fractional_matrix_power(A, leaf(0.5)),
    ),
    (ValueError, "one number for each eigenvalue", lambda la: la.funm(leaf(A), lambda w: w.sum())),
    (cr.MissingRuleError, "mode 'raw'", lambda la: la.qr(leaf(A), mode="raw")),
    (ValueError, "expected mode", lambda la: la.qr(leaf(A), mode="odd")),
    (ValueError, "expected mode", lambda la: la.rq(leaf(A), mode="odd")),
    (ValueError, "expected mode", lambda la: la.qr_multiply(leaf(A), B, "odd")),
    (ValueError, "doesn't fit Q", lambda la: la.qr_multiply(leaf(A), B[:2], "left")),
    (ValueError, "expected side", lambda la: la.polar(leaf(A), "up")),
    (ValueError, "polar: expected a matrix", lambda la: la.polar(leaf([1.0]))),
    (ValueError, "two matrices of one shape", lambda la: la.orthogonal_procrustes(leaf(A), B[:2])),
    (ValueError, "type 1, 2 or 3", lambda la: la.eigh(leaf(S), type=4)),
    (ValueError, "'gv' is not a driver for standard", lambda la: la.eigh(leaf(S), driver="gv")),
    (ValueError, "'evd' is not a driver for gen", lambda la: la.eigh(leaf(S), S, driver="evd")),
    (
        ValueError,
        "not both",
        lambda la: la.eigh(leaf(S), subset_by_index=(0, 1), subset_by_value=(0, 1)),
    ),
    (ValueError, "first <= last < 3", lambda la: la.eigh(leaf(S), subset_by_index=(0, 3))),
    (ValueError, "must increase", lambda la: la.eigh(leaf(S), subset_by_value=(1, 0))),
    (ValueError, "'i' or 'v'", lambda la: la.eig_banded(leaf(S), select="x")),
    (ValueError, "expected bands in rows", lambda la: la.eig_banded(leaf([1.0]))),
    (ValueError, "one more element", lambda la: la.eigh_tridiagonal(leaf([1.0]), [1.0])),
    (
        cr.LinAlgError,
        r"eig: b is singular, .* of the pair \(b, a\)",
        lambda la: la.eig(leaf(A), np.ones((3, 3))),
    ),
    (
        ValueError,
        "'auto', .* got 'fast'",
        lambda la: la.eigvalsh_tridiagonal(leaf([1.0]), [], lapack_driver="fast"),
    ),
    (TypeError, "only real arrays", lambda la: la.eigh_tridiagonal(leaf([1j, 2]), [1.0])),
    (
        cr.MissingRuleError,
        "homogeneous_eigvals",
        lambda la: la.eigvals(leaf(A), homogeneous_eigvals=True),
    ),
    (ValueError, "'gesdx'", lambda la: la.svd(leaf(A), lapack_driver="gesdx")),
    (ValueError, "equally many rows", lambda la: la.subspace_angles(leaf(A), B[:2])),
    (ValueError, "'gelsx' is not found", lambda la: la.lstsq(leaf(A), B, lapack_driver="gelsx")),
    (ValueError, "lstsq: shape mismatch", lambda la: la.lstsq(leaf(A), B[:2])),
    (ValueError, "must be positive", lambda la: la.pinv(leaf(A), atol=-1.0)),
    (ValueError, "expected 3 bands in rows", lambda la: la.solve_banded((1, 1), leaf(A[:2]), A[0])),
    (ValueError, "ab and b are not compatible", lambda la: la.solve_banded((1, 1), leaf(A), A[:2])),
    (TypeError, "l_and_u must be an int", lambda la: la.solve_banded(([1], 1), leaf(A), A)),
    (
        ValueError,
        "solve_toeplitz: incompatible shapes",
        lambda la: la.solve_toeplitz((leaf(A[0]), [1.0]), [2.0]),
    ),
    (ValueError, "a matrix with 3 columns", lambda la: la.solve_toeplitz(leaf(A[0]), [2.0])),
    (
        ValueError,
        "shapes of c .3. and b .2. are incompatible",
        lambda la: la.solve_circulant(leaf(A[0]), [2.0, 1.0]),
    ),
    (ValueError, "toeplitz: expected vectors", lambda la: la.toeplitz(leaf(1.0))),
    (ValueError, "khatri_rao: the number of columns", lambda la: la.khatri_rao(leaf(A), B[:, :2])),
]


@pytest.mark.parametrize(("kind", "text", "call"), RAISED, ids=range(len(RAISED)))
def test_errors(kind: type[Exception], text: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(kind, match=text):
        call(cr.scipy.linalg)


def test_calls_of_scipy_itself_name_ours() -> None:
    text = r"linalg.solve\(a, B\) makes a number.* Call chainrule\.scipy\.linalg\.solve, which is"
    with pytest.raises(cr.AutogradError, match=text):
        cr.grad(lambda a: linalg.solve(a, B).sum())(A)
    for name in ("expm", "cholesky", "eigvalsh", "sqrtm"):
        with pytest.raises(cr.AutogradError, match=rf"Call chainrule\.scipy\.linalg\.{name}, "):
            cr.grad(lambda a, name=name: getattr(linalg, name)(a).sum())(S)


# --- values that only eager mode knows ------------------------------------------------------------


def test_functions_of_real_matrices_may_be_complex() -> None:
    negative = np.diag([-1.0, 4.0]) + 0.1
    for name in ("sqrtm", "logm"):
        t = leaf(negative)
        out = getattr(cr.scipy.linalg, name)(t)
        np.testing.assert_allclose(out.detach().numpy(), getattr(linalg, name)(negative))
        assert cr.gradcheck(
            lambda t, name=name: abs(getattr(cr.scipy.linalg, name)(t)), t, fast_mode=True
        )
        with pytest.raises(cr.AutogradError, match="real matrix is complex, which a compiled"):
            cr.compile(lambda t, name=name: getattr(cr.scipy.linalg, name)(t))(t)


@pytest.mark.parametrize("name", ["lstsq", "orth", "null_space", "funm"])
def test_results_that_depend_on_values_raise_in_compiled_functions(name: str) -> None:
    more = {"lstsq": (B,), "funm": (np.exp,)}.get(name, ())
    with pytest.raises(cr.CompileError, match=f"linalg.{name}: the shape of the result"):
        cr.compile(lambda t: getattr(cr.scipy.linalg, name)(t, *more))(leaf(A))


# --- degenerate places ----------------------------------------------------------------------------


def test_factors_and_functions_are_smooth_where_eigenvalues_coincide() -> None:
    eye = np.eye(3)
    for name in ("sqrtm", "logm", "expm", "signm"):
        assert cr.gradcheck(getattr(cr.scipy.linalg, name), leaf(eye), fast_mode=True)
    assert cr.gradcheck(lambda t: cr.scipy.linalg.polar(t)[0], leaf(eye), fast_mode=True)
    t = leaf(eye)
    (g,) = cr.autograd_grad(cr.scipy.linalg.eigh(t + t.T)[1].sum(), t)
    assert not np.isfinite(g.numpy()).all()
    (g,) = cr.autograd_grad(cr.scipy.linalg.eigvalsh(t + t.T).sum(), t)
    np.testing.assert_allclose(g.numpy(), 2 * eye, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e3, 1e12])
def test_the_derivative_of_the_logarithm_at_all_scales(scale: float) -> None:
    """Beside that of exp, whose inverse it is."""
    x, e = S * scale, B * scale
    _, found = cr.jvp(cr.scipy.linalg.logm, (cr.tensor(x),), (cr.tensor(e),))
    back = linalg.expm_frechet(linalg.logm(x), found.numpy(), compute_expm=False)
    np.testing.assert_allclose(back, e, rtol=1e-9, atol=1e-11 * scale)


# --- beside other libraries -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["expm", "cholesky"])
def test_beside_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    theirs = getattr(jax.scipy.linalg, name)
    ours = getattr(cr.scipy.linalg, name)
    with jax.enable_x64(True):
        wanted = jax.grad(lambda a: (theirs(a @ a.T + jax.numpy.eye(3)) ** 2).sum())(A)
    found = cr.grad(lambda a: (ours(a @ a.T + np.eye(3)) ** 2).sum())(A)
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


# --- a wrong rule is noticed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "primitive"),
    [
        ("expm", "scipy_expm"), ("logm", "scipy_logm"), ("polar", "scipy_polar"),
        ("solve_banded", "scipy_solve_banded"), ("solve_toeplitz", "scipy_solve_toeplitz"),
        ("solve_discrete_are", "scipy_solve_are"), ("solve_sylvester", "scipy_solve_sylvester"),
    ],
)  # fmt: skip
def test_a_rule_wrong_by_a_ten_thousandth_is_noticed(
    row: str, primitive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(c for r in ROWS if r.primitive == row for c in cases_of(r) if c.dtype == "float64")
    checks.check_pairing(case)
    for plan in PRIMITIVES[primitive].plans():
        vjp = plan._compile()
        monkeypatch.setattr(
            plan, "vjp", lambda *a, f=vjp: tuple(None if g is None else g * 1.0001 for g in f(*a))
        )
    with pytest.raises(AssertionError):
        checks.check_pairing(case)


@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_compiled_jacobians_of_riccati_equations(name: str) -> None:
    def solution(a: Any) -> Any:  # the matrices of the inputs are constants of the program
        return getattr(cr.scipy.linalg, name)(a, np.eye(2), np.eye(2), np.eye(2))

    a = np.array([[0.3, -0.2], [0.5, 0.1]])
    compiled = cr.compile(cr.jacobian(solution), backend="numpy")
    np.testing.assert_allclose(compiled(a), cr.jacobian(solution)(a), 1e-10)
