"""One call of a function, traced: what a program of it is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from chainrule import pytree
from chainrule.backend import ndarray, storage_of
from chainrule.compiler.guards.discovery import Found, reachable
from chainrule.compiler.ir.program import Program, Value, Write
from chainrule.compiler.tracing.trace import Capture, Trace, Watched, in_order, name_inputs
from chainrule.errors import CompileError


class Traced(NamedTuple):
    """A trace, what the function returned, and what it can get at from outside."""

    trace: Trace
    result: Any
    found: list[Found]
    captures: list[Capture]  # arguments first
    contents: dict[int, bytes]  # of small NumPy arrays from outside, by storage, as it began
    changed: bool  # whether it changed containers among its arguments, or such arrays

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
        return Program(trace.name, self.inputs, trace.constants, trace.ops, outputs, self.writes)


def traced(function: Callable[..., Any], args: Any, kwargs: Any) -> Traced:
    """Run a function once on symbols."""
    name = getattr(function, "__name__", type(function).__name__)
    trace = Trace(name if name.isidentifier() else "function")
    found = reachable(function, [leaf for _, leaf in pytree.leaves((args, kwargs))])
    trace.outside = {id(storage_of(i.value)): i.value for i in found if type(i.value) is ndarray}
    contents = {key: a.tobytes() for key, a in trace.outside.items() if a.nbytes <= _COMPARED}
    watched = Watched(args, kwargs, found)
    arguments = (args, kwargs), (given := (trace.given(args), trace.given(kwargs)))
    before = [list(pytree.leaves(part)) for part in arguments]
    result = trace.run(function, *given[0], **given[1])
    if trace.errors:  # caught by the function, which would go another way than eagerly
        raise trace.errors[0]
    watched.check(trace.ops)
    changes = [
        not _alike(*pair) for pair in zip(before, map(pytree.leaves, arguments), strict=True)
    ]
    if changes[1] and not changes[0]:
        raise CompileError(
            "a compiled function changes a list, dict or dataclass among its arguments that has "
            "NumPy arrays in it: return what is new, or pass tensors"
        )
    trace.settle(result)
    found += [item for hook in trace.hooks() for item in reachable(hook, [])]
    name_inputs(trace, function, args, kwargs, found)
    written = any(trace.outside[key].tobytes() != before for key, before in contents.items())
    captures = in_order(trace, args, kwargs)
    return Traced(trace, result, found, captures, contents, changes[0] or written)


_COMPARED = 1 << 20
"""So many bytes of an array are looked at twice when a function is traced."""


def _alike(before: list[tuple[str, Any]], after: Iterable[tuple[str, Any]]) -> bool:
    """Say whether containers have the same leaves as before."""
    following = list(after)
    pairs = zip(before, following, strict=False)
    return len(before) == len(following) and all(
        path == other and leaf is part for (path, leaf), (other, part) in pairs
    )
