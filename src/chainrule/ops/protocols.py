"""NumPy's functions called on tensors: recorded where there is a rule, never silently cut off."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.ops import (
    arithmetic,
    complexes,
    contraction,
    diagonals,
    extrema,
    joining,
    kinks,
    numpy_names,
    ordering,
    products,
    reductions,
    shaping,
    special,
    statistics,
    summation,
)


def _transpose(a: Any, axes: Any = None) -> Tensor:
    return ordering.reverse_dims(a) if axes is None else ordering.permute_dims(a, axes)


def _spread(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """NumPy's ddof is 0 where PyTorch's correction is 1."""

    def of(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
        return function(a, axis=axis, correction=ddof, keepdims=keepdims)

    return of


def _dot(a: Any, b: Any) -> Tensor:
    """NumPy's dot of stacks of matrices is a product of each with each."""
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return arithmetic.multiply(a, b)
    if np.ndim(b) <= 2:
        return contraction.matmul(a, b)
    return products.tensordot(a, b, ([-1], [-2]))


def _cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    if axis is not None:
        axisa = axisb = axisc = axis
    product = products.cross(ordering.movedim(a, axisa, -1), ordering.movedim(b, axisb, -1), -1)
    return ordering.movedim(product, -1, axisc)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: reductions.sum,
    np.mean: reductions.mean,
    np.prod: reductions.prod,
    np.cumsum: reductions.cumsum,
    np.cumprod: reductions.cumprod,
    np.max: extrema.amax,
    np.min: extrema.amin,
    np.amax: extrema.amax,
    np.amin: extrema.amin,
    np.var: _spread(statistics.var),
    np.std: _spread(statistics.std),
    np.concatenate: joining.concat,
    np.stack: joining.stack,
    np.where: kinks.where,
    np.clip: kinks.clip,
    np.reshape: shaping.reshape,
    np.ravel: shaping.flatten,
    np.squeeze: shaping.squeeze,
    np.expand_dims: shaping.expand_dims,
    np.broadcast_to: shaping.broadcast_to,
    np.transpose: _transpose,
    np.moveaxis: ordering.movedim,
    np.flip: ordering.flip,
    np.roll: ordering.roll,
    np.tril: diagonals.tril,
    np.triu: diagonals.triu,
    np.dot: _dot,
    np.outer: lambda a, b: contraction.outer(shaping.flatten(a), shaping.flatten(b)),
    np.vdot: lambda a, b: products.vdot(shaping.flatten(a), shaping.flatten(b)),
    np.inner: products.inner,
    np.tensordot: products.tensordot,
    np.kron: products.kron,
    np.cross: _cross,
    np.einsum: summation.einsum,
    np.real: complexes.real,
    np.imag: complexes.imag,
    np.isreal: complexes.isreal,
    np.fix: kinks.trunc,
    np.sinc: special.sinc,
    np.i0: special.i0,
}


# What NumPy answers with no derivative to lose: shapes, truths, positions, new arrays.
_WITHOUT_DERIVATIVE = frozenset(
    [
        *(np.shape, np.size, np.ndim, np.result_type, np.can_cast, np.iscomplexobj, np.isrealobj),
        *(np.allclose, np.isclose, np.array_equal, np.any, np.all, np.count_nonzero, np.nonzero),
        *(np.argmax, np.argmin, np.argsort, np.searchsorted, np.may_share_memory),
        *(np.argwhere, np.flatnonzero),
        *(np.shares_memory, np.zeros_like, np.ones_like, np.empty_like, np.full_like),
        *(np.array_repr, np.array_str, np.array2string),
    ]
)


def array_function(x: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Record a NumPy function that was called on tensors; without a rule, compute on the arrays.

    That is refused where it would lose a gradient.
    """
    direct = numpy_names.FUNCTIONS.get(function)
    if direct is not None:
        return direct(*args, **kwargs)
    ours = _FUNCTIONS.get(function) or _imported(function)
    if ours is not None:
        return ours(*args, **{key: value for key, value in kwargs.items() if value is not None})
    if function in _WITHOUT_DERIVATIVE:
        with no_grad():
            return function(*_arrays(args), **_arrays(kwargs))
    try:
        return function(*_arrays(args), **_arrays(kwargs))
    except RuntimeError as error:
        if "numpy() on Tensor that requires grad" not in str(error):
            raise
        raise TypeError(
            f"{function.__module__}.{function.__name__} has no derivative rule in chainrule: "
            "compute it from functions that have one, give it one with autograd_function, or call "
            "it on x.detach().numpy()"
        ) from error


_LATER = {"numpy.fft": "chainrule.fft", "numpy.linalg": "chainrule.linalg.as_numpy"}
"""Which modules have the functions of others of NumPy's, to be imported when they are called."""


def _imported(function: Any) -> Callable[..., Any] | None:
    module = _LATER.get(function.__module__)
    return None if module is None else getattr(import_module(module), function.__name__, None)


def _arrays(value: Any) -> Any:
    """Return arguments with NumPy arrays in the place of tensors."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, tuple | list):
        return type(value)(map(_arrays, value))
    return {k: _arrays(v) for k, v in value.items()} if isinstance(value, dict) else value
