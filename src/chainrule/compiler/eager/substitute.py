"""Substitution of hand-written kernels for primitives, on large arrays that the kernels support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.backend import ndarray
from chainrule.compiler.native.kernel import is_plain
from chainrule.primitives.primitive import Plan, Rule

Array = Any
Settings = dict[str, Any] | None
KernelFunction = Callable[..., Any]
OptionalKernel = KernelFunction | None


class HandWritten:
    """Substitute of a primitive by functions that return None for unsupported arguments.

    `forward` takes the inputs and settings. `vjp` takes the cotangent of the first output, the
    saved values and the settings, and is used if only the input at position `of` needs a gradient,
    or with `of=None` if all inputs do: then it returns a tuple.
    NumPy computes if the first input or the cotangent has fewer than `min_size` elements.
    """

    def __init__(
        self,
        forward: OptionalKernel,
        vjp: OptionalKernel,
        min_size: int,
        *,
        of: int | None = 0,
    ) -> None:
        self._forward, self._vjp, self._of, self._min_size = forward, vjp, of, min_size

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function; `plain` is NumPy's."""
        kernel, min_size = self._forward, self._min_size
        if kernel is None:
            return plain

        def forward(*arrays: Array, **settings: Any) -> Any:
            if arrays[0].size >= min_size and are_supported(arrays):
                found = kernel(*arrays, **settings)
                if found is not None:
                    return found
            return plain(*arrays, **settings)

        return forward

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the VJP function of a plan."""
        kernel, position, min_size, count = self._vjp, self._of, self._min_size, len(plan.needs)
        single = position is not None
        wanted = tuple([position is None or i == position for i in range(count)])
        if kernel is None or plan.needs != wanted:
            return plain

        def vjp(xp: Any, g: Any, saved: tuple[Any, ...], settings: Settings) -> Any:
            first = g.get(0) if g.__class__ is dict and len(g) == 1 else g
            arrays = (first, *[x for x in saved if x.__class__ is ndarray])
            if first.__class__ is ndarray and first.size >= min_size and are_supported(arrays):
                found: Any = kernel(first, *saved, **(settings or {}))
                if found is not None:
                    return tuple([found if need else None for need in wanted]) if single else found
            return plain(xp, g, saved, settings)

        return vjp


def are_supported(arrays: tuple[Array, ...]) -> bool:
    """Whether kernels support these arrays: all plain, and the first of a real floating dtype."""
    return arrays[0].dtype.char in "fd" and all(map(is_plain, arrays))
