"""What makes a compiled function differentiable from outside: its backward pass, a program too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.autograd.backward import autograd_grad, vjp_of
from chainrule.autograd.forward import outputs_and_jvp_of
from chainrule.autograd.node import Node, NodeName, check_unwritten, freed_error
from chainrule.autograd.record import stamp_node
from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.passes import optimized
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import Capture, Trace
from chainrule.creation import zeros
from chainrule.errors import AutogradError, CompileError, FreedGraphError

# --- partial pass ---------------------------------------------------------------------------------
#
# The backward pass of some of the outputs: what the others' gradients would lead to is left out.
#
# All that a backward pass computes is linear in the gradients that come. So what is made of none
# that comes doesn't come either, and where it is added to another one, that is the sum. Zeros in
# its place would not be the same: 0 times infinity is nan, and a `.grad` of zeros is not None.


def partial_pass(
    program: Program, count: int, present: Collection[int]
) -> tuple[Program, list[int | None]]:
    """Return a backward program that gets some of its `count` cotangents, its first inputs.

    And for each output, which one of the new program it is; None if it isn't one.
    """
    cotangents = program.inputs[:count]
    come = [v for i, v in enumerate(cotangents) if i in present]
    part = _Part(come, [v for v in cotangents if v not in come])
    ops = [left for op in program.ops for left in part.lines_of(op)]
    outputs = [v for v in program.outputs if v not in part.absent]
    places = {v: i for i, v in enumerate(outputs)}
    results = [part.same.get(v, v) for v in outputs]
    inputs = [*come, *program.inputs[count:]]
    found = Program(program.name, inputs, program.constants, ops, results, [])
    return found, [places.get(v) for v in program.outputs]


class _Part:
    """What is left of a pass, line by line."""

    def __init__(self, come: Collection[Value], absent: Collection[Value]) -> None:
        self.made = {*come}  # of cotangents that come
        self.absent = {*absent}  # and of those that don't, and nothing else
        self.same: dict[Value, Value] = {}  # sums of one part

    def lines_of(self, op: Op) -> Iterator[Op]:
        """Yield what is left of a line."""
        op = op.replaced(lambda v: self.same.get(v, v))
        inputs = set(op.inputs)
        missing = inputs & self.absent
        if missing and inputs.isdisjoint(self.made):
            self.absent.update(op.outs)
            return
        if not inputs.isdisjoint(self.made):
            self.made.update(op.outs)
        if missing and op.function == "np.add":
            (other,) = inputs - missing
            if (other.shape, other.dtype) == (op.out.shape, op.out.dtype):
                self.same[op.out] = other
                return
        zeros = {v: Value(v.shape, v.dtype) for v in missing}
        for value, zero in zeros.items():
            yield Op("np.zeros", (value.shape, value.dtype), {}, (zero,), op.location)
        yield op.replaced(lambda v: zeros.get(v, v)) if zeros else op


# --- backward -------------------------------------------------------------------------------------


class Pullback(NamedTuple):
    """The backward program: of the outputs' cotangents first, then of what it needs besides."""

    program: Program
    traced: Program  # the same before it was optimised
    residuals: list[Value]  # values of the forward program
    wrt: list[Capture]  # the tensors that get gradients
    given: list[int | None]  # which output of the program is the gradient of each
    obstacle: AutogradError | None  # why there is no backward pass


class TracedPass(NamedTuple):
    """A backward pass as it was traced."""

    trace: Trace
    ops: list[Op]
    cotangents: list[Value]
    outputs: list[Value]
    free: list[Value]  # what it needs of the forward program
    wrt: list[Capture]
    given: list[int | None]
    obstacle: AutogradError | None = None

    def optimized(self) -> Pullback:
        """Return the backward program; what a forward loop stacked, it takes from the stack."""
        made = {v: op for op in self.trace.ops for v in op.outs}
        parts = [op for v in self.free if (op := made.get(v)) and _is_part(op, made)]
        own = {v for op in parts for v in op.outs}
        free = list(dict.fromkeys([v for op in parts for v in op.inputs] + self.free))
        free = [v for v in free if v not in own]
        inputs, ops = [*self.cotangents, *free], [*parts, *self.ops]
        name, constants = f"{self.trace.name}_backward", self.trace.constants
        traced = Program(name, inputs, constants, ops, self.outputs, [])
        program = optimized(traced)
        residuals = _used(program, free)
        program.inputs = [*self.cotangents, *residuals]
        return Pullback(program, traced, residuals, self.wrt, self.given, self.obstacle)


def _used(program: Program, values: list[Value]) -> list[Value]:
    """Return those of some values that a program uses."""
    used = {v for op in program.ops for v in op.inputs} | set(program.outputs)
    return [v for v in values if v in used]


def _is_part(op: Op, made: dict[Value, Op]) -> bool:
    """Say whether a line only takes a value out of the stack that a loop made."""
    maker = made.get(op.args[0]) if op.function == "getitem" else None
    return maker is not None and maker.function == "for"


def pullback(trace: Trace, tracked: Sequence[Tensor]) -> TracedPass | None:
    """Trace the backward pass from these outputs; None if the function has run it itself."""
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
    begin, trace.naming = len(trace.ops), False
    seeds = [Symbol(Value(t.shape, t.dtype, "g")) for t in tracked]
    cotangents = [seed.value for seed in seeds]

    def backward() -> list[Value | None]:
        inputs, gs = [c.tensor for c in wrt], [make(seed, None) for seed in seeds]
        found = autograd_grad(list(tracked), inputs, gs, retain_graph=True, allow_unused=True)
        return [None if g is None else g._array.value for g in found]

    try:
        grads = trace.run(backward)
    except FreedGraphError:
        return None
    except AutogradError as error:  # as eagerly, only who goes backward is told
        del trace.ops[begin:]
        obstacle = type(error)(str(error))  # without its frames, which hold tensors
        return TracedPass(trace, [], cotangents, [], [], wrt, [None] * len(wrt), obstacle)
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
    return TracedPass(trace, ops, cotangents, outputs, free, wrt, given)


class CompiledNode(Node):
    """One call of a compiled function, recorded."""

    __slots__ = ("again", "saved", "spec")

    saved: tuple[Any, ...] | None  # the values that the backward program needs; None: released
    again: tuple[Any, Any, tuple[Tensor, ...]] | None  # the call, and the tensors with gradients
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
        back = spec.backward(frozenset(parts))
        for position in back.kept:
            if position in spec.checked:
                origin = spec.checked[position]
                source = None if origin is None else self.edges[origin]
                check_unwritten(self, saved[position], source, position)
        if run.xp is not None:
            return self._recorded(parts, back, run)
        seeds = [run.conjugate(parts[i]) for i in sorted(parts)]
        found = back.run(*seeds, *[saved[position] for position in back.kept])
        grads = found if back.several else (found,)
        if not run.retain_graph:
            self.saved = self.again = None
        return [None if i is None else run.conjugate(np.asarray(grads[i])) for i in back.given]

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        run, tensors = self._again("forward mode")
        return tuple(outputs_and_jvp_of(run, tensors, tangents)[1])

    def _recorded(self, parts: dict[int, Any], back: Backward, run: Any) -> Sequence[Any]:
        """Differentiate the function itself, eagerly, and record that."""
        again, tensors = self._again("a second derivative")
        _, grads = vjp_of(again, tensors, {i: run.conjugate(part) for i, part in parts.items()})
        if not run.retain_graph:
            self.saved = self.again = None
        found = [
            zeros(t.shape, dtype=t.dtype) if grad is None and given is not None else grad
            for t, grad, given in zip(tensors, grads, back.given, strict=True)
        ]
        return [None if grad is None else run.conjugate(grad) for grad in found]

    def _again(self, purpose: str) -> tuple[Callable[[], list[Tensor]], tuple[Tensor, ...]]:
        """Return what runs the function itself, and the tensors that its outputs depend on."""
        spec = self.spec
        if not spec.pure:
            raise AutogradError(
                f"the compiled {spec.name} writes to tensors or draws random numbers, so it "
                f"can't run again for {purpose}: compile a function of the whole instead"
            )
        if self.again is None:
            raise freed_error(self)
        args, kwargs, tensors = self.again
        return lambda: spec.tracked(spec.function(*args, **kwargs)), tensors


class Backward(NamedTuple):
    """The backward pass of some of the outputs."""

    run: Callable[..., Any]
    several: bool  # whether it returns a tuple
    kept: list[int]  # which saved values it takes
    given: list[int | None]  # which result is the gradient of each tensor


class CompiledRule:
    """What all calls of one signature have in common."""

    def __init__(
        self,
        found: Pullback,
        function: Callable[..., Any],
        emit: Callable[[Program], Callable[..., Any]],
        tracked: Sequence[Tensor],
        result: Any,
        pure: bool,
        exposed: set[Value],
    ) -> None:
        self.name = found.program.name.removesuffix("_backward")
        self.function, self.emit, self.pure = function, emit, pure
        self.outputs = [(t.shape, t.dtype) for t in tracked]
        self.obstacle, self._found = found.obstacle, found._replace(wrt=[])  # which holds tensors
        everything = range(len(found.residuals))
        several = len(found.program.outputs) > 1
        whole = Backward(emit(found.program), several, [*everything], found.given)
        self._passes = {frozenset(range(len(tracked))): whole}
        known = {c.value: i for i, c in enumerate(found.wrt)}
        self.checked = {  # what others may write to: inputs and results
            position: known.get(v)
            for position, v in enumerate(found.residuals)
            if v in known or v in exposed
        }
        leaves = [id(leaf) for _, leaf in pytree.leaves(result)]
        self._places = [leaves.index(id(t)) for t in tracked]

    def backward(self, present: frozenset[int]) -> Backward:
        """Return the pass from those of the outputs."""
        back = self._passes.get(present)
        if back is None:
            back = self._passes[present] = self._partial(present)
        return back

    def _partial(self, present: frozenset[int]) -> Backward:
        found, count = self._found, len(self.outputs)
        for whole in (found.traced, found.program):
            part, places = partial_pass(whole, count, present)
            program = optimized(part)
            used = _used(program, part.inputs[len(present) :])
            if {*used} <= {*found.residuals}:  # else the first one would need what isn't saved
                break
        program.inputs = [*part.inputs[: len(present)], *used]
        return Backward(
            self.emit(program),
            len(program.outputs) > 1,
            [found.residuals.index(v) for v in used],
            [None if i is None else places[i] for i in found.given],
        )

    def tracked(self, result: Any) -> list[Tensor]:
        """Return those leaves of a result that can be differentiated: one for each output."""
        found = [leaf for _, leaf in pytree.leaves(result)]
        return [found[i] for i in self._places]


def recorded(
    spec: CompiledRule, edges: tuple[Any, ...], saved: tuple[Any, ...], again: Any
) -> CompiledNode:
    """Return the node of a call."""
    node: CompiledNode = object.__new__(CompiledNode)
    node.spec, node.edges, node.saved, node.again = spec, edges, saved, again
    stamp_node(node, 3)
    return node
