"""`scipy.sparse.linalg` over tensors: solutions, eigenvalues, exponentials, operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule import ops
from chainrule.autograd.function import Function
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, namespace
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.creation import zeros
from chainrule.errors import ArgumentTypeError, LinAlgError
from chainrule.interop.operands import tensor_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import has_tensors, namespace_of
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.linalg.matrix_functions import expm as dense_expm
from chainrule.scipy.sparse import operators
from chainrule.scipy.sparse.matrix import SparseMatrix, is_sparse, recorded, scipy_sparse
from chainrule.transforms.vmap.batched_array import BatchedArray
from chainrule.transforms.vmap.namespace import data_of, deepest_level

_scipys = LazyModule("scipy.sparse.linalg", SCIPY)


class _System:
    """The places of a matrix's elements, and the factors of the matrix of the last numbers."""

    def __init__(self, row: Any, col: Any, size: int) -> None:
        self.row, self.col, self.size = row, col, size
        self._of: Any = None
        self._factors: Any = None

    def solve(self, data: Any, rhs: Any, transposed: bool) -> Any:
        """Return the solution for arrays: at once for examples that share the matrix."""
        level = deepest_level((data, rhs))
        if level is None:
            return self._of_numbers(data, rhs, transposed)
        data, rhs = data_of(level, data), data_of(level, rhs)
        if data.shape[0] == 1:
            xp = namespace(rhs)
            columns = xp.moveaxis(rhs, 0, -1)
            found = self.solve(data[0], columns.reshape(self.size, -1), transposed)
            return BatchedArray(level, xp.moveaxis(found.reshape(columns.shape), -1, 0))
        sides = [rhs[0]] * data.shape[0] if rhs.shape[0] == 1 else rhs
        found = [self.solve(*each, transposed) for each in zip(data, sides, strict=True)]
        return BatchedArray(level, namespace(found[0]).stack(found))

    def _of_numbers(self, data: Any, rhs: Any, transposed: bool) -> Any:
        if self._of is not data:
            places, shape = (self.row, self.col), (self.size, self.size)
            matrix = scipy_sparse.csc_array((data, places), shape=shape)
            try:
                self._factors = _scipys.splu(matrix)
            except RuntimeError as error:
                raise LinAlgError(f"spsolve: {error}: the matrix has no inverse") from None
            self._of = data
        is_complex = np.iscomplexobj(rhs) and not np.iscomplexobj(data)
        mode = "T" if transposed else "N"
        if is_complex:
            real, imag = [
                self._factors.solve(np.ascontiguousarray(p), mode) for p in (rhs.real, rhs.imag)
            ]
            return real + 1j * imag
        kind = np.result_type(data, rhs)
        return self._factors.solve(np.ascontiguousarray(rhs, kind), mode)


class _Solve(Function):
    """The solution x of A x = b, by the elements of A and by b; a search may have found it.

    With A' λ = g, the cotangents of b and of the element A[i, j] are λ and -λ[i] x[j].
    """

    @staticmethod
    def forward(
        ctx: Any, data: Tensor, rhs: Tensor, system: Any, transposed: bool, found: Any
    ) -> Any:
        ctx.system, ctx.transposed = system, transposed
        if found is None:
            found = system.solve(data._array, rhs._array, transposed)
        x = make(found if is_array(found) else np.asarray(found), None)
        ctx.save_for_backward(data, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        data, x = ctx.saved_tensors
        conj = data.is_complex()
        adjoint = ops.conj(data) if conj else data
        adjoint_solution = _Solve.apply(adjoint, grad, ctx.system, not ctx.transposed, None)
        by_data = None
        if ctx.needs_input_grad[0]:
            rows, cols = _places(ctx)
            terms = adjoint_solution.index_select(0, rows) * ops.conj(x).index_select(0, cols)
            by_data = -(terms if x.ndim == 1 else terms.sum(1))
            if by_data.is_complex() and not conj:
                by_data = ops.real(by_data)
        return by_data, adjoint_solution, None, None, None

    @staticmethod
    def jvp(ctx: Any, d_data: Any, d_rhs: Any, *_: Any) -> Any:
        data, x = ctx.saved_tensors
        change = d_rhs
        if d_data is not None:
            rows, cols = _places(ctx)
            parts = x.index_select(0, cols)
            terms = parts * (d_data if x.ndim == 1 else d_data.unsqueeze(1))
            moved = zeros(x.shape, dtype=terms.dtype).index_add(0, rows, terms)
            change = -moved if change is None else change - moved
        return _Solve.apply(data, change, ctx.system, ctx.transposed, None)


def _places(ctx: Any) -> tuple[Tensor, Tensor]:
    rows, cols = make(ctx.system.row, None), make(ctx.system.col, None)
    return (cols, rows) if ctx.transposed else (rows, cols)


def _solution(A: Any, b: Any, found: Any = None, transposed: bool = False) -> Any:
    if is_sparse(b):
        raise ArgumentTypeError("the right side of a sparse system is sparse: pass b.toarray()")
    matrix = recorded(A)
    system = _System(matrix.row, matrix.col, matrix.shape[0])
    data, rhs = tensor_of(matrix.data), tensor_of(cnp.asarray(b))
    solution = _Solve.apply(data, rhs * 1.0, system, transposed, found)
    return as_ndarrays(ops.clone(solution))  # which a program may write to


def _is_recorded(*values: Any) -> bool:
    return any([isinstance(value, SparseMatrix) or has_tensors(value) for value in values])


def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:
    """Return the solution of a sparse linear system, recorded by its elements and right side."""
    if not _is_recorded(A, b):
        return _scipys.spsolve(A, b, permc_spec, use_umfpack)
    columns = b.toarray() if is_sparse(b) else cnp.asarray(b)
    if columns.ndim == 2 and columns.shape[1] == 1:
        return _solution(A, cnp.ravel(columns))
    found = _solution(A, columns)
    return recorded(found) if is_sparse(b) else found


def inv(A: Any) -> Any:
    """Return the inverse, of which all elements are stored."""
    if not isinstance(A, SparseMatrix):
        return _scipys.inv(A)
    return recorded(_solution(A, np.eye(A.shape[0])))


def spsolve_triangular(A: Any, b: Any, lower: bool = True, *args: Any, **settings: Any) -> Any:
    """Return the solution of a triangular system."""
    if not _is_recorded(A, b):
        return _scipys.spsolve_triangular(A, b, lower, *args, **settings)
    return _solution(A, b)


class _Factors:
    """The factors of a matrix: `solve` records."""

    def __init__(self, A: Any) -> None:
        self._matrix, self.shape = A, A.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Return the solution of A x = rhs, of its transpose or of its adjoint."""
        matrix = recorded(self._matrix)
        if trans == "H":
            matrix = matrix.conj()
        return _solution(matrix, rhs, transposed=trans != "N")

    __call__ = solve


class _EitherFactors:
    """SciPy's factors, whose `solve` records where it gets what is differentiated."""

    def __init__(self, factors: Any, A: Any) -> None:
        self._factors, self._matrix = factors, A

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Return the solution of A x = rhs, of its transpose or of its adjoint."""
        if _is_recorded(rhs):
            return _Factors(self._matrix).solve(rhs, trans)
        return self._factors.solve(rhs, trans)

    def __call__(self, rhs: Any) -> Any:
        return self.solve(rhs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._factors, name)


def splu(A: Any, *args: Any, **settings: Any) -> Any:
    """Return an object whose `solve` solves systems with the matrix."""
    return _Factors(A) if _is_recorded(A) else _EitherFactors(_scipys.splu(A, *args, **settings), A)


def factorized(A: Any) -> Any:
    """Return a function that solves systems with the matrix."""
    return splu(A if isinstance(A, SparseMatrix) else A.tocsc())


def _search(name: str) -> Callable[..., Any]:
    def search(A: Any, b: Any, *args: Any, **settings: Any) -> Any:
        if not is_sparse(A):
            return operators.solve_by_search(name, A, b, *args, **settings)
        found, info = operators.found_by(name, A, b, *args, **settings)
        return _solution(A, cnp.reshape(b, found.shape), found._array), info

    search.__doc__ = f"Return the solution that {name} finds, recorded as that of the system."
    return search


_SEARCHES = (
    "cg",
    "bicg",
    "bicgstab",
    "cgs",
    "gmres",
    "lgmres",
    "minres",
    "qmr",
    "gcrotmk",
    "tfqmr",
)


def norm(x: Any, ord: Any = None, axis: Any = None) -> Any:
    """Return the norm of a sparse matrix: of one that records that of its dense array."""
    if not isinstance(x, SparseMatrix):
        return _scipys.norm(x, ord, axis)
    return cnp.linalg.norm(x.toarray(), ord, axis)


def _matrix_power(A: Any, power: int) -> Any:
    """Return a power of a square matrix."""
    found = recorded(scipy_sparse.eye_array(A.shape[0]))
    for _ in range(power):
        found = found @ A
    return found


def _expm(A: Any) -> Any:
    """Return the exponential, of which all elements are stored."""
    return recorded(dense_expm(recorded(A).toarray()))


_RECORDED: dict[str, Callable[..., Any]] = {
    **{name: _search(name) for name in _SEARCHES},
    **{
        name: functools.partial(operators.least_squares_by_search, name)
        for name in ("lsqr", "lsmr")
    },
    **{name: functools.partial(operators.eigenpairs, name) for name in ("eigsh", "eigs")},
    "svds": operators.singular_values,
    "expm_multiply": operators.exponential_times,
    "expm": _expm,
    "matrix_power": _matrix_power,
}
"""Functions of what is differentiated, for SciPy's."""

_OPERATORS: dict[str, Callable[[], Any]] = {
    "LinearOperator": operators.linear_operator,
    "aslinearoperator": lambda: operators.as_operator,
}


def _find(name: str) -> Any:
    scipys = getattr(_scipys, name)
    if name in _OPERATORS:
        return _OPERATORS[name]()
    is_function = callable(scipys) and not isinstance(scipys, type)
    return _either(name, scipys) if is_function else scipys


def _either(name: str, scipys: Callable[..., Any]) -> Callable[..., Any]:
    """Return SciPy's function, and ours where a matrix, an operator or an array records."""
    ours = _RECORDED.get(name)

    @explaining(f"scipy.sparse.linalg.{name}")
    def either(*args: Any, **settings: Any) -> Any:
        given = [*args, *settings.values()]
        if not any([_is_recorded(value) or operators.is_operator(value) for value in given]):
            return scipys(*args, **settings)
        if ours is None:
            raise operators.no_rule(name)
        return ours(*args, **settings)

    either.__name__, either.__doc__ = name, scipys.__doc__
    return either


__getattr__, __dir__ = namespace_of("scipy.sparse.linalg", _find)
