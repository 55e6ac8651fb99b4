"""NumPy's ufuncs called on tensors.

Each has an entry in one of the tables below, by what becomes of it: recorded by a function here,
computed without a gradient since it has none, or refused. SciPy's are in `scipy_ufuncs`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from chainrule.arguments import Operand, floating, many_dims, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_array, namespace
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
from chainrule.ops.wrappers import unary_real
from chainrule.primitives import binary as binary_primitives
from chainrule.primitives import elementwise
from chainrule.primitives import special as special_primitives
from chainrule.primitives.primitive import Primitive

complexes: Any = import_module("chainrule.ops.complex")
matmul: Any = import_module("chainrule.ops.matmul")
reshape: Any = import_module("chainrule.ops.reshape")
where: Any = import_module("chainrule.ops.where")

Function = Callable[..., Any]

operation(method=False, ufunc="cbrt", scipy="cbrt")(unary_real(binary_primitives.cbrt))


@operation(method=False, ufunc="modf")
@operation(method=False, ufunc="modf")
def _modf(x: Any) -> tuple[Tensor, Tensor]:
    x = floating(x)
    whole = elementary.trunc(x)
    endless = comparison.isinf(x)
    fraction = arithmetic.subtract(where.where(endless, 0.0, x), where.where(endless, 0.0, whole))
    return fraction, whole


@operation(method=False, ufunc="divmod")
@operation(method=False, ufunc="divmod")
def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return arithmetic.floor_divide(x, y), arithmetic.remainder(x, y)


@operation(method=False, ufunc="fabs")
@operation(method=False, ufunc="fabs")
def _fabs(x: Any) -> Tensor:
    return elementary.abs(floating(x))


@operation(method=False, ufunc="matvec")
@operation(method=False, ufunc="matvec")
def _matvec(x: Any, y: Any) -> Any:
    return reshape.squeeze(matmul.matmul(x, reshape.unsqueeze(y, -1)), -1)


@operation(method=False, ufunc="vecmat")
@operation(method=False, ufunc="vecmat")
def _vecmat(x: Any, y: Any) -> Any:
    row = reshape.unsqueeze(complexes.conj(x), -2)
    return reshape.squeeze(matmul.matmul(row, y), -2)


# --- recorded -------------------------------------------------------------------------------------

STEPS: frozenset[Any] = frozenset([np.spacing, np.bitwise_count])
"""What is constant but for its jumps, or of integers: computed on the arrays, without gradient."""

REFUSED: dict[Any, str] = {np.isnat: "tensors hold no dates"}
"""What no tensor can be given to, and why."""

# --- methods of ufuncs ----------------------------------------------------------------------------


_NAMES = {
    "_product": "prod",
    "_highest_so_far": "cummax",
    "_lowest_so_far": "cummin",
    "_log_of_sum": "logsumexp",
}
"""What functions here are called in public, for messages."""


def _reduced(function: Callable[..., Tensor]) -> Function:
    """Return `ufunc.reduce`, whose axis is 0 if none is given."""

    def reduce(x: Any, axis: Any = 0, *, keepdims: bool = False) -> Tensor:
        x = tensor_of(x)
        if not x.ndim:
            raise TypeError("cannot reduce on a scalar: the tensor has no dimension")
        return function(x, axis=axis, keepdims=keepdims)

    reduce.__name__ = _NAMES.get(function.__name__, function.__name__)
    return reduce


def _accumulated(function: Callable[..., Tensor]) -> Function:
    def accumulate(x: Any, axis: int = 0) -> Tensor:
        return function(x, axis=axis)

    accumulate.__name__ = _NAMES.get(function.__name__, function.__name__)
    return accumulate


def _product(x: Tensor, *, axis: Any, keepdims: bool) -> Tensor:
    """np.multiply.reduce takes several axes, PyTorch's prod one."""
    axes = many_dims(axis, x.ndim)
    for number in sorted(range(x.ndim) if axes is None else axes, reverse=True):
        x = reductions.prod(x, axis=number, keepdims=keepdims)
    return x


def _highest_so_far(x: Tensor, *, axis: int) -> Tensor:
    return cumulative.cummax(x, axis=axis).values


def _lowest_so_far(x: Tensor, *, axis: int) -> Tensor:
    return cumulative.cummin(x, axis=axis).values


def _log_of_sum(x: Tensor, *, axis: Any, keepdims: bool) -> Tensor:
    return statistics.logsumexp(x, dim=axis, keepdim=keepdims)


METHODS: dict[tuple[Any, str], Function] = {
    (np.add, "reduce"): _reduced(reductions.sum),
    (np.multiply, "reduce"): _reduced(_product),
    (np.maximum, "reduce"): _reduced(reductions.amax),
    (np.minimum, "reduce"): _reduced(reductions.amin),
    (np.logical_and, "reduce"): _reduced(reductions.all),
    (np.logical_or, "reduce"): _reduced(reductions.any),
    (np.add, "accumulate"): _accumulated(reductions.cumsum),
    (np.multiply, "accumulate"): _accumulated(reductions.cumprod),
    (np.maximum, "accumulate"): _accumulated(_highest_so_far),
    (np.minimum, "accumulate"): _accumulated(_lowest_so_far),
    (np.logaddexp, "reduce"): _reduced(_log_of_sum),
    (np.logaddexp, "accumulate"): _accumulated(cumulative.logcumsumexp),
}
"""Reductions and running ones. `outer` is there for every recorded ufunc of two inputs."""


def _outer(function: Function) -> Function:
    def outer(x: Any, y: Any) -> Any:
        x, y = tensor_of(x), tensor_of(y)
        return function(reshape.reshape(x, (*x.shape, *(1,) * y.ndim)), y)

    return outer


def _method(ufunc: Any, method: str) -> Function | None:
    """Return the function of tensors that a ufunc, or one of its methods, is."""
    function = _called(ufunc)
    if method == "__call__":
        return function
    if method == "outer" and function is not None and ufunc.nin == 2 and ufunc.signature is None:
        return _outer(function)
    return METHODS.get((ufunc, method))


def _called(ufunc: Any) -> Function | None:
    if _is_numpys(ufunc):
        return UFUNCS.get(ufunc.__name__)
    return find(ufunc)  # SciPy's


def _is_numpys(ufunc: Any) -> bool:
    return getattr(np, ufunc.__name__, None) is ufunc


# --- the protocol ---------------------------------------------------------------------------------

_KNOWN = (Tensor, np.generic, bool, int, float, complex)


@operation(method="__array_ufunc__")
def array_ufunc(x: Tensor, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
    """Record a ufunc that was called on a tensor, where there is a rule for it."""
    operands = () if method in ("at", "reduceat") else inputs  # which have indices among them
    if not all([isinstance(value, _KNOWN) or is_array(value) for value in operands]):
        return NotImplemented
    call = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    if settings:
        settings = {key: value for key, value in settings.items() if _says_something(key, value)}
    function = _method(ufunc, method)
    if function is None:
        if ufunc in STEPS and method == "__call__" and not settings:
            found = ufunc(*[_array(value) for value in inputs])
            return tensor_of(namespace(found).asarray(found))
        _refuse(ufunc, method, call)
    kept = {"axis", "keepdims"} if method in ("reduce", "accumulate") else set()
    refused = set(settings) - kept
    if refused:
        name = getattr(function, "__name__", ufunc.__name__)
        raise TypeError(
            f"np.{call} on a Tensor takes no {', '.join(sorted(refused))}: call chainrule.{name}, "
            f"out of place (a = a + t instead of a += t). {mends(refused)}"
        )
    return function(*inputs, **settings)


def _says_something(key: str, value: Any) -> bool:
    """Say whether a keyword is more than NumPy's default, which np.sum and its kin pass on."""
    if key == "out":
        return any([part is not None for part in (value if isinstance(value, tuple) else (value,))])
    return value is not {"dtype": None, "where": True, "keepdims": False}.get(key, NotImplemented)


def mends(refused: set[str]) -> str:
    """Say what to write instead of arguments that NumPy's functions have and tensors don't."""
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
        raise TypeError(
            f"np.{call} writes into an array, which isn't recorded: add up repeated indices with "
            "chainrule.index_add or scatter_add, which have derivatives, or call it on "
            "x.detach().numpy()"
        )
    if ufunc in REFUSED:
        raise TypeError(f"np.{call} on a Tensor: {REFUSED[ufunc]}")
    library = "np." if _is_numpys(ufunc) else ""
    raise TypeError(
        f"{library}{call} has no derivative rule in chainrule: compute it from functions that have "
        "one, give it one with autograd_function, or call it on x.detach().numpy()"
    )


def _array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


# --- scipy ufuncs ---------------------------------------------------------------------------------
#
# scipy.special's ufuncs called on tensors: which function of ours each of them is, by its name.
#
# They are found by name, so that SciPy is imported only by who calls it.


def _of_order(primitive: Primitive) -> Function:
    """Return the ufunc of order and argument of a family of Bessel functions."""
    recorded = unary_real(primitive)

    def function(order: Operand, x: Operand) -> Tensor:
        if isinstance(order, Tensor) or np.ndim(order):
            raise TypeError(
                f"{primitive.name}: expected a number as the order, got {type(order).__name__}: it "
                "has no derivative for the order. Call it for one order after the other"
            )
        return recorded(x, order=getattr(order, "item", lambda: order)())

    return function


@operation(method=False, scipy="exp10")
@operation(method=False, scipy="exp10")
def _exp10(x: Operand) -> Tensor:
    return arithmetic.pow(10.0, x)


@operation(method=False, scipy="loggamma")
@operation(method=False, scipy="loggamma")
def _loggamma(x: Operand) -> Any:
    value = special.lgamma(x)
    return where.where(comparison.less(x, 0), float("nan"), value)  # complex, left of 0


@operation(method=False, scipy="cosm1")
@operation(method=False, scipy="cosm1")
def _cosm1(x: Operand) -> Tensor:
    half = elementwise.sin.apply(arithmetic.multiply(x, 0.5))
    return arithmetic.multiply(elementwise.square.apply(half), -2.0)


@operation(method=False, scipy="erfcinv")
@operation(method=False, scipy="erfcinv")
def _erfcinv(x: Operand) -> Tensor:
    return arithmetic.multiply(special.ndtri(arithmetic.multiply(x, 0.5)), -math.sqrt(0.5))


for _primitive, _scipy in (
    (special_primitives.bessel_j, "jv"),
    (special_primitives.bessel_y, "yn yv"),
    (special_primitives.bessel_i, "iv"),
    (special_primitives.bessel_ie, "ive"),
    (special_primitives.bessel_k, "kn kv"),
    (special_primitives.bessel_ke, "kve"),
):
    operation(method=False, scipy=_scipy)(_of_order(_primitive))


def find(ufunc: Any) -> Function | None:
    """Return the function of tensors that a ufunc of SciPy's is; None if there is none."""
    library = sys.modules.get("scipy.special")
    name = ufunc.__name__
    ours = getattr(library, name.lstrip("_"), None) is ufunc or name.startswith("_")
    return SCIPY_UFUNCS.get(name) if library is not None and ours else None
