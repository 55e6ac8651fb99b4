"""Inspection of the graph, and hooks on it: PyTorch's `torch.autograd.graph`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from chainrule.autograd.modes import disable_saved_tensors_hooks, saved_tensors_hooks
from chainrule.autograd.node import GradientEdge, Node, RemovableHandle, endpoint, hooks_of
from chainrule.autograd.reverse import BackwardPass, PassHook
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import record_write
from chainrule.autograd.views import current_node
from chainrule.backend import CPU, move
from chainrule.errors import ArgumentError, AutogradError

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the node and the output number of a tensor: the edge along which its gradient arrives.

    It can replace the tensor among the `inputs` of `autograd_grad`, and does not keep its elements.

    Raises
    ------
    AutogradError
        If the tensor doesn't require grad.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> edge = cr.autograd.graph.get_gradient_edge(y)
    >>> edge.node.name, edge.output_nr
    ('MulBackward0', 0)
    >>> cr.autograd.grad(y * 5, edge)
    (tensor(5.),)
    """
    edge = current_node(tensor)
    if edge is None:
        raise AutogradError(
            "It is not possible to get the gradient edge of a Tensor that does "
            "not require gradients: call requires_grad_() on it before the computation"
        )
    return GradientEdge(*endpoint(edge))


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Record a write that chainrule did not see: values saved from that memory are stale.

    Parameters
    ----------
    tensor : Tensor or iterable of Tensors
        The tensors whose memory was written, for instance through NumPy.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0], requires_grad=True)
    >>> y = x * 2
    >>> z = y * y
    >>> y.detach().numpy()[0] = 7.0
    >>> cr.autograd.graph.increment_version(y)
    >>> z.backward()
    Traceback (most recent call last):
    chainrule.errors.InPlaceError: one of the variables needed for gradient computation has been...
    """
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        record_write(each._array, "increment_version")


class save_on_cpu(saved_tensors_hooks):
    """Keep the arrays that the graph saves in CPU memory, until the backward pass needs them.

    Parameters
    ----------
    pin_memory, device_type
        For compatibility with PyTorch; ignored.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0], requires_grad=True)
    >>> with cr.autograd.graph.save_on_cpu():
    ...     y = x.exp().sum()
    >>> y.backward()
    >>> x.grad
    tensor([2.7183, 7.3891])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(
            lambda tensor: (tensor.device, move(tensor._array, CPU)),
            lambda packed: make(move(packed[1], packed[0]), None),
        )


class allow_mutation_on_saved_tensors(saved_tensors_hooks):
    """Allow writes to tensors that the graph saves in the block: it saves copies.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0], requires_grad=True)
    >>> with cr.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 1
    ...     z = (y * y).sum()
    ...     _ = y.zero_()
    >>> z.backward()
    >>> x.grad
    tensor([2., 4.])
    """

    def __init__(self) -> None:
        super().__init__(lambda tensor: tensor.clone(), lambda tensor: tensor)


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Call a function once per backward pass, when the gradients of several tensors are computed.

    Parameters
    ----------
    tensors : sequence of Tensors
        Tensors that require grad.
    fn : callable
        In the mode "all", it gets a list of the gradients, None for tensors that the pass does not
        reach. In the mode "any", it gets the first gradient that arrives. Its result is ignored.
    mode : "all" or "any"
        Whether to wait for all gradients, or to take the first.

    Returns
    -------
    RemovableHandle
        ``remove()``, or the end of its ``with`` block, removes the hook.

    Raises
    ------
    ArgumentError
        If the mode is another.
    AutogradError
        If a tensor doesn't require grad.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor(2.0, requires_grad=True)
    >>> y = cr.tensor(3.0, requires_grad=True)
    >>> handle = cr.autograd.graph.register_multi_grad_hook([x, y], print)
    >>> (x * y).backward()
    [tensor(3.), tensor(2.)]
    """
    if mode not in ("all", "any"):
        raise ArgumentError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    ends = []
    for tensor in tensors:
        edge = current_node(tensor)
        if edge is None:
            raise AutogradError(
                "cannot register a hook on a tensor that doesn't require gradient: expected all "
                "tensors of register_multi_grad_hook to require it"
            )
        ends.append(endpoint(edge))
    group = _HookGroup(tuple([node for node, _ in ends]), fn, mode)
    return _GroupHandle(
        [
            RemovableHandle(hooks_of(node).of(index), _GroupMember(group, position))
            for position, (node, index) in enumerate(ends)
        ]
    )


class _HookGroup:
    """The hooks of one `register_multi_grad_hook`, with the gradients so far in each pass."""

    def __init__(self, nodes: tuple[Node, ...], fn: Callable[..., None], mode: str) -> None:
        self.nodes = nodes
        self.fn = fn
        self.mode = mode
        # By pass: the gradients so far, and the indices of those still to come.
        self.passes: WeakKeyDictionary[BackwardPass, tuple[list[Any], set[int]]] = (
            WeakKeyDictionary()
        )

    def receive(self, position: int, grad: Tensor | None, run: BackwardPass) -> None:
        state = self.passes.get(run)
        if self.mode == "any":
            if state is None and grad is not None:
                self.passes[run] = ([], set())
                self.fn(grad)
            return
        if state is None:
            reached = run.reached(self.nodes)
            expected = {i for i, node in enumerate(self.nodes) if node in reached}
            state = self.passes[run] = ([None] * len(self.nodes), expected)
        grads, missing = state
        grads[position] = grad
        missing.remove(position)
        if not missing:
            self.fn(grads)


class _GroupMember(PassHook):
    """The hook of one tensor of a group."""

    def __init__(self, group: _HookGroup, position: int) -> None:
        self.group = group
        self.position = position

    def __call__(self, grad: Tensor | None, run: BackwardPass) -> None:
        self.group.receive(self.position, grad, run)


class _GroupHandle(RemovableHandle):
    """The handle of all hooks of a group."""

    __slots__ = ("_handles",)

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
