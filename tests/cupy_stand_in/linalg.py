"""Linear algebra of the stand-in: solvers that fail in silence unless they are told to raise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cupy_stand_in.runtime import transfers

LEFT_OVER = 7.0
"""What stands in memory that a failed solver has not written."""


class _Settings(threading.local):
    linalg = "ignore"


_settings = _Settings()


def geterr() -> dict[str, Any]:
    """`cupyx.geterr`."""
    return dict.fromkeys(("divide", "over", "under", "invalid")) | {"linalg": _settings.linalg}


def seterr(*, linalg: str | None = None, **others: Any) -> dict[str, Any]:
    """`cupyx.seterr`."""
    before = geterr()
    if any(value is not None for value in others.values()):
        raise NotImplementedError
    if linalg not in (None, "ignore", "raise"):
        raise NotImplementedError
    _settings.linalg = linalg or _settings.linalg
    return before


@contextmanager
def errstate(**settings: Any) -> Iterator[None]:
    """`cupyx.errstate`."""
    before = seterr(**settings)
    try:
        yield
    finally:
        seterr(**before)


Solver = Callable[..., Any]


def _reporting(function: Solver, left_over: Callable[[Any, Any], Any]) -> Solver:
    """Return a solver that looks at its error codes, and so waits, where `errstate` says "raise".

    Otherwise it returns what `left_over` makes of a matrix and of the result for the unit matrix.
    """

    def solver(x: Any, *rest: Any, **settings: Any) -> Any:
        if _settings.linalg == "raise":
            transfers.record("to_host")
        try:
            return function(x, *rest, **settings)
        except np.linalg.LinAlgError as error:
            if _settings.linalg == "raise" or "square" in str(error) or "dimension" in str(error):
                raise
        if x.ndim > 2:
            stacks = [part for part in rest if isinstance(part, np.ndarray)]
            parts = [
                _alone(function, left_over, *matrices, *rest[len(stacks) :], **settings)
                for matrices in zip(x, *stacks, strict=True)
            ]
            columns = [np.stack(column) for column in zip(*parts, strict=True)]
            return columns[0] if len(columns) == 1 else tuple(columns)
        found = _alone(function, left_over, x, *rest, **settings)
        return found[0] if len(found) == 1 else found

    return solver


def _alone(function: Solver, left_over: Any, x: Any, *rest: Any, **settings: Any) -> Any:
    """Return the results for one matrix, or for each of a stack, in a tuple."""
    if x.ndim > 2:
        found = _reporting(function, left_over)(x, *rest, **settings)
        return found if isinstance(found, tuple) else (found,)
    try:
        found = function(x, *rest, **settings)
    except np.linalg.LinAlgError:
        found = function(np.eye(*x.shape, dtype=x.dtype), *rest, **settings)
        parts = found if isinstance(found, tuple) else (found,)
        return tuple(left_over(x, part) for part in parts)
    return tuple(found) if isinstance(found, tuple) else (found,)


def _nan(x: Any, result: Any) -> Any:
    return np.full_like(result, np.nan)


def _solve(a: Any, b: Any) -> Any:
    """Solve; the axes in front are not broadcast."""
    if b.ndim != 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
    return np.linalg.solve(a, b)


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = False,
) -> Any:
    """`cupyx.scipy.linalg.solve_triangular`: it computes in the dtype of `a`."""
    if a.shape[:-2] != b.shape[: a.ndim - 2]:
        raise ValueError("incompatible batch count")
    triangle = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        triangle = triangle.copy()
        triangle[..., range(a.shape[-1]), range(a.shape[-1])] = 1
    real = a.dtype.kind != "c" and b.dtype.kind == "c"
    right = (b.real if real else b).astype(np.promote_types(a.dtype, "f"))
    try:
        return np.linalg.solve(triangle, right)
    except np.linalg.LinAlgError:  # a zero on a diagonal: division by zero, as BLAS computes it
        return np.full_like(right, np.nan)


SOLVERS = {
    "inv": _reporting(np.linalg.inv, lambda x, result: np.full_like(result, LEFT_OVER)),
    "solve": _reporting(_solve, _nan),
    "cholesky": _reporting(np.linalg.cholesky, lambda x, _: np.tril(x)),
    **{
        name: _reporting(getattr(np.linalg, name), _nan)
        for name in ("svd", "eigh", "eigvalsh", "eig", "eigvals", "qr", "pinv", "lstsq")
    },
}
"""The functions that ask cuSOLVER and cuBLAS, by name."""
