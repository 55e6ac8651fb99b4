"""Fast access to NumPy's floating-point error state.

`np.errstate` builds a record of the handling of each kind of error and stores it in a context
variable. Building the record takes most of its 1.2 µs, so records are cached here.
"""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np


def _errstate_variable() -> ContextVar[Any]:
    """Return the context variable that `np.errstate` sets."""
    before = copy_context()
    with np.errstate(all="ignore"):
        for variable, record in copy_context().items():
            if before.get(variable) is not record:
                return variable
    return ContextVar("reports", default=None)  # NumPy stores it elsewhere: a test fails


ERRSTATE: ContextVar[Any] = _errstate_variable()
_last: list[tuple[Any, Any]] = [(object(), None)]  # a record, and its copy that ignores all errors


def ignore_all(record: Any) -> Any:
    """Return a value of `ERRSTATE` with all errors ignored and other settings unchanged."""
    cached, ignoring = _last[0]
    if record is not cached:
        with np.errstate(all="ignore"):
            ignoring = ERRSTATE.get()
        _last[0] = record, ignoring  # the next record is nearly always the same
    return ignoring
