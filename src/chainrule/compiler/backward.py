"""Backward programs: the derivatives of compiled functions whose results are differentiated."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.backward import autograd_grad, captured_grads, start_pass
from chainrule.autograd.forward import tangents_between
from chainrule.autograd.intercept import intercepted_by
from chainrule.autograd.node import (
    Edge,
    GradientEdge,
    Node,
    NodeName,
    check_unwritten,
    endpoint,
    freed_error,
)
from chainrule.autograd.record import stamp_node
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes import optimize
from chainrule.compiler.recorded_graph import GraphTemplate, RecordedGraph
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import Capture, Trace
from chainrule.creation import zeros
from chainrule.errors import AutogradError, CompileError, FreedGraphError, InPlaceError
from chainrule.interrupts import call_then
from chainrule.transforms.vmap.batched_array import BatchedArray

# --- partial backward programs --------------------------------------------------------------------
#
# A backward pass may start from some of the outputs only. All that it computes is linear in the
# cotangents, so a value that depends on absent cotangents alone is absent, too, and a sum with it
# is the other summand. Zeros instead would differ: 0 times infinity is nan, and a `.grad` of zeros
# is not None.


def partial_pass(
    program: Program, count: int, present: Collection[int]
) -> tuple[Program, list[int | None]]:
    """Return a backward program for the present ones of its `count` cotangents, its first inputs.

    Also return for each output its position among those of the new program; None if it is absent.
    """
    cotangents = program.inputs[:count]
    given = [v for i, v in enumerate(cotangents) if i in present]
    part = _PartialPass(given, [v for v in cotangents if v not in given])
    ops = [kept for op in program.ops for kept in part.ops_for(op)]
    outputs = [v for v in program.outputs if v not in part.absent]
    positions = {v: i for i, v in enumerate(outputs)}
    results = [part.same.get(v, v) for v in outputs]
    inputs = [*given, *program.inputs[count:]]
    found = Program(program.name, inputs, program.constants, ops, results, [])
    return found, [positions.get(v) for v in program.outputs]


class _PartialPass:
    """The ops of a backward program that present cotangents need."""

    def __init__(self, present: Collection[Value], absent: Collection[Value]) -> None:
        self.present = {*present}  # values that depend on present cotangents
        self.absent = {*absent}  # values that depend on absent cotangents alone
        self.same: dict[Value, Value] = {}  # sums with one summand left

    def ops_for(self, op: Op) -> Iterator[Op]:
        """Yield the ops in place of an op of the full program."""
        op = op.substitute(lambda v: self.same.get(v, v))
        inputs = set(op.inputs)
        missing = inputs & self.absent
        if missing and inputs.isdisjoint(self.present):
            self.absent.update(op.outs)
            return
        if not inputs.isdisjoint(self.present):
            self.present.update(op.outs)
        if missing and op.function == "np.add":
            (other,) = inputs - missing
            if (other.shape, other.dtype) == (op.out.shape, op.out.dtype):
                self.same[op.out] = other
                return
        zeros = {v: Value(v.shape, v.dtype) for v in missing}
        for value, zero in zeros.items():
            yield Op("np.zeros", (value.shape, value.dtype), {}, (zero,), op.location)
        yield op.substitute(lambda v: zeros.get(v, v)) if zeros else op


# --- tracing of backward programs -----------------------------------------------------------------


class Pullback(NamedTuple):
    """A backward program: a function of the cotangents of the outputs, then of residuals."""

    program: Program
    traced: Program  # the program before it was optimised
    residuals: list[Value]  # values of the forward program
    wrt: list[Capture]  # the tensors that get gradients
    given: list[int | None]  # the position of the gradient of each among the outputs
    obstacle: AutogradError | None  # the reason if there is no backward pass


class TracedBackward(NamedTuple):
    """A traced backward pass, not yet optimised."""

    trace: Trace
    ops: list[Op]
    cotangents: list[Value]
    outputs: list[Value]
    free: list[Value]  # values of the forward program that it uses
    wrt: list[Capture]
    given: list[int | None]
    graph: GraphTemplate | AutogradError
    forward: list[Op]  # the ops of the forward pass, before any of them is rewritten
    obstacle: AutogradError | None = None

    def optimize(self) -> Pullback:
        """Return the backward program, which slices the stacks of forward loops itself."""
        made = {v: op for op in self.trace.ops for v in op.outs}
        slices = [op for v in self.free if (op := made.get(v)) and _is_stack_slice(op, made)]
        own = {*self.trace.constants, *(v for op in slices for v in op.outs)}
        free = list(dict.fromkeys([v for op in slices for v in op.inputs] + self.free))
        free = [v for v in free if v not in own]
        inputs, ops = [*self.cotangents, *free], [*slices, *self.ops]
        name, constants = f"{self.trace.name}_backward", self.trace.constants
        traced = Program(name, inputs, constants, ops, self.outputs, [])
        program = optimize(traced)
        residuals = _used(program, free)
        program.inputs = [*self.cotangents, *residuals]
        return Pullback(program, traced, residuals, self.wrt, self.given, self.obstacle)


def _used(program: Program, values: list[Value]) -> list[Value]:
    """Return those of the values that a program uses."""
    used = {v for op in program.ops for v in op.inputs} | set(program.outputs)
    return [v for v in values if v in used]


def _is_stack_slice(op: Op, made: dict[Value, Op]) -> bool:
    """Whether an op is a slice of a stack that a loop makes."""
    maker = made.get(op.args[0]) if op.function == "getitem" else None
    return maker is not None and maker.function == "for"


def pullback(trace: Trace, tracked: Sequence[Tensor]) -> TracedBackward | None:
    """Trace the backward pass from these outputs; return None if the function ran it itself."""
    wrt = [c for c in trace.captures.values() if c.requires_grad]
    if not tracked or not wrt:
        return None
    for capture in wrt:
        hooks = capture.node.hooks
        if hooks is not None and hooks.tensor:
            raise CompileError(
                "a tensor with a hook (register_hook) can't be used by a compiled function whose "
                "result is differentiated outside: call backward() inside, or compile without it"
            )
    trace.lines.naming = False
    graph = _template(trace, tracked, wrt)
    begin, own_tensors = len(trace.ops), len(trace.made)
    seeds = [Symbol(Value(t.shape, t.dtype, "g")) for t in tracked]
    cotangents = [seed.value for seed in seeds]

    def backward() -> list[Value | None]:
        inputs, gs = [c.tensor for c in wrt], [make(seed, None) for seed in seeds]
        found = autograd_grad(list(tracked), inputs, gs, retain_graph=True, allow_unused=True)
        return [None if g is None else g._array.value for g in found]

    def forget_tensors() -> None:
        """A call doesn't make the tensors of its backward pass, whoever still refers to them.

        A profiler may have the frames, and an error has them.
        """
        del trace.made[own_tensors:]

    try:
        grads = call_then(forget_tensors, trace.run, backward)
    except FreedGraphError:
        del trace.ops[begin:]  # of a pass that ended within a loop, they use what is not there
        return None
    except AutogradError as error:  # raised in the backward pass only, as in eager mode
        del trace.ops[begin:]
        obstacle = type(error)(str(error))  # without a traceback, whose frames hold tensors
        none: list[int | None] = [None] * len(wrt)
        forward = list(trace.ops)
        return TracedBackward(trace, [], cotangents, [], [], wrt, none, graph, forward, obstacle)
    if trace.run(lambda: any(tensor.retains_grad for tensor in tracked)):
        raise CompileError(
            "retain_grad() of a result of a compiled function that is differentiated outside would "
            "miss what the function makes of it: call backward() inside, or return another tensor "
            "than the one that is used on"
        )
    for capture, g in zip(wrt, grads, strict=True):
        if g is not None and capture.value.hint:
            g.hint = f"grad_{capture.value.hint}"
    ops, trace.ops[begin:] = trace.ops[begin:], []
    outputs = list(dict.fromkeys(g for g in grads if g is not None))
    own = {*cotangents, *trace.constants, *(v for op in ops for v in op.outs)}
    needed = [v for op in ops for v in op.inputs] + outputs
    free = list(dict.fromkeys(v for v in needed if v not in own))
    given = [None if g is None else outputs.index(g) for g in grads]
    forward = list(trace.ops)
    return TracedBackward(trace, ops, cotangents, outputs, free, wrt, given, graph, forward)


def _template(
    trace: Trace, tracked: Sequence[Tensor], wrt: Sequence[Capture]
) -> GraphTemplate | AutogradError:
    """Return the graph of the trace, or the reason why it can't be gone through again."""
    try:
        found: GraphTemplate = trace.run(GraphTemplate, tracked, [c.node for c in wrt])
        return found
    except AutogradError as error:
        return type(error)(str(error))  # without a traceback, whose frames hold tensors


class CompiledNode(Node):
    """The graph node of one call of a compiled function."""

    __slots__ = ("inputs", "saved", "spec")

    saved: tuple[Any, ...] | None  # residuals of the backward program; None: released
    inputs: tuple[Any, ...]  # arrays of which the graph of the call can be made
    spec: CompiledRule

    @property
    def name(self) -> str:
        return NodeName(f"{self.spec.name}Backward")

    @property
    def output_count(self) -> int:
        return len(self.spec.outputs)

    def vjp(self, g: Any, run: Any) -> Sequence[Any]:
        spec, saved = self.spec, self.saved
        if spec.obstacle is not None:
            raise type(spec.obstacle)(str(spec.obstacle))
        if saved is None:
            raise freed_error(self)
        parts = g if g.__class__ is dict else {0: g}
        if any([isinstance(part, BatchedArray) for part in parts.values()]):
            return self._batched_vjp(parts, run)
        back = spec.backward(frozenset(parts))
        for position in back.residuals:
            self._check_saved(position)
        if run.xp is not None:
            return self._differentiable_vjp(parts, back, run)
        seeds = [run.conjugate(parts[i]) for i in sorted(parts)]
        found = back.run(*seeds, *[saved[position] for position in back.residuals])
        grads = found if back.several else (found,)
        if not run.retain_graph:
            self._release()
        return [None if i is None else run.conjugate(np.asarray(grads[i])) for i in back.given]

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        earliest = next_seq()
        ends = self.graph("forward mode")
        return tuple(tangents_between(ends, self.edges, tangents, earliest))

    def _differentiable_vjp(self, parts: dict[int, Any], back: Backward, run: Any) -> Sequence[Any]:
        """Record a backward pass through the graph of the call."""
        gs = {i: run.conjugate(part) for i, part in parts.items()}
        grads = self._vjp_of_graph(gs, "a second derivative", create_graph=True)
        if not run.retain_graph:
            self._release()
        found = [
            zeros(shape, dtype=dtype) if grad is None and given is not None else grad
            for (shape, dtype), grad, given in zip(self.spec.wrt, grads, back.given, strict=True)
        ]
        return [None if grad is None else run.conjugate(grad) for grad in found]

    def _batched_vjp(self, parts: dict[int, Any], run: Any) -> Sequence[Any]:
        """Go through the graph of the call: the program is one for single cotangents."""
        grads = self.vjp_of_nodes(parts, run, "a derivative under vmap")
        if not run.retain_graph:
            self._release()
        return [None if grad is None else run.conjugate(grad._array) for grad in grads]

    def vjp_of_nodes(self, g: Any, run: Any, purpose: str = "anomaly mode") -> list[Tensor | None]:
        """Go through the nodes of the call, in the place of the program: anomaly mode asks them."""
        parts = g if g.__class__ is dict else {0: g}
        tensors = {i: make(run.conjugate(part), None) for i, part in parts.items()}
        return self._vjp_of_graph(tensors, purpose, create_graph=False)

    def _vjp_of_graph(
        self, parts: dict[int, Tensor], purpose: str, create_graph: bool
    ) -> list[Tensor | None]:
        """Return the gradients through the graph of the call.

        By edges: under a vmap that began after the call, tensors of its nodes would have proxies.
        """
        earliest = next_seq()
        ends, targets = self.graph(purpose), [endpoint(edge) for edge in self.edges]
        present = [i for i in parts if ends[i] is not None]
        if not present:
            return [None] * len(targets)
        roots = [GradientEdge(*endpoint(ends[i])) for i in present]
        run = start_pass(roots, [parts[i] for i in present], True, create_graph)
        return captured_grads(run, [GradientEdge(*x) for x in targets], targets, earliest)

    def graph(self, purpose: str) -> Sequence[Edge]:
        """Make the graph of the call, and return the edges to its results."""
        spec, saved, graph = self.spec, self.saved, self.spec.graph
        if saved is None:
            raise freed_error(self)
        if isinstance(graph, AutogradError):
            raise type(graph)(str(graph).replace("{purpose}", purpose))
        arrays = dict(zip(spec.kept, saved, strict=True))
        for position, value in enumerate(spec.kept):
            if value in graph.given:
                self._check_saved(position)
        for value, found in zip(graph.inputs, self.inputs, strict=True):
            arrays[value] = self._unchanged(value, found)
        # Outside of a vmap, which would take the tensors that the nodes save for its own.
        return intercepted_by(None, graph.edges, arrays, self.edges)

    def _check_saved(self, position: int) -> None:
        """Raise if a residual that callers may write to has been written to."""
        checked = self.spec.checked
        if position in checked and self.saved is not None:
            origin = checked[position]
            source = None if origin is None else self.edges[origin]
            check_unwritten(self, self.saved[position], source, position)

    def _unchanged(self, value: Value, found: Any) -> Any:
        """Return the array of an input; raise if it has changed since the call."""
        name = f"{value.hint or 'an array'}, which the compiled {self.spec.name} used"
        if type(found) is not tuple:
            try:
                check_unwritten(self, found, None, 0)
            except InPlaceError as error:
                raise InPlaceError(f"{name}: {error}") from None
            return found
        array, before = found  # of NumPy, whose writes nobody notes
        if not np.array_equal(array, before, equal_nan=array.dtype.kind in "fc"):
            raise InPlaceError(
                f"{name}, a NumPy array of shape {list(array.shape)}, has been modified in place "
                "since the call, and this pass computes with it anew: modify a copy, or call "
                f"{self.spec.name} again"
            )
        return before

    def _release(self) -> None:
        self.saved, self.inputs = None, ()


class Backward(NamedTuple):
    """The backward pass from some of the outputs."""

    run: Callable[..., Any]
    several: bool  # whether it returns a tuple
    residuals: list[int]  # the positions of the saved values that it takes
    given: list[int | None]  # the position of the gradient of each tensor among the results


class CompiledRule:
    """The derivatives of a compiled function for one signature."""

    def __init__(
        self,
        found: Pullback,
        graph: RecordedGraph | AutogradError,
        emit: Callable[[Program], Callable[..., Any]],
        tracked: Sequence[Tensor],
        kept: list[Value],
        exposed: set[Value],
    ) -> None:
        """`kept` are the values that a call saves: the residuals first."""
        self.name = found.program.name.removesuffix("_backward")
        self.graph, self.emit, self.kept = graph, emit, kept
        self.outputs = [(t.shape, t.dtype) for t in tracked]
        self.wrt = [(c.value.shape, c.value.dtype) for c in found.wrt]
        self.obstacle, self._found = found.obstacle, found._replace(wrt=[])  # `wrt` holds tensors
        residuals = [*range(len(found.residuals))]
        several = len(found.program.outputs) > 1
        full = Backward(emit(found.program), several, residuals, found.given)
        self._passes = {frozenset(range(len(tracked))): full}
        known = {c.value: i for i, c in enumerate(found.wrt)}
        self.checked = {  # residuals that callers may write to: inputs and results
            position: known.get(v)
            for position, v in enumerate(found.residuals)
            if v in known or v in exposed
        }

    def backward(self, present: frozenset[int]) -> Backward:
        """Return the backward pass from these outputs."""
        back = self._passes.get(present)
        if back is None:
            back = self._passes[present] = self._partial(present)
        return back

    def _partial(self, present: frozenset[int]) -> Backward:
        found, count = self._found, len(self.outputs)
        for full in (found.traced, found.program):
            part, positions = partial_pass(full, count, present)
            program = optimize(part)
            used = _used(program, part.inputs[len(present) :])
            if {*used} <= {*found.residuals}:  # the traced one may use values that aren't saved
                break
        program.inputs = [*part.inputs[: len(present)], *used]
        return Backward(
            self.emit(program),
            len(program.outputs) > 1,
            [found.residuals.index(v) for v in used],
            [None if i is None else positions[i] for i in found.given],
        )


def recorded(
    spec: CompiledRule, edges: tuple[Any, ...], saved: tuple[Any, ...], inputs: tuple[Any, ...]
) -> CompiledNode:
    """Return a new node for a call."""
    node: CompiledNode = object.__new__(CompiledNode)
    node.spec, node.edges, node.saved, node.inputs = spec, edges, saved, inputs
    stamp_node(node, 3)
    return node
