"""Functions of `scipy.sparse.linalg` that read a matrix by its products, by their equations.

The matrix is sparse, dense or an operator. SciPy finds the result, and the equation that it
fulfils gives its derivatives, by the implicit function theorem.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

import chainrule.numpy as cnp
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import make
from chainrule.backend import is_known
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.errors import MissingRuleError
from chainrule.implicit import implicit_function
from chainrule.implicit.examples import with_numbers
from chainrule.interop.operands import arrays_of, tensor_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import RUN_AGAIN, missing_rule
from chainrule.scipy.own_code import run_again
from chainrule.scipy.sparse.matrix import SparseMatrix, is_sparse, recorded, scipy_sparse

_scipys = LazyModule("scipy.sparse.linalg", SCIPY)

_INTERFACE = "scipy.sparse.linalg._interface"


class Products(NamedTuple):
    """The products A x and Aᴴ x, the shape and the type of a matrix."""

    times: Callable[[Any], Any]
    adjoint_times: Callable[[Any], Any]
    shape: tuple[int, int]
    dtype: Any


def linear_operator() -> Any:
    """Return SciPy's class of operators, whose functions get arrays that record."""
    return run_again(_INTERFACE).LinearOperator


def as_operator(A: Any) -> Any:
    """Return an operator with the products of a matrix."""
    if not isinstance(A, SparseMatrix):
        return run_again(_INTERFACE).aslinearoperator(A)
    found = products(A)
    return linear_operator()(
        A.shape,
        matvec=found.times,
        rmatvec=found.adjoint_times,
        matmat=found.times,
        rmatmat=found.adjoint_times,
        dtype=A.dtype,
    )


def is_operator(A: Any) -> bool:
    """Return whether a matrix has only products."""
    return isinstance(A, Products) or (hasattr(A, "matvec") and hasattr(A, "shape"))


def _method(A: Any, name: str) -> Any:
    return getattr(A, f"_{name}", None) or getattr(A, name, None)


def _of_vectors(product: Any) -> Any:
    """Return a product whose results for vectors are vectors: SciPy's are columns."""

    def times(x: Any) -> Any:
        found = product(x)
        return cnp.reshape(found, -1) if np.ndim(x) == 1 else found

    return product and times


def _run_again(A: Any) -> Any:
    """Return SciPy's own operator, of constants, as one of its code that was run again."""
    if isinstance(A, tuple):
        return tuple(map(_run_again, A))
    kind = type(A)
    if kind.__module__ != _INTERFACE or hasattr(kind, RUN_AGAIN):
        return A
    made = object.__new__(getattr(run_again(_INTERFACE), kind.__name__))
    vars(made).update({name: _run_again(value) for name, value in vars(A).items()})
    return made


def products(A: Any) -> Products:
    """Return the products of a sparse or dense matrix, or of an operator."""
    if isinstance(A, Products):
        return A
    if is_operator(A):  # private methods of SciPy's class don't ask for numbers
        A = _run_again(A)
        times, adjoint = [_of_vectors(_method(A, name)) for name in ("matvec", "rmatvec")]
        return Products(times, adjoint, A.shape, getattr(A, "dtype", None) or np.dtype(float))
    matrix = recorded(A) if is_sparse(A) else cnp.asarray(A)
    return Products(matrix.dot, matrix.conj().T.dot, matrix.shape, matrix.dtype)


def numbers_of(A: Any) -> Any:
    """Return what SciPy computes with: a matrix or an operator without history."""
    if isinstance(A, SparseMatrix):
        places = (A.row, A.col)
        data = np.asarray(tensor_of(A.data).detach())
        return scipy_sparse.csc_array((data, places), shape=A.shape)
    if not is_operator(A):
        return arrays_of(A)
    times, adjoint, shape, dtype = products(A)

    def of_numbers(product: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def multiply(x: Any) -> Any:
            with no_grad():
                return arrays_of(product(x))

        return multiply

    return _scipys.LinearOperator(shape, of_numbers(times), of_numbers(adjoint), dtype=dtype)


def found_by(name: str, *args: Any, **settings: Any) -> list[Any]:
    """Return the results of a function of SciPy's as constants, for each example of a vmap."""

    def compute() -> list[Any]:
        given = [numbers_of(value) for value in args]
        others = {key: numbers_of(value) for key, value in settings.items()}
        found = getattr(_scipys, name)(*given, **others)
        return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]

    found = with_numbers(f"scipy.sparse.linalg.{name}", compute)
    return [x[()] if is_known(x) and not x.ndim else as_ndarrays(make(x, None)) for x in found]


def _solution(start: Any, residual: Callable[[Any], Any]) -> Any:
    return implicit_function(lambda: start, residual)()


# --- linear systems and least squares -------------------------------------------------------------


def solve_by_search(name: str, A: Any, b: Any, *args: Any, **settings: Any) -> Any:
    """Return the solution of A x = b that a search of SciPy's finds, and its report."""
    times = products(A).times
    found, info = found_by(name, A, b, *args, **settings)
    shape = np.shape(found)  # SciPy's of a column
    return _solution(found, lambda x: times(x) - cnp.reshape(b, shape)), info


def least_squares_by_search(
    name: str, A: Any, b: Any, damp: Any = 0.0, *args: Any, **settings: Any
) -> Any:
    """Return the results of `lsqr` or `lsmr`: the solution by its normal equations.

    With fewer equations than unknowns it is Aᴴ y, where y solves A Aᴴ y + damp² y = b.
    """
    times, adjoint, (rows, columns), _ = products(A)
    start, *rest = found_by(name, A, b, damp, *args, **settings)
    b = cnp.ravel(cnp.asarray(b))

    def normal(x: Any) -> Any:
        return adjoint(times(x) - b) + damp * damp * x

    def of_rows(y: Any) -> Any:
        return times(adjoint(y)) + damp * damp * y - b

    if rows < columns:
        tight = {"atol": 1e-15, "btol": 1e-15}
        y, *_ = found_by(name, Products(adjoint, times, (columns, rows), A.dtype), start, **tight)
        x = adjoint(_solution(y, of_rows))
    else:
        x = _solution(start, normal)
    return x, *_norms(name, rest, x, b - times(x), damp, adjoint)


def _norms(name: str, rest: Any, x: Any, error: Any, damp: Any, adjoint: Any) -> list[Any]:
    """Return the other results: norms are those of the solution, estimates and counts SciPy's."""
    norm = cnp.linalg.norm
    values = {
        "r1norm": norm(error),
        "r2norm": cnp.sqrt(norm(error) ** 2 + (damp * norm(x)) ** 2),
        "arnorm": norm(adjoint(error) - damp * damp * x),
        "xnorm": norm(x),
    }
    names = {
        "lsqr": ("istop", "itn", "r1norm", "r2norm", "anorm", "acond", "arnorm", "xnorm", "var"),
        "lsmr": ("istop", "itn", "r2norm", "arnorm", "anorm", "acond", "xnorm"),
    }
    return [values.get(each, found) for each, found in zip(names[name], rest, strict=True)]


# --- eigenvalues and singular values --------------------------------------------------------------


def _pair(times: Any, inner: Any, value: Any, vector: Any) -> tuple[Any, Any]:
    """Return an eigenvalue and its vector, of which A v = w M v, and v keeps its phase."""
    weights = cnp.conj(vector)

    def residual(pair: Any) -> Any:
        v, w = pair["v"], pair["w"]
        return {"pair": times(v) - w * inner(v), "phase": cnp.sum(weights * inner(v)) - 1}

    found = _solution({"v": vector, "w": value}, residual)
    return found["w"], found["v"]


def _length(v: Any, other: Any) -> Any:
    return cnp.sqrt(cnp.real(cnp.sum(cnp.conj(v) * other)))


def eigenpairs(name: str, A: Any, k: int = 6, M: Any = None, *args: Any, **settings: Any) -> Any:
    """Return eigenvalues and vectors as `eigsh` and `eigs` find them."""
    vectors_too = settings.pop("return_eigenvectors", True)
    values, vectors = found_by(name, A, k, M, *args, **settings)
    order: Any = range(values.shape[0])
    if not vectors_too:  # SciPy has another order then
        alone = found_by(name, A, k, M, *args, return_eigenvectors=False, **settings)[0]
        order = cnp.argmin(cnp.abs(alone[:, None] - values), axis=1)
    times = products(A).times
    inner = products(M).times if M is not None else lambda v: v
    metric = inner if name == "eigsh" else lambda v: v
    pairs = []
    for i in order:
        v = vectors[:, i]
        with no_grad():
            scale = cnp.sum(cnp.conj(v) * inner(v))
        w, v = _pair(times, inner, values[i], v / cnp.sqrt(scale))
        length = _length(v, metric(v))
        pairs.append((cnp.real(w) if name == "eigsh" else w, v / length))
    w, v = [cnp.stack(part, axis=-1) for part in zip(*pairs, strict=True)]
    return (w, v) if vectors_too else w


def singular_values(A: Any, k: int = 6, *args: Any, **settings: Any) -> Any:
    """Return singular values and vectors as `svds` finds them.

    They are eigenvalues of [[0, A], [Aᴴ, 0]], with the eigenvectors (u, v) / √2.
    """
    wanted = settings.pop("return_singular_vectors", True)
    times, adjoint, (rows, _), _ = products(A)
    lefts, values, rights = found_by("svds", A, k, *args, **settings)

    def both(x: Any) -> Any:
        return cnp.concatenate([times(x[rows:]), adjoint(x[:rows])])

    parts = []
    for i in range(values.shape[0]):
        start = cnp.concatenate([lefts[:, i], cnp.conj(rights[i])]) / np.sqrt(2)
        w, x = _pair(both, lambda x: x, values[i], start)
        x = x * (np.sqrt(2) / _length(x, x))
        parts.append((x[:rows], cnp.real(w), cnp.conj(x[rows:])))
    u, s, vh = [cnp.stack(part) for part in zip(*parts, strict=True)]
    if wanted is False:
        return s
    return u.T if wanted != "vh" else None, s, vh if wanted != "u" else None


# --- exponentials ---------------------------------------------------------------------------------


@functools.cache
def _exponentials() -> Any:
    """Return SciPy's code, which chooses the length of its series by norms of numbers."""
    code = run_again("scipy.sparse.linalg._expm_multiply")
    own = import_module("scipy.sparse.linalg._expm_multiply")
    for name in ("_exact_1_norm", "_exact_inf_norm", "onenormest"):
        setattr(code, name, functools.partial(_of_numbers, getattr(own, name)))
    return code


def _of_numbers(norm: Callable[[Any], Any], A: Any) -> Any:
    return norm(numbers_of(A))


def exponential_times(A: Any, B: Any, *args: Any, **settings: Any) -> Any:
    """Return exp(A) B, by SciPy's own code with products that record."""
    matrix = recorded(A) if is_sparse(A) else A if is_operator(A) else cnp.asarray(A)
    dense = B.toarray() if is_sparse(B) else cnp.asarray(B)
    found = _exponentials().expm_multiply(matrix, dense, *args, **settings)
    return recorded(found) if is_sparse(B) else found


def no_rule(name: str) -> MissingRuleError:
    """Return the error of a function that has no derivative."""
    return missing_rule(
        f"scipy.sparse.linalg.{name}", "take A.toarray() and the function of scipy.linalg"
    )
