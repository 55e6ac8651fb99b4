"""Rows of pooling, and of linear maps along one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.kernels.resampling import Taps, make_taps
from conformance.row import REAL, Strided, constant, kink, row, situation
from conformance.situations import recorded

PAIRS = ((2,), (2,), ((0, 0),), (1,))
LEFT_OVER = ((2,), (2,), ((0, -1),), (1,))
SQUARES = ((2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1))
EVERYTHING = ((3, 2), (2, 1), ((1, 1), (0, 1)), (1, 2))


def _windows(np: Any, x: Any, window: Any, value: float) -> Any:
    """Return all windows, each laid out flat along the last axis."""
    kernel, strides, padding, dilation = window
    padded = np.pad(
        x, ((0, 0), (0, 0), *[(a, max(b, 0)) for a, b in padding]), constant_values=value
    )
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(padded, extent, tuple(range(2, x.ndim)))
    sizes = zip(x.shape[2:], padding, extent, strides, strict=True)
    counts = [(n + sum(p) - e) // s + 1 for n, p, e, s in sizes]
    starts = [slice(0, (n - 1) * s + 1, s) for n, s in zip(counts, strides, strict=True)]
    view = view[(..., *starts, *[slice(None, None, d) for d in dilation])]
    return view.reshape(*view.shape[: x.ndim], np.prod(kernel))


def _max_pool(np: Any, x: Any, window: Any) -> Any:
    return _windows(np, x, window, -np.inf).max(-1)


def _positions(np: Any, x: Any, out: Any, window: Any) -> Any:
    return _windows(np, x, window, -np.inf).argmax(-1).astype(np.uint8)


def _pick(np: Any, x: Any, positions: Any, window: Any) -> Any:
    return np.take_along_axis(_windows(np, x, window, 0), positions[..., None].astype(int), -1)[
        ..., 0
    ]


def _place(np: Any, g: Any, positions: Any, size: Any, window: Any) -> Any:
    where = np.arange(np.prod((*g.shape[:2], *size)), dtype=float).reshape(*g.shape[:2], *size)
    index = _pick(np, where, positions, window).astype(int)
    return np.bincount(index.ravel(), g.ravel(), where.size).reshape(where.shape).astype(g.dtype)


def _torch_max_pool(torch: Any, x: Any, window: Any) -> Any:
    kernel, strides, padding, dilation = window
    # Padding at both sides as far as PyTorch takes it; the rest as minus infinity.
    around = [n for pair in reversed(padding) for n in pair]
    x = torch.nn.functional.pad(x, around, value=-float("inf"))
    function = getattr(torch, f"max_pool{len(kernel)}d")
    return function(x, kernel, strides, 0, dilation)


P1 = np.array([[[1, 0]]], np.uint8)
P2 = np.array([[[[3, 1], [2, 0]]]], np.uint8)

WEIGHED = make_taps(
    np.array([0, 0, 1, 2, 2, 4]),
    np.array([0, 1, 2, 1, 0, 2]),
    np.array([1.0, 0.5, -2.0, 0.25, 3.0, 1.0]),
    (5, 3),
)
SPREAD = make_taps(np.arange(6), np.array([2, 0, 1, 1, 0, 2]), None, (6, 3))
SLICES = Taps(2, 3, [(np.arange(2), np.arange(2), None), (np.arange(2), np.arange(1, 3), None)])
SCALED = make_taps(np.arange(3), np.arange(3), np.array([0.5, 2.0, -1.0]), (3, 3))
NOTHING = make_taps(np.zeros(0, int), np.zeros(0, int), None, (2, 3))


def _resample(np: Any, x: Any, taps: Taps, axis: int) -> Any:
    matrix = np.zeros((taps.rows, taps.columns))
    for rows, places, weights in taps.layers:
        matrix[rows, places] += 1 if weights is None else weights
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis).astype(x.dtype)


ROWS = (
    row(
        "max_pool",
        (
            situation("plain", (1, 2, 4), window=PAIRS),
            situation("left-over", (2, 1, 5), window=LEFT_OVER),
            situation("squares", (1, 1, 3, 4), window=SQUARES),
            situation("everything", (1, 2, 4, 4), window=EVERYTHING),
            situation(
                "volumes", (1, 1, 2, 2, 2), window=((2,) * 3, (1,) * 3, ((0, 0),) * 3, (1,) * 3)
            ),
            situation("one", (1, 2, 3), window=((1,), (1,), ((0, 0),), (1,))),
            kink("ties", [[[1, 1, 2, 2, 0, 0]]], window=((3,), (1,), ((0, 0),), (1,))),
            situation("size-0-batch", (0, 1, 4), window=PAIRS),
            situation("non-contiguous", Strided((1, 2, 4)), window=PAIRS),
        ),
        dtypes=REAL,
        cr=recorded("max_pool"),
        np=_max_pool,
        torch=_torch_max_pool,
    ),
    row(
        "pool_pick",
        (
            situation("plain", (1, 1, 4), P1, window=PAIRS),
            situation("squares", (1, 1, 3, 3), P2, window=SQUARES),
            situation("size-0-batch", (0, 1, 4), np.zeros((0, 1, 2), np.uint8), window=PAIRS),
            situation("non-contiguous", Strided((1, 1, 4)), P1, window=PAIRS),
        ),
        dtypes=REAL,
        cr=recorded("pool_pick"),
        np=_pick,
        torch=None,
    ),
    row(
        "pool_place",
        (
            situation("plain", (1, 1, 2), P1, size=(4,), window=PAIRS),
            situation("left-over", (1, 1, 2), P1, size=(5,), window=LEFT_OVER),
            situation("squares", (1, 1, 2, 2), P2, size=(3, 3), window=SQUARES),
            situation(
                "size-0-batch", (0, 1, 2), np.zeros((0, 1, 2), np.uint8), size=(4,), window=PAIRS
            ),
            situation("non-contiguous", Strided((1, 1, 2)), P1, size=(4,), window=PAIRS),
        ),
        dtypes=REAL,
        cr=recorded("pool_place"),
        np=_place,
        torch=None,
    ),
    row(
        "resample",
        (
            situation("weighed", (2, 3), taps=WEIGHED, axis=1),
            situation("transposed", (5, 2), taps=WEIGHED.transposed, axis=0),
            situation("spread", (3, 2), taps=SPREAD, axis=0),
            situation("slices", (2, 3, 2), taps=SLICES, axis=1),
            situation("scaled", (3,), taps=SCALED, axis=0),
            situation("nothing", (3,), taps=NOTHING, axis=0),
            situation("size-0-beside", (0, 3), taps=SPREAD, axis=1),
            situation("non-contiguous", Strided((2, 3)), taps=SLICES, axis=1),
        ),
        cr=recorded("resample"),
        np=_resample,
        torch=None,
    ),
)

CONSTANTS = (
    constant(
        "pool_positions",
        (
            situation("plain", [[[1, 3, 2, 0]]], [[[3, 2]]], window=PAIRS),
            situation("ties", [[[1, 1, 0, 0]]], [[[1, 0]]], window=PAIRS),
            situation("all-lost", [[[-np.inf, -np.inf]]], [[[-np.inf]]], window=PAIRS),
            situation("squares", [[[[1, 2, 0], [5, 0, 1]]]], [[[[5, 2]]]], window=SQUARES),
        ),
        cr=recorded("pool_positions"),
        np=_positions,
        torch=None,
    ),
)
