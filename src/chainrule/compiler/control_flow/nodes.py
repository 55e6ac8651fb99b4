"""Graph nodes of traced loops and branches, whose derivatives are loops and branches, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from chainrule import control_flow
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.forward import outputs_and_jvp_of, tracked
from chainrule.autograd.modes import enable_grad, is_grad_enabled, run_in
from chainrule.autograd.node import Node, NodeName, NodeOutput
from chainrule.autograd.record import stamp_node
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.compiler.control_flow.inner_trace import Body
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Op, Value, every_op
from chainrule.compiler.tracing.symbol import TRACING, Symbol
from chainrule.creation import zeros
from chainrule.errors import AutogradError, CompileError, InPlaceError

Function = Callable[[list[Tensor]], list[Tensor]]


def connected(node: Node | None, outs: Sequence[Value], tracked: Sequence[bool]) -> list[Tensor]:
    """Return tensors of the results of an op; tracked ones are outputs of its node."""
    return [
        make(Symbol(value), NodeOutput(node, i) if node is not None and flag else None)
        for i, (value, flag) in enumerate(zip(outs, tracked, strict=False))
    ]


class LoopNode(Node):
    """Base class of the nodes of ops with regions."""

    __slots__ = ("regions", "count", "op", "outputs", "sources")

    regions: list[Body]
    op: Op
    sources: list[Tensor]  # tensors of the enclosing trace that regions use
    outputs: int

    @property
    def output_count(self) -> int:
        return self.outputs

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        self._check_rerun()
        found = self._tangents(tangents)
        kinds = [value.dtype.kind for value in self.op.outs]
        return tuple([t if kind in "fc" else None for t, kind in zip(found, kinds, strict=True)])

    def _tangents(self, tangents: Sequence[Any]) -> Sequence[Tensor | None]:
        """Return the tangents of the results, None where there is none."""
        raise AssertionError(f"{type(self).__name__} is abstract")

    def _init(self, regions: list[Body], op: Op, inputs: Sequence[Tensor]) -> None:
        self.regions, self.op, self.outputs = regions, op, len(op.outs)
        found = {id(t): t for region in regions for t in region.sources}
        self.sources = list(found.values())
        self.edges = tuple([current_node(t) for t in (*inputs, *self.sources)])
        stamp_node(self, 4)
        trace = TRACING.get()
        assert trace is not None
        trace.loop_nodes.append(self)

    def release(self) -> None:
        """Drop the references to tensors of the trace, which is over."""
        self.regions, self.sources = [], []

    @property
    def draws(self) -> bool:
        """Whether a region draws random numbers, which differ when it runs again."""
        ops = every_op(op for region in self.regions for op in region.program.ops)
        return any(op.function == DRAW for op in ops)

    def _check_rerun(self) -> None:
        """Raise if running a function again would not repeat its first run."""
        if self.draws:
            raise CompileError(
                f"{self.name} runs its function again for this pass, and the function "
                "draws random numbers: draw outside, and pass them as an operand or slice by slice"
            )
        for region in self.regions:
            for capture in region.trace.captures.values():
                if capture.tensor._array.value is not capture.value:
                    raise InPlaceError(
                        f"{self.name} runs its function again for this pass, and a tensor that it "
                        f"uses (of shape {list(capture.value.shape)}) has been written to "
                        "in place since: write to a clone()"
                    )


def as_tensors(g: dict[int, Any], run: Any) -> dict[int, Tensor]:
    """Return cotangents as gradient tensors."""
    grads = {k: run.conjugate(part) for k, part in g.items()}
    return grads if run.xp is not None else {k: make(part, None) for k, part in grads.items()}


def as_cotangents(grads: Sequence[Any], run: Any) -> list[Any]:
    """Return gradient tensors as cotangents; the inverse of `as_tensors`."""
    parts = grads if run.xp is not None else [None if t is None else t._array for t in grads]
    return [None if part is None else run.conjugate(part) for part in parts]


class CondNode(LoopNode):
    """The node of one `cond`."""

    __slots__ = ("branches",)

    branches: list[Callable[..., Any]]

    @classmethod
    def of(cls, branches: list[Any], regions: list[Body], op: Op) -> CondNode:
        node = cls()
        node.branches = [lambda: branches[0](), lambda: branches[1](None)]
        node._init(regions, op, ())
        return node

    @property
    def name(self) -> str:
        return NodeName("CondBackward")

    def release(self) -> None:
        super().release()
        self.branches = []

    def vjp(self, g: Any, run: Any) -> Sequence[Any]:
        self._check_rerun()
        gs = as_tensors(g, run)

        def back(branch: Callable[..., Any]) -> tuple[Sequence[Any], list[Any]]:
            outs = run_in(enable_grad(), branch)
            roots = [k for k in gs if outs[k].requires_grad]
            if not roots or not self.sources:
                return self.sources, [None] * len(self.sources)
            grads = autograd_grad(
                *([outs[k] for k in roots], self.sources, [gs[k] for k in roots]),
                create_graph=run.xp is not None,
                allow_unused=True,
            )
            return self.sources, list(grads)

        return as_cotangents(self._differentiate(back), run)

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor | None]:
        return self._differentiate(
            lambda branch: outputs_and_jvp_of(branch, self.sources, tangents)
        )

    def _differentiate(
        self, derivative: Callable[[Callable[..., Any]], tuple[Sequence[Any], list[Any]]]
    ) -> list[Tensor | None]:
        """Record a `cond` of the derivatives of both branches.

        `derivative` returns tensors with the shapes of the derivatives, and the derivatives. One
        that is None in a single branch is zeros there.
        """
        present: set[int] = set()

        def with_zeros(branch: Callable[..., Any]) -> list[Tensor]:
            like, parts = derivative(branch)
            present.update(k for k, part in enumerate(parts) if part is not None)
            pairs = zip(like, parts, strict=True)
            return [zeros_like(t) if part is None else part for t, part in pairs]

        predicate = make(Symbol(self.op.args[0]), None)
        branches = [partial(with_zeros, branch) for branch in self.branches]
        found = control_flow.cond(predicate, *branches)
        return [part if k in present else None for k, part in enumerate(found)]


def zeros_like(like: Any) -> Tensor:
    """Return zeros with the shape and dtype of a tensor or value."""
    return zeros(like.shape, dtype=like.dtype)


class WhileNode(LoopNode):
    """The node of one `while_loop`: it supports forward mode, but no backward pass."""

    __slots__ = ("carry", "condition", "function")

    condition: Callable[[list[Tensor]], Any]
    function: Function
    carry: list[Tensor]  # the initial one

    @classmethod
    def of(
        cls,
        condition: Any,
        function: Function,
        regions: list[Body],
        op: Op,
        carry: Sequence[Tensor],
    ) -> WhileNode:
        node = cls()
        node.condition, node.function = condition, function
        node._init(regions, op, carry)
        pairs = zip(op.args[0], node.edges, strict=False)
        node.carry = [make(Symbol(value), edge) for value, edge in pairs]
        return node

    @property
    def name(self) -> str:
        return NodeName("WhileBackward")

    def release(self) -> None:
        super().release()
        self.condition = self.function = list
        self.carry = []

    def vjp(self, g: Any, run: Any) -> Sequence[Any]:
        raise AutogradError(
            "the backward pass can't go through a compiled while_loop: the number of its steps, "
            "and so the memory for what they save, isn't known. Use cr.scan() with a bound, and "
            "cr.where() or cr.cond() for the steps that are too many; or detach() its result"
        )

    def _with_tangents(self, tangents: Sequence[Any]) -> list[int]:
        """Return the carries that have a tangent at first or after some steps."""
        active = {i for i in range(len(self.carry)) if tangents[i] is not None}
        while True:
            inputs = run_in(enable_grad(), self._inputs, active)
            wrt = [inputs[i] for i in active] + self.sources
            given = [zeros_like(self.carry[i]) for i in active] + list(tangents[len(self.carry) :])
            _, found = outputs_and_jvp_of(partial(self.function, inputs), wrt, given)
            more = {i for i in range(len(self.carry)) if found[i] is not None} - active
            if not more:
                return sorted(active)
            active |= more

    def _inputs(self, active: set[int]) -> list[Tensor]:
        return [tracked(t) if i in active else t for i, t in enumerate(self.carry)]

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor | None]:
        active, of_sources = self._with_tangents(tangents), tangents[len(self.carry) :]

        def forward(state: Any) -> Any:
            carry, carry_tangents = state
            recorded = is_grad_enabled()  # by a higher derivative
            inputs = [tracked(t) if i in active else t for i, t in enumerate(carry)]
            wrt = [inputs[i] for i in active] + self.sources
            given = [*carry_tangents, *of_sources]
            outs, found = outputs_and_jvp_of(lambda: self.function(inputs), wrt, given)
            ends = [zeros_like(outs[i]) if found[i] is None else found[i] for i in active]
            return outs if recorded else [t.detach() for t in outs], ends

        begin = [zeros_like(self.carry[i]) if tangents[i] is None else tangents[i] for i in active]
        init = (self.carry, begin)
        _, last = control_flow.while_loop(lambda state: self.condition(state[0]), forward, init)
        ends = dict(zip(active, last, strict=True))
        return [ends.get(i) for i in range(len(self.carry))]
