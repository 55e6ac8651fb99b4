"""Checkpointing: recompute a segment of a function in the backward pass instead of saving it.

By `saved_tensors_hooks`, the graph saves a number instead of each tensor of the segment. When a
backward pass asks for the first of them, the segment runs again on its inputs, and each tensor that
it saves now is returned once. So there is one graph, the usual one: second derivatives,
`autograd_grad` and `backward(inputs=)` need nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from chainrule import pytree
from chainrule.autograd.function import Function
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.intercept import INTERCEPTOR
from chainrule.autograd.modes import enable_grad, is_grad_enabled, run_in, saved_tensors_hooks
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty
from chainrule.errors import AutogradError, InPlaceError
from chainrule.interrupts import call_with
from chainrule.random.discrete import get_rng_state, with_rng_state
from chainrule.random.draw import WATCHER
from chainrule.transforms.arguments import check_callable

__all__ = ["checkpoint"]

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]


class CheckpointError(AutogradError):
    """A function under `checkpoint` saved other tensors in its recomputation."""


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
        In the backward pass, if the second call saves other tensors than the first.
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
    segment = _Segment(function, _Arguments(args, kwargs), second, state, checked)
    hooks = saved_tensors_hooks(segment.pack, segment.unpack)
    return run_in(hooks, _called_within, first, function, *args, **kwargs)


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
            return tensor.detach().requires_grad_(needs)

        found: tuple[Any, Any] = pytree.changed_leaves(self.plain, restored)
        return found


class _Placeholder:
    """The place of a tensor in the arguments; an xarray object asks for its shape."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.ndim = len(shape)


def _without_values(leaf: Any) -> Any:
    return _Placeholder(leaf.shape) if isinstance(leaf, Tensor) else leaf


class _RecomputationDone(BaseException):
    """Ends a recomputation that has saved all tensors; not caught by `except Exception`."""


class _Segment:
    """One call under `checkpoint`: metadata of the tensors to save, and their recomputation."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: _Arguments,
        context: contextlib.AbstractContextManager[Any],
        rng_state: Any,
        checked: bool,
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.context = context
        self.rng_state = rng_state
        self.checked = checked
        self.metadata: list[tuple[Any, Any]] = []  # shape and dtype of each saved tensor
        self.recomputed: dict[int, tuple[Tensor, int]] = {}  # tensors with their versions

    def pack(self, tensor: Tensor) -> int:
        """Return the number of a tensor that the first call saves."""
        self.metadata.append((tensor.shape, tensor.dtype))
        return len(self.metadata) - 1

    def unpack(self, number: int) -> Tensor:
        """Return the tensor with this number once; a second request recomputes the segment."""
        if number not in self.recomputed:
            self._recompute()
        tensor, version = self.recomputed.pop(number)
        if tensor._version != version:
            raise InPlaceError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: a {tensor.dtype} of shape {list(tensor.shape)} that the "
                "function under checkpoint wrote to after the graph had saved it"
            )
        return tensor

    def _recompute(self) -> None:
        """Call the function again until it has saved as many tensors as in the first call."""
        self.recomputed, count = {}, len(self.metadata)

        def keep(tensor: Tensor) -> Tensor:
            self.recomputed[len(self.recomputed)] = tensor, tensor._version
            if len(self.recomputed) == count:
                raise _RecomputationDone
            return tensor

        def run() -> None:
            hooks = saved_tensors_hooks(keep, lambda tensor: tensor)
            args, kwargs = self.arguments.detached()
            with self.context, contextlib.suppress(_RecomputationDone):
                run_in(hooks, self.function, *args, **kwargs)

        def call() -> None:
            if self.rng_state is None:
                run_in(enable_grad(), run)
            else:
                with_rng_state(self.rng_state, run_in, enable_grad(), run)

        # Outside of a vmap or trace that runs the backward pass, as in the first call.
        call_with({WATCHER: None, INTERCEPTOR: None}, call)
        self._check(count)

    def _check(self, count: int) -> None:
        if len(self.recomputed) != count:
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation. Number of tensors saved during forward: {count}, during "
                f"recomputation: {len(self.recomputed)}. The function must do the same every time."
            )
        for number, (shape, dtype) in enumerate(self.metadata if self.checked else ()):
            tensor, _ = self.recomputed[number]
            if (tensor.shape, tensor.dtype) != (shape, dtype):
                raise CheckpointError(
                    "checkpoint: Recomputed values for the following tensors have different "
                    f"metadata than during the forward pass: saved value {number} was {dtype} "
                    f"{list(shape)}, and is {tensor.dtype} {list(tensor.shape)} now. The function "
                    "must do the same every time."
                )
