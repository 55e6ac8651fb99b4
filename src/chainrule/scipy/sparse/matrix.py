"""Sparse matrices whose elements record."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule import ops
from chainrule.autograd.tensor import make
from chainrule.backend import is_known
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.creation import zeros
from chainrule.errors import ArgumentTypeError, ShapeError
from chainrule.interop.operands import arrays_of, tensor_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.ops.sparse_products import is_sparse_matrix
from chainrule.ops.triplets import product_of_triplets

scipy_sparse = LazyModule("scipy.sparse", SCIPY)


class SparseMatrix:
    """A sparse matrix or array of SciPy's, whose elements are recorded.

    `data` holds the elements at the places `row` and `col`, of which those at one place add up.
    It has the operators and methods of SciPy's classes that have a derivative; which elements are
    not zero is constant. All formats are the same here.

    >>> import numpy as np
    >>> import chainrule as cr
    >>> def energy(k):
    ...     stiffness = cr.scipy.sparse.diags([[-k, -k], [2 * k, k, k]], [1, 0])
    ...     return np.ones(3) @ (stiffness @ np.ones(3))
    >>> cr.grad(energy)(3.0)
    2.0
    """

    __array_ufunc__ = None
    ndim = 2
    format = "csr"  # which SciPy's own code asks for

    def __init__(
        self, data: Any, row: Any, col: Any, shape: Sequence[int], is_matrix: bool = True
    ) -> None:
        self.data, self.is_matrix = cnp.array(data), is_matrix
        self.shape = int(shape[0]), int(shape[1])
        self.row, self.col = np.asarray(row, np.intp), np.asarray(col, np.intp)
        if self.data.shape != self.row.shape or self.row.shape != self.col.shape:
            raise ShapeError(
                f"sparse matrix: data, row and col need one length, got {self.data.shape}, "
                f"{self.row.shape} and {self.col.shape}"
            )

    # --- what it is ---

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return self.data.dtype

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return int(self.row.size)

    @property
    def places(self) -> Any:
        """The places of the elements in a dense array, counted row by row."""
        return self.row * self.shape[1] + self.col

    @property
    def T(self) -> SparseMatrix:
        """The transpose."""
        return self._with(self.data, self.col, self.row, self.shape[::-1])

    def __repr__(self) -> str:
        return f"<{self.nnz} recorded elements of a {self.shape[0]}x{self.shape[1]} sparse matrix>"

    def _with(self, data: Any, row: Any, col: Any, shape: Any) -> SparseMatrix:
        return SparseMatrix(data, row, col, shape, self.is_matrix)

    def transpose(self) -> SparseMatrix:
        """Return the transpose."""
        return self.T

    def copy(self, *_: Any, **__: Any) -> SparseMatrix:
        """Return a copy, recorded."""
        return self._with(self.data, self.row, self.col, self.shape)

    tocsr = tocsc = tocoo = todia = tolil = todok = tobsr = asformat = copy

    def astype(self, dtype: Any, *_: Any, **__: Any) -> SparseMatrix:
        """Return the matrix with elements of another type."""
        return self._with(self.data.astype(dtype), self.row, self.col, self.shape)

    def conj(self) -> SparseMatrix:
        """Return the matrix of conjugate elements."""
        return self._with(cnp.conj(self.data), self.row, self.col, self.shape)

    conjugate = conj

    def toarray(self) -> Any:
        """Return a dense array."""
        total = zeros(self.shape[0] * self.shape[1], dtype=self.dtype)
        found = ops.index_add(total, 0, make(self.places, None), tensor_of(self.data))
        return as_ndarrays(ops.reshape(found, self.shape))

    todense = toarray

    def diagonal(self, k: int = 0) -> Any:
        """Return the elements of a diagonal."""
        first, on = max(-k, 0), self.col - self.row == k
        total = zeros(
            max(min(self.shape[0] - first, self.shape[1] - max(k, 0)), 0), dtype=self.dtype
        )
        places = make(self.row[on] - first, None)
        return as_ndarrays(ops.index_add(total, 0, places, tensor_of(self.data[on])))

    def sum(self, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
        """Return the sum of the elements, or of those in each row (axis 1) or column (axis 0)."""
        if dtype is not None:
            return self.astype(dtype).sum(axis)
        if axis is None:
            return self.data.sum()
        ones = np.ones(self.shape[axis])
        return self @ ones if axis in (1, -1) else self.T @ ones

    def mean(self, axis: int | None = None) -> Any:
        """Return the mean of all elements, zeros as well."""
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        return self.sum(axis) / count

    # --- arithmetic ---

    def __matmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return _product(self, recorded(other))
        dense = tensor_of(other)
        if dense.shape[:1] != (self.shape[1],):
            raise ShapeError(
                f"matmul: a sparse matrix of the shape {self.shape} doesn't multiply an array of "
                f"the shape {tuple(dense.shape)}"
            )
        dense = ops.clone(dense)  # which a program may write to, as to a column of its results
        columns = ops.unsqueeze(dense, 1) if dense.ndim == 1 else dense
        rows, cols = make(self.row, None), make(self.col, None)
        found = product_of_triplets(rows, cols, tensor_of(self.data), columns, self.shape[0])
        return as_ndarrays(found[:, 0] if dense.ndim == 1 else found)

    dot = __matmul__

    def __rmatmul__(self, other: Any) -> Any:
        if is_sparse(other):
            return recorded(other) @ self
        return (self.T @ cnp.asarray(other).T).T

    def multiply(self, other: Any) -> SparseMatrix:
        """Return the product with a number, or of elements with those of a dense array."""
        if is_sparse(other):
            other = other.toarray()
        other = cnp.asarray(other)
        factor = cnp.broadcast_to(other, self.shape)[self.row, self.col] if other.ndim else other
        return self._with(self.data * factor, self.row, self.col, self.shape)

    def __mul__(self, other: Any) -> Any:
        if self.is_matrix and (is_sparse(other) or np.ndim(other)):
            return self @ other
        return self.multiply(other)

    def __rmul__(self, other: Any) -> Any:
        if self.is_matrix and (is_sparse(other) or np.ndim(other)):
            return other @ self
        return self.multiply(other)

    def __truediv__(self, other: Any) -> SparseMatrix:
        return self.multiply(1 / cnp.asarray(other))

    def __neg__(self) -> SparseMatrix:
        return self._with(-self.data, self.row, self.col, self.shape)

    def __add__(self, other: Any) -> Any:
        if not is_sparse(other):
            return self if np.ndim(other) == 0 and other == 0 else self.toarray() + other
        other = recorded(other)
        if self.shape != other.shape:
            raise ShapeError(f"add: sparse matrices of the shapes {self.shape} and {other.shape}")
        row = np.concatenate([self.row, other.row])
        col = np.concatenate([self.col, other.col])
        return self._with(cnp.concatenate([self.data, other.data]), row, col, self.shape)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    # --- functions of each element, and of all ---

    def _map(self, function: Callable[[Any], Any]) -> SparseMatrix:
        """Return the matrix of a function of the elements, whose value at 0 is 0."""
        once = _merged(self)
        return once._with(function(once.data), once.row, once.col, once.shape)

    def power(self, n: float, dtype: Any = None) -> SparseMatrix:
        """Return the matrix of powers of the elements."""
        if n == 0:
            raise ArgumentTypeError("power of a sparse matrix: the exponent 0 makes a dense matrix")
        found = self._map(lambda data: data**n)
        return found if dtype is None else found.astype(dtype)

    def __pow__(self, n: Any) -> SparseMatrix:
        if not self.is_matrix:
            return self.power(n)
        found = self if n else recorded(scipy_sparse.eye_array(self.shape[0]))
        for _ in range(int(n) - 1):
            found = found @ self
        return found

    def __abs__(self) -> SparseMatrix:
        return self._map(abs)

    def trace(self, offset: int = 0) -> Any:
        """Return the sum of the elements of a diagonal."""
        return self.data[self.col - self.row == offset].sum()

    def max(self, axis: int | None = None) -> Any:
        """Return the largest element, zeros as well: also of each column (axis 0) or row."""
        return self._extreme("max", axis)

    def min(self, axis: int | None = None) -> Any:
        """Return the smallest element, zeros as well: also of each column (axis 0) or row."""
        return self._extreme("min", axis)

    def _extreme(self, name: str, axis: int | None) -> Any:
        return getattr(self.toarray(), name)(axis)

    def maximum(self, other: Any) -> SparseMatrix:
        """Return the matrix of the larger elements of two, or of each and a number."""
        return self._of_pairs(cnp.maximum, other)

    def minimum(self, other: Any) -> SparseMatrix:
        """Return the matrix of the smaller elements of two, or of each and a number."""
        return self._of_pairs(cnp.minimum, other)

    def _of_pairs(self, function: Callable[[Any, Any], Any], other: Any) -> SparseMatrix:
        if not is_sparse(other):
            return recorded(function(self.toarray(), other))
        first, second = _merged(self + 0 * other), _merged(recorded(other) + 0 * self)
        return first._with(function(first.data, second.data), first.row, first.col, self.shape)

    def getH(self) -> SparseMatrix:
        """Return the adjoint."""
        return self.conj().T

    def getrow(self, i: int) -> SparseMatrix:
        """Return a row, as a matrix."""
        found: SparseMatrix = self[i : i + 1] if i != -1 else self[i:]
        return found

    def getcol(self, j: int) -> SparseMatrix:
        """Return a column, as a matrix."""
        return self.T.getrow(j).T

    def __getattr__(self, name: str) -> Any:
        if name in ("real", "imag"):
            return self._with(getattr(cnp, name)(self.data), self.row, self.col, self.shape)
        if name in _OF_NUMBERS:
            return getattr(self._numbers(), name)
        if name not in _OF_ELEMENTS:
            raise AttributeError(f"'SparseMatrix' object has no attribute {name!r}")
        return lambda: self._map(getattr(cnp, name))

    # --- constants ---

    def _numbers(self) -> Any:
        kind = scipy_sparse.csr_matrix if self.is_matrix else scipy_sparse.csr_array
        return kind((arrays_of(self.data), (self.row, self.col)), shape=self.shape)

    def _compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        """Return SciPy's matrix of truth values."""
        other = other._numbers() if isinstance(other, SparseMatrix) else arrays_of(other)
        return compare(self._numbers(), other)

    def __eq__(self, other: Any) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: Any) -> Any:
        return self._compared(operator.ne, other)

    def __lt__(self, other: Any) -> Any:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(operator.ge, other)

    __hash__ = object.__hash__

    # --- elements elsewhere ---

    def __getitem__(self, key: Any) -> Any:
        kind = scipy_sparse.csr_matrix if self.is_matrix else scipy_sparse.csr_array
        found = rearranged(lambda labels: kind(labels)[key], self)
        return found if isinstance(found, SparseMatrix) else found.sum()

    def __setitem__(self, key: Any, value: Any) -> None:
        row, col = _places_of(key, self.shape)
        value = cnp.asarray(value.toarray() if is_sparse(value) else value)
        new = cnp.ravel(cnp.broadcast_to(value, row.shape))
        flat = (row * self.shape[1] + col).ravel()
        _, from_end = np.unique(flat[::-1], return_index=True)
        last = flat.size - 1 - from_end  # of those at one place
        kept = np.flatnonzero(~np.isin(self.places, flat))
        self.data = cnp.concatenate([self.data[kept], new[last]])
        self.row = np.concatenate([self.row[kept], row.ravel()[last]])
        self.col = np.concatenate([self.col[kept], col.ravel()[last]])

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write to a diagonal."""
        row = np.arange(max(-k, 0), min(self.shape[0], self.shape[1] - k))
        if np.ndim(values):
            row = row[: len(values)]
            values = values[: len(row)]
        self[row, row + k] = values

    def sum_duplicates(self) -> None:
        """Add up the elements of each place. Zeros are kept: they have derivatives."""
        once = _merged(self)
        self.data, self.row, self.col = once.data, once.row, once.col

    eliminate_zeros = sort_indices = sum_duplicates

    def reshape(self, *shape: Any, **settings: Any) -> SparseMatrix:
        """Return the elements in another shape."""
        found: SparseMatrix = rearranged(lambda labels: labels.reshape(*shape, **settings), self)
        return found


_OF_ELEMENTS = frozenset(
    [
        *("sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "expm1", "log1p"),
        *("sqrt", "rint", "ceil", "floor", "trunc", "sign", "deg2rad", "rad2deg"),
    ]
)
"""Methods of SciPy's matrices that are functions of each element."""
_OF_NUMBERS = frozenset(["argmax", "argmin", "count_nonzero", "getnnz", "nonzero", "size"])
"""Attributes of SciPy's matrices that are integers."""


def _places_of(key: Any, shape: tuple[int, int]) -> Any:
    """Return the rows and the columns that an index refers to."""
    if not isinstance(key, tuple) and getattr(key, "dtype", None) == np.bool_ and key.ndim == 2:
        return np.nonzero(key)
    first, second = key if isinstance(key, tuple) else (key, slice(None))
    row, col = np.arange(shape[0])[first], np.arange(shape[1])[second]
    if row.ndim and (isinstance(first, slice) or isinstance(second, slice)):
        row = row[:, None]
    return np.broadcast_arrays(row, col)


def is_sparse(value: Any) -> bool:
    """Return whether a value is a sparse matrix, SciPy's or one that records."""
    return isinstance(value, SparseMatrix) or is_sparse_matrix(value)


def recorded(value: Any) -> SparseMatrix:
    """Return a sparse matrix of SciPy's, or a dense one, as one that records."""
    if isinstance(value, SparseMatrix):
        return value
    if is_sparse_matrix(value):
        matrix = value.tocoo()
        row, col = matrix.coords
        return SparseMatrix(matrix.data, row, col, matrix.shape, scipy_sparse.isspmatrix(value))
    dense = cnp.atleast_2d(value)
    numbers = tensor_of(dense).detach()._array
    if is_known(numbers):
        row, col = np.nonzero(numbers)
    else:  # in a compiled function or under vmap, all elements are stored
        row, col = (part.ravel() for part in np.indices(dense.shape))
    return SparseMatrix(dense[row, col], row, col, dense.shape)


def rearranged(function: Callable[..., Any], *matrices: Any) -> Any:
    """Return what a function of SciPy's that moves elements makes of matrices that record.

    It moves numbers of the elements, by which these are then taken.
    """
    parts, labels, count = [recorded(matrix) for matrix in matrices], [], 0
    for part in parts:
        numbers = np.arange(count + 1.0, count + part.nnz + 1)
        labels.append(scipy_sparse.coo_array((numbers, (part.row, part.col)), shape=part.shape))
        if np.unique(part.places).size < part.nnz:
            merged = _merged(part)
            return rearranged(function, *[merged if p is part else p for p in parts])
        count += part.nnz
    moved = function(*labels)
    elements = cnp.concatenate([part.data for part in parts])
    if not scipy_sparse.issparse(moved):
        return elements[np.asarray(moved, int).ravel() - 1] if np.any(moved) else elements[:0]
    coo = moved.tocoo()
    shape = coo.shape if len(coo.shape) == 2 else (1, *coo.shape)
    row, col = coo.coords if len(coo.coords) == 2 else (np.zeros_like(coo.coords[0]), *coo.coords)
    numbers = np.rint(coo.data).astype(int)
    kept = numbers > 0
    return SparseMatrix(
        elements[numbers[kept] - 1], row[kept], col[kept], shape, parts[0].is_matrix
    )


def _merged(matrix: SparseMatrix) -> SparseMatrix:
    """Return a matrix in which no place occurs twice."""
    flat, inverse = np.unique(matrix.places, return_inverse=True)
    total = zeros(flat.size, dtype=matrix.dtype)
    data = ops.index_add(total, 0, make(inverse, None), tensor_of(matrix.data))
    row, col = np.divmod(flat, matrix.shape[1])
    return SparseMatrix(as_ndarrays(data), row, col, matrix.shape, matrix.is_matrix)


def _product(left: SparseMatrix, right: SparseMatrix) -> SparseMatrix:
    """Return the product of two matrices: of each element with those of a row of the other."""
    if left.shape[1] != right.shape[0]:
        raise ShapeError(f"matmul: sparse matrices of the shapes {left.shape} and {right.shape}")
    order = np.argsort(right.row, kind="stable")
    starts = np.searchsorted(right.row[order], np.arange(right.shape[0] + 1))
    counts = np.diff(starts)[left.col]
    first = np.repeat(np.arange(left.nnz), counts)
    within = np.arange(first.size) - np.repeat(np.cumsum(counts) - counts, counts)
    second = order[starts[left.col][first] + within]
    return SparseMatrix(
        left.data[first] * right.data[second],
        left.row[first],
        right.col[second],
        (left.shape[0], right.shape[1]),
        left.is_matrix,
    )
