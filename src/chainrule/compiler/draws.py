"""Generators of random numbers in a trace: which may be recorded, and who else drew from them."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

from chainrule import pytree
from chainrule.compiler.guards.discovery import Found, is_generator
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Line, every_line
from chainrule.errors import CompileError


class Watched:
    """The generators that a function can get at, and how far they had come before it was traced."""

    def __init__(self, args: Any, kwargs: Any, found: Iterable[Found]) -> None:
        leaves = [leaf for _, leaf in pytree.leaves([args, kwargs])]
        values = [*leaves, *(item.value for item in found)]
        self._states = [(g, _state(g)) for g in values if is_generator(g)]

    def check(self, lines: list[Line]) -> None:
        """Raise if the function drew by a generator's own method, or from one that it made."""
        for generator, before in self._states:
            if _state(generator) != before:
                raise CompileError(
                    f"a compiled function called a method of a {_name(generator)}, whose "
                    "numbers would be the same at every call: draw with cr.randn(…, rng=rng) and "
                    "its kin, or pass the numbers as an argument"
                )
        draws = [line for line in every_line(lines) if line.function == DRAW]
        times = Counter(id(line.args[0]) for line in draws)
        for line in draws:
            if sys.getrefcount(line.args[0]) - _PASSING == times[id(line.args[0])]:
                raise CompileError(
                    "a compiled function drew from a generator that it had made itself, which "
                    "would go on at the next call in the place of beginning anew: make it outside"
                )


def _state(generator: Any) -> bytes:
    if hasattr(generator, "bit_generator"):
        return pickle.dumps(generator.bit_generator.state)
    state = getattr(generator, "get_state", None) or generator.getstate  # NumPy's or Python's
    return pickle.dumps(state())


def _name(generator: Any) -> str:
    module = type(generator).__module__.removesuffix(".mtrand").removesuffix("._generator")
    return f"{module}.{type(generator).__name__}"


_PROBE = (object(),)
_PASSING = sys.getrefcount(_PROBE[0]) - 1
"""How many references a call of getrefcount has of its own."""
