"""Primitives that kernels of their own compute, where arrays are large and what these take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.backend import ndarray
from chainrule.primitives.primitive import Plan, Rule

Array = Any
Settings = dict[str, Any] | None
Own = Callable[..., Any]


class Written:
    """Computes a primitive by functions that return None for what they aren't made for.

    `forward` is one of the inputs and settings; `vjp` of the cotangent of the first output, what
    the rule saves and settings, where input number `of` alone has a gradient. A first input or
    cotangent of fewer than `least` elements is left to the primitive.
    """

    def __init__(self, forward: Own | None, vjp: Own | None, least: int, *, of: int = 0) -> None:
        self._forward, self._vjp, self._of, self._least = forward, vjp, of, least

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function."""
        own, least = self._forward, self._least
        if own is None:
            return plain

        def forward(*arrays: Array, **settings: Any) -> Any:
            if arrays[0].size >= least and are_fit(arrays):
                found = own(*arrays, **settings)
                if found is not None:
                    return found
            return plain(*arrays, **settings)

        return forward

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the pull of a plan."""
        own, place, least, count = self._vjp, self._of, self._least, len(plan.needs)
        if own is None or plan.needs != tuple([i == place for i in range(count)]):
            return plain

        def vjp(xp: Any, g: Any, saved: tuple[Any, ...], settings: Settings) -> tuple[Any, ...]:
            whole = g.get(0) if g.__class__ is dict and len(g) == 1 else g
            arrays = (whole, *[x for x in saved if x.__class__ is ndarray])
            if whole.__class__ is ndarray and whole.size >= least and are_fit(arrays):
                found = own(whole, *saved, **(settings or {}))
                if found is not None:
                    return (None,) * place + (found,) + (None,) * (count - place - 1)
            grads: tuple[Any, ...] = plain(xp, g, saved, settings)
            return grads

        return vjp


def are_fit(arrays: tuple[Array, ...]) -> bool:
    """Say whether kernels take some arrays: they are in C order, and the first of real numbers."""
    return arrays[0].dtype.char in "fd" and all(map(is_plain, arrays))


def is_plain(x: Any) -> bool:
    """Say whether machine code can take something's memory: an array's in C order, as it is."""
    return x.__class__ is ndarray and x.flags.carray and x.dtype.isnative
