"""Forward mode with dual tensors, under the names of `torch.autograd.forward_ad`.

Tangents are propagated when they are asked for, through the graph that was recorded since the dual
tensors were made.
"""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import Any, NamedTuple

from chainrule.autograd.forward import nodes_between, propagate_tangents, tracked
from chainrule.autograd.modes import enable_grad, is_grad_enabled, no_grad, run_in
from chainrule.autograd.node import Node, endpoint
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.views import current_node
from chainrule.errors import AutogradError, DTypeError, ShapeError
from chainrule.interrupts import errstate
from chainrule.primitives import elementwise

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns."""

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual tensors of a level: their nodes, and the tangents that are known."""

    def __init__(self, outer: _Level | None) -> None:
        self.outer = outer
        self.recording = enable_grad()  # tangents go through what is recorded
        self.seeds: set[Node] = set()
        self.done: set[Node] = set()
        self.tangents: dict[Any, Tensor] = {}
        self.recorded = False  # whether tangents have derivatives

    def tangent_of(self, tensor: Tensor) -> tuple[Tensor | None, bool]:
        """Return the tangent of a tensor, and whether the tensor has other derivatives, too."""
        end = current_node(tensor)
        if end is None or not self.seeds:
            return None, False
        reached, has_other_sources = nodes_between([tensor], self.seeds)
        recorded = self.recorded or has_other_sources
        nodes = sorted(reached - self.seeds - self.done, key=lambda node: node.seq)
        mode = enable_grad() if recorded else no_grad()
        run_in(mode, errstate(all="ignore")(propagate_tangents), nodes, self.tangents)
        self.done.update(nodes)  # the rule of a node is called once: it may free what it saved
        return self.tangents.get(endpoint(end)), recorded


_LEVEL: ContextVar[_Level | None] = ContextVar("level of dual tensors", default=None)


def enter_dual_level() -> int:
    """Begin a level, in which dual tensors can be made; return its number.

    Operations are recorded in it, also within `no_grad` around it.

    Examples
    --------
    >>> level = enter_dual_level()
    >>> exit_dual_level(level=level)
    """
    level = _Level(_LEVEL.get())
    level.recording.__enter__()
    _LEVEL.set(level)
    return _depth(level) - 1


def exit_dual_level(*, level: int | None = None) -> None:
    """End a level, the innermost one if left out: its dual tensors lose their tangents.

    Raises
    ------
    AutogradError
        If there is no such level, or it isn't the innermost one.
    """
    innermost = _LEVEL.get()
    if innermost is None or (level is not None and level != _depth(innermost) - 1):
        raise AutogradError(
            "exit_dual_level: Trying to exit a forward AD level that was not the last one that was "
            "created. This is not supported."
        )
    _LEVEL.set(innermost.outer)
    innermost.recording.__exit__(None, None, None)


def _depth(level: _Level | None) -> int:
    depth = 0
    while level is not None:
        depth, level = depth + 1, level.outer
    return depth


class dual_level(contextlib.ContextDecorator):
    """A context manager, and decorator, of a level in which dual tensors can be made.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.autograd import forward_ad
    >>> with forward_ad.dual_level():
    ...     x = forward_ad.make_dual(cr.tensor(3.0), cr.tensor(1.0))
    ...     forward_ad.unpack_dual(x * x)
    UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
    """

    def __enter__(self) -> dual_level:
        enter_dual_level()
        return self

    def __exit__(self, *details: object) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor with the values of `tensor` and a tangent, for forward mode.

    Parameters
    ----------
    tensor : Tensor, floating or complex
        The primal. Its history is kept.
    tangent : Tensor
        Of its shape and dtype.
    level : int, optional
        As in PyTorch: the innermost level is used.

    Returns
    -------
    Tensor
        A copy, with a node of its own: ``requires_grad`` is True.

    Raises
    ------
    AutogradError
        Outside of a level, or within a `no_grad` in it: the operations would have no tangents.
    ShapeError, DTypeError
        If the tangent doesn't fit the primal, or the primal is of integers.
    """
    current = _LEVEL.get()
    if current is None:
        raise AutogradError(
            "make_dual: Trying to create a dual Tensor for forward AD but no level exists, make "
            "sure to enter_dual_level() first, or say `with dual_level():`"
        )
    if not is_grad_enabled():
        raise AutogradError(
            "make_dual: operations aren't recorded here, so that results would have no tangents: "
            "put `with no_grad():` around `with dual_level():`, not into it"
        )
    if tensor.dtype.kind not in "fc" or tangent.dtype != tensor.dtype:
        raise DTypeError(
            "make_dual: expected a floating or complex tensor and a tangent of its dtype, got "
            f"{tensor.dtype} and {tangent.dtype}"
        )
    if tensor.shape != tangent.shape:
        raise ShapeError(
            "make_dual: expected tensor and tangent to have the same size, but got tensor of shape "
            f"{list(tensor.shape)} and tangent of shape {list(tangent.shape)}"
        )
    seed = tracked(tensor)
    edge = endpoint(current_node(seed))
    current.seeds.add(edge[0])
    current.tangents[edge] = tangent
    current.recorded |= tensor.requires_grad or tangent.requires_grad
    # A leaf that requires grad couldn't be written to.
    return seed if tensor.requires_grad else elementwise.clone.apply(seed)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the value of a tensor without its tangent, and its tangent.

    Parameters
    ----------
    tensor : Tensor
        A dual tensor, or one computed from dual tensors.
    level : int, optional
        As in PyTorch: the innermost level is used.

    Returns
    -------
    named tuple
        ``primal``, and ``tangent``: None if the tensor doesn't depend on a dual tensor, or outside
        of the level. Both have a history if the primals or tangents had one.
    """
    current = _LEVEL.get()
    if current is None:
        return UnpackedDualTensor(tensor, None)
    tangent, recorded = current.tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(tensor if recorded else tensor.detach(), tangent)
