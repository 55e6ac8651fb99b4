"""Triangular systems, LU and Cholesky factors by LAPACK, with less work than in `np.linalg`.

The routines are those of the OpenBLAS that NumPy is linked with, or else SciPy's. LAPACK's
matrices are in Fortran order: a matrix in C order is its transpose. Right sides in C order are rows
of a transposed system, so nothing is transposed in memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import Any, Protocol

import numpy as np

from chainrule.blas import openblas
from chainrule.kernels import lu, triangular

Array = Any

_TYPES = {"f": "s", "d": "d", "F": "c", "D": "z"}
"""LAPACK's prefixes of routine names by NumPy's type character."""

_LOOP_MIN_ROWS = 24
"""Number of rows from which calling LAPACK for each matrix of a stack pays."""


class Routines(Protocol):
    """LAPACK routines of one dtype."""

    def trsm(self, a: Array, x: Array, *, upper: bool, transposed: bool, unit: bool) -> None:
        """Overwrite `x`, in C order, with y of op(a) y = x; `a` is in Fortran order."""

    def getrf(self, a: Array) -> tuple[Array, int]:
        """Overwrite `a`, in C order, with the factors of aᵀ in Fortran order.

        Returns the exchanges of rows of aᵀ, counted from 0, and LAPACK's `info`.
        """

    def potrf(self, a: Array, *, upper: bool) -> int:
        """Overwrite one triangle of `a`, in C order, with its Cholesky factor, the other with 0.

        Returns LAPACK's `info`.
        """


# --- routines of NumPy's OpenBLAS -----------------------------------------------------------------

_byref = ctypes.byref
_from_buffer: Any = ctypes.c_char.from_buffer
_LETTERS = {letter: _byref(ctypes.c_char(letter.encode())) for letter in "RULTN"}
_RIGHT, _UPPER, _LOWER, _TRANSPOSED, _PLAIN = _LETTERS.values()
_UNIT = _UPPER


class _OpenBLASRoutines:
    """Routines that are called by their addresses."""

    def __init__(self, library: openblas.OpenBLAS, prefix: str, char: str) -> None:
        self._trsm = library.routine(f"{prefix}trsm", 11)
        self._trsv = library.routine(f"{prefix}trsv", 8)
        self._getrf = library.routine(f"{prefix}getrf", 6)
        self._potrf = library.routine(f"{prefix}potrf", 5)
        self._laset = library.routine(f"{prefix}laset", 7)
        self._integer = integer = library.integer
        self._reference = lru_cache(1024)(lambda n: _byref(integer(n)))
        self._one, self._zero = (_byref(_from_buffer(np.full(1, x, char))) for x in (1, 0))
        self._pivot_dtype = np.dtype(f"i{ctypes.sizeof(integer)}")

    def trsm(self, a: Array, x: Array, *, upper: bool, transposed: bool, unit: bool) -> None:
        reference, (n, columns) = self._reference, x.shape
        uplo, diag = _UPPER if upper else _LOWER, _UNIT if unit else _PLAIN
        leading, order = reference(max(a.strides[1] // a.itemsize, 1)), reference(n)
        address, target = a.ctypes.data, _byref(_from_buffer(x))
        if columns == 1:
            trans = _TRANSPOSED if transposed else _PLAIN
            self._trsv(uplo, trans, diag, order, address, leading, target, reference(1))
            return
        trans = _PLAIN if transposed else _TRANSPOSED  # as yᵀ op(a)ᵀ = xᵀ, in Fortran order
        count = reference(columns)
        self._trsm(
            *(_RIGHT, uplo, trans, diag, count, order, self._one),
            *(address, leading, target, count),
        )

    def getrf(self, a: Array) -> tuple[Array, int]:
        (columns, rows), info = map(self._reference, a.shape), self._integer(0)
        pivots = np.empty(min(a.shape), self._pivot_dtype)
        target = _byref(_from_buffer(pivots))
        self._getrf(rows, columns, _byref(_from_buffer(a)), rows, target, _byref(info))
        pivots -= 1
        return pivots, info.value

    def potrf(self, a: Array, *, upper: bool) -> int:
        reference, n, info = self._reference, len(a), self._integer(0)
        own, other = (_LOWER, _UPPER) if upper else (_UPPER, _LOWER)  # of aᵀ, in Fortran order
        order = reference(n)
        self._potrf(own, order, _byref(_from_buffer(a)), order, _byref(info))
        if n > 1:
            rest, beside = reference(n - 1), _byref(_from_buffer(a), a.strides[not upper])
            self._laset(other, rest, rest, self._zero, self._zero, beside, order)
        found: int = info.value
        return found


# --- routines of SciPy ----------------------------------------------------------------------------


class _SciPyRoutines:
    """Routines that SciPy wraps."""

    def __init__(self, prefix: str) -> None:
        self._trsm = getattr(import_module("scipy.linalg.blas"), f"{prefix}trsm")
        lapack = import_module("scipy.linalg.lapack")
        self._getrf = getattr(lapack, f"{prefix}getrf")
        self._potrf = getattr(lapack, f"{prefix}potrf")

    def trsm(self, a: Array, x: Array, *, upper: bool, transposed: bool, unit: bool) -> None:
        # The arguments are `side` (right), `lower`, `trans_a` and `diag`.
        self._trsm(1, a, x.T, 1, not upper, not transposed, unit, overwrite_b=1)

    def getrf(self, a: Array) -> tuple[Array, int]:
        _, pivots, info = self._getrf(a.T, overwrite_a=1)
        return pivots, info

    def potrf(self, a: Array, *, upper: bool) -> int:
        # The arguments are `lower` (of aᵀ), `clean` and `overwrite_a`.
        info: int = self._potrf(a.T, upper, 1, 1)[1]
        return info


@cache
def routines(char: str) -> Routines | None:
    """Return the routines for a type character; None for other types, or without LAPACK."""
    prefix = _TYPES.get(char)
    if prefix is None:
        return None
    library = openblas.loaded()
    if library is not None:
        try:
            return _OpenBLASRoutines(library, prefix, char)
        except AttributeError:  # a build without LAPACK
            pass
    return _SciPyRoutines(prefix) if find_spec("scipy") is not None else None


# --- triangular systems ---------------------------------------------------------------------------


def solve_triangular(a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
    """Return x with a x = b, in C order, reading one triangle of `a`.

    Raises
    ------
    LinAlgError
        If there is a zero on a diagonal, as `np.linalg.solve` does.
    """
    call = routines(a.dtype.char) if a.dtype == b.dtype and a.dtype.isnative else None
    n, k = b.shape[-2:]
    if call is None or n == 0 or k == 0 or not a.size or not b.size:
        return triangular.solve_triangular(a, b, upper=upper, unit=unit)
    if a.ndim == b.ndim == 2:
        if not unit:
            _check_diagonal(a)
        x = np.array(b, order="C")
        _substitute(call, a, x, upper, unit)
        return x
    if a.size == n * n and b.ndim >= a.ndim:  # one matrix: one system with all right sides
        sides = np.moveaxis(b, -2, 0)
        found = solve_triangular(
            a.reshape(n, n), sides.reshape(n, b.size // n), upper=upper, unit=unit
        )
        return np.ascontiguousarray(np.moveaxis(found.reshape(sides.shape), 0, -2))
    if n < _LOOP_MIN_ROWS:
        return triangular.solve_triangular(a, b, upper=upper, unit=unit)
    if not unit:
        _check_diagonal(a)
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.empty((*stack, n, k), b.dtype)
    x[...] = b
    for matrix, columns in zip(_each(a, stack), _each(x, stack), strict=True):
        _substitute(call, matrix, columns, upper, unit)
    return x


# --- Cholesky factors -----------------------------------------------------------------------------

MIN_CHOLESKY_ROWS = 48
"""Number of rows from which calling LAPACK for a Cholesky factor is faster than NumPy.

Not for lower factors in double precision: OpenBLAS computes their transpose slower by a fifth.
"""


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Return the Cholesky factors of matrices, as `np.linalg.cholesky` does, without its copies."""
    n = x.shape[-1] if x.ndim >= 2 else 0
    call = routines(x.dtype.char) if x.size and x.dtype.isnative else None
    is_faster = n >= MIN_CHOLESKY_ROWS and (upper or x.dtype.char in "fF")
    if call is None or not is_faster or x.shape[-2] != n:
        return np.linalg.cholesky(x, upper=upper)
    factors = np.array(x, order="C")
    for index in np.ndindex(x.shape[:-2]):
        if call.potrf(factors[index], upper=upper):
            raise np.linalg.LinAlgError("Matrix is not positive definite")
    return factors


# --- LU factors -----------------------------------------------------------------------------------

_MAX_MATRICES_PER_COLUMN = 4
"""Number of small matrices for each column up to which calling LAPACK for each of them pays.

The other way eliminates one column of all matrices at a time.
"""

MIN_FACTORED_ROWS = 96
"""Number of rows from which keeping the factors of a matrix pays, in place of factorising again."""


def pays(shape: tuple[int, ...], dtype: Any) -> bool:
    """Return whether a matrix of this type is worth keeping its factors, and LAPACK has them."""
    return (
        len(shape) == 2
        and shape[0] == shape[1] >= MIN_FACTORED_ROWS
        and dtype.isnative
        and routines(dtype.char) is not None
    )


def factorize(x: Array, *, pivot: bool) -> tuple[Array, Array]:
    """Return the factors and the exchanges of rows that `kernels.lu.factorize` describes."""
    call = routines(x.dtype.char) if pivot and x.size and x.dtype.isnative else None
    *stack, m, n = x.shape
    k = min(m, n)
    if call is None or (k < _LOOP_MIN_ROWS and prod(stack) > _MAX_MATRICES_PER_COLUMN * k):
        return lu.factorize(np, x, pivot=pivot)
    packed = np.array(x.swapaxes(-1, -2), order="C")
    pivots = np.empty((*stack, k), np.int64)
    for index in np.ndindex(*stack):
        pivots[index], _ = call.getrf(packed[index])
    return packed.swapaxes(-1, -2), pivots


def lu_factor(x: Array) -> tuple[Array, Array]:
    """Return the factors of a matrix that `chainrule.kernels.lu` describes."""
    call = routines(x.dtype.char) if x.size and x.dtype.isnative else None
    if call is None:
        found: tuple[Array, Array] = lu.lu_factor(np, x)
        return found
    packed = np.array(x, order="C")
    pivots, _ = call.getrf(packed)
    return packed, lu.row_permutation(np, pivots, len(x))


# --- helpers --------------------------------------------------------------------------------------


def _check_diagonal(a: Array) -> None:
    if 0 in a.diagonal().tolist() if a.ndim == 2 else not np.diagonal(a, 0, -2, -1).all():
        raise np.linalg.LinAlgError("Singular matrix")


def _each(x: Array, stack: tuple[int, ...]) -> Iterator[Array]:
    """Yield the matrices of a stack, broadcast to the shape of another."""
    matrices = np.broadcast_to(x, (*stack, *x.shape[-2:])) if x.shape[:-2] != stack else x
    for index in np.ndindex(stack):
        yield matrices[index]


def _substitute(call: Routines, a: Array, x: Array, upper: bool, unit: bool) -> None:
    """Overwrite `x`, in C order, with the solution y of a y = x."""
    size, (row, column) = a.itemsize, a.strides
    n = len(a)
    if row == size and column >= n * size and column % size == 0:
        call.trsm(a, x, upper=upper, transposed=False, unit=unit)
        return
    if not (column == size and row >= n * size and row % size == 0):
        a = np.ascontiguousarray(a)
    call.trsm(a.T, x, upper=not upper, transposed=True, unit=unit)
