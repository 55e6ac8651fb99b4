"""Recording of loops and branches: each function is traced once, into a region of an op."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from chainrule import pytree
from chainrule.autograd.location import here
from chainrule.autograd.modes import is_grad_enabled, no_grad, run_in
from chainrule.autograd.tensor import Tensor
from chainrule.compiler.control_flow.inner_trace import Body
from chainrule.compiler.control_flow.kept_functions import has_changed, kept
from chainrule.compiler.control_flow.nodes import CondNode, WhileNode, connected
from chainrule.compiler.control_flow.scan import ScanNode
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.tracing.discovery import Search
from chainrule.compiler.tracing.execution import reporting
from chainrule.compiler.tracing.found import Found
from chainrule.compiler.tracing.symbol import TRACING
from chainrule.control_flow import Branch, Step, TensorType, matched
from chainrule.errors import CompileError

Tensors = Sequence[Tensor]
T = TypeVar("T")


def scan(
    step: Step, carry: list[Tensor], xs: list[Tensor], length: int, reverse: bool, checkpoint: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """Record a loop over slices."""
    count = len(carry)

    def function(inputs: list[Tensor]) -> list[Tensor]:
        next_carry, ys = step(inputs[:count], inputs[count:])
        return [*next_carry, *ys, *inputs[:count]]  # the carries are for a backward pass

    types = [Value(t.shape, t.dtype) for t in carry] + [Value(x.shape[1:], x.dtype) for x in xs]
    flags = [t.requires_grad and is_grad_enabled() for t in (*carry, *xs)]
    trace_body = partial(_trace_steps, "scan", function, types, flags, count)
    body, reads = _without_changes("scan", [step.f], trace_body)
    body.check_steps([*carry, *xs], count)
    _name_inputs(body.values[:count], step.init, step.f, 0)
    _name_inputs(body.values[count:], step.slices, step.f, 1)
    types = body.program.outputs
    outs = [Value(v.shape, v.dtype) for v in types[:count]]
    outs += [Value((length, *v.shape), v.dtype) for v in types[count:]]
    settings = {"length": length, "reverse": reverse}
    op = _record("for", (_values(carry), _values(xs)), settings, outs, [body])
    node = None
    if any(body.tracked):
        (later,) = kept("scan", [function], reads)
        node = ScanNode.of(later, body, op, [*carry, *xs], count, checkpoint)
    made = connected(node, outs, body.tracked)
    return made[:count], made[count : len(made) - count]


def _trace_steps(
    name: str, function: Any, types: list[Value], flags: list[bool], count: int
) -> Body:
    """Trace a step for all steps, and set the flags of carries that require grad after any."""
    while True:
        body = Body(name, function, types, flags)
        after = [a or b for a, b in zip(flags[:count], body.tracked[:count], strict=True)]
        if after == flags[:count]:
            return body
        flags[:count] = after


def while_loop(
    condition: Callable[[Tensors], Any], body: Callable[[Tensors], list[Tensor]], carry: Tensors
) -> list[Tensor]:
    """Record a loop that runs while its condition holds."""
    types = [Value(t.shape, t.dtype) for t in carry]
    flags = [t.requires_grad and is_grad_enabled() for t in carry]

    def checked(parts: Tensors) -> list[Tensor]:
        return [_checked_condition(condition(parts))]

    def trace_regions() -> list[Body]:
        step = _trace_steps("while", body, types, flags, len(types))
        return [run_in(no_grad(), Body, "while", checked, types, flags), step]

    regions, reads = _without_changes("while_loop", [condition, body], trace_regions)
    regions[1].check_steps(carry, len(types))
    outs = [Value(v.shape, v.dtype) for v in types]
    op = _record("while", (_values(carry),), {}, outs, regions)
    node = None
    if any(flags):
        test, step = kept("while_loop", [condition, body], reads)
        node = WhileNode.of(test, step, regions, op, carry)
    return connected(node, outs, flags)


def _checked_condition(value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value._array.size != 1:
        raise CompileError(
            "while_loop: the condition of a compiled loop must be a tensor of one element that "
            f"depends on the carry, got {value!r}"
        )
    return value


def cond(predicate: Tensor, branches: list[Branch]) -> list[Tensor]:
    """Record a branch."""
    first, second = branches
    types: list[Value] = []

    def second_matched(_: Any = None) -> list[Tensor]:
        like = [TensorType(value.shape, value.dtype) for value in types]
        return matched("cond: the result", first.result, like, second.f(*second.operands))

    def trace_branches() -> list[Body]:
        found = Body("cond", lambda _: first(), [], [])
        types[:] = found.program.outputs
        return [found, Body("cond", second_matched, [], [])]

    regions, reads = _without_changes("cond", [branch.f for branch in branches], trace_branches)
    outs = [Value(v.shape, v.dtype) for v in types]
    op = _record("if", (predicate._array.value,), {}, outs, regions)
    tracked = [a or b for a, b in zip(*(region.tracked for region in regions), strict=True)]
    node = None
    if any(tracked):
        node = CondNode.of(kept("cond", [first, second_matched], reads), regions, op)
    return connected(node, outs, tracked)


def _without_changes(
    name: str, functions: list[Any], trace: Callable[[], T]
) -> tuple[T, list[Found]]:
    """Trace functions; return also what they find by name.

    Raise if they change it, since they run only once.
    """
    search = Search()
    search.visit(*functions)
    result, _ = reporting(search.started, trace)
    for item in search.found:
        if has_changed(item):
            raise CompileError(
                f"the function of a {name} changes what it finds by name (of type "
                f"{type(item.value).__name__}), but it is run once, for all steps or whatever is "
                "chosen: make it part of the carry, or return it"
            )
    return result, search.found


def _record(
    function: str,
    args: tuple[Any, ...],
    settings: dict[str, Any],
    outs: list[Value],
    regions: list[Body],
) -> Op:
    """Record an op with regions in the active trace."""
    trace = TRACING.get()
    assert trace is not None
    programs = tuple([region.program for region in regions])
    op = Op(function, args, settings, tuple(outs), here(), programs)
    trace.ops.append(op)
    return op


def _values(tensors: Tensors) -> tuple[Value, ...]:
    return tuple([t._array.value for t in tensors])


def _name_inputs(values: list[Value], containers: Any, f: Any, position: int) -> None:
    """Name inputs of a region after the parameter of the user's function at a position."""
    code = getattr(f, "__code__", None)
    if code is None or code.co_argcount <= position:
        return
    stem = code.co_varnames[position]
    paths = [path for path, leaf in pytree.leaves(containers) if leaf is not None]
    for value, path in zip(values, paths, strict=True):
        value.hint = re.sub(r"\W+", "_", stem + path).strip("_")
