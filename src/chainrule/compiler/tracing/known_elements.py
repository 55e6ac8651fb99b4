"""Elements that are known while a function is traced: those that depend on constants alone.

A program whose constants are made by NumPy's functions, such as ``h = np.diff(grid)``, may decide
by them: ``if np.any(h < 0)``. The ops that made them are evaluated when something asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.autograd.intercept import SLOTS
from chainrule.backend import storage_of
from chainrule.compiler.ir.abstract_eval import DRAW, hashable, resolve
from chainrule.compiler.ir.constants import constant_key
from chainrule.compiler.ir.program import Op, Value

if TYPE_CHECKING:
    from chainrule.compiler.tracing.trace import Trace

_array = SLOTS["_array"]


class KnownElements:
    """The elements of the values of one trace, evaluated as far as they are asked for."""

    def __init__(self) -> None:
        self._arrays: dict[Value, Any] = {}
        self._makers: dict[Value, Op] = {}
        self._knowable: set[Value] = set()  # results that depend on what is known alone
        self._of_tensors: set[Value] = set()  # those that depend on captured tensors, too
        self._outside: dict[Value, Any] = {}  # NumPy arrays that are inputs
        self._read = 0  # number of ops that were looked at

    def of(self, trace: Trace, wanted: Value, of_tensors: bool = True) -> Any:
        """Return the array of a value, not to be written to, or None if it isn't known.

        Guards check the content of the arrays outside that it depends on.
        """
        self._read_ops(trace)
        if not of_tensors and (wanted in self._of_tensors or wanted in trace.readable):
            return None
        if wanted not in self._knowable:
            found = self._source(trace, wanted)
            return None if found is None else checked(trace, found)
        pending = [wanted]
        while pending:
            value = pending[-1]
            if value in self._arrays:
                pending.pop()
            elif value not in self._knowable:
                self._arrays[value] = checked(trace, self._source(trace, value))
            else:
                op = self._makers[value]
                missing = [v for v in op.inputs if v not in self._arrays]
                pending += missing
                if not missing and not self._evaluate(op):
                    return None
        return self._arrays[wanted]

    def read_from(self, number: int) -> None:
        """Look again at the ops from this number on: others have taken their place."""
        self._read = min(self._read, number)

    def _read_ops(self, trace: Trace) -> None:
        """Look at the ops and arrays that are new."""
        new = trace.arrays[len(self._outside) :]
        self._outside.update((value, array) for array, _, value in new)
        for op in trace.ops[self._read :]:
            self._makers.update(dict.fromkeys(op.outs, op))
            inputs = () if op.regions or op.function == DRAW else op.inputs
            if inputs and all([self._is_knowable(trace, v) for v in inputs]):
                self._knowable.update(op.outs)
                if any([v in self._of_tensors or v in trace.readable for v in inputs]):
                    self._of_tensors.update(op.outs)
        self._read = len(trace.ops)

    def _is_knowable(self, trace: Trace, value: Value) -> bool:
        if value in self._makers:
            return value in self._knowable
        return self._source(trace, value) is not None

    def _source(self, trace: Trace, value: Value) -> Any:
        """Return a constant, or an array or capture whose content guards can check; else None."""
        array = trace.constants.get(value)
        if array is None:
            array = self._outside.get(value)
            if array is not None and id(storage_of(array)) not in trace.external:
                return None
        return trace.readable.get(value) if array is None else array

    def are_same(self, trace: Trace, a: Value, b: Value) -> bool:
        """Return whether equal ops of the same values have made both."""
        self._read_ops(trace)
        pending, seen = [(a, b)], set()
        while pending:
            pair = pending.pop()
            if pair[0] is pair[1] or pair in seen:
                continue
            seen.add(pair)
            constants = [trace.constants.get(value) for value in pair]
            first, second = [self._makers.get(value) for value in pair]
            if all(array is not None for array in constants):
                if _content(constants[0]) != _content(constants[1]):
                    return False
            elif first is None or second is None or _form(first, pair[0]) != _form(second, pair[1]):
                return False
            else:
                pending += zip(first.inputs, second.inputs, strict=True)
        return True

    def _evaluate(self, op: Op) -> bool:
        """Evaluate an op on known arrays; return whether it has results."""
        known = op.substitute(self._arrays.__getitem__)
        try:
            with np.errstate(all="ignore"):
                found = resolve(op.function)(*known.args, **known.kwargs)
        except Exception:  # which the call raises, with the line
            return False
        results = found if isinstance(found, tuple | list) else [found]
        self._arrays.update(zip(op.outs, map(np.array, results), strict=True))
        return True


def _content(array: Any) -> Any:
    """Return what constant arrays of the same type and bits have in common."""
    return array.dtype, array.shape, array.tobytes()


def _form(op: Op, out: Value) -> Any:
    """Return what ops have in common that compute the same of their inputs; unique if impure."""
    if op.regions or op.function == DRAW:
        return object()
    args = [hashable(part, _leaf_form) for part in (op.args, op.kwargs)]
    return op.function, *args, op.outs.index(out)


def _leaf_form(leaf: Any) -> Any:
    return Value if isinstance(leaf, Value) else constant_key(leaf)


def checked(trace: Trace, source: Any) -> Any:
    """Return an array whose elements are read; guards check those of one outside."""
    tensor = getattr(source, "tensor", None)
    array = source if tensor is None else _array.__get__(tensor)
    if tensor is not None or id(storage_of(array)) in trace.external:
        trace.masks.setdefault(id(source), (source, array.copy()))
    return array
