"""Functions of SciPy's that act elementwise, with rules made from their partial derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.extend import defjvp_argnums, defvjp_argnums, primitive
from chainrule.compat.autograd.numpy.numpy_vjps import unbroadcast

__all__ = ["from_partials"]

Partial = Callable[..., Any]
DEFAULTS = {"loc": 0.0, "scale": 1.0}


def from_partials(
    function: Any, names: str, partials: Sequence[Partial | None]
) -> Callable[..., Any]:
    """Return an elementwise function as one with rules for both modes.

    `names` are those of its arguments, which may be passed by name. A partial derivative is
    ``partial(ans, *args)``; None says that there is none.
    """
    parameters = names.split()
    recorded = primitive(function)
    title = getattr(function, "__name__", "function")

    def partial(i: int, ans: Any, args: Any) -> Any:
        found = partials[i] if i < len(partials) else None
        if found is None:
            name = parameters[i]
            raise NotImplementedError(
                f"{title}: its derivative by {name} is not implemented: give {name} as a number "
                "that is not differentiated"
            )
        return found(ans, *args)

    def vjps(argnums: Sequence[int], ans: Any, args: Any, _: Any) -> Callable[[Any], list[Any]]:
        return lambda g: [unbroadcast(g * partial(i, ans, args), args[i]) for i in argnums]

    def jvps(argnums: Sequence[int], gs: Sequence[Any], ans: Any, args: Any, _: Any) -> Any:
        parts = [g * partial(i, ans, args) for i, g in zip(argnums, gs, strict=True)]
        return np.broadcast_to(sum(parts), np.shape(ans))

    defvjp_argnums(recorded, vjps)
    defjvp_argnums(recorded, jvps)

    def by_position(*args: Any, **kwargs: Any) -> Any:
        if not kwargs:
            return recorded(*args)
        rest = parameters[len(args) :]
        if not rest or set(kwargs) - set(rest):
            return recorded(*args, **kwargs)
        last = max(rest.index(name) for name in kwargs)
        found = [kwargs.get(name, DEFAULTS.get(name)) for name in rest[: last + 1]]
        return recorded(*args, *found)

    return update_wrapper(by_position, function)
