"""While a function is traced: what a tensor holds is asked of the trace.

A tensor that exists already must not change while a function is compiled, and every use of it has
to be seen. So, in the thread that traces, its slots are those of a `face`: a second tensor that
holds a symbol in the place of the array. All of the engine then works on symbols as it does on
arrays. Other threads see the tensors as they are; when nobody traces, the slots are plain slots
again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from chainrule import arguments, sampling
from chainrule.autograd.tensor import Tensor
from chainrule.compiler.symbol import TRACING
from chainrule.errors import RAISED

if TYPE_CHECKING:
    from chainrule.compiler.trace import Trace

SLOTS: dict[str, Any] = {
    name: vars(Tensor)[name] for name in ("_array", "_frozen", "_grad", "_node", "_view")
}
"""The tensors' own slots, which know of no trace."""


class _Asked:
    """A slot of which the trace is asked first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.slot = SLOTS[name]

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        trace = TRACING.get()
        return self.slot.__get__(tensor if trace is None else trace.face(tensor))

    def __set__(self, tensor: Any, value: Any) -> None:
        trace = TRACING.get()
        if trace is not None:
            tensor, value = trace.face_for(tensor, self.name, value)
        self.slot.__set__(tensor, value)

    def __delete__(self, tensor: Any) -> None:
        trace = TRACING.get()
        self.slot.__delete__(tensor if trace is None else trace.face(tensor))


_lock = threading.Lock()
_traces = 0


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Let `trace` answer for all tensors, in this thread or task."""
    _count(1)
    token, errors = TRACING.set(trace), RAISED.set(trace.errors)
    drawn, made = sampling.WATCHER.set(trace.draw), arguments.WATCHER.set(trace.seen)
    try:
        yield
    finally:
        arguments.WATCHER.reset(made)
        sampling.WATCHER.reset(drawn)
        RAISED.reset(errors)
        TRACING.reset(token)
        _count(-1)


def _count(change: int) -> None:
    """Put the slots that ask in place as the first trace begins, the plain ones after the last."""
    global _traces
    with _lock:
        before, _traces = _traces, _traces + change
        if bool(before) != bool(_traces):
            for name, slot in SLOTS.items():
                setattr(Tensor, name, _Asked(name) if _traces else slot)


def _forget_others() -> None:
    """In a forked child, only the thread that goes on may be tracing."""
    global _lock, _traces
    _lock = threading.Lock()
    if TRACING.get() is None and _traces:
        _count(-_traces)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_others)
