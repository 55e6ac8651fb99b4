"""The array namespace of batched arrays, for derivative rules and for NumPy called by users.

A batching rule turns a function of arrays into one of batched arrays: it accounts for the batch
axis in front of the others. A function without a rule is called for each example in turn.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from chainrule import pytree
from chainrule.autograd.array_proxy import NumberProxy
from chainrule.autograd.intercept import INTERCEPTOR, intercepted_by
from chainrule.autograd.location import here
from chainrule.autograd.remarks import Remark, note, tell
from chainrule.autograd.tensor import Tensor
from chainrule.backend import LazyModule, NamespaceDefaults, namespace, numpy_xp
from chainrule.backend import is_array as is_any_array
from chainrule.errors import AutogradError, MissingRuleError
from chainrule.interop.operands import check_keeps
from chainrule.interop.table import OF_VALUES, WRITERS
from chainrule.kernels.flat_indexing import is_basic_index
from chainrule.transforms.vmap.batched_array import BatchedArray, Level, Take

Array = Any
Rule = Callable[..., Any]

RULES: dict[str, Rule] = {}
"""Batching rules by function name; a rule takes a level, the name, and the function's arguments."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the batching rule of these names."""

    def decorate(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return decorate


class BatchedNamespace(NamespaceDefaults):
    """Functions of batched arrays, under the names that derivative rules call."""

    known = False  # elements differ between examples
    records = False
    loops: Any = None
    rule_kernels: Any = None
    apply: Any  # set by `batched_primitives`, as are these
    plus: Any
    run_vjp: Any

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Any:
        full_name = self._prefix + name
        found: Any = RULES.get(full_name)
        if found is None:
            found = operator.attrgetter(full_name)(numpy_xp)
            if isinstance(found, ModuleType | LazyModule):
                return BatchedNamespace(f"{name}.")
            if not callable(found) or isinstance(found, type) or name in _STATIC:
                return found
            is_elementwise = isinstance(found, np.ufunc) or self._prefix == "special."
            found = RULES["ufuncs"] if is_elementwise else loop_over_batch
        call: Any = functools.partial(apply_rule, found, full_name)
        if found is RULES["ufuncs"]:
            call = _elementwise(operator.attrgetter(full_name)(numpy_xp), call)
        self.__dict__[name] = call
        return call

    def asarray(self, x: Any, **settings: Any) -> Any:
        if x.__class__ is BatchedArray and not settings:  # after every operation
            return x
        return apply_rule(RULES["asarray"], "asarray", x, **settings)

    def number(self, x: Array, like: BatchedArray) -> Array:
        inner = like.whole
        found: Array = namespace(inner).number(x, inner)
        return found

    def add_in_place(self, out: BatchedArray, key: Any, value: BatchedArray) -> bool:
        lengths = out.data.shape[0], value.data.shape[0]
        if out.level is not value.level or lengths[0] < lengths[1] or not is_basic_index(key):
            return False
        parts = key if key.__class__ is tuple else (key,)
        xp = inner_xp(out.data, value.data)
        done: bool = xp.add_in_place(out.data, (slice(None), *parts), value.data)
        return done

    def reshaped_view(self, x: BatchedArray, shape: tuple[int, ...]) -> Array:
        if x.data.__class__ is np.ndarray and -1 not in shape:
            return BatchedArray(x.level, x.data.reshape(x.data.shape[0], *shape, copy=False))
        return super().reshaped_view(x, shape)

    def inner_xp(self, *datas: Any) -> Any:
        """Return the namespace of the arrays that hold the batch."""
        return inner_xp(*datas)

    def is_contiguous(self, x: BatchedArray) -> bool | None:
        found: bool | None = inner_xp(x.data).is_contiguous(x.example)
        return found


def _elementwise(function: Rule, general: Rule) -> Rule:
    """Return an elementwise function; `general` is for other arguments than nearly all have."""

    def call(*args: Any, **settings: Any) -> Any:
        x = args[0] if args else None
        if settings or x.__class__ is not BatchedArray or x.data.__class__ is not np.ndarray:
            return general(*args, **settings)
        if len(args) == 1:
            return batched(x.level, function(x.data))
        y = args[1]
        if y.__class__ is BatchedArray:
            if y.level is not x.level or y.data.__class__ is not np.ndarray:
                return general(*args)
            y = y.data
            if y.ndim != x.data.ndim:
                return general(*args)
        elif y.__class__ is not float and y.__class__ is not int:
            return general(*args)
        if len(args) > 2:
            return general(*args)
        return batched(x.level, function(x.data, y))

    return call


BATCHED_XP = BatchedArray.namespace = BatchedNamespace()

_STATIC = frozenset(
    [
        *("isdtype", "iinfo", "finfo", "dtype", "broadcast_shapes", "errstate"),
        *("shape", "ndim", "size", "result_type", "can_cast", "common_type", "iscomplexobj"),
        "isrealobj",
    ]
)
"""Functions that depend on shapes and dtypes alone."""


CREATION = ("zeros", "ones", "empty", "eye", "full", "arange", "linspace")


class _Entered(threading.local):
    xp: Any = numpy_xp


ENTERED = _Entered()
"""The namespace that makes arrays for the run of vmap whose graph a backward pass last entered."""


def apply_rule(found: Rule, name: Any, *args: Any, **settings: Any) -> Any:
    """Apply the rule of a function at the deepest level among its arguments."""
    level = deepest_level(*args, *settings.values()) if settings else deepest_level(*args)
    if level is None:
        level = getattr(INTERCEPTOR.get(), "level", None)
        if level is None:  # nothing is batched, as by zeros() in a backward pass after vmap
            if name in CREATION:
                return getattr(ENTERED.xp, name)(*args, **settings)
            return inner_function(name, *filter(is_any_array, args))(*args, **settings)
    try:
        return found(level, name, *args, **settings)
    except IndexError:
        if found is not loop_over_batch:
            # Raise the error of one example, whose text has the right dimensions.
            _loop(level, _METHODS.get(name, name), *args, **settings)
        raise


def _of_one_example(x: Array) -> Array:
    return x if is_any_array(x) else np.asarray(x)


def _set_numpy_item(x: Array, key: Any, value: Any) -> None:
    _of_one_example(x)[key] = value


_METHODS: dict[str, Rule] = {
    "get_item": lambda x, key: _of_one_example(x)[key],
    "set_item": _set_numpy_item,
}


_LEAVES = frozenset([np.ndarray, float, int, bool, str, type(None), slice, type(...)])
"""Types of the arguments that are passed most often and have no level."""


def deepest_level(*parts: Any) -> Level | None:
    """Return the deepest level among arguments."""
    found: Level | None = None
    level: Level | None
    for part in parts:
        kind = part.__class__
        if kind is BatchedArray:
            level = part.level
        elif kind in _LEAVES:
            continue
        elif isinstance(part, tuple | list):
            level = deepest_level(*part)
        elif kind is dict:
            level = deepest_level(*part.values())
        else:
            continue
        if found is None or (level is not None and level.depth > found.depth):
            found = level
    return found


# --- building blocks of rules ---------------------------------------------------------------------


def inner_xp(*datas: Any) -> Any:
    """Return the namespace of arrays that hold a batch."""
    for data in datas:
        if data.__class__ is not np.ndarray:
            return namespace(data)
    return numpy_xp


def inner_function(name: str, *datas: Any) -> Rule:
    """Return the function of a name in the namespace of arrays that hold a batch."""
    xp = inner_xp(*datas)
    function: Rule = numpy_function(name) if xp is numpy_xp else operator.attrgetter(name)(xp)
    return function


@functools.cache
def numpy_function(name: str) -> Rule:
    """Return NumPy's function of a name, which may be dotted."""
    function: Rule = operator.attrgetter(name)(numpy_xp)
    return function


def is_array(x: Any) -> bool:
    if x.__class__ is BatchedArray or x.__class__ is np.ndarray:
        return True
    return isinstance(x, np.generic) or is_any_array(x)


def is_batched(level: Level, x: Any) -> bool:
    """Tell whether something is an array batched at this level."""
    return x.__class__ is BatchedArray and x.level is level


def data_of(level: Level, x: Any) -> Array:
    """Return the array with the batch axis in front: of length 1 if all examples share it."""
    kind = x.__class__
    if kind is BatchedArray and x.level is level:
        return x.data
    if not (kind is np.ndarray or is_array(x)):
        if kind in (list, tuple) and deepest_level(x) is not None:
            return data_of(level, BATCHED_XP.stack([*map(BATCHED_XP.asarray, x)]))
        x = x.as_array() if isinstance(x, NumberProxy) else level.xp.asarray(x)
    return x[None]


def operand_of(level: Level, x: Any) -> Array:
    """Return what `data_of` does, for values that are only read: no view is kept track of."""
    if x.__class__ is BatchedArray and x.level is not level:
        return x.with_axes(0, 1)
    return data_of(level, x)


def align_ranks(level: Level, *arrays: Any) -> list[Array]:
    """Return arrays of equal rank, so that they broadcast behind the batch axis."""
    datas = [data_of(level, x) for x in arrays]
    rank = max((data.ndim for data in datas), default=1)
    return [pad_rank(data, rank) for data in datas]


def pad_rank(data: Array, rank: int) -> Array:
    """Return an array of a given rank, with new axes of length 1 behind the batch axis."""
    missing = rank - data.ndim
    if not missing:
        return data
    if data.__class__ is BatchedArray:
        return data.with_axes(1, missing)
    return data[(slice(None), *(None,) * missing)]


def broadcast_batch(level: Level, data: Array) -> Array:
    """Return an array whose batch axis has its full length, repeated if all examples share it."""
    if data.shape[0] == level.count:
        return data
    return inner_xp(data).broadcast_to(data, (level.count, *data.shape[1:]))


def broadcast_batches(level: Level, *arrays: Any) -> list[Array]:
    """Return arrays with batch axes of equal length: 1 if all examples share all of them."""
    datas = [data_of(level, x) for x in arrays]
    if all(data.shape[0] == 1 for data in datas):
        return datas
    return [broadcast_batch(level, data) for data in datas]


def batched(level: Level, out: Any) -> Any:
    """Return the array, or the arrays of a tree, as batched arrays."""
    if out.__class__ is np.ndarray:
        return BatchedArray(level, out)
    return pytree.map_leaves(out, lambda array: BatchedArray(level, array))


def view(level: Level, x: Any, take: Take) -> Any:
    """Return a batched view of an array's memory."""
    return x.make_view(take) if is_batched(level, x) else batched(level, take(data_of(level, x)))


def loop_over_batch(
    level: Level, name: str | Rule, *args: Any, title: str = "", **settings: Any
) -> Any:
    """Call a function for each example in turn: right for every function, but slow."""
    if _loop_count(level, args, settings) > 1:
        tell_of_loop(level, title or str(getattr(name, "__name__", name)))
    return _loop(level, name, *args, **settings)


def _loop_count(level: Level, *arguments: Any) -> int:
    """Return the number of examples that differ in the arguments."""
    leaves = [leaf for _, leaf in pytree.leaves(arguments)]
    return max((x.data.shape[0] for x in leaves if is_batched(level, x)), default=1)


def tell_of_loop(level: Level, operation: str) -> None:
    """Warn of a loop over the examples, or raise if the level is strict."""
    location = here()
    line = "" if location is None else f", at {location}"
    text = (
        f"{level.owner.title}: {operation} runs for each of {level.count} "
        f"examples in turn, since it has no batching rule{line}: {_mend_of(operation)}"
    )
    if level.strict:
        raise MissingRuleError(f"strict=True: {text}")
    remark = Remark(operation, text)
    note(remark)
    tell(remark, level.owner.told)


def _mend_of(operation: str) -> str:
    """Return what to write in the place of an operation."""
    if operation.startswith("random."):
        return "draw outside of vmap, for all examples at once, and pass the numbers as an argument"
    found = _MENDS.get(operation.rpartition(".")[2])
    return found or "call it outside of vmap, on all examples, or compute it from other operations"


_MENDS = {
    "searchsorted": "search in a sequence that all examples share, or count the smaller elements, "
    "as in (sequence < value[..., None]).sum(-1)",
    "histogram": "add ones at bucketize(x, edges) by scatter_add, which has a rule",
    "isin": "write (x[..., None] == values).any(-1)",
    "index": "write where(mask, x, 0) instead of x[mask]",
    "setitem": "write where(mask, values, x) with values of the shape of x",
    "assign_at": "write where(mask, values, x) with values of the shape of x",
}


def _loop(level: Level, name: str | Rule, *args: Any, **settings: Any) -> Any:
    count = _loop_count(level, args, settings)
    interceptor: Any = INTERCEPTOR.get()
    if callable(name) and getattr(interceptor, "level", None) is level:
        # Tensors of an example's array belong to the run outside.
        name = functools.partial(intercepted_by, interceptor.outer, name)
    outs = []
    for i in range(max(count, 1)):
        some, named = pytree.map_leaves((args, settings), functools.partial(_example, level, i))
        function = name if callable(name) else inner_function(name, *_arrays_in((some, named)))
        outs.append(function(*some, **named))
    return _stacked(level, outs, count)


def _example(level: Level, i: int, x: Any) -> Any:
    """Return one example of an argument."""
    if not is_batched(level, x):
        return x
    if not x.data.shape[0]:  # an empty batch: any values, only the results' shapes matter
        return np.zeros(x.shape, x.dtype)
    return x.data[i if x.data.shape[0] > 1 else 0, ...]  # an array also where 0-d


def _arrays_in(arguments: Any) -> list[Any]:
    return [leaf for _, leaf in pytree.leaves(arguments) if is_array(leaf)]


def _stacked(level: Level, outs: list[Any], count: int) -> Any:
    columns = zip(*[[leaf for _, leaf in pytree.leaves(out)] for out in outs], strict=True)
    stacks = iter([_stack(level, list(column), count) for column in columns])
    return pytree.map_leaves(outs[0], lambda _: next(stacks))


def _stack(level: Level, outs: list[Any], count: int) -> Any:
    first = outs[0]
    if first is None:
        return None
    if not is_array(first) or isinstance(first, np.generic):
        first, outs = np.asarray(first), [np.asarray(out) for out in outs]
    if count == 0:
        return BatchedArray(level, np.zeros((0, *first.shape), first.dtype))
    if any([out.shape != first.shape for out in outs]):
        raise_data_dependent_shape()
    return BatchedArray(level, inner_xp(first).stack(outs, axis=0))


def raise_data_dependent_shape() -> NoReturn:
    """Raise the error for a selection, whose results can't be stacked."""
    raise AutogradError(
        "vmap: the shape of the result depends on values, which differ between examples: use "
        "where(mask, x, 0) instead of x[mask], or select outside of vmap"
    )


# --- NumPy functions called on batched arrays -----------------------------------------------------


def _array_ufunc(self: BatchedArray, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
    if any(isinstance(x, Tensor) for x in inputs):
        return NotImplemented  # tensors record the call
    (target,) = settings.pop("out", (None,))
    if method == "__call__":
        found = apply_rule(RULES["ufuncs"], ufunc.__name__, *inputs, **settings)
    else:
        level = deepest_level(inputs, settings)
        assert level is not None
        found = _ufunc_method(level, ufunc, method, *inputs, **settings)
    if target is None:
        return found
    target[...] = found
    return target


def _ufunc_method(
    level: Level, ufunc: Any, method: str, x: Any, *rest: Any, **settings: Any
) -> Any:
    """Call `reduce`, `accumulate` and the like."""
    data, axis = data_of(level, x), settings.get("axis", 0)
    rank = data.ndim - 1
    known = method == "accumulate" and not rest and type(data) is np.ndarray
    if known and -rank <= axis < rank:
        settings["axis"] = axis % rank + 1
        return batched(level, ufunc.accumulate(data, **settings))
    title = f"{ufunc.__name__}.{method}"
    return loop_over_batch(level, getattr(ufunc, method), x, *rest, title=title, **settings)


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
    if function in OF_VALUES:
        args, settings = pytree.map_leaves((args, settings), _values)
        return function(*args, **settings)
    if function in WRITERS and not isinstance(args[0], BatchedArray):
        check_keeps(args[0], function, *args, settings)
    if name == "copyto":
        target, value = args[:2]
        where = settings.get("where", True)
        target[...] = value if where is True else BATCHED_XP.where(where, value, target)
        return None
    if function in WRITERS:
        return _write_in_turn(function, *args, **settings)
    if name in RULES:
        return apply_rule(RULES[name], name, *args, **settings)
    return apply_rule(loop_over_batch, function, *args, title=name, **settings)


def _values(leaf: Any) -> Any:
    """Return an array of numbers, which raises for a batched one."""
    return np.asarray(leaf) if isinstance(leaf, BatchedArray) else leaf


def _write_in_turn(function: Any, target: BatchedArray, *args: Any, **settings: Any) -> None:
    """Call a function that writes to an array, whose memory the examples may share."""

    def written(x: Any, *args: Any, **settings: Any) -> Any:
        x = np.copy(x)
        function(x, *args, **settings)
        return x

    title = function.__name__
    level = deepest_level((target, *args), settings)
    assert level is not None
    target[...] = loop_over_batch(level, written, target, *args, title=title, **settings)


BatchedArray.__array_ufunc__ = _array_ufunc  # type: ignore[attr-defined] # set here, where the rules are known
BatchedArray.__array_function__ = _array_function  # type: ignore[attr-defined]
