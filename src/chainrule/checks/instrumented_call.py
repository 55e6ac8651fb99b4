"""A custom function on copies of somebody's arguments, and how to watch it at work."""

from __future__ import annotations

import functools
import gc
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
from chainrule.checks.numerical import Array, Subject, evaluate, host, shaped, vjp
from chainrule.checks.report import names_of
from chainrule.primitives import elementwise

Layout = Callable[[Tensor], Tensor]


class InstrumentedCall:
    """A custom function and its arguments, the floating ones in double precision.

    Which of them require grad is the caller's choice; where none does, all floating ones do.
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
        self.dirty: tuple[int, ...] = ()  # positions of what forward marks

    @property
    def checked(self) -> list[int]:
        """The positions of the arguments that require grad."""
        return [i for i, value in enumerate(self.values) if _tracked(value)]

    def call(self, function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
        """Call `function` on these values, on copies of those that it writes to."""
        passed = list(values)
        for i in self.dirty:
            passed[i] = elementwise.clone.apply(passed[i])
        count = len(passed) - len(self.keywords)
        return function(*passed[:count], **dict(zip(self.keywords, passed[count:], strict=True)))

    def subject(
        self, function: Callable[..., Any] | None = None, alone: int | None = None
    ) -> Subject:
        """Return the function at its point, maybe with only one argument that requires grad."""
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
        """Return what one backward pass from all outputs gives."""
        return vjp(subject, evaluate(subject), cotangents)

    def references(self, backward: bool) -> tuple[weakref.ref[Node], weakref.ref[Context]]:
        """Call the function, maybe its backward, drop everything, and return where to look."""
        inputs = [self.values[i] for i in self.checked]
        outputs = evaluate(self.subject())
        node = node_of(outputs)
        assert node is not None
        if backward:
            roots = [o for o in outputs.values() if o.requires_grad]
            ones = [shaped(np.ones(o.numel()), o) for o in roots]
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


def missing(outputs: dict[int, Tensor], cotangents: dict[int, Array], subject: Subject) -> set[str]:
    """Return the names of the arguments that require grad and get None."""
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


# --- watching -------------------------------------------------------------------------------------


class CallRecorder:
    """What a custom function was seen to do."""

    def __init__(self) -> None:
        self.dirty: list[int] = []  # positions of the arguments that it marked
        self.written: list[int] = []  # of those that forward changed
        self.written_back: list[int] = []  # of those that backward changed
        self.kept: list[str] = []  # attributes of ctx that hold tensors
        self.changed: list[int] = []  # gradients that backward changed
        self._arguments: list[Array] = []

    def function(self, spec: AutogradFunction, layout: Layout | None = None) -> Any:
        """Return the custom function under observation, its gradients laid out by `layout`."""
        rule = spec.backward_rule
        assert rule is not None

        @functools.wraps(spec.forward)
        def forward(ctx: Context, *args: Any, **kwargs: Any) -> Any:
            values = (*args, *kwargs.values())
            with self._watching(values, self.written):
                outputs = spec.forward(ctx, *args, **kwargs)
            self.dirty = [i for i, v in enumerate(values) if any(v is d for d in ctx._dirty)]
            self._arguments = [make(v._array, None) if isinstance(v, Tensor) else v for v in values]
            self.kept = [
                name
                for name, value in vars(ctx).items()
                if not hasattr(Context, name) and _holds_tensor(value)
            ]
            return outputs

        @functools.wraps(rule)
        def backward(ctx: Context, *grads: Any) -> Any:
            if layout is not None:
                grads = tuple(_each(grads, layout))
            flat = list(_flat(grads))
            with (
                self._watching(tuple(self._arguments), self.written_back),
                self._watching(tuple(flat), self.changed),
            ):
                return rule(ctx, *grads)

        return AutogradFunction(forward, backward, spec.jvp_rule, spec.name).function

    @contextmanager
    def _watching(self, values: tuple[Any, ...], changed: list[int]) -> Iterator[None]:
        """Note the positions of the tensors whose numbers the block changes."""
        before = [host(v) if isinstance(v, Tensor) else None for v in values]
        yield
        for i, (value, old) in enumerate(zip(values, before, strict=True)):
            if old is not None and not np.array_equal(old, host(value), equal_nan=True):
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


def _each(grads: Any, layout: Layout) -> list[Any]:
    """Return gradients, the last of which may be a tuple of several, in another layout."""
    return [
        tuple(_each(g, layout)) if isinstance(g, tuple) else g if g is None else layout(g)
        for g in grads
    ]


def _flat(grads: Any) -> Iterator[Any]:
    for g in grads:
        if isinstance(g, tuple):
            yield from _flat(g)
        else:
            yield g


@contextmanager
def without_collector() -> Iterator[None]:
    """Keep the garbage collector from hiding what reference counts don't free."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
