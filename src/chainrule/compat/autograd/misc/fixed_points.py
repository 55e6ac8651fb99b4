"""Fixed points, differentiated by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.compat.autograd.core import make_vjp
from chainrule.compat.autograd.extend import defvjp, primitive, vspace

__all__ = ["fixed_point"]


@primitive
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

    Notes
    -----
    With x = F(a, x), the cotangent w of x solves w = g + wᵀ∂F/∂x, a fixed point again; that of a
    is wᵀ∂F/∂a (B. Christianson, Optimization Methods and Software 3, 1994).
    """
    iterate = f(a)
    previous, x = x0, iterate(x0)
    while distance(x, previous) > tol:
        previous, x = x, iterate(x)
    return x


def _vjp_of_a(ans: Any, f: Any, a: Any, x0: Any, distance: Any, tol: float) -> Callable[[Any], Any]:
    def adjoint(given: tuple[Any, Any, Any]) -> Callable[[Any], Any]:
        a, x, g = given
        vjp_x, _ = make_vjp(f(a), x)
        return lambda w: vspace(x).add(g, vjp_x(w))

    vjp_a, _ = make_vjp(lambda a: f(a)(ans), a)
    zeros = vspace(x0).zeros()
    return lambda g: vjp_a(fixed_point(adjoint, (a, ans, g), zeros, distance, tol))


defvjp(fixed_point, None, _vjp_of_a, None)
