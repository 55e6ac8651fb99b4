"""The graph node of an equation's solution, differentiated by the implicit function theorem."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from typing import Any

import numpy as np

from chainrule.arguments import cast
from chainrule.autograd.backward import cotangents_between
from chainrule.autograd.forward import tangent_between
from chainrule.autograd.intercept import INTERCEPTOR, intercepting
from chainrule.autograd.modes import enable_grad, is_grad_enabled, run_in
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import AccumulateGrad, Edge, Node, NodeName, endpoint, freed_error
from chainrule.autograd.record import stamp_node
from chainrule.autograd.reverse import BackwardPass
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.backend import whole
from chainrule.errors import AutogradError
from chainrule.implicit.inverse import Inverse, Linearization
from chainrule.interrupts import T
from chainrule.transforms.vmap.interpreter import BatchBoundary

Residual = Callable[[Tensor], Tensor]

# --- recorded residuals ---------------------------------------------------------------------------


class RecordedResidual:
    """One recorded call of a residual: the graph between its sources, the unknown and its value.

    Sources are the edges to whatever the residual depends on beside the unknown: tensors among
    its arguments, and those that it closes over.
    """

    def __init__(self, residual: Residual, unknown: Tensor) -> None:
        own = current_node(unknown)
        self.begin = next_seq()
        value = run_in(enable_grad(), lambda: cast(residual(unknown), unknown.dtype))
        self.array = value._array
        self.root: Edge = current_node(value)
        self.unknown: Edge = own
        self.sources = [] if self.root is None else self._sources()

    def _sources(self) -> list[Edge]:
        """Return the edges that lead out of the graph, in the order in which they are found."""
        levels: list[Any] = []
        interceptor: Any = INTERCEPTOR.get()
        while hasattr(interceptor, "level"):  # tensors from outside of a vmap have nodes of its own
            levels.append(interceptor.level)
            interceptor = interceptor.outer
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
        return list(found.values())

    def vjp(self, g: Any, targets: Sequence[Edge], *, recorded: bool) -> list[Any]:
        """Return the cotangents of some edges, given that of the value."""
        return cotangents_between(self.root, g, targets, self.begin, recorded=recorded)

    def jvp(self, edges: Sequence[Edge], tangents: Sequence[Tensor | None]) -> Tensor:
        """Return the tangent of the value."""
        found = tangent_between(self.root, edges, tangents, self.begin)
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
            found = again.vjp(adjoint, first.sources, recorded=True)
        if not run.retain_graph:
            self.recorded = None
        return found

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        first = self._first()
        if not is_grad_enabled():
            return -self.inverse.solve(first.jvp(first.sources, tangents), self.transposed)
        again = self._again(first)
        forced = again.jvp(first.sources, tangents)

        def forward(tangent: Tensor) -> Tensor:
            return again.jvp([again.unknown], [tangent]) + forced

        start = -self.inverse.solve(forced.detach(), self.transposed)
        return self._linear_solution(forward, start, self.transposed)

    def _linear_solution(self, residual: Residual, value: Tensor, transposed: bool) -> Tensor:
        return solution(residual, value._array, self.inverse, transposed, self.title)

    def _first(self) -> RecordedResidual:
        if self.recorded is None:
            raise freed_error(self)
        return self.recorded

    def _again(self, first: RecordedResidual) -> RecordedResidual:
        """Record the residual with the solution as a result of this node."""
        call = functools.partial(RecordedResidual, self.residual, make(self.value, self))
        found = in_context(self.context, call)
        self._check_same(whole(first.array), whole(found.array))
        return found

    def _check_same(self, before: Any, now: Any) -> None:
        """Raise if the residual is another one than where the solution was computed."""
        if before.shape != now.shape or not np.array_equal(before, now, equal_nan=True):
            scale = max(np.abs(before).max(initial=0), np.abs(now).max(initial=0))
            change = np.inf if before.shape != now.shape else np.abs(before - now).max()
            if change > 1e-9 * max(scale, self.inverse.scale):
                raise AutogradError(
                    f"{self.title}: a second derivative calls the residual again, and it has "
                    "another value now: a variable that it closes over was assigned anew or "
                    "written to, or it draws random numbers. Pass what changes as an argument"
                )


def in_context(context: Context, function: Callable[[], T]) -> T:
    """Call a function in the context of an earlier call: under the same vmap, in the same modes."""

    def call() -> T:
        interceptor = INTERCEPTOR.get()
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
