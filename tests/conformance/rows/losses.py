"""Rows of elementwise losses; in NumPy, their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.row import REAL, Strided, kink, row, situation
from conformance.situations import BINARY, recorded


def _huber(np: Any, x: Any, delta: float) -> Any:
    size = np.abs(x)
    return np.where(size < delta, x * x / 2, delta * (size - delta / 2))


def _entropy(np: Any, x: Any, y: Any) -> Any:
    return -(y * np.log(x) + (1 - y) * np.log(1 - x))


def _torch(name: str) -> Any:
    def function(torch: Any, x: Any, y: Any) -> Any:
        x, y = torch.broadcast_tensors(x, y)
        return getattr(torch.nn.functional, name)(x, y, reduction="none")

    return function


def _class_losses(np: Any, x: Any, classes: Any, axis: int) -> Any:
    logs = np.log(np.sum(np.exp(x), axis=axis, keepdims=True)) - x
    return np.squeeze(np.take_along_axis(logs, np.expand_dims(classes, axis), axis), axis)


ROWS = (
    row(
        "class_losses",
        (
            situation("rows", (3, 4), np.array([3, 0, 0]), axis=1),
            situation("one", (3,), np.array(2), axis=0),
            situation("pixels", (2, 3, 2), np.array([[0, 2], [1, 1]]), axis=1),
            situation("size-0", (0, 3), np.zeros(0, np.int64), axis=1),
            situation("non-contiguous", Strided((2, 3)), np.array([0, 2]), axis=1),
        ),
        dtypes=REAL,
        cr=recorded("class_losses"),
        np=_class_losses,
        torch=lambda torch, x, classes, axis: torch.nn.functional.cross_entropy(
            x, classes, reduction="none"
        ),
    ),
    row(
        "huber",
        (
            situation("inside", (2, 3), delta=2.0),
            situation("outside", [-2, 0.1, 3], delta=0.5),
            situation("0-d", (), delta=0.5),
            situation("size-0", (2, 0), delta=0.5),
            situation("non-contiguous", Strided((2, 3)), delta=2.0),
            kink("kinks", [-0.5, 0, 0.5], delta=0.5),
        ),
        dtypes=REAL,
        cr=recorded("huber"),
        np=_huber,
        torch=lambda torch, x, delta: torch.nn.functional.huber_loss(
            x, torch.zeros_like(x), "none", delta
        ),
    ),
    row(
        "binary_cross_entropy",
        BINARY,
        (0.2, 0.8),
        dtypes=REAL,
        cr=recorded("binary_cross_entropy"),
        np=_entropy,
        torch=None,  # adds 1e-12 to a denominator of its second derivative
    ),
    row(
        "binary_cross_entropy_with_logits",
        BINARY,
        (-3, 3),
        dtypes=REAL,
        cr=recorded("binary_cross_entropy_with_logits"),
        np=lambda np, x, y: np.log(1 + np.exp(x)) - x * y,
        torch=_torch("binary_cross_entropy_with_logits"),
    ),
)
