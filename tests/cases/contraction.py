"""Rows of products that sum."""

from __future__ import annotations

from cases.model import (
    Strided,
    row,
    situation,
)

ROWS = (
    row(
        "matmul",
        (
            situation("plain", (2, 3), (3, 2)),
            situation("vectors", (3,), (3,)),
            situation("matrix-vector", (2, 3), (3,)),
            situation("vector-matrix", (3,), (3, 2)),
            situation("batch", (2, 1, 3), (2, 3, 2)),
            situation("batch-of-one-side", (2, 2), (3, 2, 1)),
            situation("batch-broadcast", (2, 1, 1, 2), (3, 2, 2)),
            situation("vector-batch", (2,), (2, 2, 3)),
            situation("batch-vector", (2, 2, 3), (3,)),
            situation("one-by-one", (1, 1), (1, 1)),
            situation("size-0-inside", (2, 0), (0, 3)),
            situation("size-0-outside", (0, 2), (2, 3)),
            situation("size-0-batch", (0, 2, 2), (2, 1)),
            situation("non-contiguous", Strided((2, 3)), Strided((3, 2))),
        ),
    ),
)
