"""Systems of equations with banded matrices, and their Cholesky factors.

Bands are stored in rows as LAPACK does: element (i, j) of the matrix is in row u + i - j, where u
is the number of bands above the diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import linalg, ops
from chainrule.arguments import whole_number
from chainrule.autograd.tensor import Tensor
from chainrule.errors import LinAlgError, ShapeError
from chainrule.primitives.indexing import index as index_primitive
from chainrule.primitives.primitive import Primitive, applied, general
from chainrule.scipy.linalg.arguments import TABLE, as_vector, operands
from chainrule.scipy.linalg.eigenvalues import dense_of_bands

Array = Any
Index = np.ndarray[Any, Any]

# --- A x = b: the products of bands and vectors, and the transpose --------------------------------


def _gather(xp: Any, x: Array, key: Any, exists: Index) -> Array:
    found = applied(index_primitive, xp)(x, key=key)
    return found if exists.all() else xp.masked(found, xp.asarray(exists))


def _within(index: Index, n: int) -> tuple[Index, Index]:
    """Return indices clipped to a range, and whether they were in it."""
    return np.clip(index, 0, n - 1), (index >= 0) & (index < n)


def _grid(lower: int, upper: int, n: int) -> tuple[Index, Index]:
    """Return the numbers of the bands and of the columns."""
    return np.arange(lower + upper + 1)[:, None], np.arange(n)


def transposed_bands(xp: Any, ab: Array, lower: int, upper: int) -> Array:
    """Return the bands of the transposed matrix."""
    band, column = _grid(lower, upper, ab.shape[-1])
    rows, exist = _within(column + band - lower, ab.shape[-1])
    source = np.broadcast_to(lower + upper - band, rows.shape)
    return _gather(xp, ab, (..., source, rows), exist)


def _of_rows(xp: Any, x: Array, lower: int, upper: int) -> Array:
    """Return, for each element of the bands, the row of `x` that its row of the matrix has."""
    band, column = _grid(lower, upper, x.shape[-2])
    rows, exist = _within(column + band - upper, x.shape[-2])
    return _gather(xp, x, (..., rows, slice(None)), exist[..., None])


def _product(xp: Any, ab: Array, x: Array, lower: int, upper: int) -> Array:
    """Return A x."""
    flipped = transposed_bands(xp, ab, lower, upper)
    terms = xp.expand_dims(flipped, axis=-1) * _of_rows(xp, x, upper, lower)
    return xp.sum(terms, axis=terms.ndim - 3)


def _banded_vjp(
    xp: Any,
    g: Array,
    ab: Array,
    out: Array,
    needs: tuple[bool, ...],
    *,
    lower: int,
    upper: int,
    positive: bool,
) -> tuple[Array | None, Array | None]:
    flipped = transposed_bands(xp, ab, lower, upper)
    right = applied(banded, xp)(flipped, g, lower=upper, upper=lower, positive=positive)
    if not needs[0]:
        return None, right
    terms = _of_rows(xp, right, lower, upper) * xp.expand_dims(out, axis=-3)
    return -xp.sum(terms, axis=terms.ndim - 1), right if needs[1] else None


def _banded_jvp(
    xp: Any, t: Array, ab: Array, out: Array, *, lower: int, upper: int, positive: bool
) -> Array:
    moved = _product(xp, t, out, lower, upper)
    return -applied(banded, xp)(ab, moved, lower=lower, upper=upper, positive=positive)


banded: Primitive = general(
    "scipy_solve_banded",
    lambda xp, ab, b, *, lower, upper, positive: xp.scipy_linalg(
        ab, b, routine="solve_banded", lower=lower, upper=upper, positive=positive
    ),
    vjp=_banded_vjp,
    jvp=(
        _banded_jvp,
        lambda xp, t, ab, *, lower, upper, positive: applied(banded, xp)(
            ab, t, lower=lower, upper=upper, positive=positive
        ),
    ),
    broadcasts=False,
)


def solve_bands(
    bands: Tensor, sides: Tensor, l_and_u: tuple[int, int], positive: bool = False
) -> Tensor:
    """Return the solution for right sides in columns."""
    lower, upper = l_and_u
    try:
        return banded.apply(bands, sides, lower=lower, upper=upper, positive=positive)
    except np.linalg.LinAlgError as error:
        name = "solveh_banded" if positive else "solve_banded"
        raise LinAlgError(f"scipy.linalg.{name}: {error.__context__ or error}") from None


def _system(name: str, ab: Any, b: Any, count: int, finite: bool) -> tuple[Tensor, Tensor, bool]:
    bands, sides = operands(name, ab, b, finite=finite)
    vector = sides.ndim == 1
    sides = ops.reshape(sides, (*sides.shape, 1)) if vector else sides
    if bands.ndim < 2 or bands.shape[-2] != count:
        raise ShapeError(
            f"scipy.linalg.{name}: invalid values for the number of lower and upper diagonals: "
            f"expected {count} bands in rows, got the shape {list(bands.shape)}"
        )
    if sides.ndim < 2 or bands.shape[-1] != sides.shape[-2]:
        raise ShapeError(
            f"scipy.linalg.{name}: shapes of ab and b are not compatible: {list(bands.shape)} and "
            f"{list(np.shape(b))}"
        )
    return bands, sides, vector


@TABLE.function("solve_banded", "equation")
def solve_banded(
    l_and_u: Any,
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """Return the solution of A x = b for a banded matrix."""
    lower, upper = (whole_number(n, "scipy.linalg.solve_banded", "l_and_u") for n in l_and_u)
    bands, sides, vector = _system("solve_banded", ab, b, lower + upper + 1, check_finite)
    return as_vector(solve_bands(bands, sides, (lower, upper)), vector)


# --- Hermitian positive definite ones -------------------------------------------------------------


def _all_bands(bands: Tensor, lower: bool) -> Tensor:
    """Return all bands of a Hermitian matrix, from those on and below or above the diagonal."""
    count = bands.shape[-2]
    if not lower:
        bands = ops.conj(_other_half(bands, -1)) if bands.is_complex() else _other_half(bands, -1)
    diagonal = bands[..., :1, :]
    if bands.is_complex():
        diagonal = diagonal.real + 0j
    above = _other_half(bands, 1)[..., : count - 1, :]
    above = ops.conj(above) if bands.is_complex() else above
    return ops.concat([above, diagonal, bands[..., 1:, :]], axis=-2)


def _other_half(bands: Tensor, direction: int) -> Tensor:
    """Return the bands of a half transposed: from above to below (-1), or the reverse (1)."""
    count, n = bands.shape[-2:]
    band = np.arange(count)[:, None]
    distance = band if direction == -1 else count - 1 - band
    columns, exist = _within(np.arange(n) - direction * distance, n)
    rows = np.broadcast_to(count - 1 - band, columns.shape)
    found: Tensor = bands[..., rows, columns]
    return ops.masked_fill(found, ~exist, 0)


@TABLE.function("solveh_banded", "equation")
def solveh_banded(
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """Return the solution of A x = b for a Hermitian positive definite banded matrix."""
    bands, sides, vector = _system(
        "solveh_banded", ab, b, np.shape(ab)[-2] if np.ndim(ab) > 1 else 1, check_finite
    )
    count = bands.shape[-2] - 1
    whole = _all_bands(bands, bool(lower))
    return as_vector(solve_bands(whole, sides, (count, count), True), vector)


@TABLE.function("cholesky_banded", "composite")
def cholesky_banded(
    ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True
) -> Tensor:
    """Return the bands of the Cholesky factor of a Hermitian positive definite banded matrix.

    Differentiated through the factor of the whole matrix, which takes its time and memory.
    """
    (bands,) = operands("cholesky_banded", ab, finite=check_finite)
    count, n = bands.shape[-2:]
    factor = linalg.cholesky(dense_of_bands(bands, bool(lower)), upper=not lower)
    band, column = np.arange(count)[:, None], np.arange(n)
    rows, exist = _within(column + band - (0 if lower else count - 1), n)
    columns = np.broadcast_to(column, rows.shape)
    return ops.where(exist, factor[..., rows, columns], bands)  # as LAPACK leaves it


@TABLE.function("cho_solve_banded", "composite")
def cho_solve_banded(
    cb_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """Return the solution of A x = b, given the bands of the Cholesky factor of A."""
    cb, lower = cb_and_lower
    bands, sides, vector = _system("cho_solve_banded", cb, b, np.shape(cb)[-2], check_finite)
    count = bands.shape[-2] - 1
    other = _other_half(bands, 1 if lower else -1)
    other = ops.conj(other) if bands.is_complex() else other
    below, above = (bands, other) if lower else (other, bands)
    found = solve_bands(below, sides, (count, 0))
    return as_vector(solve_bands(above, found, (0, count)), vector)
