"""The nodes of loops and branches in a trace: their derivatives are loops and branches, too.

A scan's backward pass is a scan in the other direction. Where it is not recorded itself, its body
is the body's own backward pass, traced on, and what that needs of the forward pass is stacked by
the forward loop. Else it is a scan of tensors whose body runs the function again, so that it has
derivatives of every order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from chainrule import control
from chainrule.autograd.derivatives import autograd_grad
from chainrule.autograd.forward import pushed
from chainrule.autograd.modes import enable_grad
from chainrule.autograd.record import current_node, place
from chainrule.autograd.tape import Node, NodeName, Port
from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.backward_body import BackwardBody
from chainrule.compiler.inner_trace import Body
from chainrule.compiler.namespace import SYMBOL_XP
from chainrule.compiler.program import Line, Value, every_line
from chainrule.compiler.shapes import DRAW
from chainrule.compiler.symbol import TRACING, Symbol
from chainrule.creation import zeros
from chainrule.errors import AutogradError, CompileError, InPlaceError

Function = Callable[[list[Tensor]], list[Tensor]]


def connected(node: Node | None, outs: Sequence[Value], tracked: Sequence[bool]) -> list[Tensor]:
    """Return tensors of what comes out of a line; those with a history are outputs of a node."""
    return [
        make(Symbol(value), Port(node, i) if node is not None and flag else None)
        for i, (value, flag) in enumerate(zip(outs, tracked, strict=False))
    ]


class _LoopNode(Node):
    """What the nodes of lines with bodies have in common."""

    __slots__ = ("bodies", "count", "line", "outputs", "sources")

    bodies: list[Body]
    line: Line
    sources: list[Tensor]  # tensors from outside that bodies use
    outputs: int

    @property
    def output_count(self) -> int:
        return self.outputs

    def push(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        self._check_again()
        found = self._tangents(tangents)
        kinds = [value.dtype.kind for value in self.line.outs]
        return tuple([t if kind in "fc" else None for t, kind in zip(found, kinds, strict=True)])

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor]:
        """Return the tangents of all that comes out."""
        raise AssertionError(f"{type(self).__name__} is abstract")

    def _begin(self, bodies: list[Body], line: Line, inputs: Sequence[Tensor]) -> None:
        self.bodies, self.line, self.outputs = bodies, line, len(line.outs)
        found = {id(t): t for body in bodies for t in body.sources}
        self.sources = list(found.values())
        self.edges = tuple([current_node(t) for t in (*inputs, *self.sources)])
        place(self, 4)
        trace = TRACING.get()
        assert trace is not None
        trace.held.append(self)

    def release(self) -> None:
        """Let go of the tensors that the functions use: the trace is over."""
        self.bodies, self.sources = [], []

    @property
    def draws(self) -> bool:
        """Whether a body draws random numbers, which would be others when it runs again."""
        lines = every_line(line for body in self.bodies for line in body.program.lines)
        return any(line.function == DRAW for line in lines)

    def _check_again(self) -> None:
        """Raise if what a function will see, when it runs again, is not what it saw."""
        if self.draws:
            raise CompileError(
                f"{self.name} runs its function again for this pass, and the function "
                "draws random numbers: draw outside, and pass them as an operand or slice by slice"
            )
        for body in self.bodies:
            for capture in body.trace.captures.values():
                if capture.tensor._array.value is not capture.value:
                    raise InPlaceError(
                        f"{self.name} runs its function again for this pass, and a tensor that it "
                        f"uses (of shape {list(capture.value.shape)}) has been written to "
                        "in place since: write to a clone()"
                    )


def _as_tensors(g: dict[int, Any], run: Any) -> dict[int, Tensor]:
    """Return cotangents as users see gradients."""
    shown = {k: run.conjugate(part) for k, part in g.items()}
    return shown if run.xp is not None else {k: make(part, None) for k, part in shown.items()}


def _as_cotangents(grads: Sequence[Any], run: Any) -> list[Any]:
    parts = grads if run.xp is not None else [None if t is None else t._array for t in grads]
    return [None if part is None else run.conjugate(part) for part in parts]


class CondNode(_LoopNode):
    """One recorded `cond`."""

    __slots__ = ("branches",)

    branches: list[Callable[..., Any]]

    @classmethod
    def of(cls, branches: list[Any], bodies: list[Body], line: Line) -> CondNode:
        node = cls()
        node.branches = [lambda: branches[0](), lambda: branches[1](None)]
        node._begin(bodies, line, ())
        return node

    @property
    def name(self) -> str:
        return NodeName("CondBackward")

    def release(self) -> None:
        super().release()
        self.branches = []

    def pull(self, g: Any, run: Any) -> Sequence[Any]:
        self._check_again()
        gs = _as_tensors(g, run)

        def back(branch: Callable[..., Any]) -> list[Tensor]:
            with enable_grad():
                outs = branch()
            roots = [k for k in gs if outs[k].requires_grad]
            return _gradients(outs, roots, gs, self.sources, run)

        predicate = make(Symbol(self.line.args[0]), None)
        first, second = self.branches
        found = control.cond(predicate, lambda: back(first), lambda: back(second))
        return _as_cotangents(found, run)

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor]:
        predicate = make(Symbol(self.line.args[0]), None)
        ways = [partial(pushed, branch, self.sources, tangents) for branch in self.branches]
        found: list[Tensor] = control.cond(predicate, *ways)
        return found


def _nothing(like: Any) -> Tensor:
    return zeros(like.shape, dtype=like.dtype)


def _gradients(outs: Any, roots: list[int], gs: Any, wrt: list[Tensor], run: Any) -> list[Tensor]:
    """Return gradients within a body that runs again; zeros where nothing leads."""
    if not roots or not wrt:
        return list(map(_nothing, wrt))
    found = autograd_grad(
        [outs[k] for k in roots],
        wrt,
        [gs[k] for k in roots],
        create_graph=run.xp is not None,
        allow_unused=True,
        materialize_grads=True,
    )
    return list(found)


class WhileNode(_LoopNode):
    """One recorded `while_loop`: forward mode goes through it, a backward pass can't."""

    __slots__ = ("carry", "condition", "function")

    condition: Callable[[list[Tensor]], Any]
    function: Function
    carry: list[Tensor]  # the first one

    @classmethod
    def of(
        cls,
        condition: Any,
        function: Function,
        bodies: list[Body],
        line: Line,
        carry: Sequence[Tensor],
    ) -> WhileNode:
        node = cls()
        node.condition, node.function = condition, function
        node.carry = [make(Symbol(value), None) for value in line.args[0]]
        node._begin(bodies, line, carry)
        return node

    @property
    def name(self) -> str:
        return NodeName("WhileBackward")

    def release(self) -> None:
        super().release()
        self.condition = self.function = list
        self.carry = []

    def pull(self, g: Any, run: Any) -> Sequence[Any]:
        raise AutogradError(
            "the backward pass can't go through a compiled while_loop: the number of its steps, "
            "and so the memory for what they save, isn't known. Use cr.scan() with a bound, and "
            "cr.where() or cr.cond() for the steps that are too many; or detach() its result"
        )

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor]:
        carried = [i for i, t in enumerate(self.carry) if t.dtype.kind in "fc"]

        def forward(state: Any) -> Any:
            carry, arriving = state
            inputs = [t.detach().requires_grad_(i in carried) for i, t in enumerate(carry)]
            outs: list[Tensor] = []

            def run() -> list[Tensor]:
                outs.extend(self.function(inputs))
                return outs

            wrt = [inputs[i] for i in carried] + self.sources
            found = pushed(run, wrt, [*arriving, *tangents[len(carry) :]])
            return [t.detach() for t in outs], [found[i] for i in carried]

        begin = [_nothing(self.carry[i]) if tangents[i] is None else tangents[i] for i in carried]
        init = (self.carry, begin)
        _, last = control.while_loop(lambda state: self.condition(state[0]), forward, init)
        ends = dict(zip(carried, last, strict=True))
        return [ends.get(i, t) for i, t in enumerate(self.carry)]


class ScanNode(_LoopNode):
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
        gs, (carried, sliced) = _as_tensors(g, run), self._chosen()
        rows = [k for k in gs if k >= self.count]

        def back(state: Any, given: Any) -> Any:
            (carries, sums), (parts, inputs) = state, given
            inputs = self._tracked(inputs)
            with enable_grad():
                outs = self.function(inputs)
            cotangents = dict(zip((*carried, *rows), (*carries, *parts), strict=True))
            roots = [k for k in cotangents if outs[k].requires_grad]
            wrt = [inputs[i] for i in (*carried, *sliced)] + self.sources
            found = _gradients(outs, roots, cotangents, wrt, run)
            a, b = len(carried), len(carried) + len(sliced)
            sums = [total + grad for total, grad in zip(sums, found[b:], strict=True)]
            return (found[:a], sums), found[a:b]

        outs, settings = self.line.outs, self.line.kwargs
        begin = [gs[k] if k in gs else _nothing(outs[k]) for k in carried]
        (carries, sums), slices = control.scan(
            back,
            (begin, list(map(_nothing, self.sources))),
            ([gs[k] for k in rows], self._given()),
            settings["length"],
            not settings["reverse"],
            checkpoint=self.checkpoint,
        )
        return _as_cotangents(self._returned(carries, slices, sums), run)

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
            [_nothing(outs[i]) if tangents[i] is None else tangents[i] for i in carried],
            (self._given(), [tangents[i] for i in rows]),
            settings["length"],
            settings["reverse"],
            checkpoint=self.checkpoint,
        )
        ends = dict(zip(carried, last, strict=True))
        return [*(ends.get(i, _nothing(outs[i])) for i in range(self.count)), *stacks]

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
        gs, (carried, _) = _as_tensors(g, run), self._chosen()
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
        return _as_cotangents(grads, run)


def _zeros(value: Value) -> Symbol:
    return SYMBOL_XP.zeros(value.shape, value.dtype)
