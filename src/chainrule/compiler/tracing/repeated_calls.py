"""Primitives and derivative rules that have run before in a trace: their ops, recorded again.

Steps of a loop in Python apply the same functions to arrays of the same types. Neither forward
functions nor rules read elements or keep anything, so the second time their ops follow from those
of the first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from chainrule.backend import ndarray, storage_of
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.program import ATOMS, Op, Value, map_values
from chainrule.compiler.tracing.size_reads import READS
from chainrule.compiler.tracing.symbol import TRACING, Symbol, outlived_error
from chainrule.compiler.tracing.trace import Trace
from chainrule.primitives.primitive import forward_of

_new: Any = object.__new__


class _OpTemplate:
    """An op, and which arguments are values of the present call."""

    __slots__ = ("function", "kwargs", "op", "operands", "places", "structure", "types")

    def __init__(self, op: Op, numbers: dict[Value, int]) -> None:
        self.op, self.function, self.kwargs = op, op.function, op.kwargs
        self.structure: list[Any] = []  # see `Op.structure`
        self.types = [(out.shape, out.dtype) for out in op.outs]
        found = _places(op, numbers)
        self.places = found  # (argument, number of the value); None if nested
        self.operands: Callable[[list[Value]], tuple[Value, ...]] | None = None
        if found is not None and len(found) == len(op.args):  # values of the call alone
            each = [number for _, number in found]
            self.operands = _picker(each)

    def again(self, numbers: dict[Value, int], values: list[Value]) -> Op:
        """Return the op for the present values, without a location, and append its results."""
        outs: list[Value] = []
        for shape, dtype in self.types:
            out: Value = _new(Value)
            out.shape, out.dtype, out.hint = shape, dtype, ""
            outs.append(out)
        now: Op = _new(Op)  # whose `__init__` takes longer than the rest
        now.function, now.kwargs, now.outs = self.function, self.kwargs, tuple(outs)
        now.regions, now.structure, now.operands = (), self.structure, None
        if self.operands is not None:
            now.args = now.operands = self.operands(values)
        elif self.places is not None:
            given = [*self.op.args]
            for position, number in self.places:
                given[position] = values[number]
            now.args = tuple(given)
            now.operands = tuple([x for x in given if x.__class__ is Value])
        else:
            now.args, now.kwargs = _nested(self.op, numbers, values)
        values += outs
        return now


def _picker(numbers: list[int]) -> Callable[[list[Value]], tuple[Value, ...]]:
    """Return the function that returns the items of a list with these numbers."""
    if len(numbers) > 1:
        found: Callable[[list[Value]], tuple[Value, ...]] = operator.itemgetter(*numbers)
        return found
    return lambda values: tuple([values[number] for number in numbers])


class _SymbolTemplate:
    """A symbol that a function returned, as it was then: it may be written to later."""

    def __init__(
        self, trace: Trace, symbol: Symbol, inputs: list[Symbol], numbers: dict[Value, int]
    ) -> None:
        same = [number for number, given in enumerate(inputs) if given is symbol]
        self.input = same[0] if same else None
        self.value = symbol._value
        self.number = numbers.get(symbol._value)
        self.flags = symbol.layout, symbol.is_scalar, symbol.maybe_view, symbol.read_only
        self.finish = symbol.finish
        self.kind = kind_of(trace, symbol)
        self.base: _SymbolTemplate | None = None
        if symbol._base is not None and not same:
            self.base = _SymbolTemplate(trace, symbol._base, inputs, numbers)
            self.view = symbol._take, symbol._replace

    def symbol(self, inputs: list[Symbol], values: list[Value], origin: object) -> Symbol:
        """Return the symbol for other inputs and their values, and those of the ops."""
        if self.input is not None:
            return inputs[self.input]
        found: Symbol = _new(Symbol)  # whose `__init__` would look for what is known here
        found._value = value = self.value if self.number is None else values[self.number]
        found.dtype, found.kind = value.dtype, self.kind
        found._origin, found._base, found.writes = origin, None, 0
        found.layout, found.is_scalar, found.maybe_view, found.read_only = self.flags
        found.finish = self.finish
        if self.base is not None:
            found.become_view(self.base.symbol(inputs, values, origin), *self.view)
        return found


class RecordedCall:
    """What a function recorded when it ran, and what it returned."""

    __slots__ = ("nodes", "numbers", "results", "single", "templates")

    def __init__(
        self,
        numbers: dict[Value, int],
        templates: list[_OpTemplate],
        results: list[_SymbolTemplate | None],
        inputs: int,
    ) -> None:
        self.numbers = numbers  # of the values of the inputs, then of the results of the ops
        self.templates, self.results = templates, results
        self.nodes: dict[Any, Any] = {}  # what the recorder knows of the nodes of such calls
        self.single = _single_op(templates, results, inputs)


_Single = Callable[[Trace, list[Value]], Symbol]


def _single_op(
    templates: list[_OpTemplate], results: list[_SymbolTemplate | None], inputs: int
) -> _Single | None:
    """Return what records a call of one op and returns its result; None for another call."""
    if len(templates) != 1 or len(results) != 1 or results[0] is None:
        return None
    template, like = templates[0], results[0]
    if template.operands is None or len(template.types) != 1:
        return None
    if like.number != inputs or like.base is not None or like.input is not None:
        return None
    function, kwargs, structure = template.function, template.kwargs, template.structure
    operands, kind, finish = template.operands, like.kind, like.finish
    ((shape, dtype),) = template.types
    layout, is_scalar, maybe_view, read_only = like.flags

    def again(trace: Trace, values: list[Value]) -> Symbol:
        out: Value = _new(Value)
        out.shape, out.dtype, out.hint = shape, dtype, ""
        op: Op = _new(Op)
        op.function, op.kwargs, op.outs = function, kwargs, (out,)
        op.regions, op.structure = (), structure
        op.args = op.operands = operands(values)
        trace.append([op])
        found: Symbol = _new(Symbol)
        found._value, found.dtype, found.kind = out, dtype, kind
        found._origin, found._base, found.writes = trace.origin, None, 0
        found.layout, found.is_scalar = layout, is_scalar
        found.maybe_view, found.read_only, found.finish = maybe_view, read_only, finish
        return found

    return again


class _UnlikeError(Exception):
    """The arguments of a function can't be compared with those of other calls."""


def run_vjp(xp: Any, plan: Any, g: Any, saved: tuple[Any, ...], settings: Any) -> Any:
    """Return the cotangents of the inputs as symbols, by the rules of a plan of `primitives`."""
    trace = active_trace()
    saved = tuple([x if type(x) is Symbol else _as_symbol(trace, x) for x in saved])
    inputs: list[Symbol] = []
    key: list[Any] = [plan]
    try:
        key += [_key(trace, g, inputs), *[_key(trace, x, inputs) for x in saved]]
        if settings:
            key.append(_key(trace, settings, inputs, True))
    except _UnlikeError:
        key.clear()  # the function runs below: its errors have no context
    run = partial(plan.vjp, xp, g, saved, settings)
    return _run(trace, key, inputs, run) if key else run()


def run_forward(
    primitive: Any,
    forward: Callable[..., Any],
    arrays: Sequence[Any],
    settings: dict[str, Any] | None,
) -> Any:
    """Return the result of a primitive as symbols, by its forward function."""
    if not primitive.multiple:
        return run_single(primitive, arrays, settings, forward)[0]
    trace, inputs = active_trace(), list[Symbol]()
    run = partial(forward, *arrays, **settings) if settings else partial(forward, *arrays)
    key = _forward_key(trace, primitive, arrays, settings, inputs)
    return _run(trace, key, inputs, run) if key else run()


def run_single(
    primitive: Any,
    arrays: Sequence[Any],
    settings: dict[str, Any] | None,
    forward: Callable[..., Any] | None = None,
) -> tuple[Any, RecordedCall | None]:
    """Return the symbol that a primitive returns, and what is known of such calls if it is known.

    The forward function is looked up if it isn't given.
    """
    if primitive.view and primitive.part == "read":  # at another place each time: see there
        assert settings is not None
        return Symbol.namespace.get_item(arrays[0], settings["key"]), None
    trace = TRACING.get() or active_trace()
    key: list[Any] = [primitive]
    values: list[Value] = []
    inputs: Any = arrays
    if settings:
        inputs = list[Symbol]()
        key = _forward_key(trace, primitive, arrays, settings, inputs)
        if key:
            values = _with_values(key, inputs)
    else:  # the same, in fewer calls
        for x in arrays:
            if x.dtype.kind == "b":
                key.clear()
                break
            key.append(x.kind or kind_of(trace, x))
            values.append(x._value if x._base is None else x.value)
        else:
            _note_same(key, values)
    if key:
        known: RecordedCall | None = trace.calls.get(tuple(key))
        if known is not None:
            single = known.single
            if single is not None:
                return single(trace, values), known
            return _repeat(trace, known, inputs, values)[0], known
    if forward is None:
        forward = forward_of(primitive, Symbol.namespace)
    run = partial(forward, *arrays, **settings) if settings else partial(forward, *arrays)
    return (_record(trace, key, inputs, values, run, one=True)[0] if key else run()), None


def _forward_key(
    trace: Trace,
    primitive: Any,
    arrays: Sequence[Any],
    settings: dict[str, Any] | None,
    inputs: list[Symbol],
) -> list[Any]:
    """Return what the forward function of a primitive sees, the symbols apart; [] if not known."""
    key: list[Any] = [primitive]
    try:
        for x in arrays:
            if x.dtype.kind != "b":
                inputs.append(x)
                key.append(x.kind or kind_of(trace, x))
            else:
                key.append(_key(trace, x, inputs, True))
        if settings:
            key.append(_key(trace, settings, inputs, True))
    except _UnlikeError:
        key.clear()
    return key


def number(array: Any) -> Symbol:
    """Return the symbol of a number, the same for equal ones of one dtype.

    While exports compare the places of constants at several sizes, each is its own.
    """
    trace = active_trace()
    if READS.get() is not None:
        return trace.symbol_of(array)
    key = array.dtype, array.tobytes()
    found: Symbol | None = trace.calls.get(key)
    if found is None:
        found = trace.calls[key] = trace.symbol_of(array)
    return found


def active_trace() -> Trace:
    """Return the trace of this thread; raise if there is none."""
    trace = TRACING.get()
    if trace is None:
        raise outlived_error()
    return trace


def _run(
    trace: Trace,
    key: list[Any],
    inputs: list[Symbol],
    function: Callable[[], Any],
) -> tuple[Any, ...]:
    """Return the results of a function of symbols, whose ops are known for equal keys."""
    values = _with_values(key, inputs)
    known = trace.calls.get(tuple(key))
    if known is not None:
        single = known.single
        return _repeat(trace, known, inputs, values) if single is None else (single(trace, values),)
    return _record(trace, key, inputs, values, function)


def _with_values(key: list[Any], inputs: list[Symbol]) -> list[Value]:
    """Return the values of symbols, and add to the key which of these are the same."""
    values = [x._value if x._base is None else x.value for x in inputs]
    _note_same(key, values)
    return values


def _note_same(key: list[Any], values: list[Value]) -> None:
    """Add to a key which values are the same."""
    count = len(values)
    if count == 2:
        key.append(values[0] is values[1])  # x * x differs from x * y
    elif count > 2:
        key += map(values.index, values)


def _record(
    trace: Trace,
    key: list[Any],
    inputs: list[Symbol],
    values: list[Value],
    function: Callable[[], Any],
    one: bool = False,
) -> tuple[Any, ...]:
    """Return the results of a function, several or `one`, and keep what it records for its key."""
    begin = len(trace.ops)
    results = (function(),) if one else tuple(function())
    ops = trace.ops[begin:]
    if all(map(_is_repeatable, ops)) and all(
        result is None or (type(result) is Symbol and not result.writes) for result in results
    ):
        numbers: dict[Value, int] = {}
        for number, value in enumerate([*values, *(out for op in ops for out in op.outs)]):
            numbers.setdefault(value, number)
        templates = [_OpTemplate(op, numbers) for op in ops]
        made = [None if x is None else _SymbolTemplate(trace, x, inputs, numbers) for x in results]
        trace.calls[tuple(key)] = RecordedCall(numbers, templates, made, len(values))
    return results


def _as_symbol(trace: Trace, x: Any) -> Any:
    """Return a saved number as a symbol, which another number can replace."""
    if type(x) is ndarray and not x.ndim and id(storage_of(x)) not in trace.external:
        return trace.symbol_of(x)
    return x


def _is_repeatable(op: Op) -> bool:
    return op.function != DRAW and not op.regions


def _places(op: Op, numbers: dict[Value, int]) -> list[tuple[int, int]] | None:
    """Return the positions of an op's arguments that have numbers, and these."""
    flat = [value for value in op.args if value.__class__ is Value]
    if [*op.inputs] != flat:
        return None
    return [(i, numbers[x]) for i, x in enumerate(op.args) if x.__class__ is Value and x in numbers]


def kind_of(trace: Trace, symbol: Symbol) -> object:
    """Return what a function can see of a symbol, as an object that stands for it in keys."""
    if symbol.kind is None:
        value = symbol._value
        flags = symbol.is_scalar, symbol.maybe_view, symbol.read_only
        seen = value.shape, value.dtype, symbol.layout, flags, symbol.finish
        symbol.kind = trace.kinds.setdefault(seen, object())
    return symbol.kind


def _key(trace: Trace, tree: Any, inputs: list[Symbol], elements: bool = False) -> Any:
    """Return what a function can see of its arguments; add the symbols in them to the inputs.

    Of masks among the settings, which are indices, it sees the elements as well.
    """
    kind = type(tree)  # `__class__` of symbols is a property
    if kind is Symbol and not (elements and tree.dtype.kind == "b"):
        inputs.append(tree)
        return tree.kind or kind_of(trace, tree)
    if kind is tuple:
        return tuple([_key(trace, item, inputs, elements) for item in tree]) if tree else ()
    if kind is dict:
        return tuple([(name, _key(trace, item, inputs, elements)) for name, item in tree.items()])
    if kind in ATOMS:
        return constant_key(tree)
    if isinstance(tree, np.dtype):
        return tree
    raise _UnlikeError


def _repeat(
    trace: Trace, call: RecordedCall, inputs: list[Symbol], values: list[Value]
) -> tuple[Any, ...]:
    """Record the ops of a call for other inputs, and return its results for these."""
    numbers = call.numbers
    if call.templates:
        trace.append([template.again(numbers, values) for template in call.templates])
    origin = trace.origin
    return tuple([None if x is None else x.symbol(inputs, values, origin) for x in call.results])


def _nested(op: Op, numbers: dict[Value, int], values: list[Value]) -> tuple[Any, Any]:
    """Return the arguments of an op, some in lists and the like, with the values of now."""

    def value_now(value: Value) -> Value:
        number = numbers.get(value)
        return value if number is None else values[number]

    kwargs = {name: map_values(arg, value_now) for name, arg in op.kwargs.items()}
    return map_values(op.args, value_now), kwargs
