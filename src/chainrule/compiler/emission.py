"""Emission of programs: as NumPy calls or as machine code, made now or by an earlier process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from chainrule.autograd.remarks import Remark
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.codegen.run import runner
from chainrule.compiler.ir.program import Program
from chainrule.compiler.passes.regions import in_regions
from chainrule.compiler.passes.shared_factors import share_factors

Run = Callable[..., Any]


class Emitted(NamedTuple):
    """A program as a function of arrays, with its source."""

    run: Run
    source: Source
    native: str
    statements: Callable[[], tuple[Source, dict[str, Any]] | None]
    remarks: list[Remark]  # on what has no machine code


def emit(
    program: Program, backend: str | None, keep: Callable[[Any], None] = lambda _: None
) -> Emitted:
    """Return a program as NumPy calls or as machine code, whichever is faster by default.

    `keep` gets what later processes need to run it, once it is known.
    """
    program = in_regions(share_factors)(program)
    source = Source(program)
    if backend == "numpy":
        return Emitted(runner(source), source, "", lambda: (source, {}), [])
    from chainrule.compiler.native import native, native_if_faster

    if backend == "native":
        found = native(program, keep)
    else:
        found = native_if_faster(program, source, keep)
    return Emitted(found.run, source, found.text, found.statements, found.remarks)


_lock = threading.RLock()


class Emission:
    """A program that runs, and what a person may ask about it.

    If an earlier process has left what a call needs on the disk, the program is optimised and
    emitted only when somebody asks for its text.
    """

    def __init__(
        self,
        traced: Program,
        passes: Callable[[Program], Program],
        backend: str | None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """Look for the program on the disk; `prepare` is called before it is emitted."""
        self._program: Program | None = None
        self._traced: Program | None = traced  # until passes have run
        self._passes, self._backend, self._prepare = passes, backend, prepare
        self._file: str | None = None
        stored: Run | None = None
        if backend != "numpy":
            from chainrule.compiler.native import program_files

            self._file = program_files.key_of(traced, backend)
            if self._file is not None:
                stored = program_files.read(self._file, lambda: self.program)
        self.remarks: list[Remark] = [] if stored is not None else self.emitted.remarks
        self.run: Run = self.emitted.run if stored is None else stored

    @property
    def program(self) -> Program:
        """The program after all passes."""
        with _lock:
            if self._traced is not None:
                self._program, self._traced = self._passes(self._traced), None
        assert self._program is not None
        return self._program

    @cached_property
    def emitted(self) -> Emitted:
        """The program with its text."""
        self._prepare()
        return emit(self.program, self._backend, self._keep)

    def _keep(self, call: Any) -> None:
        if self._file is not None:
            from chainrule.compiler.native import program_files

            program_files.write(self._file, call)
