"""Functions of `torch._dynamo`, which reads Python for `torch.compile`, without effect."""

from typing import Any, TypeVar

__all__ = ["disable", "reset"]

F = TypeVar("F")


def reset() -> None:
    """Do nothing: a function that is compiled anew has its own programs."""


def disable(fn: F | None = None, recursive: bool = True) -> Any:
    """Return a function unchanged, or a decorator that does."""
    return (lambda function: function) if fn is None else fn
