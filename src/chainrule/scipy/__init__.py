"""SciPy's namespaces over tensors: `optimize`, `special`. SciPy is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule.scipy import optimize as optimize
    from chainrule.scipy import special as special

__all__ = ["optimize", "special"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
