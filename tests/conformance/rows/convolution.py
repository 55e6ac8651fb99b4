"""Rows of convolution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.row import Strided, row, situation
from conformance.situations import recorded


def _window(
    rank: int, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1
) -> Any:
    return ((stride,) * rank, ((padding, padding),) * rank, (dilation,) * rank, groups)


def _meetings(x: Any, w: Any, y: Any, window: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the indices of output, image and kernel that meet in one product."""
    stride, padding, dilation, groups = window
    inputs, outputs = w[1], w[0] // groups
    for at in np.ndindex(*y[2:]):
        for k in np.ndindex(*w[2:]):
            steps = zip(at, k, stride, padding, dilation, strict=True)
            place = tuple(s * i + d * j - p for i, j, s, (p, _), d in steps)
            if all(0 <= p < n for p, n in zip(place, x[2:], strict=True)):
                for g in range(groups):
                    i, o = (
                        slice(g * inputs, (g + 1) * inputs),
                        slice(g * outputs, (g + 1) * outputs),
                    )
                    yield (slice(None), i, *place), (o, slice(None), *k), (slice(None), o, *at)


def _convolve(np: Any, x: Any, w: Any, window: Any) -> Any:
    stride, padding, dilation, _ = window
    sizes = zip(x.shape[2:], w.shape[2:], stride, padding, dilation, strict=True)
    size = [(n + sum(p) - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes]
    y = np.zeros((len(x), len(w), *size), x.dtype)
    for a, b, c in _meetings(x.shape, w.shape, y.shape, window):
        y[c] += x[a] @ w[b].T
    return y


def _convolve_input(np: Any, y: Any, w: Any, size: Any, window: Any) -> Any:
    x = np.zeros((len(y), w.shape[1] * window[3], *size), y.dtype)
    for a, b, c in _meetings(x.shape, w.shape, y.shape, window):
        x[a] += y[c] @ w[b]
    return x


def _convolve_weight(np: Any, x: Any, y: Any, size: Any, window: Any) -> Any:
    w = np.zeros((y.shape[1], x.shape[1] // window[3], *size), x.dtype)
    for a, b, c in _meetings(x.shape, w.shape, y.shape, window):
        w[b] += y[c].T @ x[a]
    return w


def _torch_convolve(torch: Any, x: Any, w: Any, window: Any) -> Any:
    stride, padding, dilation, groups = window
    around = [n for pair in reversed(padding) for n in pair]
    x = torch.nn.functional.pad(x, around)
    function = getattr(torch, f"conv{len(stride)}d")
    return function(x, w, None, stride, 0, dilation, groups)


PLAIN = _window(2)
EVERYTHING = ((2, 1), ((1, 0), (0, 2)), (1, 2), 2)

ROWS = (
    row(
        "convolve",
        (
            situation("plain", (1, 2, 3, 3), (2, 2, 2, 2), window=PLAIN),
            situation("signals", (2, 1, 5), (1, 1, 3), window=_window(1, padding=1)),
            situation("volumes", (1, 1, 2, 3, 2), (1, 1, 2, 2, 1), window=_window(3)),
            situation("stride", (1, 1, 5, 4), (1, 1, 2, 3), window=_window(2, 2, 1)),
            situation("stride-over-kernel", (1, 1, 5), (2, 1, 1), window=_window(1, 3)),
            situation("everything", (1, 2, 3, 3), (2, 1, 2, 2), window=EVERYTHING),
            situation("depthwise", (1, 3, 3), (3, 1, 2), window=_window(1, groups=3)),
            situation("size-0-batch", (0, 1, 3), (1, 1, 2), window=_window(1)),
            situation("non-contiguous", Strided((2, 1, 3, 2)), Strided((1, 1, 2, 1)), window=PLAIN),
        ),
        cr=recorded("convolve"),
        np=_convolve,
        torch=_torch_convolve,
    ),
    row(
        "convolve_input",
        (
            situation("plain", (1, 2, 2, 2), (2, 1, 2, 2), size=(3, 3), window=PLAIN),
            situation("remainder", (1, 1, 2), (1, 1, 2), size=(5,), window=_window(1, 2)),
            situation("cut", (1, 1, 3), (1, 1, 2), size=(2,), window=_window(1, padding=1)),
            situation("everything", (1, 2, 2, 3), (2, 1, 2, 2), size=(3, 3), window=EVERYTHING),
            situation("size-0-batch", (0, 1, 2), (1, 1, 2), size=(3,), window=_window(1)),
            situation(
                "non-contiguous",
                Strided((2, 1, 2, 2)),
                Strided((1, 1, 2, 1)),
                size=(3, 2),
                window=PLAIN,
            ),
        ),
        cr=recorded("convolve_input"),
        np=_convolve_input,
        torch=None,
    ),
    row(
        "convolve_weight",
        (
            situation("plain", (2, 2, 3, 3), (2, 1, 2, 2), size=(2, 2), window=PLAIN),
            situation("stride", (1, 1, 6), (1, 2, 2), size=(3,), window=_window(1, 2)),
            situation("everything", (1, 2, 3, 3), (1, 2, 2, 3), size=(2, 2), window=EVERYTHING),
            situation("size-0-batch", (0, 1, 3), (0, 1, 2), size=(2,), window=_window(1)),
            situation(
                "non-contiguous",
                Strided((2, 1, 3, 2)),
                Strided((2, 1, 2, 2)),
                size=(2, 1),
                window=PLAIN,
            ),
        ),
        cr=recorded("convolve_weight"),
        np=_convolve_weight,
        torch=None,
    ),
)
