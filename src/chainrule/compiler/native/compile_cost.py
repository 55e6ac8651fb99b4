"""The time that LLVM takes for generated source, and how much of it a call may take."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from chainrule.errors import ArgumentError

LINE_MS, _LOOP_MS, FUNCTION_MS = 0.25, 1.3, 10.0
"""Milliseconds for a line, a loop, and a function that LLVM writes out: a polynomial, or the
elimination of a matrix. Fitted to functions of 20 to 2,400 lines, most of which took 0.5 to 1.5 of
what this says. Many loops are not worse than few, since they are divided: see `llvm_split`."""

KERNELS_SHARE = 0.6
"""Share of the time for kernels, if a program would take longer than the rest as one function.

A table of their calls takes LLVM a fifth to a tenth of the time, and a call at most twice as long.
"""

_PARTS = re.compile(
    r"(for )|(?:\w+_f[48]|eliminate|substitute|cholesky|log_determinant|sort_order|search)\("
)


class Cost:
    """The time that LLVM takes for one function, line by line."""

    def __init__(self) -> None:
        self.milliseconds = 0.0  # for the lines so far, roughly

    def add(self, lines: Iterable[str]) -> None:
        """Add lines of the source."""
        for line in lines:
            self.milliseconds += LINE_MS
            for found in _PARTS.finditer(line):
                self.milliseconds += _LOOP_MS if found[1] else FUNCTION_MS


def compile_ms(text: str) -> float:
    """Return the milliseconds that LLVM takes for the source of a function, roughly."""
    cost = Cost()
    cost.add(text.splitlines())
    return cost.milliseconds


def budget_ms() -> float:
    """Return the milliseconds that the machine code of a call may take to compile."""
    chosen = os.environ.get("CHAINRULE_COMPILE_SECONDS") or "5"
    try:
        return max(1000 * float(chosen), 0.0)
    except ValueError:
        raise ArgumentError(
            f"CHAINRULE_COMPILE_SECONDS is a number of seconds, got {chosen!r}: unset it, or set "
            "it to the longest time that the first call of a compiled function may take"
        ) from None
