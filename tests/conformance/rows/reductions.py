"""Rows of sums, products, extrema, and cumulative ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.row import (
    REAL,
    kink,
    row,
    situation,
)
from conformance.situations import (
    EMPTY_REDUCTION,
    REDUCTION,
    RUNNING,
    all_dims,
    over_dims,
)


def _torch_prod(torch: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    for dim in reversed(all_dims(x, axis)):
        x = torch.prod(x, dim, keepdim=keepdims)
    return x


_EXTREMUM = (
    *REDUCTION,
    kink("ties", [[1, 3, 3], [2, 2, 2]], axis=(1,), keepdims=False),
    kink("ties-everywhere", [[3, 1], [3, 3]], axis=None, keepdims=False),
)

_EMPTY_KINKS = tuple(kink(s.name, *s.inputs, **s.settings) for s in EMPTY_REDUCTION)  # nan or -inf

_ZEROS = (
    situation("one-zero", [2, 0, 3], axis=None, keepdims=False),
    situation("two-zeros", [[2, 0, 3, 0], [1, 2, 3, 4]], axis=(1,), keepdims=False),
    situation("all-zeros", [[0, 0], [0, 0]], axis=None, keepdims=True),
)

ROWS = (
    row("sum", (*REDUCTION, *EMPTY_REDUCTION)),
    row("mean", REDUCTION),
    row("max", _EXTREMUM, dtypes=REAL, cr="amax", torch=over_dims("amax")),
    row("min", _EXTREMUM, dtypes=REAL, cr="amin", torch=over_dims("amin")),
    row("prod", (*REDUCTION, *EMPTY_REDUCTION, *_ZEROS), torch=_torch_prod),
    row("cumulative_sum", RUNNING, torch=lambda torch, x, axis: torch.cumsum(x, axis)),
    row(
        "cumulative_prod",
        (
            *RUNNING,
            situation("one-zero", [2, 0, 3, 4], axis=0),
            situation("two-zeros", [[2, 0, 3, 0], [1, 2, 0, 4]], axis=1),
        ),
        torch=lambda torch, x, axis: torch.cumprod(x, axis),
    ),
    row(
        "logsumexp",
        (*REDUCTION, *_EMPTY_KINKS),
        np=lambda np, x, axis, keepdims: np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims)),
        torch=over_dims("logsumexp"),
    ),
    row(
        "logcumsumexp",
        (
            *RUNNING,
            situation("many", (9,), axis=0),
            situation("wide", [-700, 0, 700, 3, 650], axis=0, dtypes=("float64",)),
            kink("beside-infinity", [-np.inf, 1, 2, -np.inf, 3], axis=0, peer=False),
        ),
        dtypes=REAL,
        np=lambda np, x, axis: np.logaddexp.accumulate(x, axis),
        torch=lambda torch, x, axis: torch.logcumsumexp(x, axis),
    ),
    row(
        "softmax",
        RUNNING,
        dtypes=REAL,
        np=lambda np, x, axis: np.exp(x) / np.sum(np.exp(x), axis=axis, keepdims=True),
        torch=lambda torch, x, axis: torch.softmax(x, axis),
    ),
    row(
        "log_softmax",
        RUNNING,
        dtypes=REAL,
        np=lambda np, x, axis: x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True)),
        torch=lambda torch, x, axis: torch.log_softmax(x, axis),
    ),
)
