"""What a function gives for arrays of which only shape and dtype are known.

NumPy itself is asked: an element-by-element function on arrays of one element, anything else on
arrays that repeat one element without taking memory. So there is no second set of shape rules.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, reduce
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from chainrule.errors import CompileError

Shape = tuple[int, ...]


class Outcome(NamedTuple):
    """The shape and dtype of each array that a function returns, and the kind of the whole."""

    types: list[tuple[Shape, Any]]
    kind: type | None  # None for a single array, else tuple, list or a named tuple


DEPENDING = frozenset(
    [
        *("nonzero", "flatnonzero", "argwhere", "unique", "unique_all", "unique_counts"),
        *("unique_inverse", "unique_values", "compress", "extract", "trim_zeros", "union1d"),
        *("intersect1d", "setdiff1d", "setxor1d", "bincount", "histogram", "histogram_bin_edges"),
        *("histogram2d", "histogramdd"),
    ]
)
"""NumPy's functions whose result has a shape that depends on values."""


DRAW = "draw"
"""The function that draws random numbers: no two calls are the same, and none is superfluous."""


@cache
def resolve(name: str) -> Callable[..., Any]:
    """Return the function of a name in a program: ``np.…``, ``kernels.…`` or the prelude's."""
    head, _, rest = name.partition(".")
    if head == "np":
        function: Any = reduce(getattr, rest.split("."), np)
    elif head == "kernels":
        function = getattr(import_module("chainrule.backend").numpy_xp, rest)
    else:
        function = getattr(import_module("chainrule.compiler.codegen.runtime"), name)
    found: Callable[..., Any] = function
    return found


def abstract_eval(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    """Return what calling a function would give; values are what has a shape and a dtype."""
    if name.rpartition(".")[2] in DEPENDING and not _is_counted(name, args, kwargs):
        raise CompileError(
            f"{name}: the shape of the result depends on values, which a compiled function doesn't "
            "know. Use where(), a mask to multiply with, or call it outside"
        )
    if name == DRAW:
        args = (_throwaway(), *args[1:])  # asked on the generator itself, it would go on
    try:
        key = (name, frozen(args, _type_of), frozen(kwargs, _type_of))
        found = _KNOWN.get(key)
    except TypeError:  # an argument that can't be hashed
        return _outcome(name, args, kwargs)
    if found is None:
        found = _outcome(name, args, kwargs)
        if len(_KNOWN) > 4096:
            _KNOWN.clear()
        _KNOWN[key] = found
    return found


def _is_counted(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Say whether a histogram has so many bins, whatever is in it, and known edges."""
    bins = kwargs.get("bins", args[1] if len(args) > 1 else None)
    limits = kwargs.get("range", args[2] if len(args) > 2 else None)
    return name == "np.histogram" and (
        _is_array(bins) or (isinstance(bins, int) and limits is not None)
    )


_KNOWN: dict[Any, Outcome] = {}


@cache
def _throwaway() -> Any:
    return np.random.default_rng(0)


def frozen(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return nested arguments as something that can be looked up; `leaf` does so for the rest."""
    if isinstance(tree, tuple | list):
        return (type(tree), *[frozen(item, leaf) for item in tree])
    if isinstance(tree, dict):
        return tuple([(key, frozen(value, leaf)) for key, value in tree.items()])
    if isinstance(tree, slice):
        ends = (tree.start, tree.stop, tree.step)
        return ("slice", *[frozen(end, leaf) for end in ends])
    return leaf(tree)


def _type_of(leaf: Any) -> Any:
    """Return what the type of a result can depend on: the type of an array, any other value."""
    if _is_array(leaf):
        return ("array", leaf.shape, leaf.dtype)
    hash(leaf)
    return (type(leaf), leaf)  # 1, 1.0 and True are equal, and not the same


def _outcome(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outcome:
    function = resolve(name)
    small = isinstance(function, np.ufunc) and function.signature is None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = function(
            *_stand_ins(args, small), **{k: _stand_ins(v, small) for k, v in kwargs.items()}
        )
    if isinstance(result, tuple | list):
        parts = list(result)
        kind: type | None = type(result)
    else:
        parts, kind = [result], None
    if not small:
        return Outcome([(np.shape(part), np.asarray(part).dtype) for part in parts], kind)
    shape = np.broadcast_shapes(*(a.shape for a in args if _is_array(a)))
    return Outcome([(shape, np.asarray(part).dtype) for part in parts], kind)


def _stand_ins(tree: Any, small: bool) -> Any:
    """Return arguments with an array of ones, which takes no memory, for each value."""
    if isinstance(tree, tuple | list):
        items = [_stand_ins(item, small) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if not _is_array(tree):
        return tree
    shape, dtype = tree.shape, tree.dtype
    if small:
        shape = (1,) * len(shape)
    elif len(shape) >= 2 and shape[-1] == shape[-2] and dtype.kind in "fc":
        return np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)  # what inverses need
    one = np.zeros((), dtype) if dtype.kind in "iu" else np.ones((), dtype)
    return np.broadcast_to(one, shape)  # a zero is an index into anything


def _is_array(x: Any) -> bool:
    """Say whether an argument is a value of a program, of which only the type is known."""
    return hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, np.generic | type)
