"""How NumPy reports floating-point errors, and how to silence it in little time.

`np.errstate` builds a record of what to do about each kind of error and puts it into a context
variable. Building takes most of its 1.2 µs, and the records are the same each time: kept here.
"""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np


def _variable() -> ContextVar[Any]:
    """Return the context variable that `np.errstate` changes."""
    before = copy_context()
    with np.errstate(all="ignore"):
        for variable, record in copy_context().items():
            if before.get(variable) is not record:
                return variable
    return ContextVar("reports", default=None)  # kept elsewhere: NumPy warns, and a test notices


REPORTS: ContextVar[Any] = _variable()
_last: list[tuple[Any, Any]] = [(object(), None)]  # a record, and the same with all errors ignored


def silent(record: Any) -> Any:
    """Return a value of `REPORTS` with all errors ignored; the rest of it stays."""
    known, silenced = _last[0]
    if record is not known:
        with np.errstate(all="ignore"):
            silenced = REPORTS.get()
        _last[0] = record, silenced  # nearly always, the next one is the same
    return silenced
