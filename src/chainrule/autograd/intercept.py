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
import weakref
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, Protocol

from chainrule.autograd.node import Node
from chainrule.autograd.tensor import Tensor
from chainrule.interrupts import P, T, call_then, call_with


class Interceptor(Protocol):
    """Base class of what reads and writes of tensors' slots are redirected to: a trace, a vmap."""

    own: Any = None
    """Class of the arrays whose tensors are its own: it is not asked about their slots, which is
    most of the cost of a trace, except where an array is set to anything else."""

    own_level: Any = None
    """If not None, the `level` of such arrays. Then it is asked about nodes that are set, too."""

    records: bool = False
    """Whether the class's namespace records the application of a primitive to its arrays."""

    def proxy(self, tensor: Tensor) -> Tensor:
        """Return the tensor whose slots are read instead of those of `tensor`."""

    def proxy_for_write(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        """Return the tensor whose slot is set instead of that of `tensor`, and the value."""

    def array(self, array: Any) -> Any:
        """Return the proxy of an array that was made during the interception."""

    def check_pass(
        self, roots: Iterable[Node], targets: list[tuple[Node, int]]
    ) -> tuple[bool, list[tuple[Node, int]]]:
        """Return whether a pass crosses to nodes outside, and its targets there.

        Targets are nodes and numbers of their outputs. Raise if gradients would be wrong here.
        """
        return False, targets


INTERCEPTOR: ContextVar[Interceptor | None] = ContextVar("chainrule interceptor", default=None)
"""The interceptor of this thread or task."""

_current = INTERCEPTOR.get

SLOTS: dict[str, Any] = {
    name: vars(Tensor)[name] for name in ("_array", "_frozen", "_grad", "_node", "_view")
}
"""The plain slots of tensors, which bypass interception."""


_read_array = SLOTS["_array"].__get__


class _InterceptedSlot:
    """A slot that is redirected to the interceptor, if there is one in this thread.

    A trace reads several for each operation: so the question whether a tensor's slots are those
    that it would be redirected to stands in both methods, since a call takes as long as the rest.
    """

    def __init__(self, name: str) -> None:
        self.name, self.is_array, self.is_node = name, name == "_array", name == "_node"
        self.slot = SLOTS[name]
        self.read, self.write = self.slot.__get__, self.slot.__set__

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        interceptor = _current()
        if interceptor is not None:
            own, level = interceptor.own, interceptor.own_level
            try:
                array = _read_array(tensor)
                redirected = type(array) is not own or (
                    level is not None and array.level is not level
                )
            except AttributeError:  # under construction
                redirected = False
            if redirected:
                tensor = interceptor.proxy(tensor)
        return self.read(tensor)

    def __set__(self, tensor: Any, value: Any) -> None:
        interceptor = _current()
        if interceptor is not None:
            own, level = interceptor.own, interceptor.own_level
            try:
                array = _read_array(tensor)
                redirected = type(array) is not own or (
                    level is not None and array.level is not level
                )
            except AttributeError:  # under construction
                redirected = False
            if self.is_array and not redirected:
                redirected = level is None or type(value) is not own or value.level is not level
            elif self.is_node and level is not None and value is not None:
                redirected = True
            if redirected:
                tensor, value = interceptor.proxy_for_write(tensor, self.name, value)
        self.write(tensor, value)

    def __delete__(self, tensor: Any) -> None:
        interceptor = _current()
        self.slot.__delete__(tensor if interceptor is None else interceptor.proxy(tensor))


class _InterceptedArray(_InterceptedSlot):
    """The slot of the array, which says itself whether the interceptor is asked."""

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        interceptor, array = _current(), _read_array(tensor)
        if interceptor is None:
            return array
        if type(array) is interceptor.own:
            level = interceptor.own_level
            if level is None or array.level is level:
                return array
        return _read_array(interceptor.proxy(tensor))


_INTERCEPTED_SLOTS = {name: _InterceptedSlot(name) for name in SLOTS}
_INTERCEPTED_SLOTS["_array"] = _InterceptedArray("_array")

on_redirection: list[Callable[[bool], None]] = []
"""Functions that are told whether slots are redirected from now on, in any thread."""

# --- interception ---------------------------------------------------------------------------------


class _Run:
    """One call of `intercepting`."""


_runs: set[weakref.ref[_Run]] = set()
"""The runs in all threads. A run that is gone counts no more, even if an interrupt kept it from
leaving: then the slots are those of interception, right but slow, until another run ends."""

_lock = threading.RLock()  # reentrant: a signal handler may use vmap


def intercepting(
    interceptor: Interceptor, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function with the slots of all tensors redirected, in this thread or task."""
    run = _Run()
    member = weakref.ref(run, _runs.discard)

    def call() -> T:
        _runs.add(member)
        _install_slots()
        return intercepted_by(interceptor, function, *args, **kwargs)

    def leave() -> None:
        _runs.discard(member)
        _install_slots()

    return call_then(leave, call)


def intercepted_by(
    interceptor: Interceptor | None, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Within interception, call a function with another interceptor, or with none."""
    return call_with({INTERCEPTOR: interceptor}, function, *args, **kwargs)


def _install_slots() -> None:
    """Install the intercepted slots if there are runs, else the plain ones."""
    with _lock:
        wanted = _INTERCEPTED_SLOTS if _runs else SLOTS
        for name, slot in wanted.items():
            if vars(Tensor)[name] is not slot:
                setattr(Tensor, name, slot)
        for tell in on_redirection:
            tell(bool(_runs))


def _drop_other_threads() -> None:
    """In a forked child, forget the interceptors of threads that no longer exist."""
    global _lock
    _lock = threading.RLock()
    if INTERCEPTOR.get() is None and _runs:
        _runs.clear()
        _install_slots()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_other_threads)
