"""The body of the loop that runs a scan backward: the body's own backward pass, traced on.

What it needs of the forward pass is stacked by the forward loop, one slice for each step; views,
and arrays that are made of nothing, are made again.

A step gets gradients of some of its carries. Zeros in the place of one that doesn't come aren't the
same (0 times infinity is nan), but where what they are added to has a gradient anyway. So a step
belongs to a loop if the step that follows gets gradients of the same carries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.control_flow.inner_trace import Body
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.op_traits import VIEWS
from chainrule.compiler.ir.program import Op, Program, Value
from chainrule.compiler.tracing.namespace import SYMBOL_XP
from chainrule.compiler.tracing.symbol import TRACING, Symbol


class BackwardBody:
    """Traces the backward pass of a body, and asks the forward loop for what that needs."""

    program: Program
    totals: list[Value]  # inputs: the sums so far of the gradients of `summed`
    summed: list[int]  # which tensors from outside get gradients
    sliced: list[int]  # which inputs of the body get a gradient of their slice
    seeded: list[int]  # which carries come with a gradient, be it of zeros
    reached: list[int]  # and which leave with one
    leaving: list[int]  # the same, or all that come with one, if the step is repeated
    steady: bool  # whether the step that follows is the same

    def __init__(self, body: Body, op: Op, count: int, sources: list[Tensor]) -> None:
        self.body, self.op, self.count, self.sources = body, op, count, sources
        self.stacks: list[Value] = []  # what the forward loop stacks for it
        self._inputs: list[Value] = []  # and the slices of these
        self._prefix: list[Op] = []  # what is made again
        self._found: dict[Value, Value] = {}
        self._made: dict[Value, Op] = {}

    def trace(
        self, arriving: Iterable[int], carried: list[int], rows: list[int], sliced: list[int]
    ) -> None:
        """Trace the pass from gradients of some carries and rows to those of carries and slices."""
        trace, kinds = self.body.trace, self.body.program.outputs
        begin = len(trace.ops)
        self.seeded = trace.run(self._closed, arriving, carried, rows)
        del trace.ops[begin:]  # which only asked
        seeds = {k: Value(kinds[k].shape, kinds[k].dtype, "g") for k in (*self.seeded, *rows)}
        outputs = trace.run(self._pass, seeds, carried, rows, sliced)
        ops, trace.ops[begin:] = trace.ops[begin:], []
        inputs = [*(seeds[k] for k in self.seeded), *self.totals, *(seeds[k] for k in rows)]
        program = Program("scan_backward", inputs, {}, ops, outputs, [])
        self._made = {v: op for op in self.body.program.ops for v in op.outs}
        own = {*self.body.values, *self._made}
        for value in program.free_values():
            if value in own:
                self._fetch(value, own)
        program = program.substitute(lambda v: self._found.get(v, v))
        program.ops[:0] = self._prefix
        program.inputs += self._inputs
        self.program = program

    def _closed(self, arriving: Iterable[int], carried: list[int], rows: list[int]) -> list[int]:
        """Return the carries that may come with a gradient if these do."""
        like = [Value(v.shape, v.dtype) for v in self.body.program.outputs]
        gs = {k: make(Symbol(like[k]), None) for k in (*arriving, *rows)}
        return with_gradients(self.body.outs, gs, carried)

    def _pass(
        self, seeds: dict[int, Value], carried: list[int], rows: list[int], sliced: list[int]
    ) -> list[Value]:
        """Return the gradients of carries, the sums, and the gradients of slices."""
        body = self.body
        roots = [k for k in seeds if body.outs[k].requires_grad]
        wrt = [body.inputs[i] for i in (*carried, *sliced)] + self.sources
        gs = [make(Symbol(seeds[k]), None) for k in roots]
        outs = [body.outs[k] for k in roots]
        found: Any = [None] * len(wrt)
        if roots:
            found = autograd_grad(outs, wrt, gs, retain_graph=True, allow_unused=True)
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
        self.steady = self._closed(self.reached, carried, rows) == self.seeded
        del body.trace.ops[begin:]
        if self.steady:
            kinds = body.inputs
            for i in self.seeded:
                if i not in carries:
                    carries[i] = SYMBOL_XP.zeros(kinds[i]._array.shape, kinds[i]._array.dtype)
            carries = {i: carries[i] for i in self.seeded}
        self.leaving = list(carries)
        slices = [g for g in grads[a:b] if g is not None]
        return [g.value for g in (*carries.values(), *sums, *slices)]

    def _fetch(self, value: Value, own: set[Value]) -> None:
        """Find a value of the forward body for the backward one."""
        if value in self._found:
            return
        op = self._made.get(value)
        if op is not None and _is_made_again(op):
            for other in op.inputs:
                if other in own:
                    self._fetch(other, own)
            again = op.substitute(lambda v: self._found.get(v, v))
            again.outs = (Value(value.shape, value.dtype, value.hint),)
            self._prefix.append(again)
            self._found[value] = again.out
            return
        self.stacks.append(self._stacked(value))
        self._inputs.append(Value(value.shape, value.dtype, value.hint))
        self._found[value] = self._inputs[-1]

    def _stacked(self, value: Value) -> Value:
        """Return what has a value of each step: a new result of the forward loop, if need be."""
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
        """Record the loop of so many steps, and return what comes out."""
        outputs, count = self.program.outputs, len(self.program.outputs) - len(self.sliced)
        length = settings["length"]
        outs = [Value(v.shape, v.dtype) for v in outputs[:count]]
        outs += [Value((length, *v.shape), v.dtype) for v in outputs[count:]]
        args = (tuple(begin), tuple(given))
        _record(Op("for", args, settings, tuple(outs), self.op.location, (self.program,)))
        return outs

    def step(self, given: Sequence[Value]) -> list[Value]:
        """Record one step by itself, and return what comes out."""
        values = dict(zip(self.program.inputs, given, strict=True))
        for op in self.program.ops:
            _record(op.substitute(lambda v: values.get(v, v)))
        return [values.get(v, v) for v in self.program.outputs]


def with_gradients(outs: Sequence[Tensor], gs: dict[int, Any], carried: Sequence[int]) -> list[int]:
    """Return the carries that have gradients, or that a pass from others goes through anyway.

    For the gradient of those, zeros are as good as none.
    """
    roots = [k for k in gs if outs[k].requires_grad]
    others = [k for k in carried if k not in gs and outs[k].requires_grad]
    through: set[int] = set()
    if roots and others:
        wanted = [outs[k] for k in others]
        grads = autograd_grad(
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


def _is_made_again(op: Op) -> bool:
    """Say whether to make a value in the backward body rather than to stack it."""
    if len(op.outs) != 1 or op.regions or op.function == DRAW:
        return False
    return op.function in VIEWS or not op.inputs


def _plural(hint: str) -> str:
    return f"{hint}s" if hint else ""
