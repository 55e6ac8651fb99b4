"""Operators on functions of one argument, made operators on functions of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from chainrule.compat.autograd.util import subvals
from chainrule.errors import ArgumentTypeError

__all__ = ["get_name", "unary_to_nary", "wraps"]


def get_name(f: Any) -> str:
    """Return the name of a function."""
    return str(getattr(f, "__name__", "[unknown name]"))


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator that takes the position of the argument to work on.

    Parameters
    ----------
    unary_operator : callable
        ``unary_operator(function, x, *settings)``.

    Returns
    -------
    callable
        ``operator(function, argnum=0, *settings)``, which returns a function of the arguments of
        `function`. For several positions, the operator's `x` is a tuple of these arguments.

    Raises
    ------
    TypeError
        If `argnum` is neither a position nor a tuple or list of them.
    """

    @wraps(unary_operator)
    def operator(
        fun: Callable[..., Any], argnum: int | Sequence[int] = 0, *settings: Any, **named: Any
    ) -> Callable[..., Any]:
        if not isinstance(argnum, int | tuple | list):
            raise ArgumentTypeError(
                f"{get_name(unary_operator)}: argnum is a position, or a tuple or list of "
                f"positions, got {argnum!r}. For arguments by name, take chainrule.grad"
            )

        def of_arguments(*args: Any, **kwargs: Any) -> Any:
            def of_one(x: Any) -> Any:
                changed = [(argnum, x)] if isinstance(argnum, int) else zip(argnum, x, strict=True)
                return fun(*subvals(args, changed), **kwargs)

            of_one.__name__ = get_name(fun)
            x = args[argnum] if isinstance(argnum, int) else tuple([args[i] for i in argnum])
            return unary_operator(of_one, x, *settings, **named)

        title = f"{get_name(unary_operator)}_of_{get_name(fun)}_wrt_argnum_{argnum}"
        of_arguments.__name__ = of_arguments.__qualname__ = title
        of_arguments.__doc__ = (
            f"    {get_name(unary_operator)} of function {get_name(fun)} with respect to argument "
            f"number {argnum}."
        )
        return of_arguments

    return operator
