"""Functions whose operations don't depend on their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["const_graph"]


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """Return the function with its first arguments given.

    It is called as it is: its operations are recorded anew each time. `chainrule.compile` makes a
    program of them.
    """
    return partial(fun, *args, **kwargs)
