"""A stand-in for CuPy, over NumPy: arrays that refuse to be copied to the host unasked.

`installed()` puts it into `sys.modules` as `cupy` and `cupyx`. It has the names that CuPy documents
(`surface.txt`), with their parameters and dtypes, and CuPy's differences from NumPy: no implicit
conversion, no mixing with NumPy's arrays, 0-d arrays in the place of numbers, indices out of range
that wrap around, an undefined order of repeated writes, singular systems that give nan, and
devices whose memory only they can read. `transfers` counts the copies between host and device.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from cupy_stand_in import functions, linalg, runtime
from cupy_stand_in.arrays import NumPyCallError, ndarray
from cupy_stand_in.functions import OWN, UFUNCS, lifted, make_functions, ufunc
from cupy_stand_in.runtime import transfers
from cupy_stand_in.surface import surface

__all__ = ["NumPyCallError", "installed", "ndarray", "transfers"]


def modules() -> dict[str, ModuleType]:
    """Return new modules by their names."""
    found = {
        "cupy": _module("cupy", make_functions("cupy", np), UFUNCS, OWN),
        "cupy.linalg": _module("cupy.linalg", make_functions("cupy.linalg", np.linalg), _linalg()),
        "cupy.fft": _module("cupy.fft", make_functions("cupy.fft", np.fft)),
        "cupy.lib": _module("cupy.lib"),
        "cupy.lib.stride_tricks": _module(
            "cupy.lib.stride_tricks", {"as_strided": functions.as_strided}
        ),
        "cupy.cuda": _module("cupy.cuda", _cuda()),
        "cupy.cuda.runtime": _module("cupy.cuda.runtime", _runtime()),
        "cupyx": _module("cupyx", _scatters(), _error_states()),
        "cupyx.scipy": _module("cupyx.scipy"),
        "cupyx.scipy.linalg": _module("cupyx.scipy.linalg", _scipy_linalg()),
        "cupyx.scipy.special": _SpecialFunctions("cupyx.scipy.special"),
    }
    for name, module in found.items():
        package, _, last = name.rpartition(".")
        if package:
            setattr(found[package], last, module)
    return found


@contextmanager
def installed() -> Iterator[None]:
    """Let `import cupy` find the stand-in within this block, and chainrule forget it afterwards."""
    added = modules()
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_cupy(name)}
    sys.modules.update(added)
    _forget()
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_cupy(name)]:
            del sys.modules[name]
        sys.modules.update(kept)
        _forget()


def _is_cupy(name: str) -> bool:
    return name.split(".")[0] in ("cupy", "cupyx")


def _forget() -> None:
    """Clear what chainrule keeps of the module `cupy`."""
    from chainrule import backend
    from chainrule.kernels import special

    backend._foreign_namespace.cache_clear()
    special.kernel_for.cache_clear()
    if "chainrule.backend.cupy_namespace" in sys.modules:
        sys.modules["chainrule.backend.cupy_namespace"].cupy_namespace.cache_clear()


def _module(name: str, *contents: dict[str, Any]) -> ModuleType:
    module = ModuleType(name, "Part of the stand-in for CuPy.")
    for content in contents:
        vars(module).update(content)
    return module


def _linalg() -> dict[str, Any]:
    parameters = {name: words for name, (_, words) in surface()["cupy.linalg"].items()}
    own = {name: lifted(name, parameters[name], solver) for name, solver in linalg.SOLVERS.items()}
    return {**own, "LinAlgError": np.linalg.LinAlgError}


def _cuda() -> dict[str, Any]:
    names = (
        "Device",
        "Stream",
        "Event",
        "MemoryPool",
        "MemoryHook",
        "get_elapsed_time",
        "get_current_stream",
    )
    return {name: getattr(runtime, name) for name in names}


def _runtime() -> dict[str, Any]:
    return {name: value for name, value in vars(runtime.runtime).items() if name[0] != "_"}


def _scatters() -> dict[str, Any]:
    def scatter(name: str) -> Any:
        return lambda a, slices, value: functions.scatter(name, a, slices, value)

    return {
        "scatter_add": scatter("add"),
        "scatter_max": scatter("maximum"),
        "scatter_min": scatter("minimum"),
    }


def _error_states() -> dict[str, Any]:
    return {name: getattr(linalg, name) for name in ("errstate", "geterr", "seterr")}


def _scipy_linalg() -> dict[str, Any]:
    _, words = surface()["cupyx.scipy.linalg"]["solve_triangular"]
    return {
        "solve_triangular": lifted("solve_triangular", words, linalg.solve_triangular),
    }


class _SpecialFunctions(ModuleType):
    """`cupyx.scipy.special`, over SciPy's."""

    def __getattr__(self, name: str) -> Any:
        import scipy.special

        kind, words = surface()["cupyx.scipy.special"].get(name, ("", []))
        function = getattr(scipy.special, name, None)
        if not kind or function is None:
            raise AttributeError(f"module 'cupyx.scipy.special' has no attribute {name!r}")
        made = ufunc(name, words, function) if kind == "ufunc" else lifted(name, words, function)
        setattr(self, name, made)
        return made
