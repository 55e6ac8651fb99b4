"""`scipy.spatial` over tensors: distances. The other names are SciPy's own."""

from __future__ import annotations

from typing import Any

from chainrule.backend import LazyModule
from chainrule.backend.extensions import SCIPY
from chainrule.scipy.spatial import distance

__all__ = ["distance"]

_SPATIAL = LazyModule("scipy.spatial", SCIPY)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_SPATIAL, name)
