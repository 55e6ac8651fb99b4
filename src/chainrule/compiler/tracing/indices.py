"""Indices in a trace: lists and masks in them, and views at places that move from step to step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_basic_index, storage_of
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.tracing.repeated_calls import active_trace, kind_of
from chainrule.compiler.tracing.size_reads import READS
from chainrule.compiler.tracing.symbol import TRACING, Symbol
from chainrule.errors import CompileError

_new: Any = object.__new__


def plain_key(key: Any) -> Any:
    """Return an index with arrays in place of lists and tensors."""
    if isinstance(key, tuple):
        return tuple(map(plain_key, key))
    if isinstance(key, Tensor):
        return key._array
    return np.asarray(key) if isinstance(key, list) else key


def without_masks(key: Any) -> Any:
    """Return an index with integer arrays in place of masks, whose elements must be known."""
    parts = key if isinstance(key, tuple) else (key,)
    if not any(map(_is_mask, parts)):
        return key
    found: list[Any] = []
    for part in parts:
        if not _is_mask(part):
            found.append(part)
            continue
        trace = TRACING.get()
        mask = None if trace is None else trace.known(part)
        if mask is None:
            raise CompileError(
                "x[mask] has a shape that depends on values, which a compiled function doesn't "
                "know: use where(mask, x, 0), or multiply with the mask; for x[mask] = f(x[mask]), "
                "x = where(mask, f(x), x); for a constant mask, x[np.where(mask)]"
            )
        found += np.nonzero(mask)
    return tuple(found)


def constant_index(key: Any) -> Any:
    """Return an index with the elements of its arrays if the function has made them, else None."""
    trace = active_trace()
    parts = []
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, list):
            part = np.asarray(part)
        if isinstance(part, Symbol):
            part = trace.constants.get(part.value)
            if part is None:
                return None
        elif isinstance(part, np.ndarray) and id(storage_of(part)) in trace.external:
            return None
        parts.append(part)
    return tuple(parts)


def _is_mask(part: Any) -> bool:
    return isinstance(part, Symbol | np.ndarray) and part.dtype.kind == "b"


def is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(part, Symbol) for part in parts) and is_basic_index(key)


# --- places that move -----------------------------------------------------------------------------


class _Place(NamedTuple):
    """The view at a place of an array, as its first index of the kind gave it."""

    shape: tuple[int, ...]
    dtype: Any
    layout: tuple[int, ...] | None
    kind: object
    is_scalar: bool
    is_view: bool


def run_indexing(x: Symbol, key: Any, function: Callable[[Symbol, Any], Symbol]) -> Symbol:
    """Return a view of a symbol at a basic index, by a function whose result depends on the place.

    At other places of the same kind, it is recorded again with the present index.
    """
    trace, kind = active_trace(), _kind_of_place(x._value.shape, key)
    if kind is None or READS.get() is not None:
        return function(x, key)
    seen = x.kind or kind_of(trace, x), kind
    known: _Place | None = trace.calls.get(seen)
    if known is None:
        found = function(x, key)
        result_kind = kind_of(trace, found)
        shape, is_view = found._value.shape, found._base is not None
        parts = shape, found.dtype, found.layout, result_kind, found.is_scalar, is_view
        trace.calls[seen] = _Place(*parts)
        return found
    base = x._value if x._base is None else x.value
    out: Value = _new(Value)
    out.shape, out.dtype, out.hint = known.shape, known.dtype, ""
    trace.append([Op("getitem", (base, key), {}, (out,))])
    result: Symbol = _new(Symbol)
    result._value, result.dtype, result._origin = out, known.dtype, trace.origin
    result.kind, result.layout, result.is_scalar = known.kind, known.layout, known.is_scalar
    result._base, result.writes, result.finish = None, 0, None
    result.maybe_view = result.read_only = False
    if known.is_view:
        result.become_view(x, partial(_value_at, key), partial(_value_with, key))
    return result


def run_assignment(
    base: Any, value: Any, key: Any, function: Callable[[Any, Any, Any], Symbol]
) -> Symbol:
    """Return an array with a value at an index, by a function that raises where it doesn't fit.

    At other places of the same kind, it is recorded again with the present index.
    """
    whole = base.value if type(base) is Symbol else base
    kind = None
    if type(value) is Symbol and type(whole) is Value and whole.shape and READS.get() is None:
        kind = _kind_of_place(whole.shape, key)
    trace = active_trace()
    if kind is None or value._origin is not trace.origin:
        return function(base, value, key)
    part = value.value
    seen = function, whole.shape, whole.dtype, part.shape, part.dtype, kind
    if seen not in trace.calls:
        found = function(base, value, key)
        trace.calls[seen] = True
        return found
    out = Value(whole.shape, whole.dtype)
    trace.append([Op("assign_at", (whole, part, key), {}, (out,))])
    return Symbol(out)


def _value_at(key: Any, base: Value) -> Value:
    (out,), _ = active_trace().call("getitem", (base, key), {})
    return out


def _value_with(key: Any, base: Value, view: Value) -> Value:
    (out,), _ = active_trace().call("assign_at", (base, view, key), {})
    return out


def _kind_of_place(shape: tuple[int, ...], key: Any) -> Any:
    """Return what decides the type of `x[key]` if that is an index within bounds, else None."""
    parts = key if key.__class__ is tuple else (key,)
    found: list[Any] = []
    if parts and parts[-1] is Ellipsis:
        found.append(Ellipsis)
        parts = parts[:-1]
    if len(parts) > len(shape):
        return None
    for part, n in zip(parts, shape, strict=False):
        if part.__class__ is int and -n <= part < n:
            found.append(int)
        elif part.__class__ is slice and part.step is None:
            first, end = part.start, part.stop
            if first is None is end:
                found.append(slice)
            elif first.__class__ is int is end.__class__ and 0 <= first <= end <= n:
                found.append(end - first)
            else:
                return None
        else:
            return None
    return tuple(found)
