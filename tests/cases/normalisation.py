"""Rows of what normalisations are made of."""

from __future__ import annotations

from cases.model import REAL, Strided, row, situation
from cases.situations import recorded

_OVER = (
    situation("last", (2, 3), axis=(1,)),
    situation("first", (2, 3), axis=(0,)),
    situation("beside", (2, 3, 2), axis=(0, 2)),
    situation("two-last", (2, 3, 2), axis=(1, 2)),
    situation("everything", (2, 3), axis=(0, 1)),
    situation("size-0", (0, 2), axis=(1,)),
    situation("non-contiguous", Strided((2, 3)), axis=(1,)),
)

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
)
