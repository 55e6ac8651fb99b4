"""Rows of normalisations."""

from __future__ import annotations

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


ROWS = (
    row(
        "center",
        _OVER,
        dtypes=REAL,
        cr=recorded("center"),
        np=lambda np, x, axis: x - np.mean(x, axis=axis, keepdims=True),
        torch=lambda torch, x, axis: x - torch.mean(x, axis, keepdim=True),
    ),
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
)
