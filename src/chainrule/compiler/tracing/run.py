"""Trace of one call of a function: its result, its captures, and what it changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from chainrule import pytree
from chainrule.autograd.location import user_frame
from chainrule.autograd.tensor import Tensor
from chainrule.backend import DEFAULT_DEVICE, ndarray, storage_of
from chainrule.compiler.ir.program import Program, Value, Write
from chainrule.compiler.tracing.discovery import Search
from chainrule.compiler.tracing.found import MAX_COMPARED_BYTES, Found
from chainrule.compiler.tracing.object_kinds import is_generator
from chainrule.compiler.tracing.trace import (
    Capture,
    GeneratorStates,
    Trace,
    name_inputs,
    ordered_captures,
)
from chainrule.compiler.tracing.varying_numbers import Place, Substitution
from chainrule.errors import CompileError, call_of_user
from chainrule.interrupts import call_then


class Traced(NamedTuple):
    """A finished trace, the result of the function, and the objects that it can reach."""

    trace: Trace
    result: Any
    search: Search
    captures: list[Capture]  # arguments first
    contents: dict[int, bytes]  # initial content of small external NumPy arrays, by storage
    changed: bool  # whether the call changed containers among its arguments, or such arrays
    arguments: tuple[Any, Any]  # with varying numbers

    @property
    def found(self) -> list[Found]:
        """The objects that the function reads, with their values before the trace."""
        return self.search.found

    @property
    def inputs(self) -> list[Value]:
        """The values of captured tensors, arrays and numbers, in the order of program inputs."""
        arrays = [v for _, _, v in self.trace.arrays]
        numbers = [each.value for each in self.trace.numbers.inputs.values()]
        return [c.value for c in self.captures] + arrays + numbers

    @property
    def writes(self) -> list[Write]:
        """The writes of the function to its inputs."""
        writes = [Write(c.value, c.symbol.value) for c in self.captures if c.symbol.writes]
        return writes + [Write(v, s.value) for _, s, v in self.trace.arrays if s.writes]

    def program(self, outputs: list[Value]) -> Program:
        """Return the traced program, not yet optimised, with these outputs."""
        trace = self.trace
        return Program(trace.name, self.inputs, trace.constants, trace.ops, outputs, self.writes)


def trace_call(
    function: Callable[..., Any], args: Any, kwargs: Any, varying: Sequence[Place] = ()
) -> Traced:
    """Run a function once on symbols, and return the trace; numbers at some places may vary."""
    if DEFAULT_DEVICE.get() is not None:
        raise CompileError(
            f"compile: the default device is {DEFAULT_DEVICE.get()}, and compiled functions run on "
            "the CPU: call the function itself, or cr.set_default_device('cpu') first"
        )
    name = getattr(function, "__name__", type(function).__name__)
    trace = Trace(name if name.isidentifier() else "function")
    trace.lines.caller = id(user_frame(sys._getframe()))
    contents: dict[int, bytes] = {}
    external = trace.external  # `note`, which the trace holds, must not hold the trace
    generators = GeneratorStates([leaf for _, leaf in pytree.leaves((args, kwargs))])

    def note(value: Any) -> None:
        if is_generator(value):
            generators.add(value)
        elif isinstance(value, ndarray):
            key = id(storage_of(value))
            external.setdefault(key, value)
            if value.nbytes <= MAX_COMPARED_BYTES:
                contents.setdefault(key, value.tobytes())

    search = trace.search = Search(note)
    given = args, kwargs
    args, kwargs = trace.numbers.in_arguments(given, varying)
    symbolic = (trace.to_symbols(args), trace.to_symbols(kwargs))
    arguments = (args, kwargs), symbolic
    before = [list(pytree.leaves(part)) for part in arguments]
    search.begin(function, [leaf for _, leaf in pytree.leaves((args, kwargs))])

    tensors = [leaf for _, leaf in pytree.leaves(given) if isinstance(leaf, Tensor)]
    trace.arguments = frozenset(map(id, tensors))

    def run() -> Any:
        substitution.begin()
        return trace.searching(trace.run, function, *symbolic[0], **symbolic[1])

    substitution = Substitution(trace.numbers, varying)
    result = call_then(substitution.end, call_of_user, run)
    errors = [*trace.errors, *search.errors]
    if errors:  # the function caught it, and so took another path than it does eagerly
        raise errors[0]
    generators.check(trace.ops)
    changes = [
        not _same_leaves(*pair) for pair in zip(before, map(pytree.leaves, arguments), strict=True)
    ]
    if changes[1] and not changes[0]:
        raise CompileError(
            "a compiled function changes a list, dict or dataclass among its arguments that has "
            "NumPy arrays in it: return what is new, or pass tensors"
        )
    result = trace.finish(result)
    name_inputs(trace, function, args, kwargs, search.found)
    written = any(trace.external[key].tobytes() != before for key, before in contents.items())
    captures = ordered_captures(trace, args, kwargs)
    changed = changes[0] or written or substitution.changed
    return Traced(trace, result, search, captures, contents, changed, (args, kwargs))


def _same_leaves(before: list[tuple[str, Any]], after: Iterable[tuple[str, Any]]) -> bool:
    """Whether containers have the same leaves as before."""
    following = list(after)
    pairs = zip(before, following, strict=False)
    return len(before) == len(following) and all(
        path == other and leaf is part for (path, leaf), (other, part) in pairs
    )
