"""Rows of reshaping and permuting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformance.row import (
    Strided,
    row,
    situation,
)
from conformance.situations import (
    all_dims,
)


def _split(split: Callable[..., Any], x: Any, axis: int, sizes: tuple[int, ...]) -> Any:
    return split(x, np.cumsum(sizes)[:-1].tolist(), axis)


ROWS = (
    row(
        "reshape",
        (
            situation("plain", (2, 3), shape=(3, 2)),
            situation("flat", (2, 3), shape=(6,)),
            situation("0-d", (), shape=(1, 1)),
            situation("to-0-d", (1,), shape=()),
            situation("size-0", (2, 0), shape=(0, 3)),
            situation("non-contiguous", Strided((2, 3)), shape=(2, 1, 3)),
        ),
        call=lambda library, x, shape: library.reshape(x, shape),
    ),
    row(
        "reshape_copy",
        (situation("non-contiguous", Strided((2, 3)), shape=(6,)),),
        call=lambda library, x, shape: library.reshape(x, shape),
    ),
    row(
        "permute_dims",
        (
            situation("plain", (2, 3), axes=(1, 0)),
            situation("cycle", (2, 3, 1), axes=(2, 0, 1)),
            situation("0-d", (), axes=()),
            situation("size-0", (2, 0, 3), axes=(1, 2, 0)),
            situation("non-contiguous", Strided((2, 3)), axes=(1, 0)),
        ),
        torch=lambda torch, x, axes: torch.permute(x, axes),
    ),
    row(
        "transpose",
        (
            situation("plain", (2, 3), axes=(1, 0)),
            situation("last-two", (2, 3, 2), axes=(0, 2, 1)),
            situation("size-0", (2, 0), axes=(1, 0)),
            situation("non-contiguous", Strided((2, 3)), axes=(1, 0)),
        ),
        cr=lambda cr, x, axes: cr.transpose(x, *[i for i, axis in enumerate(axes) if i != axis]),
        torch=lambda torch, x, axes: torch.permute(x, axes),
    ),
    row(
        "broadcast_to",
        (
            situation("plain", (3,), shape=(2, 3)),
            situation("stretched", (2, 1), shape=(2, 3)),
            situation("both", (2, 1), shape=(2, 2, 3)),
            situation("0-d", (), shape=(2, 2)),
            situation("to-0-d", (), shape=()),
            situation("size-0", (2, 1), shape=(2, 0)),
            situation("one-to-none", (1,), shape=(0,)),
            situation("non-contiguous", Strided((2, 1)), shape=(2, 3)),
        ),
        call=lambda library, x, shape: library.broadcast_to(x, shape),
    ),
    row(
        "flip",
        (
            situation("plain", (2, 3), axis=(0,)),
            situation("both", (2, 3), axis=(0, 1)),
            situation("everything", (2, 3), axis=None),
            situation("0-d", (), axis=None),
            situation("size-0", (2, 0), axis=(1,)),
            situation("non-contiguous", Strided((2, 3)), axis=(1,)),
        ),
        torch=lambda torch, x, axis: torch.flip(x, all_dims(x, axis)),
    ),
    row(
        "roll",
        (
            situation("plain", (4,), shift=(1,), axis=(0,)),
            situation("both", (2, 3), shift=(1, -2), axis=(0, 1)),
            situation("size-0", (2, 0), shift=(1,), axis=(1,)),
            situation("non-contiguous", Strided((2, 3)), shift=(2,), axis=(1,)),
        ),
        call=lambda library, x, shift, axis: library.roll(x, shift, axis),
    ),
    row(
        "concat",
        (
            situation("plain", (2, 2), (1, 2), axis=0),
            situation("second-axis", (2, 1), (2, 2), (2, 1), axis=1),
            situation("one", (3,), axis=0),
            situation("size-0-part", (2,), (0,), (1,), axis=0),
            situation("size-0", (0, 2), (0, 2), axis=1),
            situation("non-contiguous", Strided((2, 3)), Strided((2, 1)), axis=1),
        ),
        call=lambda library, *arrays, axis: library.concat(arrays, axis=axis),
    ),
    row(
        "stack",
        (
            situation("plain", (3,), (3,), axis=0),
            situation("last", (2, 2), (2, 2), (2, 2), axis=2),
            situation("middle", (2, 3), (2, 3), axis=1),
            situation("0-d", (), (), axis=0),
            situation("one", (2,), axis=1),
            situation("size-0", (0,), (0,), axis=1),
            situation("non-contiguous", Strided((2, 3)), Strided((2, 3)), axis=0),
        ),
        call=lambda library, *arrays, axis: library.stack(arrays, axis=axis),
        torch=lambda torch, *arrays, axis: torch.stack(arrays, axis),
    ),
    row(
        "unbind",
        (
            situation("plain", (3, 2), axis=0),
            situation("second-axis", (2, 3), axis=1),
            situation("vector", (3,), axis=0),
            situation("size-0", (2, 0), axis=0),
            situation("non-contiguous", Strided((2, 3)), axis=1),
        ),
        cr=lambda cr, x, axis: cr.unbind(x, axis),
        np=lambda np, x, axis: np.unstack(x, axis=axis),
        torch=lambda torch, x, axis: torch.unbind(x, axis),
    ),
    row(
        "split",
        (
            situation("plain", (4,), axis=0, sizes=(1, 3)),
            situation("second-axis", (2, 4), axis=1, sizes=(1, 2, 1)),
            situation("size-0-part", (3,), axis=0, sizes=(1, 0, 2)),
            situation("size-0", (2, 0), axis=0, sizes=(1, 1)),
            situation("non-contiguous", Strided((2, 3)), axis=1, sizes=(2, 1)),
        ),
        cr=lambda cr, x, axis, sizes: cr.split(x, sizes, axis),
        np=lambda np, x, axis, sizes: _split(np.split, x, axis, sizes),
        torch=lambda torch, x, axis, sizes: torch.split(x, sizes, axis),
    ),
)
