"""Primitives and derivative rules that have run before in a trace: their ops, recorded again.

Steps of a loop in Python apply the same functions to arrays of the same types. Neither forward
functions nor rules read elements or keep anything, so the second time their ops follow from those
of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import ndarray, storage_of
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.program import ATOMS, Op, Value, map_values
from chainrule.compiler.tracing.symbol import TRACING, Symbol, outlived_error
from chainrule.compiler.tracing.trace import Trace

_new: Any = object.__new__


class _OpTemplate(NamedTuple):
    """An op, and the positions of its arguments that are values of the present call."""

    op: Op
    places: list[tuple[int, int]] | None  # (argument, number of the value); None if nested
    structure: list[Any]  # see `Op.structure`


class _SymbolTemplate:
    """A symbol that a function returned, as it was then: it may be written to later."""

    def __init__(self, symbol: Symbol, inputs: list[Symbol], numbers: dict[Value, int]) -> None:
        same = [number for number, given in enumerate(inputs) if given is symbol]
        self.input = same[0] if same else None
        self.value = symbol._value
        self.number = numbers.get(symbol._value)
        self.flags = symbol.layout, symbol.is_scalar, symbol.maybe_view, symbol.read_only
        self.finish = symbol.finish
        self.base: _SymbolTemplate | None = None
        if symbol._base is not None and not same:
            self.base = _SymbolTemplate(symbol._base, inputs, numbers)
            self.view = symbol._take, symbol._replace

    def symbol(self, inputs: list[Symbol], values: list[Value], origin: object) -> Symbol:
        """Return the symbol for other inputs and their values, and those of the ops."""
        if self.input is not None:
            return inputs[self.input]
        found: Symbol = _new(Symbol)  # whose `__init__` would look for what is known here
        found._value = self.value if self.number is None else values[self.number]
        found._origin, found._base, found.writes = origin, None, 0
        found.layout, found.is_scalar, found.maybe_view, found.read_only = self.flags
        found.finish = self.finish
        if self.base is not None:
            found.become_view(self.base.symbol(inputs, values, origin), *self.view)
        return found


class RecordedCall(NamedTuple):
    """What a function recorded when it ran, and what it returned."""

    numbers: dict[Value, int]  # of the values of the inputs, then of the results of the ops
    templates: list[_OpTemplate]
    results: list[_SymbolTemplate | None]


class _UnlikeError(Exception):
    """The arguments of a function can't be compared with those of other calls."""


def run_vjp(xp: Any, plan: Any, g: Any, saved: tuple[Any, ...], settings: Any) -> Any:
    """Return the cotangents of the inputs as symbols, by the rules of a plan of `primitives`."""
    trace = _trace()
    saved = tuple([_as_symbol(trace, x) for x in saved])
    inputs: list[Symbol] = []
    types = _signature(inputs, settings, g, saved)
    if types is None:
        return plan.vjp(xp, g, saved, settings)
    return _run(trace, (plan, types), inputs, lambda: plan.vjp(xp, g, saved, settings))


def run_forward(
    primitive: Any, forward: Callable[..., Any], arrays: tuple[Any, ...], settings: dict[str, Any]
) -> Any:
    """Return the result of a primitive as a symbol, by its forward function."""
    trace = _trace()
    inputs: list[Symbol] = []
    if primitive.multiple:
        return forward(*arrays, **settings)
    types = _signature(inputs, (arrays, settings) if settings else arrays)
    if types is None:
        return forward(*arrays, **settings)
    return _run(trace, (primitive, types), inputs, lambda: (forward(*arrays, **settings),))[0]


def number(array: Any) -> Symbol:
    """Return the symbol of a number: each its own constant, as exports compare their places."""
    return _trace().symbol_of(array)


def _trace() -> Trace:
    trace = TRACING.get()
    if trace is None:
        raise outlived_error()
    return trace


def _run(
    trace: Trace, key: Any, inputs: list[Symbol], function: Callable[[], tuple[Any, ...]]
) -> tuple[Any, ...]:
    """Return the results of a function of symbols, whose ops are known for equal keys."""
    values = [x._value if x._base is None else x.value for x in inputs]
    if len(values) > 1:
        key = *key, tuple(map(values.index, values))  # x * x differs from x * y
    known = trace.calls.get(key)
    if known is not None:
        return _repeat(trace, known, inputs, values)
    begin = len(trace.ops)
    results = function()
    ops = trace.ops[begin:]
    if all(map(_is_repeatable, ops)) and all(
        result is None or (result.__class__ is Symbol and not result.writes) for result in results
    ):
        numbers: dict[Value, int] = {}
        for number, value in enumerate([*values, *(out for op in ops for out in op.outs)]):
            numbers.setdefault(value, number)
        templates = [_OpTemplate(op, _places(op, numbers), []) for op in ops]
        made = [None if x is None else _SymbolTemplate(x, inputs, numbers) for x in results]
        trace.calls[key] = RecordedCall(numbers, templates, made)
    return results


def _as_symbol(trace: Trace, x: Any) -> Any:
    """Return a saved number as a symbol, which another number can replace."""
    if x.__class__ is ndarray and not x.ndim and id(storage_of(x)) not in trace.external:
        return trace.symbol_of(x)
    return x


def _is_repeatable(op: Op) -> bool:
    return op.function != DRAW and not op.regions


def _places(op: Op, numbers: dict[Value, int]) -> list[tuple[int, int]] | None:
    """Return the positions of an op's arguments that have numbers, and these."""
    flat = [value for value in op.args if value.__class__ is Value]
    if op.inputs != flat:
        return None
    return [(i, numbers[x]) for i, x in enumerate(op.args) if x.__class__ is Value and x in numbers]


def _signature(inputs: list[Symbol], seen: Any, *others: Any) -> Any:
    """Return the key of arguments, None if there is none; of `seen`, it has the masks' elements."""
    try:
        return _key(seen, inputs, True), *[_key(other, inputs) for other in others]
    except _UnlikeError:
        return None


def _key(tree: Any, inputs: list[Symbol], elements: bool = False) -> Any:
    """Return what a function can see of its arguments; add the symbols in them to the inputs.

    Of masks among the settings, which are indices, it sees the elements as well.
    """
    kind = tree.__class__
    if kind is Symbol and not (elements and tree._value.dtype.kind == "b"):
        inputs.append(tree)
        value = tree._value
        flags = tree.is_scalar, tree.maybe_view, tree.read_only
        return value.shape, value.dtype, tree.layout, flags, tree.finish
    if kind is tuple:
        return tuple([_key(item, inputs, elements) for item in tree]) if tree else ()
    if kind is dict:
        return tuple([(name, _key(item, inputs, elements)) for name, item in tree.items()])
    if kind in ATOMS:
        return constant_key(tree)
    if isinstance(tree, np.dtype):
        return tree
    raise _UnlikeError


def _repeat(
    trace: Trace, call: RecordedCall, inputs: list[Symbol], values: list[Value]
) -> tuple[Any, ...]:
    """Record the ops of a call for other inputs, and return its results for these."""
    ops = []
    for op, places, structure in call.templates:
        kwargs = op.kwargs
        if places is None:
            args, kwargs = _nested(op, call.numbers, values)
        elif len(places) == len(op.args):
            args = tuple([values[number] for _, number in places])
        else:
            given = list(op.args)
            for position, number in places:
                given[position] = values[number]
            args = tuple(given)
        outs = tuple([Value(out.shape, out.dtype) for out in op.outs])
        values += outs
        now = Op(op.function, args, kwargs, outs)
        now.structure = structure
        if places is not None:
            whole = len(places) == len(args)
            now.operands = args if whole else tuple([x for x in args if x.__class__ is Value])
        ops.append(now)
    trace.append(ops)
    origin = trace.origin
    return tuple([None if x is None else x.symbol(inputs, values, origin) for x in call.results])


def _nested(op: Op, numbers: dict[Value, int], values: list[Value]) -> tuple[Any, Any]:
    """Return the arguments of an op, some in lists and the like, with the values of now."""

    def value_now(value: Value) -> Value:
        number = numbers.get(value)
        return value if number is None else values[number]

    kwargs = {name: map_values(arg, value_now) for name, arg in op.kwargs.items()}
    return map_values(op.args, value_now), kwargs
