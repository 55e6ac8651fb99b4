"""A function applied to tensors of its own: what came out, and the ways there and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule import pytree
from chainrule.arguments import cast, tensor_of
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.forward import jvp_through, tracked
from chainrule.autograd.modes import enable_grad, is_grad_enabled
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import GradientEdge, endpoint
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.views import current_node
from chainrule.errors import DTypeError, ShapeError


class FunctionCall:
    """One call of a function whose derivatives are asked for.

    The function gets tensors that only this call knows, connected to the history of what it was
    given. So what it closes over is not mistaken for that, and calls nest. Results have a history
    where they depend on anything else that requires grad, and the caller records.
    """

    def __init__(self, title: str, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        recording = is_grad_enabled()
        primals = [primal(title, path, leaf) for path, leaf in pytree.leaves(list(arguments))]
        with enable_grad():
            self.inputs = [tracked(x) for x in primals if x is not None]
            self.arguments = pytree.rebuilt(list(arguments), self.inputs)
            self.result = function(*self.arguments)
        leaves = [leaf for _, leaf in pytree.leaves(self.result)]
        self.places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self.outputs: list[Tensor] = [leaves[i] for i in self.places]
        self._jvp, beyond = jvp_through(self.inputs, self.outputs)
        # Edges, not tensors: a map in which a pass is made has other faces of these.
        self._ends = [_edge(t) for t in self.outputs]
        self._starts = [_edge(t) for t in self.inputs]
        self._recording, self._history = recording, recording and beyond

    def _recorded(self, directions: Sequence[Tensor | None]) -> bool:
        if self._history:
            return True
        return self._recording and any(d is not None and d.requires_grad for d in directions)

    def vjp(self, cotangents: Sequence[Tensor | None], *, again: bool = True) -> list[Tensor]:
        """Return cotangents of the inputs for those of the outputs: once, if not `again`."""
        pairs = zip(self._ends, cotangents, strict=True)
        chosen = [(end, g) for end, g in pairs if g is not None and end is not None]
        grads: Sequence[Any] = [None] * len(self.inputs)
        if chosen and self.inputs:
            roots, gs = zip(*chosen, strict=True)
            create = self._recorded(gs)
            grads = autograd_grad(roots, self._starts, gs, again or create, create, True)
        return [
            TENSOR_XP.zeros_like(x.detach()) if g is None else g
            for x, g in zip(self.inputs, grads, strict=True)
        ]

    def jvp(self, tangents: Sequence[Tensor | None]) -> list[Tensor]:
        """Return tangents of the outputs for those of the inputs."""
        return self._jvp(tangents, self._recorded(tangents))

    def value(self, tangents: Sequence[Tensor | None] = ()) -> Any:
        """Return what the function returned: with a history, where its derivatives have one."""
        if self._recorded(tangents):
            return self.result
        return self.like_result([t.detach() for t in self.outputs], keep=True)

    def like_result(self, tensors: Sequence[Any], *, keep: bool) -> Any:
        """Return the structure of the result with these in the place of its tensors.

        What is no tensor stays, if it's to be kept, or is None.
        """
        parts = [leaf if keep else None for _, leaf in pytree.leaves(self.result)]
        for place, tensor in zip(self.places, tensors, strict=True):
            parts[place] = tensor
        following = iter(parts)
        return pytree.mapped(self.result, lambda leaf: next(following))


def _edge(tensor: Tensor) -> Any:
    node = current_node(tensor)
    return None if node is None else GradientEdge(*endpoint(node))


def primal(title: str, path: str, leaf: Any) -> Tensor | None:
    """Return what is differentiated by, as a tensor; None stays."""
    if leaf is None:
        return None
    x = tensor_of(leaf)
    if x.dtype.kind not in "fc":
        raise DTypeError(
            f"{title}: a primal must be floating or complex, got {x.dtype} at arguments{path}: "
            "write 2.0 for 2, or take to(cr.float32) of it"
        )
    return x


def listed(arguments: Any) -> list[Any]:
    """Return the arguments of a function: what is no tuple or list is the only one."""
    return list(arguments) if isinstance(arguments, tuple | list) else [arguments]


def directions(title: str, like: Any, given: Any, *, back: bool = False) -> list[Tensor | None]:
    """Return the tangents, or going back cotangents, that belong to the tensors of a tree."""
    own, other = ("outputs", "cotangents") if back else ("primals", "tangents")
    return [
        None if t is None else _fitting(title, x, t, f"a {other[:-1]}", f"its {own[:-1]}")
        for x, t in _pairs(title, like, given, own, other)
    ]


def _pairs(title: str, like: Any, given: Any, own: str, other: str) -> Iterator[tuple[Tensor, Any]]:
    for path, x, t in pytree.beside(like, given):
        if pytree.children(x) is not None or pytree.children(t) is not None:
            raise TypeError(
                f"{title}: {own} and {other} must have the same structure: at {own}{path} is "
                f"{_said(x)}, at {other}{path} {_said(t)}"
            )
        if isinstance(x, Tensor):
            yield x, t


def _fitting(title: str, x: Tensor, given: Any, kind: str, like: str) -> Tensor | None:
    """Return a direction as a tensor of the dtype that it has to have; None for an integer's."""
    _, t = as_tensors((x, given))
    if x.shape != t.shape:
        raise ShapeError(
            f"{title}: {kind} has the shape of {like}: got {list(t.shape)}, expected "
            f"{list(x.shape)}"
        )
    if x.dtype.kind not in "fc":
        return None
    if t.dtype.kind == "c" and x.dtype.kind == "f":
        raise DTypeError(
            f"{title}: {kind} is real where {like} is: got {t.dtype} for {x.dtype}. Take .real, or "
            f"make {like} complex"
        )
    return cast(t, x.dtype)


def _said(part: Any) -> str:
    parts = pytree.children(part)
    return f"a {type(part).__name__}" + ("" if parts is None else f" of {len(parts)}")


def parted(title: str, function: Any, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return what a function returns to be differentiated, and what it returns besides."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{title}(has_aux=True): expected {named(function)} to return a pair, what is "
            f"differentiated and what is handed through, but got {_said(result)}"
        )
    return result


def named(function: Any) -> str:
    """Return how an error calls a function."""
    code = getattr(function, "__code__", None)
    name: str = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
