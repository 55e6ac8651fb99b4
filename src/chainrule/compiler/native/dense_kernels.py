"""Dense linear algebra of small matrices, in the subset of Python that becomes machine code.

Matrices are in row-major order, from an index on in an array. For some tens of rows these textbook
loops are faster than a call of LAPACK. Functions that return a number return 1 where LAPACK reports
an error, and NumPy then computes instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import int64 as i8
from numpy import uint64 as u8

Array = Any


def eliminate(w: Array, w_at: Any, n: Any, x: Array, x_at: Any, m: Any) -> Any:
    """Solve w x = b for `n` unknowns, where `x` holds the `m` columns of b; `w` is overwritten.

    Gaussian elimination with partial pivoting: Golub and Van Loan, Matrix Computations, 4th
    edition, 3.4.
    """
    singular = i8(0)
    for k in range(n):
        row = _row_of_pivot(w, w_at, k, n)
        if row != k:
            _exchange(w, w_at, k, row, n)
            _exchange(x, x_at, k, row, m)
        singular = singular | i8(w[w_at + k * n + k] == 0)
        for i in range(k + u8(1), n):
            factor = w[w_at + i * n + k] / w[w_at + k * n + k]
            for j in range(k + u8(1), n):
                w[w_at + i * n + j] -= factor * w[w_at + k * n + j]
            for j in range(m):
                x[x_at + i * m + j] -= factor * x[x_at + k * m + j]
    for step in range(n):
        k = n - u8(1) - step
        for j in range(m):
            total = x[x_at + k * m + j]
            for i in range(k + u8(1), n):
                total -= w[w_at + k * n + i] * x[x_at + i * m + j]
            x[x_at + k * m + j] = total / w[w_at + k * n + k]
    return singular


def substitute(
    w: Array,
    w_at: Any,
    row: Any,
    column: Any,
    n: Any,
    x: Array,
    x_at: Any,
    m: Any,
    upper: Any,
    unit: Any,
) -> Any:
    """Solve w x = b for `n` unknowns, reading one triangle of w; `x` holds the `m` columns of b.

    `row` and `column` are the strides of w. Golub and Van Loan, 3.1.
    """
    singular = i8(0)
    for step in range(n):
        k = n - u8(1) - step if upper != 0 else step
        first = k + u8(1) if upper != 0 else u8(0)
        last = n if upper != 0 else k
        for i in range(first, last):
            factor = w[w_at + k * row + i * column]
            for j in range(m):
                x[x_at + k * m + j] -= factor * x[x_at + i * m + j]
        if unit == 0:
            diagonal = w[w_at + k * (row + column)]
            singular = singular | i8(diagonal == 0)
            for j in range(m):
                x[x_at + k * m + j] /= diagonal
    return singular


def _row_of_pivot(w: Array, w_at: Any, k: Any, n: Any) -> Any:
    """Return the row of the largest element of column `k`, from row `k` on."""
    row, largest = k, abs(w[w_at + k * n + k])
    for i in range(k + u8(1), n):
        size = abs(w[w_at + i * n + k])
        row = i if size > largest else row
        largest = size if size > largest else largest
    return row


def _exchange(w: Array, at: Any, first: Any, second: Any, n: Any) -> None:
    """Exchange two rows of `n` elements."""
    for j in range(n):
        element = w[at + first * n + j]
        w[at + first * n + j] = w[at + second * n + j]
        w[at + second * n + j] = element


def log_determinant(w: Array, w_at: Any, n: Any, sign: Array, s: Any, log: Array, t: Any) -> None:
    """Store the sign of a determinant and the logarithm of its size; `w` is overwritten."""
    zero, negative, total = i8(0), i8(0), abs(np.copysign(0.0, w[w_at]))
    for k in range(n):
        row = _row_of_pivot(w, w_at, k, n)
        if row != k:
            _exchange(w, w_at, k, row, n)
            negative = i8(1) - negative
        pivot = w[w_at + k * n + k]
        zero = zero | i8(pivot == 0)
        negative = i8(1) - negative if pivot < 0 else negative
        total = total + np.log(abs(pivot))
        for i in range(k + u8(1), n):
            factor = w[w_at + i * n + k] / pivot if pivot != 0 else w[w_at + i * n + k]
            for j in range(k + u8(1), n):
                w[w_at + i * n + j] -= factor * w[w_at + k * n + j]
    log[t] = total
    sign[s] = 0 if zero != 0 else (1 - 2 * negative)


def cholesky(w: Array, w_at: Any, n: Any) -> Any:
    """Overwrite the lower triangle of `w` with its Cholesky factor, and the upper with zeros.

    Golub and Van Loan, 4.2.
    """
    failed = i8(0)
    for j in range(n):
        total = w[w_at + j * n + j]
        for k in range(j):
            total -= w[w_at + j * n + k] * w[w_at + j * n + k]
        failed = failed if total > 0 else i8(1)
        diagonal = np.sqrt(total)
        w[w_at + j * n + j] = diagonal
        for i in range(j + u8(1), n):
            below = w[w_at + i * n + j]
            for k in range(j):
                below -= w[w_at + i * n + k] * w[w_at + j * n + k]
            w[w_at + i * n + j] = below / diagonal
        for i in range(j):
            w[w_at + i * n + j] = 0
    return failed


def householder(
    w: Array,
    w_at: Any,
    m: Any,
    n: Any,
    q: Array,
    q_at: Any,
    r: Array,
    r_at: Any,
    t: Array,
    t_at: Any,
) -> Any:
    """Store the QR decomposition of a matrix of `m` rows and `n` columns; `w` is overwritten.

    Signs are those of LAPACK; `t` holds min(m, n) factors. Returns 1 if elements are not finite.
    Golub and Van Loan, 5.1 and 5.2.
    """
    size, failed = min(m, n), i8(0)
    for k in range(size):
        t[t_at + k] = _reflector(w, w_at, m, n, k)
        failed = failed | i8(t[t_at + k] - t[t_at + k] != 0)
        for j in range(k + u8(1), n):
            _reflect(w, w_at, n, k, t[t_at + k], w, w_at, n, j, m)
    for i in range(size):
        for j in range(n):
            r[r_at + i * n + j] = w[w_at + i * n + j] if j >= i else 0
    for i in range(m):
        for j in range(size):
            q[q_at + i * size + j] = i == j
    for step in range(size):
        k = size - u8(1) - step
        for j in range(k, size):
            _reflect(w, w_at, n, k, t[t_at + k], q, q_at, size, j, m)
    return failed


def _reflector(w: Array, at: Any, m: Any, n: Any, k: Any) -> Any:
    """Store v of I - t v vᵀ, which zeros column `k` below its diagonal, there; return t.

    v is 1 at the diagonal, where the remaining element is stored.
    """
    first, below = w[at + k * n + k], abs(w[at + k * n + k]) * 0
    for i in range(k + u8(1), m):
        size = abs(w[at + i * n + k])
        below = size if (size > below) | (size != size) else below
    if below == 0:
        return below
    scale = abs(first) if abs(first) > below else below
    total = (first / scale) * (first / scale)
    for i in range(k + u8(1), m):
        total = total + (w[at + i * n + k] / scale) * (w[at + i * n + k] / scale)
    new = -np.copysign(scale * np.sqrt(total), first)
    for i in range(k + u8(1), m):
        w[at + i * n + k] /= first - new
    w[at + k * n + k] = new
    return (new - first) / new


def _reflect(
    w: Array, w_at: Any, n: Any, k: Any, t: Any, x: Array, x_at: Any, columns: Any, j: Any, m: Any
) -> None:
    """Apply the reflector in column `k` of `w` to column `j` of `x`."""
    total = x[x_at + k * columns + j]
    for i in range(k + u8(1), m):
        total += w[w_at + i * n + k] * x[x_at + i * columns + j]
    total = total * t
    x[x_at + k * columns + j] -= total
    for i in range(k + u8(1), m):
        x[x_at + i * columns + j] -= total * w[w_at + i * n + k]


def search(x: Array, at: Any, step: Any, n: Any, value: Any, right: Any) -> Any:
    """Return the number of sorted elements before a value; with `right`, also of equal ones.

    The number of steps depends on `n` alone, so that searches for several values overlap.
    """
    first, size = i8(0), i8(n)
    while size > 1:
        half = size >> 1
        is_before = _is_before(x[at + step * u8(first + half - 1)], value, right)
        first = first + half if is_before else first
        size = size - half
    return first + i8(_is_before(x[at + step * u8(first)], value, right))


def _is_before(element: Any, value: Any, right: Any) -> Any:
    """Return whether an element belongs before a value; nan is the largest number."""
    less = (element < value) | ((value != value) & (element == element))
    greater = (value < element) | ((element != element) & (value == value))
    return not greater if right else less


def sort_order(x: Array, at: Any, step: Any, n: Any, order: Array, o: Any) -> None:
    """Store the indices that sort `n` elements in `order`, whose next `n` elements are overwritten.

    Merge sort from the bottom up: Knuth, The Art of Computer Programming 3, 5.2.4. It is stable.
    """
    for i in range(n):
        order[o + i] = i8(i)
    width = u8(1)
    while width < n:
        for first in range(u8(0), n, width + width):
            _merge(x, at, step, order, o, n, first, min(first + width, n), width)
        for i in range(n):
            order[o + i] = order[o + n + i]
        width = width + width


def _merge(
    x: Array, at: Any, step: Any, order: Array, o: Any, n: Any, first: Any, middle: Any, width: Any
) -> None:
    """Merge two sorted runs of indices."""
    i, j, last = first + u8(0), middle + u8(0), min(middle + width, n)
    for k in range(first, last):
        left, right = order[o + min(i, n - u8(1))], order[o + min(j, n - u8(1))]
        is_right = _is_before(x[at + step * u8(right)], x[at + step * u8(left)], 0)
        takes_right = (j < last) & ((i >= middle) | is_right)
        order[o + n + k] = right if takes_right else left
        j = j + u8(takes_right)
        i = i + u8(1) - u8(takes_right)


def log_add_exp(x: Any, y: Any) -> Any:
    """Return log(exp(x) + exp(y)), by the larger one; infinities of one sign are their result."""
    high = x if (x >= y) | (x != x) else y
    low = y if (x >= y) | (x != x) else x
    gap = abs(np.copysign(0.0, x)) if x == y else low - high
    return high + np.log1p(np.exp(gap))
