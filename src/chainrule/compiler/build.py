"""Builder of compiled calls: traces a call, optimises the program, and generates the call."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple

from chainrule import pytree
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.node import AccumulateGrad, ErrorNode
from chainrule.autograd.remarks import REMARKS, STRICT, Remark
from chainrule.autograd.tensor import Tensor
from chainrule.backend import ndarray
from chainrule.compiler.backward import CompiledRule, Pullback, TracedBackward, pullback
from chainrule.compiler.emission import Emission, Emitted, emit
from chainrule.compiler.guards.signature import Signature, signature_of
from chainrule.compiler.guards.source import MISS, Guards, calls_of, first_call_of
from chainrule.compiler.ir.program import Program, Value
from chainrule.compiler.passes import optimize
from chainrule.compiler.passes.reroll import reroll_ops
from chainrule.compiler.recorded_graph import RecordedGraph
from chainrule.compiler.tracing.found import Found
from chainrule.compiler.tracing.object_kinds import is_constant, is_iterator
from chainrule.compiler.tracing.run import Traced, trace_call
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import Capture, overlapping
from chainrule.compiler.tracing.varying_numbers import Place, VaryingNumber, numbers_of
from chainrule.errors import AutogradError, CompileError
from chainrule.interrupts import call_with, without_collector
from chainrule.numpy.array_class import as_ndarrays
from chainrule.numpy.array_class import ndarray as numpy_array
from chainrule.transforms.arguments import title_of

_FREED_MESSAGE = (
    "Trying to backward through the graph a second time: a compiled function has called backward() "
    "on what this tensor was made of. Specify retain_graph=True there if you need to."
)
_LOST_MESSAGE = (
    "a compiled function made this tensor without returning it, as a .grad or in an object, and "
    "records the history of what it returns only: return the tensor, or compute inside what needs "
    "its derivative"
)


class Built(NamedTuple):
    """A compiled function for one signature."""

    call: Callable[..., Any]  # with guards: returns MISS for calls of another signature
    first: Callable[..., Any]  # without guards, for the call that was traced
    arrays: Callable[..., Any]  # the inputs of the program for a call, with guards
    parts: list[Emission]  # the forward program, and the backward one if there is any
    reusable: bool  # whether it serves later calls
    signature: Signature
    inputs: frozenset[int]  # ids of the arrays found by name that the program takes
    reads: list[Found]  # what the call compares
    remarks: tuple[Remark, ...]  # on what has no machine code
    numbers: list[tuple[Place, Any]]  # the numbers that it serves calls with
    varying: list[Place]  # the places of those that it leaves open

    @property
    def emitted(self) -> Emitted:
        """The forward program with its text."""
        return self.parts[0].emitted

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs."""
        return tuple([part.program for part in self.parts])

    @property
    def text(self) -> str:
        """The NumPy source of the programs."""
        return "\n\n".join([part.emitted.source.text for part in self.parts])

    @property
    def native(self) -> str:
        """The source of the machine code, empty if NumPy runs."""
        texts = [part.emitted.native for part in self.parts]
        return "\n\n".join([text for text in texts if text])


def build(
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    backend: str | None,
    strict: bool = False,
    varying: Sequence[Place] = (),
) -> Built:
    """Trace a call, optimise the program, and generate the function that repeats the call.

    If the function changes what the guards check, it must be traced again at each call. If
    `strict`, remarks are errors. Numbers at the places `varying` are left open, if the function
    allows it.
    """
    for places in (varying, ()) if varying else ((),):
        loops: list[Remark] = []  # over the examples of a vmap
        variables: dict[ContextVar[Any], Any] = {REMARKS: loops, STRICT: strict or STRICT.get()}
        try:
            built = call_with(
                variables, without_collector, _build, function, args, kwargs, backend, places
            )
            break
        except (CompileError, TypeError, AttributeError):  # of what takes no open number
            if not places:
                raise
    if strict and built.remarks:
        more = len(built.remarks) - 1
        rest = f" (and {more} more remarks: without strict, profile() lists them)" if more else ""
        raise CompileError(f"strict=True: {built.remarks[0].text}{rest}")
    built.signature.remarks = (*loops, *built.remarks)
    return built


def _build(
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    backend: str | None,
    varying: Sequence[Place],
) -> Built:
    call = trace_call(function, args, kwargs, varying)
    built = _Builder(call, function, backend).build()
    if any(is_iterator(leaf) for _, leaf in pytree.leaves((args, kwargs))):
        return built._replace(reusable=False)
    if call.changed or not call.search.complete or built.arrays(args, kwargs) is MISS:
        return built._replace(reusable=False)
    return built


class _Builder:
    """Generate the source of a call: its result, and its side effects on tensors."""

    guards: Guards

    def __init__(self, call: Traced, function: Any, backend: str | None) -> None:
        self.call, self.trace, self.captures = call, call.trace, call.captures
        self.function, self.backend = function, backend
        self.outputs: list[Value] = []
        self.lines: list[str] = []  # that follow the call of the program
        self.edges: dict[int, str] = {}  # the nodes of differentiable outputs
        self.names: dict[int, str] = {}  # of the tensors that the call makes
        self.shared: list[str] = []  # lines that hand results to tensors of the trace still in use
        self.reusable = True

    def build(self) -> Built:
        self._check()
        tracked = self._tracked()
        back = self._trace_backward(tracked)
        found = self.call.search.finish()
        self.trace.numbers.finish()
        if self.trace.errors:
            raise self.trace.errors[0]
        self.reusable = not any(is_iterator(item.value) for item in found)
        self.guards = Guards(self.call)
        signature = signature_of(self.function, self.call)
        template = self._result_source()
        changes = [line for c in self.captures for line in self._grad_lines(c)]
        once = [line for t in self._survivors() for line in self._survivor_lines(t)]
        rule = self._optimize_backward(back)
        graph, kept = (None, []) if back is None or rule is None else self._graph(back, rule)
        residuals = self._residual_outputs(kept)
        outputs = [*self.outputs, *(v for v in residuals if v not in self.outputs)]
        outs = [f"o{i}" for i in range(len(outputs))]
        self.guards.memory(bool(self.call.writes))
        program = self.call.program(outputs)
        parts = [Emission(program, lambda traced: optimize(traced), self.backend)]
        inputs = self._inputs()
        run = self.guards.hold(parts[0].run)
        lines = [*self._write_lines()]  # first: the run may be interrupted
        lines.append(f"{', '.join(outs)}{' = ' if outs else ''}{run}({', '.join(inputs)})")
        if rule is not None:
            parts.append(self._backward_emission(rule.program, residuals, parts[0]))
            saved = {v: outs[outputs.index(v)] for v in residuals}
            assert graph is not None
            lines.append(self._node_line(rule, graph, tracked, parts[1].run, kept, saved))
        lines += [*self.lines, *changes]
        final, name = [f"return {template}"], self.trace.name
        left_open, known = self.trace.numbers.split()
        call, arrays = calls_of(self.guards, inputs, [*lines, *final], name)
        return Built(
            call,
            first_call_of(self.guards, [*lines, *once, *self.shared, *final], name),
            arrays,
            parts,
            self.reusable and not once,
            signature,
            frozenset(id(array) for array, _, _ in self.trace.arrays),
            self.guards.reads,
            self._remarks(parts),
            [*numbers_of(*self.call.arguments, self.guards.reads), *known],
            left_open,
        )

    def _backward_emission(
        self, program: Program, residuals: list[Value], forward: Emission
    ) -> Emission:
        """Return the backward program; residuals have the names of the forward one in its text."""

        def name_residuals() -> None:
            for value in residuals:
                value.hint = forward.emitted.source.names[value]

        return Emission(program, lambda optimized: optimized, self.backend, name_residuals)

    def _remarks(self, parts: list[Emission]) -> tuple[Remark, ...]:
        """Return the remarks on all programs, under the name of the function, each once."""
        found = [remark for part in parts for remark in part.remarks]
        title = f"compile({title_of(self.function)})"
        return tuple([r._replace(text=f"{title}: {r.text}") for r in dict.fromkeys(found)])

    def _trace_backward(self, tracked: list[Tensor]) -> TracedBackward | None:
        """Trace the backward pass of the differentiable outputs."""
        back = self.trace.searching(pullback, self.trace, tracked)
        for index, tensor in enumerate(tracked if back is not None else ()):
            edge = "node" if len(tracked) == 1 else f"NodeOutput(node, {index})"
            self.edges[id(tensor)] = edge
        return back

    def _optimize_backward(self, back: TracedBackward | None) -> Pullback | None:
        """Reroll the forward ops first, since backward loops read what forward loops stack."""
        trace = self.trace
        if any(op.regions for op in trace.ops):
            self.call.program([]).check_scopes()
        if back is None:
            return None
        needed = {*self.outputs, *back.free, *(write.value for write in self.call.writes)}
        trace.ops = reroll_ops(trace.ops, needed, trace.constants)
        return back.optimize()

    def _graph(
        self, back: TracedBackward, found: Pullback
    ) -> tuple[RecordedGraph | AutogradError, list[Value]]:
        """Return the graph for derivatives of higher order, and the values that a call saves.

        Besides residuals these are random numbers, which must not be drawn anew.
        """
        kept, constants = list(found.residuals), self.trace.constants
        if isinstance(back.graph, AutogradError):
            return back.graph, kept
        plain = [v for _, _, v in self.trace.arrays]  # whose writes nobody notes
        plain += [number.value for number in self.trace.numbers.inputs.values()]
        given = [v for v in kept if v not in plain]
        graph = RecordedGraph(back.graph, back.forward, constants, given)
        if graph.draws:
            available = {v for op in self.trace.ops for v in op.outs}
            drawn = [v for op in graph.draws for v in op.outs if v in available]
            kept, given = kept + drawn, given + drawn
            graph = RecordedGraph(back.graph, back.forward, constants, given)
        written = {write.target for write in self.call.writes}
        if graph.draws or not written.isdisjoint(graph.inputs):
            what = (
                "draws random numbers in a loop or branch" if graph.draws else "writes to tensors"
            )
            return AutogradError(
                f"the compiled {self.trace.name} {what}, so that what it computed can't be "
                "computed again for {purpose}: compile a function of the whole instead"
            ), list(found.residuals)
        return graph, kept

    def _residual_outputs(self, kept: list[Value]) -> list[Value]:
        """Return the saved values that the forward program must output."""
        inputs, written = self.call.inputs, {write.target for write in self.call.writes}
        return [v for v in kept if v not in inputs or v in written]

    def _check(self) -> None:
        shared = overlapping(self.trace)
        if shared is not None:
            raise CompileError(
                "a compiled function writes in place to memory that two tensors share "
                f"(of shapes {[list(v.shape) for v in shared]}): clone() one of them first"
            )
        for capture in self.captures:
            if SLOTS["_array"].__get__(capture.proxy) is not capture.symbol:
                raise CompileError(
                    "a compiled function reshaped a tensor from outside "
                    f"(of shape {list(capture.value.shape)}) in place: take the view that t(), "
                    "transpose(), squeeze() or unsqueeze() gives, or do it outside"
                )
            if capture.node is not capture.found:
                raise CompileError(
                    "a compiled function gave a tensor from outside "
                    f"(of shape {list(capture.value.shape)}) a history of its own, by writing what "
                    "requires grad to it, or requires_grad_(): detach() what is written, or return "
                    "it"
                )

    # --- differentiable outputs ---

    def _tracked(self) -> list[Tensor]:
        """Return the non-leaf tensors of the result that require grad."""
        if not is_grad_enabled():
            return []
        found = {}
        for _, leaf in pytree.leaves(self.call.result):
            if isinstance(leaf, Tensor) and id(leaf) not in self.trace.captures:
                node = SLOTS["_node"].__get__(leaf)
                if node is not None and type(node) is not AccumulateGrad:
                    found[id(leaf)] = leaf
        return list(found.values())

    def _node_line(
        self,
        found: Pullback,
        graph: RecordedGraph | AutogradError,
        tracked: list[Tensor],
        backward: Any,
        kept: list[Value],
        saved_outs: dict[Value, str],
    ) -> str:
        """Return the line that records the node of a call."""
        exposed = {*self.outputs, *({c.value for c in self.captures} - saved_outs.keys())}
        backend, whole = self.backend, found.program  # without `found`, which holds tensors

        def run_of(program: Program) -> Callable[..., Any]:
            return backward if program is whole else emit(program, backend).run

        rule = CompiledRule(found, graph, run_of, tracked, kept, exposed)
        arrays = {c.value: self.guards.array(c) for c in self.captures}
        plain = {v: self.guards.arrays[id(a)] for a, _, v in self.trace.arrays}
        plain |= {n.value: self.guards.input(n) for n in self.trace.numbers.inputs.values()}
        sources = arrays | plain | saved_outs
        arrays |= {v: f"({name}, {name}.copy())" for v, name in plain.items()}
        edges = "".join(f"{self.guards.edge(c)}, " for c in found.wrt)
        saved = "".join(f"{sources[v]}, " for v in kept)
        inputs = (
            ""
            if isinstance(graph, AutogradError)
            else "".join(f"{arrays[v]}, " for v in graph.inputs)
        )
        return f"node = recorded({self.guards.hold(rule)}, ({edges}), ({saved}), ({inputs}))"

    # --- inputs and results ---

    def _inputs(self) -> list[str]:
        """Return the variables that hold the inputs of the program."""
        arrays = [self.guards.arrays[id(a)] for a, _, _ in self.trace.arrays]
        numbers = map(self.guards.input, self.trace.numbers.inputs.values())
        return [*map(self.guards.array, self.captures), *arrays, *numbers]

    def _output(self, value: Value) -> str:
        self.outputs.append(value)
        return f"np.asarray(o{len(self.outputs) - 1})"

    def _leaf_source(self, leaf: Any) -> Any:
        """Return the source of a leaf of the result."""
        if type(leaf) is VaryingNumber:
            return _Text(self.guards.number(leaf))
        if isinstance(leaf, Symbol):
            array = self._output(leaf.value)
            if leaf.finish is not None:
                return _Text(f"{self.guards.hold(leaf.finish)}({array})")
            return _Text(f"{array}[()]" if leaf.is_scalar else array)
        if isinstance(leaf, Tensor):
            return _Text(self._tensor_source(leaf))
        outside = self.trace.external.values()
        if type(leaf) is ndarray and not any(leaf is array for array in outside):
            return _Text(f"{self.guards.hold(leaf)}.copy()")
        known = (item.value for item in self.call.found)
        if not is_constant(leaf) and not any(leaf is value for value in known):
            self.reusable = False  # a mutable object: each call must make its own
        return _Text(self.guards.hold(leaf))

    def _tensor_source(self, tensor: Tensor) -> str:
        """Return the source of a tensor of the result; NumPy's integers and scalars are its own."""
        name, array = self._tensor_name(tensor), SLOTS["_array"].__get__(tensor)
        own = id(tensor) not in self.trace.captures and type(tensor) is numpy_array
        if not own or SLOTS["_node"].__get__(tensor) is not None:
            return name
        if array.ndim:
            return f"{self.guards.hold(as_ndarrays)}({name}._array)"
        return f"{name}._array[()]"

    def _tensor_name(self, tensor: Tensor, hint: str = "") -> str:
        """Return the variable of a tensor, with lines that make it; `hint` names its value."""
        capture = self.trace.captures.get(id(tensor))
        if capture is not None:
            return self.guards.name(capture)
        known = self.names.get(id(tensor))
        if known is None:
            known = self.names[id(tensor)] = f"r{len(self.names)}"
            value = SLOTS["_array"].__get__(tensor).value
            value.hint = value.hint or hint
            array = self._output(value)
            node = SLOTS["_node"].__get__(tensor)
            edge, after = self.edges.get(id(tensor), "None"), ""
            if type(node) is AccumulateGrad:
                after = ".requires_grad_()"
            elif node is not None and edge == "None":
                edge = self._lost_edge(tensor)
            self.lines.append(f"{known} = make({array}, {edge}){after}")
            held = self.guards.hold(weakref.ref(tensor))
            self.shared.append(f"{self.guards.hold(_share)}({held}(), {known})")
            grad = SLOTS["_grad"].__get__(tensor)
            if grad is not None:
                self.lines.append(f"{known}._grad = {self._tensor_name(grad)}")
        return known

    def _grad_lines(self, capture: Capture) -> Iterator[str]:
        """Yield the line that sets the `.grad` of a captured tensor, if the function does."""
        before, after = capture.grads
        if after is None and before is not None:
            yield f"{self.guards.name(capture)}._grad = None"
        elif after is not None and after is not before:
            made = self._tensor_name(after, f"{capture.value.hint or 'leaf'}_grad")
            yield f"{self.guards.name(capture)}._grad = {made}"

    def _survivors(self) -> list[Tensor]:
        """Return the tensors that the function made, didn't return, and that are still in use."""
        return [t for t in self.trace.survivors() if id(t) not in self.names]

    def _survivor_lines(self, tensor: Tensor) -> Iterator[str]:
        """Yield the lines that give such a tensor its array."""
        held = self.guards.hold(tensor)
        yield f"{held}._array = {self._output(SLOTS['_array'].__get__(tensor).value)}"
        node = SLOTS["_node"].__get__(tensor)
        if node is not None and type(node) is not AccumulateGrad:
            yield f"{held}._node = {self._lost_edge(tensor)}"

    def _lost_edge(self, tensor: Tensor) -> str:
        """Return the source of the node of a tensor whose history a call does not record.

        It leads to what the call depends on, so that no pass for these comes by it in silence.
        """
        edges = "".join(f"{self.guards.edge(c)}, " for c in self.captures if c.requires_grad)
        returned = any(leaf is tensor for _, leaf in pytree.leaves(self.call.result))
        message = self.guards.hold(_FREED_MESSAGE if returned else _LOST_MESSAGE)
        return f"{self.guards.hold(ErrorNode)}({message}, ({edges}))"

    def _write_lines(self) -> Iterator[str]:
        """Yield the lines that record writes to inputs, for graphs that saved their values."""
        for capture in self.captures:
            if capture.symbol.writes:
                yield f"record_write({self.guards.array(capture)}, 'compiled {self.trace.name}')"

    def _result_source(self) -> str:
        """Return the source that rebuilds the containers of the result."""
        found: _Text = pytree.fold(self.call.result, self._leaf_source, self._container_source)
        return found.text

    def _container_source(self, node: Any, parts: Any, found: list[_Text]) -> _Text:
        depth = max([part.depth for part in found], default=0) + 1
        if depth > _MAX_NESTED:  # Python's parser nests brackets to a limited depth
            for part in found:
                if part.depth == depth - 1:
                    name = f"c{len(self.lines)}"
                    self.lines.append(f"{name} = {part.text}")
                    part.text = name
            depth = 1
        return _Text(self._brackets(node, [part.text for part in found]), depth)

    def _brackets(self, node: Any, parts: list[str]) -> str:
        """Return the source of a container, given that of its children."""
        kind = type(node)
        if kind is dict:
            keys = [self.guards.key(key) for key in node]
            return f"{{{', '.join(f'{k}: {part}' for k, part in zip(keys, parts, strict=True))}}}"
        if kind is list:
            return f"[{', '.join(parts)}]"
        items = f"({''.join(part + ', ' for part in parts)})"
        if kind is tuple:
            return items
        if hasattr(kind, "_fields"):
            return f"{self.guards.hold(tuple.__new__)}({self.guards.hold(kind)}, {items})"
        return f"{self.guards.hold(partial(pytree.with_children, node))}({items})"


_MAX_NESTED = 20
"""Number of containers inside each other that one line of source makes."""


def _share(traced: Tensor | None, tensor: Tensor) -> None:
    """Give a tensor of the trace that is still in use the array and node of its counterpart."""
    if traced is not None:
        traced._array, traced._node = tensor._array, tensor._node


class _Text:
    """Source code in place of a leaf or container."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.depth = depth
