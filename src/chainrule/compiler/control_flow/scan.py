"""Graph node of a traced scan, whose derivatives are scans, too.

The backward pass of a scan is a scan in the other direction. If the backward pass is not itself
recorded, its body is the traced backward pass of the forward body, and the forward loop stacks the
residuals. Otherwise it is a scan of tensors whose body runs the function again, so that it has
derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from chainrule import control_flow
from chainrule.autograd.backward import vjp_of
from chainrule.autograd.forward import outputs_and_jvp_of
from chainrule.autograd.intercept import intercepted_by
from chainrule.autograd.node import NodeName, NodeOutput
from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.control_flow.inner_trace import Body
from chainrule.compiler.control_flow.nodes import (
    CotangentBatch,
    Function,
    LoopNode,
    LoopTemplate,
    as_cotangents,
    as_tensors,
    zeros_like,
)
from chainrule.compiler.control_flow.scan_backward import BackwardBody, with_gradients
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.tracing.symbol import TRACING, Symbol
from chainrule.creation import zeros
from chainrule.ops import cat, unsqueeze

# --- peeled steps ---------------------------------------------------------------------------------


class PeeledLoop:
    """Progress of a loop of which some first steps are peeled off, and the slices it produces.

    `descending` loops begin with the last slice.
    """

    def __init__(self, length: int, descending: bool) -> None:
        self.length, self.descending = length, descending
        self.done = 0
        self._stacks: list[tuple[int, Mapping[int, Tensor]]] = []

    @property
    def left(self) -> int:
        """Number of steps still to do."""
        return self.length - self.done

    @property
    def index(self) -> int:
        """Index of the slice that the next step takes."""
        return self.left - 1 if self.descending else self.done

    def rest_of(self, stack: Tensor) -> Tensor:
        """Return the slices of all further steps."""
        if not self.done:
            return stack
        return stack[: self.left] if self.descending else stack[self.done :]

    def step(self, made: Mapping[int, Tensor]) -> None:
        """Add the slices that a single step produced, by output."""
        self._stacks.append((1, {number: unsqueeze(t, 0) for number, t in made.items()}))
        self.done += 1

    def end(self, made: Mapping[int, Tensor]) -> None:
        """Add the stacked slices that all further steps produced, by output."""
        self._stacks.append((self.left, made))
        self.done = self.length

    def joined(self) -> dict[int, Tensor]:
        """Return the stacks over all steps, with zeros where a step produced no slice."""
        stacks = self._stacks[::-1] if self.descending else self._stacks
        like = {number: t for _, made in stacks for number, t in made.items()}
        if len(stacks) == 1:
            return like
        found = {}
        for number, t in like.items():
            parts = [
                made.get(number, zeros((count, *t.shape[1:]), dtype=t.dtype))
                for count, made in stacks
            ]
            found[number] = cat(parts)
        return found


# --- scan nodes -----------------------------------------------------------------------------------


class ScanNode(LoopNode):
    """The node of one `scan`: edges to carries, xs, and tensors of the enclosing trace."""

    __slots__ = ("checkpoint", "count", "flags", "function")

    function: Function
    count: int  # of carries
    flags: list[bool]  # whether each carry and each of the xs gets a gradient
    checkpoint: bool

    @classmethod
    def of(
        cls,
        function: Function,
        body: Body,
        op: Op,
        inputs: list[Tensor],
        count: int,
        checkpoint: bool,
    ) -> ScanNode:
        node = cls()
        node.function, node.count, node.checkpoint = function, count, checkpoint
        node.flags = body.trace.run(lambda: [t.requires_grad for t in body.inputs])
        node._init([body], op, inputs)
        return node

    @property
    def name(self) -> str:
        return NodeName("ScanBackward")

    def release(self) -> None:
        super().release()
        self.function = list

    def template(self) -> LoopTemplate:
        return LoopTemplate(self, _run_steps)

    def vjp(self, g: Any, run: Any) -> Sequence[Any]:
        batch = CotangentBatch(g.values() if run.xp is None else ())
        if batch.levels:
            return intercepted_by(TRACING.get(), self._batched_vjp, g, run, batch)
        if run.xp is not None or (self.checkpoint and not self.draws):
            return self._vjp_of_tensors(g, run, batch)
        return self._vjp_of_program(g, run)

    def _batched_vjp(self, g: Any, run: Any, batch: CotangentBatch) -> list[Any]:
        parts = {k: batch.data(part, self._axis(k)) for k, part in g.items()}
        found = self._vjp_of_tensors(parts, run, batch)
        axes = [*(self._axis(i) for i in range(len(self.flags))), *[0] * len(self.sources)]
        pairs = zip(found, axes, strict=True)
        return [None if t is None else batch.batched(t, axis) for t, axis in pairs]

    def _axis(self, position: int) -> int:
        """Return the axis of one step's array in that of a carry (0) or of a stack (1)."""
        return int(position >= self.count)

    def _differentiable(self) -> tuple[list[int], list[int]]:
        """Return the carries and the xs that get gradients, by their positions as inputs."""
        found = [i for i, flag in enumerate(self.flags) if flag]
        return [i for i in found if i < self.count], [i for i in found if i >= self.count]

    def _in_edge_order(self, carries: Any, slices: Any, sums: Any) -> list[Any]:
        """Return gradients in the order of the edges."""
        found = {**carries, **slices}
        sums = [sums.get(i) for i in range(len(self.sources))]
        return [*(found.get(i) for i in range(len(self.flags))), *sums]

    @property
    def length(self) -> int:
        """The number of steps."""
        count: int = self.op.kwargs["length"]
        return count

    @property
    def _descending(self) -> bool:
        """Whether a backward pass begins with the last slice."""
        return not self.op.kwargs["reverse"]

    # --- derivatives as scans of tensors, which run the function again ---

    def _vjp_of_tensors(self, g: Any, run: Any, batch: CotangentBatch) -> list[Any]:
        self._check_rerun()
        gs, outs = as_tensors(g, run), self.op.outs
        rows = [k for k in gs if k >= self.count]
        columns = [*(gs[k] for k in rows), *self._step_inputs()]
        back = BackwardStep(self, rows, run, batch)
        carries: dict[int, Tensor] = {k: gs[k] for k in self._differentiable()[0] if k in gs}
        sums: dict[int, Tensor] = {}
        loop = PeeledLoop(self.op.kwargs["length"], self._descending)
        while loop.left:
            i = loop.index
            found = back.run(carries, [column[i : i + 1] for column in columns])
            if found.steady:
                (ends, totals), slices = control_flow.scan(
                    back.repeated(found),
                    (
                        [carries.get(k, batch.zeros_like(outs[k])) for k in found.seeded],
                        [sums.get(j, batch.zeros_like(self.sources[j])) for j in found.sums],
                    ),
                    [loop.rest_of(column) for column in columns],
                    loop.left,
                    self._descending,
                    checkpoint=self.checkpoint,
                )
                last = dict(zip(found.seeded, ends, strict=True))
                carries = {k: last[k] for k in found.carries}
                sums |= zip(found.sums, totals, strict=True)
                loop.end(dict(zip(found.slices, slices, strict=True)))
            else:
                carries = found.carries
                sums |= {j: sums[j] + t if j in sums else t for j, t in found.sums.items()}
                loop.step(found.slices)
        return as_cotangents(self._in_edge_order(carries, loop.joined(), sums), run)

    def tracked(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return the inputs of a step with the same `requires_grad` as in the forward pass."""
        return [
            t.detach().requires_grad_() if flag and not t.requires_grad else t
            for t, flag in zip(inputs, self.flags, strict=True)
        ]

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor | None]:
        carried, sliced = self._differentiable()
        rows = [i for i in sliced if tangents[i] is not None]
        columns = [*(tangents[i] for i in rows), *self._step_inputs()]
        carries = {i: tangents[i] for i in carried if tangents[i] is not None}
        forward = partial(self._forward, rows, tangents[len(self.flags) :])
        loop = PeeledLoop(self.op.kwargs["length"], not self._descending)
        while loop.left:
            found = forward(carries, [column[loop.index] for column in columns])
            next_carries = {i: found[i] for i in carried if i in found}
            made = [k for k in found if k >= self.count]
            if next_carries.keys() == carries.keys():
                (last, stacks) = control_flow.scan(
                    partial(_steady_step, forward, list(carries), made),
                    list(carries.values()),
                    [loop.rest_of(column) for column in columns],
                    loop.left,
                    not self._descending,
                    checkpoint=self.checkpoint,
                )
                carries = dict(zip(carries, last, strict=True))
                loop.end(dict(zip(made, stacks, strict=True)))
            else:
                carries = next_carries
                loop.step({k: found[k] for k in made})
        results = {**carries, **loop.joined()}
        return [results.get(k) for k in range(self.outputs)]

    def _forward(
        self,
        rows: list[int],
        others: Sequence[Any],
        carries: dict[int, Tensor],
        given: Sequence[Tensor],
    ) -> dict[int, Tensor]:
        """Return the output tangents of a step, from those of carries, xs and other tensors."""
        inputs = self.tracked(given[len(rows) :])
        arriving = {**carries, **dict(zip(rows, given, strict=False))}
        _, found = outputs_and_jvp_of(
            lambda: self.function(inputs),
            [inputs[i] for i in arriving] + self.sources,
            [*arriving.values(), *others],
        )
        return {k: t for k, t in enumerate(found) if t is not None}

    def _step_inputs(self) -> list[Tensor]:
        """Return the stacked inputs of all steps: carries, which are outputs, and xs."""
        first = self.outputs - self.count
        tracked = self.flags[: self.count]
        carries = [
            make(Symbol(self.op.outs[first + j]), NodeOutput(self, first + j) if flag else None)
            for j, flag in enumerate(tracked)
        ]
        edges = self.edges[self.count :]
        pairs = zip(self.op.args[1], edges, strict=False)
        return carries + [make(Symbol(value), edge) for value, edge in pairs]

    # --- backward pass as a loop over the traced backward body ---

    def _vjp_of_program(self, g: Any, run: Any) -> list[Any]:
        gs, (carried, sliced) = as_tensors(g, run), self._differentiable()
        rows, types = [k for k in gs if k >= self.count], self.regions[0].program.outputs
        carries = {k: gs[k] for k in carried if k in gs}
        sums: dict[int, Tensor] = {}
        loop = PeeledLoop(self.op.kwargs["length"], self._descending)
        while loop.left:
            back = BackwardBody(self.regions[0], self.op, self.count, self.sources)
            back.trace(carries, carried, rows, sliced)
            begin = [carries[k] if k in carries else zeros_like(types[k]) for k in back.seeded]
            totals = zip(back.summed, back.totals, strict=True)
            begin += [sums[i] if i in sums else zeros_like(total) for i, total in totals]
            columns = [*(gs[k] for k in rows), *(make(Symbol(v), None) for v in back.stacks)]
            if back.steady:
                given = values_of([loop.rest_of(column) for column in columns])
                settings = {"length": loop.left, "reverse": self._descending}
                found, add = back.loop(values_of(begin), given, **settings), loop.end
            else:
                given = values_of([column[loop.index] for column in columns])
                found, add = back.step([*values_of(begin), *given]), loop.step
            parts = [make(Symbol(value), None) for value in found]
            a = len(back.leaving)
            b = a + len(back.summed)
            ends = dict(zip(back.leaving, parts[:a], strict=True))
            carries = {i: ends[i] for i in back.reached}
            sums |= zip(back.summed, parts[a:b], strict=True)
            add(dict(zip(back.sliced, parts[b:], strict=True)))
        return as_cotangents(self._in_edge_order(carries, loop.joined(), sums), run)


def _run_steps(op: Op, arrays: Any, inputs: Sequence[Tensor], body: Any) -> Sequence[Tensor]:
    """Run the steps of a loop one by one; return its carries and stacks."""
    count, settings = len(op.args[0]), op.kwargs

    def step(carry: Sequence[Tensor], xs: Sequence[Tensor]) -> Any:
        outs = body([*carry, *xs])
        return outs[:count], outs[count:]

    carry, stacks = control_flow.scan(
        step, list(inputs[:count]), list(inputs[count:]), settings["length"], settings["reverse"]
    )
    return [*carry, *stacks]


def _steady_step(forward: Any, known: list[int], made: list[int], state: Any, given: Any) -> Any:
    """Run a step of a scan in which the same carries have tangents in all steps."""
    found = forward(dict(zip(known, state, strict=True)), given)
    return [found[i] for i in known], [found[k] for k in made]


def values_of(tensors: Sequence[Tensor]) -> list[Value]:
    return [t._array.value for t in tensors]


class StepGradients(NamedTuple):
    """The gradients of the inputs of one step of a scan."""

    carries: dict[int, Tensor]
    sums: dict[int, Tensor]
    slices: dict[int, Tensor]
    seeded: list[int]  # carries whose gradient is an input, possibly of zeros
    steady: bool  # whether the next step has the same inputs


class BackwardStep:
    """A step of the backward pass as a function of tensors, which runs the scanned one again."""

    def __init__(self, node: ScanNode, rows: list[int], run: Any, batch: CotangentBatch) -> None:
        self.node, self.rows, self.pass_, self.batch = node, rows, run, batch
        self.carried, self.sliced = node._differentiable()

    def run(self, carries: dict[int, Tensor], columns: Sequence[Tensor]) -> StepGradients:
        """Run a single step with these gradients of carries, and slices.

        It is a scan of one step, so that a backward pass from it ends at the inputs of the step.
        """
        kept: list[StepGradients] = []

        def step(_: Any, given: Any) -> Any:
            kept[:] = [self._run(carries, given)]
            return None, [list(part.values()) for part in kept[0][:3]]

        _, made = control_flow.scan(step, None, list(columns), 1)
        found = kept[0]
        ends, sums, slices = [  # names that `step` doesn't use, since it runs again
            {i: t[0] for i, t in zip(part, stacks, strict=True)}
            for part, stacks in zip(found[:3], made, strict=True)
        ]
        return StepGradients(ends, sums, slices, found.seeded, found.steady)

    def repeated(self, like: StepGradients) -> Callable[..., Any]:
        """Return the function of a scan whose steps are all like this one."""

        def step(state: Any, given: Any) -> Any:
            carries, sums = dict(zip(like.seeded, state[0], strict=True)), state[1]
            found = self._run(carries, given)
            ends = [
                found.carries[i] if i in found.carries else zeros_like(carries[i])
                for i in like.seeded
            ]
            sums = [total + found.sums[i] for i, total in zip(like.sums, sums, strict=True)]
            return (ends, sums), [found.slices[i] for i in like.slices]

        return step

    def _run(self, carries: dict[int, Tensor], given: Sequence[Tensor]) -> StepGradients:
        rows, sources = self.rows, self.node.sources
        inputs = self.node.tracked(given[len(rows) :])
        arriving = dict(zip(rows, given, strict=False))
        wrt = [inputs[i] for i in (*self.carried, *self.sliced)] + sources
        arriving = {k: self.batch.inside(t) for k, t in arriving.items()}
        gs = arriving | {k: self.batch.inside(t) for k, t in carries.items()}
        recorded = self.pass_.xp is not None
        outs, found = vjp_of(lambda: self.node.function(inputs), wrt, gs, recorded)
        seeded = with_gradients(outs, gs, self.carried)
        numbers = [*self.carried, *self.sliced, *range(len(sources))]
        a, b = len(self.carried), len(self.carried) + len(self.sliced)
        named = [(i, t) for i, t in zip(numbers, found, strict=True)]
        parts = [
            {i: t for i, t in part if t is not None} for part in (named[:a], named[a:b], named[b:])
        ]
        steady = with_gradients(outs, {**parts[0], **arriving}, self.carried) == seeded
        ends, slices, sums = [self.batch.all_outside(part) for part in parts]
        return StepGradients(ends, sums, slices, seeded, steady)
