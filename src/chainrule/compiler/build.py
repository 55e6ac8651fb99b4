"""From one call of a function to what runs in its place."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from chainrule import pytree
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.node import AccumulateGrad, ErrorNode
from chainrule.autograd.tensor import Tensor
from chainrule.backend import ndarray
from chainrule.compiler.backward import CompiledRule, Pullback, TracedPass, pullback
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.codegen.run import runner
from chainrule.compiler.guards.discovery import is_constant, is_iterator
from chainrule.compiler.guards.signature import Signature, signature_of
from chainrule.compiler.guards.source import MISS, Guards, call_of, first_call_of
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Program, Value, every_op
from chainrule.compiler.passes import optimized
from chainrule.compiler.passes.reroll import rolled_lines
from chainrule.compiler.tracing.run import Traced, traced
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import Capture, overlapping
from chainrule.errors import CompileError

_FREED = (
    "Trying to backward through the graph a second time: a compiled function has called backward() "
    "on what this tensor was made of. Specify retain_graph=True there if you need to."
)


class Emitted(NamedTuple):
    """A program as a function of arrays, and as source."""

    run: Callable[..., Any]
    source: Source
    native: str
    statements: Callable[[], tuple[Source, dict[str, Any]] | None]


def emitted(program: Program, backend: str | None) -> Emitted:
    """Return a program as NumPy calls, or as machine code: if asked for, or if it's better."""
    source = Source(program)
    if backend == "numpy":
        return Emitted(runner(source), source, "", lambda: (source, {}))
    from chainrule.compiler.native import native, native_if_better

    found = native(program) if backend == "native" else native_if_better(program, source)
    return Emitted(found.run, source, found.text, found.statements)


class Built(NamedTuple):
    """One signature of a compiled function."""

    call: Callable[..., Any]  # with its checks: returns MISS for calls of another signature
    first: Callable[..., Any]  # without, for the call that was traced
    arrays: Callable[..., Any]  # the program's inputs for a call, with its checks
    emitted: Emitted
    programs: tuple[Program, ...]  # and the backward program, where there is one
    text: str  # the NumPy source of the programs
    native: str  # the source of the machine code that runs, or nothing where NumPy runs
    lasting: bool  # whether it serves later calls, too
    signature: Signature


def build(function: Callable[..., Any], args: Any, kwargs: Any, backend: str | None) -> Built:
    """Trace a call, optimise what it did, and write the function that does it again.

    If the function changes what the checks ask for, it has to do so at each call.
    """
    call = traced(function, args, kwargs)
    guards = Guards(call, args, kwargs)
    signature = signature_of(function, call, args, kwargs)
    built = _Builder(call, function, guards, backend).build(signature)
    if any(is_iterator(leaf) for _, leaf in pytree.leaves((args, kwargs))):
        return built._replace(lasting=False)
    if call.changed or built.arrays(args, kwargs) is MISS:
        return built._replace(lasting=False)
    return built


class _Builder:
    """Finds what a call returns and changes, and writes what does it."""

    def __init__(self, call: Traced, function: Any, guards: Guards, backend: str | None) -> None:
        self.call, self.trace, self.captures = call, call.trace, call.captures
        self.function, self.guards, self.backend = function, guards, backend
        self.outputs: list[Value] = []
        self.rows: list[str] = []  # what follows the program's call
        self.edges: dict[int, str] = {}  # where outputs that can be differentiated lead
        self.names: dict[int, str] = {}  # of the tensors that the call makes
        self.shared: list[str] = []  # what tells those of the trace, which somebody may hold, of it
        self.lasting = not any(is_iterator(item.value) for item in call.found)

    def build(self, signature: Signature) -> Built:
        self._check()
        tracked = self._tracked()
        back = self._pass(tracked)
        template = self._spelled(pytree.map_leaves(self.call.result, self._returned))
        changes = [row for c in self.captures for row in self._grad_rows(c)]
        once = [row for t in self._survivors() for row in self._kept_rows(t)]
        found = self._rolled(back)
        kept = [] if found is None else self._kept(found)
        outputs = [*self.outputs, *(v for v in kept if v not in self.outputs)]
        outs = [f"o{i}" for i in range(len(outputs))]
        self.guards.memory(bool(self.call.writes))
        program = optimized(self.call.program(outputs))
        parts = [emitted(program, self.backend)]
        places = self._places()
        run = self.guards.hold(parts[0].run)
        rows = [f"{', '.join(outs)}{' = ' if outs else ''}{run}({', '.join(places)})"]
        rows += self._written_rows()
        if found is not None:
            for value in kept:
                value.hint = parts[0].source.names[value]
            parts.append(emitted(found.program, self.backend))
            saved = {v: outs[outputs.index(v)] for v in kept}
            rows.append(self._node_row(found, tracked, parts[1].run, saved))
        rows += [*self.rows, *changes]
        final, name = [f"return {template}"], self.trace.name
        return Built(
            call_of(self.guards, [*rows, *final], name),
            first_call_of(self.guards, [*rows, *once, *self.shared, *final], name),
            call_of(self.guards, [f"return [{', '.join(places)}]"], f"{name}'s inputs"),
            parts[0],
            (program,) if found is None else (program, found.program),
            "\n\n".join(part.source.text for part in parts),
            "\n\n".join(part.native for part in parts if part.native),
            self.lasting and not once,
            signature,
        )

    def _pass(self, tracked: list[Tensor]) -> TracedPass | None:
        """Trace the backward pass of the outputs that can be differentiated from outside."""
        back = pullback(self.trace, tracked)
        for index, tensor in enumerate(tracked if back is not None else ()):
            place = "node" if len(tracked) == 1 else f"Port(node, {index})"
            self.edges[id(tensor)] = place
        return back

    def _rolled(self, back: TracedPass | None) -> Pullback | None:
        """Find loops in the forward lines first: what they stack, the backward ones read."""
        trace = self.trace
        if any(op.regions for op in trace.ops):
            self.call.program([]).check_reach()
        if back is None:
            return None
        needed = {*self.outputs, *back.free, *(write.value for write in self.call.writes)}
        trace.ops = rolled_lines(trace.ops, needed, trace.constants)
        return back.optimized()

    def _kept(self, found: Pullback) -> list[Value]:
        """Return what has to come out of the program for the backward pass."""
        inputs, written = self.call.inputs, {write.target for write in self.call.writes}
        return [v for v in found.residuals if v not in inputs or v in written]

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
                    "a compiled function turned a tensor from outside "
                    f"(of shape {list(capture.value.shape)}) in place: take the view that t(), "
                    "transpose(), squeeze() or unsqueeze() gives, or turn it outside"
                )
            if capture.node is not capture.found:
                raise CompileError(
                    "a compiled function gave a tensor from outside "
                    f"(of shape {list(capture.value.shape)}) a history of its own, by writing what "
                    "requires grad to it, or requires_grad_(): detach() what is written, or return "
                    "it"
                )

    # --- what can be differentiated ---

    def _tracked(self) -> list[Tensor]:
        """Return the tensors of the result that have a history."""
        if not is_grad_enabled():
            return []
        found = {}
        for _, leaf in pytree.leaves(self.call.result):
            if isinstance(leaf, Tensor) and id(leaf) not in self.trace.captures:
                node = SLOTS["_node"].__get__(leaf)
                if node is not None and type(node) is not AccumulateGrad:
                    found[id(leaf)] = leaf
        return list(found.values())

    def _node_row(
        self, found: Pullback, tracked: list[Tensor], backward: Any, kept: dict[Value, str]
    ) -> str:
        """Return how a call records its node."""
        pure = not any(c.symbol.writes or c.grads[0] is not c.grads[1] for c in self.captures)
        pure = pure and not any(op.function == DRAW for op in every_op(self.trace.ops))
        exposed = {*self.outputs, *({c.value for c in self.captures} - kept.keys())}
        backend = self.backend

        def emit(program: Program) -> Callable[..., Any]:
            return backward if program is found.program else emitted(program, backend).run

        rule = CompiledRule(found, self.function, emit, tracked, self.call.result, pure, exposed)
        arrays = {c.value: self.guards.array(c) for c in self.captures}
        arrays |= {v: self.guards.arrays[id(a)] for a, _, v in self.trace.arrays}
        arrays |= kept
        edges = "".join(f"{self.guards.edge(c)}, " for c in found.wrt)
        saved = "".join(f"{arrays[v]}, " for v in found.residuals)
        tensors = "".join(f"{self.guards.name(c)}, " for c in found.wrt)
        again = f"(args, kwargs, ({tensors}))"
        return f"node = recorded({self.guards.hold(rule)}, ({edges}), ({saved}), {again})"

    # --- what goes in and comes out ---

    def _places(self) -> list[str]:
        """Return where a call finds the arrays of the program's inputs."""
        given = [self.guards.arrays[id(a)] for a, _, _ in self.trace.arrays]
        return [*map(self.guards.array, self.captures), *given]

    def _output(self, value: Value) -> str:
        self.outputs.append(value)
        return f"np.asarray(o{len(self.outputs) - 1})"

    def _returned(self, leaf: Any) -> Any:
        """Return the source of a leaf of the result."""
        if isinstance(leaf, Symbol):
            scalar = "" if leaf.shape else "[()]"  # as NumPy's functions return it
            return _Text(f"{self._output(leaf.value)}{scalar}")
        if isinstance(leaf, Tensor):
            return _Text(self._made(leaf))
        outside = self.trace.outside.values()
        if type(leaf) is ndarray and not any(leaf is array for array in outside):
            return _Text(f"{self.guards.hold(leaf)}.copy()")
        known = (item.value for item in self.call.found)
        if not is_constant(leaf) and not any(leaf is value for value in known):
            self.lasting = False  # it may change, or go on: each call has one of its own
        return _Text(self.guards.hold(leaf))

    def _made(self, tensor: Tensor, hint: str = "") -> str:
        """Return the name of a tensor that the function made; `hint` is for the source."""
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
                edge = self.guards.hold(ErrorNode(_FREED, ()))
            self.rows.append(f"{known} = make({array}, {edge}){after}")
            held = self.guards.hold(weakref.ref(tensor))
            self.shared.append(f"{self.guards.hold(_share)}({held}(), {known})")
            grad = SLOTS["_grad"].__get__(tensor)
            if grad is not None:
                self.rows.append(f"{known}._grad = {self._made(grad)}")
        return known

    def _grad_rows(self, capture: Capture) -> Iterator[str]:
        """Yield how a call leaves the `.grad` of a tensor."""
        before, after = capture.grads
        if after is None and before is not None:
            yield f"{self.guards.name(capture)}._grad = None"
        elif after is not None and after is not before:
            made = self._made(after, f"{capture.value.hint or 'leaf'}_grad")
            yield f"{self.guards.name(capture)}._grad = {made}"

    def _survivors(self) -> list[Tensor]:
        """Return the tensors that the function made and that somebody outside holds now."""
        return [t for t in self.trace.survivors() if id(t) not in self.names]

    def _kept_rows(self, tensor: Tensor) -> Iterator[str]:
        """Yield what makes such a tensor hold an array."""
        held = self.guards.hold(tensor)
        yield f"{held}._array = {self._output(SLOTS['_array'].__get__(tensor).value)}"
        node = SLOTS["_node"].__get__(tensor)
        if node is not None and type(node) is not AccumulateGrad:
            yield f"{held}._node = {self.guards.hold(ErrorNode(_FREED, ()))}"

    def _written_rows(self) -> Iterator[str]:
        """Yield what notes the writes, so that graphs which saved the values know of them."""
        for capture in self.captures:
            if capture.symbol.writes:
                yield f"record_write({self.guards.array(capture)}, 'compiled {self.trace.name}')"

    def _spelled(self, node: Any) -> str:
        """Return the source that makes the result's containers anew."""
        if isinstance(node, _Text):
            return node.text
        kind = type(node)
        parts = [self._spelled(part) for _, part in pytree.children(node) or ()]
        if kind is dict:
            keys = [self.guards.key(key) for key in node]
            return f"{{{', '.join(f'{k}: {part}' for k, part in zip(keys, parts, strict=True))}}}"
        if kind is list:
            return f"[{', '.join(parts)}]"
        row = f"({''.join(part + ', ' for part in parts)})"
        if kind is tuple:
            return row
        if hasattr(kind, "_fields"):
            return f"{self.guards.hold(tuple.__new__)}({self.guards.hold(kind)}, {row})"
        return f"{self.guards.hold(partial(pytree.with_children, node))}({row})"


def _share(held: Tensor | None, tensor: Tensor) -> None:
    """Let a tensor of the trace, if it is held, be what the first call returns in its place."""
    if held is not None:
        held._array, held._node = tensor._array, tensor._node


class _Text:
    """A piece of source in the place of a leaf."""

    def __init__(self, text: str) -> None:
        self.text = text
