"""Loops whose turns several threads share, called from Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.compiler.native.code import code_of
from chainrule.compiler.native.team import team

WORTH = 4
"""A job of so many parts is worth waking a thread for, which takes some µs."""


class Task:
    """A loop `loop(start, stop, *arguments)` whose turns several threads can share.

    `types` says what the arguments are: the code of a type for an array in C order, `n` for an
    integer, `d` for a number; of `long` loops, most turns fill vectors. Nothing is checked.
    """

    def __init__(
        self, text: str, types: tuple[str, ...], calls: frozenset[str], long: bool = True
    ) -> None:
        self.code = code_of(text, types, calls, long, shared=True)
        self._function: Callable[..., None] | None = None

    def __call__(self, turns: int, step: int, *arguments: Any) -> None:
        """Do all turns, `step` at a time."""
        function = self._function
        if function is None:
            function = self._function = self.code.function()
        members = team()
        if turns >= WORTH * step and members.helpers:
            members.wake()
        function(members.words, turns, step, *arguments)
