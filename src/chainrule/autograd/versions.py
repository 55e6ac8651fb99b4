"""The log of in-place writes: which memory was written, and when.

One counter numbers everything that happens: nodes as they are recorded and in-place writes as they
are made. A saved value is stale iff its storage was written after its node was recorded. So saving
costs nothing, checking costs one comparison until something is written in place, and only storages
that were ever written have an entry here.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from chainrule.autograd.location import user_line
from chainrule.backend import is_basic_index, ndarray, storage_of

Array = Any

next_seq: Callable[[], int] = itertools.count(1).__next__


Write = tuple[int, str, CodeType | None, int, "Part | None"]
"""One in-place write: its number, the operation, the user's code and instruction, and where."""


Part = tuple[weakref.ref[Any], Any]
"""The elements that were written: an array, not kept alive, and an index without arrays."""


_KEPT_WRITES = 64
"""Number of last writes to a storage that are kept: parameters are written millions of times."""


class _Storage:
    """The writes to one storage."""

    __slots__ = ("first", "owner", "recent", "version")

    def __init__(self, owner: Array, forget: Callable[[int, None], object]) -> None:
        key = id(owner)
        self.owner = weakref.ref(owner, lambda _: forget(key, None))
        self.first = next_seq()
        self.version = 0
        self.recent: deque[Write] = deque(maxlen=_KEPT_WRITES)


class _WriteLog:
    """All in-place writes that can still matter."""

    __slots__ = ("accumulating", "last", "lock", "storages")

    def __init__(self) -> None:
        self.last = 0
        self.storages: dict[int, _Storage] = {}
        self.renew_locks()

    def renew_locks(self) -> None:
        """Make new locks: in a forked child, the thread that held an old one may not exist."""
        # Reentrant: a signal handler may run a pass of its own in the middle of ours.
        self.lock = threading.RLock()
        self.accumulating = threading.RLock()  # held while a backward pass adds to a .grad


write_log = _WriteLog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=write_log.renew_locks)


def _owner(array: Array) -> Array:
    """Return what `storage_of` does, sooner for NumPy's arrays that are no views.

    A wrapper of arrays, as of vmap, isn't the owner, whatever its `base`.
    """
    return array if array.__class__ is ndarray and array.base is None else storage_of(array)


def record_write(
    array: Array, operation: str, frame: FrameType | None = None, part: Part | None = None
) -> None:
    """Record that `operation` wrote to the memory of `array`, in `frame` or above.

    Without `part`, all of the memory counts as written.
    """
    code, instruction = user_line(frame or sys._getframe(1))
    owner = _owner(array)
    key = id(owner)
    with write_log.lock:
        storage = write_log.storages.get(key)
        if storage is None or storage.owner() is not owner:
            storages = write_log.storages
            storage = storages[key] = _Storage(owner, storages.pop)
        storage.version += 1
        write_log.last = stamp = next_seq()
        storage.recent.append((stamp, operation, code, instruction, part))


def record_writes(arrays: Iterable[Array], operation: str, frame: FrameType | None) -> None:
    """Record that one `operation` wrote to several arrays: the line is looked up once."""
    code, instruction = user_line(frame)
    storages = write_log.storages
    with write_log.lock:
        for array in arrays:
            owner = _owner(array)
            key = id(owner)
            storage = storages.get(key)
            if storage is None or storage.owner() is not owner:
                storage = storages[key] = _Storage(owner, storages.pop)
            storage.version += 1
            write_log.last = stamp = next_seq()
            storage.recent.append((stamp, operation, code, instruction, None))


# --- saved values that are kept when their memory is written --------------------------------------


class _Savers:
    """The nodes that keep what they saved when its memory is written to, sorted by storages.

    They are sorted before a write, so that to record an operation takes one reference more.
    """

    def __init__(self) -> None:
        self.by_storage: dict[int, list[weakref.ref[Any]]] = {}
        self.sorted = 0  # number of the first `savers` that are in `by_storage`
        self.limit = _MANY_SAVERS
        self.writes = 0  # since those that are gone were dropped

    def of(self, owner: Array) -> list[Any]:
        """Return the nodes that may have saved of a storage, before a write to it."""
        for reference in savers[self.sorted :]:
            self.sorted += 1
            node: Any = reference()
            saved = getattr(node, "saved", savers)
            if saved is savers and node is not None:
                savers.append(reference)  # another thread is making it
            elif saved is not savers and saved is not None:
                self._sort(reference, node)
        self.writes += 1
        found = [reference() for reference in self.by_storage.pop(id(owner), ())]
        if self.writes > len(savers):
            self.drop_old()
        # Storages may be gone, too, and others have their identity.
        return [node for node in found if node is not None and node.saved is not None]

    def _sort(self, reference: weakref.ref[Any], node: Any) -> None:
        for value, origin in zip(node.saved, node.plan.origins, strict=True):
            if origin is None or (not value.ndim and value.base is None):
                continue  # numbers are not written to, but replaced
            self.by_storage.setdefault(id(_owner(value)), []).append(reference)

    def drop_old(self) -> None:
        """Drop the references to nodes that are gone."""
        with write_log.lock:
            number = len(savers)  # other threads may append to them
            savers[:number] = [ref for ref in savers[:number] if ref() is not None]
            self.limit = _MANY_SAVERS + 2 * len(savers)
            self.by_storage.clear()
            self.sorted = self.writes = 0


_MANY_SAVERS = 1024
savers: list[weakref.ref[Any]] = []
"""The nodes that keep what they saved. While it is empty, no write needs to ask."""
sorted_savers = _Savers()


def keep_saved(node: Any) -> None:
    """Let a node keep the values that it saves when their memory is written to."""
    savers.append(weakref.ref(node))
    if len(savers) > sorted_savers.limit:
        sorted_savers.drop_old()


def preserve_saved(array: Array) -> None:
    """Before a write to the memory of `array`: copy what the nodes of `keep_saved` saved of it."""
    owner = storage_of(array)
    with write_log.lock:
        nodes = sorted_savers.of(owner)
    for node in nodes:
        node.saved = tuple(
            [
                value.copy() if origin is not None and storage_of(value) is owner else value
                for value, origin in zip(node.saved, node.plan.origins, strict=True)
            ]
        )


def version_of(array: Array) -> int:
    """Return the number of in-place operations that wrote to the memory of `array`."""
    storage = write_log.storages.get(id(storage_of(array)))
    return 0 if storage is None else storage.version


def shares_storage(a: Array, b: Array) -> bool:
    """Return whether two arrays are of the same memory."""
    return storage_of(a) is storage_of(b)


def version_at(array: Array, stamp: int) -> str:
    """Return the version that the memory of `array` had at `stamp`, as text."""
    storage = write_log.storages.get(id(storage_of(array)))
    if storage is None or storage.first > stamp:
        return "0"
    later = len(writes_since(array, stamp))
    return f"{storage.version - later}{' or earlier' if later == _KEPT_WRITES else ''}"


def writes_since(array: Array, stamp: int) -> list[Write]:
    """Return the writes (the last few of many) to the memory of `array` after `stamp`."""
    storage = write_log.storages.get(id(storage_of(array)))
    if storage is None or storage.recent[-1][0] <= stamp:
        return []
    return [write for write in storage.recent if write[0] > stamp]


def is_overwritten(array: Array, writes: list[Write]) -> bool:
    """Return whether one of the logged `writes` may have changed elements of `array`."""
    return len(writes) == _KEPT_WRITES or any(_overlaps(array, part) for *_, part in writes)


def _overlaps(array: Array, part: Part | None) -> bool:
    owner = None if part is None else part[0]()
    if part is None or owner is None:
        return True
    if not is_basic_index(part[1]):
        return True
    key = part[1] if part[1].__class__ is tuple else (part[1],)
    view = owner[key if Ellipsis in key else (*key, ...)]  # of one element too
    try:
        return np.shares_memory(array, view, max_work=_MAX_OVERLAP_WORK)
    except np.exceptions.TooHardError:
        return True


_MAX_OVERLAP_WORK: Any = 100_000  # an int; NumPy's stubs know the special values alone
"""Number of candidates after which two strided views count as overlapping, about a millisecond."""


def is_written_since(array: Array, stamp: int) -> bool:
    """Return whether the memory of `array` was written to after `stamp`."""
    if write_log.last <= stamp:
        return False
    storage = write_log.storages.get(id(_owner(array)))
    return storage is not None and storage.recent[-1][0] > stamp


def logged_writes(array: Array) -> tuple[int, list[Write]] | None:
    """Return the logged writes to the memory of `array`, for `restore_writes`."""
    storage = write_log.storages.get(id(storage_of(array)))
    return None if storage is None else (storage.version, list(storage.recent))


def restore_writes(array: Array, writes: tuple[int, list[Write]] | None) -> None:
    """Forget later writes: the memory of `array` has its content of that time again."""
    with write_log.lock:
        storage = write_log.storages.get(id(storage_of(array)))
        if storage is None:
            return
        if writes is None:
            del write_log.storages[id(storage_of(array))]
        else:
            storage.version, recent = writes
            storage.recent.clear()
            storage.recent.extend(recent)
