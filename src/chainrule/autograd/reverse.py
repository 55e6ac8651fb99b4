"""The backward pass.

A node's number is higher than those of all nodes it depends on. So the pending node with the
highest number is always complete: every node that could add to its cotangent has run. The pass
takes that one, again and again: no recursion, no counting beforehand, the same order every time.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import heappop, heappush, heappushpop
from typing import Any

import numpy as np

from chainrule.autograd.hooks import (
    check_replacement,
    name_of,
    remember_failure,
    replacements,
    run_post_accumulate,
)
from chainrule.autograd.modes import current_modes
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import (
    AccumulateGrad,
    Edge,
    Node,
    NodeOutput,
    collective_nodes,
    endpoint,
    is_collective,
    made_at,
    reachable,
)
from chainrule.autograd.reachability import capture_constants, leading, leads, reachable_with
from chainrule.autograd.references import ALONE, count_references, own_memory
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import record_write, write_log
from chainrule.backend import namespace, ndarray
from chainrule.errors import ArgumentTypeError, InPlaceError
from chainrule.primitives import elementwise, shaping
from chainrule.primitives.shaping import sum_to

Array = Any

# --- gradients of leaves --------------------------------------------------------------------------


def owned(array: Array, alone: bool) -> Array:
    """Return `array`, or a copy if something else may hold it or its memory."""
    own = own_memory(array, alone)
    return namespace(array).array(array) if own is None else own


def in_order_of(like: Array, array: Array, alone: bool) -> tuple[Array, bool]:
    """Return a gradient in C order, if the array that it belongs to is in C order.

    As in PyTorch, so that ``p.grad.view(-1)`` works wherever ``p.view(-1)`` does. Gradients of
    weights that are used transposed arrive transposed. NumPy computes several times slower with
    arrays of different orders, and copies a transpose slower than its strips.
    """
    if not _differs_in_order(like, array):
        return array, alone
    if array.__class__ is not ndarray:
        return namespace(array).reshape(array, array.shape, copy=True), True
    copied = np.empty(array.shape, array.dtype)
    if array.ndim != 2 or array.size < _STRIPS_MIN_SIZE or 0 in array.strides:
        copied[...] = array
        return copied, True
    for start in range(0, array.shape[1], _STRIP_COLUMNS):
        strip = slice(start, start + _STRIP_COLUMNS)
        copied[:, strip] = array[:, strip]
    return copied, True


def recorded_in_order_of(like: Array, g: Tensor, alone: bool) -> Tensor:
    """Return a gradient as `in_order_of` does, recorded; a copy unless it is `alone`."""
    result = g
    if _differs_in_order(like, g._array):
        result = shaping.reshape_copy.apply(g, shape=g.shape)
    elif not alone:
        result = elementwise.clone.apply(g)
    return result


def _differs_in_order(like: Array, array: Array) -> bool:
    if array.__class__ is not ndarray:
        return bool(namespace(array).differs_in_order(like, array))
    is_c_order: bool = array.flags.c_contiguous
    return not is_c_order and like.__class__ is ndarray and bool(like.flags.c_contiguous)


_STRIP_COLUMNS = 32
"""Number of columns of a transpose whose cache lines stay in the first-level cache."""

_STRIPS_MIN_SIZE = 1 << 16
"""Number of elements from which a transpose is copied in strips: smaller ones stay in the cache."""


# --- the pass -------------------------------------------------------------------------------------


class PassHook:
    """A tensor's hook that also gets the pass: ``hook(grad, run)``.

    `grad` is None if the pass has gradients of other outputs of the node only.
    """

    def __call__(self, grad: Tensor | None, run: BackwardPass) -> None:
        raise AssertionError(f"{type(self).__name__} is abstract")


class BackwardPass:
    """One backward pass, from the cotangents of roots towards the leaves.

    `xp` is None if cotangents are arrays, and the namespace of tensors if the pass is recorded.
    """

    anomaly: bool
    infinite: dict[Node, Any]  # only in anomaly mode, by node: where its infinite cotangent began
    captures: Mapping[Node, list[tuple[int, int]]] = {}  # (output index, key in `captured`)
    captured: dict[int, Any]
    crosses: bool = False  # from a vmap to the graph outside, whose nodes run on its batch
    receiving: set[Node] | None  # with captures: the nodes on a path to one
    running: Collection[Node] = ()  # those of them that must run
    leaves: dict[AccumulateGrad, Any] | None = None  # in a walk: those without hooks, in any order
    retaining: bool = True  # set the .grad of tensors with retain_grad()
    roots: Sequence[Node] = ()  # the nodes that it starts at
    watched: Callable[..., Any] | None = None  # calls what may be code of users, in a trace

    def __init__(self, retain_graph: bool, create_graph: bool) -> None:
        self.retain_graph = retain_graph
        self.xp: Any = TENSOR_XP if create_graph else None
        self.pending: dict[Node, Any] = {}  # {output index: cotangent} of multi-output nodes
        self.queue: list[tuple[int, Node]] = []
        self.sums: set[Any] = set()  # keys of pending cotangents that nothing else holds
        self.receiving = None
        state = current_modes()
        self.anomaly = state is not None and state.anomaly is not None and state.check_nan

    # --- the walk ---

    def accumulate(self, edge: Edge, g: Any) -> None:
        """Add `g` to the pending cotangent of the output that `edge` leads to."""
        pending = self.pending
        if edge.__class__ is NodeOutput:
            node, index = edge.node, edge.index
            parts = pending.get(node)
            if parts is None:
                parts = pending[node] = {}
                heappush(self.queue, (-node.seq, node))
            parts[index] = g if index not in parts else self._sum((node, index), parts[index], g)
        elif edge in pending:
            pending[edge] = self._sum(edge, pending[edge], g)
        else:
            pending[edge] = g
            heappush(self.queue, (-edge.seq, edge))

    def _sum(self, key: Any, total: Any, g: Any) -> Any:
        """Add out of place the first time, into our own sum from then on."""
        if self.xp is None and key in self.sums and total.__class__ is ndarray:
            total += g
            return total
        self.sums.add(key)
        if self.xp is not None or g.__class__ is ndarray:
            return total + g
        return namespace(total).plus(total, g)

    def walk(self) -> None:
        """Run the pending nodes, from the last recorded to the first.

        It is one function because it is the hot path: a call more for each node or edge costs 30
        to 60 ns.
        """
        queue, pending = self.queue, self.pending
        receiving, running, captures = self.receiving, self.running, self.captures
        special = self.anomaly or self.watched is not None
        self.roots = roots = [*pending]
        leaves: dict[AccumulateGrad, Any] = {}
        self.leaves = leaves
        node: Any = None
        ahead: Any = None  # a pending node kept out of the queue, with its cotangent in g:
        g: Any = None  # in a chain, the queue is never touched
        try:
            while True:
                if ahead is None:
                    if not queue:
                        if not leaves:
                            return
                        node = None
                        self._flush_leaves(leaves)
                        continue
                    node = heappop(queue)[1]
                    g = pending.pop(node)
                elif queue and queue[0][0] < -ahead.seq:
                    pending[ahead] = g
                    node = heappushpop(queue, (-ahead.seq, ahead))[1]
                    g = pending.pop(node)
                    ahead = None
                else:
                    node, ahead = ahead, None
                if node.hooks is not None or receiving is not None:
                    if receiving is not None and node not in receiving:
                        continue  # a root that leads to no target
                    if node.hooks is not None or node in captures:
                        g = self._call(self._run_pre_hooks, node, g)
                    if g is None or (receiving is not None and node not in running):
                        continue
                if node.__class__ is AccumulateGrad:
                    alone = count_references(g) <= ALONE  # on its own: a call would hold it too
                    leaf = node._variable()
                    if leaf is not None and leaf._node is not None:  # else it was frozen since
                        self.add_to_grad(leaf, g, alone)
                    if node.hooks is not None:
                        self._call(self._accumulated, node, leaf, g)
                    continue
                grads = self._special_vjp(node, g) if special else node.vjp(g, self)
                if node.hooks is not None and node.hooks.post:
                    grads = self._call(self._run_post_hooks, node, grads, g)
                g = None
                edges = node.edges
                position = -1  # counted by hand: making a `zip` costs as much as three rounds
                for grad in grads:
                    position += 1
                    if grad is None:
                        continue
                    edge = edges[position]
                    if edge is None:
                        continue
                    if edge.__class__ is NodeOutput:
                        if receiving is None or edge.node in receiving:
                            self.accumulate(edge, grad)
                    elif receiving is not None and edge not in receiving:
                        continue
                    elif (
                        edge.__class__ is AccumulateGrad
                        and receiving is None
                        and (edge.hooks is None or edge in leaves)
                    ):
                        if edge in leaves:
                            grad = self._sum(edge, leaves[edge], grad)
                        leaves[edge] = grad
                    elif edge in pending:
                        pending[edge] = self._sum(edge, pending[edge], grad)
                    elif ahead is None:
                        ahead, g = edge, grad
                    elif edge is ahead:
                        g = self._sum(edge, g, grad)
                    elif edge.seq < ahead.seq:
                        pending[edge] = grad
                        heappush(queue, (-edge.seq, edge))
                    else:
                        pending[ahead] = g
                        heappush(queue, (-ahead.seq, ahead))
                        ahead, g = edge, grad
                grads = grad = None  # they would count as references to a gradient
        except BaseException as error:
            if node is not None:
                error.add_note(f"In the backward pass, at {made_at(node)}.")
            if isinstance(error, InPlaceError):
                remember_failure(roots, error)
            raise

    def by_namespace(self, walk: Callable[[], None]) -> Callable[[], None]:
        """Return what walks as the namespace of the cotangents wants it, if no mode looks on."""
        g = next(iter(self.pending.values()), None)
        if g.__class__ is dict:
            g = next(iter(g.values()))
        if isinstance(g, Tensor):
            g = g._array
        if g is None or g.__class__ is ndarray:
            return walk
        state = current_modes()
        if state is not None and state.special:
            return walk
        return functools.partial(namespace(g).walk, self, walk)

    def capture_only(
        self, targets: Sequence[tuple[Node, int]], *, run_leaves: bool = False, earliest: int = 0
    ) -> None:
        """Run only the nodes between the pending roots and `targets`, and capture the targets.

        Collective nodes run as well, if they were recorded after the first of the targets. With
        `earliest`, no node of a lower number runs, which separates targets that lead to each
        other.
        """
        captures: dict[Node, list[tuple[int, int]]] = {}
        self.captured, self.captures = {}, captures
        first = sys.maxsize
        for key, (node, index) in enumerate(targets):
            captures.setdefault(node, []).append((index, key))
            if node.seq < first:
                first = node.seq
        nodes, all_lead = reachable_with(captures, self.pending, earliest or first)
        if collective_nodes:
            collective = set(filter(is_collective, nodes))
            if self.xp is not None:
                capture_constants(captures, collective)
            running = leading(nodes, captures.keys() | collective) | collective
        elif all_lead:
            running = nodes.difference([n for n in captures if not (n.edges and leads(n, nodes))])
        else:
            running = leading(nodes, captures)
        self.receiving = running.union(captures)
        if run_leaves:
            running.update(node for node in captures if type(node) is AccumulateGrad)
        self.running = running

    def unclaimed(self) -> list[Tensor]:
        """Return the recorded cotangents that were captured, but are not of a target."""
        return [g for key, g in self.captured.items() if key < 0 and g.requires_grad]

    def reached(self, nodes: Collection[Node]) -> set[Node]:
        """Return those of `nodes` that this pass reaches."""
        reached = reachable(self.roots, min((node.seq for node in nodes), default=0))
        if self.receiving is not None:
            reached &= self.receiving
        return reached.intersection(nodes)

    def needs(self, edge: Edge) -> bool:
        """Return whether this pass needs the cotangent of the output that `edge` leads to."""
        if edge is None:
            return False
        return self.receiving is None or endpoint(edge)[0] in self.receiving

    # --- helpers of nodes ---

    def restore(
        self, grads: Sequence[Any], originals: tuple[tuple[tuple[int, ...], Any], ...]
    ) -> tuple[Any, ...]:
        """Undo broadcasting and promotion: return cotangents of the inputs' shapes and dtypes."""
        return tuple(
            [
                g if g is None else self.unbroadcast(g, shape, dtype)
                for g, (shape, dtype) in zip(grads, originals, strict=True)
            ]
        )

    def unbroadcast(self, g: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return a cotangent summed to `shape`, cast to `dtype`."""
        if g.shape != shape:
            g = sum_to(self.xp or namespace(g), g, shape)
        if g.dtype != dtype:
            if g.dtype.kind == "c" and dtype.kind != "c":
                g = (self.xp or namespace(g)).real(g)
            g = g.astype(dtype) if self.xp is None else self.xp.astype(g, dtype)
        return g

    # --- hooks ---

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call what may run code of users, which a trace watches."""
        return function(*args) if self.watched is None else self.watched(function, *args)

    def conjugate(self, g: Any) -> Any:
        """Turn a cotangent of the bilinear pairing into PyTorch's gradient ∂L/∂z*, or back."""
        return g if g.dtype.kind != "c" else (self.xp or namespace(g)).conj(g)

    def show(self, g: Any) -> Tensor:
        """Return a cotangent as a gradient tensor that a hook may write to."""
        gradient = self.conjugate(g)
        if self.xp is None:
            return make(namespace(g).array(g) if gradient is g else gradient, None)
        copy: Tensor = elementwise.clone.apply(gradient)
        return copy

    def take(self, grad: Tensor) -> Any:
        """Return the cotangent of a gradient given by a user."""
        return self.conjugate(grad if self.xp is not None else grad._array)

    def _run_pre_hooks(self, node: Node, g: Any) -> Any:
        """Run tensor hooks, captures, pre-hooks and retained gradients: SEMANTICS 44."""
        hooks = node.hooks
        parts = g if g.__class__ is dict else {0: g}
        if hooks is not None:
            for index, registered in hooks.tensor.items():
                for hook in list(registered.values()):
                    if index in parts:
                        parts[index] = self._call_hook(hook, parts[index])
                    elif isinstance(hook, PassHook):
                        hook(None, self)
        for index, key in self.captures.get(node, ()):
            if index in parts:
                self.captured[key] = parts[index]
        if hooks is not None and (self.receiving is None or node in self.running):
            for hook in list(hooks.pre.values()):
                shown = [
                    self.show(parts[i]) if i in parts else None for i in range(node.output_count)
                ]
                values = replacements(hook, hook(tuple(shown)), shown)
                if values is not None:
                    parts = {i: self.take(v) for i, v in enumerate(values) if v is not None}
            for index, reference in hooks.retained.items() if self.retaining else ():
                tensor = reference()
                if tensor is not None and index in parts:
                    self.add_to_grad(tensor, parts[index], False)
        if g.__class__ is dict:
            return parts or None
        return parts.get(0)  # None if a pre-hook stopped it

    def _call_hook(self, hook: Callable[..., Any], g: Any) -> Any:
        shown = self.show(g)
        result = hook(shown, self) if isinstance(hook, PassHook) else hook(shown)
        if result is None:
            return self.take(shown)
        if not isinstance(result, Tensor):
            raise ArgumentTypeError(
                f"a hook must return a Tensor or None, but {name_of(hook)} returned "
                f"{type(result).__name__}"
            )
        check_replacement(hook, result, shown)
        return self.take(result)

    def _run_post_hooks(self, node: Node, grads: Sequence[Any], g: Any) -> Sequence[Any]:
        """Run the hooks ``hook(grad_inputs, grad_outputs)`` of a node that has run."""
        assert node.hooks is not None
        parts = g if g.__class__ is dict else {0: g}
        outputs = tuple(
            self.show(parts[i]) if i in parts else None for i in range(node.output_count)
        )
        positions = node.tensor_inputs(len(grads))
        for hook in list(node.hooks.post.values()):
            shown = [None if grads[i] is None else self.show(grads[i]) for i in positions]
            values = replacements(hook, hook(tuple(shown), outputs), shown)
            if values is not None:
                grads = list(grads)
                for i, value in zip(positions, values, strict=True):
                    grads[i] = None if value is None else self.take(value)
        return grads

    def _special_vjp(self, node: Node, g: Any) -> Sequence[Any]:
        """Run a node in anomaly mode, or in a trace."""
        if self.anomaly:
            from chainrule.autograd import anomaly

            return anomaly.checked_vjp(self, node, g)
        if node.runs_user_code:
            grads: Sequence[Any] = self._call(node.vjp, g, self)
            return grads
        return node.vjp(g, self)

    # --- leaves ---

    def _accumulated(self, node: AccumulateGrad, leaf: Tensor | None, g: Any) -> None:
        """Run the hooks that follow the accumulation into a leaf's `.grad`."""
        run_post_accumulate(node, leaf)
        assert node.hooks is not None
        if node.hooks.post:
            self._run_post_hooks(node, (), g)

    def _flush_leaves(self, leaves: dict[AccumulateGrad, Any]) -> None:
        """Add to the `.grad` of these leaves; queue those that have hooks by now."""
        node = None
        try:
            with write_log.accumulating:
                while leaves:
                    node, g = leaves.popitem()
                    leaf = node._variable()
                    if node.hooks is not None:
                        self.accumulate(node, g)
                    elif leaf is not None and leaf._node is not None:  # else it was frozen since
                        alone = count_references(g) <= ALONE  # on its own: as above
                        self._add(leaf, g, alone)
        except BaseException as error:
            if node is not None:
                error.add_note(f"In the backward pass, at {made_at(node)}.")
            raise

    def add_to_grad(self, tensor: Tensor, g: Any, alone: bool) -> None:
        """Add a cotangent to `tensor.grad`; `alone` says that nothing else holds it."""
        with write_log.accumulating:
            self._add(tensor, g, alone)

    def _add(self, tensor: Tensor, g: Any, alone: bool) -> None:
        """Add to `tensor.grad` under the lock: in place, or out of place when recording."""
        array = tensor._array
        dtype = array.dtype
        if g.dtype is not dtype:
            g, alone = self.unbroadcast(g, array.shape, dtype), False
        if dtype.kind == "c":
            g = self.conjugate(g)
        grad = tensor._grad
        if self.xp is not None:
            tensor._grad = recorded_in_order_of(array, g, False) if grad is None else grad + g
        elif grad is None:
            if g.__class__ is not ndarray or not g.flags.c_contiguous:
                g, alone = in_order_of(array, g, alone)
            tensor._grad = make(owned(g, alone), None)
        else:
            total = grad._array
            shared = total.base is not None or count_references(total) > ALONE + 1
            if shared and getattr(total.flags, "writeable", True):  # CuPy's have no such flag
                # otherwise nothing has saved it, or the memory that it is a view of
                record_write(total, "accumulation into .grad")
            try:
                total += g
            except ValueError:
                raise InPlaceError(_UNWRITABLE) from None


_UNWRITABLE = (
    "the .grad that was assigned can't be added to: its memory is read-only, or expanded "
    "(unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location). Please clone() it before assigning it."
)
