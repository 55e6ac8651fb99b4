"""Backward loop of a traced scan: its body is the backward pass of the forward body.

The forward loop stacks the residuals that it needs, one slice per step. Views and constants are
recomputed instead.

A step receives gradients of some of its carries. Zeros don't replace an absent gradient (0 times
infinity is nan), except where they are added to another one. So a step belongs to the loop only if
the step after it gets gradients of the same carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.control_flow.inner_trace import Body, own_pass
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.tracing.namespace import SYMBOL_XP
from chainrule.compiler.tracing.symbol import TRACING, Symbol


class BackwardBody:
    """The traced backward pass of a body; its residuals become stacks of the forward loop."""

    program: Program
    totals: list[Value]  # inputs: running sums of the gradients of `summed`
    summed: list[int]  # tensors of the enclosing trace that get gradients
    sliced: list[int]  # inputs of the body whose slices get gradients
    seeded: list[int]  # carries whose gradient is an input, possibly of zeros
    reached: list[int]  # carries that get a gradient
    leaving: list[int]  # carries whose gradient is an output: `reached`, or `seeded` if steady
    steady: bool  # whether the next step has the same program

    def __init__(self, body: Body, op: Op, count: int, sources: list[Tensor]) -> None:
        self.body, self.op, self.count, self.sources = body, op, count, sources
        self.stacks: list[Value] = []  # the stacked residuals
        self._inputs: list[Value] = []  # their slices
        self._prefix: list[Op] = []  # recomputed ops
        self._found: dict[Value, Value] = {}
        self._made: dict[Value, Op] = {}

    def trace(
        self, arriving: Iterable[int], carried: list[int], rows: list[int], sliced: list[int]
    ) -> None:
        """Trace the backward pass from gradients of carries and ys to those of carries and xs.

        `arriving` are the carries with a gradient, `rows` the ys with one; `carried` and `sliced`
        are the carries and xs that require one.
        """
        trace, types = self.body.trace, self.body.program.outputs
        begin = len(trace.ops)
        self.seeded = trace.run(self._seeded_carries, arriving, carried, rows)
        del trace.ops[begin:]  # ops of a trial run
        seeds = {k: Value(types[k].shape, types[k].dtype, "g") for k in (*self.seeded, *rows)}
        outputs = trace.run(self._backward, seeds, carried, rows, sliced)
        ops, trace.ops[begin:] = trace.ops[begin:], []
        inputs = [*(seeds[k] for k in self.seeded), *self.totals, *(seeds[k] for k in rows)]
        program = Program("scan_backward", inputs, {}, ops, outputs, [])
        self._made = {v: op for op in self.body.program.ops for v in op.outs}
        own = {*self.body.values, *self._made}
        for value in program.free_values():
            if value in own:
                self._make_available(value, own)
        program = program.substitute(lambda v: self._found.get(v, v))
        program.ops[:0] = self._prefix
        program.inputs += self._inputs
        self.program = program

    def _seeded_carries(
        self, arriving: Iterable[int], carried: list[int], rows: list[int]
    ) -> list[int]:
        """Return the carries that get a seed if these arrive with gradients."""
        like = [Value(v.shape, v.dtype) for v in self.body.program.outputs]
        gs = {k: make(Symbol(like[k]), None) for k in (*arriving, *rows)}
        return with_gradients(self.body.outs, gs, carried)

    def _backward(
        self, seeds: dict[int, Value], carried: list[int], rows: list[int], sliced: list[int]
    ) -> list[Value]:
        """Return the gradients of carries, the running sums, and the gradients of slices."""
        body = self.body
        roots = [k for k in seeds if body.outs[k].requires_grad]
        wrt = [body.inputs[i] for i in (*carried, *sliced)] + self.sources
        gs = [make(Symbol(seeds[k]), None) for k in roots]
        outs = [body.outs[k] for k in roots]
        found: Any = [None] * len(wrt)
        if roots:
            found = own_pass(outs, wrt, gs, retain_graph=True, allow_unused=True)
        grads = [None if g is None else g._array for g in found]
        a, b = len(carried), len(carried) + len(sliced)
        carries = {i: g for i, g in zip(carried, grads[:a], strict=True) if g is not None}
        self.reached = list(carries)
        self.sliced = [i for i, g in zip(sliced, grads[a:b], strict=True) if g is not None]
        self.summed = [i for i, g in enumerate(grads[b:]) if g is not None]
        parts: list[Any] = [grads[b + i] for i in self.summed]
        self.totals = [Value(g.shape, g.dtype, "total") for g in parts]
        sums = [SYMBOL_XP.add(Symbol(t), g) for t, g in zip(self.totals, parts, strict=True)]
        begin = len(body.trace.ops)
        self.steady = self._seeded_carries(self.reached, carried, rows) == self.seeded
        del body.trace.ops[begin:]
        if self.steady:
            inputs = body.inputs
            for i in self.seeded:
                if i not in carries:
                    carries[i] = SYMBOL_XP.zeros(inputs[i]._array.shape, inputs[i]._array.dtype)
            carries = {i: carries[i] for i in self.seeded}
        self.leaving = list(carries)
        slices = [g for g in grads[a:b] if g is not None]
        return [g.value for g in (*carries.values(), *sums, *slices)]

    def _make_available(self, value: Value, own: set[Value]) -> None:
        """Make a value of the forward body available in the backward one: recompute or stack it."""
        if value in self._found:
            return
        op = self._made.get(value)
        if op is not None and _is_recomputed(op):
            for other in op.inputs:
                if other in own:
                    self._make_available(other, own)
            copy = op.substitute(lambda v: self._found.get(v, v))
            copy.outs = (Value(value.shape, value.dtype, value.hint),)
            self._prefix.append(copy)
            self._found[value] = copy.out
            return
        self.stacks.append(self._stack_of(value))
        self._inputs.append(Value(value.shape, value.dtype, value.hint))
        self._found[value] = self._inputs[-1]

    def _stack_of(self, value: Value) -> Value:
        """Return the stack of a value over all steps, if necessary as a new result of the loop."""
        op, outputs, count = self.op, self.body.program.outputs, self.count
        if value in self.body.values[count:]:
            stack: Value = op.args[1][self.body.values.index(value) - count]
            return stack
        if value not in outputs[count:]:
            outputs.append(value)
            length = op.kwargs["length"]
            op.outs += (Value((length, *value.shape), value.dtype, _plural(value.hint)),)
        return op.outs[outputs.index(value, count)]

    def loop(self, begin: Sequence[Value], given: Sequence[Value], **settings: Any) -> list[Value]:
        """Record the backward loop, and return its results."""
        outputs, count = self.program.outputs, len(self.program.outputs) - len(self.sliced)
        length = settings["length"]
        outs = [Value(v.shape, v.dtype) for v in outputs[:count]]
        outs += [Value((length, *v.shape), v.dtype) for v in outputs[count:]]
        args = (tuple(begin), tuple(given))
        _record(Op("for", args, settings, tuple(outs), self.op.location, (self.program,)))
        return outs

    def step(self, given: Sequence[Value]) -> list[Value]:
        """Record a single step outside of the loop, and return its results."""
        values = dict(zip(self.program.inputs, given, strict=True))
        for op in self.program.ops:
            _record(op.substitute(lambda v: values.get(v, v)))
        return [values.get(v, v) for v in self.program.outputs]


def with_gradients(outs: Sequence[Tensor], gs: dict[int, Any], carried: Sequence[int]) -> list[int]:
    """Return the carries with gradients, and those that get one from other outputs anyway.

    For the latter, a seed of zeros is equivalent to none.
    """
    roots = [k for k in gs if outs[k].requires_grad]
    others = [k for k in carried if k not in gs and outs[k].requires_grad]
    through: set[int] = set()
    if roots and others:
        wanted = [outs[k] for k in others]
        grads = own_pass(
            *([outs[k] for k in roots], wanted, [gs[k] for k in roots]),
            retain_graph=True,
            allow_unused=True,
        )
        through = {k for k, g in zip(others, grads, strict=True) if g is not None}
    return [k for k in carried if k in gs or k in through]


def _record(op: Op) -> None:
    trace = TRACING.get()
    assert trace is not None
    trace.ops.append(op)


def _is_recomputed(op: Op) -> bool:
    """Whether to recompute the result of an op in the backward body instead of stacking it."""
    if len(op.outs) != 1 or op.regions or op.function == DRAW:
        return False
    return op.function in VIEWS or not op.inputs


def _plural(hint: str) -> str:
    return f"{hint}s" if hint else ""
