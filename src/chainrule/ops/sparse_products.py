"""Products of SciPy's sparse matrices, which are constants, with tensors."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from chainrule.autograd.function import Function
from chainrule.autograd.record import FOREIGN_PRODUCTS
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import ArgumentTypeError
from chainrule.ops.indexing import index_select
from chainrule.ops.reshape import unsqueeze
from chainrule.ops.scatter import index_add

LISTED = ("csr", "csc", "coo")
"""Formats that list their elements and their places."""


def is_sparse_matrix(x: Any) -> bool:
    """Return whether `x` is a sparse matrix or array of SciPy's."""
    return type(x).__module__.startswith("scipy.sparse") and _scipy_sparse().issparse(x)


def _scipy_sparse() -> Any:
    return sys.modules["scipy.sparse"]


def sparse_product(left: Any, right: Any, *, elementwise: bool = False) -> Tensor:
    """Return the product of a sparse matrix and a tensor, in either order.

    With `elementwise`, it was written with ``*``, which multiplies matrices as ``@`` does, but not
    sparse arrays.
    """
    matrix = left if is_sparse_matrix(left) else right
    if elementwise and not (right if matrix is left else left).ndim:
        found: Tensor = import_module("chainrule.scipy.sparse").scaled(
            matrix, right if matrix is left else left
        )
        return found
    if elementwise and not _scipy_sparse().isspmatrix(matrix):
        raise ArgumentTypeError(
            f"multiply(): the elementwise product of a {type(matrix).__name__} and a Tensor is not "
            "recorded: write @ for the matrix product, or multiply by A.toarray()"
        )
    if matrix is left:
        return _product(matrix, right)
    return _product(matrix.T, left.mT).mT if left.ndim > 1 else _product(matrix.T, left)


def _of_operator(name: str, a: Any, b: Any) -> Any:
    """Return the result of an operator on a tensor and a sparse matrix."""
    if name not in ("multiply", "matmul") or not (is_sparse_matrix(a) or is_sparse_matrix(b)):
        return NotImplemented
    return sparse_product(a, b, elementwise=name == "multiply")


FOREIGN_PRODUCTS.append(_of_operator)


def _product(matrix: Any, dense: Tensor) -> Tensor:
    if dense._array.__class__ is np.ndarray:
        found: Tensor = _Product.apply(dense, matrix)
        return found
    matrix = matrix if matrix.format in LISTED else matrix.tocsr()
    rows, cols = _places(matrix)
    columns = unsqueeze(dense, 1) if dense.ndim == 1 else dense
    terms = make(matrix.data, None)[:, None] * index_select(columns, 0, make(cols, None))
    total = make(np.zeros((matrix.shape[0], columns.shape[1]), terms.dtype), None)
    found = index_add(total, 0, make(rows, None), terms)
    return found[:, 0] if dense.ndim == 1 else found


def _places(matrix: Any) -> tuple[Any, Any]:
    """Return the rows and columns of the elements in `matrix.data`."""
    if matrix.format == "coo":
        return matrix.row, matrix.col
    numbers = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    return (numbers, matrix.indices) if matrix.format == "csr" else (matrix.indices, numbers)


class _Product(Function):
    """The product by SciPy; its derivatives are products again."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Any) -> Any:
        ctx.matrix = matrix
        return make(np.asarray(matrix @ dense._array), None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        adjoint = ctx.matrix.T.conj() if ctx.matrix.dtype.kind == "c" else ctx.matrix.T
        return _product(adjoint, grad), None

    @staticmethod
    def jvp(ctx: Any, d_dense: Any, _: Any) -> Any:
        return _product(ctx.matrix, d_dense)
