"""Fixed points, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import tree
from chainrule.implicit import implicit_function

__all__ = ["fixed_point"]


def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]],
    a: Any,
    x0: Any,
    distance: Callable[[Any, Any], Any],
    tol: float,
) -> Any:
    """Return the x for which ``f(a)(x)`` is x.

    Parameters
    ----------
    f : callable
        ``f(a)`` is a contraction.
    a : tree of arrays
        What the fixed point depends on.
    x0 : array or tree of arrays
        The start of the iteration. The gradient by it is zero.
    distance : callable
        ``distance(x, x_previous)``
    tol : float
        The iteration ends at this distance.
    """

    def iterated(a: Any) -> Any:
        iterate = f(a)
        previous, x = x0, iterate(x0)
        while distance(x, previous) > tol:
            previous, x = x, iterate(x)
        return x

    def change(x: Any, a: Any) -> Any:
        return tree.map(lambda old, new: new - old, x, f(a)(x))

    return implicit_function(iterated, change)(a)
