"""Loops whose turns several threads share, called from Python."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from chainrule.compiler.native.code import code_of
from chainrule.compiler.native.threads.pool import team

LARGE = 10
"""A job of so many parts is worth waking a thread for: it comes when a third is done."""

_ALONE = np.zeros(1, np.int64)
"""The words for a job of one part, which has no need of any."""


class Task:
    """A loop `loop(start, stop, *arguments)` whose turns several threads can share.

    `types` says what the arguments are: the code of a type for an array in C order, `n` for an
    integer, `d` for a number; of `long` loops, most turns fill vectors. Nothing is checked.
    """

    def __init__(
        self, text: str, types: tuple[str, ...], calls: frozenset[str], long: bool = True
    ) -> None:
        self.code = code_of(text, types, calls, long, shared=True)
        self._function: Callable[..., None] = self._first

    def _first(self, *arguments: Any) -> None:
        self._function = self.code.function()  # compiled when it is first called
        self._function(*arguments)

    def function(self) -> Task:
        """Return this task when its machine code is there."""
        self._function = self.code.function()
        return self

    def __call__(self, turns: int, step: int, *arguments: Any) -> None:
        """Do all turns, `step` at a time, which take 5 to 10 µs."""
        self.run(turns, step, turns >= LARGE * step, *arguments)

    def run(self, turns: int, step: int, large: bool, *arguments: Any) -> None:
        """Do all turns, and wake threads if the job is large."""
        if turns <= step:
            self._function(_ALONE, turns, step, *arguments)
            return
        members = team()
        if members.helpers:
            members.wake(large)
        self._function(members.words, turns, step, *arguments)
        members.ended = perf_counter()
