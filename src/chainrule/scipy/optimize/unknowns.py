"""The unknowns of a problem: a tree for the user's functions, a vector for SciPy."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.conversions import DifferentiatedError
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.modes import enable_grad, is_grad_enabled, run_in
from chainrule.autograd.node import ErrorNode
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.backend import LazyModule, is_known, whole
from chainrule.backend.extensions import SCIPY
from chainrule.errors import ArgumentError, AutogradError, ShapeError
from chainrule.implicit.examples import with_numbers
from chainrule.implicit.solutions import are_arrays, numbers_of, without_history
from chainrule.implicit.vectors import VectorLayout, vector_of
from chainrule.interop.operands import arrays_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import missing_rule, without_rule
from chainrule.scipy.error_texts import explaining
from chainrule.transforms.arguments import title_of
from chainrule.transforms.kinds import kind_of

OPTIMIZE = LazyModule("scipy.optimize", SCIPY)


class Unknowns:
    """The start of a solver, its structure, and the calls of the user's functions.

    Functions get Tensors where the start has Tensors, and elsewhere what behaves as NumPy's arrays.
    """

    def __init__(self, title: str, x0: Any) -> None:
        if isinstance(x0, list | tuple) and _holds_numbers(x0):
            x0 = np.asarray(x0, float)  # as SciPy does, also with integers and float32
        elif type(x0) is np.ndarray and x0.dtype.kind in "iuf":
            x0 = x0.astype(float)
        elif isinstance(x0, int) and not isinstance(x0, bool):
            x0 = float(x0)
        self.title, self.x0 = title, x0
        self.layout = VectorLayout(f"{title}: x0", x0)
        if not self.layout.size:
            raise ArgumentError(f"{title}: x0 has no numbers: there is nothing to solve for")
        self.as_arrays = are_arrays(x0)
        self._kinds = [kind_of(leaf) for leaf in self.layout.leaves]
        self._is_array = self.layout.is_vector and isinstance(x0, np.ndarray)

    @property
    def size(self) -> int:
        """The number of real unknowns."""
        return self.layout.size

    def start(self) -> Any:
        """Return the vector at which SciPy begins."""
        vector = numbers_of(vector_of(f"{self.title}: x0", self.x0))
        if not np.isfinite(vector).all():
            raise ArgumentError(f"{self.title}: x0 has nan or inf: begin at finite numbers")
        return vector

    def recorded(self, vector: Tensor) -> Any:
        """Return the tree of a tensor, through which gradients flow."""
        return self.layout.tree_of(vector, self.as_arrays)

    def plain(self, vector: Any) -> Any:
        """Return the tree of an array for a function: arrays for arrays and numbers.

        A number is an array without dimensions, of which a compiled function needs one program.
        """
        if self._is_array:
            return vector
        parts = self.layout.split(make(vector.copy(), None))
        found = [part._array if self.as_arrays else part for part in parts]
        return pytree.with_leaves(self.x0, found)

    def result(self, vector: Any) -> Any:
        """Return the tree of an array in the kinds of the start."""
        if self._is_array:
            return vector
        parts = self.layout.split(make(vector.copy(), None))
        pairs = zip(self._kinds, parts, strict=True)
        return pytree.with_leaves(self.x0, [kind(part.clone()) for kind, part in pairs])

    def vector(self, what: str, tree: Any) -> Any:
        """Return the array of a tree of numbers that belong to the unknowns, such as a gradient."""
        if tree.__class__ is np.ndarray and tree.ndim == 1 and tree.dtype.kind == "f":
            found = tree
        else:
            found = numbers_of(vector_of(f"{self.title}: {what}", tree))
        if found.shape != (self.size,):
            raise ShapeError(
                f"{self.title}: {what} has {found.size} numbers for {self.size} unknowns: it must "
                "have the structure and the shapes of x0"
            )
        return found


def _holds_numbers(x0: Any) -> bool:
    return all(
        isinstance(leaf, int | float | np.number)
        if pytree.children(leaf) is None
        else isinstance(leaf, list | tuple) and _holds_numbers(leaf)
        for leaf in x0
    )


def vector_start(x0: Any) -> Any:
    """Return the start of MINPACK's functions, which make a vector of a number."""
    return np.array([x0], float) if isinstance(x0, int | float | np.number) else x0


def by_rows(jac: Any, col_deriv: bool) -> Any:
    """Return the function of a Jacobian matrix, given one of its columns if `col_deriv`."""
    if jac is None or not col_deriv:
        return jac
    return lambda *given: np.asarray(jac(*given)).T


def recording(derivative: Any) -> Any:
    """Return a derivative as the user computes it, which may run backward passes of its own."""
    if not callable(derivative):
        return derivative
    return functools.wraps(derivative)(functools.partial(run_in, enable_grad(), derivative))


# --- functions without derivatives ----------------------------------------------------------------


@functools.cache
def by_numbers(name: str, scipys: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of SciPy's that takes arrays which record nothing as NumPy's.

    So do the functions among its arguments return them: SciPy's compiled code takes no others.
    """

    @explaining(name)
    @functools.wraps(scipys)
    def function(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = _as_numbers(name, args), _as_numbers(name, kwargs)
        return scipys(*args, **kwargs)

    found: Callable[..., Any] = without_rule(function)
    return found


def _as_numbers(name: str, value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.requires_grad and is_grad_enabled():
            raise missing_rule(
                name,
                "cr.implicit_function(solver, residual) gives its solution one, by the equation "
                "that it fulfils",
            )
        return numbers_of(value) if is_known(value._array) else value
    if value.__class__ in (list, tuple):
        return value.__class__([_as_numbers(name, part) for part in value])
    if value.__class__ is dict:
        return {key: _as_numbers(name, part) for key, part in value.items()}
    if isinstance(value, types.FunctionType | types.MethodType | functools.partial):

        @functools.wraps(value)
        def function(*args: Any, **kwargs: Any) -> Any:
            return _as_numbers(name, value(*args, **kwargs))

        return function
    return value


# --- calls of the user's functions ----------------------------------------------------------------


def as_args(args: Any) -> tuple[Any, ...]:
    """Return the extra arguments of a function: SciPy takes a single one without a tuple."""
    return args if isinstance(args, tuple) else (args,)


def scalar(title: str, function: Any, value: Any) -> Any:
    """Return the value of an objective, checked: one real number, computed by what is recorded."""
    value = pytree.without_labels(value)
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.dtype.kind not in "fiub":
            raise ArgumentError(
                f"{title}: the objective must return one real number, but {title_of(function)} "
                f"returned a tensor of shape {list(value.shape)} and dtype {value.dtype}: reduce "
                "it with sum() or mean(). least_squares() minimises a sum of squares"
            )
        if not value.requires_grad and is_grad_enabled():
            raise _unrecorded(title, f"the objective {title_of(function)}")
        return value if value.ndim == 0 else value.reshape(())
    if np.ndim(value) == 0 and is_grad_enabled():
        raise _unrecorded(title, f"the objective {title_of(function)}")
    if np.size(value) != 1:
        raise ArgumentError(
            f"{title}: the objective must return one real number, but {title_of(function)} "
            f"returned a {type(value).__name__} of shape {list(np.shape(value))}: reduce it with "
            "sum() or mean()"
        )
    return np.asarray(value).reshape(())


def _unrecorded(title: str, what: str) -> DifferentiatedError:
    return DifferentiatedError(
        f"{title}: {what} doesn't depend on the unknowns, its first argument, by operations that "
        "are recorded: compute it from them with NumPy's or chainrule's functions, give the "
        "derivative as jac=, or make a differentiable function of foreign code with chainrule.wrap"
    )


def check_recorded(title: str, function: Any, vector: Tensor) -> None:
    """Raise if the vector of a system of equations doesn't depend on the unknowns."""
    if is_grad_enabled() and not vector.requires_grad:
        raise _unrecorded(title, f"the result of {title_of(function)}")


def check_first(title: str, function: Any, values: Any, args: Any) -> None:
    """Raise if the values at the start are nan; say where nan is in the data."""
    if not np.isnan(values).any():
        return
    names = [f"args{path}" for path, leaf in pytree.leaves(args) if _has_nan(leaf)]
    where = "look for nan in the data, and begin where the function is defined"
    if names:
        where = f"there is nan in {', '.join(names)}"
    raise ArgumentError(f"{title}: {title_of(function)} is nan at x0: {where}")


def _has_nan(leaf: Any) -> bool:
    array = np.asarray(arrays_of(leaf))
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def without_rules(result: Any, as_arrays: bool, mend: str) -> None:
    """Give matrices and gradients of SciPy's a history, which raises where it is differentiated.

    They depend on what the solution `x` depends on, and a number would count as a constant.
    """
    sources = [x for _, x in pytree.leaves(result.x) if isinstance(x, Tensor) and x.requires_grad]
    for name in _WITHOUT_RULES & result.keys():
        array = result[name]
        if sources and isinstance(array, np.ndarray) and array.dtype.kind == "f":
            reason = f"`{name}` of the result, which SciPy computed, has no derivative: {mend}"
            edges = tuple([current_node(x) for x in sources])
            found = make(array, ErrorNode(reason, edges))
            result[name] = as_ndarrays(found) if as_arrays else found


_WITHOUT_RULES = frozenset(["jac", "grad", "hess", "hess_inv", "multipliers", "fjac", "r"])


def has_history(tree: Any) -> bool:
    """Whether a part of a result requires grad."""
    return any([isinstance(x, Tensor) and x.requires_grad for _, x in pytree.leaves(tree)])


def warn_of_failure(title: str, results: Sequence[Any], found: Any) -> None:
    """Warn if a solver did not converge and the solution that it found has derivatives.

    Not if rounding alone kept it from a small tolerance: whether the solution is good enough is
    seen when a derivative is computed.
    """
    flags = [each.get("success", each.get("converged")) for each in results]
    texts = [str(each.get("message", each.get("flag"))).strip().rstrip(".") for each in results]
    failed = [
        text
        for text, flag in zip(texts, flags, strict=True)
        if not flag and not any(words in text for words in _ROUNDING)
    ]
    if failed and has_history(found):
        message = " ".join(failed[0].split())
        warnings.warn(
            f"{title} did not converge: {message}. Derivatives of its result are those of an exact "
            "solution: begin nearer to it, scale the unknowns to similar magnitudes, or allow more "
            "iterations",
            UserWarning,
            stacklevel=user_stack_level(),
        )


_ROUNDING = ("precision loss", "ABNORMAL", "Positive directional derivative", "Linear search")
"""Words of SciPy's messages where rounding is larger than the tolerance that was asked for."""


def joined(results: Sequence[Any]) -> Any:
    """Return what SciPy says of the solutions for the examples of a vmap."""
    worst = min(results, key=lambda each: bool(each.success))
    found = OPTIMIZE.OptimizeResult(success=worst.success, message=worst.message)
    if "status" in worst:
        found.status = worst.status
    return found


def in_common(founds: Sequence[Any]) -> Any:
    """Return what SciPy found for the examples of a vmap: None in the place of what differs."""
    first = founds[0]
    if len(founds) == 1 or not isinstance(first, tuple):
        return first
    columns = zip(*founds, strict=True)
    return tuple([each[0] if all(map(_same(each[0]), each)) else None for each in columns])


def _same(first: Any) -> Callable[[Any], bool]:
    return lambda x: x is first or (not isinstance(x, dict) and np.array_equal(x, first))


def lacks_rank(title: str, matrix: Any) -> bool:
    """Return whether the columns of a Jacobian depend on each other."""

    def numbers() -> list[Any]:
        return [np.array(np.linalg.matrix_rank(arrays_of(without_history(matrix))))]

    lacks = whole(with_numbers(title, numbers)[0]) < matrix.shape[-1]
    if lacks.any() and not lacks.all():
        raise AutogradError(
            f"{title}: under vmap, the data of some examples don't determine all parameters, and "
            "those of others do: fit them one by one"
        )
    return bool(lacks.any())
