"""NumPy's and SciPy's ufuncs called on tensors.

A ufunc is recorded by the function that is registered for it, computed without a gradient if its
derivative is zero, or refused.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

from chainrule.arguments import Operand, floating, many_dims, tensor_of
from chainrule.autograd.operands import as_carried_results
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_array, namespace
from chainrule.errors import ArgumentTypeError
from chainrule.operation import SCIPY_UFUNCS, UFUNCS, operation
from chainrule.ops import (
    arithmetic,
    comparison,
    cumulative,
    elementary,
    reductions,
    special,
    statistics,
)
from chainrule.ops.complex import conj
from chainrule.ops.matmul import matmul
from chainrule.ops.reshape import reshape, squeeze, unsqueeze
from chainrule.ops.where import where
from chainrule.ops.wrappers import unary_real
from chainrule.primitives import binary as binary_primitives
from chainrule.primitives import elementwise

Function = Callable[..., Any]

# --- NumPy's ufuncs without a public function -----------------------------------------------------

operation(method=False, ufunc="cbrt", scipy="cbrt")(unary_real(binary_primitives.cbrt))


@operation(method=False, ufunc="modf")
def _modf(x: Any) -> tuple[Tensor, Tensor]:
    x = floating(x)
    integral = elementary.trunc(x)
    infinite = comparison.isinf(x)
    fraction = arithmetic.subtract(where(infinite, 0.0, x), where(infinite, 0.0, integral))
    return fraction, integral


@operation(method=False, ufunc="divmod")
def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return arithmetic.floor_divide(x, y), arithmetic.remainder(x, y)


@operation(method=False, ufunc="fabs")
def _fabs(x: Any) -> Tensor:
    return elementary.abs(floating(x))


@operation(method=False, ufunc="matvec")
def _matvec(x: Any, y: Any) -> Any:
    return squeeze(matmul(x, unsqueeze(y, -1)), -1)


@operation(method=False, ufunc="vecmat")
def _vecmat(x: Any, y: Any) -> Any:
    row = unsqueeze(conj(x), -2)
    return squeeze(matmul(row, y), -2)


operation(method=False, ufunc="clip")(elementary.clamp)  # of the method of arrays


# --- ufuncs without a gradient, and refused ones --------------------------------------------------

WITHOUT_GRADIENT: frozenset[Any] = frozenset([np.spacing, np.bitwise_count])
"""Ufuncs of integers, and piecewise constant ones, which are computed on the arrays."""

REFUSED: dict[Any, str] = {np.isnat: "tensors hold no dates"}
"""Ufuncs that take no tensor, and the reason."""

# --- methods of ufuncs: reduce, accumulate, outer -------------------------------------------------

_PUBLIC_NAMES = {
    "_product": "prod",
    "_running_max": "cummax",
    "_running_min": "cummin",
    "_logsumexp": "logsumexp",
}
"""Public names of functions of this module, for error messages."""


def _reduce_method(function: Callable[..., Tensor]) -> Function:
    """Return the function for `ufunc.reduce`, which reduces along axis 0 by default."""

    def reduce(x: Any, axis: Any = 0, *, keepdims: bool = False) -> Tensor:
        x = tensor_of(x)
        if not x.ndim:
            raise ArgumentTypeError("cannot reduce on a scalar: the tensor has no dimension")
        return function(x, axis=axis, keepdims=keepdims)

    reduce.__name__ = _PUBLIC_NAMES.get(function.__name__, function.__name__)
    return reduce


def _accumulate_method(function: Callable[..., Tensor]) -> Function:
    """Return the function for `ufunc.accumulate`."""

    def accumulate(x: Any, axis: int = 0) -> Tensor:
        return function(x, axis=axis)

    accumulate.__name__ = _PUBLIC_NAMES.get(function.__name__, function.__name__)
    return accumulate


def _product(x: Tensor, *, axis: Any, keepdims: bool) -> Tensor:
    """Return the product along several axes, which PyTorch's `prod` doesn't take."""
    axes = many_dims(axis, x.ndim)
    for number in sorted(range(x.ndim) if axes is None else axes, reverse=True):
        x = reductions.prod(x, axis=number, keepdims=keepdims)
    return x


def _running_max(x: Tensor, *, axis: int) -> Tensor:
    return cumulative.cummax(x, axis=axis).values


def _running_min(x: Tensor, *, axis: int) -> Tensor:
    return cumulative.cummin(x, axis=axis).values


def _logsumexp(x: Tensor, *, axis: Any, keepdims: bool) -> Tensor:
    return statistics.logsumexp(x, dim=axis, keepdim=keepdims)


METHODS: dict[tuple[Any, str], Function] = {
    (np.add, "reduce"): _reduce_method(reductions.sum),
    (np.multiply, "reduce"): _reduce_method(_product),
    (np.maximum, "reduce"): _reduce_method(reductions.amax),
    (np.minimum, "reduce"): _reduce_method(reductions.amin),
    (np.logical_and, "reduce"): _reduce_method(reductions.all),
    (np.logical_or, "reduce"): _reduce_method(reductions.any),
    (np.add, "accumulate"): _accumulate_method(reductions.cumsum),
    (np.multiply, "accumulate"): _accumulate_method(reductions.cumprod),
    (np.maximum, "accumulate"): _accumulate_method(_running_max),
    (np.minimum, "accumulate"): _accumulate_method(_running_min),
    (np.logaddexp, "reduce"): _reduce_method(_logsumexp),
    (np.logaddexp, "accumulate"): _accumulate_method(cumulative.logcumsumexp),
}
"""Functions for methods of ufuncs; `outer` works for every recorded ufunc of two inputs."""


def _outer(function: Function) -> Function:
    """Return the function for `ufunc.outer`."""

    def outer(x: Any, y: Any) -> Any:
        x, y = tensor_of(x), tensor_of(y)
        return function(reshape(x, (*x.shape, *(1,) * y.ndim)), y)

    return outer


def _method(ufunc: Any, method: str) -> Function | None:
    """Return the function of tensors for a ufunc or one of its methods."""
    function = _function_of(ufunc)
    if method == "__call__":
        return function
    if method == "outer" and function is not None and ufunc.nin == 2 and ufunc.signature is None:
        return _outer(function)
    return METHODS.get((ufunc, method))


def _function_of(ufunc: Any) -> Function | None:
    """Return the function of tensors for a ufunc of NumPy or SciPy; None if there is none."""
    if _is_numpy_ufunc(ufunc):
        return UFUNCS.get(ufunc.__name__)
    return find_scipy(ufunc)


@functools.cache
def function_of_ufunc(ufunc: Any) -> Function | None:
    """Return the function of tensors for a ufunc of NumPy that isn't piecewise constant, if any."""
    return UFUNCS.get(ufunc.__name__) if _is_numpy_ufunc(ufunc) else None


def _is_numpy_ufunc(ufunc: Any) -> bool:
    return getattr(np, ufunc.__name__, None) is ufunc or ufunc is _CLIP


_CLIP = attrgetter("_core.umath.clip")(np)
"""The ufunc behind the method `clip` of arrays."""


def _in_new_memory(function: Function) -> Function:
    """Return a ufunc's function that copies where the operation returns its operand."""

    @functools.wraps(function)
    def copied(x: Any) -> Any:
        result = function(x)
        return elementwise.clone.apply(result) if result is x else result

    return copied


UFUNCS |= {name: _in_new_memory(UFUNCS[name]) for name in ("positive", "conjugate")}


# --- the __array_ufunc__ protocol -----------------------------------------------------------------

_OPERAND_TYPES = (Tensor, np.generic, bool, int, float, complex)


@operation(method="__array_ufunc__")
def array_ufunc(x: Tensor, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
    """Record a ufunc that was called on a tensor; raise if there is no rule for it."""
    operands = () if method in ("at", "reduceat") else inputs  # these two also take indices
    if not all([isinstance(value, _OPERAND_TYPES) or is_array(value) for value in operands]):
        return NotImplemented
    call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if settings:
        settings = {key: value for key, value in settings.items() if _is_set(key, value)}
    function = _method(ufunc, method)
    if function is None:
        if ufunc in WITHOUT_GRADIENT and method == "__call__" and not settings:
            found = ufunc(*[_array(value) for value in inputs])
            return tensor_of(namespace(found).asarray(found))
        _refuse(ufunc, method, call)
    kept = {"axis", "keepdims"} if method in ("reduce", "accumulate") else _KEPT.get(call, set())
    refused = set(settings) - kept
    if refused:
        name = getattr(function, "__name__", ufunc.__name__)
        raise ArgumentTypeError(
            f"np.{call} on a Tensor takes no {', '.join(sorted(refused))}: call chainrule.{name}, "
            f"out of place (a = a + t instead of a += t). {argument_advice(refused)}"
        )
    return as_carried_results(function(*inputs, **settings), inputs)


_KEPT = {"vecdot": {"axis"}}
"""Keywords of calls of ufuncs of vectors."""


def _is_set(key: str, value: Any) -> bool:
    """Return whether a keyword differs from NumPy's default, which functions as np.sum pass on."""
    if key == "out":
        return any([part is not None for part in (value if isinstance(value, tuple) else (value,))])
    return value is not {"dtype": None, "where": True, "keepdims": False}.get(key, NotImplemented)


def argument_advice(refused: set[str]) -> str:
    """Return advice on arguments of NumPy's functions that functions of tensors don't take."""
    advice = {
        "out": "For out=, write t.copy_(result)",
        "where": "for where=, choose with chainrule.where(condition, result, other)",
        "dtype": "for dtype=, convert with .astype(dtype)",
        "initial": "for initial=, combine it with the result",
    }
    texts = [advice[key] for key in sorted(refused) if key in advice]
    return "; ".join(texts)


def _refuse(ufunc: Any, method: str, call: str) -> NoReturn:
    if method == "at":
        raise ArgumentTypeError(
            f"np.{call} writes into an array, which isn't recorded: add up repeated indices with "
            "chainrule.index_add or scatter_add, which have derivatives, or call it on "
            "x.detach().numpy()"
        )
    if ufunc in REFUSED:
        raise ArgumentTypeError(f"np.{call} on a Tensor: {REFUSED[ufunc]}")
    library = "np." if _is_numpy_ufunc(ufunc) else ""
    raise ArgumentTypeError(
        f"{library}{call} has no derivative rule in chainrule: compute it from functions that have "
        "one, give it one with autograd_function, or call it on x.detach().numpy()"
    )


def _array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


# --- ufuncs of scipy.special ----------------------------------------------------------------------
#
# They are found by name, so that chainrule does not import SciPy.


@operation(method=False, scipy="exp10")
def _exp10(x: Operand) -> Tensor:
    return arithmetic.pow(10.0, x)


@operation(method=False, scipy="cosm1")
def _cosm1(x: Operand) -> Tensor:
    half = elementwise.sin.apply(arithmetic.multiply(x, 0.5))
    return arithmetic.multiply(elementwise.square.apply(half), -2.0)


@operation(method=False, scipy="erfcinv")
def _erfcinv(x: Operand) -> Tensor:
    return arithmetic.multiply(special.ndtri(arithmetic.multiply(x, 0.5)), -math.sqrt(0.5))


def find_scipy(ufunc: Any) -> Function | None:
    """Return the function of tensors for a ufunc of SciPy; None if there is none."""
    library = sys.modules.get("scipy.special")
    name = ufunc.__name__
    is_scipys = getattr(library, name.lstrip("_"), None) is ufunc or name.startswith("_")
    if library is None or not is_scipys:
        return None
    import_module("chainrule.scipy.special")  # a layer above, which declares most of them
    return SCIPY_UFUNCS.get(name)
