"""Derivative rules that have run before in a trace: their ops, recorded again for other arrays.

Steps of a loop in Python apply the same rules to arrays of the same types. A rule neither reads
elements nor keeps anything, so the second time its ops follow from those of the first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import ndarray, storage_of
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.program import ATOMS, Op, Value, map_values
from chainrule.compiler.tracing.symbol import TRACING, Symbol, outlived_error
from chainrule.compiler.tracing.trace import Trace


class RecordedRule(NamedTuple):
    """What a rule recorded when it ran, and what it returned."""

    inputs: list[Symbol]
    values: list[Value]  # of the inputs
    ops: list[Op]
    results: tuple[Any, ...]


class _UnlikeError(Exception):
    """The arguments of a rule can't be compared with those of other calls."""


def run_vjp(xp: Any, plan: Any, g: Any, saved: tuple[Any, ...], settings: Any) -> Any:
    """Return the cotangents of the inputs as symbols, by the rules of a plan of `primitives`."""
    trace = TRACING.get()
    if trace is None:
        raise outlived_error()
    saved = tuple([_as_symbol(trace, x) for x in saved])
    inputs: list[Symbol] = []
    try:
        types = _key(settings, inputs, True), _key(g, inputs), _key(saved, inputs)
    except _UnlikeError:
        return plan.vjp(xp, g, saved, settings)
    values = [symbol.value for symbol in inputs]
    key = plan, types, tuple(map(values.index, values))  # x * x differs from x * y
    known = trace.rules.get(key)
    if known is not None:
        return _repeat(trace, known, inputs, values)
    begin = len(trace.ops)
    results = plan.vjp(xp, g, saved, settings)
    ops = trace.ops[begin:]
    if all(map(_is_repeatable, ops)) and all(
        result is None or (result.__class__ is Symbol and not result.writes) for result in results
    ):
        trace.rules[key] = RecordedRule(inputs, values, ops, results)
    return results


def _as_symbol(trace: Trace, x: Any) -> Any:
    """Return a saved number as a symbol, which another number can replace."""
    if x.__class__ is ndarray and not x.ndim and id(storage_of(x)) not in trace.external:
        return trace.symbol_of(x)
    return x


def _is_repeatable(op: Op) -> bool:
    return op.function != DRAW and not op.regions


def _key(tree: Any, inputs: list[Symbol], elements: bool = False) -> Any:
    """Return what a rule can see of its arguments; add the symbols in them to the inputs.

    Of masks among the settings, which are indices, it sees the elements as well.
    """
    kind = tree.__class__
    if kind is Symbol and not (elements and tree._value.dtype.kind == "b"):
        inputs.append(tree)
        flags = tree.is_scalar, tree.maybe_view, tree.read_only, tree.finish
        return tree._value.shape, tree._value.dtype, tree.layout, flags
    if kind is tuple:
        return tuple([_key(item, inputs, elements) for item in tree])
    if kind is dict:
        return tuple([(name, _key(item, inputs, elements)) for name, item in tree.items()])
    if kind in ATOMS:
        return constant_key(tree)
    if isinstance(tree, np.dtype):
        return tree
    raise _UnlikeError


def _repeat(
    trace: Trace, rule: RecordedRule, inputs: list[Symbol], values: list[Value]
) -> tuple[Any, ...]:
    """Record the ops of a rule for other inputs, and return its results for these."""
    now = dict(zip(rule.values, values, strict=True))
    ops = []

    def value_now(value: Value) -> Value:
        return now.get(value, value)

    for op in rule.ops:
        args = map_values(op.args, value_now)
        kwargs = {name: map_values(arg, value_now) for name, arg in op.kwargs.items()}
        outs = tuple([Value(out.shape, out.dtype) for out in op.outs])
        now.update(zip(op.outs, outs, strict=True))
        ops.append(Op(op.function, args, kwargs, outs))
    trace.append(ops)
    made = {id(old): new for old, new in zip(rule.inputs, inputs, strict=True)}
    return tuple([None if x is None else _symbol_like(x, now, made) for x in rule.results])


def _symbol_like(x: Symbol, now: dict[Value, Value], made: dict[int, Symbol]) -> Symbol:
    """Return a symbol as another that a rule returned, for the values of now."""
    found = made.get(id(x))
    if found is None:
        found = made[id(x)] = Symbol(now.get(x._value, x._value))
        found.layout, found.is_scalar = x.layout, x.is_scalar
        found.maybe_view, found.read_only, found.finish = x.maybe_view, x.read_only, x.finish
        if x._base is not None:
            found.become_view(_symbol_like(x._base, now, made), x._take, x._replace)
    return found
