"""Checkpointing under PyTorch's names: `chainrule.checkpoint` in the form of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.errors import ArgumentError
from chainrule.transforms.checkpointing import (
    CheckpointError,
    Contexts,
    call_checkpointed,
    no_contexts,
)

__all__ = [
    "CheckpointError",
    "checkpoint",
    "checkpoint_sequential",
    "get_device_states",
    "set_device_states",
]


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], Contexts] = no_contexts,
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
        Its arguments. Tensors in them are saved like other values of the graph: writes to them are
        detected, and hooks on saved tensors see them.
    use_reentrant : bool, optional
        Accepted for compatibility with PyTorch, without effect: the one implementation here
        supports what either of PyTorch's does.
    preserve_rng_state : bool, default True
        Let the second call draw the same numbers from the default generator as the first.
    context_fn : callable, optional
        Returns two context managers: for the first call, and for the recomputation.
    determinism_check : "default" or "none"
        Whether to compare shapes, dtypes and sums of the tensors that the two calls save.

    Returns
    -------
    The result of `function`.

    Notes
    -----
    In a compiled function, or under `vmap`, it is a plain call: a compiler decides what to save.

    Raises
    ------
    CheckpointError
        In the backward pass, if the recomputation saves other tensors than the first call, or
        tensors with other sums, since what the function reads has changed.
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
    return call_checkpointed(
        function, args, kwargs, context_fn(), preserve_rng_state, determinism_check == "default"
    )


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


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return no devices and no states: devices have none apart from `chainrule.get_rng_state`.

    For reversible layers of PyTorch's scripts, which draw again what they drew before.

    Examples
    --------
    >>> import chainrule as cr
    >>> get_device_states(cr.ones(2))
    ([], [])
    """
    return [], []


def set_device_states(
    devices: Sequence[int], states: Sequence[Any], *, device_type: str | None = None
) -> None:
    """Do nothing with what `get_device_states` returned."""
