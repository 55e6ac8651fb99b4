"""Parallel loops that are called from Python."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from chainrule.compiler.native.code import Code, cached_code
from chainrule.compiler.native.threads.pool import team

WAKE_MIN_PARTS = 10
"""Number of parts from which waking threads pays: they arrive when a third is done."""

SERIAL_WORDS = np.zeros(1, np.int64)
"""Dummy words for jobs of one part, which do not use the team."""


class Task:
    """A loop `loop(start, stop, *arguments)` whose iterations threads can share.

    `types` has the type of each argument: a type code for a C-contiguous array, `n` for an integer,
    `d` for a float. `long` loops have many iterations. Arguments are not checked.
    """

    def __init__(self, text: str, types: tuple[str, ...], long: bool = True) -> None:
        self._set_code(cached_code(text, types, long, parallel=True))

    @classmethod
    def of(cls, code: Code) -> Task:
        """Return the task of a function whose code is known."""
        task = cls.__new__(cls)
        task._set_code(code)
        return task

    def __reduce__(self) -> Any:
        return Task.of, (self.code,)

    def _set_code(self, code: Code) -> None:
        self.code = code
        self._function: Callable[..., None] = self._compile_and_run

    def _compile_and_run(self, *arguments: Any) -> None:
        self._function = self.code.function()  # compiled at the first call
        self._function(*arguments)

    def function(self) -> Task:
        """Return this task after loading or compiling its machine code."""
        self._function = self.code.function()
        return self

    def address(self) -> int:
        """Return the address of the machine code, for `worker.multiply`."""
        arguments: list[Any] = [{"n": 0, "d": 0.0}.get(t, SERIAL_WORDS) for t in self.code.types]
        word = np.zeros(1, np.int64)
        self.code.function()(word, -1, 0, *arguments)
        return int(word[0])

    def __call__(self, iterations: int, step: int, *arguments: Any) -> None:
        """Run all iterations, `step` at a time, which should take 5 to 10 µs."""
        self.run(iterations, step, iterations >= WAKE_MIN_PARTS * step, *arguments)

    def run(self, iterations: int, step: int, large: bool, *arguments: Any) -> None:
        """Run all iterations, and wake threads if the job is large."""
        if iterations <= step:
            self._function(SERIAL_WORDS, iterations, step, *arguments)
            return
        current = team()
        if current.helper_count:
            current.wake(large)
        self._function(current.words, iterations, step, *arguments)
        current.last_job_end = perf_counter()


def call_with_team(function: Callable[..., None], large: bool, *arguments: Any) -> None:
    """Call machine code that shares parts of its work itself; the team is its last argument."""
    current = team()
    if current.helper_count:
        current.wake(large)
    function(*arguments, current.words)
    current.last_job_end = perf_counter()
