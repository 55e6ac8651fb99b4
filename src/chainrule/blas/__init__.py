"""The library that multiplies matrices: which it is, what it runs on, and better kernels for it.

NumPy hands products of matrices to a BLAS, which has a set of kernels for each kind of processor.
`info` tells what is in use and what to do about it, `tune` switches a running process.

>>> from chainrule import blas
>>> blas.info().library != ""
True

OpenBLAS chooses well for nearly every processor. When chainrule is imported before NumPy, it sees
to the right kernels for the few that OpenBLAS misjudges (see `chainrule.blas.cpu`). That is for
this process alone: its children inherit nothing. With Numba, compiled functions do their large
products themselves where NumPy has OpenBLAS, whatever its kernels are. ``CHAINRULE_BLAS=off`` in
the environment turns all of it off, and `tune` too.

Only the OpenBLAS in NumPy's own wheels for Linux on x86-64 is ever touched. MKL, Accelerate and the
OpenBLAS of conda or of a Linux distribution choose for themselves. So does whoever has set
``OPENBLAS_CORETYPE``: that may be for a reason.
"""

from __future__ import annotations

from chainrule.blas import startup  # it chooses kernels, so it comes before NumPy

# isort: split
import os
import platform
import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from chainrule.blas import openblas
from chainrule.blas.cpu import INSTRUCTIONS, KERNELS, known, rank, suitable
from chainrule.blas.openblas import OpenBLAS
from chainrule.blas.startup import CORETYPE, SWITCH, is_off

__all__ = ["BlasError", "Info", "info", "tune"]

_ours: list[str] = (
    [] if startup.chosen is None else [startup.chosen]
)  # what chainrule chose, the last last


class BlasError(RuntimeError):
    """The kernels can't be switched, or were wrong and have been switched back."""


@final
@dataclass(frozen=True)
class Info:
    """What products of matrices run on. Printed, it is a table.

    Attributes
    ----------
    library : str
        What NumPy is linked with: "OpenBLAS", or the name that NumPy's build gave it.
    version : str or None
    file : str or None
        Where the library was loaded from.
    kernels : str or None
        OpenBLAS' name for the kernels in use; None if the library doesn't tell.
    chosen_by : str
        Who chose them.
    suitable : str or None
        The widest kernels that the processor can run, as far as is known.
    threads : int or None
        How many threads one product is shared among.
    obstacle : str or None
        Why `tune` leaves the library alone; None if it doesn't.
    others : tuple of str
        Files of other BLAS libraries that the process has loaded, such as SciPy's.
    """

    library: str
    version: str | None
    file: str | None
    kernels: str | None
    chosen_by: str
    suitable: str | None
    threads: int | None
    obstacle: str | None
    others: tuple[str, ...]

    @property
    def is_best(self) -> bool:
        """Whether there are no better kernels, as far as is known."""
        now, possible = rank(self.kernels), rank(self.suitable)
        return now is None or possible is None or now >= possible

    @property
    def advice(self) -> str:
        """What to do, in a sentence."""
        if self.is_best:
            return "nothing"
        if self.chosen_by.startswith(CORETYPE):
            here = f"; cr.blas.tune({self.suitable!r}) overrides it here"
            unset = f"if nothing needs {self.chosen_by}, start Python without it"
            return unset + (here if self.obstacle is None else "")
        if self.obstacle is not None:
            return f"{self.suitable} kernels would suit this processor, but {self.obstacle}"
        return f"cr.blas.tune() switches to {self.suitable} kernels"

    def __str__(self) -> str:
        rows = {
            "library": f"{self.library} {self.version or ''}".rstrip(),
            "file": self.file or "not known",
            "kernels": f"{_with_instructions(self.kernels)}, chosen by {self.chosen_by}",
            "suitable": _with_instructions(self.suitable),
            "threads": "not known" if self.threads is None else str(self.threads),
            "also loaded": ", ".join(self.others),
            "to do": self.advice,
        }
        if self.kernels is None:
            rows["kernels"] = f"chosen by {self.chosen_by}"
        return "\n".join(f"{name:<12}{text}" for name, text in rows.items() if text)


def _with_instructions(kernels: str | None) -> str:
    found = known(kernels)
    return f"{kernels} ({INSTRUCTIONS[found]})" if found else kernels or "not known"


def info() -> Info:
    """Return which BLAS NumPy's products run on, with which kernels and threads, and what to do.

    Returns
    -------
    Info
        A frozen record; ``print`` it for a table.

    Examples
    --------
    >>> from chainrule import blas
    >>> blas.info().obstacle is None or isinstance(blas.info().obstacle, str)
    True
    """
    library = openblas.loaded()
    possible = suitable(openblas.features())
    if library is None:
        name, version = _built_with()
        return Info(
            name, version, None, None, name, None, None, obstacle(name), _other_libraries(None)
        )
    kernels = library.kernels
    return Info(
        library="OpenBLAS",
        version=library.version,
        file=library.file,
        kernels=kernels,
        chosen_by=chooser(os.environ, kernels, _ours[-1] if _ours else None),
        suitable=possible,
        threads=library.threads,
        obstacle=obstacle("OpenBLAS", bundled=library.is_numpys_own, can_switch=library.can_switch),
        others=_other_libraries(library.file),
    )


def chooser(environment: Mapping[str, str], kernels: str, ours: str | None) -> str:
    """Return who chose these kernels: chainrule, the variable or the library."""
    if ours is not None and known(ours) == known(kernels):
        return "chainrule"
    asked = environment.get(CORETYPE)
    if asked is not None and known(asked) == known(kernels):
        return f"{CORETYPE}={asked}"
    return "OpenBLAS"


def obstacle(
    library: str,
    *,
    bundled: bool = False,
    can_switch: bool = False,
    system: str = sys.platform,
    machine: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> str | None:
    """Return why this library is left alone, None if there is no reason."""
    machine = platform.machine() if machine is None else machine
    if is_off(environment):
        return f"{SWITCH}={environment[SWITCH]} tells chainrule to leave the BLAS alone"
    if library != "OpenBLAS":
        return f"{library} chooses its own kernels"
    if system != "linux" or machine != "x86_64":
        return f"on {system} with {machine} OpenBLAS is left alone"
    if not bundled:
        return (
            "this OpenBLAS is not the one of NumPy's wheels: whoever built it knows which "
            f"kernels are right in it (to choose, set {CORETYPE} before Python starts)"
        )
    if not can_switch:
        return "this OpenBLAS was built without a choice of kernels"
    return None


def tune(kernels: str | None = None, *, force: bool = False) -> Info:
    """Switch the OpenBLAS of this process to better kernels, and check what they compute.

    Products of several shapes and dtypes are compared with exact references afterwards. If one is
    wrong, the old kernels come back and an error is raised.

    Parameters
    ----------
    kernels : str, optional
        "SkylakeX" (AVX-512), "Haswell" (AVX2), "Sandybridge", "Nehalem" or "Prescott". Left out,
        the widest that the processor can run are chosen, unless ``OPENBLAS_CORETYPE`` says which.
    force : bool, default False
        Switch although other Python threads are alive. A product that one of them is in the middle
        of may then never end, or crash. The threads that a notebook keeps multiply nothing.

    Returns
    -------
    Info
        What is in use now. Nothing is changed if these are the kernels in use.

    Raises
    ------
    BlasError
        If the library is left alone (`Info.obstacle` says why), the environment has chosen, the
        processor or the library lacks the kernels, other threads are alive, or a product was wrong.

    Notes
    -----
    Results differ in their last digits between kernels, so call it once and early. The switch holds
    in this process and in those that it forks later; it can be made in a forked one, too.

    Examples
    --------
    >>> from chainrule import blas
    >>> try:
    ...     print(blas.tune().kernels)  # doctest: +SKIP
    ... except blas.BlasError as error:
    ...     print("left alone:", error)
    SkylakeX
    """
    before = info()
    if before.obstacle is not None:
        raise BlasError(f"tune: {before.obstacle}")
    wanted = _wanted(before, kernels)
    library = openblas.loaded()
    if library is None or known(wanted) == known(before.kernels):
        return before
    if not library.has(wanted):
        raise BlasError(f"tune: this OpenBLAS was built without {wanted} kernels")
    if not force:
        _refuse_other_threads()
    _switch(library, wanted, before)
    return info()


def _wanted(now: Info, kernels: str | None) -> str:
    """Return the kernels to switch to; raise if that isn't to be."""
    if kernels is None:
        if now.is_best or now.suitable is None:
            return now.kernels or ""
        if now.chosen_by.startswith(CORETYPE):
            raise BlasError(f"tune: the environment has chosen the kernels: {now.advice}")
        return now.suitable
    wanted, possible = known(kernels), rank(now.suitable)
    if wanted is None:
        raise BlasError(f"tune: no kernels are called {kernels!r}; there are {', '.join(KERNELS)}")
    if KERNELS.index(wanted) > (KERNELS.index("Nehalem") if possible is None else possible):
        raise BlasError(
            f"tune: this processor can't run {wanted} kernels ({INSTRUCTIONS[wanted]}), as far as "
            f"NumPy can tell; the widest that suit it are {now.suitable or 'Nehalem'}"
        )
    return wanted


def _refuse_other_threads() -> None:
    """Raise if a thread is alive that may be multiplying; those that chainrule keeps are idle."""
    here = threading.get_ident()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    others = [names.get(i, "unnamed") for i in sys._current_frames() if i != here]
    others = [name for name in others if not re.fullmatch(r"chainrule-\d+", name)]
    if others:
        raise BlasError(
            f"tune: other threads are alive ({', '.join(sorted(others))}), and a product that one "
            "of them is in the middle of would hang or crash. Call it before they start, or with "
            "force=True if none of them multiplies now"
        )


def _switch(library: OpenBLAS, wanted: str, before: Info) -> None:
    library.switch(wanted)
    in_use = library.kernels
    wrong = openblas.wrong_products() if known(in_use) == wanted else []
    if known(in_use) != wanted or wrong:
        library.switch(before.kernels)
        reason = f"computed wrong: {', '.join(wrong[:3])}" if wrong else f"became {in_use}"
        raise BlasError(
            f"tune: {wanted} kernels {reason}. OpenBLAS {library.version} is back on "
            f"{library.kernels} kernels"
        )
    _ours.append(wanted)


def _built_with() -> tuple[str, str | None]:
    """Return name and version of the BLAS that NumPy was built for."""
    config = np.show_config(mode="dicts")
    blas = (config or {}).get("Build Dependencies", {}).get("blas", {})
    name = str(blas.get("name") or "a BLAS that NumPy doesn't name")
    return name, blas.get("version") or None


_NAMES = re.compile(r"openblas|mkl_(rt|core)|blis|flexiblas|lib(c|t|sat)?blas|armpl", re.IGNORECASE)


def _other_libraries(file: str | None) -> tuple[str, ...]:
    """Return the files of all other BLAS libraries in this process, as far as Linux tells."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
    except OSError:
        return ()
    found = {path for path in paths if _NAMES.search(os.path.basename(path))}
    return tuple(sorted(found - {file}))
