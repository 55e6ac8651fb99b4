"""`scipy.sparse` over tensors: matrices whose elements record. The other names are SciPy's own.

Given arrays and numbers, a function is SciPy's own; given what is differentiated, it returns a
`SparseMatrix`.

>>> import numpy as np
>>> import chainrule as cr
>>> sparse = cr.scipy.sparse
>>> def end(conductivity):
...     A = sparse.diags([-1.0, 2.0 + conductivity, -1.0], [-1, 0, 1], shape=(3, 3))
...     return sparse.linalg.spsolve(A.tocsc(), np.ones(3))[2]
>>> round(cr.grad(end)(0.5), 4)
-0.7336
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.interop.operands import arrays_of
from chainrule.scipy.dispatch import either_class, has_tensors, namespace_of
from chainrule.scipy.sparse import csgraph as csgraph
from chainrule.scipy.sparse import linalg as linalg
from chainrule.scipy.sparse.matrix import SparseMatrix as SparseMatrix
from chainrule.scipy.sparse.matrix import is_sparse, rearranged, recorded, scipy_sparse


def scaled(matrix: Any, factor: Any) -> SparseMatrix:
    """Return the product of a sparse matrix and a number that records."""
    return recorded(matrix).multiply(factor)


def issparse(x: Any) -> bool:
    """Return whether `x` is a sparse matrix or array."""
    return is_sparse(x)


# --- matrices from elements -----------------------------------------------------------------------


def _from(name: str, arg1: Any, shape: Any = None, **_: Any) -> SparseMatrix:
    """Return a matrix of elements and their places, or of a dense one."""
    is_matrix = name.endswith("matrix")
    if not isinstance(arg1, tuple):
        found = recorded(arg1)
        return SparseMatrix(found.data, found.row, found.col, found.shape, is_matrix)
    if name.startswith("dia"):
        return _diags(list(arg1[0]), arg1[1], shape=shape, in_columns=True, is_matrix=is_matrix)
    data = cnp.asarray(arg1[0])
    numbers = scipy_sparse.coo_array
    if len(arg1) == 3:  # of compressed rows or columns
        numbers = getattr(scipy_sparse, f"{name[:3]}_array")
    labels = numbers((np.arange(1.0, data.size + 1), *arrays_of(arg1[1:])), shape=shape).tocoo()
    row, col = labels.coords
    return SparseMatrix(data[labels.data.astype(int) - 1], row, col, labels.shape, is_matrix)


def _diags(
    diagonals: Any,
    offsets: Any = 0,
    shape: Any = None,
    *_: Any,
    in_columns: bool = False,
    is_matrix: bool = True,
    **__: Any,
) -> SparseMatrix:
    """Return a matrix of diagonals, which may be numbers."""
    if np.ndim(arrays_of(offsets)) == 0:
        is_one = len(diagonals) == 0 or np.ndim(diagonals[0]) == 0
        diagonals, offsets = [diagonals if is_one else diagonals[0]], [offsets]
    lines = [cnp.atleast_1d(line) for line in diagonals]
    if shape is None:
        length = lines[0].size + abs(int(offsets[0]))
        shape = (length, length)
    rows, cols, parts = [], [], []
    for line, offset in zip(lines, map(int, offsets), strict=True):
        row = np.arange(max(-offset, 0), min(shape[0], shape[1] - offset))
        rows.append(row)
        cols.append(row + offset)
        parts.append(line[row + offset] if in_columns else cnp.broadcast_to(line, row.shape))
    return SparseMatrix(
        cnp.concatenate(parts), np.concatenate(rows), np.concatenate(cols), shape, is_matrix
    )


def _diags_array(diagonals: Any, /, *, offsets: Any = 0, shape: Any = None, **_: Any) -> Any:
    return _diags(diagonals, offsets, shape, is_matrix=False)


def _spdiags(data: Any, offsets: Any, m: Any = None, n: Any = None, format: Any = None) -> Any:
    shape = m if n is None else (m, n)
    rows = cnp.atleast_2d(data)
    return _diags(list(rows), np.atleast_1d(offsets), shape=shape, in_columns=True)


# --- matrices from others -------------------------------------------------------------------------


def _stacked(name: str, blocks: Any, format: Any = None) -> Any:
    blocks = list(blocks)
    return rearranged(lambda *labels: getattr(scipy_sparse, name)(labels), *blocks)


def _of_blocks(name: str, blocks: Any, *_: Any, **__: Any) -> Any:
    rows = [list(row) for row in blocks]
    given = [block for row in rows for block in row if block is not None]

    def join(*labels: Any) -> Any:
        remaining = iter(labels)
        return getattr(scipy_sparse, name)(
            [[None if block is None else next(remaining) for block in row] for row in rows]
        )

    return rearranged(join, *given)


def _part(name: str, A: Any, k: int = 0, format: Any = None) -> Any:
    return rearranged(lambda labels: getattr(scipy_sparse, name)(labels, k), A)


def _kron(A: Any, B: Any, format: Any = None) -> Any:
    """Return the product of each element with each of the other matrix."""
    a, b = recorded(A), recorded(B)
    first, second = np.repeat(np.arange(a.nnz), b.nnz), np.tile(np.arange(b.nnz), a.nnz)
    row = a.row[first] * b.shape[0] + b.row[second]
    col = a.col[first] * b.shape[1] + b.col[second]
    shape = (a.shape[0] * b.shape[0], a.shape[1] * b.shape[1])
    return SparseMatrix(a.data[first] * b.data[second], row, col, shape, a.is_matrix)


def _kronsum(A: Any, B: Any, format: Any = None) -> Any:
    a, b = recorded(A), recorded(B)
    eyes = [scipy_sparse.eye_array(m.shape[0]) for m in (a, b)]
    return _kron(eyes[1], a) + _kron(b, eyes[0])


_FORMATS = [f"{form}_{kind}" for form in ("coo", "csr", "csc", "dia", "lil", "dok", "bsr")
            for kind in ("matrix", "array")]  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: functools.partial(_from, name) for name in _FORMATS},
    **{name: functools.partial(_stacked, name) for name in ("hstack", "vstack", "block_diag")},
    **{name: functools.partial(_of_blocks, name) for name in ("bmat", "block_array")},
    **{name: functools.partial(_part, name) for name in ("tril", "triu")},
    **{"diags": _diags, "diags_array": _diags_array, "spdiags": _spdiags},
    **{"kron": _kron, "kronsum": _kronsum},
}
"""Functions of SciPy's that make a `SparseMatrix` of what is differentiated."""


def _records(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any([_records(part) for part in value])
    return isinstance(value, SparseMatrix) or has_tensors(value)


def _find(name: str) -> Any:
    scipys = getattr(scipy_sparse, name)
    if name not in _FUNCTIONS:
        return scipys
    ours = _typed(scipys, _FUNCTIONS[name])
    if isinstance(scipys, type):
        return either_class(scipys, ours, _records, SparseMatrix)
    return _function(scipys, ours)


def _typed(scipys: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose result has the type of elements that SciPy's `dtype` asks for."""
    signature = inspect.signature(scipys)

    def typed(*args: Any, **settings: Any) -> Any:
        given = signature.bind(*args, **settings)
        dtype = given.arguments.pop("dtype", None)
        found = ours(*given.args, **given.kwargs)
        return found if dtype is None else found.astype(dtype)

    return typed


def _function(scipys: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(scipys)
    def either(*args: Any, **settings: Any) -> Any:
        of_ours = _records(args) or _records(list(settings.values()))
        return (ours if of_ours else scipys)(*args, **settings)

    return either


__getattr__, __dir__ = namespace_of("scipy.sparse", _find)
