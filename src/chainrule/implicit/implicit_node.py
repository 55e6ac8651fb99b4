"""The graph node of an equation's solution, differentiated by the implicit function theorem."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from typing import Any

import numpy as np

from chainrule.arguments import cast
from chainrule.autograd.backward import run_pass
from chainrule.autograd.conversions import RUNNING, Running
from chainrule.autograd.forward import tangents_between
from chainrule.autograd.function_call import have_rules_alone
from chainrule.autograd.intercept import INTERCEPTOR, intercepting
from chainrule.autograd.modes import MODES, enable_grad, is_grad_enabled
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import AccumulateGrad, Edge, Node, NodeName, endpoint, freed_error
from chainrule.autograd.record import stamp_node
from chainrule.autograd.reverse import BackwardPass
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.backend import is_known, ndarray, whole
from chainrule.errors import AutogradError
from chainrule.implicit.inverse import Inverse, Linearization
from chainrule.interrupts import T, call_with
from chainrule.transforms.vmap.interpreter import BatchBoundary, VmapInterpreter

Residual = Callable[[Tensor], Tensor]

# --- passes through a part of a graph -------------------------------------------------------------


class _InnerPass(BackwardPass):
    """A pass that a node's rule runs: hooks of its targets are left to the pass around it."""

    def _run_pre_hooks(self, node: Node, g: Any) -> Any:
        if node not in self.captures or node in self.running:
            return super()._run_pre_hooks(node, g)
        parts = g if g.__class__ is dict else {0: g}
        for index, key in self.captures[node]:
            if index in parts:
                self.captured[key] = parts[index]
        return None


def _cotangents_between(
    root: Edge, g: Any, targets: Sequence[Edge], earliest: int, *, recorded: bool
) -> list[Any]:
    """Return the cotangents of `targets`, given that of `root`; None where it doesn't depend.

    Only nodes run that are numbered `earliest` or later, and the graph is kept. Cotangents are
    arrays, or tensors if the pass is recorded.
    """
    run = _InnerPass(True, recorded)
    run.retaining = False
    run.accumulate(root, g)
    run.capture_only([endpoint(edge) for edge in targets], earliest=earliest)
    run_pass(run)
    return [run.captured.get(key) for key in range(len(targets))]


# --- recorded residuals ---------------------------------------------------------------------------


class RecordedResidual:
    """One recorded call of a residual: the graph between its sources, the unknown and its value.

    Sources are the edges to whatever the residual depends on beside the unknown: tensors among
    its arguments, and those that it closes over.
    """

    def __init__(self, residual: Residual, unknown: Tensor) -> None:
        own = current_node(unknown)
        self.begin = next_seq()
        running = Running()
        running.inputs = [unknown]  # which becomes no number without an error
        variables: dict[Any, Any] = {MODES: enable_grad().entered(MODES.get()), RUNNING: running}
        value = call_with(variables, lambda: cast(residual(unknown), unknown.dtype))
        self.array = value._array
        self.root: Edge = current_node(value)
        self.unknown: Edge = own
        self.sources = [] if self.root is None else self._sources()

    def _sources(self) -> list[Edge]:
        """Return the edges that lead out of the graph, in the order in which they are found."""
        # Tensors from outside of a vmap have nodes of its own, where its gradients are summed.
        levels = [getattr(each, "level", None) for each in interceptors()]
        own, found = endpoint(self.unknown), dict[Any, Edge]()
        stack, seen = [self.root], set[Node]()
        self.depends = False
        while stack:
            edge = stack.pop()
            if edge is None:
                continue
            node, index = endpoint(edge)
            if (node, index) == own:
                self.depends = True
            elif node.seq < self.begin or (
                isinstance(node, BatchBoundary) and node.into and node.level in levels
            ):
                found.setdefault((node, index), edge)
            elif type(node) is AccumulateGrad:
                if not node.private:  # else of a transform that the residual called
                    found.setdefault((node, index), edge)
            elif node not in seen:
                seen.add(node)
                stack.extend(node.edges)
        self._nodes = seen
        return list(found.values())

    def runs_own_code_only(self) -> bool:
        """Return whether an unrecorded pass runs rules of primitives alone, on plain arrays."""
        modes = MODES.get()
        if self.array.__class__ is not ndarray or INTERCEPTOR.get() is not None:
            return False
        return not (modes is not None and modes.special) and have_rules_alone(self._nodes)

    def vjp(self, g: Any, targets: Sequence[Edge], *, recorded: bool) -> list[Any]:
        """Return the cotangents of some edges, given that of the value."""
        return _cotangents_between(self.root, g, targets, self.begin, recorded=recorded)

    def jvp(self, edges: Sequence[Edge], tangents: Sequence[Tensor | None]) -> Tensor:
        """Return the tangent of the value."""
        (found,) = tangents_between([self.root], edges, tangents, self.begin)
        return TENSOR_XP.zeros_like(make(self.array, None)) if found is None else found


# --- the node -------------------------------------------------------------------------------------


class ImplicitNode(Node):
    """The solution x of F(x, θ) = 0: ``dx = -A⁻¹ F_θ dθ`` with A = F_x.

    A pass that is not recorded goes through the graph of the residual that was recorded at the
    solution. For higher derivatives the residual is recorded again, with the solution as a result
    of this node, and the linear system is an implicit function of its own: so all orders are exact.
    """

    __slots__ = ("context", "inverse", "recorded", "residual", "title", "transposed", "value")

    residual: Residual
    recorded: RecordedResidual | None  # None when it has been freed
    value: Any  # the solution, an array that nothing writes to
    inverse: Inverse
    transposed: bool  # whether A is the transposed matrix of `inverse`
    context: Context  # in which the residual was called
    title: str

    @property
    def name(self) -> str:
        return NodeName("ImplicitFunctionBackward0")

    def vjp(self, g: Any, run: BackwardPass) -> Sequence[Any]:
        first = self._first()
        if run.xp is None:
            adjoint = -self.inverse.solve(make(g, None), not self.transposed)
            found = first.vjp(adjoint._array, first.sources, recorded=False)
        else:
            again = self._again(first)

            def transposed(adjoint: Tensor) -> Tensor:
                found: Tensor = again.vjp(adjoint, [again.unknown], recorded=True)[0] + g
                return found

            start = -self.inverse.solve(g.detach(), not self.transposed)
            adjoint = self._linear_solution(transposed, start, not self.transposed)
            found = self._vjp_again(again, adjoint, first.sources)
        if not run.retain_graph:
            self.recorded = None
        return found

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        first = self._first()
        if not is_grad_enabled():
            return -self.inverse.solve(first.jvp(first.sources, tangents), self.transposed)
        again = self._again(first)
        groups = self._matched(again, first.sources)
        pairs = zip(groups, tangents, strict=True)
        seeds = [(edge, t) for edges, t in pairs for edge in edges if t is not None]
        forced = again.jvp([edge for edge, _ in seeds], [t for _, t in seeds])

        def forward(tangent: Tensor) -> Tensor:
            return again.jvp([again.unknown], [tangent]) + forced

        start = -self.inverse.solve(forced.detach(), self.transposed)
        return self._linear_solution(forward, start, self.transposed)

    def _linear_solution(self, residual: Residual, value: Tensor, transposed: bool) -> Tensor:
        return solution(residual, value._array, self.inverse, transposed, self.title)

    def _vjp_again(
        self, again: RecordedResidual, adjoint: Tensor, sources: Sequence[Edge]
    ) -> list[Any]:
        """Return the cotangents of the sources, recorded."""
        groups = self._matched(again, sources)
        flat = again.vjp(adjoint, [edge for edges in groups for edge in edges], recorded=True)
        following, found = iter(flat), []
        for edges in groups:
            parts = [g for g in [next(following) for _ in edges] if g is not None]
            found.append(sum(parts[1:], parts[0]) if parts else None)
        return found

    def _matched(self, again: RecordedResidual, sources: Sequence[Edge]) -> list[list[Edge]]:
        """Return the edges of the second record that belong to each source of the first.

        Under a vmap that has begun since, they lead to the boundaries before the sources.
        """
        groups: dict[Any, list[Edge]] = {endpoint(edge): [] for edge in sources}
        for edge in again.sources:
            inner = edge
            while endpoint(inner) not in groups:
                node = endpoint(inner)[0]
                if not isinstance(node, BatchBoundary):
                    raise self._changed()
                inner = node.edges[0]
            groups[endpoint(inner)].append(edge)
        return list(groups.values())

    def _first(self) -> RecordedResidual:
        if self.recorded is None:
            raise freed_error(self)
        return self.recorded

    def _again(self, first: RecordedResidual) -> RecordedResidual:
        """Record the residual with the solution as a result of this node."""
        found = in_context(
            self.context,
            lambda: RecordedResidual(self.residual, make(self.value, self)),
            interceptors(),
        )
        if not (is_known(first.array) and is_known(found.array)):
            return found
        before, now = whole(first.array), whole(found.array)
        if before.size != now.size or not np.array_equal(before, now.reshape(before.shape), True):
            self._check_same(before, now)
        return found

    def _check_same(self, before: Any, now: Any) -> None:
        """Raise if the residual is another one than where the solution was computed."""
        change = np.inf
        if before.size == now.size:
            change = np.abs(before - now.reshape(before.shape)).max()
        scale = max(np.abs(before).max(initial=0), np.abs(now).max(initial=0))
        if not change <= 1e-9 * max(scale, self.inverse.scale):
            raise self._changed()

    def _changed(self) -> AutogradError:
        return AutogradError(
            f"{self.title}: a second derivative calls the residual again, and it is another one "
            "now: a variable that it closes over was assigned anew or written to, or it draws "
            "random numbers. Pass what changes as an argument"
        )


def interceptors() -> list[Any]:
    """Return the interceptors in force, from the innermost to the outermost."""
    found: list[Any] = []
    interceptor: Any = INTERCEPTOR.get()
    while interceptor is not None:
        found.append(interceptor)
        interceptor = getattr(interceptor, "outer", None)
    return found


def in_context(
    context: Context, function: Callable[[], T], within: Sequence[VmapInterpreter] = ()
) -> T:
    """Call a function in the context of an earlier call: under the same vmap, in the same modes.

    `within` are the vmaps of now, in which what it records is differentiated.
    """

    def call() -> T:
        own = interceptors()
        interceptor = own[0] if own else None
        for each in reversed([each for each in within if each not in own]):
            interceptor = each.nested_in(interceptor)
        return function() if interceptor is None else intercepting(interceptor, function)

    result: T = context.copy().run(call)
    return result


def solution(
    residual: Residual,
    value: Any,
    inverse: Inverse | Callable[[Linearization], Inverse],
    transposed: bool = False,
    title: str = "implicit_function",
) -> Tensor:
    """Return the solution of an equation as a tensor with its derivatives.

    Parameters
    ----------
    residual : callable
        Takes and returns a real vector.
    value : array
        The solution, a vector, which nothing else writes to.
    inverse : Inverse, or a function that makes one
        Solves systems with the Jacobian by the unknown, or (`transposed`) by its adjoint.
    """
    unknown = make(value, None).requires_grad_()
    assert unknown._node is not None
    unknown._node.private = True
    recorded = RecordedResidual(residual, unknown)
    if not recorded.sources:
        return make(value, None)
    if not recorded.depends:
        raise AutogradError(
            f"{title}: the residual doesn't depend on the solution, its first argument: it must be "
            "computed from it by operations that are recorded, without detach(), item() or no_grad"
        )
    node: ImplicitNode = object.__new__(ImplicitNode)
    node.edges = tuple(recorded.sources)
    node.residual, node.recorded, node.value = residual, recorded, value
    node.title, node.transposed, node.context = title, transposed, copy_context()
    if isinstance(inverse, Inverse):
        node.inverse = inverse
    else:
        within: Any = functools.partial(in_context, node.context)
        node.inverse = inverse(Linearization(recorded, value, within, title))
    stamp_node(node, 1)
    result: Tensor = make(value.copy(), node)  # writes to it must not reach what the node keeps
    return result
