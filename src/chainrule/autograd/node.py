"""The graph: nodes, their edges and their hooks.

The graph holds nodes, never tensors. A tensor points at the node that made it; a node points at the
nodes of its inputs and keeps the arrays that its rules need. `seq` numbers nodes in order of
creation, so inputs come before outputs, and a backward pass takes the reverse order. Edges lead to
a node, or to a `NodeOutput` of a node with several outputs.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from chainrule.autograd.location import Location, locate
from chainrule.autograd.versions import (
    is_overwritten,
    next_seq,
    version_at,
    version_of,
    writes_since,
)
from chainrule.errors import AutogradError, FreedGraphError, InPlaceError

if TYPE_CHECKING:
    from chainrule.autograd.reverse import BackwardPass
    from chainrule.autograd.tensor import Tensor

# --- hooks ----------------------------------------------------------------------------------------


class HookDict(OrderedDict[int, Callable[..., Any]]):
    """Hooks of one kind by number, in the order in which they are called."""


class Hooks:
    """All hooks of a node, each kind in order of registration."""

    __slots__ = ("failure", "metadata", "post", "post_accumulate", "pre", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, HookDict] = {}  # by output index
        self.pre = HookDict()
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        self.post_accumulate = HookDict()
        self.post = HookDict()
        self.metadata: dict[str, Any] = {}  # set by users
        self.failure: Exception | None = None  # of the pass that released the saved values

    def of(self, index: int) -> HookDict:
        """Return the hooks of an output; create an empty dict if there are none."""
        return self.tensor.setdefault(index, HookDict())


class RemovableHandle:
    """Handle of a registered hook: `remove()`, or the end of its `with` block, removes the hook.

    It does not keep the hook alive: the node does.
    """

    __slots__ = ("hooks_dict_ref", "id")

    def __init__(self, hooks: HookDict, hook: Callable[..., Any], prepend: bool = False) -> None:
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = next_seq()
        hooks[self.id] = hook
        if prepend:
            hooks.move_to_end(self.id, last=False)

    def remove(self) -> None:
        """Remove the hook; removing it twice is fine."""
        hooks = self.hooks_dict_ref()
        if hooks is not None:
            hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *details: object) -> None:
        self.remove()


# --- node -----------------------------------------------------------------------------------------

Array = Any
Edge = Any  # Node | NodeOutput | None


class NodeName(str):
    """A node's name: `grad_fn.name`, and `grad_fn.name()` as PyTorch spells it."""

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


class Node:
    """One recorded application of a primitive or custom function."""

    __slots__ = ("__weakref__", "code", "edges", "hooks", "instruction", "seq")

    edges: tuple[Edge, ...]
    seq: int
    hooks: Hooks | None
    code: CodeType | None
    instruction: int
    runs_user_code = True  # whether `vjp` may

    def vjp(self, g: Any, run: BackwardPass) -> Sequence[Any]:
        """Return the cotangents of the inputs, given that of the output (a list of several)."""
        raise AssertionError(f"{type(self).__name__} is abstract")

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        """Return the tangent of the output (a tuple of several), given those of the inputs."""
        raise AutogradError(f"forward mode can't go through {self.name}")

    @property
    def is_step(self) -> bool:
        """Whether the derivative is zero: the operation is piecewise constant."""
        return False

    @property
    def output_count(self) -> int:
        """Number of outputs of the operation."""
        return 1

    def output_edge(self, index: int) -> Edge:
        """Return the edge to one output."""
        return self if self.output_count == 1 else NodeOutput(self, index)

    def tensor_inputs(self, count: int) -> Sequence[int]:
        """Return the indices of the inputs, `count` in all, that are tensors: hooks see these."""
        return range(count)

    @property
    def name(self) -> str:
        """The name as in PyTorch, such as ``MulBackward0``."""
        return NodeName(type(self).__name__)

    @property
    def location(self) -> Location | None:
        """The line of user code that made this node."""
        return locate(self.code, self.instruction)

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """One ``(node, output index)`` for each input, ``(None, 0)`` where none needs grad."""
        pairs = [(edge, 0) if isinstance(edge, Node) else _endpoint(edge) for edge in self.edges]
        return tuple((None if node is None else node.shown(), index) for node, index in pairs)

    def shown(self) -> Node:
        """Return this node as users see it."""
        return self

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for users, which lives as long as the node."""
        return hooks_of(self).metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_inputs, grad_outputs)`` after this node ran, to see or replace them."""
        return RemovableHandle(hooks_of(self).post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(grad_outputs)`` before this node runs; it may replace grad_outputs."""
        return RemovableHandle(hooks_of(self).pre, hook)

    def __repr__(self) -> str:
        return f"<{self.name}>"


collective_nodes: set[weakref.ref[Node]] = set()
"""Nodes whose derivative other processes take part in, and wait for; nearly always none.

A pass for some inputs runs those that it reaches and that were recorded after the first input, also
where none of the inputs depends on them.
"""


def add_collective(node: Node) -> None:
    """Add a node to `collective_nodes`, for as long as it lives."""
    collective_nodes.add(weakref.ref(node, collective_nodes.discard))


def is_collective(node: Node) -> bool:
    """Return whether other processes take part in the derivative of a node."""
    return bool(collective_nodes) and weakref.ref(node) in collective_nodes


class GradientEdge(NamedTuple):
    """A tensor's node and output number: the tensor's position in the graph."""

    node: Node
    output_nr: int


class NodeOutput:
    """One output of a node with several: the target of an edge."""

    __slots__ = ("index", "node")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index


def _endpoint(edge: NodeOutput | None) -> tuple[Node | None, int]:
    return (None, 0) if edge is None else (edge.node, edge.index)


def endpoint(edge: Edge) -> tuple[Node, int]:
    """Return the node and the output index that an edge leads to."""
    return (edge.node, edge.index) if type(edge) is NodeOutput else (edge, 0)


def reachable(roots: Iterable[Node], earliest: int = 0) -> set[Node]:
    """Return the nodes that the roots lead to, and the roots, numbered `earliest` or later."""
    reached = {node for node in roots if node.seq >= earliest}
    stack = list(reached)
    while stack:
        for edge in stack.pop().edges:
            if edge is not None:
                node: Any = edge.node if type(edge) is NodeOutput else edge
                if node not in reached and node.seq >= earliest:
                    reached.add(node)
                    stack.append(node)
    return reached


def hooks_of(node: Node) -> Hooks:
    """Return the node's hooks; create them if there are none."""
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks


def _dead_reference() -> None:
    """Return None, as a weak reference to a dead object does."""


class AccumulateGrad(Node):
    """The node of a leaf: adds the gradients that arrive to the leaf's `.grad`.

    The leaf holds its node, and the node only a weak reference to the leaf: no cycle. It is
    `private` if a transform made it as the argument of its function, and nobody else knows it.
    """

    __slots__ = ("_variable", "private")

    _variable: Callable[[], Tensor | None]
    private: bool
    edges = ()

    def __init__(self, leaf: Tensor) -> None:
        self._variable = weakref.ref(leaf)
        self.private = False
        self.seq = next_seq()
        self.hooks = None
        self.code = None
        self.instruction = 0

    @property
    def variable(self) -> Tensor | None:
        """The leaf, or None if it no longer exists."""
        return self._variable()

    def forget(self) -> None:
        """Drop the leaf: gradients that arrive from now on are discarded."""
        self._variable = _dead_reference


class ErrorNode(Node):
    """A node of unknown derivative: a backward pass that arrives here raises its reason."""

    __slots__ = ("reason",)

    def __init__(self, reason: str, edges: tuple[Edge, ...]) -> None:
        self.reason = reason
        self.edges = edges  # what the unknown derivative depends on
        self.seq = next_seq()
        self.hooks = None
        self.code = None
        self.instruction = 0

    def vjp(self, g: Any, run: BackwardPass) -> Sequence[Any]:
        raise AutogradError(self.reason)

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        raise AutogradError(self.reason)


# --- errors of saved values -----------------------------------------------------------------------


def freed_error(node: Node | None) -> AutogradError:
    """Return the error for a second pass over released values."""
    if node is not None and node.hooks is not None and node.hooks.failure is not None:
        return InPlaceError(str(node.hooks.failure))
    values = "" if node is None else f" The values freed were those of {made_at(node)}."
    return FreedGraphError(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed "
        "when you call .backward() or autograd_grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after "
        "calling backward. In a loop, detach() what is carried over from an earlier pass, as in "
        f"h = h.detach() or total += loss.detach(), or compute it anew.{values}"
    )


def made_at(node: Node) -> str:
    """Return the node's name and the line of user code that made it, for an error message."""
    return node.name if node.location is None else f"{node.name}, made at {node.location}"


def check_unwritten(node: Node, array: Array, source: Edge, position: int) -> None:
    """Raise if the memory of `array`, which `node` saved from `source`, was written since."""
    writes = writes_since(array, node.seq)
    if not is_overwritten(array, writes):
        return
    origin, index = (None, 0) if source is None else endpoint(source)
    if origin is None:
        output = f", saved value {position} of {node.name},"
    elif type(origin) is AccumulateGrad:
        output = ", which is a leaf,"
    else:
        output = f", which is output {index} of {origin.name},"
    writers = "; ".join(f"{name} at {locate(code, at)}" for _, name, code, at, _ in writes[:3])
    hint = mend_of_write(writes[0][1])
    raise InPlaceError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{array.dtype.name.capitalize()} {list(array.shape)}]{output} is at version "
        f"{version_of(array)}; expected version {version_at(array, node.seq)} instead. Hint: "
        f"{hint}; detect_anomaly() helps to find where a "
        f"gradient goes wrong. The value was saved for the backward of {made_at(node)}, and then "
        f"written by {writers}."
    )


def mend_of_write(operation: str) -> str:
    """Return what to do instead of an in-place write of a value that a backward pass needs."""
    if operation.endswith(".step"):
        return (
            "call backward() before the step that changes the parameters, or compute the loss anew "
            "after it; what is carried over to the next step needs detach()"
        )
    if operation == "setitem":
        return (
            "read what is written later from a clone(), as in x[i].clone(), or put the parts into "
            "a list and join them with cr.stack()"
        )
    return "compute out of place, or write to a clone()"


def unused_text(target: Any, name: Any) -> str:
    """Return the message about an input, or the edge to one, that no output depends on."""
    is_edge = isinstance(target, GradientEdge)
    named = target.node.name if is_edge else f"shape {list(target.shape)}"
    text = (
        "One of the differentiated Tensors appears to not have been used in the graph. Set "
        f"allow_unused=True if this is the desired behavior. It is input {name!r}, of {named}: no "
        "recorded operation leads from it to the outputs."
    )
    if is_edge or target.grad_fn is None:
        return text
    return (
        f"{text} It is a new tensor, the result of {made_at(target.grad_fn)}: compute the outputs "
        "from it, or take the gradient by what it was made of, and the part of that"
    )
