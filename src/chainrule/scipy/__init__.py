"""SciPy's namespaces over tensors. SciPy is imported when a function is called."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing

if TYPE_CHECKING:
    from chainrule.scipy import fft as fft
    from chainrule.scipy import fftpack as fftpack
    from chainrule.scipy import integrate as integrate
    from chainrule.scipy import interpolate as interpolate
    from chainrule.scipy import linalg as linalg
    from chainrule.scipy import ndimage as ndimage
    from chainrule.scipy import optimize as optimize
    from chainrule.scipy import signal as signal
    from chainrule.scipy import sparse as sparse
    from chainrule.scipy import spatial as spatial
    from chainrule.scipy import special as special
    from chainrule.scipy import stats as stats

__all__ = [
    "fft",
    "fftpack",
    "integrate",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "spatial",
    "special",
    "stats",
]


_OTHERS = ("_lib", "cluster", "constants", "datasets", "differentiate", "io", "odr")
"""SciPy's modules without a function of ours."""
_OWN = ("__version__", "LowLevelCallable", "show_config", "version")
"""Names of SciPy's package that are no namespaces."""


def __getattr__(name: str) -> Any:
    if name in (*__all__, *_OTHERS):
        return import_module(f"{__name__}.{name}")
    if name in _OWN:
        return getattr(import_module("scipy"), name)
    raise missing(__name__, name)


class _Finder:
    """Finds SciPy's modules where there is none of ours: ``chainrule.scipy.signal.windows``.

    Their Python code runs on arrays that record.
    """

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        path = name.removeprefix(f"{__name__}.")
        package, _, rest = path.partition(".")
        if path == name or package not in (*__all__, *_OTHERS):
            return None
        if package in __all__ and not rest:
            return None
        loader: Any = self
        return ModuleSpec(name, loader, is_package=True) if find_spec(f"scipy.{path}") else None

    def create_module(self, spec: ModuleSpec) -> Any:
        """Return None: the module is one that Python makes, until it is loaded."""

    def exec_module(self, module: Any) -> None:
        """Give the module its names."""
        import_module(f"{__name__}.own_code").stand_for(module)


sys.meta_path.append(_Finder())
