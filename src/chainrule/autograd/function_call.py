"""One recorded call of a function, and its vector-Jacobian and Jacobian-vector products."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from chainrule import pytree
from chainrule.autograd.backward import autograd_grad, captured_grads, run_pass, start_pass
from chainrule.autograd.conversions import RUNNING, Running
from chainrule.autograd.forward import (
    JvpFunction,
    depends_on,
    jvp_between,
    nodes_between,
    tracked,
)
from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.modes import MODES, enable_grad, is_grad_enabled
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import AccumulateGrad, GradientEdge, Node, endpoint
from chainrule.autograd.primitive_node import MultiOutputNode, PrimitiveNode
from chainrule.autograd.reverse import BackwardPass
from chainrule.autograd.taylor_mode import taylor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.backend import ndarray
from chainrule.errors import AutogradError, call_of_user
from chainrule.interrupts import call_with


class FunctionCall:
    """One recorded call of a function, to be differentiated with respect to its arguments.

    `arguments` are trees, and `primals` the tensors to be differentiated by, one for each leaf that
    is not None. The function gets tensors that only this call knows, which `own` makes from the
    primals. So what the function closes over is not mistaken for an argument, even if it is the
    same tensor, and calls nest.

    Derivatives are recorded if `create_graph` is true. By default they are recorded where they
    depend on anything else that requires grad, and the caller records.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        primals: Sequence[Tensor],
        own: Callable[[Tensor], Tensor] = tracked,
        variables: Mapping[ContextVar[Any], Any] = MappingProxyType({}),
    ) -> None:
        recording = is_grad_enabled()

        def call() -> None:
            self.inputs = [own(x) for x in primals]
            running.inputs = self.inputs
            nodes = [t._node for t in self.inputs]
            self.result = call_of_user(function, *self.handed(list(arguments)))
            # A function that wrote to an argument in place gave that tensor a later node.
            self.inputs = [
                t if t._node is node else make(t._array, node)
                for t, node in zip(self.inputs, nodes, strict=True)
            ]

        running = Running()
        modes = enable_grad().entered(MODES.get())
        call_with({**variables, MODES: modes, RUNNING: running}, call)
        leaves = [self.result]
        if not isinstance(self.result, Tensor):
            leaves = [leaf for _, leaf in pytree.leaves(self.result)]
        self._positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self.outputs: list[Tensor] = [leaves[i] for i in self._positions]
        # Edges, not tensors: under a vmap that begins later, these tensors have proxies.
        self._sources = [current_node(t) for t in self.inputs]
        self._ends = [current_node(t) for t in self.outputs]
        seeds = {endpoint(node)[0] for node in self._sources if node is not None}
        self.nodes, self._has_other_sources = nodes_between(self.outputs, seeds)
        self._recording = recording
        self._has_history = recording and self._has_other_sources

    def handed(self, arguments: list[Any]) -> list[Any]:
        """Return the arguments that the function gets, for those of the call."""
        own: list[Any] = pytree.with_leaves(arguments, self.inputs)
        return own

    def _is_recorded(self, directions: Sequence[Tensor | None]) -> bool:
        if self._has_history:
            return True
        return self._recording and any(d is not None and d.requires_grad for d in directions)

    def runs_own_code_only(self) -> bool:
        """Return whether an unrecorded pass runs rules of primitives alone, no code of users.

        The arrays of symbols and of batches have code of their own, which a trace or a map runs.
        """
        if any([t._array.__class__ is not ndarray for t in (*self.inputs, *self.outputs)]):
            return False
        modes = MODES.get()
        if self._has_history or (modes is not None and modes.special):
            return False
        return have_rules_alone(self.nodes)

    def grads(
        self,
        cotangents: Sequence[Tensor | None],
        *,
        create_graph: bool | None = None,
        retain_graph: bool = True,
    ) -> list[Tensor | None]:
        """Return the cotangents of the inputs; None for an input that nothing depends on."""
        pairs = zip(self._ends, cotangents, strict=True)
        given = [(node, g) for node, g in pairs if node is not None and g is not None]
        if not given or not self.inputs:
            return [None] * len(self.inputs)
        nodes, gs = zip(*given, strict=True)
        create = self._is_recorded(gs) if create_graph is None else create_graph
        if not (create or retain_graph or self._has_other_sources) and self._are_own_leaves():
            return self._grads_of_leaves(nodes, gs)
        roots, edges = [_edge(node) for node in nodes], [_edge(node) for node in self._sources]
        if create or INTERCEPTOR.get() is not None:
            retain = retain_graph or create
            return list(autograd_grad(roots, edges, gs, retain, create, allow_unused=True))
        return captured_grads(start_pass(roots, gs, retain_graph, False), edges, edges, 0)

    def _are_own_leaves(self) -> bool:
        """Return whether a pass runs rules alone, to inputs that are leaves without a gradient.

        A user's function may have set a gradient or a hook, or run a pass itself.
        """
        if INTERCEPTOR.get() is not None or not have_rules_alone(self.nodes):
            return False
        for node, t in zip(self._sources, self.inputs, strict=True):
            if type(node) is not AccumulateGrad or node.hooks is not None:
                return False
            if node.variable is not t or t._grad is not None:
                return False
        return True

    def _grads_of_leaves(self, roots: Sequence[Any], gs: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the gradients by an ordinary pass, whose only leaves are the inputs."""
        run = BackwardPass(retain_graph=False, create_graph=False)
        run.retaining = False
        for node, g in zip(roots, gs, strict=True):
            run.accumulate(node, run.take(g))
        run_pass(run)
        found = [t._grad for t in self.inputs]
        for t in self.inputs:
            t._grad = None
        return found

    def used(self, count: int) -> list[bool]:
        """Return for each input whether one of the first `count` outputs depends on it."""
        return depends_on(self.outputs[:count], self.inputs)

    def vjp(
        self, cotangents: Sequence[Tensor | None], *, retain_graph: bool = True
    ) -> list[Tensor]:
        """Return the cotangents of the inputs, given those of the outputs."""
        return zeros_for_none(self.grads(cotangents, retain_graph=retain_graph), self.inputs)

    def jvp(
        self, tangents: Sequence[Tensor | None], *, create_graph: bool | None = None
    ) -> list[Tensor]:
        """Return the tangents of the outputs, given those of the inputs."""
        create = self._is_recorded(tangents) if create_graph is None else create_graph
        return self._jvp(tangents, create)

    @functools.cached_property
    def _jvp(self) -> JvpFunction:
        return jvp_between(self._sources, self._ends, self.nodes, self.outputs)

    def hvp(self, tangents: Sequence[Tensor | None]) -> list[Tensor]:
        """Return the Hessian of the first output, a real number, times tangents of the inputs.

        It is the gradient of that output's tangent: reverse over forward mode.
        """
        create = self._is_recorded(tangents)
        tangent = self.jvp(tangents, create_graph=True)[0]
        if not tangent.requires_grad or not self.inputs:
            return zeros_for_none([None] * len(self.inputs), self.inputs)
        one, edges = TENSOR_XP.ones_like(tangent.detach()), [_edge(node) for node in self._sources]
        found = autograd_grad([tangent], edges, [one], create, create, allow_unused=True)
        return zeros_for_none(list(found), self.inputs)

    def taylor(self, tangents: Sequence[Tensor | None], order: int) -> list[list[Tensor | None]]:
        """Return the Taylor coefficients 1 to `order` of the outputs along a line of the inputs.

        None is zero, and so are the coefficients after it.
        """
        found = taylor_of(self.inputs, self.outputs, tangents, order)
        if self._is_recorded(tangents):
            return found
        return [[None if c is None else c.detach() for c in each] for each in found]

    def value(self, tangents: Sequence[Tensor | None] = ()) -> Any:
        """Return the result of the function: with its history where derivatives are recorded."""
        if self._is_recorded(tangents):
            return self.result
        return self.like_result([t.detach() for t in self.outputs], keep=True)

    def like_result(self, tensors: Sequence[Any], *, keep: bool) -> Any:
        """Return the structure of the result with `tensors` for its tensors.

        Other leaves are kept, or replaced by None.
        """
        if isinstance(self.result, Tensor):
            return tensors[0]
        leaves = [leaf if keep else None for _, leaf in pytree.leaves(self.result)]
        for position, tensor in zip(self._positions, tensors, strict=True):
            leaves[position] = tensor
        following = iter(leaves)
        return pytree.map_leaves(self.result, lambda leaf: next(following))


def have_rules_alone(nodes: Iterable[Node]) -> bool:
    """Return whether an unrecorded pass runs rules of primitives alone at these nodes."""
    return all([type(node) in _PLAIN_NODES and node.hooks is None for node in nodes])


_PLAIN_NODES = frozenset([AccumulateGrad, PrimitiveNode, MultiOutputNode])


def _edge(node: Any) -> Any:
    return None if node is None else GradientEdge(*endpoint(node))


def zeros_for_none(grads: Sequence[Tensor | None], like: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients with zeros of the shape of `like` for None."""
    return [
        TENSOR_XP.zeros_like(x.detach()) if grad is None else grad
        for grad, x in zip(grads, like, strict=True)
    ]


def check_real(title: str, tensors: Sequence[Tensor], description: str) -> None:
    """Raise for complex tensors: unit directions of real numbers give half of their Jacobian."""
    for tensor in tensors:
        if tensor.dtype.kind == "c":
            raise AutogradError(
                f"{title}: grad can be implicitly created only for real {description}, but got "
                f"{tensor.dtype.name}: differentiate real and imaginary part on their own, "
                "view_as_real() of it"
            )
