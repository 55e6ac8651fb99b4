"""Matrices made of the elements of vectors, and systems with Toeplitz and circulant ones.

SciPy is asked once for numbers in the place of elements; where they come to stand says which
element goes where. The result is linear in the elements.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from chainrule import fft, ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.backend import check_known, is_known
from chainrule.creation import zeros
from chainrule.errors import LinAlgError, ShapeError
from chainrule.fft import irfft, rfft
from chainrule.interop.operands import array_of, tensors_of
from chainrule.primitives.indexing import index as index_primitive
from chainrule.primitives.matrices import transpose
from chainrule.primitives.primitive import Primitive, applied, general
from chainrule.scipy.linalg.arguments import TABLE, as_vector, operands, taken

Array = Any
Index = np.ndarray[Any, Any]

# --- placements -----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _placed(name: str, *lengths: int, **settings: Any) -> tuple[Index, Index]:
    """Return where the elements of vectors stand in a matrix of SciPy's, and their signs.

    They are numbered through all vectors; -1 stands for the number 0.
    """
    ends = np.cumsum((0, *lengths))
    vectors = [np.arange(a, b) + 1.0 for a, b in itertools.pairwise(ends)]
    found = np.asarray(getattr(TABLE.scipys, name)(*vectors, **settings))
    return np.abs(found).astype(np.intp) - 1, found < 0


def _of_vectors(name: str, *vectors: Tensor, **settings: Any) -> Tensor:
    """Return the matrix that a function of SciPy makes of vectors, for each of a stack."""
    index, negative = _placed(name, *[v.shape[-1] for v in vectors], **settings)
    joined = ops.concat(list(vectors), axis=-1) if len(vectors) > 1 else vectors[0]
    found = taken(joined, index)
    return ops.where(negative, -found, found) if negative.any() else found


def _vectors(name: str, *values: Any) -> list[Tensor]:
    tensors = tensors_of(list(values))
    dtype = functools.reduce(np.promote_types, [t._array.dtype for t in tensors])
    tensors = [cast(t, dtype) for t in tensors]
    shapes = [t.shape for t in tensors]
    if any(not shape for shape in shapes):
        raise ShapeError(f"scipy.linalg.{name}: expected vectors, got the shapes {shapes}")
    stack = np.broadcast_shapes(*[shape[:-1] for shape in shapes])
    return [ops.broadcast_to(t, (*stack, t.shape[-1])) for t in tensors]


def _conj(x: Tensor) -> Tensor:
    return ops.conj(x) if x.is_complex() else x


@TABLE.function("toeplitz", "linear")
def toeplitz(c: Any, r: Any = None) -> Tensor:
    """Return the matrix with constant diagonals, given its first column and its first row."""
    if r is None:
        (column,) = _vectors("toeplitz", c)
        row = _conj(column)
    else:
        column, row = _vectors("toeplitz", c, r)
    return _of_vectors("toeplitz", column, row)


@TABLE.function("hankel", "linear")
def hankel(c: Any, r: Any = None) -> Tensor:
    """Return the matrix with constant antidiagonals, given its first column and its last row."""
    return _of_vectors("hankel", *_vectors("hankel", *([c] if r is None else [c, r])))


@TABLE.function("circulant", "linear")
def circulant(c: Any) -> Tensor:
    """Return the circulant matrix of a first column."""
    return _of_vectors("circulant", *_vectors("circulant", c))


@TABLE.function("convolution_matrix", "linear")
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Tensor:
    """Return the matrix whose product with a vector of length `n` is a convolution."""
    return _of_vectors("convolution_matrix", *_vectors("convolution_matrix", a), n=n, mode=mode)


@TABLE.function("leslie", "linear")
def leslie(f: Any, s: Any) -> Tensor:
    """Return the Leslie matrix of fecundity and survival coefficients."""
    return _of_vectors("leslie", *_vectors("leslie", f, s))


@TABLE.function("diagsvd", "linear")
def diagsvd(s: Any, M: int, N: int) -> Tensor:
    """Return the matrix with singular values on its diagonal."""
    return _of_vectors("diagsvd", *_vectors("diagsvd", s), M=M, N=N)


@TABLE.function("companion", "composite")
def companion(a: Any) -> Tensor:
    """Return the companion matrix of the coefficients of a polynomial, the first one first."""
    (x,) = operands("companion", a, finite=False)
    return _of_vectors("companion", x / x[..., :1])


@TABLE.function("fiedler_companion", "composite")
def fiedler_companion(a: Any) -> Tensor:
    """Return the Fiedler companion matrix of the coefficients of a polynomial."""
    (x,) = operands("fiedler_companion", a, finite=False)
    return _of_vectors("fiedler_companion", x / x[..., :1])


@TABLE.function("fiedler", "composite")
def fiedler(a: Any) -> Tensor:
    """Return the symmetric matrix of the absolute differences of the elements of a vector."""
    (x,) = _vectors("fiedler", a)
    return ops.abs(x[..., :, None] - x[..., None, :])


@TABLE.function("block_diag", "linear")
def block_diag(*arrs: Any) -> Tensor:
    """Return the matrix with blocks on its diagonal."""
    blocks = tensors_of(list(arrs))
    dtype = functools.reduce(np.promote_types, [t._array.dtype for t in blocks])
    blocks = [ops.reshape(cast(t, dtype), (1,) * (2 - t.ndim) + t.shape) for t in blocks]
    width, done, rows = sum(t.shape[-1] for t in blocks), 0, []
    for block in blocks:
        index = np.full(width, -1)
        index[done : done + block.shape[-1]] = np.arange(block.shape[-1])
        done += block.shape[-1]
        if block.shape[-1]:
            rows.append(taken(block, index))
        else:
            rows.append(zeros(*block.shape[:-1], width, dtype=dtype))
    stack = np.broadcast_shapes(*[row.shape[:-2] for row in rows])
    return ops.concat([ops.broadcast_to(t, (*stack, *t.shape[-2:])) for t in rows], axis=-2)


@TABLE.function("khatri_rao", "composite")
def khatri_rao(a: Any, b: Any) -> Tensor:
    """Return the Kronecker products of the columns of two matrices."""
    x, y = operands("khatri_rao", a, b, finite=False)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        raise ShapeError(
            "scipy.linalg.khatri_rao: the number of columns for both arrays should be equal, got "
            f"the shapes {list(x.shape)} and {list(y.shape)}"
        )
    products = x[..., :, None, :] * y[..., None, :, :]
    shape = products.shape
    return ops.reshape(products, (*shape[:-3], shape[-3] * shape[-2], shape[-1]))


@TABLE.function("kron", "composite")
def kron(a: Any, b: Any) -> Tensor:
    """Return the Kronecker product of two matrices."""
    return ops.kron(*operands("kron", a, b, finite=False))


# --- systems with Toeplitz matrices ---------------------------------------------------------------


def _rows_of_diagonal(n: int) -> tuple[Index, Index]:
    """Return the row j + k of the k-th diagonal below in column j, and whether it exists."""
    found = np.arange(n)[:, None] + np.arange(n)
    return np.minimum(found, n - 1), found < n


def _diagonal_sums(xp: Any, left: Array, right: Array) -> Array:
    """Return Σ left[j + k] right[j] for each k: the sums of the diagonals of left · rightᵀ."""
    n = left.shape[-2]
    rows, exist = _rows_of_diagonal(n)
    outer = xp.matmul(left, transpose(xp, right))
    columns = np.broadcast_to(np.arange(n), rows.shape)
    parts = applied(index_primitive, xp)(outer, key=(..., rows, columns))
    return xp.sum(xp.masked(parts, xp.asarray(exist)), axis=parts.ndim - 1)


def _without_first(xp: Any, x: Array) -> Array:
    return xp.masked(x, xp.asarray(np.arange(x.shape[-1]) > 0))


def _transposed(xp: Any, c: Array, r: Array) -> tuple[Array, Array]:
    """Return the first column and the first row of the transpose; r[0] isn't part of the matrix."""
    return _without_first(xp, r) + (c - _without_first(xp, c)), c


def _toeplitz_vjp(
    xp: Any, g: Array, c: Array, r: Array, out: Array, needs: tuple[bool, ...]
) -> tuple[Array | None, ...]:
    right = applied(toeplitz_system, xp)(*_transposed(xp, c, r), g)
    return (
        -_diagonal_sums(xp, right, out) if needs[0] else None,
        -_without_first(xp, _diagonal_sums(xp, out, right)) if needs[1] else None,
        right if needs[2] else None,
    )


def _matrix(xp: Any, c: Array, r: Array) -> Array:
    n = c.shape[-1]
    index, _ = _placed("toeplitz", n, n)
    return applied(index_primitive, xp)(xp.concat([c, r], axis=c.ndim - 1), key=(..., index))


toeplitz_system: Primitive = general(
    "scipy_solve_toeplitz",
    lambda xp, c, r, b: xp.scipy_linalg(c, r, b, routine="solve_toeplitz"),
    vjp=_toeplitz_vjp,
    jvp=(
        lambda xp, t, c, r, out: (
            -applied(toeplitz_system, xp)(c, r, xp.matmul(_matrix(xp, t, xp.zeros_like(t)), out))
        ),
        lambda xp, t, c, r, out: (
            -applied(toeplitz_system, xp)(c, r, xp.matmul(_matrix(xp, xp.zeros_like(t), t), out))
        ),
        lambda xp, t, c, r: applied(toeplitz_system, xp)(c, r, t),
    ),
    broadcasts=False,
)


def _toeplitz_operands(
    name: str, c_or_cr: Any, b: Any, finite: bool
) -> tuple[Tensor, Tensor, Tensor, bool]:
    if isinstance(c_or_cr, tuple):
        column, row, sides = operands(name, *c_or_cr, b, finite=finite)
    else:
        column, sides = operands(name, c_or_cr, b, finite=finite)
        row = _conj(column)
    vector = sides.ndim == 1
    sides = ops.reshape(sides, (*sides.shape, 1)) if vector else sides
    if sides.ndim < 2 or row.shape[-1] != sides.shape[-2]:
        raise ShapeError(
            f"scipy.linalg.{name}: incompatible shapes: a matrix with {row.shape[-1]} columns, and "
            f"{list(np.shape(b))}"
        )
    return column, row, sides, vector


@TABLE.function("solve_toeplitz", "equation")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Tensor:
    """Return the solution of T x = b for a Toeplitz matrix, given its first column and row."""
    c, r, sides, vector = _toeplitz_operands("solve_toeplitz", c_or_cr, b, check_finite)
    if c.shape[-1] != r.shape[-1]:
        raise ShapeError(
            "scipy.linalg.solve_toeplitz: incompatible shapes: the first column has "
            f"{c.shape[-1]} elements, the first row {r.shape[-1]}"
        )
    return as_vector(toeplitz_system.apply(c, r, sides), vector)


@TABLE.function("matmul_toeplitz", "composite")
def matmul_toeplitz(
    c_or_cr: Any, x: Any, check_finite: bool = False, workers: int | None = None
) -> Tensor:
    """Return the product of a Toeplitz matrix, given its first column and row, and a matrix."""
    c, r, sides, vector = _toeplitz_operands("matmul_toeplitz", c_or_cr, x, check_finite)
    rows, p = c.shape[-1], c.shape[-1] + r.shape[-1] - 1
    if not sides.numel():
        return as_vector(ops.matmul(toeplitz(c, r), sides), vector)
    column = ops.concat([c, ops.flip(r[..., 1:], (-1,))], axis=-1)[..., :, None]
    if column.is_complex() or sides.is_complex():
        found = fft.ifft(fft.fft(column, dim=-2) * fft.fft(sides, p, dim=-2), dim=-2)
    else:
        found = irfft(rfft(column, dim=-2) * rfft(sides, p, dim=-2), p, dim=-2)
    return as_vector(found[..., :rows, :], vector)


@TABLE.function("solve_circulant", "composite")
def solve_circulant(
    c: Any,
    b: Any,
    singular: str = "raise",
    tol: Any = None,
    caxis: int = -1,
    baxis: int = 0,
    outaxis: int = 0,
) -> Tensor:
    """Return the solution of C x = b for circulant matrices, by Fourier transforms."""
    x, sides = operands("solve_circulant", c, b, finite=False)
    x, sides = [ops.reshape(t, (1,)) if t.ndim == 0 else t for t in (x, sides)]
    x, sides = ops.movedim(x, caxis, -1), ops.movedim(sides, baxis, -1)
    if x.shape[-1] != sides.shape[-1]:
        raise ShapeError(
            f"scipy.linalg.solve_circulant: shapes of c {list(np.shape(c))} and b "
            f"{list(np.shape(b))} are incompatible"
        )
    if not sides.numel():
        return ops.movedim(sides, -1, outaxis)
    spectrum = fft.fft(x)
    if singular == "lstsq" or is_known(spectrum._array):
        check_known(spectrum._array, "scipy.linalg.solve_circulant", "take singular='raise'")
        size = np.abs(array_of(spectrum))
        cut = size.max(-1, keepdims=True) * x.shape[-1] * np.finfo(np.float64).eps
        small = size <= (cut if tol is None else tol)
        if small.any() and singular == "raise":
            raise LinAlgError("scipy.linalg.solve_circulant: near singular circulant matrix.")
        quotient = fft.fft(sides) / ops.masked_fill(spectrum, small, 1.0)
        quotient = ops.masked_fill(quotient, np.broadcast_to(small, quotient.shape), 0.0)
    else:
        quotient = fft.fft(sides) / spectrum
    found = fft.ifft(quotient)
    found = found if x.is_complex() else ops.real(found)
    return ops.movedim(found, -1, outaxis)
