"""Choice of OpenBLAS kernels before NumPy is loaded; `chainrule` imports this module first.

NumPy's OpenBLAS chooses its kernels while it is loaded, and reads ``OPENBLAS_CORETYPE`` then. For a
processor that it misjudges (see `chainrule.blas.cpu`) the variable is set only while NumPy is
loaded, so that child processes, whose OpenBLAS may be another, do not inherit it.

Nothing is done if NumPy is loaded already, if it is not the wheel for Linux on x86-64 with its own
OpenBLAS, if the variable is set, or if ``CHAINRULE_BLAS`` is ``off``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from chainrule.blas.cpu import Processor, better_kernels, parse_cpuinfo

if TYPE_CHECKING:
    from chainrule.blas.openblas import OpenBLAS

CORETYPE = "OPENBLAS_CORETYPE"
SWITCH = "CHAINRULE_BLAS"


def is_disabled(environment: Mapping[str, str]) -> bool:
    """Return whether the user has told chainrule to leave the BLAS alone."""
    return environment.get(SWITCH, "").strip().lower() in ("off", "0", "no", "false")


def requested_kernels(environment: Mapping[str, str], processor: Processor | None) -> str | None:
    """Return the kernels to request while OpenBLAS is loaded, None to let it choose."""
    if is_disabled(environment) or CORETYPE in environment or processor is None:
        return None
    return better_kernels(processor)


def _processor() -> Processor | None:
    """Return the processor according to Linux; reading the file takes 30 to 50 µs."""
    if sys.platform != "linux" or os.uname().machine != "x86_64" or sys.maxsize < 2**32:
        return None
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            return parse_cpuinfo(file.read(4096).decode("ascii", "replace"))
    except OSError:
        return None


def _wheel_has_openblas() -> bool:
    from importlib.util import find_spec

    spec = find_spec("numpy")
    for folder in (spec and spec.submodule_search_locations) or ():
        try:
            names = os.listdir(os.path.join(os.path.dirname(folder), "numpy.libs"))
        except OSError:
            continue
        return any(name.startswith("libscipy_openblas64_") for name in names)
    return False


def _load_numpy() -> str | None:
    """Import NumPy with better kernels where OpenBLAS misjudges the processor; return them."""
    if "numpy" in sys.modules:
        return None
    kernels = requested_kernels(os.environ, _processor())
    if kernels is None or not _wheel_has_openblas():
        return None
    os.environ[CORETYPE] = kernels
    try:
        import_module("numpy")  # loads OpenBLAS
    finally:
        del os.environ[CORETYPE]
    from chainrule.blas.openblas import loaded

    return keep_if_correct(kernels, loaded())


def keep_if_correct(kernels: str, library: OpenBLAS | None) -> str | None:
    """Return these kernels if products are correct; else restore OpenBLAS' own choice."""
    if library is None or library.is_correct():
        return kernels
    library.switch(None)
    return None


chosen = _load_numpy()
"""The kernels chosen when chainrule was imported, None if OpenBLAS chose."""
