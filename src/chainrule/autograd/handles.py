"""What is hooked on a node, and what takes it off again."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from chainrule.autograd.versions import tick

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor


class Registered(dict[int, Callable[..., Any]]):
    """Hooks of one kind by their number, which is the order of registration."""

    __slots__ = ("__weakref__",)


class Hooks:
    """What is to be called as a pass goes through a node, each kind in registration order."""

    __slots__ = ("failure", "metadata", "post", "post_accumulate", "pre", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Registered] = {}  # by output index
        self.pre = Registered()
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        self.post_accumulate = Registered()
        self.post = Registered()
        self.metadata: dict[str, Any] = {}  # users' notes
        self.failure: Exception | None = None  # why the pass that released the node's values failed

    def of(self, index: int) -> Registered:
        """Return the hooks on an output, making room for them if there are none."""
        return self.tensor.setdefault(index, Registered())


class RemovableHandle:
    """What registering a hook returns; `remove()`, or leaving its `with` block, takes it off.

    It doesn't keep the hook, which goes with the node that it is on.
    """

    __slots__ = ("_hooks", "_key")

    def __init__(self, hooks: Registered, hook: Callable[..., Any]) -> None:
        self._hooks = weakref.ref(hooks)
        self._key = tick()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Take the hook off; doing it twice is fine."""
        hooks = self._hooks()
        if hooks is not None:
            hooks.pop(self._key, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *details: object) -> None:
        self.remove()
