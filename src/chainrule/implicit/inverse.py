"""Linear systems with the Jacobian of a residual: dense, or by products with it."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from chainrule.autograd.location import user_stack_level
from chainrule.autograd.modes import no_grad, run_in
from chainrule.autograd.node import Edge
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import LazyModule, is_known, ndarray, numpy_xp, whole
from chainrule.backend.extensions import SCIPY
from chainrule.creation import eye
from chainrule.errors import ArgumentError, AutogradError, LinAlgError
from chainrule.linalg import solve
from chainrule.ops import where
from chainrule.transforms.vmap.batched_array import BatchedArray
from chainrule.transforms.vmap.vmap import batched_pass, vmap_for

MAX_DENSE = 1000
"""Number of unknowns up to which the Jacobian is computed and factorised by default."""

SINGULAR = 1e-14
"""Ratio of a pivot to the largest below which a Jacobian counts as singular."""

FAR = 1e-3
"""Relative length of the next Newton step from which a solution counts as not converged."""


class Graph(Protocol):
    """The graph of a residual: see `RecordedResidual`."""

    array: Any
    unknown: Edge

    def vjp(self, g: Any, targets: Sequence[Edge], *, recorded: bool) -> list[Any]: ...
    def jvp(self, edges: Sequence[Edge], tangents: Sequence[Tensor | None]) -> Tensor: ...
    def runs_own_code_only(self) -> bool: ...


class Linearization:
    """A residual near its solution: the value there, and products with the Jacobian."""

    def __init__(
        self,
        graph: Graph,
        value: Any,
        within: Callable[[Callable[[], Any]], Any],
        title: str,
    ) -> None:
        self._graph = graph
        self.value = value
        self.within = within  # calls a function under the vmap that the solution belongs to
        self.title = title

    @property
    def residual(self) -> Tensor:
        """The value of the residual, which should be zero."""
        return make(self._graph.array, None)

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return int(self.value.shape[0])

    def row(self, g: Tensor) -> Tensor:
        """Return gᵀA."""
        (found,) = self._graph.vjp(g._array, [self._graph.unknown], recorded=False)
        return make(found, None)

    def column(self, t: Tensor) -> Tensor:
        """Return A t."""
        return self._graph.jvp([self._graph.unknown], [t])

    def matrix(self) -> Tensor:
        """Return A."""
        units = eye(self.size, dtype=self.value.dtype)
        if self.size == 1:
            return self.row(units[0])[None]
        if self._graph.runs_own_code_only():
            return batched_pass(self.title, self.row, lambda unit: [self.row(unit)], units)[0]
        found: Tensor = vmap_for(self.title, self.row, self.row, units)
        return found


class Inverse(ABC):
    """Solves linear systems with the Jacobian of a residual at its solution."""

    def __init__(self, at: Linearization) -> None:
        self._at = at

    @property
    def scale(self) -> float:
        """The largest magnitude among the unknowns."""
        return float(np.abs(whole(self._at.value)).max(initial=0))

    def solve(self, b: Tensor, transposed: bool) -> Tensor:
        """Return A⁻¹ b or A⁻ᵀ b, not recorded."""
        return run_in(no_grad(), self._solve, b, transposed)

    @abstractmethod
    def _solve(self, b: Tensor, transposed: bool) -> Tensor: ...


class DenseInverse(Inverse):
    """The Jacobian and, of a single one, its LU decomposition, computed when first needed."""

    _found: tuple[Tensor, Any] | None = None

    def _solve(self, b: Tensor, transposed: bool) -> Tensor:
        matrix, factors = self._system()
        return _solved(matrix, factors, b, transposed)

    def _system(self) -> tuple[Tensor, Any]:
        if self._found is None:
            self._found = self._at.within(lambda: run_in(no_grad(), self._factorise))
        return self._found

    def _factorise(self) -> tuple[Tensor, Any]:
        at = self._at
        matrix = at.matrix()
        array = matrix._array
        if not is_known(array):  # of a compiled function: nothing can be checked
            return matrix, None
        single = array.__class__ is ndarray
        factors = numpy_xp.lu_factor(array) if single else None
        diagonal = factors[0].diagonal() if factors else _pivots(whole(array))
        diagonal = np.abs(diagonal)
        _check_finite(at, diagonal)
        if (diagonal <= SINGULAR * diagonal.max(axis=-1, keepdims=True, initial=0)).any():
            raise LinAlgError(
                f"{at.title}: the Jacobian of the residual by the {at.size} unknowns is singular "
                "at the solution, so that it has no unique derivative: some unknowns don't change "
                "the residual, or only together. Fix them, or add a term that decides, such as a "
                "small penalty"
            )
        self._check_converged(_solved(matrix, factors, at.residual, False))
        return matrix, factors

    def _check_converged(self, step: Tensor) -> None:
        length = np.abs(whole(step._array)).max(initial=0)
        if length > FAR * self.scale and length > FAR:
            warnings.warn(
                f"{self._at.title}: the residual is not zero at the solution that was found: a "
                f"Newton step from there changes it by {length:.2g}, where the largest unknown is "
                f"{self.scale:.2g}. Its derivative is not that of the exact solution: give the "
                "solver a smaller tolerance or more iterations, and check that the residual "
                "describes the solver's problem",
                UserWarning,
                stacklevel=user_stack_level(),
            )


def _solved(matrix: Tensor, factors: Any, b: Tensor, transposed: bool) -> Tensor:
    if factors is not None and b._array.__class__ is ndarray:
        found = numpy_xp.lu_solve(*factors, b._array[:, None], transposed=transposed)
        return make(found[:, 0], None)
    return solve(matrix.T if transposed else matrix, b[:, None])[:, 0]


def _pivots(matrices: Any) -> Any:
    """Return the pivots of the LU decompositions of a stack of matrices."""
    return np.diagonal(numpy_xp.factorize(matrices, pivot=True)[0], 0, -2, -1)


def _check_finite(at: Linearization, diagonal: Any) -> None:
    """Raise if there is nan or inf in the solution, the residual or the pivots."""
    arrays = {
        "solution": whole(at.value),
        "residual": whole(at.residual._array),
        "Jacobian of the residual": diagonal,
    }
    found = [name for name, array in arrays.items() if not np.isfinite(array).all()]
    if found:
        raise AutogradError(
            f"{at.title}: the {found[0]} has nan or inf, so that there is no derivative: look for "
            "nan in the data, and for functions outside of their domain, such as log of 0, at the "
            "solution"
        )


class DiagonalInverse(Inverse):
    """The Jacobian of equations of which each has an unknown of its own: its diagonal."""

    _found: Tensor | None = None

    def _solve(self, b: Tensor, transposed: bool) -> Tensor:
        if self._found is None:
            self._found = self._at.within(lambda: run_in(no_grad(), self._diagonal))
        flat = (self._found == 0) & (b != 0)
        if whole(flat._array).any():
            raise LinAlgError(
                f"{self._at.title}: at a multiple root, where the slope is 0, a root has no "
                "derivative: leave such roots out of the result, or change the problem slightly"
            )
        found: Tensor = b / where(self._found == 0, 1, self._found)
        return found

    def _diagonal(self) -> Tensor:
        return self._at.row(make(np.ones(self._at.size, self._at.value.dtype), None))


class KrylovInverse(Inverse):
    """Solves by products with the Jacobian: `scipy.sparse.linalg.gmres` or `cg`."""

    def __init__(self, at: Linearization, method: str) -> None:
        super().__init__(at)
        self.method = method

    def _solve(self, b: Tensor, transposed: bool) -> Tensor:
        array, at = b._array, self._at
        if isinstance(array, BatchedArray) or isinstance(at.value, BatchedArray):
            raise ArgumentError(
                f"{at.title}: linear_solver={self.method!r} solves one system at a time, and not "
                'under vmap: say "dense", or loop over the examples'
            )
        multiply = at.row if transposed and self.method != "cg" else at.column

        def product(v: Any) -> Any:
            return multiply(make(v.astype(array.dtype).reshape(-1), None))._array

        operator = _LINALG.LinearOperator((at.size, at.size), matvec=product, dtype=array.dtype)
        rtol = float(np.finfo(array.dtype).eps) ** 0.75
        settings = {} if self.method == "cg" else {"restart": min(at.size, 100)}
        found, info = getattr(_LINALG, self.method)(operator, array, rtol=rtol, **settings)
        if info:
            raise AutogradError(
                f"{at.title}: {self.method} did not solve the linear system of {at.size} unknowns "
                "with the Jacobian of the residual, which is singular or ill-conditioned: say "
                'linear_solver="dense", scale the unknowns to similar magnitudes, or regularise'
            )
        return make(np.asarray(found, array.dtype), None)


_LINALG = LazyModule("scipy.sparse.linalg", SCIPY)

LINEAR_SOLVERS = ("dense", "gmres", "cg")


def inverse_maker(title: str, linear_solver: str | None, size: int) -> Any:
    """Return the function that makes an `Inverse`, of the kind that was asked for or suits."""
    if linear_solver not in (None, *LINEAR_SOLVERS):
        raise ArgumentError(
            f'{title}: linear_solver is "dense", "gmres", "cg" (for a symmetric positive definite '
            f"Jacobian) or None, but got {linear_solver!r}"
        )
    if linear_solver == "dense" or (linear_solver is None and size <= MAX_DENSE):
        return DenseInverse
    return lambda at: KrylovInverse(at, linear_solver or "gmres")
