"""Calls of functions to differentiate: their results, JVPs and VJPs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule import pytree
from chainrule.arguments import cast, tensor_of
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.forward import jvp_through, tracked
from chainrule.autograd.modes import enable_grad
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.node import GradientEdge, endpoint
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.record import current_node, is_recording
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError, ShapeError


class FunctionCall:
    """One call of a function to differentiate.

    The function gets new tensors, connected to the history of the arguments. So tensors that it
    closes over are not mistaken for its arguments, and calls nest. Results have a history where
    they depend on anything else that requires grad and the caller records.
    """

    def __init__(self, title: str, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        recording = is_recording()
        primals = [primal(title, path, leaf) for path, leaf in pytree.leaves(list(arguments))]
        with enable_grad():
            self.inputs = [tracked(x) for x in primals if x is not None]
            self.arguments = pytree.with_leaves(list(arguments), self.inputs)
            self.result = function(*self.arguments)
        leaves = [leaf for _, leaf in pytree.leaves(self.result)]
        self.tensor_positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        self.outputs: list[Tensor] = [leaves[i] for i in self.tensor_positions]
        self._jvp, has_outer_history = jvp_through(self.inputs, self.outputs)
        # Edges, not tensors: within vmap, a backward pass sees other proxies of the tensors.
        self._output_edges = [_edge(t) for t in self.outputs]
        self._input_edges = [_edge(t) for t in self.inputs]
        self._recording, self._history = recording, recording and has_outer_history

    def _is_recorded(self, directions: Sequence[Tensor | None]) -> bool:
        if self._history:
            return True
        return self._recording and any(d is not None and d.requires_grad for d in directions)

    def vjp(
        self, cotangents: Sequence[Tensor | None], *, retain_graph: bool = True
    ) -> list[Tensor]:
        """Return cotangents of the inputs for those of the outputs; only once, if not retained."""
        pairs = zip(self._output_edges, cotangents, strict=True)
        chosen = [(end, g) for end, g in pairs if g is not None and end is not None]
        grads: Sequence[Any] = [None] * len(self.inputs)
        if chosen and self.inputs:
            roots, gs = zip(*chosen, strict=True)
            create = self._is_recorded(gs)
            grads = autograd_grad(
                roots, self._input_edges, gs, retain_graph or create, create, True
            )
        return [
            TENSOR_XP.zeros_like(x.detach()) if g is None else g
            for x, g in zip(self.inputs, grads, strict=True)
        ]

    def jvp(self, tangents: Sequence[Tensor | None]) -> list[Tensor]:
        """Return tangents of the outputs for those of the inputs."""
        return self._jvp(tangents, self._is_recorded(tangents))

    def value(self, tangents: Sequence[Tensor | None] = ()) -> Any:
        """Return the function's result, with a history where its derivatives have one."""
        if self._is_recorded(tangents):
            return self.result
        return self.like_result([t.detach() for t in self.outputs], keep=True)

    def like_result(self, tensors: Sequence[Any], *, keep: bool) -> Any:
        """Return the structure of the result with its tensors replaced.

        Other leaves stay if `keep`, else they become None.
        """
        parts = [leaf if keep else None for _, leaf in pytree.leaves(self.result)]
        for position, tensor in zip(self.tensor_positions, tensors, strict=True):
            parts[position] = tensor
        following = iter(parts)
        return pytree.map_leaves(self.result, lambda leaf: next(following))


def _edge(tensor: Tensor) -> Any:
    node = current_node(tensor)
    return None if node is None else GradientEdge(*endpoint(node))


def primal(title: str, path: str, leaf: Any) -> Tensor | None:
    """Return an argument to differentiate by as a tensor; None stays."""
    if leaf is None:
        return None
    x = tensor_of(leaf)
    if x.dtype.kind not in "fc":
        raise DTypeError(
            f"{title}: a primal must be floating or complex, got {x.dtype} at arguments{path}: "
            "write 2.0 for 2, or convert it with to(cr.float32)"
        )
    return x


def as_list(arguments: Any) -> list[Any]:
    """Return the arguments of a function as a list: a tuple or list of them, or a single one."""
    return list(arguments) if isinstance(arguments, tuple | list) else [arguments]


def directions(title: str, like: Any, given: Any, *, back: bool = False) -> list[Tensor | None]:
    """Return the tangents (or cotangents, if `back`) of the tensors of a tree, checked."""
    own, other = ("outputs", "cotangents") if back else ("primals", "tangents")
    return [
        None if t is None else _checked_direction(title, x, t, f"a {other[:-1]}", f"its {own[:-1]}")
        for x, t in _matching_leaves(title, like, given, own, other)
    ]


def _matching_leaves(
    title: str, like: Any, given: Any, own: str, other: str
) -> Iterator[tuple[Tensor, Any]]:
    for path, x, t in pytree.zip_leaves(like, given):
        if pytree.children(x) is not None or pytree.children(t) is not None:
            raise TypeError(
                f"{title}: {own} and {other} must have the same structure: at {own}{path} is "
                f"{_describe(x)}, at {other}{path} {_describe(t)}"
            )
        if isinstance(x, Tensor):
            yield x, t


def _checked_direction(title: str, x: Tensor, given: Any, kind: str, like: str) -> Tensor | None:
    """Return a tangent or cotangent as a tensor of the dtype of `x`; None for integers."""
    _, t = as_tensors((x, given))
    if x.shape != t.shape:
        raise ShapeError(
            f"{title}: {kind} must have the shape of {like}: got {list(t.shape)}, expected "
            f"{list(x.shape)}"
        )
    if x.dtype.kind not in "fc":
        return None
    if t.dtype.kind == "c" and x.dtype.kind == "f":
        raise DTypeError(
            f"{title}: {kind} must be real where {like} is: got {t.dtype} for {x.dtype}. Take "
            f".real, or make {like} complex"
        )
    return cast(t, x.dtype)


def _describe(part: Any) -> str:
    parts = pytree.children(part)
    return f"a {type(part).__name__}" + ("" if parts is None else f" of {len(parts)}")


def split_aux(title: str, function: Any, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return the differentiated part of a function's result, and the auxiliary part."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(
            f"{title}(has_aux=True): expected {title_of(function)} to return a pair, the "
            f"output to differentiate and auxiliary data, but got {_describe(result)}"
        )
    return result


def title_of(function: Any) -> str:
    """Return the name and the location of a function, for errors."""
    code = getattr(function, "__code__", None)
    name: str = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
