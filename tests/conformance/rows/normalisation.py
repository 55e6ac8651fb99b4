"""Rows of normalisations."""

from __future__ import annotations

import math
from typing import Any

from conformance.row import REAL, Strided, row, situation
from conformance.situations import recorded

_OVER = (
    situation("last", (2, 3), axis=(1,)),
    situation("first", (2, 3), axis=(0,)),
    situation("beside", (2, 3, 2), axis=(0, 2)),
    situation("two-last", (2, 3, 2), axis=(1, 2)),
    situation("everything", (2, 3), axis=(0, 1)),
    situation("size-0", (0, 2), axis=(1,)),
    situation("non-contiguous", Strided((2, 3)), axis=(1,)),
)


def _standardized(library: Any, x: Any, axis: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    centred = x - library.mean(x, axis, keepdims=True)
    scale = (library.mean(centred**2, axis, keepdims=True) + eps) ** -0.5
    return centred * scale, scale


def _layer_normalized(
    library: Any, x: Any, weight: Any, bias: Any, axis: tuple[int, ...], eps: float
) -> tuple[Any, Any, Any]:
    standard, scale = _standardized(library, x, axis, eps)
    if weight.ndim < len(axis):
        weight, bias = [w.reshape(*x.shape[1:3], 1) for w in (weight, bias)]
    return standard * weight + bias, standard, scale


def _batch_normalized(
    library: Any, x: Any, weight: Any, bias: Any, axis: tuple[int, ...], eps: float
) -> tuple[Any, Any, Any]:
    count = max(math.prod([x.shape[i] for i in axis]), 1)
    mean = library.sum(x, axis, keepdims=True) / count
    variance = library.sum((x - mean) ** 2, axis, keepdims=True) / count
    shape = (-1,) + (1,) * (x.ndim - 2)
    standard = (x - mean) / (variance + eps) ** 0.5
    return standard * weight.reshape(shape) + bias.reshape(shape), mean, variance


ROWS = (
    row(
        "mean_square",
        _OVER,
        dtypes=REAL,
        cr=recorded("mean_square"),
        np=lambda np, x, axis: np.mean(x * x, axis=axis, keepdims=True),
        torch=lambda torch, x, axis: torch.mean(x * x, axis, keepdim=True),
    ),
    row(
        "standardize",
        tuple(situation(s.name, *s.inputs, **s.settings, eps=0.1) for s in _OVER),
        dtypes=REAL,
        cr=recorded("standardize"),
        np=_standardized,
        torch=lambda torch, x, axis, eps: _standardized(torch, x, axis, eps),
    ),
    row(
        "layer_normalize",
        (
            situation("rows", (3, 4), (4,), (4,), axis=(1,), eps=0.1),
            situation("two-last", (2, 3, 2), (3, 2), (3, 2), axis=(1, 2), eps=0.1),
            situation("groups", (2, 2, 2, 35), (2, 2, 1), (2, 2, 1), axis=(2, 3), eps=0.1),
            situation("short", (2, 2, 2, 3), (2, 2, 1), (2, 2, 1), axis=(2, 3), eps=0.1),
            situation("channels", (2, 2, 2, 3), (4,), (4,), axis=(2, 3), eps=0.1),
            situation("first", (3, 4), (4,), (4,), axis=(0,), eps=0.1),
            situation("size-0", (0, 4), (4,), (4,), axis=(1,), eps=0.1),
            situation("non-contiguous", Strided((3, 4)), (4,), (4,), axis=(1,), eps=0.1),
        ),
        dtypes=REAL,
        cr=recorded("layer_normalize"),
        np=lambda np, *arrays, **settings: _layer_normalized(np, *arrays, **settings),
        torch=lambda torch, *arrays, **settings: _layer_normalized(torch, *arrays, **settings),
    ),
    row(
        "batch_normalize",
        (
            situation("vectors", (3, 2), (2,), (2,), axis=(0,), eps=0.1),
            situation("images", (2, 3, 2, 2), (3,), (3,), axis=(0, 2, 3), eps=0.1),
            situation("instances", (2, 3, 4), (3,), (3,), axis=(2,), eps=0.1),
            situation("long", (2, 3, 70), (3,), (3,), axis=(0, 2), eps=0.1),
            situation("size-0", (0, 3), (3,), (3,), axis=(0,), eps=0.1),
            situation("non-contiguous", Strided((2, 3)), (3,), (3,), axis=(0,), eps=0.1),
        ),
        dtypes=REAL,
        cr=recorded("batch_normalize"),
        np=lambda np, *arrays, **settings: _batch_normalized(np, *arrays, **settings),
        torch=lambda torch, *arrays, **settings: _batch_normalized(torch, *arrays, **settings),
    ),
)
