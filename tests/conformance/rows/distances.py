"""Rows of distances between points."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.row import REAL, Strided, constant, row, situation
from conformance.situations import recorded

NEAR = np.array([[False, True, False], [True, True, False]])


def _distances(np: Any, x: Any, y: Any, direct: bool) -> Any:
    return np.sqrt(((x[..., :, None, :] - y[..., None, :, :]) ** 2).sum(-1))


def _norms(torch: Any, x: Any, y: Any, direct: bool) -> Any:
    return torch.linalg.vector_norm(x[..., :, None, :] - y[..., None, :, :], dim=-1)


def _summed(library: Any, w: Any, x: Any, y: Any, near: Any) -> Any:
    return (w[..., None] * (x[..., :, None, :] - y[..., None, :, :])).sum(-2)


def _projected(library: Any, u: Any, x: Any, y: Any, near: Any) -> Any:
    return (u[..., None, :] * (x[..., :, None, :] - y[..., None, :, :])).sum(-1)


def _never(np: Any, x: Any, y: Any, out: Any) -> Any:
    return np.zeros(out.shape, bool)  # of few points


ROWS = (
    row(
        "cdist",
        (
            situation("plain", (2, 3), (3, 3), direct=False),
            situation("one-dimension", (3, 1), (2, 1), direct=False),
            situation("stacks", (2, 3, 2), (2, 2, 2), direct=False),
            situation("size-0-points", (0, 2), (3, 2), direct=False),
            situation("size-0-stack", (0, 2, 2), (0, 2, 2), direct=False),
            situation("non-contiguous", Strided((3, 2)), Strided((2, 2)), direct=False),
            situation("direct", (2, 3), (2, 3), direct=True),
            situation("coincident", [[1, 2], [0, 0]], [[0, 0], [3, 1]], direct=False, smooth=False),
        ),
        (-1.0, 1.0),
        (1.0, 3.0),
        dtypes=REAL,
        call=_distances,
        torch=_norms,  # PyTorch's cdist has no second derivative
        cr=lambda cr, x, y, direct: cr.cdist(
            x, y, compute_mode="donot_use_mm_for_euclid_dist" if direct else None
        ),
    ),
    row(
        "summed_differences",
        (
            situation("plain", (2, 3), (2, 2), (3, 2), NEAR),
            situation("stacks", (2, 2, 3), (2, 2, 2), (2, 3, 2), np.stack([NEAR, NEAR])),
            situation("size-0", (2, 0), (2, 2), (0, 2), NEAR[:, :0]),
            situation("non-contiguous", Strided((2, 3)), Strided((2, 2)), Strided((3, 2)), NEAR),
        ),
        dtypes=REAL,
        call=_summed,
        cr=recorded("summed_differences"),
    ),
    row(
        "projected_differences",
        (
            situation("plain", (2, 2), (2, 2), (3, 2), NEAR),
            situation("stacks", (2, 2, 2), (2, 2, 2), (2, 3, 2), np.stack([NEAR, NEAR])),
            situation("size-0", (2, 2), (2, 2), (0, 2), NEAR[:, :0]),
            situation("non-contiguous", Strided((2, 2)), Strided((2, 2)), Strided((3, 2)), NEAR),
        ),
        dtypes=REAL,
        call=_projected,
        cr=recorded("projected_differences"),
    ),
)

CONSTANTS = (
    constant(
        "near_pairs",
        (situation("plain", (2, 2), (3, 2), (2, 3)),),
        call=None,
        np=_never,
        cr=recorded("near_pairs"),
        torch=None,
    ),
)
