"""Calls of custom functions on copies of their arguments, instrumented for the linter."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.context import Context
from chainrule.autograd.function import AutogradFunction
from chainrule.autograd.function_node import FunctionNode
from chainrule.autograd.node import Node, endpoint
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.checks.numerical import Array, Subject, evaluate, flat_numpy, tensor_like, vjp
from chainrule.checks.report import names_of
from chainrule.primitives import elementwise

Layout = Callable[[Tensor], Tensor]


class InstrumentedCall:
    """A custom function and its arguments, the floating ones in double precision.

    If no argument requires grad, all floating ones are made to.
    """

    def __init__(
        self, spec: AutogradFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.spec = spec
        self.keywords = tuple(kwargs)
        values = (*args, *kwargs.values())
        chosen = any(isinstance(v, Tensor) and v.requires_grad for v in values)
        self.values = tuple([_double(v, not chosen or _tracked(v)) for v in values])
        positional = inspect.signature(spec.function).bind_partial(*args)
        self.names = (*names_of(positional), *kwargs)
        self.left_out = [
            name
            for name, value in zip(self.names, self.values, strict=True)
            if isinstance(value, Tensor) and value.dtype.kind in "fc" and not _tracked(value)
        ]
        self.dirty: tuple[int, ...] = ()  # positions of the arguments that forward marks dirty

    @property
    def checked(self) -> list[int]:
        """The positions of the arguments that require grad."""
        return [i for i, value in enumerate(self.values) if _tracked(value)]

    def call(self, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        """Call `function` on these values, copying those that it writes to."""
        passed = list(values)
        for i in self.dirty:
            passed[i] = elementwise.clone.apply(passed[i])
        count = len(passed) - len(self.keywords)
        return function(*passed[:count], **dict(zip(self.keywords, passed[count:], strict=True)))

    def subject(
        self, function: Callable[..., Any] | None = None, alone: int | None = None
    ) -> Subject:
        """Return the function at its point; only the argument `alone`, if given, requires grad."""
        called = function or self.spec.function
        values = self.values
        if alone is not None:
            values = tuple(
                [
                    make(v._array, None).requires_grad_(i == alone) if isinstance(v, Tensor) else v
                    for i, v in enumerate(values)
                ]
            )
        return Subject(
            lambda *passed: self.call(called, passed), values, tuple(map(repr, self.names))
        )

    def gradients(self, subject: Subject, cotangents: dict[int, Array]) -> dict[int, Array]:
        """Return the gradients of one backward pass from all outputs."""
        return vjp(subject, evaluate(subject), cotangents)

    def references(self, backward: bool) -> tuple[weakref.ref[Node], weakref.ref[Context]]:
        """Call the function, and its backward if asked, and return weak references to the graph."""
        inputs = [self.values[i] for i in self.checked]
        outputs = evaluate(self.subject())
        node = node_of(outputs)
        assert node is not None
        if backward:
            roots = [o for o in outputs.values() if o.requires_grad]
            ones = [tensor_like(np.ones(o.numel()), o) for o in roots]
            autograd_grad(roots, inputs, ones, allow_unused=True)
        return weakref.ref(node), weakref.ref(node.ctx)


def _tracked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _double(value: Any, tracked: bool) -> Any:
    """Return a copy of a tensor, in double precision if it's floating; another value as it is."""
    if not isinstance(value, Tensor):
        return value
    array = value._array
    dtype = {"f": np.dtype(np.float64), "c": np.dtype(np.complex128)}.get(array.dtype.kind)
    copy = make(array.astype(dtype or array.dtype, copy=True), None)
    return copy.requires_grad_() if tracked and dtype is not None else copy


def node_of(outputs: dict[int, Tensor]) -> FunctionNode | None:
    """Return the node that the custom function recorded."""
    for output in outputs.values():
        if output._node is not None:
            node = endpoint(output._node)[0]
            if isinstance(node, FunctionNode):
                return node
    return None


def missing_gradients(
    outputs: dict[int, Tensor], cotangents: dict[int, Array], subject: Subject
) -> set[str]:
    """Return the names of the arguments that require grad and whose gradient is None."""
    node = node_of(outputs)
    if node is None:
        return set()
    seen: set[str] = set()
    names, edges = node.ctx._names, node.edges

    def hook(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> None:
        for i, edge in enumerate(edges):
            if edge is not None and (i >= len(grad_inputs) or grad_inputs[i] is None):
                seen.add(names[i])

    with node.register_hook(hook):
        vjp(subject, outputs, cotangents)
    return seen


# --- recording of side effects --------------------------------------------------------------------


class CallRecorder:
    """Side effects of a custom function: arguments and gradients by position, ctx by attribute."""

    def __init__(self) -> None:
        self.dirty: list[int] = []  # arguments that forward marks dirty
        self.modified_by_forward: list[int] = []
        self.modified_by_backward: list[int] = []
        self.ctx_tensors: list[str] = []  # attributes of ctx that hold tensors
        self.modified_gradients: list[int] = []
        self._arguments: list[Array] = []

    def function(self, spec: AutogradFunction, layout: Layout | None = None) -> Any:
        """Return the instrumented function; `layout` changes the layout of received gradients."""
        rule = spec.backward_rule
        assert rule is not None

        @functools.wraps(spec.forward)
        def forward(ctx: Context, *args: Any, **kwargs: Any) -> Any:
            values = (*args, *kwargs.values())
            with self._recording_changes(values, self.modified_by_forward):
                outputs = spec.forward(ctx, *args, **kwargs)
            self.dirty = [i for i, v in enumerate(values) if any(v is d for d in ctx._marks[0])]
            self._arguments = [make(v._array, None) if isinstance(v, Tensor) else v for v in values]
            self.ctx_tensors = [
                name
                for name, value in vars(ctx).items()
                if not hasattr(Context, name) and _holds_tensor(value)
            ]
            return outputs

        @functools.wraps(rule)
        def backward(ctx: Context, *grads: Any) -> Any:
            if layout is not None:
                grads = tuple(_map_gradients(grads, layout))
            flat = list(_flatten(grads))
            with (
                self._recording_changes(tuple(self._arguments), self.modified_by_backward),
                self._recording_changes(tuple(flat), self.modified_gradients),
            ):
                return rule(ctx, *grads)

        return AutogradFunction(forward, backward, spec.jvp_rule, spec.name).function

    @contextmanager
    def _recording_changes(self, values: tuple[Any, ...], changed: list[int]) -> Iterator[None]:
        """Record the positions of the tensors whose elements the block changes."""
        before = [flat_numpy(v) if isinstance(v, Tensor) else None for v in values]
        yield
        for i, (value, old) in enumerate(zip(values, before, strict=True)):
            if old is not None and not np.array_equal(old, flat_numpy(value), equal_nan=True):
                changed.append(i)


def _broadcast(g: Tensor) -> Tensor:
    xp = namespace(g._array)
    if not g.numel():
        return g
    return make(xp.broadcast_to(xp.reshape(g._array, (-1,))[0], g.shape), None)


def _strided(g: Tensor) -> Tensor:
    array = g._array
    wide = namespace(array).zeros((*array.shape, 2), dtype=array.dtype)
    wide[..., 0] = array
    return make(wide[..., 0], None)


LAYOUTS: dict[str, Layout] = {
    "broadcast (stride 0, as sum() sends it)": _broadcast,
    "not contiguous": _strided,
}


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, Tensor) or (
        isinstance(value, list | tuple) and any(map(_holds_tensor, value))
    )


def _map_gradients(grads: Any, layout: Layout) -> list[Any]:
    """Return gradients in another layout; an entry may be a tuple of several."""
    return [
        tuple(_map_gradients(g, layout)) if isinstance(g, tuple) else g if g is None else layout(g)
        for g in grads
    ]


def _flatten(grads: Any) -> Iterator[Any]:
    for g in grads:
        if isinstance(g, tuple):
            yield from _flatten(g)
        else:
            yield g
