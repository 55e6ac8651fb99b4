"""What is hooked on a node, and what takes it off again."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chainrule.autograd.versions import tick

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor


class Hooks:
    """What is to be called as a pass goes through a node, each kind in registration order."""

    __slots__ = ("failure", "metadata", "post", "post_accumulate", "pre", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, dict[int, Callable[..., Any]]] = {}  # by output index
        self.pre: dict[int, Callable[..., Any]] = {}
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        self.post_accumulate: dict[int, Callable[..., Any]] = {}
        self.post: dict[int, Callable[..., Any]] = {}
        self.metadata: dict[str, Any] = {}  # users' notes
        self.failure: Exception | None = None  # why the pass that released the node's values failed


class RemovableHandle:
    """What registering a hook returns; `remove()`, or leaving its `with` block, takes it off."""

    __slots__ = ("_hooks", "_key")

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks = hooks
        self._key = tick()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Take the hook off; doing it twice is fine."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *details: object) -> None:
        self.remove()
