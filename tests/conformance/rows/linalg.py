"""Rows of linear algebra.

What is defined only up to a sign or a phase is compared through what doesn't depend on it, and what
is defined for Hermitian matrices is a function of x + xᴴ or x xᴴ here.
"""

from __future__ import annotations

from typing import Any

import chainrule.linalg  # noqa: F401 - its primitives are registered when it is imported
from chainrule.autograd.tensor import make
from chainrule.backend import namespace
from conformance.row import COMPLEX, Row, Strided, constant, kink, row, situation
from conformance.situations import REDUCTION, recorded


def _adjoint(x: Any) -> Any:
    return x.mT.conj()


def _hermitian(x: Any) -> Any:
    return x + _adjoint(x)


def _spread(library: Any, x: Any) -> Any:
    """Return a matrix whose eigenvalues and singular values are far from each other and from 0."""
    m, n = x.shape[-2:]
    counts = library.cumsum(library.ones((m, n), dtype=x.dtype), 0)
    return x + 2 * library.eye(m, n, dtype=x.dtype) * counts


def _shifted(library: Any, x: Any) -> Any:
    """Return a matrix that is far from singular."""
    return x + 2 * library.eye(x.shape[-1], dtype=x.dtype)


_SQUARE = (
    situation("plain", (3, 3)),
    situation("larger", (5, 5)),
    situation("two", (2, 2)),
    situation("one", (1, 1)),
    situation("batch", (2, 3, 3)),
    situation("size-0", (0, 0)),
    situation("size-0-batch", (0, 2, 2)),
    situation("non-contiguous", Strided((3, 3))),
)

_TALL = (
    situation("plain", (4, 3)),
    situation("square", (3, 3)),
    situation("batch", (2, 3, 2)),
    situation("column", (3, 1)),
    situation("size-0-columns", (3, 0)),
    situation("size-0-batch", (0, 3, 2)),
    situation("non-contiguous", Strided((3, 2))),
)

_ANY = (*_TALL, situation("wide", (2, 4)), situation("size-0-rows", (0, 3)))

_SINGULAR = (
    situation("rank-1", [[1, 2], [2, 4]]),
    situation("rank-2", [[1, 2, 3], [4, 5, 6], [7, 8, 9]]),
    situation("rank-3", [[1, 2, 0, 1], [0, 1, 1, 3], [1, 3, 1, 4], [2, 0, 1, 1]]),
    situation("zeros", [[0, 0, 0], [0, 0, 0], [0, 0, 0]]),
)


def _with(situations: tuple[Any, ...], **settings: Any) -> tuple[Any, ...]:
    """Return situations with settings."""
    return tuple(
        situation(s.name, *s.inputs, dtypes=s.dtypes, peer=s.peer, **settings) for s in situations
    )


def _renamed(situations: tuple[Any, ...], suffix: str) -> tuple[Any, ...]:
    return tuple(
        situation(f"{s.name}-{suffix}", *s.inputs, dtypes=s.dtypes, peer=s.peer, **s.settings)
        for s in situations
    )


# --- systems --------------------------------------------------------------------------------------

_SOLVED = (
    situation("plain", (3, 3), (3, 2)),
    situation("batch", (2, 3, 3), (2, 3, 2)),
    situation("batch-of-one-side", (2, 2), (3, 2, 1)),
    situation("batch-broadcast", (2, 1, 2, 2), (3, 2, 2)),
    situation("size-0", (0, 0), (0, 2)),
    situation("size-0-right", (2, 2), (2, 0)),
    situation("size-0-batch", (0, 2, 2), (0, 2, 1)),
    situation("non-contiguous", Strided((3, 3)), Strided((3, 2))),
)


def _triangle(library: Any, x: Any, upper: bool, unit: bool) -> Any:
    eye = library.eye(x.shape[-1], dtype=x.dtype)
    kept = library.triu(x) if upper else library.tril(x)
    return kept * (1 - eye) + eye if unit else kept


def _solve_triangular(library: Any, a: Any, b: Any, upper: bool, unit: bool) -> Any:
    return library.linalg.solve(_triangle(library, _shifted(library, a), upper, unit), b)


def _under_triangle(library: Any, a: Any, b: Any, upper: bool, unit: bool) -> Any:
    return library.linalg.solve_triangular(_shifted(library, a), b, upper=upper, unitriangular=unit)


def _by_factors(library: Any, a: Any, b: Any, transposed: bool) -> Any:
    a = _shifted(library, a)
    factors = [make(part, None) for part in namespace(a._array).lu_factor(a._array)]
    a = a.mT if transposed else a
    return recorded("solve_factored")(library, a, b, *factors, transposed=transposed)


def _transposed_solution(library: Any, a: Any, b: Any, transposed: bool) -> Any:
    a = _shifted(library, a)
    return library.linalg.solve(a.mT if transposed else a, b)


def _pinv(library: Any, x: Any, rtol: float, atol: float, hermitian: bool) -> Any:
    x = _spread(library, x)
    return library.linalg.pinv(_hermitian(x) if hermitian else x, hermitian=hermitian)


SYSTEMS = (
    row(
        "inv",
        _with(_SQUARE, lenient=False),
        call=lambda library, x, lenient: library.linalg.inv(_shifted(library, x)),
    ),
    row(
        "solve",
        _SOLVED,
        call=lambda library, a, b: library.linalg.solve(_shifted(library, a), b),
    ),
    row(
        "solve_triangular",
        (
            *_with(_SOLVED, upper=True, unit=False),
            *_renamed(_with(_SOLVED[:3], upper=False, unit=False), "lower"),
            *_renamed(_with(_SOLVED[:2], upper=False, unit=True), "unit"),
        ),
        cr=_under_triangle,
        np=_solve_triangular,
        torch=_under_triangle,
    ),
    row(
        "solve_factored",
        (
            *_with((*_SOLVED[::2][:3], *_SOLVED[5::2]), transposed=False),
            *_renamed(_with((_SOLVED[0], _SOLVED[2]), transposed=True), "transposed"),
        ),
        cr=_by_factors,
        np=_transposed_solution,
        torch=_transposed_solution,
    ),
    row(
        "hermitian",
        _SQUARE,
        call=lambda library, x: _hermitian(x),
        cr=lambda library, x: recorded("hermitian")(library, _hermitian(x)),
    ),
    row(
        "pinv",
        (
            *_with(_ANY, rtol=1e-6, atol=0.0, hermitian=False),
            situation("hermitian", (3, 3), rtol=1e-6, atol=0.0, hermitian=True),
        ),
        call=_pinv,
    ),
)

# --- functions of square matrices -----------------------------------------------------------------


def _cofactors(library: Any, x: Any) -> Any:
    x = _shifted(library, x)
    return library.linalg.det(x)[..., None, None] * library.linalg.inv(x).mT


def _exponential(np: Any, x: Any) -> Any:
    values, vectors = np.linalg.eig(x)
    result = (vectors * np.exp(values)[..., None, :]) @ np.linalg.inv(vectors)
    return result.astype(x.dtype) if x.dtype.kind == "c" else result.real.astype(x.dtype)


FUNCTIONS = (
    row(
        "det",
        (*_SQUARE, *[situation(s.name, *s.inputs, peer=False) for s in _SINGULAR]),
        call=lambda library, x: library.linalg.det(x),
    ),
    row(
        "cofactor",
        _SQUARE,
        cr=lambda cr, x: recorded("cofactor")(cr, _shifted(cr, x)),
        np=_cofactors,
        torch=_cofactors,
    ),
    row(
        "slogdet",
        _SQUARE,
        call=lambda library, x: tuple(library.linalg.slogdet(_shifted(library, x))),
    ),
    row(
        "matrix_exp",
        (*_SQUARE, situation("large", [[-3.0, 9.0], [2.0, 11.0]])),
        cr=lambda cr, x: cr.linalg.matrix_exp(x),
        np=_exponential,
        torch=lambda torch, x: torch.linalg.matrix_exp(x),
    ),
)

# --- factors --------------------------------------------------------------------------------------

_POSITIVE = (
    situation("plain", [[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]]),
    situation("complex", [[3, 1 - 1j], [1 + 1j, 4]], dtypes=COMPLEX),
    situation("batch", [[[2, 1], [1, 3]], [[5, -1], [-1, 1]]]),
    situation("one", (1, 1)),
    situation("size-0", (0, 0)),
    situation("size-0-batch", (0, 2, 2)),
    situation("non-contiguous", Strided((3, 1, 1))),
)


def _cholesky(library: Any, x: Any, upper: bool) -> Any:
    return library.linalg.cholesky(_shifted(library, x @ _adjoint(x)), upper=upper)


def _squares(x: Any) -> Any:
    return (x * x.conj()).real


def _projector(q: Any) -> Any:
    return q @ _adjoint(q)


def _qr(library: Any, x: Any, complete: bool) -> Any:
    x = _spread(library, x)
    if not complete:
        return tuple(library.linalg.qr(x))
    q, r = library.linalg.qr(x, mode="complete")
    n = x.shape[-1]
    return q[..., :n], _projector(q[..., n:]), r


def _lu(library: Any, x: Any) -> Any:
    return tuple(library.linalg.lu(_spread(library, x))[1:])


def _numpy_lu(np: Any, x: Any) -> Any:
    """Return the factors by elimination, column by column; no rows are exchanged."""
    upper = _spread(np, x)
    lower = np.zeros_like(upper) + np.eye(x.shape[-1], dtype=x.dtype)
    for j in range(x.shape[-1]):
        lower[..., j + 1 :, j] = upper[..., j + 1 :, j] / upper[..., j, j, None]
        upper = (
            upper
            - (lower[..., :, j, None] * (np.arange(x.shape[-1]) > j)[:, None])
            * upper[..., j, None, :]
        )
    return lower, np.triu(upper)


def _eigh(library: Any, x: Any, upper: bool) -> Any:
    values, vectors = library.linalg.eigh(
        _hermitian(_spread(library, x)), UPLO="U" if upper else "L"
    )
    return values, _squares(vectors)


def _eig(library: Any, x: Any) -> Any:
    values, vectors = library.linalg.eig(_spread(library, x))
    return values, _squares(vectors)


def _numpy_eig(np: Any, x: Any) -> Any:
    values, sizes = _eig(np, x)
    return values.astype(np.result_type(x.dtype, np.complex64)), sizes


def _svd(library: Any, x: Any, full: bool) -> Any:
    u, s, vh = library.linalg.svd(_spread(library, x), full_matrices=full)
    k = s.shape[-1]
    thin_u, thin_v = u[..., :k], vh[..., :k, :]
    parts = (_squares(thin_u), s, _squares(thin_v), thin_u[..., :1] @ thin_v[..., :1, :])
    if full:
        return *parts, _projector(u[..., k:]), _projector(_adjoint(vh[..., k:, :]))
    return parts


FACTORS = (
    row(
        "cholesky",
        (
            *_with(_POSITIVE, upper=False),
            *_renamed(_with(_POSITIVE[:2], upper=True), "upper"),
        ),
        (0.5, 2),
        call=_cholesky,
    ),
    row(
        "qr",
        (
            *_with(_TALL, complete=False),
            # PyTorch has no derivative here.
            situation("complete", (4, 2), complete=True, peer=False),
            situation("complete-batch", (2, 3, 1), complete=True, peer=False),
        ),
        call=_qr,
    ),
    row("lu", _SQUARE, call=_lu, np=_numpy_lu),
    row(
        "eigh",
        (
            *_with(_SQUARE, upper=False),
            *_renamed(_with(_SQUARE[:1], upper=True), "upper"),
        ),
        call=_eigh,
    ),
    row("eig", (_SQUARE[0], *_SQUARE[2:]), (-0.3, 0.3), call=_eig, np=_numpy_eig),
    row(
        "svd",
        (
            *_with(_ANY, full=False),
            # PyTorch leaves out what flows through the columns that are added.
            situation("full", (4, 2), full=True, peer=False),
            situation("full-wide", (2, 3), full=True, peer=False),
            situation("full-square", (3, 3), full=True),
        ),
        call=_svd,
    ),
)

CONSTANTS = (
    constant(
        "check_phases",
        (
            situation("plain", (2,), (2, 2), operation="eigh"),
            situation("batch", (3, 2), (3, 2, 2), operation="svd"),
            situation("size-0", (0,), (0, 0), operation="eig"),
        ),
        (-0.01, 0.01),
        cr=recorded("check_phases"),
        np=lambda np, phases, gradient, operation: np.asarray(True),
        torch=None,
    ),
)

# --- norms ----------------------------------------------------------------------------------------


def _p_norm(library: Any, x: Any, p: float, axis: Any, keepdims: bool) -> Any:
    return library.linalg.vector_norm(x, ord=p, axis=axis, keepdims=keepdims)


NORMS = (
    row(
        "p_norm",
        (
            *[
                situation(s.name, *s.inputs, p=2.0, **s.settings)
                for s in REDUCTION
                if s.name != "0-d"
            ],
            situation("0-d", [-1.5], p=3.0, axis=None, keepdims=False),
            situation("cubes", (2, 3), p=3.0, axis=(0,), keepdims=False),
            situation("cubes-everything", (2, 3), p=3.0, axis=None, keepdims=True),
            situation("roots", (3,), p=0.5, axis=None, keepdims=False),
            situation("reciprocals", (2, 3), p=-1.0, axis=(1,), keepdims=False),
            kink("zeros", [0, 0], p=2.0, axis=None, keepdims=False),
            kink("zeros-and-others", [[0, 2, 3], [0, 0, 0]], p=3.0, axis=(1,), keepdims=False),
            kink("size-0", (0, 3), p=3.0, axis=(0,), keepdims=False),
        ),
        (0.3, 1),
        call=_p_norm,
        torch=lambda torch, x, p, axis, keepdims: torch.linalg.vector_norm(x, p, axis, keepdims),
    ),
)

ROWS: tuple[Row, ...] = (*SYSTEMS, *FUNCTIONS, *FACTORS, *NORMS)
