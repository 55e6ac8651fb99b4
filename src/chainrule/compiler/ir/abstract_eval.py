"""Abstract evaluation: the shapes and dtypes that a function returns, from those of its arguments.

NumPy itself runs on dummy arrays: elementwise functions on arrays of one element, views on arrays
that broadcast one element without taking memory, other functions on small arrays. The latter run
three times, with small lengths in place of each long dimension, from which the lengths of the
result follow. So there are few shape rules besides NumPy's, and none takes memory by size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache, reduce
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from chainrule.errors import CompileError
from chainrule.interrupts import without_warnings
from chainrule.kernels.scipy_linalg import result_types

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
    """Return an op's function: ``np.…``, ``scipy.…``, ``kernels.…`` or of `codegen.runtime`."""
    head, _, rest = name.partition(".")
    if head == "np":
        function: Any = reduce(getattr, rest.split("."), np)
    elif head == "scipy":
        function = reduce(getattr, rest.split("."), import_module("chainrule.backend").numpy_xp)
    elif head == "kernels":
        function = getattr(import_module("chainrule.backend").numpy_xp, rest)
    else:
        function = getattr(import_module("chainrule.compiler.codegen.runtime"), name)
    found: Callable[..., Any] = function
    return found


def abstract_eval(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractResult:
    """Return the types of a function's results; arguments with shape and dtype are abstract."""
    if name == DRAW:
        args = (_dummy_generator(), *args[1:])  # the real generator would advance
    if name == "getitem":
        args = (args[0], _first_place(args[0].shape, args[1]))
    key: Any
    try:
        key = (name, hashable(args, _leaf_key), hashable(kwargs, _leaf_key) if kwargs else ())
        found = _CACHE.get(key)
    except TypeError:  # an argument that can't be hashed
        key = found = None
    if found is not None:
        return found
    if name.rpartition(".")[2] in DYNAMIC_SHAPE and not _has_static_bins(name, args, kwargs):
        raise _dynamic_shape(name)
    found = _evaluate(name, args, kwargs)
    if key is not None:
        if len(_CACHE) > _MAX_CACHED:
            _CACHE.clear()
        _CACHE[key] = found
    return found


def _first_place(shape: Shape, key: Any) -> Any:
    """Return an index with 0 in place of integers within bounds, which select what has one type."""
    parts = key if key.__class__ is tuple else (key,)
    if len(parts) > len(shape) or not {part.__class__ for part in parts} <= {int, slice}:
        return key
    found = tuple(
        [
            0 if part.__class__ is int and -n <= part < n else part
            for part, n in zip(parts, shape, strict=False)
        ]
    )
    return found if key.__class__ is tuple else found[0]


def _dynamic_shape(name: str) -> CompileError:
    return CompileError(
        f"{name}: the shape of the result depends on values, which a compiled function doesn't "
        "know. Use where(), a mask to multiply with, or call it outside"
    )


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
    kind = tree.__class__
    if kind in _PLAIN_TYPES:
        return leaf_key(tree)
    if isinstance(tree, (tuple, list)):
        return (kind, *[hashable(item, leaf_key) for item in tree])
    if isinstance(tree, dict):
        return tuple([(key, hashable(value, leaf_key)) for key, value in tree.items()])
    if kind is slice:
        ends = (tree.start, tree.stop, tree.step)
        return ("slice", *[hashable(end, leaf_key) for end in ends])
    return leaf_key(tree)


def _leaf_key(leaf: Any) -> Any:
    """Return what result types can depend on: the type of an array, the value of anything else."""
    kind = leaf.__class__
    if kind not in _PLAIN_TYPES and _is_array(leaf):
        return ("array", leaf.shape, leaf.dtype)
    hash(leaf)
    return (kind, leaf)  # 1, 1.0 and True compare equal, but give different types


_PLAIN_TYPES = frozenset([int, float, bool, str, type(None)])


def _evaluate(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractResult:
    return without_warnings(_evaluated, name, args, kwargs)


def _evaluated(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractResult:
    function = resolve(name)
    rule = _RULES.get(name)
    if isinstance(function, np.ufunc) and function.signature is None:
        return _elementwise(function, args, kwargs)
    found = None if rule is None else rule(function, *args, **kwargs)
    if found is None and name in _VIEWS:
        found = _types(_call(function, args, kwargs, _broadcast))
    if found is None:
        found = _by_dummies(name, function, args, kwargs)
    return found


def _by_dummies(
    name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> AbstractResult:
    """Return the types that dummies have, if other ones have the same: shapes may need values."""
    if _is_large((args, kwargs)):
        drawn = name == DRAW
        found = _by_lengths(function, args, kwargs, _dummy, drawn=drawn)
        if found is None:
            return _types(_call(function, args, kwargs, _dummy))
        others = _by_lengths(function, args, kwargs, _other_dummy, drawn=drawn)
    else:
        found, others = _types(_call(function, args, kwargs, _dummy)), None
        with suppress(Exception):  # such as a singular matrix
            others = _types(_call(function, args, kwargs, _other_dummy))
    if others is not None and _shapes(others) != _shapes(found):
        raise _dynamic_shape(name)
    return found


def _shapes(found: AbstractResult) -> list[Shape]:
    return [shape for shape, _ in found.types]


def _elementwise(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AbstractResult:
    found = _types(
        _call(function, args, kwargs, lambda shape, dtype: _dummy((1,) * len(shape), dtype))
    )
    shape = np.broadcast_shapes(*(a.shape for a in args if _is_array(a)))
    return AbstractResult([(shape, dtype) for _, dtype in found.types], found.container)


def _types(result: Any) -> AbstractResult:
    """Return the types of what a function returned."""
    several = isinstance(result, tuple | list)
    parts = list(result) if several else [result]
    types = [(np.shape(part), np.asarray(part).dtype) for part in parts]
    if not all([dtype.kind in "biufc" for _, dtype in types]):
        raise CompileError(
            "a call of NumPy gives something other than numbers, which a compiled function can't "
            f"record: {str(result)[:80]!r}. Call it outside, and pass its result as an argument"
        )
    return AbstractResult(types, type(result) if several else None)


Make = Callable[[Shape, Any], Any]


def _call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], make: Make) -> Any:
    """Call a function with ``make(shape, dtype)`` in place of each value."""
    return function(*_filled(args, make), **_filled(kwargs, make))


def _filled(tree: Any, make: Make) -> Any:
    if isinstance(tree, tuple | list):
        items = [_filled(item, make) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, dict):
        return {key: _filled(value, make) for key, value in tree.items()}
    return make(tree.shape, tree.dtype) if _is_array(tree) else tree


def _dummy(shape: Shape, dtype: Any) -> Any:
    """Return a dummy array; square ones are invertible."""
    if len(shape) >= 2 and shape[-1] == shape[-2] and dtype.kind in "fc":
        return np.broadcast_to(np.eye(shape[-1], dtype=dtype), shape)
    return _broadcast(shape, dtype)


def _other_dummy(shape: Shape, dtype: Any) -> Any:
    """Return a dummy array of other values than those of `_dummy`."""
    value = 1 if dtype.kind in "iu" else 0
    return np.broadcast_to(np.full((), value, dtype), shape)


def _broadcast(shape: Shape, dtype: Any) -> Any:
    """Return an array of one repeated element, which takes no memory."""
    one = np.zeros((), dtype) if dtype.kind in "iu" else np.ones((), dtype)
    return np.broadcast_to(one, shape)  # integers may be indices: 0 is always within bounds


_VIEWS = frozenset(
    [
        *("np.permute_dims", "np.broadcast_to", "diagonal", "windows", "np.real", "np.imag"),
        *("np.flip", "np.squeeze", "np.expand_dims", "np.swapaxes", "np.moveaxis", "np.split"),
        *("np.transpose", "np.diagonal", "np.matrix_transpose", "np.atleast_1d", "np.rollaxis"),
    ]
)
"""Functions that return views of dummy arrays, so that they take no memory."""

# --- lengths of results ---------------------------------------------------------------------------

_FEW_ELEMENTS = 512
"""Number of elements of the operands up to which a function runs on arrays of their size."""
_MANY_ELEMENTS = 1 << 21
"""Number of elements of an operand above which the small lengths aren't small enough."""
_SHORT = 8
"""Longest dimension that isn't replaced."""
_LONGEST_SETTING = 64
"""Largest number among the settings beside which small lengths are possible."""
_STEPS = ((0, 2, 3, 12, 14, 16), (0, 1, 3, 4, 6, 8), (15, 21, 25, 26, 27, 31))
"""Small lengths beyond the shortest, of three calls: no two rules for a length agree in all."""


def _is_large(tree: Any) -> bool:
    found = _leaves(tree)
    numbers = [n for leaf in found if isinstance(leaf, int) for n in (abs(leaf),)]
    sizes = [math.prod(leaf.shape) for leaf in found if _is_array(leaf)]
    return sum(sizes) > _FEW_ELEMENTS or max(numbers, default=0) > _FEW_ELEMENTS


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, tuple | list):
        return [leaf for item in tree for leaf in _leaves(item)]
    if isinstance(tree, dict):
        return _leaves(list(tree.values()))
    if isinstance(tree, slice):
        return [tree.start, tree.stop, tree.step]
    return [tree]


def _by_lengths(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    make: Make,
    drawn: bool = False,
) -> AbstractResult | None:
    """Return the types that follow from calls with small lengths; None if none follow.

    Numbers among the settings of a draw are lengths, too, if they are in a tuple.
    """
    shapes = [leaf.shape for leaf in _leaves((args, kwargs)) if _is_array(leaf)]
    if drawn:
        shapes += [part for part in (*args, *kwargs.values()) if _is_shape(part)]
    long = sorted({n for shape in shapes for n in shape if n > _SHORT})
    settings = [0] if drawn else [n for n in _leaves((args, kwargs)) if isinstance(n, int)]
    least = max(_SHORT, *(abs(n) for n in settings), 0) + 3
    if len(long) > len(_STEPS[0]) or least > _LONGEST_SETTING:
        return None
    results, rows = [], []
    for steps in _STEPS:
        rows.append([least + step for step in steps[: len(long)]])
        small = dict(zip(long, rows[-1], strict=True))

        def shrunk(shape: Shape, small: dict[int, int] = small) -> Shape:
            return tuple([small.get(n, n) for n in shape])

        if any(math.prod(shrunk(shape)) > _MANY_ELEMENTS for shape in shapes):
            return None
        given = (args, kwargs)
        if drawn:
            given = (
                tuple(shrunk(part) if _is_shape(part) else part for part in args),
                {key: shrunk(part) if _is_shape(part) else part for key, part in kwargs.items()},
            )
        try:
            result = _call(function, *given, lambda shape, dtype: make(shrunk(shape), dtype))
        except Exception:  # of the lengths, or of the call: it runs again as it is
            return None
        results.append(_types(result))
    return _resolved(results, long, rows)


def _is_shape(part: Any) -> bool:
    return isinstance(part, tuple) and all(type(n) is int for n in part)


def _resolved(
    results: list[AbstractResult], long: list[int], rows: list[list[int]]
) -> AbstractResult | None:
    """Return the types for the long lengths, given those for rows of small ones."""
    if len({tuple(len(shape) for shape, _ in found.types) for found in results}) > 1:
        return None
    small = list(zip(*rows, strict=True))
    types = []
    for parts in zip(*(found.types for found in results), strict=True):
        found = zip(*(shape for shape, _ in parts), strict=True)
        shape = [_length(n, long, small) for n in found]
        known = tuple([n for n in shape if n is not None])
        if len(known) < len(shape):
            return None
        types.append((known, parts[0][1]))
    return AbstractResult(types, results[0].container)


def _length(found: Shape, long: list[int], small: list[Shape]) -> int | None:
    """Return the length that is, for the small lengths, as found; None if that is not certain."""
    if len(set(found)) == 1:
        return found[0]
    if found in small:
        return long[small.index(found)]
    candidates = set()
    for n, lengths in zip(long, small, strict=True):
        pairs = list(zip(found, lengths, strict=True))
        shifts, factors = {a - b for a, b in pairs}, {a / b for a, b in pairs}
        if len(shifts) == 1:  # as of diff() or pad()
            candidates.add(n + shifts.pop())
        if len(factors) == 1 and found[0] % lengths[0] == 0:  # as of repeat()
            candidates.add(n * int(factors.pop()))
        if all(a == b // 2 + 1 for a, b in pairs):  # as of rfft()
            candidates.add(n // 2 + 1)
        if all(a == 2 * (b - 1) for a, b in pairs):  # as of irfft()
            candidates.add(2 * (n - 1))
        for m, others in zip(long, small, strict=True):
            triples = list(zip(found, lengths, others, strict=True))
            if all(a == b + c for a, b, c in triples):  # as of hstack()
                candidates.add(n + m)
            if all(a == b * c for a, b, c in triples):  # as of outer(), which flattens
                candidates.add(n * m)
    return candidates.pop() if len(candidates) == 1 else None


# --- rules for functions whose settings are lengths -----------------------------------------------


def _constructor(function: Any, shape: Any, *args: Any, **kwargs: Any) -> AbstractResult:
    dtype = _call(function, ((), *args), kwargs, _broadcast).dtype
    return AbstractResult([(_as_shape(shape), dtype)], None)


def _as_shape(shape: Any) -> Shape:
    return tuple(map(int, shape)) if isinstance(shape, tuple | list) else (int(shape),)


def _square(function: Any, n: int, m: int | None = None, *args: Any, **settings: Any) -> Any:
    m = settings.pop("M", m)
    dtype = function(1, 1, *args, **settings).dtype
    return AbstractResult([((n, n if m is None else m), dtype)], None)


def _arange(function: Any, *args: Any, **settings: Any) -> AbstractResult | None:
    numbers = [x for x in args if isinstance(x, int | float)]
    if len(numbers) != len(args) or not 1 <= len(args) <= 3 or settings.keys() - {"dtype"}:
        return None
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    count = max(math.ceil((stop - start) / step), 0)
    return AbstractResult([((count,), function(0 * start, step, step, **settings).dtype)], None)


def _reshape(function: Any, x: Any, shape: Any, **settings: Any) -> AbstractResult | None:
    shape, size = _as_shape(shape), math.prod(x.shape)
    if settings or any(n < 0 for n in shape):
        rest = math.prod(n for n in shape if n != -1)
        if settings or shape.count(-1) != 1 or not rest or size % rest:
            return None
        shape = tuple([size // rest if n == -1 else n for n in shape])
    return AbstractResult([(shape, x.dtype)], None) if math.prod(shape) == size else None


def _ravel(function: Any, x: Any, **settings: Any) -> AbstractResult:
    return AbstractResult([((math.prod(x.shape),), x.dtype)], None)


def _concat(function: Any, arrays: Any, axis: Any = 0, **settings: Any) -> AbstractResult | None:
    if settings or type(axis) is not int or not all(map(_is_array, arrays)):
        return None
    ranks = {len(a.shape) for a in arrays}
    if len(ranks) != 1 or not -min(ranks) <= axis < min(ranks):
        return None
    axis %= min(ranks)
    others = {(*a.shape[:axis], *a.shape[axis + 1 :]) for a in arrays}
    if len(others) != 1:
        return None
    shape = list(arrays[0].shape)
    shape[axis] = sum(a.shape[axis] for a in arrays)
    return AbstractResult([(tuple(shape), np.result_type(*[a.dtype for a in arrays]))], None)


def _like_first(function: Any, x: Any, *_: Any, **settings: Any) -> AbstractResult | None:
    return AbstractResult([(x.shape, x.dtype)], None) if _is_array(x) else None


def _of_shape(function: Any, x: Any, *_: Any, shape: Shape, **settings: Any) -> AbstractResult:
    return AbstractResult([(shape, x.dtype)], None)


def _bits(function: Any, x: Any, dtype: Any) -> AbstractResult | None:
    if not x.shape:
        return None
    length = x.shape[-1] * x.dtype.itemsize // np.dtype(dtype).itemsize
    return AbstractResult([((*x.shape[:-1], length), np.dtype(dtype))], None)


def _getitem(function: Any, x: Any, key: Any) -> AbstractResult | None:
    """Slices are views of a dummy; what is left to arrays of indices has no numbers but 0."""
    parts = key if isinstance(key, tuple) else (key,)
    view = _broadcast(x.shape, x.dtype)
    arrays = [isinstance(part, np.ndarray) or _is_array(part) for part in parts]
    if not any(arrays):
        return _types(view[key])
    if any(array and part.dtype.kind == "b" for part, array in zip(parts, arrays, strict=True)):
        return None
    of_axes = _of_axes(parts, len(x.shape))
    if len(of_axes) > len(x.shape):
        return None  # it raises NumPy's error, as below
    for part, n in zip(of_axes, x.shape, strict=True):
        if isinstance(part, int) and not -n <= part < n:
            return None
    full = [part if isinstance(part, slice) or part is ... else slice(None) for part in parts]
    base = view[tuple([part for part, old in zip(full, parts, strict=True) if old is not None])]
    rest = [
        slice(None) if isinstance(part, slice) else 0 if isinstance(part, int) else part
        for part in parts
    ]
    value = _Abstract(base.shape, x.dtype)
    if not _is_large((value, rest)):
        return None
    return _by_lengths(lambda x, *key: x[key], (value, *rest), {}, _dummy)


def _assign_at(function: Any, x: Any, value: Any, key: Any) -> AbstractResult | None:
    parts = key if isinstance(key, tuple) else (key,)
    if hasattr(value, "shape") and not any([_is_array(p) and p.dtype.kind == "b" for p in parts]):
        shape, given = abstract_eval("getitem", (x, key), {}).types[0][0], value.shape
        while len(given) > len(shape) and given[0] == 1:  # as NumPy's assignment does
            given = given[1:]
        if np.broadcast_shapes(shape, given) != shape:  # which may raise, too
            raise ValueError(f"could not broadcast shape {value.shape} into shape {shape}")
    return _like_first(function, x)


def _lasting(function: Any, *, shape: Shape, key: Any) -> AbstractResult | None:
    found = _getitem(function, _Abstract(shape, np.dtype(np.intp)), key)
    return found and AbstractResult([(found.types[0][0], np.dtype(bool))], None)


def _linspace(function: Any, start: Any, stop: Any, num: int = 50, **settings: Any) -> Any:
    if settings.keys() - {"endpoint", "dtype"} or _is_array(start) or _is_array(stop):
        return None
    return AbstractResult([((num,), function(start, stop, 1, **settings).dtype)], None)


def _indices(function: Any, dimensions: Any, dtype: Any = int) -> AbstractResult:
    shape = _as_shape(dimensions)
    return AbstractResult([((len(shape), *shape), np.dtype(dtype))], None)


def _of_axes(parts: tuple[Any, ...], rank: int) -> list[Any]:
    """Return the part of an index for each axis."""
    taken = sum(1 for part in parts if part is not None and part is not ...)
    at = next((i for i, part in enumerate(parts) if part is ...), len(parts))
    full = [*parts[:at], *[slice(None)] * (rank - taken), *parts[at + 1 :]]
    return [part for part in full if part is not None]


def _of_scipy(function: Any, *arrays: Any, routine: str, **settings: Any) -> AbstractResult:
    types = result_types(routine, *arrays)
    return AbstractResult(types, tuple if len(types) > 1 else None)


class _Abstract:
    """An argument known by its type."""

    def __init__(self, shape: Shape, dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype


_RULES: dict[str, Callable[..., AbstractResult | None]] = {
    **dict.fromkeys(["np.zeros", "np.ones", "np.empty", "np.full"], _constructor),
    **dict.fromkeys(["np.eye", "np.tri"], _square),
    **dict.fromkeys(["index_add", "add_along_axis"], _of_shape),
    **dict.fromkeys(["np.concat", "np.concatenate"], _concat),
    **dict.fromkeys(
        ["plus_at", "add_at", "maximum_at", "minimum_at", "with_real", "with_imag"],
        _like_first,
    ),
    "assign_at": _assign_at,
    "np.roll": _like_first,
    "np.arange": _arange,
    "np.reshape": _reshape,
    "np.ravel": _ravel,
    "bits": _bits,
    "getitem": _getitem,
    "lasting": _lasting,
    "np.linspace": _linspace,
    "np.indices": _indices,
    "kernels.scipy_linalg": _of_scipy,
    "kernels.scipy_fft": _like_first,
}


def _is_array(x: Any) -> bool:
    """Whether an argument is abstract: a value of a program, known by its type only."""
    return hasattr(x, "shape") and hasattr(x, "dtype") and not isinstance(x, (np.generic, type))
