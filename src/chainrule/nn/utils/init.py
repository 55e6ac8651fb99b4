"""Modules made without drawing initial values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from chainrule.nn.modules.module import Module
from chainrule.random import get_rng_state, set_rng_state

__all__ = ["skip_init"]

M = TypeVar("M", bound=Module)


def skip_init(module_cls: Callable[..., M], *args: Any, **kwargs: Any) -> M:
    """Return a module whose parameters are to be set by the caller, such as by a state dict.

    Parameters
    ----------
    module_cls : class of modules
        It takes `device`.
    *args, **kwargs
        Its arguments.

    Returns
    -------
    Module
        Its values are without meaning, and the default generator is where it was.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.utils.skip_init(cr.nn.Linear, 3, 2).weight.shape
    (2, 3)
    """
    state = get_rng_state()
    try:
        return module_cls(*args, **kwargs)
    finally:
        set_rng_state(state)
