"""Memory of a program's large results, used again when nobody holds them any more.

The system gives fresh memory page by page, at several times the cost of computing what is written
to it. So a program remembers what it returned last, and hands it out again once its callers have
dropped it, as its reference count says. Views, tensors and other libraries hold references.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from chainrule.autograd.references import ALONE, count_references

MOST = 2
"""So many arrays are remembered for a result: `y = f(x)` in a loop holds one during the next call.
"""


class Recycled:
    """Memory for one large result of a program."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._known: deque[Any] = deque()  # popping and appending are atomic

    def empty(self) -> Any:
        """Return an array of any content that the caller may keep, as `np.empty` does."""
        array, known = self._unused(), self._known
        if array is None:
            array = np.empty(self.shape, self.dtype)
            while len(known) >= MOST:
                self._taken()
        known.append(array)
        return array

    def _unused(self) -> Any:
        """Return a remembered array that nobody holds, if there is one."""
        for _ in range(MOST):
            array = self._taken()
            if array is None:
                break
            if count_references(array) == ALONE and self._is_as_new(array):
                return array
            self._known.append(array)
        return None

    def _taken(self) -> Any:
        """Take out what was handed out longest ago, so that no other thread looks at it."""
        try:
            return self._known.popleft()
        except IndexError:
            return None

    def _is_as_new(self, array: Any) -> bool:
        """Say whether an array is as a new one would be, whatever its holders have done to it."""
        flags = array.flags
        alike = array.shape == self.shape and array.dtype == self.dtype
        return bool(alike and flags.c_contiguous and flags.writeable)
