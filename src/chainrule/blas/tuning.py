"""Report of the BLAS in use, and switching of its kernels."""

from __future__ import annotations

import os
import platform
import re
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from chainrule.blas import openblas, startup
from chainrule.blas.cpu import INSTRUCTIONS, KERNELS, canonical_name, rank, widest_kernels
from chainrule.blas.openblas import OpenBLAS
from chainrule.blas.startup import CORETYPE, SWITCH, is_disabled
from chainrule.kernels.threads import HelperThreads

__all__ = ["BlasError", "Info", "info", "tune"]

_own_choices: list[str] = (
    [] if startup.chosen is None else [startup.chosen]
)  # kernels that chainrule has chosen, latest last


class BlasError(RuntimeError):
    """The kernels can't be switched, or computed wrong results and were switched back."""


@final
@dataclass(frozen=True)
class Info:
    """The BLAS library that computes matrix products; prints as a table.

    Attributes
    ----------
    library : str
        The library that NumPy is linked with: "OpenBLAS", or its name in NumPy's build.
    version : str or None
    file : str or None
        The file that the library was loaded from.
    kernels : str or None
        OpenBLAS' name for the kernels in use; None for other libraries.
    chosen_by : str
        "chainrule", "OpenBLAS", another library or the environment variable.
    suitable : str or None
        The widest kernels that the processor can run, None if unknown.
    threads : int or None
        Number of threads of one product.
    obstacle : str or None
        The reason for which `tune` refuses to switch, if any.
    others : tuple of str
        Files of other loaded BLAS libraries, such as SciPy's.
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
        """The recommended action, in a sentence."""
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
    found = canonical_name(kernels)
    return f"{kernels} ({INSTRUCTIONS[found]})" if found else kernels or "not known"


def info() -> Info:
    """Return the BLAS of NumPy's matrix products, its kernels and threads, and advice.

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
    possible = widest_kernels(openblas.features())
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
        chosen_by=origin_of_choice(os.environ, kernels, _own_choices[-1] if _own_choices else None),
        suitable=possible,
        threads=library.threads,
        obstacle=obstacle("OpenBLAS", bundled=library.is_numpys_own, can_switch=library.can_switch),
        others=_other_libraries(library.file),
    )


def origin_of_choice(environment: Mapping[str, str], kernels: str, ours: str | None) -> str:
    """Return the origin of the kernels in use: chainrule, the variable or the library."""
    if ours is not None and canonical_name(ours) == canonical_name(kernels):
        return "chainrule"
    asked = environment.get(CORETYPE)
    if asked is not None and canonical_name(asked) == canonical_name(kernels):
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
    """Return the reason for leaving this library alone, None if there is none."""
    machine = platform.machine() if machine is None else machine
    if is_disabled(environment):
        return f"{SWITCH}={environment[SWITCH]} tells chainrule to leave the BLAS alone"
    if library != "OpenBLAS":
        return f"{library} chooses its own kernels"
    if system != "linux" or machine != "x86_64":
        return f"on {system} with {machine} OpenBLAS is left alone"
    if not bundled:
        return (
            "this OpenBLAS is not the one of NumPy's wheels, and its kernels are chosen by those "
            f"who built it (to choose others, set {CORETYPE} before Python starts)"
        )
    if not can_switch:
        return "this OpenBLAS was built without a choice of kernels"
    return None


def tune(kernels: str | None = None, *, force: bool = False) -> Info:
    """Switch the OpenBLAS of this process to better kernels, and verify their results.

    Products of several shapes and dtypes are compared with exact references afterwards. If one is
    wrong, the old kernels are restored and an error is raised.

    Parameters
    ----------
    kernels : str, optional
        "SkylakeX" (AVX-512), "Haswell" (AVX2), "Sandybridge", "Nehalem" or "Prescott". By default
        the widest that the processor can run, unless ``OPENBLAS_CORETYPE`` is set.
    force : bool, default False
        Switch although other Python threads are alive. A product that runs in one of them at that
        moment may hang or crash. The threads of a notebook compute no products.

    Returns
    -------
    Info
        The new state. Nothing changes if these kernels are in use already.

    Raises
    ------
    BlasError
        If there is an `Info.obstacle`, the environment has chosen, the processor or the library
        lacks the kernels, other threads are alive, or a product was wrong.

    Notes
    -----
    Results differ in their last digits between kernels, so call it once and early. The switch
    applies to this process and to processes forked later; a forked process may switch, too.

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
    wanted = _requested(before, kernels)
    library = openblas.loaded()
    if library is None or canonical_name(wanted) == canonical_name(before.kernels):
        return before
    if not library.has(wanted):
        raise BlasError(f"tune: this OpenBLAS was built without {wanted} kernels")
    if not force:
        _refuse_other_threads()
    _switch(library, wanted, before)
    return info()


def _requested(now: Info, kernels: str | None) -> str:
    """Return the kernels to switch to; raise if the request cannot be met."""
    if kernels is None:
        if now.is_best or now.suitable is None:
            return now.kernels or ""
        if now.chosen_by.startswith(CORETYPE):
            raise BlasError(f"tune: the environment has chosen the kernels: {now.advice}")
        return now.suitable
    wanted, possible = canonical_name(kernels), rank(now.suitable)
    if wanted is None:
        raise BlasError(f"tune: no kernels are called {kernels!r}; there are {', '.join(KERNELS)}")
    if KERNELS.index(wanted) > (KERNELS.index("Nehalem") if possible is None else possible):
        raise BlasError(
            f"tune: this processor can't run {wanted} kernels ({INSTRUCTIONS[wanted]}), according "
            f"to NumPy; the widest that it can run are {now.suitable or 'Nehalem'}"
        )
    return wanted


def _refuse_other_threads() -> None:
    """Raise if a thread is alive that may be in a product; chainrule's own threads are idle."""
    threads = {thread.ident: thread for thread in threading.enumerate()}
    own = {threading.get_ident(), *(i for i, t in threads.items() if t in HelperThreads.started)}
    others = [
        threads[i].name if i in threads else "unnamed" for i in sys._current_frames().keys() - own
    ]
    if others:
        raise BlasError(
            f"tune: other threads are alive ({', '.join(sorted(others))}), and a product that one "
            "of them computes now would hang or crash. Call it before they start, or with "
            "force=True if none of them is in a product"
        )


def _switch(library: OpenBLAS, wanted: str, before: Info) -> None:
    library.switch(wanted)
    in_use = library.kernels
    wrong = openblas.wrong_products() if canonical_name(in_use) == wanted else []
    if canonical_name(in_use) != wanted or wrong:
        library.switch(before.kernels)
        reason = f"computed wrong: {', '.join(wrong[:3])}" if wrong else f"became {in_use}"
        raise BlasError(
            f"tune: {wanted} kernels {reason}. OpenBLAS {library.version} is back on "
            f"{library.kernels} kernels"
        )
    _own_choices.append(wanted)


def _built_with() -> tuple[str, str | None]:
    """Return name and version of the BLAS in NumPy's build configuration."""
    config = np.show_config(mode="dicts")
    blas = (config or {}).get("Build Dependencies", {}).get("blas", {})
    name = str(blas.get("name") or "a BLAS that NumPy doesn't name")
    return name, blas.get("version") or None


_NAMES = re.compile(r"openblas|mkl_(rt|core)|blis|flexiblas|lib(c|t|sat)?blas|armpl", re.IGNORECASE)


def _other_libraries(file: str | None) -> tuple[str, ...]:
    """Return the files of all other BLAS libraries in this process; empty except on Linux."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count("/")}
    except OSError:
        return ()
    found = {path for path in paths if _NAMES.search(os.path.basename(path))}
    return tuple(sorted(found - {file}))
