"""The node of a scan in a trace: its derivatives are scans, too.

A scan's backward pass is a scan in the other direction. Where it is not recorded itself, its body
is the body's own backward pass, traced on, and what that needs of the forward pass is stacked by
the forward loop. Else it is a scan of tensors whose body runs the function again, so that it has
derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule import control
from chainrule.autograd.forward import pushed
from chainrule.autograd.modes import enable_grad
from chainrule.autograd.tape import NodeName, Port
from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.backward_body import BackwardBody
from chainrule.compiler.inner_trace import Body
from chainrule.compiler.loop_nodes import (
    Function,
    LoopNode,
    as_cotangents,
    as_tensors,
    gradients,
    nothing,
)
from chainrule.compiler.namespace import SYMBOL_XP
from chainrule.compiler.program import Line, Value
from chainrule.compiler.symbol import TRACING, Symbol


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
        line: Line,
        inputs: list[Tensor],
        count: int,
        checkpoint: bool,
    ) -> ScanNode:
        node = cls()
        node.function, node.count, node.checkpoint = function, count, checkpoint
        node.flags = body.trace.run(lambda: [t.requires_grad for t in body.inputs])
        node._begin([body], line, inputs)
        return node

    @property
    def name(self) -> str:
        return NodeName("ScanBackward")

    def release(self) -> None:
        super().release()
        self.function = list

    def pull(self, g: Any, run: Any) -> Sequence[Any]:
        if run.xp is not None or (self.checkpoint and not self.draws):
            return self._again(g, run)
        return self._onwards(g, run)

    def _chosen(self) -> tuple[list[int], list[int]]:
        """Return which carries, and which slices, get gradients: their numbers as inputs."""
        chosen = [i for i, flag in enumerate(self.flags) if flag]
        return [i for i in chosen if i < self.count], [i for i in chosen if i >= self.count]

    def _returned(self, carries: Any, slices: Any, sums: Any) -> list[Any]:
        """Return gradients in the order of the edges."""
        carried, sliced = self._chosen()
        found = dict(zip(carried, carries, strict=True))
        found |= dict(zip(sliced, slices, strict=True))
        return [*(found.get(i) for i in range(len(self.flags))), *sums]

    # --- a scan of tensors: the function runs again ---

    def _again(self, g: Any, run: Any) -> list[Any]:
        self._check_again()
        gs, (carried, sliced) = as_tensors(g, run), self._chosen()
        rows = [k for k in gs if k >= self.count]

        def back(state: Any, given: Any) -> Any:
            (carries, sums), (parts, inputs) = state, given
            inputs = self._tracked(inputs)
            with enable_grad():
                outs = self.function(inputs)
            cotangents = dict(zip((*carried, *rows), (*carries, *parts), strict=True))
            roots = [k for k in cotangents if outs[k].requires_grad]
            wrt = [inputs[i] for i in (*carried, *sliced)] + self.sources
            found = gradients(outs, roots, cotangents, wrt, run)
            a, b = len(carried), len(carried) + len(sliced)
            sums = [total + grad for total, grad in zip(sums, found[b:], strict=True)]
            return (found[:a], sums), found[a:b]

        outs, settings = self.line.outs, self.line.kwargs
        begin = [gs[k] if k in gs else nothing(outs[k]) for k in carried]
        (carries, sums), slices = control.scan(
            back,
            (begin, list(map(nothing, self.sources))),
            ([gs[k] for k in rows], self._given()),
            settings["length"],
            not settings["reverse"],
            checkpoint=self.checkpoint,
        )
        return as_cotangents(self._returned(carries, slices, sums), run)

    def _tracked(self, inputs: list[Tensor]) -> list[Tensor]:
        """Return a step's inputs as they were in the forward pass."""
        return [
            t.detach().requires_grad_() if flag and not t.requires_grad else t
            for t, flag in zip(inputs, self.flags, strict=True)
        ]

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor]:
        carried, sliced = self._chosen()
        rows = [i for i in sliced if tangents[i] is not None]

        def forward(carries: Any, given: Any) -> Any:
            inputs, parts = self._tracked(given[0]), given[1]
            arriving = dict(zip((*carried, *rows), (*carries, *parts), strict=True))
            found = pushed(
                lambda: self.function(inputs),
                [inputs[i] for i in (*carried, *rows)] + self.sources,
                [*arriving.values(), *tangents[len(self.flags) :]],
            )
            return [found[i] for i in carried], found[self.count :]

        outs, settings = self.line.outs, self.line.kwargs
        last, stacks = control.scan(
            forward,
            [nothing(outs[i]) if tangents[i] is None else tangents[i] for i in carried],
            (self._given(), [tangents[i] for i in rows]),
            settings["length"],
            settings["reverse"],
            checkpoint=self.checkpoint,
        )
        ends = dict(zip(carried, last, strict=True))
        return [*(ends.get(i, nothing(outs[i])) for i in range(self.count)), *stacks]

    def _given(self) -> list[Tensor]:
        """Return what each step was given: the carries, which are outputs, and the slices."""
        first = self.outputs - self.count
        tracked = self.flags[: self.count]
        carries = [
            make(Symbol(self.line.outs[first + j]), Port(self, first + j) if flag else None)
            for j, flag in enumerate(tracked)
        ]
        edges = self.edges[self.count :]
        pairs = zip(self.line.args[1], edges, strict=False)
        return carries + [make(Symbol(value), edge) for value, edge in pairs]

    # --- a loop of programs: the body's own backward pass ---

    def _onwards(self, g: Any, run: Any) -> list[Any]:
        gs, (carried, _) = as_tensors(g, run), self._chosen()
        rows = [k for k in gs if k >= self.count]
        body = self.bodies[0]
        back = BackwardBody(body, self.line, self.count, self.sources)
        back.trace(carried, rows, self._chosen()[1])
        kinds = body.program.outputs
        begin = [gs[k]._array if k in gs else _zeros(kinds[k]) for k in carried]
        begin += [_zeros(total) for total in back.totals]
        given = [gs[k]._array.value for k in rows] + back.stacks
        settings = dict(self.line.kwargs, reverse=not self.line.kwargs["reverse"])
        outs = back.outs(settings["length"])
        trace = TRACING.get()
        assert trace is not None
        args = (tuple([symbol.value for symbol in begin]), tuple(given))
        trace.lines.append(
            Line("for", args, settings, tuple(outs), self.line.location, (back.program,))
        )
        parts = [make(Symbol(value), None) for value in outs]
        a, b = len(carried), len(begin)
        sums = dict(zip(back.summed, parts[a:b], strict=True))
        slices = dict(zip(back.sliced, parts[b:], strict=True))
        grads = self._returned(
            parts[:a],
            [slices.get(i) for i in self._chosen()[1]],
            [sums.get(i) for i in range(len(self.sources))],
        )
        return as_cotangents(grads, run)


def _zeros(value: Value) -> Symbol:
    return SYMBOL_XP.zeros(value.shape, value.dtype)
