"""Abstract evaluation: the shapes and dtypes that a function returns, from those of its arguments.

NumPy itself runs on dummy arrays: elementwise functions on arrays of one element, others on arrays
that broadcast one element without taking memory. So there is no second set of shape rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from chainrule.errors import CompileError
from chainrule.interrupts import without_warnings

Shape = tuple[int, ...]


class AbstractResult(NamedTuple):
    """Shape and dtype of each array that a function returns, and the container they come in."""

    types: list[tuple[Shape, Any]]
    container: type | None  # None for a single array, else tuple, list or a named tuple


DYNAMIC_SHAPE = frozenset(
    [
        *("nonzero", "flatnonzero", "argwhere", "unique", "unique_all", "unique_counts"),
        *("unique_inverse", "unique_values", "compress", "extract", "trim_zeros", "union1d"),
        *("intersect1d", "setdiff1d", "setxor1d", "bincount", "histogram", "histogram_bin_edges"),
        *("histogram2d", "histogramdd"),
    ]
)
"""NumPy functions whose result has a shape that depends on the values of the arguments."""


DRAW = "draw"
"""Name of the op that draws random numbers: it is impure, so never merged or eliminated."""


@cache
def resolve(name: str) -> Callable[..., Any]:
    """Return the function that an op names: ``np.…``, ``kernels.…`` or one of `codegen.runtime`."""
    head, _, rest = name.partition(".")
    if head == "np":
        function: Any = reduce(getattr, rest.split("."), np)
    elif head == "kernels":
        function = getattr(import_module("chainrule.backend").numpy_xp, rest)
    else:
        function = getattr(import_module("chainrule.compiler.codegen.runtime"), name)
    found: Callable[..., Any] = function
    return found


def abstract_eval(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractResult:
    """Return the types of a function's results; arguments with shape and dtype are abstract."""
    if name.rpartition(".")[2] in DYNAMIC_SHAPE and not _has_static_bins(name, args, kwargs):
        raise CompileError(
            f"{name}: the shape of the result depends on values, which a compiled function doesn't "
            "know. Use where(), a mask to multiply with, or call it outside"
        )
    if name == DRAW:
        args = (_dummy_generator(), *args[1:])  # the real generator would advance
    try:
        key = (name, hashable(args, _leaf_key), hashable(kwargs, _leaf_key))
        found = _CACHE.get(key)
    except TypeError:  # an argument that can't be hashed
        return _evaluate(name, args, kwargs)
    if found is None:
        found = _evaluate(name, args, kwargs)
        if len(_CACHE) > _MAX_CACHED:
            _CACHE.clear()
        _CACHE[key] = found
    return found


_CACHE: dict[Any, AbstractResult] = {}
_MAX_CACHED = 4096
"""Number of cached results above which the cache is cleared."""


def _has_static_bins(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the number of bins and the edges of a histogram don't depend on its data."""
    bins = kwargs.get("bins", args[1] if len(args) > 1 else None)
    limits = kwargs.get("range", args[2] if len(args) > 2 else None)
    return name == "np.histogram" and (
        _is_array(bins) or (isinstance(bins, int) and limits is not None)
    )


@cache
def _dummy_generator() -> Any:
    return np.random.default_rng(0)


def hashable(tree: Any, leaf_key: Callable[[Any], Any]) -> Any:
    """Return nested arguments as a hashable key, with `leaf_key` of each leaf."""
    if isinstance(tree, tuple | list):
        return (type(tree), *[hashable(item, leaf_key) for item in tree])
    if isinstance(tree, dict):
        return tuple([(key, hashable(value, leaf_key)) for key, value in tree.items()])
    if isinstance(tree, slice):
        ends = (tree.start, tree.stop, tree.step)
        return ("slice", *[hashable(end, leaf_key) for end in ends])
    return leaf_key(tree)


def _leaf_key(leaf: Any) -> Any:
    """Return what result types can depend on: the type of an array, the value of anything else."""
    if _is_array(leaf):
        return ("array", leaf.shape, leaf.dtype)
    hash(leaf)
    return (type(leaf), leaf)  # 1, 1.0 and True compare equal, but give different types


def _evaluate(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractResult:
    function = resolve(name)
    elementwise = isinstance(function, np.ufunc) and function.signature is None
    named = {k: _dummies(v, elementwise) for k, v in kwargs.items()}
    result = without_warnings(function, *_dummies(args, elementwise), **named)
    if isinstance(result, tuple | list):
        parts = list(result)
        container: type | None = type(result)
    else:
        parts, container = [result], None
    if not elementwise:
        types = [(np.shape(part), np.asarray(part).dtype) for part in parts]
        return AbstractResult(types, container)
    shape = np.broadcast_shapes(*(a.shape for a in args if _is_array(a)))
    return AbstractResult([(shape, np.asarray(part).dtype) for part in parts], container)


def _dummies(tree: Any, elementwise: bool) -> Any:
    """Return arguments with a dummy array, which takes no memory, in place of each value."""
    if isinstance(tree, tuple | list):
        items = [_dummies(item, elementwise) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if not _is_array(tree):
        return tree
    shape, dtype = tree.shape, tree.dtype
    if elementwise:
        shape = (1,) * len(shape)
    elif len(shape) >= 2 and shape[-1] == shape[-2] and dtype.kind in "fc":
        return np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)  # inv needs invertible ones
    one = np.zeros((), dtype) if dtype.kind in "iu" else np.ones((), dtype)
    return np.broadcast_to(one, shape)  # integers may be indices: 0 is always within bounds


def _is_array(x: Any) -> bool:
    """Whether an argument is abstract: a value of a program, known by its type only."""
    return hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.generic | type)
