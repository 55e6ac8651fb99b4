"""`Kernel`: a Python loop compiled to machine code for each dtype, and run by several threads."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from chainrule.backend import ndarray
from chainrule.compiler.native.loop_nest import LOOP_NAME
from chainrule.compiler.native.threads.tasks import Task

Array = Any

PART = 1 << 15
"""Number of elements that a thread computes at a time."""

MIN_SIZE = 1 << 12
"""Number of elements from which a kernel is faster than several NumPy calls."""

_CODES = {"f": "f4", "d": "f8"}
_NAMES = ("exp", "log", "rank", "ranked", "tanh")
_TYPED = {name: f"{name}_{{}}" for name in _NAMES} | {"real": "{}"}


class Kernel:
    """A function `(start, stop, …)` that runs some iterations of a loop, compiled for each dtype.

    `types` are the types of its arguments: "real" for an array of the dtype that it computes with,
    others as for a `Task`, as is `long`. `constants` are compile-time constants that it names.
    """

    def __init__(
        self, function: Callable[..., None], types: str, *, long: bool = False, **constants: float
    ) -> None:
        self.function = function
        self.types = tuple(types.split())
        self.long = long
        self.constants = constants
        self.tasks = {char: self._task(code) for char, code in _CODES.items()}

    def _task(self, code: str) -> Task:
        def typed(name: str) -> str:
            return _TYPED.get(name, name).format(code)

        name = self.function.__name__
        source = inspect.getsource(self.function).replace(f"def {name}(", f"def {LOOP_NAME}(", 1)
        source = re.sub(r"\w+", lambda found: typed(found[0]), source)
        known = "".join(f"{name} = {value!r}\n" for name, value in self.constants.items())
        return Task(
            f"from __future__ import annotations\n\n{known}\n{source}",
            tuple([code if kind == "real" else kind for kind in self.types]),
            self.long,
        )

    def __call__(self, char: str, turns: int, width: int, *arguments: Any) -> None:
        """Run all iterations, each of `width` elements, for a dtype."""
        self.tasks[char](turns, PART // width or 1, *arguments)


def is_plain(x: Any) -> bool:
    """Whether an object is a writeable, aligned NumPy array in C order and native byte order."""
    return x.__class__ is ndarray and x.flags.carray and x.dtype.isnative
