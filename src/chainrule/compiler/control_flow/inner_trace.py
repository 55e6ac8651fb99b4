"""Trace of a region: a function within the traced function, with inputs of its own.

It uses values of the enclosing trace directly. Tensors of the enclosing trace are leaves in it, so
that a backward pass from its outputs ends there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.node import AccumulateGrad, Node, endpoint, reachable
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.compiler.ir.program import Program, Value
from chainrule.compiler.tracing.symbol import TRACING, Symbol
from chainrule.compiler.tracing.trace import Capture, Trace, switched_to
from chainrule.errors import CompileError
from chainrule.interrupts import call_with
from chainrule.transforms.vmap.batched_array import BatchedArray, next_depth

_array, _grad, _node = SLOTS["_array"], SLOTS["_grad"], SLOTS["_node"]


class InnerTrace(Trace):
    """A trace within another: it shares the constants, and has ops of its own."""

    own: Any = None  # a symbol may be of the enclosing trace
    records = False

    def __init__(self, outer: Trace, name: str) -> None:
        super().__init__(name)
        self.outer, self.origin = outer, outer.origin
        self.constants, self._known = outer.constants, outer._known
        self._inputs = outer._inputs
        self.arrays, self.external, self.masks = outer.arrays, outer.external, outer.masks
        self.readable, self.arguments = outer.readable, outer.arguments
        self.search, self.array_uses = outer.search, outer.array_uses
        self.loop_nodes, self.lines.naming = outer.loop_nodes, outer.lines.naming
        self.numbers = outer.numbers
        self.lines.caller = outer.lines.caller
        self.memory_uses, self.errors = outer.memory_uses, outer.errors
        self._own: dict[int, weakref.ref[Tensor]] = {}
        self._depth = next_depth()  # runs under vmap from now on are within the function
        self._grads: dict[int, Tensor | None] = {}
        self.passes: list[tuple[set[Node], set[Node]]] = []  # what those of the user's reach
        self._writes = [symbol.writes for _, symbol, _ in self.arrays]

    def proxy(self, tensor: Tensor) -> Tensor:
        capture = self.captures.get(id(tensor))
        if capture is not None:
            return capture.proxy
        own = self._own.get(id(tensor))
        if own is not None and own() is tensor:
            return tensor
        try:
            array = _array.__get__(tensor)
        except AttributeError:  # under construction
            return tensor
        if isinstance(array, BatchedArray) and array.level.depth > self._depth:
            return tensor
        return self.capture(tensor, array).proxy

    def proxy_for_write(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        if slot == "_array" and not hasattr(_Raw(tensor), "array"):
            self._own[id(tensor)] = weakref.ref(tensor)
        return super().proxy_for_write(tensor, slot, value)

    def capture(self, tensor: Tensor, array: Any) -> Capture:
        """Return the capture of a tensor of the enclosing trace, with a leaf as its proxy."""
        array, node, grad = switched_to(
            self.outer, lambda: (tensor._array, current_node(tensor), tensor._grad)
        )
        value, layout = array.value, array.layout
        proxy: Tensor = object.__new__(Tensor)
        symbol = Symbol(value)
        symbol.layout = layout
        _array.__set__(proxy, symbol)
        _grad.__set__(proxy, grad)
        SLOTS["_view"].__set__(proxy, None)
        leaf = None if node is None else AccumulateGrad(proxy)
        _node.__set__(proxy, leaf)
        self._grads[id(tensor)] = grad
        capture = self.captures[id(tensor)] = Capture(tensor, proxy, symbol, value, leaf)
        return capture

    def check_pass(
        self, roots: Iterable[Node], targets: list[tuple[Node, int]]
    ) -> tuple[bool, list[tuple[Node, int]]]:
        """Raise if a pass of the user's would miss a path between tensors from outside.

        They are leaves here, whatever they depend on there. The compiler's own passes add up the
        paths outside afterwards.
        """
        if _OWN_PASS.get():
            return False, targets
        reached, wanted = reachable(roots), {node for node, _ in targets}
        self.passes.append((reached, wanted))
        outside = self._outside()
        outer = {outside[node] for node in wanted if node in outside}
        for node in reached.intersection(outside).difference(wanted) if outer else ():
            if not outer.isdisjoint(self.histories(outside[node])):
                raise _lost_history(node)
        return False, targets

    def _outside(self) -> dict[Node, Node]:
        """Return the outer nodes of tensors from outside, by their nodes here."""
        found: dict[Node, Node] = {}
        for capture in self.captures.values():
            if capture.node is not None:
                edge = switched_to(self.outer, current_node, capture.tensor)
                if edge is not None:
                    found[capture.node] = endpoint(edge)[0]
        return found

    def histories(self, node: Node) -> set[Node]:
        """Return what a node of the enclosing trace leads to, there and in those around it."""
        found = reachable([node])
        if isinstance(self.outer, InnerTrace):
            outside = self.outer._outside()
            further: set[Node] = set()
            for each in found.intersection(outside):
                further |= self.outer.histories(outside[each])
            found |= {each for each, outer in outside.items() if outer in further}
        return found

    def check_steps(
        self, inputs: list[Node | None], given: list[Node | None], after: list[Node | None]
    ) -> None:
        """Raise if a pass of the user's in a step would miss a path through an earlier one.

        The nodes are those of a step's inputs, of what the first step is given, outside, and of the
        carries after a step, which are the first inputs of the next.
        """
        if not self.passes:
            return
        outer = self._outside() | _pairs(inputs, given)
        later = _pairs(inputs[: len(after)], after)
        before = {node: reachable([end]) for node, end in later.items()}
        for reached, wanted in self.passes:
            ends = {outer.get(w) for w in wanted} | {later.get(w, w) for w in wanted}
            for node in reached.intersection(inputs).difference(wanted):
                history = self.histories(outer[node]) if node in outer else set()
                if not ends.isdisjoint(history | _through_steps(node, before)):
                    raise _lost_history(node)

    def check(self) -> None:
        """Raise if the function changed anything outside: only the outermost function may."""
        for capture in self.captures.values():
            if capture.symbol.writes or capture.node is not capture.found:
                raise CompileError(
                    f"the function of a {self.name} writes in place to a tensor from outside (of "
                    f"shape {list(capture.value.shape)}): make it part of the carry, and return it"
                )
            if _grad.__get__(capture.proxy) is not self._grads[id(capture.tensor)]:
                raise CompileError(
                    f"the function of a {self.name} calls backward(), which adds to the .grad of "
                    f"a tensor from outside (of shape {list(capture.value.shape)}): use "
                    "cr.autograd_grad(), and return or carry the gradients"
                )
        before = self._writes + [0] * (len(self.arrays) - len(self._writes))
        if [symbol.writes for _, symbol, _ in self.arrays] != before:
            raise CompileError(
                f"the function of a {self.name} writes in place to an array from outside: make it "
                "part of the carry, and return it"
            )


def _pairs(keys: list[Node | None], values: list[Node | None]) -> dict[Node, Node]:
    """Return the nodes of tensors that require grad, both of them, by each other."""
    pairs = zip(keys, values, strict=True)
    return {key: value for key, value in pairs if key is not None and value is not None}


def _through_steps(node: Node, before: dict[Node, set[Node]]) -> set[Node]:
    """Return the nodes of all earlier steps that an input leads to through the carries."""
    found: set[Node] = set()
    ahead = [node]
    while ahead:
        reached = before.get(ahead.pop(), set()).difference(found)
        found |= reached
        ahead += reached.intersection(before)
    return found


def _lost_history(node: Any) -> CompileError:
    """Return the error for a gradient through a history that is not part of a function."""
    return CompileError(
        "autograd_grad() in the function of a loop or branch: the result depends on a tensor of "
        f"shape {list(node.variable.shape)} from outside or an earlier step, which depends on what "
        "the gradient is taken by. The history between them is not part of the function: compute "
        "the one from the other inside, or detach() it first"
    )


_OWN_PASS: ContextVar[bool] = ContextVar("chainrule own pass", default=False)
"""Whether a backward pass is one that the compiler takes through a loop or branch."""


def own_pass(*args: Any, **settings: Any) -> Any:
    """Return gradients as `autograd_grad` does, by tensors that count as independent."""
    return call_with({_OWN_PASS: True}, autograd_grad, *args, **settings)


class _Raw:
    """Access to the stored array of a tensor, which no active trace redirects."""

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    @property
    def array(self) -> Any:
        return _array.__get__(self._tensor)


class Body:
    """A traced function of tensors: its program, and its tensors for further tracing."""

    def __init__(
        self,
        name: str,
        function: Callable[[list[Tensor]], Sequence[Tensor]],
        like: Sequence[Value],
        flags: Sequence[bool],
    ) -> None:
        outer = TRACING.get()
        assert outer is not None
        self.trace = InnerTrace(outer, name)
        self.values = [Value(t.shape, t.dtype) for t in like]
        self.inputs: list[Tensor] = self.trace.run(self._leaves, flags)
        self.outs: list[Tensor] = self.trace.run(lambda: list(function(self.inputs)))
        self.trace.check()
        self._check()
        outputs: list[Value] = self.trace.run(lambda: [t._array.value for t in self.outs])
        self.program = Program(name, self.values, {}, list(self.trace.ops), outputs, [])

    def _check(self) -> None:
        """Raise if the function writes to its arguments: in eager mode that is caller's memory."""
        for symbol in (_Raw(t).array for t in self.inputs):
            if symbol.writes:
                raise CompileError(
                    f"the function of a {self.trace.name} writes in place to what it is given (of "
                    f"shape {list(symbol.shape)}), which outside a compiled function is memory of "
                    "the caller's: compute out of place, or clone() it first"
                )

    def _leaves(self, flags: Sequence[bool]) -> list[Tensor]:
        # The order of elements in memory may differ from step to step, so it is unknown.
        found = [make(Symbol(value, len(value.shape) < 2), None) for value in self.values]
        return [t.requires_grad_() if flag else t for t, flag in zip(found, flags, strict=True)]

    def check_steps(self, given: Sequence[Tensor], count: int) -> None:
        """Check the passes within a step of a loop that begins with `given`, `count` carries."""
        nodes = self.trace.run(lambda: [*map(_node_of, self.inputs)])
        after = self.trace.run(lambda: [*map(_node_of, self.outs[:count])])
        self.trace.check_steps(nodes, [*map(_node_of, given)], after)

    @property
    def tracked(self) -> list[bool]:
        """Whether each output requires grad."""
        found: list[bool] = self.trace.run(lambda: [t.requires_grad for t in self.outs])
        return found

    @property
    def sources(self) -> list[Tensor]:
        """The tensors of the enclosing trace that get gradients."""
        return [c.tensor for c in self.trace.captures.values() if c.requires_grad]


def _node_of(tensor: Tensor) -> Node | None:
    edge = current_node(tensor)
    return None if edge is None else endpoint(edge)[0]
