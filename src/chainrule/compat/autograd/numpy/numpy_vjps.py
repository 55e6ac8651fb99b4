"""Cotangents of broadcast arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["unbroadcast", "unbroadcast_f"]


def unbroadcast(x: Any, target: Any) -> Any:
    """Return an array summed to the shape of another one, and real if that is."""
    shape = np.shape(target)
    if (extra := np.ndim(x) - len(shape)) > 0:
        x = np.sum(x, axis=tuple(range(extra)))
    if axes := tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(x)[i] != 1):
        x = np.sum(x, axis=axes, keepdims=True)
    if np.shape(x) != shape:
        x = np.broadcast_to(x, shape)
    return np.real(x) if np.iscomplexobj(x) and not np.iscomplexobj(target) else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function whose results are those of `f`, summed to the shape of an array."""
    return lambda g: unbroadcast(f(g), target)
