"""Products of vectors and Jacobians of functions of one argument, in HIPS autograd's convention.

The cotangent of a complex number is gᵀJ without conjugation, PyTorch's and chainrule's conjugated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor, make
from chainrule.compat.autograd.extend import (
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    vspace,
)
from chainrule.compat.autograd.tracer import conjugate, isbox, primitive
from chainrule.numpy.array_class import as_ndarrays
from chainrule.transforms import jvp as _jvp
from chainrule.transforms import vjp as _vjp

__all__ = [
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "make_jvp",
    "make_vjp",
    "primitive",
    "vspace",
]

FLOATS = (float, complex, np.floating, np.complexfloating, np.ndarray)


def as_arrays(x: Any) -> Any:
    """Return a tree with Python's numbers as NumPy's, which are handed over as arrays."""
    return pytree.map_leaves(
        x,
        lambda leaf: np.result_type(leaf).type(leaf) if type(leaf) in (float, complex) else leaf,
    )


def with_arrays(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function with constant numbers and arrays in its result as recorded ones."""

    def call(x: Any) -> Any:
        result = fun(x)
        if not any([isbox(leaf) for _, leaf in pytree.leaves(result)]):
            text = "Output seems independent of input."
            warnings.warn(text, UserWarning, stacklevel=user_stack_level())
        return pytree.map_leaves(result, _recorded)

    return call


def _recorded(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf
    if isinstance(leaf, FLOATS):
        return as_ndarrays(make(np.asarray(leaf), None))
    return leaf


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return the vector-Jacobian product of a function at `x`, and its value there."""
    value, vjp = _vjp(with_arrays(fun), as_arrays(x))

    def product(g: Any) -> Any:
        return pytree.map_leaves(vjp(pytree.map_leaves(g, conjugate)), conjugate)

    return product, value


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Return the function of a direction that gives value and directional derivative at `x`."""
    return lambda g: _jvp(with_arrays(fun), (as_arrays(x),), (g,))
