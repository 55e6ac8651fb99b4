"""Memory of large results, used again when nobody holds them any more.

The system gives fresh memory page by page, at several times the cost of computing what is written
to it. So arrays that loops returned are remembered, and one that its callers have dropped, as its
reference count says, is handed out again. Views, tensors and other libraries hold references.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from chainrule.autograd.references import ALONE, count_references

LEAST = 1 << 18
"""From so many bytes on, an array is remembered: smaller ones the allocator has at hand."""

MOST = 1 << 28
"""So many bytes are remembered in all; what was handed out longest ago is forgotten first."""

_kept: list[Any] = []
_lock = threading.Lock()


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array of any content, as `np.empty` does."""
    with _lock:
        for index in range(len(_kept)):
            array = _kept[index]
            if count_references(array) == ALONE + 1 and _is_like(array, shape, dtype):
                _kept.append(_kept.pop(index))
                return array
        array = np.empty(shape, dtype)
        if array.nbytes <= MOST:
            _kept.append(array)
            _forget()
        return array


def _is_like(array: Any, shape: tuple[int, ...], dtype: Any) -> bool:
    """Say whether an array is as a new one would be, whatever its holders have done to it."""
    flags = array.flags
    return bool(
        array.shape == shape and array.dtype == dtype and flags.c_contiguous and flags.writeable
    )


def _forget() -> None:
    total = 0
    for index in reversed(range(len(_kept))):
        total += _kept[index].nbytes
        if total > MOST:
            del _kept[: index + 1]
            return
