"""Results that NumPy's functions write to arrays: the argument `out`, and ``ufunc.at``."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.inplace import in_place
from chainrule.autograd.tensor import Tensor, make
from chainrule.interop.operands import arrays_of, check_keeps, is_tracked, tensor_of
from chainrule.ops.indexing import set_at


@functools.cache
def place_of_out(function: Any) -> int:
    """Return the position of a function's argument `out`; one that no call has, if there is none.

    NumPy may take it by position: ``np.clip(a, low, high, a)``.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
        names = [
            p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        names = []  # of C code, whose signature isn't known
    return names.index("out") if "out" in names else sys.maxsize


def written(function: Any, out: Any, results: Any) -> Any:
    """Write results to the arrays of the argument `out`, and return these."""
    targets = out if isinstance(out, tuple) else (out,)
    values = results if isinstance(results, tuple) else (results,)
    for target, value in zip(targets, values, strict=True):
        if isinstance(target, Tensor):
            set_at(target, ..., tensor_of(value))
        elif isinstance(target, ArrayProxy):
            target[...] = arrays_of(value)
        elif target is not None:
            check_keeps(target, function, value)
            target[...] = arrays_of(value)
    kept = [v if t is None else t for t, v in zip(targets, values, strict=True)]
    return kept[0] if len(kept) == 1 else tuple(kept)


def _applied_at(ufunc: Any, t: Tensor, indices: Any, values: tuple[Any, ...]) -> Tensor:
    """Return `t` after a ufunc at some positions: at the k-th occurrences of all in step k."""
    positions = np.arange(t.numel()).reshape(t.shape)[arrays_of(indices)]
    rows = [ops.ravel(ops.broadcast_to(tensor_of(value), positions.shape)) for value in values]
    positions = positions.ravel()
    order = np.argsort(positions, kind="stable")
    _, firsts, counts = np.unique(positions[order], return_index=True, return_counts=True)
    occurrence = np.empty(len(positions), np.intp)
    occurrence[order] = np.arange(len(positions)) - np.repeat(firsts, counts)
    flat = ops.ravel(t)
    for step in range(counts.max(initial=0)):
        chosen = np.flatnonzero(occurrence == step)
        places = positions[chosen]
        results = ufunc(flat[places], *[row[chosen] for row in rows])
        result = tensor_of(results)
        result = result if result.is_complex() else cast(result, t.dtype)
        flat = ops.index_put(flat, (places,), result)
    return ops.reshape(flat, t.shape)


def write_at(ufunc: Any, target: Any, indices: Any, *values: Any) -> None:
    """Do ``ufunc.at``: at repeated indices once for each, which `add` and `subtract` sum."""
    if not isinstance(target, Tensor):
        check_keeps(target, ufunc, *values)
        ufunc.at(target, arrays_of(indices), *arrays_of(values))
    elif ufunc in (np.add, np.subtract) and values:
        value = tensor_of(values[0])
        value = ops.negative(value) if ufunc is np.subtract else value
        value = value if value.is_complex() else cast(value, target.dtype)
        key = indices if isinstance(indices, tuple) else (indices,)
        in_place(target, f"{ufunc.__name__}.at", lambda t: ops.index_put(t, key, value, True))
    elif is_tracked(target, values):
        in_place(target, f"{ufunc.__name__}.at", lambda t: _applied_at(ufunc, t, indices, values))
    else:
        result = np.array(target._array)
        ufunc.at(result, arrays_of(indices), *arrays_of(values))
        set_at(target, ..., make(result, None))
