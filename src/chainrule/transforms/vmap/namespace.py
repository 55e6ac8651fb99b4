"""The namespace over lanes: what rules, and NumPy called by users, compute with in a map.

A function of arrays becomes one of lanes by a rule: what becomes of the axes, now that there is one
before them. What has none is called for one lane after the other.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace, numpy_xp
from chainrule.transforms.vmap.batched_array import BatchedArray, Level, Take

Array = Any
Rule = Callable[..., Any]

RULES: dict[str, Rule] = {}
"""The rules by the names of functions: of a level, the name, and the function's arguments."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Let a function be the rule of these."""

    def decorate(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return decorate


class LanesNamespace:
    """Functions of lanes under the names that rules call."""

    known = False  # each lane has other elements
    records = False
    loops: Any = None
    rule_kernels: Any = None

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        full_name = self._prefix + name
        found: Any = RULES.get(full_name)
        if found is None:
            found = operator.attrgetter(full_name)(numpy_xp)
            if isinstance(found, ModuleType):
                return LanesNamespace(f"{name}.")
            if not callable(found) or isinstance(found, type) or name in _STATIC:
                return found
            found = RULES["ufuncs"] if isinstance(found, np.ufunc) else looped
        call = self.__dict__[name] = functools.partial(applied, found, full_name)
        return call

    def asarray(self, x: Any, **settings: Any) -> Any:
        if x.__class__ is BatchedArray and not settings:  # after every operation
            return x
        return applied(RULES["asarray"], "asarray", x, **settings)

    def beneath(self, *datas: Any) -> Any:
        """Return the namespace of what lanes are made of."""
        return beneath(*datas)

    def is_contiguous(self, x: BatchedArray) -> bool | None:
        found: bool | None = beneath(x.data).is_contiguous(x.one)
        return found


LANES_XP = BatchedArray.namespace = LanesNamespace()

_STATIC = frozenset(
    [
        *("isdtype", "iinfo", "finfo", "dtype", "broadcast_shapes", "errstate"),
        *("shape", "ndim", "size", "result_type", "can_cast", "iscomplexobj", "isrealobj"),
    ]
)
"""Functions of shapes and dtypes alone."""


def applied(found: Rule, name: str, *args: Any, **settings: Any) -> Any:
    """Apply the rule of a function at the deepest level that its arguments are of."""
    level = deepest(args, settings) if settings else deepest(args)
    if level is None:
        level = getattr(INTERCEPTOR.get(), "level", None)
        if level is None:  # what needs no lanes, such as zeros() in the pass after a map
            return numpys(name)(*args, **settings)
    try:
        return found(level, name, *args, **settings)
    except IndexError:
        if found is not looped:
            # That of one lane has its dimensions in the text.
            looped(level, _METHODS.get(name, name), *args, **settings)
        raise


def _written(x: Array, key: Any, value: Any) -> None:
    np.asarray(x)[key] = value


_METHODS: dict[str, Rule] = {"get_item": lambda x, key: np.asarray(x)[key], "set_item": _written}


def deepest(*parts: Any) -> Level | None:
    """Return the deepest level among arguments."""
    found: Level | None = None
    level: Level | None
    for part in parts:
        if part.__class__ is BatchedArray:
            level = part.level
        elif isinstance(part, tuple | list):
            level = deepest(*part)
        elif part.__class__ is dict:
            level = deepest(*part.values())
        else:
            continue
        if found is None or (level is not None and level.depth > found.depth):
            found = level
    return found


# --- what rules are made of -----------------------------------------------------------------------


def beneath(*datas: Any) -> Any:
    """Return the namespace that computes on what lanes are made of."""
    for data in datas:
        if data.__class__ is not np.ndarray:
            return namespace(data)
    return numpy_xp


def inner(name: str, *datas: Any) -> Rule:
    """Return the function of a name for what lanes are made of."""
    xp = beneath(*datas)
    function: Rule = numpys(name) if xp is numpy_xp else operator.attrgetter(name)(xp)
    return function


@functools.cache
def numpys(name: str) -> Rule:
    """Return NumPy's function of a name, which may have a dot."""
    function: Rule = operator.attrgetter(name)(numpy_xp)
    return function


def is_array(x: Any) -> bool:
    if x.__class__ is BatchedArray or x.__class__ is np.ndarray:
        return True
    return isinstance(x, np.ndarray | np.generic) or hasattr(type(x), "namespace")


def belongs(level: Level, x: Any) -> bool:
    """Say whether something has lanes of this level."""
    return x.__class__ is BatchedArray and x.level is level


def data_of(level: Level, x: Any) -> Array:
    """Return an array with the lanes' dimension in front: of length 1, if all lanes share it."""
    if x.__class__ is BatchedArray and x.level is level:
        return x.data
    return (x if is_array(x) else np.asarray(x))[None]


def aligned(level: Level, *arrays: Any) -> list[Array]:
    """Return arrays of as many dimensions each, so that they broadcast behind the lanes."""
    datas = [data_of(level, x) for x in arrays]
    rank = max((data.ndim for data in datas), default=1)
    return [padded(data, rank) for data in datas]


def padded(data: Array, rank: int) -> Array:
    """Return an array of so many dimensions, with those of length 1 behind the lanes'."""
    missing = rank - data.ndim
    return data[(slice(None), *(None,) * missing)] if missing else data


def full(level: Level, data: Array) -> Array:
    """Return an array with all of the lanes, repeated if there was only one."""
    if data.shape[0] == level.count:
        return data
    return beneath(data).broadcast_to(data, (level.count, *data.shape[1:]))


def as_many(level: Level, *arrays: Any) -> list[Array]:
    """Return arrays with as many lanes each: one, where all are alike."""
    datas = [data_of(level, x) for x in arrays]
    if all(data.shape[0] == 1 for data in datas):
        return datas
    return [full(level, data) for data in datas]


def lanes(level: Level, out: Any) -> Any:
    """Return what came out as lanes: an array, or several."""
    if out.__class__ is np.ndarray:
        return BatchedArray(level, out)
    return pytree.mapped(out, lambda array: BatchedArray(level, array))


def view(level: Level, x: Any, take: Take) -> Any:
    """Return lanes that show a part of an array's memory."""
    return x.showing(take) if belongs(level, x) else lanes(level, take(data_of(level, x)))


def looped(level: Level, name: str | Rule, *args: Any, **settings: Any) -> Any:
    """Call a function for one lane after the other: right for all, quick for none."""
    leaves = [leaf for _, leaf in pytree.leaves((args, settings))]
    count = max((x.data.shape[0] for x in leaves if belongs(level, x)), default=1)
    outs = []
    for i in range(max(count, 1)):
        some, named = pytree.mapped((args, settings), functools.partial(_lane, level, i))
        function = name if callable(name) else inner(name, *_arrays_in((some, named)))
        outs.append(function(*some, **named))
    return _stacked(level, outs, count)


def _lane(level: Level, i: int, x: Any) -> Any:
    """Return one lane of an argument."""
    if not belongs(level, x):
        return x
    if not x.data.shape[0]:  # no lane at all: any values, for the shapes that come out
        return np.zeros(x.shape, x.dtype)
    return x.data[i if x.data.shape[0] > 1 else 0, ...]  # an array, of one number too


def _arrays_in(arguments: Any) -> list[Any]:
    return [leaf for _, leaf in pytree.leaves(arguments) if is_array(leaf)]


def _stacked(level: Level, outs: list[Any], count: int) -> Any:
    columns = zip(*[[leaf for _, leaf in pytree.leaves(out)] for out in outs], strict=True)
    stacks = iter([_stack(level, list(column), count) for column in columns])
    return pytree.mapped(outs[0], lambda _: next(stacks))


def _stack(level: Level, outs: list[Any], count: int) -> Any:
    first = outs[0]
    if first is None:
        return None
    if not is_array(first) or isinstance(first, np.generic):
        first, outs = np.asarray(first), [np.asarray(out) for out in outs]
    if count == 0:
        return BatchedArray(level, np.zeros((0, *first.shape), first.dtype))
    return BatchedArray(level, beneath(first).stack(outs, axis=0))


# --- NumPy called with lanes ----------------------------------------------------------------------


def _array_ufunc(self: BatchedArray, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
    if any(isinstance(x, Tensor) for x in inputs):
        return NotImplemented  # what has a history is the tensor's to record
    (target,) = settings.pop("out", (None,))
    if method == "__call__":
        found = applied(RULES["ufuncs"], ufunc.__name__, *inputs, **settings)
    else:
        level = deepest(inputs, settings)
        assert level is not None
        found = looped(level, getattr(ufunc, method), *inputs, **settings)
    if target is None:
        return found
    target[...] = found
    return target


def _array_function(self: BatchedArray, function: Any, types: Any, args: Any, settings: Any) -> Any:
    if any(issubclass(kind, Tensor) for kind in types):
        return NotImplemented
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    if name in _STATIC:
        args = tuple(
            np.broadcast_to(np.ones((), a.dtype), a.shape) if isinstance(a, BatchedArray) else a
            for a in args
        )
        return function(*args, **settings)
    if name == "copyto":
        target, value = args[:2]
        where = settings.get("where", True)
        target[...] = value if where is True else LANES_XP.where(where, value, target)
        return None
    return applied(RULES.get(name, looped), name, *args, **settings)


BatchedArray.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined] # its methods are all made here
BatchedArray.__array_function__ = _array_function  # type: ignore[attr-defined]
