"""The node of a scan in a trace: its derivatives are scans, too.

A scan's backward pass is a scan in the other direction. Where it is not recorded itself, its body
is the body's own backward pass, traced on, and what that needs of the forward pass is stacked by
the forward loop. Else it is a scan of tensors whose body runs the function again, so that it has
derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from chainrule import control_flow
from chainrule.autograd.backward import vjp_of
from chainrule.autograd.forward import outputs_and_jvp_of
from chainrule.autograd.node import NodeName, NodeOutput
from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.control_flow.inner_trace import Body
from chainrule.compiler.control_flow.nodes import (
    Function,
    LoopNode,
    as_cotangents,
    as_tensors,
    nothing,
)
from chainrule.compiler.control_flow.scan_backward import BackwardBody, with_gradients
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.creation import zeros
from chainrule.ops import cat, unsqueeze

# --- pieces ---------------------------------------------------------------------------------------
#
# The slices that a loop takes and makes, where some of its steps stand before it by themselves.


class Pieces:
    """How far the steps have come, and what they made, in the order of the slices.

    Steps that begin with the last slice are `descending`.
    """

    def __init__(self, length: int, descending: bool) -> None:
        self.length, self.descending = length, descending
        self.done = 0
        self._pieces: list[tuple[int, Mapping[int, Tensor]]] = []

    @property
    def left(self) -> int:
        """The number of steps that are still to be done."""
        return self.length - self.done

    @property
    def at(self) -> int:
        """The number of the slice that the next step takes."""
        return self.left - 1 if self.descending else self.done

    def rest_of(self, stack: Tensor) -> Tensor:
        """Return what all further steps take of it."""
        if not self.done:
            return stack
        return stack[: self.left] if self.descending else stack[self.done :]

    def step(self, made: Mapping[int, Tensor]) -> None:
        """Add what one step has made."""
        self._pieces.append((1, {number: unsqueeze(t, 0) for number, t in made.items()}))
        self.done += 1

    def end(self, made: Mapping[int, Tensor]) -> None:
        """Add what all further steps have made."""
        self._pieces.append((self.left, made))
        self.done = self.length

    def joined(self) -> dict[int, Tensor]:
        """Return stacks of all slices; where a step has made none, zeros."""
        pieces = self._pieces[::-1] if self.descending else self._pieces
        like = {number: t for _, made in pieces for number, t in made.items()}
        if len(pieces) == 1:
            return like
        found = {}
        for number, t in like.items():
            parts = [
                made.get(number, zeros((count, *t.shape[1:]), dtype=t.dtype))
                for count, made in pieces
            ]
            found[number] = cat(parts)
        return found


# --- scan -----------------------------------------------------------------------------------------


class ScanNode(LoopNode):
    """One recorded `scan`: edges to the carries, to what is sliced, to what the body uses."""

    __slots__ = ("checkpoint", "count", "flags", "function")

    function: Function
    count: int  # of carries
    flags: list[bool]  # which carries and slices have gradients
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
        node._begin([body], op, inputs)
        return node

    @property
    def name(self) -> str:
        return NodeName("ScanBackward")

    def release(self) -> None:
        super().release()
        self.function = list

    def vjp(self, g: Any, run: Any) -> Sequence[Any]:
        if run.xp is not None or (self.checkpoint and not self.draws):
            return self._again(g, run)
        return self._onwards(g, run)

    def _chosen(self) -> tuple[list[int], list[int]]:
        """Return which carries, and which slices, get gradients: their numbers as inputs."""
        chosen = [i for i, flag in enumerate(self.flags) if flag]
        return [i for i in chosen if i < self.count], [i for i in chosen if i >= self.count]

    def _returned(self, carries: Any, slices: Any, sums: Any) -> list[Any]:
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

    # --- a scan of tensors: the function runs again ---

    def _again(self, g: Any, run: Any) -> list[Any]:
        self._check_again()
        gs, outs = as_tensors(g, run), self.op.outs
        rows = [k for k in gs if k >= self.count]
        columns = [*(gs[k] for k in rows), *self._given()]
        back = BackwardStep(self, rows, run)
        carries: dict[int, Tensor] = {k: gs[k] for k in self._chosen()[0] if k in gs}
        sums: dict[int, Tensor] = {}
        pieces = Pieces(self.op.kwargs["length"], self._descending)
        while pieces.left:
            at = pieces.at
            found = back.run(carries, [column[at : at + 1] for column in columns])
            if found.steady:
                (ends, totals), slices = control_flow.scan(
                    back.repeated(found),
                    (
                        [carries[k] if k in carries else nothing(outs[k]) for k in found.seeded],
                        [sums[i] if i in sums else nothing(self.sources[i]) for i in found.sums],
                    ),
                    [pieces.rest_of(column) for column in columns],
                    pieces.left,
                    self._descending,
                    checkpoint=self.checkpoint,
                )
                last = dict(zip(found.seeded, ends, strict=True))
                carries = {i: last[i] for i in found.carries}
                sums |= zip(found.sums, totals, strict=True)
                pieces.end(dict(zip(found.slices, slices, strict=True)))
            else:
                carries = found.carries
                sums |= {i: sums[i] + t if i in sums else t for i, t in found.sums.items()}
                pieces.step(found.slices)
        return as_cotangents(self._returned(carries, pieces.joined(), sums), run)

    def tracked(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Return a step's inputs as they were in the forward pass."""
        return [
            t.detach().requires_grad_() if flag and not t.requires_grad else t
            for t, flag in zip(inputs, self.flags, strict=True)
        ]

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor | None]:
        carried, sliced = self._chosen()
        rows = [i for i in sliced if tangents[i] is not None]
        columns = [*(tangents[i] for i in rows), *self._given()]
        carries = {i: tangents[i] for i in carried if tangents[i] is not None}
        forward = partial(self._forward, rows, tangents[len(self.flags) :])
        pieces = Pieces(self.op.kwargs["length"], not self._descending)
        while pieces.left:
            found = forward(carries, [column[pieces.at] for column in columns])
            following = {i: found[i] for i in carried if i in found}
            made = [k for k in found if k >= self.count]
            if following.keys() == carries.keys():
                (last, stacks) = control_flow.scan(
                    partial(_repeated, forward, list(carries), made),
                    list(carries.values()),
                    [pieces.rest_of(column) for column in columns],
                    pieces.left,
                    not self._descending,
                    checkpoint=self.checkpoint,
                )
                carries = dict(zip(carries, last, strict=True))
                pieces.end(dict(zip(made, stacks, strict=True)))
            else:
                carries = following
                pieces.step({k: found[k] for k in made})
        arrived = {**carries, **pieces.joined()}
        return [arrived.get(k) for k in range(self.outputs)]

    def _forward(
        self,
        rows: list[int],
        others: Sequence[Any],
        carries: dict[int, Tensor],
        given: Sequence[Tensor],
    ) -> dict[int, Tensor]:
        """Return the tangents that a step makes of those of carries, rows and other tensors."""
        inputs = self.tracked(given[len(rows) :])
        arriving = {**carries, **dict(zip(rows, given, strict=False))}
        _, found = outputs_and_jvp_of(
            lambda: self.function(inputs),
            [inputs[i] for i in arriving] + self.sources,
            [*arriving.values(), *others],
        )
        return {k: t for k, t in enumerate(found) if t is not None}

    def _given(self) -> list[Tensor]:
        """Return what each step was given: the carries, which are outputs, and the slices."""
        first = self.outputs - self.count
        tracked = self.flags[: self.count]
        carries = [
            make(Symbol(self.op.outs[first + j]), NodeOutput(self, first + j) if flag else None)
            for j, flag in enumerate(tracked)
        ]
        edges = self.edges[self.count :]
        pairs = zip(self.op.args[1], edges, strict=False)
        return carries + [make(Symbol(value), edge) for value, edge in pairs]

    # --- a loop of programs: the body's own backward pass ---

    def _onwards(self, g: Any, run: Any) -> list[Any]:
        gs, (carried, sliced) = as_tensors(g, run), self._chosen()
        rows, kinds = [k for k in gs if k >= self.count], self.regions[0].program.outputs
        carries = {k: gs[k] for k in carried if k in gs}
        sums: dict[int, Tensor] = {}
        pieces = Pieces(self.op.kwargs["length"], self._descending)
        while pieces.left:
            back = BackwardBody(self.regions[0], self.op, self.count, self.sources)
            back.trace(carries, carried, rows, sliced)
            begin = [carries[k] if k in carries else nothing(kinds[k]) for k in back.seeded]
            totals = zip(back.summed, back.totals, strict=True)
            begin += [sums[i] if i in sums else nothing(total) for i, total in totals]
            columns = [*(gs[k] for k in rows), *(make(Symbol(v), None) for v in back.stacks)]
            if back.steady:
                given = values_of([pieces.rest_of(column) for column in columns])
                settings = {"length": pieces.left, "reverse": self._descending}
                found, add = back.loop(values_of(begin), given, **settings), pieces.end
            else:
                given = values_of([column[pieces.at] for column in columns])
                found, add = back.step([*values_of(begin), *given]), pieces.step
            parts = [make(Symbol(value), None) for value in found]
            a = len(back.leaving)
            b = a + len(back.summed)
            ends = dict(zip(back.leaving, parts[:a], strict=True))
            carries = {i: ends[i] for i in back.reached}
            sums |= zip(back.summed, parts[a:b], strict=True)
            add(dict(zip(back.sliced, parts[b:], strict=True)))
        return as_cotangents(self._returned(carries, pieces.joined(), sums), run)


def _repeated(forward: Any, known: list[int], made: list[int], state: Any, given: Any) -> Any:
    """Run a step of a scan whose steps all have the same tangents."""
    found = forward(dict(zip(known, state, strict=True)), given)
    return [found[i] for i in known], [found[k] for k in made]


def values_of(tensors: Sequence[Tensor]) -> list[Value]:
    return [t._array.value for t in tensors]


class Found(NamedTuple):
    """What a step of a backward pass gives."""

    carries: dict[int, Tensor]
    sums: dict[int, Tensor]
    slices: dict[int, Tensor]
    seeded: list[int]  # which carries come with a gradient, be it of zeros
    steady: bool  # whether the step that follows is the same


class BackwardStep:
    """A step of the backward pass, as a function of tensors: the scan's own runs again."""

    def __init__(self, node: ScanNode, rows: list[int], run: Any) -> None:
        self.node, self.rows, self.pass_ = node, rows, run
        self.carried, self.sliced = node._chosen()

    def run(self, carries: dict[int, Tensor], columns: Sequence[Tensor]) -> Found:
        """Run the one step that these gradients of carries, and slices, come to.

        It is a scan, so that a pass from there goes no further than to what the step is given.
        """
        kept: list[Found] = []

        def step(_: Any, given: Any) -> Any:
            kept[:] = [self._run(carries, given)]
            return None, [list(part.values()) for part in kept[0][:3]]

        _, made = control_flow.scan(step, None, list(columns), 1)
        found = kept[0]
        ends, sums, slices = [  # under other names than what `step` uses: it will run again
            {i: t[0] for i, t in zip(part, stacks, strict=True)}
            for part, stacks in zip(found[:3], made, strict=True)
        ]
        return Found(ends, sums, slices, found.seeded, found.steady)

    def repeated(self, like: Found) -> Callable[..., Any]:
        """Return the function of a scan whose steps are all like this one."""

        def step(state: Any, given: Any) -> Any:
            carries, sums = dict(zip(like.seeded, state[0], strict=True)), state[1]
            found = self._run(carries, given)
            ends = [
                found.carries[i] if i in found.carries else nothing(carries[i]) for i in like.seeded
            ]
            sums = [total + found.sums[i] for i, total in zip(like.sums, sums, strict=True)]
            return (ends, sums), [found.slices[i] for i in like.slices]

        return step

    def _run(self, carries: dict[int, Tensor], given: Sequence[Tensor]) -> Found:
        rows, sources = self.rows, self.node.sources
        inputs = self.node.tracked(given[len(rows) :])
        arriving = dict(zip(rows, given, strict=False))
        wrt = [inputs[i] for i in (*self.carried, *self.sliced)] + sources
        outs, found = vjp_of(
            lambda: self.node.function(inputs),
            wrt,
            {**carries, **arriving},
            self.pass_.xp is not None,
        )
        seeded = with_gradients(outs, {**carries, **arriving}, self.carried)
        numbers = [*self.carried, *self.sliced, *range(len(sources))]
        a, b = len(self.carried), len(self.carried) + len(self.sliced)
        named = [(i, t) for i, t in zip(numbers, found, strict=True)]
        parts = [
            {i: t for i, t in part if t is not None} for part in (named[:a], named[a:b], named[b:])
        ]
        following = {**parts[0], **arriving}
        steady = with_gradients(outs, following, self.carried) == seeded
        return Found(parts[0], parts[2], parts[1], seeded, steady)
