"""Elements that are known while a function is traced: those that depend on constants alone.

A program whose constants are made by NumPy's functions, such as ``h = np.diff(grid)``, may decide by
them: ``if np.any(h < 0)``. The ops that made them are evaluated when something asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.backend import storage_of
from chainrule.compiler.ir.abstract_eval import DRAW, resolve
from chainrule.compiler.ir.program import Op, Value

if TYPE_CHECKING:
    from chainrule.compiler.tracing.trace import Trace


class KnownElements:
    """The elements of the values of one trace, as far as they were asked for."""

    def __init__(self) -> None:
        self._arrays: dict[Value, Any] = {}
        self._makers: dict[Value, Op] = {}
        self._read = 0  # number of ops of which the results are in `_makers`

    def of(self, trace: Trace, wanted: Value) -> Any:
        """Return the array of a value, not to be written to, or None if it isn't known.

        Guards check the content of the arrays outside that it depends on.
        """
        for op in trace.ops[self._read :]:
            self._makers.update(dict.fromkeys(op.outs, op))
        self._read = len(trace.ops)
        pending = [wanted]
        while pending:
            value = pending[-1]
            if value in self._arrays:
                pending.pop()
            elif (array := _source(trace, value)) is not None:
                self._arrays[value] = array
            else:
                op = self._makers.get(value)
                if op is None or op.regions or op.function == DRAW:
                    return None
                missing = [v for v in op.inputs if v not in self._arrays]
                pending += missing
                if not missing and not self._evaluate(op):
                    return None
        return self._arrays[wanted]

    def _evaluate(self, op: Op) -> bool:
        """Evaluate an op on known arrays; return whether it has results of the types it should."""
        known = op.substitute(self._arrays.__getitem__)
        try:
            with np.errstate(all="ignore"):
                found = resolve(op.function)(*known.args, **known.kwargs)
        except Exception:  # which the call raises, with the line
            return False
        results = found if isinstance(found, tuple | list) else [found]
        for value, result in zip(op.outs, map(np.array, results), strict=True):
            if result.shape != value.shape or result.dtype != value.dtype:
                return False
            self._arrays[value] = result
        return True


def _source(trace: Trace, value: Value) -> Any:
    """Return the array of a constant, or of an array outside, whose content guards check."""
    outer = next((array for array, _, v in trace.arrays if v is value), None)
    if outer is None:
        return trace.constants.get(value)
    return checked(trace, outer) if id(storage_of(outer)) in trace.external else None


def checked(trace: Trace, array: Any) -> Any:
    """Return an array whose elements are read; guards check those of one outside."""
    if id(storage_of(array)) in trace.external:
        trace.masks.append((array, array.copy()))
    return array
