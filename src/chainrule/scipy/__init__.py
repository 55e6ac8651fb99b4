"""SciPy's namespaces over tensors. SciPy is imported when a function is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing

if TYPE_CHECKING:
    from chainrule.scipy import fft as fft
    from chainrule.scipy import integrate as integrate
    from chainrule.scipy import interpolate as interpolate
    from chainrule.scipy import linalg as linalg
    from chainrule.scipy import optimize as optimize
    from chainrule.scipy import signal as signal
    from chainrule.scipy import spatial as spatial
    from chainrule.scipy import special as special
    from chainrule.scipy import stats as stats

__all__ = [
    "fft",
    "integrate",
    "interpolate",
    "linalg",
    "optimize",
    "signal",
    "spatial",
    "special",
    "stats",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise missing(__name__, name)
    return import_module(f"{__name__}.{name}")
