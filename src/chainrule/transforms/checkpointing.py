"""Checkpointing: recompute a segment of a function in the backward pass instead of saving it."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

from chainrule import pytree
from chainrule.autograd.function import Function
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty
from chainrule.interrupts import call_with
from chainrule.random.discrete import get_rng_state, with_rng_state
from chainrule.random.draw import WATCHER
from chainrule.recomputation import CheckpointError, Recomputation, Run
from chainrule.transforms.arguments import check_callable

__all__ = ["CheckpointError", "checkpoint"]

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that saves only its arguments for the backward pass.

    The backward pass calls `function` again and computes what it needs: this takes the time of one
    more call, and the memory of one segment at a time.

    Parameters
    ----------
    function : callable
        Must do the same in each call. It may draw random numbers: those of the default generator
        are the same in the second call.

    Returns
    -------
    callable
        Takes the arguments of `function` and returns its result. Tensors in the arguments are saved
        like other values of the graph: writes to them are detected, and hooks on saved tensors see
        them.

    Raises
    ------
    CheckpointError
        In the backward pass, if the second call saves other tensors than the first. Their sums are
        compared, too, since what the function reads by name may have been changed.
    InPlaceError
        In the backward pass, if an argument was modified since.

    Notes
    -----
    In a compiled function, or under `vmap`, it is a plain call: a compiler decides what to save.
    `chainrule.utils.checkpoint` has the same in PyTorch's form, with more settings.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.checkpoint
    ... def layer(w, x):
    ...     return cr.tanh(w * x).exp()
    >>> cr.grad(lambda w: layer(w, layer(w, 2.0)))(0.0)
    1.0
    """
    check_callable("checkpoint", function)

    def recomputed(*args: Any, **kwargs: Any) -> Any:
        return call_checkpointed(function, args, kwargs)

    return FunctionWrapper(recomputed, function, Made(checkpoint, (function,), {}))


def no_contexts() -> Contexts:
    """Return two context managers that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def call_checkpointed(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    contexts: Contexts | None = None,
    preserve_rng_state: bool = True,
    checked: bool = True,
) -> Any:
    """Call a function so that its graph saves only the arguments."""
    first, second = contexts or no_contexts()
    if not is_grad_enabled() or WATCHER.get() is not None:  # a compiler decides what to save
        with first:
            return function(*args, **kwargs)
    state = get_rng_state() if preserve_rng_state else None
    arguments = _Arguments(args, kwargs)

    def again(run: Run) -> None:
        def call() -> None:
            args, kwargs = arguments.detached()
            run(function, *args, **kwargs)

        restored = call if state is None else functools.partial(with_rng_state, state, call)
        with second:  # outside of a vmap or trace that runs the backward pass, as at first
            call_with({WATCHER: None, INTERCEPTOR: None}, restored)

    segment = Recomputation(again, checked)
    return segment.first(_called_within, first, function, *args, **kwargs)


def _called_within(
    context: contextlib.AbstractContextManager[Any],
    function: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    with context:
        return function(*args, **kwargs)


class _SaveArguments(Function):
    """Saves tensors in the graph, so that writes are detected and hooks see them."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        kept: Tensor = anchor.clone()
        return kept

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> None:
        raise AssertionError("the anchor is never differentiated")


class _Arguments:
    """The arguments of a call, with tensors as saved values of a node."""

    def __init__(self, args: Any, kwargs: Any) -> None:
        leaves = [leaf for _, leaf in pytree.leaves((args, kwargs))]
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        self.needs = [tensor.requires_grad for tensor in tensors]
        self.node: Any = _SaveArguments.apply(empty(0, requires_grad=True), *tensors).grad_fn
        self.plain = pytree.changed_leaves((args, kwargs), _without_values)

    def detached(self) -> tuple[Any, Any]:
        """Return the arguments for the recomputation, with tensors detached."""
        following = zip(self.node.saved_tensors, self.needs, strict=True)

        def restored(leaf: Any) -> Any:
            if not isinstance(leaf, _Placeholder):
                return leaf
            tensor, needs = next(following)
            again = tensor.detach().requires_grad_(needs)
            if leaf.kind.is_carried:
                again.__class__ = leaf.kind
            return again

        found: tuple[Any, Any] = pytree.changed_leaves(self.plain, restored)
        return found


class _Placeholder:
    """The place of a tensor in the arguments; an xarray object asks for its shape."""

    def __init__(self, tensor: Tensor) -> None:
        self.kind = type(tensor)
        self.shape = tensor.shape
        self.ndim = len(self.shape)


def _without_values(leaf: Any) -> Any:
    return _Placeholder(leaf) if isinstance(leaf, Tensor) else leaf
