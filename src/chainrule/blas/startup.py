"""What has to be done before NumPy is loaded: `chainrule` imports this module first.

NumPy's OpenBLAS chooses its kernels while it is loaded, and reads ``OPENBLAS_CORETYPE`` then. For a
processor that it misjudges (see `processor`) the variable is set for just as long. Afterwards it is
gone, so that child processes, whose OpenBLAS may be another, inherit nothing.

Nothing is done where NumPy is loaded already, where it isn't the wheel for Linux on x86-64 with its
own OpenBLAS, where somebody has set the variable, and where ``CHAINRULE_BLAS`` is ``off``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from chainrule.blas.cpu import Processor, better, described

if TYPE_CHECKING:
    from chainrule.blas.openblas import OpenBLAS

CORETYPE = "OPENBLAS_CORETYPE"
SWITCH = "CHAINRULE_BLAS"


def is_off(environment: Mapping[str, str]) -> bool:
    """Say whether the user wants chainrule to leave the BLAS alone."""
    return environment.get(SWITCH, "").strip().lower() in ("off", "0", "no", "false")


def choice(environment: Mapping[str, str], processor: Processor | None) -> str | None:
    """Return the kernels to ask OpenBLAS for while it is loaded, None to let it choose."""
    if is_off(environment) or CORETYPE in environment or processor is None:
        return None
    return better(processor)


def _processor() -> Processor | None:
    """Return what Linux says of the processor; reading it takes 30 to 50 µs."""
    if sys.platform != "linux" or os.uname().machine != "x86_64" or sys.maxsize < 2**32:
        return None
    try:
        with open("/proc/cpuinfo", "rb", buffering=0) as file:
            return described(file.read(4096).decode("ascii", "replace"))
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
    """Load NumPy with the right kernels where they have to be chosen; return the choice."""
    if "numpy" in sys.modules:
        return None
    kernels = choice(os.environ, _processor())
    if kernels is None or not _wheel_has_openblas():
        return None
    os.environ[CORETYPE] = kernels
    try:
        import numpy  # noqa: F401 - only loaded
    finally:
        del os.environ[CORETYPE]
    from chainrule.blas.openblas import loaded

    return confirmed(kernels, loaded())


def confirmed(kernels: str, library: OpenBLAS | None) -> str | None:
    """Return these kernels if products are right; else give the choice back to OpenBLAS."""
    if library is None or library.is_right():
        return kernels
    library.switch(None)
    return None


chosen = _load_numpy()
"""The kernels that were chosen when chainrule was imported, None if OpenBLAS chose."""
