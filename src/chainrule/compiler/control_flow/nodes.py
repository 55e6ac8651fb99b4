"""Graph nodes of traced loops and branches, whose derivatives are loops and branches, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from chainrule import control_flow
from chainrule.autograd.forward import outputs_and_jvp_of, tracked
from chainrule.autograd.intercept import intercepted_by
from chainrule.autograd.modes import enable_grad, is_grad_enabled, run_in
from chainrule.autograd.node import Edge, Node, NodeName, NodeOutput
from chainrule.autograd.record import stamp_node
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.compiler.control_flow.inner_trace import Body, own_pass
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Op, Value, every_op, values_in
from chainrule.compiler.recorded_graph import (
    GraphTemplate,
    SubgraphNode,
    SubgraphTemplate,
    evaluate,
    needed_ops,
)
from chainrule.compiler.tracing.namespace import SYMBOL_XP
from chainrule.compiler.tracing.symbol import TRACING, Symbol
from chainrule.compiler.tracing.trace import switched_to
from chainrule.creation import zeros
from chainrule.errors import AutogradError, CompileError, InPlaceError
from chainrule.transforms.vmap.batched_array import BatchedArray, Level

Function = Callable[[list[Tensor]], list[Tensor]]


def connected(node: Node | None, outs: Sequence[Value], tracked: Sequence[bool]) -> list[Tensor]:
    """Return tensors of the results of an op; tracked ones are outputs of its node."""
    return [
        make(Symbol(value), NodeOutput(node, i) if node is not None and flag else None)
        for i, (value, flag) in enumerate(zip(outs, tracked, strict=False))
    ]


class CotangentBatch:
    """Several cotangents at once, as under vmap, for functions that are traced for one.

    A loop or branch is traced in the enclosing trace, where cotangents are arrays with the axes of
    the batch in front. In its function they are batched arrays of these.
    """

    def __init__(self, arrays: Iterable[Any] = ()) -> None:
        found: dict[Level, None] = {}
        for array in arrays:
            while isinstance(array, BatchedArray):
                found[array.level] = None
                array = array.data
        self.levels = sorted(found, key=lambda level: level.depth)  # outermost first
        self.counts = tuple([level.count for level in self.levels])

    def data(self, array: Any, axis: int = 0) -> Any:
        """Return an array with the axes of the batch in front of `axis`, instead of batched."""
        shape, lead = array.shape, len(self.levels)
        for level in reversed(self.levels):
            own = isinstance(array, BatchedArray) and array.level is level
            array = array.data if own else array[None]
        array = SYMBOL_XP.broadcast_to(array, (*self.counts, *shape))
        order = [*range(lead, lead + axis), *range(lead), *range(lead + axis, lead + len(shape))]
        return SYMBOL_XP.permute_dims(array, tuple(order))

    def batched(self, data: Any, axis: int = 0) -> Any:
        """Return the batched array of `data`: the inverse of `data`."""
        lead, rank = len(self.levels), len(data.shape)
        order = [*range(axis, axis + lead), *range(axis), *range(axis + lead, rank)]
        data = SYMBOL_XP.permute_dims(data, tuple(order)) if lead and axis else data
        for level in self.levels:
            data = BatchedArray(level, data)
        return data

    def inside(self, tensor: Tensor) -> Tensor:
        """Return a cotangent as the function of the loop or branch gets it."""
        return make(self.batched(tensor._array), None) if self.levels else tensor

    def outside(self, tensor: Tensor) -> Tensor:
        """Return a cotangent as the loop or branch gets it from its function."""
        return make(self.data(tensor._array), None) if self.levels else tensor

    def all_outside(self, tensors: dict[int, Tensor]) -> dict[int, Tensor]:
        """Return cotangents by position as `outside` does."""
        return {i: self.outside(t) for i, t in tensors.items()}

    def zeros_like(self, like: Any) -> Tensor:
        """Return zeros for a tensor or value."""
        return zeros((*self.counts, *like.shape), dtype=like.dtype)


class BodyTemplate:
    """A traced function of a loop or branch as a function of tensors with arrays."""

    def __init__(self, body: Body, sources: Sequence[Tensor]) -> None:
        captures = body.trace.captures
        found = [captures.get(id(t)) for t in sources]
        leaves = [c.node if c is not None and c.requires_grad else None for c in found]

        def graph() -> GraphTemplate:
            return GraphTemplate(body.outs, [*map(current_node, body.inputs), *leaves])

        self._graph: GraphTemplate = body.trace.run(graph)
        self._program = program = body.program
        wanted = [*self._graph.values, *program.outputs]
        self._ops, self.values = needed_ops(program.ops, wanted, program.inputs)
        if any(op.function == DRAW for op in every_op(self._ops)):
            raise AutogradError(
                f"the function of a {body.trace.name} draws random numbers, so that what it "
                "computed can't be computed again for {purpose}: draw outside, and pass the "
                "numbers as an operand or slice by slice"
            )

    def __call__(
        self, outer: Mapping[Value, Any], edges: Sequence[Any], inputs: Sequence[Tensor] = ()
    ) -> list[Tensor]:
        """Return the results, given values from outside and the edges of the sources."""
        arrays = {v: outer[v] for v in self.values}
        arrays |= zip(self._program.inputs, [t._array for t in inputs], strict=True)
        evaluate(self._ops, arrays)
        found = self._graph.edges(arrays, [*map(current_node, inputs), *edges])
        pairs = zip(self._program.outputs, found, strict=False)
        return [make(arrays[v], edge) for v, edge in pairs]


class LoopTemplate(SubgraphTemplate):
    """The nodes of a loop or branch in eager mode: those of its steps, or of what was chosen."""

    def __init__(self, node: LoopNode, run: Callable[..., Sequence[Tensor]]) -> None:
        self.op, self._run = node.op, run
        self._regions = [BodyTemplate(body, node.sources) for body in node.regions]

    @property
    def values(self) -> Iterable[Value]:
        """The operands, and what the functions use from outside."""
        return [*values_in(self.op.args), *(v for region in self._regions for v in region.values)]

    def set_region(self, index: int, region: BodyTemplate) -> None:
        """Use another function in the place of one."""
        self._regions[index] = region

    def edges(self, arrays: Any, edges: Sequence[Any]) -> list[Any]:
        inputs = values_in(self.op.args[:2]) if self.op.function != "if" else []
        tensors = [make(arrays[v], edge) for v, edge in zip(inputs, edges, strict=False)]
        regions = [partial(region, arrays, edges[len(inputs) :]) for region in self._regions]
        found = run_in(enable_grad(), self._run, self.op, arrays, tensors, *regions)
        return [current_node(t) for t in found]


class LoopNode(SubgraphNode):
    """Base class of the nodes of ops with regions."""

    __slots__ = ("regions", "count", "op", "outputs", "sources")

    regions: list[Body]
    op: Op
    sources: list[Tensor]  # tensors of the enclosing trace that regions use
    outputs: int

    @property
    def output_count(self) -> int:
        return self.outputs

    def output_edge(self, index: int) -> Edge:
        return NodeOutput(self, index)

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
                array = switched_to(region.trace.outer, getattr, capture.tensor, "_array")
                if array.value is not capture.value:
                    raise InPlaceError(
                        f"{self.name} runs its function again for this pass, and a tensor that it "
                        f"uses (of shape {list(capture.value.shape)}) has been written to "
                        "in place since: write to a clone()"
                    )


def as_tensors(g: Any, run: Any) -> dict[int, Tensor]:
    """Return the cotangents of the outputs, or of a single one, as gradient tensors."""
    parts = g if g.__class__ is dict else {0: g}
    grads = {k: run.conjugate(part) for k, part in parts.items()}
    return grads if run.xp is not None else {k: make(part, None) for k, part in grads.items()}


def as_cotangents(grads: Sequence[Any], run: Any) -> list[Any]:
    """Return gradient tensors as cotangents; the inverse of `as_tensors`."""
    parts = grads if run.xp is not None else [None if t is None else t._array for t in grads]
    return [None if part is None else run.conjugate(part) for part in parts]


def _run_branch(op: Op, arrays: Any, _: Any, first: Any, second: Any) -> Sequence[Tensor]:
    chosen: list[Tensor] = first(()) if arrays[op.args[0]] else second(())
    return chosen


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

    def template(self) -> LoopTemplate:
        return LoopTemplate(self, _run_branch)

    def vjp(self, g: Any, run: Any) -> Sequence[Any]:
        self._check_rerun()
        gs = as_tensors(g, run)
        batch = CotangentBatch([] if run.xp is not None else [t._array for t in gs.values()])
        if not batch.levels:
            derivative = partial(self._gradients, gs, run, batch)
            return as_cotangents(self._differentiate(derivative, batch), run)

        def batched() -> list[Any]:
            data = {k: make(batch.data(t._array), None) for k, t in gs.items()}
            found = self._differentiate(partial(self._gradients, data, run, batch), batch)
            return [None if t is None else t._array for t in found]

        grads = intercepted_by(TRACING.get(), batched)
        return [None if g is None else run.conjugate(batch.batched(g)) for g in grads]

    def _gradients(
        self, gs: dict[int, Tensor], run: Any, batch: CotangentBatch, branch: Callable[..., Any]
    ) -> tuple[Sequence[Any], list[Any]]:
        """Return the tensors from outside that a branch may use, and their gradients."""
        outs = run_in(enable_grad(), branch)
        roots = [k for k in gs if outs[k].requires_grad]
        if not roots or not self.sources:
            return self.sources, [None] * len(self.sources)
        grads = own_pass(
            *([outs[k] for k in roots], self.sources, [batch.inside(gs[k]) for k in roots]),
            create_graph=run.xp is not None,
            allow_unused=True,
        )
        return self.sources, [None if t is None else batch.outside(t) for t in grads]

    def _tangents(self, tangents: Sequence[Any]) -> list[Tensor | None]:
        given = [t._array for t in tangents if t is not None]
        batch = CotangentBatch([] if is_grad_enabled() else given)
        if not batch.levels:
            return self._differentiate(partial(self._output_tangents, tangents, batch), batch)

        def batched() -> list[Any]:
            data = [None if t is None else make(batch.data(t._array), None) for t in tangents]
            found = self._differentiate(partial(self._output_tangents, data, batch), batch)
            return [None if t is None else t._array for t in found]

        arrays = intercepted_by(TRACING.get(), batched)
        return [None if a is None else make(batch.batched(a), None) for a in arrays]

    def _output_tangents(
        self, tangents: Sequence[Any], batch: CotangentBatch, branch: Callable[..., Any]
    ) -> tuple[Sequence[Any], list[Any]]:
        """Return the results of a branch, and their tangents."""
        given = [None if t is None else batch.inside(t) for t in tangents]
        outs, found = outputs_and_jvp_of(branch, self.sources, given)
        return outs, [None if t is None else batch.outside(t) for t in found]

    def _differentiate(
        self,
        derivative: Callable[[Callable[..., Any]], tuple[Sequence[Any], list[Any]]],
        batch: CotangentBatch,
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
            return [batch.zeros_like(t) if part is None else part for t, part in pairs]

        predicate = make(Symbol(self.op.args[0]), None)
        branches = [partial(with_zeros, branch) for branch in self.branches]
        found = control_flow.cond(predicate, *branches)
        return [part if k in present else None for k, part in enumerate(found)]


def zeros_like(like: Any) -> Tensor:
    """Return zeros with the shape and dtype of a tensor or value."""
    return zeros(like.shape, dtype=like.dtype)


def _run_while(
    op: Op, arrays: Any, carry: Sequence[Tensor], condition: Any, step: Any
) -> Sequence[Tensor]:
    while condition(carry)[0]:
        carry = step(carry)
    return carry


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

    def template(self) -> LoopTemplate:
        found = LoopTemplate(self, _run_while)
        types = [Value(v.shape, v.dtype) for v in self.op.args[0]]
        flags = [edge is not None for edge in self.edges[: len(types)]]
        # The region was traced without the graph of a step.
        body = run_in(enable_grad(), Body, "while", self.function, types, flags)
        while any(after and not flag for after, flag in zip(body.tracked, flags, strict=True)):
            flags = [a or b for a, b in zip(body.tracked, flags, strict=True)]
            body = run_in(enable_grad(), Body, "while", self.function, types, flags)
        found.set_region(1, BodyTemplate(body, self.sources))
        return found

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
