"""One call of a function, traced: what a program of it is made from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from chainrule import tree
from chainrule.backend import ndarray, storage_of
from chainrule.compiler.draws import Watched
from chainrule.compiler.program import Program, Value, Write
from chainrule.compiler.roots import Found, reachable
from chainrule.compiler.trace import Capture, Trace, in_order, name_inputs


class Traced(NamedTuple):
    """A trace, what the function returned, and what it can get at from outside."""

    trace: Trace
    result: Any
    found: list[Found]
    captures: list[Capture]  # arguments first

    @property
    def inputs(self) -> list[Value]:
        """The values of the tensors and arrays from outside, in the order of a program's inputs."""
        return [c.value for c in self.captures] + [v for _, _, v in self.trace.arrays]

    @property
    def writes(self) -> list[Write]:
        """What the function has written to them."""
        writes = [Write(c.value, c.symbol.value) for c in self.captures if c.symbol.writes]
        return writes + [Write(v, s.value) for _, s, v in self.trace.arrays if s.writes]

    def program(self, outputs: list[Value]) -> Program:
        """Return what the function does as a program, as it was traced."""
        trace = self.trace
        return Program(trace.name, self.inputs, trace.constants, trace.lines, outputs, self.writes)


def traced(function: Callable[..., Any], args: Any, kwargs: Any) -> Traced:
    """Run a function once on symbols."""
    name = getattr(function, "__name__", type(function).__name__)
    trace = Trace(name if name.isidentifier() else "function")
    found = reachable(function, [leaf for _, leaf in tree.leaves((args, kwargs))])
    trace.outside = {id(storage_of(i.value)): i.value for i in found if type(i.value) is ndarray}
    watched = Watched(args, kwargs, found)
    result = trace.run(function, *trace.given(args), **trace.given(kwargs))
    watched.check(trace.lines)
    trace.settle(result)
    found += [item for hook in trace.hooks() for item in reachable(hook, [])]
    name_inputs(trace, function, args, kwargs, found)
    return Traced(trace, result, found, in_order(trace, args, kwargs))
