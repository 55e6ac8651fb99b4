"""What a tensor holds may be asked of somebody else: of a compiler that traces, of `vmap`.

A tensor that exists already must not change while a function is run on something else than arrays,
and every use of it has to be seen. So, in the thread that does so, its slots are those of a proxy:
a second tensor, which holds a symbol, or lanes, in the place of the array. All of the engine then
works on these as it does on arrays. Other threads see the tensors as they are; when nobody answers
for tensors, the slots are plain slots again.
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
    """Who answers for tensors."""

    def proxy(self, tensor: Tensor) -> Tensor:
        """Return whose slots are meant where those of `tensor` are read."""

    def face_for(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        """Return whose slot to set, and to what, where that of `tensor` is set."""

    def array(self, array: Any) -> Any:
        """Return what an array that was made meanwhile is."""


ANSWERER: ContextVar[Interceptor | None] = ContextVar("chainrule answerer", default=None)
"""Who answers in this thread or task."""

_answerer = ANSWERER.get

SLOTS: dict[str, Any] = {
    name: vars(Tensor)[name] for name in ("_array", "_frozen", "_grad", "_node", "_view")
}
"""The tensors' own slots, which ask nobody."""


class _Asked:
    """A slot of which the answerer is asked first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.slot = SLOTS[name]
        self.read, self.write = self.slot.__get__, self.slot.__set__

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        interceptor = _answerer()
        return self.read(tensor if interceptor is None else interceptor.proxy(tensor))

    def __set__(self, tensor: Any, value: Any) -> None:
        interceptor = _answerer()
        if interceptor is not None:
            tensor, value = interceptor.face_for(tensor, self.name, value)
        self.write(tensor, value)

    def __delete__(self, tensor: Any) -> None:
        interceptor = _answerer()
        self.slot.__delete__(tensor if interceptor is None else interceptor.proxy(tensor))


_ASKED = {name: _Asked(name) for name in SLOTS}

_lock = threading.Lock()
_answerers = 0


@contextmanager
def intercepting(interceptor: Interceptor) -> Iterator[None]:
    """Let `interceptor` answer for all tensors, in this thread or task."""
    _count(1)
    try:
        with asking(interceptor):
            yield
    finally:
        _count(-1)


class asking:
    """Within a call that is answered for, let somebody else answer, or nobody."""

    __slots__ = ("_answerer", "_token")

    def __init__(self, interceptor: Interceptor | None) -> None:
        self._answerer = interceptor

    def __enter__(self) -> None:
        self._token = ANSWERER.set(self._answerer)

    def __exit__(self, *_: object) -> None:
        ANSWERER.reset(self._token)


def _count(change: int) -> None:
    """Put the slots that ask in place as the first begins, the plain ones after the last."""
    global _answerers
    with _lock:
        before, _answerers = _answerers, _answerers + change
        if bool(before) != bool(_answerers):
            for name, slot in SLOTS.items():
                setattr(Tensor, name, _ASKED[name] if _answerers else slot)


def _forget_others() -> None:
    """In a forked child, only the thread that goes on may have an answerer."""
    global _lock
    _lock = threading.Lock()
    if ANSWERER.get() is None and _answerers:
        _count(-_answerers)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_others)
