"""Checks of what hooks return, post-accumulate hooks, and the failure of a backward pass."""

from __future__ import annotations

from typing import Any

from chainrule.autograd.node import AccumulateGrad, Node, hooks_of, reachable
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.tensor import Tensor
from chainrule.errors import (
    ArgumentTypeError,
    AutogradError,
    DeviceError,
    DTypeError,
    InPlaceError,
    ShapeError,
)


def run_post_accumulate(node: AccumulateGrad, leaf: Tensor | None) -> None:
    """Call the post-accumulate hooks of a leaf."""
    if node.hooks is not None and leaf is not None:
        for hook in list(node.hooks.post_accumulate.values()):
            result = hook(leaf)  # PyTorch's example returns the leaf, which it has written to
            if result is not None and not isinstance(result, Tensor):
                raise AutogradError(
                    f"hooks should return None. {name_of(hook)!r} returned {type(result).__name__}."
                )


def name_of(hook: Any) -> str:
    return getattr(hook, "__name__", repr(hook))


def check_replacement(hook: Any, new: Tensor, old: Tensor) -> None:
    """Raise if a hook's replacement differs from the gradient in shape, dtype or device."""
    if new.shape != old.shape:
        raise ShapeError(
            f"hook {name_of(hook)!r} has changed the size of value: got {list(new.shape)}, "
            f"expected {list(old.shape)}"
        )
    if new.dtype != old.dtype:
        raise DTypeError(
            f"hook {name_of(hook)!r} has changed the type of value (was {old.dtype}, got "
            f"{new.dtype})"
        )
    if new._array.__class__ is not old._array.__class__ and new.device != old.device:
        raise DeviceError(
            f"hook {name_of(hook)!r} has changed the device of value: got {new.device}, expected "
            f"{old.device}"
        )


def replacements(hook: Any, result: Any, shown: list[Tensor | None]) -> Any:
    """Return the gradients that a node's hook returned, checked; None if it returned none."""
    if result is None:
        return None
    values = (result,) if isinstance(result, Tensor) else result
    if not isinstance(values, tuple | list):
        raise ArgumentTypeError(f"expected tuple, but hook returned {type(result).__name__!r}")
    if len(values) != len(shown):
        raise AutogradError(
            f"hook {name_of(hook)!r} has returned an incorrect number of values (got "
            f"{len(values)}, but expected {len(shown)})"
        )
    for new, old in zip(values, shown, strict=True):
        if new is not None and not isinstance(new, Tensor):
            raise ArgumentTypeError(f"a hook returns Tensors, got {type(new).__name__}")
        if new is not None and old is not None:
            check_replacement(hook, new, old)
    return values


def remember_failure(roots: list[Node], error: InPlaceError) -> None:
    """Keep the error of a failed pass: a second one raises it, not that values were freed."""
    for node in reachable(roots):
        if isinstance(node, PrimitiveNode) and node.saved is None:
            hooks_of(node).failure = error.with_traceback(None)
