"""Checkpointing: recompute a segment of a function in the backward pass instead of saving it.

By `saved_tensors_hooks`, the graph saves a number instead of each tensor of the segment. When a
backward pass asks for the first of them, the segment runs again on its inputs, and each tensor that
it saves now is returned once. So there is one graph, the usual one: second derivatives,
`autograd_grad` and `backward(inputs=)` need nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.function import Function
from chainrule.autograd.modes import enable_grad, is_grad_enabled, run_in, saved_tensors_hooks
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty
from chainrule.errors import ArgumentError, AutogradError, InPlaceError
from chainrule.random.discrete import get_rng_state, with_rng_state
from chainrule.random.draw import WATCHER

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]


class CheckpointError(AutogradError):
    """A function under `checkpoint` saved other tensors in its recomputation."""


def _no_contexts() -> Contexts:
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], Contexts] = _no_contexts,
    determinism_check: str = "default",
    **kwargs: Any,
) -> Any:
    """Call a function and save only its arguments for the backward pass.

    The backward pass recomputes the rest: this takes the time of one more call, and the memory of
    one segment at a time.

    Parameters
    ----------
    function : callable
        Must do the same in each call. It may draw random numbers.
    *args, **kwargs
        Its arguments. Tensors among the positional ones are saved like other values of the graph:
        writes to them are detected, and hooks on saved tensors see them.
    use_reentrant : bool, optional
        Accepted for compatibility with PyTorch, without effect: the one implementation here
        supports what either of PyTorch's does.
    preserve_rng_state : bool, default True
        Let the second call draw the same numbers from the default generator as the first.
    context_fn : callable, optional
        Returns two context managers: for the first call, and for the recomputation.
    determinism_check : "default" or "none"
        Whether to compare shapes and dtypes of the tensors that the two calls save.

    Returns
    -------
    The result of `function`.

    Notes
    -----
    In a compiled function it is a plain call: the compiler decides what to save.

    Raises
    ------
    CheckpointError
        In the backward pass, if the recomputation saves other tensors than the first call.
    InPlaceError
        In the backward pass, if an argument was modified since.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.utils.checkpoint import checkpoint
    >>> x = cr.tensor([0.0, 1.0], requires_grad=True)
    >>> y = checkpoint(lambda x: x.exp().sin().exp(), x)
    >>> y.sum().backward()
    >>> x.grad
    tensor([ 1.2534, -3.7373])
    """
    if determinism_check not in ("default", "none"):
        raise ArgumentError(
            f"determinism_check should be one of 'default', 'none', got {determinism_check!r}"
        )
    first, second = context_fn()
    if not is_grad_enabled() or WATCHER.get() is not None:  # a compiler decides what to save
        with first:
            return function(*args, **kwargs)
    state = get_rng_state() if preserve_rng_state else None
    segment = _Segment(
        function, _Arguments(args), kwargs, second, state, determinism_check == "default"
    )
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


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Call functions in sequence, in segments of which each is a `checkpoint`.

    Parameters
    ----------
    functions : sequence of callables
        Each takes the result of the one before it.
    segments : int
        Number of segments. The last one is no checkpoint, since its backward comes first.
    input : Tensor
        The argument of the first function.
    use_reentrant, preserve_rng_state : bool
        As for `checkpoint`.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.utils.checkpoint import checkpoint_sequential
    >>> x = cr.tensor(0.5, requires_grad=True)
    >>> y = checkpoint_sequential([cr.sin, cr.exp, cr.sin, cr.exp], 2, x)
    >>> y.backward()
    >>> x.grad
    tensor(-0.1707)
    """
    steps = list(functions)
    if not 1 <= segments <= len(steps):
        raise ArgumentError(f"segments is from 1 to the {len(steps)} functions, got {segments}")
    size = len(steps) // segments
    for start in range(0, size * (segments - 1), size):
        segment = _compose(steps[start : start + size])
        input = checkpoint(segment, input, preserve_rng_state=preserve_rng_state)
    return _compose(steps[size * (segments - 1) :])(input)


def _compose(functions: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run


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
    """The positional arguments of a call, with tensors as saved values of a node."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        tensors = [value for value in args if isinstance(value, Tensor)]
        self.plain = [None if isinstance(value, Tensor) else value for value in args]
        self.positions = [
            position for position, value in enumerate(args) if isinstance(value, Tensor)
        ]
        self.needs = [tensor.requires_grad for tensor in tensors]
        self.node: Any = _SaveArguments.apply(empty(0, requires_grad=True), *tensors).grad_fn

    def detached(self) -> list[Any]:
        """Return the arguments for the recomputation, with tensors detached."""
        values = list(self.plain)
        tensors = zip(self.positions, self.node.saved_tensors, self.needs, strict=True)
        for position, tensor, needs in tensors:
            values[position] = tensor.detach().requires_grad_(needs)
        return values


class _RecomputationDone(BaseException):
    """Ends a recomputation that has saved all tensors; not caught by `except Exception`."""


class _Segment:
    """One call under `checkpoint`: metadata of the tensors to save, and their recomputation."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: _Arguments,
        keywords: dict[str, Any],
        context: contextlib.AbstractContextManager[Any],
        rng_state: Any,
        checked: bool,
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
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
            arguments = self.arguments.detached()
            with self.context, contextlib.suppress(_RecomputationDone):
                run_in(hooks, self.function, *arguments, **self.keywords)

        if self.rng_state is None:
            run_in(enable_grad(), run)
        else:
            with_rng_state(self.rng_state, run_in, enable_grad(), run)
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
