"""Sparse tensors of coordinates (COO) or of rows (CSR) and values, as graph networks use them.

>>> import chainrule as cr
>>> adjacency = cr.sparse_coo_tensor([[0, 1, 1], [1, 0, 1]], [1.0, 2.0, 3.0], (2, 2))
>>> cr.sparse.mm(adjacency, cr.tensor([[1.0], [10.0]]))
tensor([[10.],
        [32.]])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.arguments import DeviceLike, DTypeLike, Operand, dtype_of, one_dim, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.creation import arange, full, tensor, zeros
from chainrule.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from chainrule.missing_names import missing
from chainrule.ops import cat, index_reduce, nonzero, searchsorted, stack
from chainrule.ops.matmul import MatrixLike
from chainrule.ops.triplets import product_of_triplets

__all__ = [
    "DoubleTensor",
    "FloatTensor",
    "SparseCSRTensor",
    "SparseTensor",
    "addmm",
    "mm",
    "sampled_addmm",
    "softmax",
    "sparse_coo_tensor",
    "sparse_csr_tensor",
    "sum",
    "to_sparse",
    "to_sparse_csr",
]


class SparseTensor(MatrixLike):
    """A sparse tensor: the indices of some elements, and their values; all others are 0.

    `sparse_coo_tensor` and `Tensor.to_sparse` make it. It is no `Tensor`: it has the products and
    conversions that graph networks use, and `to_dense` for everything else. Its derivatives are
    those by `values`, a `Tensor`.

    Parameters
    ----------
    indices : Tensor of int64, shape (dimensions, n)
        The coordinates in columns. Values of equal coordinates are added.
    values : Tensor, shape (n,)
        The values.
    shape : tuple of int
        The shape.
    is_coalesced : bool, default False
        Whether the coordinates are sorted and occur once.
    """

    def __init__(
        self, indices: Tensor, values: Tensor, shape: tuple[int, ...], is_coalesced: bool = False
    ) -> None:
        self._index, self._data, self._shape = indices, values, shape
        self._coalesced = is_coalesced

    def _like(self, values: Tensor) -> SparseTensor:
        return SparseTensor(self._index, values, self._shape, self._coalesced)

    # --- description ---

    is_sparse, is_sparse_csr = True, False
    layout = "torch.sparse_coo"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return self._shape

    def size(self, dim: int | None = None) -> Any:
        """Return the shape, or the size of a dimension."""
        return self._shape if dim is None else self._shape[dim]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self._shape)

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self._data.dtype

    @property
    def device(self) -> Any:
        """The device of the values."""
        return self._data.device

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the values are recorded."""
        return self._data.requires_grad

    @property
    def grad(self) -> SparseTensor | None:
        """The gradient by the values, at their coordinates, or None."""
        grad = self._data.grad
        return None if grad is None else self._like(grad)

    def is_coalesced(self) -> bool:
        """Return whether the coordinates are sorted and occur once."""
        return self._coalesced

    def _nnz(self) -> int:
        return int(self._data.shape[0])

    def indices(self) -> Tensor:
        """Return the coordinates, of shape (dimensions, n), of a coalesced tensor."""
        self._check_coalesced("indices")
        return self._index

    def values(self) -> Tensor:
        """Return the values, of shape (n,), of a coalesced tensor."""
        self._check_coalesced("values")
        return self._data

    def _check_coalesced(self, name: str) -> None:
        if not self._coalesced:
            raise ArgumentError(
                f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first: "
                "coordinates may occur several times"
            )

    def _indices(self) -> Tensor:
        return self._index

    def _values(self) -> Tensor:
        return self._data

    def __repr__(self) -> str:
        index = repr(self._index.detach()).replace("\n", "\n" + " " * 15)
        values = repr(self._data).replace("\n", "\n" + " " * 14)
        return (
            f"tensor(indices={index},\n       values={values},\n       size={self._shape}, "
            f"nnz={self._nnz()}, layout={self.layout})"
        )

    # --- conversion ---

    def coalesce(self) -> SparseTensor:
        """Return it with sorted coordinates, and the sums of values of equal ones."""
        if self._coalesced:
            return self
        coordinates = self._index.cpu().numpy()
        keys = np.ravel_multi_index(tuple(coordinates), self._shape)
        found, positions = np.unique(keys, return_inverse=True)
        total = zeros(len(found), dtype=self.dtype, device=self.device)
        values = total.index_add(0, tensor(positions, device=self.device), self._data)
        index = np.stack(np.unravel_index(found, self._shape))
        return SparseTensor(tensor(index, device=self.device), values, self._shape, True)

    def to_dense(self) -> Tensor:
        """Return an ordinary tensor with the same elements."""
        dense = zeros(self._shape, dtype=self.dtype, device=self.device)
        return dense.index_put(tuple(self._index.unbind(0)), self._data, accumulate=True)

    def to_sparse(self, *args: Any) -> SparseTensor:
        """Return this."""
        return self

    def to_sparse_csr(self) -> SparseCSRTensor:
        """Return a matrix by its rows, coalesced."""
        if self.ndim != 2:
            raise ShapeError(f"to_sparse_csr: expected a matrix, got the shape {list(self._shape)}")
        x = self.coalesce()
        rows, cols = x._index.unbind(0)
        starts = arange(self._shape[0] + 1, device=self.device)
        return SparseCSRTensor(searchsorted(rows, starts), cols, x._data, self._shape)

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Convert the values, and move values and coordinates, as `Tensor.to`."""
        values = self._data.to(*args, **kwargs)
        index = self._index.to(values.device)
        return SparseTensor(index, values, self._shape, self._coalesced)

    def cpu(self) -> SparseTensor:
        """Move it to the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = "cuda", non_blocking: bool = False) -> SparseTensor:
        """Move it to a GPU."""
        return self.to(self._data.cuda(device).device)

    def float(self) -> SparseTensor:
        """Convert the values to float32."""
        return self.to("float32")

    def double(self) -> SparseTensor:
        """Convert the values to float64."""
        return self.to("float64")

    def detach(self) -> SparseTensor:
        """Return it with values outside of the graph."""
        return self._like(self._data.detach())

    def clone(self) -> SparseTensor:
        """Return it with a copy of the values."""
        return self._like(self._data.clone())

    def requires_grad_(self, requires_grad: bool = True) -> SparseTensor:
        """Start or stop recording operations on the values."""
        self._data.requires_grad_(requires_grad)
        return self

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Return it with two dimensions swapped."""
        order = list(range(self.ndim))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        index = stack([self._index[i] for i in order])
        return SparseTensor(index, self._data, tuple(self._shape[i] for i in order))

    def t(self) -> SparseTensor:
        """Return the transposed matrix."""
        return self.transpose(0, 1)

    T = property(t)

    # --- arithmetic ---

    def __matmul__(self, dense: Operand) -> Tensor:
        if isinstance(dense, SparseTensor):
            raise ArgumentError(
                "matmul: a product of two sparse tensors is not supported: say a @ b.to_dense()"
            )
        x = tensor_of(dense)
        if self.ndim != 2 or x.ndim not in (1, 2) or x.shape[0] != self._shape[1]:
            raise ShapeError(
                "matmul: expected a sparse matrix and a matrix or vector that fits, got the "
                f"shapes {list(self._shape)} and {list(x.shape)}"
            )
        if x.dtype != self.dtype:
            raise DTypeError(f"matmul: expected the same dtype, got {self.dtype} and {x.dtype}")
        columns = x.unsqueeze(1) if x.ndim == 1 else x
        rows, cols = self._index.unbind(0)
        product = product_of_triplets(rows, cols, self._data, columns, self._shape[0])
        return product.squeeze(1) if x.ndim == 1 else product

    def __rmatmul__(self, dense: Operand) -> Tensor:
        return (self.t() @ tensor_of(dense).mT).mT

    mm = matmul = mv = __matmul__

    def __mul__(self, other: Any) -> SparseTensor:
        if isinstance(other, SparseTensor):
            return self * other.to_dense()
        factor = other
        if isinstance(other, Tensor) and other.ndim:
            factor = other.expand(self._shape)[tuple(self._index.unbind(0))]
        return self._like(self._data * factor)

    __rmul__ = mul = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._like(self._data / other)

    def __neg__(self) -> SparseTensor:
        return self._like(-self._data)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, SparseTensor):
            return tensor_of(other) + self.to_dense()
        if other.shape != self._shape:
            raise ShapeError(
                f"add: expected sparse tensors of one shape, got {list(self._shape)} and "
                f"{list(other.shape)}"
            )
        index, values = cat([self._index, other._index], 1), cat([self._data, other._data])
        return SparseTensor(index, values, self._shape).coalesce()

    __radd__ = __add__
    # NumPy arrays and tensors leave sums and products to this class.
    __array_ufunc__ = None

    def sum(self, dim: int | None = None) -> Any:
        """Return the sum of all elements, a `Tensor`, or over a dimension: see `sparse.sum`."""
        return sum(self, dim)


class SparseCSRTensor(SparseTensor):
    """A sparse matrix by its rows: where each one starts among the columns and values.

    `sparse_csr_tensor` and `Tensor.to_sparse_csr` make it. It has all that a `SparseTensor` has.

    Parameters
    ----------
    crow_indices : Tensor of int64, shape (rows + 1,)
        The number of values before each row, and of all.
    col_indices : Tensor of int64, shape (n,)
        The columns of the values, row by row.
    values : Tensor, shape (n,)
        The values.
    shape : tuple of two ints
        The shape.
    """

    is_sparse, is_sparse_csr = False, True
    layout = "torch.sparse_csr"

    def __init__(
        self, crow_indices: Tensor, col_indices: Tensor, values: Tensor, shape: tuple[int, ...]
    ) -> None:
        self._crow = crow_indices
        places = arange(len(col_indices), device=values.device)
        rows = searchsorted(crow_indices[1:], places, right=True)
        super().__init__(stack([rows, col_indices]), values, shape)

    def _like(self, values: Tensor) -> SparseTensor:
        return SparseCSRTensor(self._crow, self._index[1], values, self._shape)

    def crow_indices(self) -> Tensor:
        """Return the number of values before each row, and of all."""
        return self._crow

    def col_indices(self) -> Tensor:
        """Return the columns of the values."""
        return self._index[1]

    def values(self) -> Tensor:
        """Return the values, of shape (n,)."""
        return self._data

    def to_sparse(self, *args: Any, layout: Any = None) -> SparseTensor:
        """Return it by coordinates; by rows, if that is the layout."""
        if layout == self.layout:
            return self
        return SparseTensor(self._index, self._data, self._shape)

    def to_sparse_coo(self) -> SparseTensor:
        """Return it by coordinates."""
        return self.to_sparse()

    def to_sparse_csr(self) -> SparseCSRTensor:
        """Return this."""
        return self

    def to(self, *args: Any, **kwargs: Any) -> SparseTensor:
        """Convert the values, and move values and indices, as `Tensor.to`."""
        values = self._data.to(*args, **kwargs)
        indices = self._crow.to(values.device), self._index[1].to(values.device)
        return SparseCSRTensor(*indices, values, self._shape)

    def __repr__(self) -> str:
        crow, col, values = [
            repr(t).replace("\n", "\n" + " " * 14) for t in (self._crow, self._index[1], self._data)
        ]
        return (
            f"tensor(crow_indices={crow},\n       col_indices={col},\n       values={values}, "
            f"size={self._shape}, nnz={self._nnz()}, layout={self.layout})"
        )


# --- products ------------------------------------------------------------------------------------


def mm(mat1: SparseTensor, mat2: Operand, reduce: str | None = None) -> Tensor:
    """Return the product of a sparse matrix and a dense one.

    Parameters
    ----------
    mat1 : SparseTensor, shape (m, k)
    mat2 : Tensor, shape (k, n)
        Of its dtype.
    reduce : {"sum", "mean", "amax", "amin"}, default "sum"
        How the products of the elements of a row and the rows of `mat2` are combined; 0 in rows
        without elements.

    Returns
    -------
    Tensor, shape (m, n)

    Notes
    -----
    Derivatives: those of `matmul`, by the values at the coordinates of `mat1` alone. By SciPy where
    it is installed. With `reduce`, those of `scatter_reduce`.
    """
    if reduce in (None, "sum"):
        return mat1 @ mat2
    rows, cols = mat1._index
    terms = mat1._data[:, None] * tensor_of(mat2)[cols]
    out = zeros(mat1.shape[0], terms.shape[1], dtype=terms.dtype, device=terms.device)
    return index_reduce(out, 0, rows, terms, str(reduce), include_self=False)


def sampled_addmm(
    input: SparseTensor, mat1: Operand, mat2: Operand, *, beta: float = 1, alpha: float = 1
) -> SparseTensor:
    """Return beta · input + alpha · (mat1 @ mat2), of the elements of a sparse matrix alone.

    Parameters
    ----------
    input : SparseTensor, shape (m, n)
        The matrix at whose coordinates the product is computed.
    mat1, mat2 : Tensors, shapes (m, k) and (k, n)
        The factors.
    beta, alpha : number, default 1
        The factors of `input` and of the product.

    Returns
    -------
    SparseTensor, of the layout and the coordinates of `input`

    Notes
    -----
    In O(k) operations for each element. Derivatives: by the values and by both factors.

    Examples
    --------
    >>> import chainrule as cr
    >>> edges = cr.sparse_coo_tensor([[0, 1], [1, 0]], [0.0, 0.0], (2, 2))
    >>> factors = cr.tensor([[1.0], [2.0]]), cr.tensor([[3.0, 5.0]])
    >>> cr.sparse.sampled_addmm(edges, *factors).to_dense()
    tensor([[0., 5.],
            [6., 0.]])
    """
    a, b = tensor_of(mat1), tensor_of(mat2)
    if a.ndim != 2 or b.ndim != 2 or input.shape != (a.shape[0], b.shape[1]):
        raise ShapeError(
            "sparse.sampled_addmm: expected factors of shapes (m, k) and (k, n) for a matrix of "
            f"shape {list(input.shape)}, got {list(a.shape)} and {list(b.shape)}"
        )
    input = input if input.is_sparse_csr else input.coalesce()
    rows, cols = input._index
    products = (a[rows] * b.T[cols]).sum(1)
    return input._like(beta * input._data + alpha * products)


def addmm(
    mat: Operand, mat1: SparseTensor, mat2: Operand, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """Return beta · mat + alpha · (mat1 @ mat2), of a sparse matrix `mat1`.

    Examples
    --------
    >>> import chainrule as cr
    >>> addmm(cr.ones(2, 2), cr.eye(2).to_sparse(), cr.eye(2), alpha=2)
    tensor([[3., 1.],
            [1., 3.]])
    """
    return beta * tensor_of(mat) + alpha * (mat1 @ mat2)


def sum(input: SparseTensor, dim: int | None = None) -> Any:
    """Return the sum of all elements, a `Tensor`, or the sparse sum over a dimension.

    Examples
    --------
    >>> import chainrule as cr
    >>> sum(cr.eye(2).to_sparse()), sum(cr.eye(2).to_sparse(), 0).to_dense()
    (tensor(2.), tensor([1., 1.]))
    """
    if dim is None:
        return input._data.sum()
    kept = [i for i in range(input.ndim) if i != one_dim(dim, input.ndim)]
    index = stack([input._index[i] for i in kept])
    shape = tuple(input.shape[i] for i in kept)
    return SparseTensor(index, input._data, shape).coalesce()


def softmax(input: SparseTensor, dim: int) -> SparseTensor:
    """Return the softmax over a dimension, among the elements that have values.

    Parameters
    ----------
    input : SparseTensor
        Elements without a value count as -inf.
    dim : int
        The dimension over which the result sums to 1.

    Returns
    -------
    SparseTensor, shape of `input`
        Coalesced.

    Examples
    --------
    >>> import chainrule as cr
    >>> scores = cr.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], [1.0, 1.0, 5.0])
    >>> softmax(scores, 1).to_dense()
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    x = input.coalesce()
    others = [i for i in range(x.ndim) if i != one_dim(dim, x.ndim)]
    group, count = zeros(x._nnz(), dtype="int64", device=x.device), 1
    for i in others:
        group, count = group * x.shape[i] + x._index[i], count * x.shape[i]
    values = x._data
    least = full((count,), -np.inf, dtype=x.dtype, device=x.device)
    greatest = least.scatter_reduce(0, group, values.detach(), "amax")
    exps = (values - greatest.index_select(0, group)).exp()
    total = zeros(count, dtype=x.dtype, device=x.device).index_add(0, group, exps)
    return x._like(exps / total.index_select(0, group))


# --- making sparse tensors -----------------------------------------------------------------------


def sparse_coo_tensor(
    indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    is_coalesced: bool | None = None,
) -> SparseTensor:
    """Return a sparse tensor of coordinates and values.

    Parameters
    ----------
    indices : Tensor, array or nested list of int, shape (dimensions, n)
        The coordinates in columns. Values of equal coordinates are added.
    values : Tensor, array or list, shape (n,)
        The values, whose history is kept.
    size : sequence of int, optional
        The shape: the least one that holds all coordinates if left out.
    dtype, device
        Of the values: theirs if left out.
    requires_grad : bool, default False
        Whether operations on the values are to be recorded: they become a leaf.
    is_coalesced : bool, optional
        Whether the coordinates are known to be sorted and to occur once.

    Returns
    -------
    SparseTensor

    Raises
    ------
    ShapeError
        If the shapes don't fit.
    OutOfBoundsError
        If a coordinate is outside of the shape.

    Examples
    --------
    >>> import chainrule as cr
    >>> s = cr.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
    >>> s.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 5.]])
    """
    given = _values(values, dtype, device, requires_grad)
    index = _index(indices, given.device)
    if index.ndim != 2 or given.shape != index.shape[1:]:
        raise ShapeError(
            "sparse_coo_tensor: expected indices of shape (dimensions, n) and values of shape "
            f"(n,), got {list(index.shape)} and {list(given.shape)}"
        )
    known = is_known(index._array)
    if size is None:
        size = [int(n) + 1 for n in index.max(1).values] if index.shape[1] else [0] * len(index)
    shape = tuple(int(n) for n in size)
    if len(shape) != index.shape[0]:
        raise ShapeError(
            f"sparse_coo_tensor: expected {len(shape)} rows of indices for the shape "
            f"{list(shape)}, got {index.shape[0]}"
        )
    if known and index.shape[1]:
        least, greatest = index.min(1).values.tolist(), index.max(1).values.tolist()
        if min(least) < 0 or any(n >= limit for n, limit in zip(greatest, shape, strict=True)):
            raise OutOfBoundsError(
                f"sparse_coo_tensor: coordinates between {least} and {greatest} are outside of the "
                f"shape {list(shape)}"
            )
    return SparseTensor(index, given, shape, bool(is_coalesced))


def _values(values: Any, dtype: DTypeLike, device: DeviceLike, requires_grad: bool) -> Tensor:
    """Return the values of a new sparse tensor."""
    given = tensor_of(values) if isinstance(values, Tensor) else tensor(values, dtype=dtype)
    if dtype is not None or device is not None:
        given = given.to(given.device if device is None else device).to(
            dtype_of(dtype or given.dtype)
        )
    return given.detach().requires_grad_() if requires_grad else given


def _index(indices: Any, device: DeviceLike) -> Tensor:
    """Return the indices of a new sparse tensor."""
    index = tensor_of(indices) if isinstance(indices, Tensor) else tensor(indices)
    return index.to("int64").to(device)


def to_sparse(
    input: Tensor, sparse_dim: int | None = None, *, layout: str | None = None
) -> SparseTensor:
    """Return a tensor's elements that aren't 0 as a sparse tensor.

    Parameters
    ----------
    input : Tensor
    sparse_dim : int, optional
        As in PyTorch: all dimensions.
    layout : sparse_coo or sparse_csr, optional
        Coordinates, by default, or rows.

    Returns
    -------
    SparseTensor
        Coalesced. The gradient of its values reaches these elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse().indices()
    tensor([[0],
            [1]])
    """
    if sparse_dim not in (None, input.ndim):
        raise ArgumentError(
            f"to_sparse: all dimensions become sparse, got sparse_dim={sparse_dim} for {input.ndim}"
        )
    index = nonzero(input.detach()).mT
    found = SparseTensor(index, input[tuple(index.unbind(0))], tuple(input.shape), True)
    return found.to_sparse_csr() if layout == SparseCSRTensor.layout else found


def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Sequence[int] | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
) -> SparseCSRTensor:
    """Return a sparse matrix by its rows.

    Parameters
    ----------
    crow_indices : Tensor, array or list of int, shape (rows + 1,)
        The number of values before each row, and of all.
    col_indices : Tensor, array or list of int, shape (n,)
        The columns of the values, row by row.
    values : Tensor, array or list, shape (n,)
        The values, whose history is kept.
    size : two ints, optional
        The shape: as many columns as the indices need, if left out.
    dtype, device, requires_grad
        As for `sparse_coo_tensor`.

    Returns
    -------
    SparseCSRTensor

    Raises
    ------
    ShapeError
        If the shapes don't fit.
    ArgumentError
        If `crow_indices` don't begin with 0, end with n and grow.
    OutOfBoundsError
        If a column is outside of the shape.

    Examples
    --------
    >>> import chainrule as cr
    >>> s = cr.sparse_csr_tensor([0, 1, 3], [1, 0, 1], [1.0, 2.0, 3.0], (2, 2))
    >>> s @ cr.tensor([1.0, 10.0])
    tensor([10., 32.])
    """
    given = _values(values, dtype, device, requires_grad)
    crow, col = [_index(each, given.device) for each in (crow_indices, col_indices)]
    if crow.ndim != 1 or not len(crow) or col.ndim != 1 or given.shape != col.shape:
        raise ShapeError(
            "sparse_csr_tensor: expected crow_indices of shape (rows + 1,), col_indices and values "
            f"of shape (n,), got {list(crow.shape)}, {list(col.shape)} and {list(given.shape)}"
        )
    if size is None:
        size = len(crow) - 1, int(col.max()) + 1 if len(col) else 0
    shape = tuple([int(n) for n in size])
    if len(shape) != 2 or shape[0] != len(crow) - 1:
        raise ShapeError(
            f"sparse_csr_tensor: {len(crow)} crow_indices are of {len(crow) - 1} rows, but the "
            f"shape is {list(shape)}"
        )
    if is_known(crow._array) and is_known(col._array):
        _check_rows(crow, col, shape)
    return SparseCSRTensor(crow, col, given, shape)


def _check_rows(crow: Tensor, col: Tensor, shape: tuple[int, ...]) -> None:
    """Raise if the indices of a sparse matrix by its rows are invalid."""
    if int(crow[0]) or int(crow[-1]) != len(col) or bool((crow.diff() < 0).any()):
        raise ArgumentError(
            "sparse_csr_tensor: crow_indices must grow from 0 to the number of values, "
            f"{len(col)}, got {crow.tolist()}"
        )
    if len(col) and not 0 <= int(col.min()) <= int(col.max()) < shape[1]:
        raise OutOfBoundsError(
            f"sparse_csr_tensor: columns between {int(col.min())} and {int(col.max())} are outside "
            f"of the shape {list(shape)}"
        )


def to_sparse_csr(input: Tensor) -> SparseCSRTensor:
    """Return a matrix's elements that aren't 0 as a sparse matrix by its rows.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.eye(2).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return to_sparse(input).to_sparse_csr()


class _SparseType(type):
    """Metaclass of PyTorch's former constructors."""

    dtype: Any

    def __call__(cls, indices: Any = None, values: Any = None, size: Any = None) -> SparseTensor:
        if values is None:
            raise ArgumentError(f"sparse.{cls.__name__}: expected indices, values and a size")
        return sparse_coo_tensor(indices, values, size, dtype=cls.dtype)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, SparseTensor) and value.dtype == cls.dtype


class FloatTensor(metaclass=_SparseType):
    """Sparse tensors of float32: PyTorch's former constructor, of indices, values and a size."""

    dtype = np.dtype("float32")


class DoubleTensor(metaclass=_SparseType):
    """Sparse tensors of float64: PyTorch's former constructor, of indices, values and a size."""

    dtype = np.dtype("float64")


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
