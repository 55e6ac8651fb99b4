"""Linear algebra: the names of `scipy.linalg`, with the rules of `chainrule.scipy.linalg`."""

from __future__ import annotations

from typing import Any

from chainrule.scipy import linalg as _linalg


def __getattr__(name: str) -> Any:
    return getattr(_linalg, name)


def __dir__() -> list[str]:
    return dir(_linalg)
