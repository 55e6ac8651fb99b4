"""Inspection of NumPy's BLAS, and selection of better OpenBLAS kernels.

NumPy computes matrix products by a BLAS library, which has a set of kernels for each family of
processors. `info` reports the library and kernels in use, `tune` switches the kernels of a running
process.

>>> from chainrule import blas
>>> blas.info().library != ""
True

OpenBLAS chooses well for nearly every processor. For the few that it misjudges (see
`chainrule.blas.cpu`), chainrule chooses better kernels if it is imported before NumPy; child
processes do not inherit that. With LLVM and OpenBLAS, compiled functions compute large products by
machine code of their own, independent of the kernels. ``CHAINRULE_BLAS=off`` in the environment
disables all of this, and `tune`.

Only the OpenBLAS in NumPy's own wheels for Linux on x86-64 is ever changed. MKL, Accelerate and the
OpenBLAS of conda or of a Linux distribution are left alone, and so is a process in which
``OPENBLAS_CORETYPE`` is set.
"""

from __future__ import annotations

from chainrule.blas import startup as startup  # first: it chooses kernels while NumPy loads

# isort: split
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chainrule.blas.tuning import BlasError as BlasError
    from chainrule.blas.tuning import Info as Info
    from chainrule.blas.tuning import info as info
    from chainrule.blas.tuning import tune as tune
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("chainrule.blas.tuning"), name)


__all__ = ["BlasError", "Info", "info", "tune"]
