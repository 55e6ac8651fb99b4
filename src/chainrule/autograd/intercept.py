"""Interception: the slots of existing tensors, redirected to a compiler's trace or to `vmap`.

A trace, or a vmap, runs a function on array proxies and has to see every use of a tensor that
existed before, without changing that tensor. So, in its thread, the slots of such a tensor are
those of a proxy: a second tensor that holds a symbol or a batched array. The engine works on these
as on arrays. Other threads see the tensors as they are. Without an interceptor in any thread, the
slots are plain slots.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from chainrule.autograd.tensor import Tensor


class Interceptor(Protocol):
    """A trace or a vmap to which reads and writes of tensors' slots are redirected."""

    def proxy(self, tensor: Tensor) -> Tensor:
        """Return the tensor whose slots are read instead of those of `tensor`."""

    def proxy_for_write(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        """Return the tensor whose slot is set instead of that of `tensor`, and the value."""

    def array(self, array: Any) -> Any:
        """Return the proxy of an array that was made during the interception."""


INTERCEPTOR: ContextVar[Interceptor | None] = ContextVar("chainrule interceptor", default=None)
"""The interceptor of this thread or task."""

_current = INTERCEPTOR.get

SLOTS: dict[str, Any] = {
    name: vars(Tensor)[name] for name in ("_array", "_frozen", "_grad", "_node", "_view")
}
"""The plain slots of tensors, which bypass interception."""


class _InterceptedSlot:
    """A slot that is redirected to the interceptor, if there is one in this thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.slot = SLOTS[name]
        self.read, self.write = self.slot.__get__, self.slot.__set__

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        interceptor = _current()
        return self.read(tensor if interceptor is None else interceptor.proxy(tensor))

    def __set__(self, tensor: Any, value: Any) -> None:
        interceptor = _current()
        if interceptor is not None:
            tensor, value = interceptor.proxy_for_write(tensor, self.name, value)
        self.write(tensor, value)

    def __delete__(self, tensor: Any) -> None:
        interceptor = _current()
        self.slot.__delete__(tensor if interceptor is None else interceptor.proxy(tensor))


_INTERCEPTED_SLOTS = {name: _InterceptedSlot(name) for name in SLOTS}

_lock = threading.Lock()
_active = 0


@contextmanager
def intercepting(interceptor: Interceptor) -> Iterator[None]:
    """Redirect the slots of all tensors to `interceptor`, in this thread or task."""
    _count_active(1)
    try:
        with intercepted_by(interceptor):
            yield
    finally:
        _count_active(-1)


class intercepted_by:
    """Within interception, redirect to another interceptor, or to none."""

    __slots__ = ("_interceptor", "_token")

    def __init__(self, interceptor: Interceptor | None) -> None:
        self._interceptor = interceptor

    def __enter__(self) -> None:
        self._token = INTERCEPTOR.set(self._interceptor)

    def __exit__(self, *_: object) -> None:
        INTERCEPTOR.reset(self._token)


def _count_active(change: int) -> None:
    """Install the intercepted slots for the first interceptor, the plain ones after the last."""
    global _active
    with _lock:
        before, _active = _active, _active + change
        if bool(before) != bool(_active):
            for name, slot in SLOTS.items():
                setattr(Tensor, name, _INTERCEPTED_SLOTS[name] if _active else slot)


def _drop_other_threads() -> None:
    """In a forked child, forget the interceptors of threads that no longer exist."""
    global _lock
    _lock = threading.Lock()
    if INTERCEPTOR.get() is None and _active:
        _count_active(-_active)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_other_threads)
