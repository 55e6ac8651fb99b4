"""Situations that many primitives share, and spellings for the libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.primitives import TABLE
from conformance.row import Strided, situation

UNARY = (
    situation("plain", (2, 3)),
    situation("0-d", ()),
    situation("size-0", (2, 0)),
    situation("non-contiguous", Strided((2, 3))),
)

MASK = np.array([[True, False, True], [False, False, True]])

BINARY = (
    situation("plain", (2, 3), (2, 3)),
    situation("broadcast", (2, 1), (3,)),
    situation("broadcast-lead", (3,), (2, 3)),
    situation("0-d", (), ()),
    situation("0-d-and-vector", (), (3,)),
    situation("size-0", (2, 0), (2, 1)),
    situation("non-contiguous", Strided((2, 3)), Strided((2, 3))),
)

REDUCTION = (
    situation("everything", (2, 3), axis=None, keepdims=False),
    situation("axis", (2, 3), axis=(1,), keepdims=False),
    situation("axes", (2, 3, 2), axis=(0, 2), keepdims=False),
    situation("keepdims", (2, 3), axis=(0,), keepdims=True),
    situation("everything-keepdims", (2, 2), axis=None, keepdims=True),
    situation("0-d", (), axis=None, keepdims=False),
    situation("size-0-beside", (0, 2), axis=(1,), keepdims=False),
    situation("non-contiguous", Strided((2, 3)), axis=(0,), keepdims=False),
)

EMPTY_REDUCTION = (
    situation("size-0", (0,), axis=None, keepdims=False),
    situation("size-0-axis", (2, 0), axis=(1,), keepdims=False),
)

RUNNING = (
    situation("plain", (4,), axis=0),
    situation("rows", (2, 3), axis=1),
    situation("middle", (2, 3, 2), axis=1),
    situation("one", (1,), axis=0),
    situation("size-0", (0,), axis=0),
    situation("size-0-beside", (0, 2), axis=1),
    situation("non-contiguous", Strided((2, 3)), axis=0),
)


def recorded(name: str) -> Callable[..., Any]:
    """Return the recorder of a primitive that has no public function."""
    apply = TABLE[name].apply  # here: a compiled function is searched for what it reaches
    return lambda cr, *inputs, **settings: apply(*inputs, **settings)


def all_dims(x: Any, axis: Any) -> tuple[int, ...]:
    return tuple(range(x.ndim)) if axis is None else axis


def over_dims(name: str) -> Callable[..., Any]:
    """Return a PyTorch function that requires an explicit list of dimensions."""
    return lambda torch, x, axis, keepdims: getattr(torch, name)(x, all_dims(x, axis), keepdims)
