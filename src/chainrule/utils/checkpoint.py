"""Checkpointing: compute a part of a function again in the backward pass, instead of saving it.

What the graph would save of the part are numbers, by `saved_tensors_hooks`. When a pass asks for
the first of them, the part runs again on the inputs it had, and what it saves now is handed out,
each to the node that asks, and forgotten. So there is one graph, the usual one: second derivatives,
`autograd_grad` and `backward(inputs=)` need nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from chainrule.autograd.function import Function
from chainrule.autograd.modes import enable_grad, is_grad_enabled, saved_tensors_hooks
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty
from chainrule.errors import ArgumentError, AutogradError, InPlaceError
from chainrule.random.discrete import get_rng_state, set_rng_state
from chainrule.random.draw import WATCHER

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential"]

Contexts = tuple[contextlib.AbstractContextManager[Any], contextlib.AbstractContextManager[Any]]


class CheckpointError(AutogradError):
    """A function under `checkpoint` did something else when it ran again."""


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
    """Call a function, and keep nothing for its derivative but its arguments.

    The backward pass calls it again for the rest: that takes the time of one more call, and the
    memory of one part at a time.

    Parameters
    ----------
    function : callable
        Does the same whenever it is called. It may draw random numbers.
    *args, **kwargs
        Its arguments. Tensors among the positional ones are kept as the graph keeps saved values:
        that they are not written to is checked, and hooks on saved values see them.
    use_reentrant : bool, optional
        What PyTorch scripts pass: there is one way here, which can do what either of theirs can.
    preserve_rng_state : bool, default True
        Let the second call draw the numbers of the first from the default generator.
    context_fn : callable, optional
        Returns two context managers: the first call runs in one, the second in the other.
    determinism_check : "default" or "none"
        Whether to compare shapes and dtypes of what the two calls save.

    Returns
    -------
    What `function` returns.

    Notes
    -----
    In a compiled function it is a plain call: what is kept is for the compiler to decide.

    Raises
    ------
    CheckpointError
        In the backward pass, if the second call saves other things than the first.
    InPlaceError
        In the backward pass, if an argument was written to since.

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
    if not is_grad_enabled() or WATCHER.get() is not None:  # a compiler decides what is kept
        with first:
            return function(*args, **kwargs)
    state = get_rng_state() if preserve_rng_state else None
    part = _Part(function, _Arguments(args), kwargs, second, state, determinism_check == "default")
    with saved_tensors_hooks(part.note, part.hand_out), first:
        return function(*args, **kwargs)


def checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Call functions one after the other, in segments of which each is a `checkpoint`.

    Parameters
    ----------
    functions : sequence of callables
        Each takes what the one before it returned.
    segments : int
        How many parts to make. The last one is no checkpoint: its backward comes first.
    input : Tensor
        What the first one takes.
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
        part = _in_turn(steps[start : start + size])
        input = checkpoint(part, input, preserve_rng_state=preserve_rng_state)
    return _in_turn(steps[size * (segments - 1) :])(input)


def _in_turn(functions: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    def run(value: Any) -> Any:
        for function in functions:
            value = function(value)
        return value

    return run


class _Keep(Function):
    """Keeps tensors as the graph does: checked for writes, and passed through hooks."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        kept: Tensor = anchor.clone()
        return kept

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> None:
        raise AssertionError("nobody differentiates the anchor")


class _Arguments:
    """The positional arguments of a call, tensors among them as a node's saved values."""

    def __init__(self, args: tuple[Any, ...]) -> None:
        tensors = [value for value in args if isinstance(value, Tensor)]
        self.plain = [None if isinstance(value, Tensor) else value for value in args]
        self.places = [place for place, value in enumerate(args) if isinstance(value, Tensor)]
        self.needs = [tensor.requires_grad for tensor in tensors]
        self.node: Any = _Keep.apply(empty(0, requires_grad=True), *tensors).grad_fn

    def again(self) -> list[Any]:
        """Return the arguments for another call, whose graph ends at them."""
        values = list(self.plain)
        tensors = zip(self.places, self.node.saved_tensors, self.needs, strict=True)
        for place, tensor, needs in tensors:
            values[place] = tensor.detach().requires_grad_(needs)
        return values


class _Enough(BaseException):
    """Ends a second call that has saved what is wanted; no `except Exception` sees it."""


class _Part:
    """One call under `checkpoint`: what its graph would have saved, and how to get it back."""

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
        self.forms: list[tuple[Any, Any]] = []  # shape and dtype of what was to be saved
        self.found: dict[int, tuple[Tensor, int]] = {}  # the second call's, with their versions

    def note(self, tensor: Tensor) -> int:
        """Return the number of what the first call saves."""
        self.forms.append((tensor.shape, tensor.dtype))
        return len(self.forms) - 1

    def hand_out(self, number: int) -> Tensor:
        """Return what has this number, once: whoever asks again has it computed again."""
        if number not in self.found:
            self._run_again()
        tensor, version = self.found.pop(number)
        if tensor._version != version:
            raise InPlaceError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: a {tensor.dtype} of shape {list(tensor.shape)} that the "
                "function under checkpoint wrote to after the graph had saved it"
            )
        return tensor

    def _run_again(self) -> None:
        """Call the function again, until it has saved all that it saved the first time."""
        self.found, count = {}, len(self.forms)

        def keep(tensor: Tensor) -> Tensor:
            self.found[len(self.found)] = tensor, tensor._version
            if len(self.found) == count:
                raise _Enough
            return tensor

        with (
            _random_numbers(self.rng_state),
            enable_grad(),
            self.context,
            saved_tensors_hooks(keep, lambda tensor: tensor),
            contextlib.suppress(_Enough),
        ):
            self.function(*self.arguments.again(), **self.keywords)
        self._check(count)

    def _check(self, count: int) -> None:
        if len(self.found) != count:
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation. Number of tensors saved during forward: {count}, during "
                f"recomputation: {len(self.found)}. The function must do the same every time."
            )
        for number, (shape, dtype) in enumerate(self.forms if self.checked else ()):
            tensor, _ = self.found[number]
            if (tensor.shape, tensor.dtype) != (shape, dtype):
                raise CheckpointError(
                    "checkpoint: Recomputed values for the following tensors have different "
                    f"metadata than during the forward pass: saved value {number} was {dtype} "
                    f"{list(shape)}, and is {tensor.dtype} {list(tensor.shape)} now. The function "
                    "must do the same every time."
                )


@contextlib.contextmanager
def _random_numbers(state: Any) -> Iterator[None]:
    """Draw from the default generator as from this state, and leave it as it was."""
    if state is None:
        yield
        return
    now = get_rng_state()
    set_rng_state(state)
    try:
        yield
    finally:
        set_rng_state(now)
