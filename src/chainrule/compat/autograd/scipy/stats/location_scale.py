"""Functions of continuous distributions with location and scale, from the score of the density."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.scipy.partial_derivatives import from_partials

__all__ = ["functions_of"]

Function = Callable[..., Any]


def functions_of(
    distribution: Any, shapes: str, score: Function, *by_shapes: Function
) -> list[Function]:
    """Return pdf, logpdf, cdf, logcdf, sf and logsf of a distribution of `scipy.stats`.

    `score` is the derivative of the logarithm of the standard density at y, ``score(y, *shapes)``,
    and `by_shapes` are those by the shape parameters. Cumulative functions have no derivatives by
    these.
    """
    names = f"x {shapes} loc scale"
    count = len(by_shapes)

    def standard(args: Sequence[Any]) -> tuple[Any, list[Any], Any]:
        x, *rest = args
        given = rest[:count]
        loc, scale = rest[count:] + [0.0, 1.0][len(rest) - count :]
        return (x - loc) / scale, given, scale

    def by_place(slope: Function) -> list[Any]:
        """Return the partials of a function of y alone, ``slope(ans, args)`` by x."""
        return [
            lambda ans, *args: slope(ans, args),
            *[None] * count,
            lambda ans, *args: -slope(ans, args),
            lambda ans, *args: -slope(ans, args) * standard(args)[0],
        ]

    def slope_of_log(ans: Any, args: Any) -> Any:
        y, given, scale = standard(args)
        return score(y, *given) / scale

    def by_shape(k: int) -> Function:
        def partial(ans: Any, *args: Any) -> Any:
            y, given, _ = standard(args)
            return by_shapes[k](y, *given)

        return partial

    def by_scale(ans: Any, *args: Any) -> Any:
        y, _, scale = standard(args)
        return -(1 + y * slope_of_log(ans, args) * scale) / scale

    of_log = by_place(slope_of_log)
    of_log[1 : 1 + count] = [by_shape(k) for k in range(count)]
    of_log[-1] = by_scale

    def times_ans(partial: Function) -> Function:
        return lambda ans, *args: ans * partial(ans, *args)

    pdf = from_partials(distribution.pdf, names, [times_ans(p) for p in of_log])
    logpdf = from_partials(distribution.logpdf, names, of_log)

    def ratio(ans: Any, args: Any) -> Any:
        return np.exp(logpdf(*args) - ans)

    slopes: dict[str, Function] = {
        "cdf": lambda ans, args: pdf(*args),
        "logcdf": ratio,
        "sf": lambda ans, args: -pdf(*args),
        "logsf": lambda ans, args: -ratio(ans, args),
    }
    rest = [
        from_partials(getattr(distribution, name), names, by_place(slope))
        for name, slope in slopes.items()
    ]
    return [pdf, logpdf, *rest]
