"""Rows of the functions of `scipy.linalg` that differentiate, by SciPy's name.

A call prepares its arguments, so that any numbers make matrices for which the function is smooth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conformance.row import COMPLEX, FIELD, REAL, Input, Row, row, situation

linalg = pytest.importorskip("scipy.linalg")

Prepare = Callable[[Any], Any]


def as_is(a: Any) -> Any:
    return a


def regular(a: Any) -> Any:
    """Return a matrix that is far from singular, with different eigenvalues."""
    return a + 3 * np.diag(np.arange(1, a.shape[-1] + 1)).astype(a.dtype)


def small(a: Any) -> Any:
    return a / 4


def near_one(a: Any) -> Any:
    return a / 8 + np.eye(a.shape[-1], dtype=a.dtype)


def positive(a: Any) -> Any:
    """Return a Hermitian positive-definite matrix with different eigenvalues."""
    return hermitian(a) + 3 * np.diag(np.arange(2, a.shape[-1] + 2)).astype(a.dtype)


def hermitian(a: Any) -> Any:
    return a + a.swapaxes(-1, -2).conj()


def signed(a: Any) -> Any:
    """Return a matrix with eigenvalues on both sides of the imaginary axis."""
    return a + np.diag([3.0, -3.0, 5.0]).astype(a.dtype)


def dominant(c: Any) -> Any:
    """Return a vector whose first element outweighs the others."""
    return c + np.eye(1, c.shape[-1], dtype=c.dtype)[0] * 5


def bands(diagonal: int) -> Prepare:
    """Return the function that makes one band outweigh the others."""

    def prepare(ab: Any) -> Any:
        return ab + np.eye(ab.shape[0], dtype=ab.dtype)[:, diagonal, None] * 5

    return prepare


def real_bands(diagonal: int) -> Prepare:
    """Return the same for a Hermitian matrix, whose diagonal is real."""

    def prepare(ab: Any) -> Any:
        rest = np.ones((*ab.shape[:1], 1), ab.real.dtype)
        rest[diagonal] = 0
        top = np.eye(ab.shape[0], dtype=ab.dtype)[:, diagonal, None] * 4
        return ab * rest + (ab.real * (1 - rest) + top if ab.dtype.kind == "f" else top)

    return prepare


class Call:
    """A function of SciPy or ours, with prepared arguments and chosen results."""

    def __init__(self, name: str, prepare: tuple[Prepare, ...], settings: dict[str, Any]) -> None:
        self.name, self.prepare = name, prepare
        self.pick = settings.pop("pick", None)
        self.pack = settings.pop("pack", lambda *arrays: arrays)
        self.settings = settings

    def __call__(self, library: Any, *arrays: Any) -> Any:
        given = [self.prepare[min(i, len(self.prepare) - 1)](a) for i, a in enumerate(arrays)]
        module = linalg if library is np else library.scipy.linalg
        found = getattr(module, self.name)(*self.pack(*given), **self.settings)
        found = found if self.pick is None else self.pick(found)
        if library is not np:
            return found
        narrow = arrays[0].dtype.char in "fF"
        parts = [
            _narrow(part) if narrow else np.asarray(part)
            for part in (found if isinstance(found, tuple) else (found,))
        ]
        return tuple(parts) if isinstance(found, tuple) else parts[0]


def _narrow(a: Any) -> Any:
    """Return SciPy's result in single precision, where it computes in double precision."""
    array = np.asarray(a)
    return array.astype({"d": "f", "D": "F"}.get(array.dtype.char, array.dtype))


def both(
    name: str,
    *inputs: Input,
    prepare: Prepare | tuple[Prepare, ...] = as_is,
    dtypes: tuple[str, ...] = FIELD,
    label: str = "",
    **settings: Any,
) -> Row:
    """Return the row of one function with one set of settings."""
    prepares = prepare if isinstance(prepare, tuple) else (prepare,)
    call = Call(name, prepares, settings)
    return row(
        f"{name}{label and ' '}{label}",
        (situation("plain", *inputs),),
        dtypes=dtypes,
        call=call,
        torch=None,
    )


def first(found: Any) -> Any:
    return found[0]


def sizes(found: Any) -> Any:
    """Return what doesn't depend on the free phases of eigenvectors or singular vectors."""
    return tuple([part if part.ndim == 1 else abs(part) for part in found])


def symmetric(values: Any) -> Any:
    """Return what doesn't depend on the order of eigenvalues."""
    return (values * values).sum(), (1 / values).sum()


M, N, B = (3, 3), (3, 2), (2, 3)

SYSTEMS = (
    both("solve", M, N, prepare=(regular, as_is)),
    both("solve", M, (3,), prepare=(regular, as_is), label="of a vector"),
    both("solve", M, N, prepare=(positive, as_is), label="positive", assume_a="pos"),
    both("solve", M, N, prepare=(regular, as_is), label="symmetric", assume_a="sym"),
    both("solve", M, N, prepare=(positive, as_is), label="hermitian", assume_a="her", lower=True),
    both("solve", M, N, prepare=(regular, as_is), label="tridiagonal", assume_a="tridiagonal"),
    both("solve", M, N, prepare=(regular, as_is), label="triangular", assume_a="lower triangular"),
    both("solve", M, N, prepare=(regular, as_is), label="diagonal", assume_a="diagonal"),
    both("solve", M, N, prepare=(regular, as_is), dtypes=REAL, label="transposed", transposed=True),
    both("inv", M, prepare=regular),
    both("inv", M, prepare=positive, label="positive", assume_a="pos"),
    both("det", M, prepare=regular),
    both("solve_triangular", M, N, prepare=(regular, as_is)),
    both("solve_triangular", M, N, prepare=(regular, as_is), label="T", trans=1, lower=True),
    both("solve_triangular", M, (3,), prepare=(regular, as_is), label="C", trans="C"),
    both("lstsq", (4, 3), (4, 2), pick=lambda found: (found[0], abs(found[1]))),
    both("pinv", (4, 3)),
    both("pinvh", M, prepare=positive),
    *[both("norm", N, label=str(order), ord=order) for order in (None, 2, 1, "nuc")],
    both("cho_solve", M, N, pack=lambda a, b: ((a, False), b), prepare=(regular, as_is)),
    both(
        "lu_solve", M, N, pack=lambda a, b: ((a, np.array([1, 1, 2])), b), prepare=(regular, as_is)
    ),
)

STRUCTURED = (
    both("solve_banded", (4, 5), (5, 2), prepare=(bands(2), as_is), pack=lambda *a: ((1, 2), *a)),
    both("solve_banded", (4, 5), (5,), prepare=(bands(1), as_is), label="of a vector",
         pack=lambda *a: ((2, 1), *a)),
    both("solveh_banded", (2, 4), (4, 2), prepare=(real_bands(1), as_is)),
    both("solveh_banded", (3, 4), (4,), prepare=(real_bands(0), as_is), label="lower", lower=True),
    both("cholesky_banded", (2, 4), prepare=real_bands(1)),
    both("cholesky_banded", (2, 4), prepare=real_bands(0), label="lower", lower=True),
    both("cho_solve_banded", (2, 4), (4, 2), prepare=(bands(1), as_is),
         pack=lambda a, b: ((a, False), b)),
    both("cho_solve_banded", (2, 4), (4,), prepare=(bands(0), as_is), label="lower",
         pack=lambda a, b: ((a, True), b)),
    both("solve_toeplitz", (4,), (4,), (4, 2), prepare=(dominant, as_is),
         pack=lambda c, r, b: ((c, r), b)),
    both("solve_toeplitz", (4,), (4,), prepare=(dominant, as_is), label="of a vector"),
    both("matmul_toeplitz", (4,), (3,), (3, 2), pack=lambda c, r, b: ((c, r), b)),
    both("matmul_toeplitz", (4,), (4,), label="of a vector"),
    both("solve_circulant", (4,), (4, 2), prepare=(dominant, as_is)),
    both("toeplitz", (3,)),
    both("toeplitz", (3,), (2,), label="of two"),
    both("hankel", (3,), (2,)),
    both("circulant", (3,)),
    both("convolution_matrix", (3,), n=4, mode="same"),
    both("leslie", (3,), (2,)),
    both("diagsvd", (2,), M=2, N=3),
    both("companion", (4,), prepare=dominant),
    both("fiedler", [0.2, 1.5, -0.7], dtypes=REAL),
    both("fiedler_companion", (5,), prepare=dominant),
    both("block_diag", M, (2,), B),
    both("khatri_rao", N, B, pack=lambda a, b: (a, b[:, :2])),
)  # fmt: skip

DECOMPOSITIONS = (
    both("cholesky", M, prepare=positive),
    both("cholesky", M, prepare=positive, label="lower", lower=True),
    both("cho_factor", M, prepare=positive, pick=lambda found: np.triu(found[0])),
    both("lu", (4, 3), prepare=lambda a: a + np.eye(4, 3, dtype=a.dtype) * 3),
    both("lu", M, label="permuted", permute_l=True),
    both("lu_factor", M, prepare=regular, pick=first),
    both("qr", M, prepare=regular),
    both("qr", (4, 2), label="economic", mode="economic"),
    both("qr", M, prepare=regular, label="pivoting", pivoting=True, pick=lambda found: found[:2]),
    both("rq", M, prepare=regular),
    both("qr_multiply", M, N, prepare=(regular, as_is), mode="left"),
    both("polar", M, prepare=regular),
    both("polar", (4, 2), label="tall"),
    both("polar", B, label="wide, left", side="left"),
    both("orthogonal_procrustes", (4, 2), (4, 2)),
    both("svd", (4, 2), dtypes=REAL, full_matrices=False),
    both(
        "svd",
        B,
        prepare=lambda a: a * np.array([[1], [5]], a.dtype),
        dtypes=COMPLEX,
        label="complex",
        pick=sizes,
        full_matrices=False,
    ),
    both("svdvals", (4, 2)),
    both("orth", (4, 2), dtypes=REAL),
    both("subspace_angles", (4, 2), (4, 2), dtypes=REAL),
)

EIGENVALUES = (
    both("eigh", M, prepare=positive, pick=sizes),
    both("eigh", M, prepare=positive, label="subset", subset_by_index=(1, 2),
         pick=sizes),
    both("eigh", M, M, prepare=(hermitian, positive), dtypes=REAL, label="of a pair"),
    both("eigh", M, M, prepare=(hermitian, positive), dtypes=REAL, label="type 2", type=2),
    both("eigh", M, M, prepare=(hermitian, positive), dtypes=REAL, label="type 3", type=3,
         lower=False),
    both("eigvalsh", M, M, prepare=(hermitian, positive)),
    both("eigvals", M, prepare=regular, pick=symmetric),
    both("eigvals", M, M, prepare=(regular, positive), label="of a pair", pick=symmetric),
    both("eig", M, prepare=regular, dtypes=("float64", "complex128"), pick=sizes),
    both("eig", M, prepare=regular, dtypes=("float64",), label="left", left=True, pick=sizes),
    both("eig_banded", (2, 4), prepare=lambda a: a + np.arange(4).astype(a.dtype), dtypes=REAL),
    both("eigvals_banded", (2, 4), prepare=real_bands(0), lower=True),
    both("eigh_tridiagonal", (3,), (2,), dtypes=REAL, pick=sizes),
    both("eigvalsh_tridiagonal", (3,), (2,), dtypes=REAL),
)  # fmt: skip

FUNCTIONS = (
    both("expm", M),
    both("expm_frechet", M, M),
    both("logm", M, prepare=regular),
    both("sqrtm", M, prepare=regular),
    both("signm", M, prepare=signed),
    both("fractional_matrix_power", M, prepare=regular, t=0.3),
    both("fractional_matrix_power", M, prepare=regular, label="whole", t=-2),
    *[both(name, M) for name in ("cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")],
    both("funm", M, prepare=regular, func=np.exp),
)

EQUATIONS = (
    both("solve_sylvester", M, (2, 2), N, prepare=(regular, regular, as_is)),
    both("solve_continuous_lyapunov", M, M, prepare=(regular, as_is)),
    both("solve_discrete_lyapunov", M, M, prepare=(small, as_is)),
    both("solve_discrete_lyapunov", M, M, prepare=(small, as_is), label="bilinear",
         method="bilinear"),
    *[
        both(name, M, N, M, (2, 2), prepare=(as_is, as_is, positive, positive))
        for name in ("solve_continuous_are", "solve_discrete_are")
    ],
    *[
        both(name, M, N, M, (2, 2), M, N, label="generalised", balanced=False,
             prepare=(as_is, as_is, positive, positive, near_one, small))
        for name in ("solve_continuous_are", "solve_discrete_are")
    ],  # balanced, SciPy 1.17 returns wrong solutions of the continuous one with both e and s
)  # fmt: skip

ROWS = (*SYSTEMS, *STRUCTURED, *DECOMPOSITIONS, *EIGENVALUES, *FUNCTIONS, *EQUATIONS)
"""Functions of `scipy.linalg` with a derivative."""
