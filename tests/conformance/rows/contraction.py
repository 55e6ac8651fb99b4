"""Rows of products that sum over a dimension."""

from __future__ import annotations

from typing import Any

from conformance.row import (
    Strided,
    row,
    situation,
)
from conformance.situations import recorded


def _labels(equation: str) -> dict[str, tuple[int, ...]]:
    left, out = equation.split("->")
    terms = [*left.split(","), out]
    names = ("x_labels", "y_labels", "out_labels")
    return {name: tuple(map(ord, term)) for name, term in zip(names, terms, strict=True)}


def _einsum(library: Any, x: Any, y: Any, **labels: tuple[int, ...]) -> Any:
    terms = ["".join(map(chr, term)) for term in labels.values()]
    return library.einsum("{},{}->{}".format(*terms), x, y)


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
    row(
        "contract",
        (
            situation("plain", (2, 3), (3, 2), **_labels("ik,kj->ji")),
            situation("both-transposed", (3, 2), (2, 3), **_labels("ki,jk->ij")),
            situation("vectors", (3,), (3,), **_labels("k,k->")),
            situation("all", (2, 3), (3, 2), **_labels("ij,ji->")),
            situation("row", (3,), (2, 3), **_labels("k,ik->i")),
            situation("column", (2, 3), (2,), **_labels("ki,k->i")),
            situation("outer", (2,), (3,), **_labels("i,j->ji")),
            situation("outer-batch", (2, 3), (2, 2), **_labels("bi,bj->jbi")),
            situation("elementwise", (2, 3), (3, 2), **_labels("ab,ba->ba")),
            situation("scale", (2, 3), (3,), **_labels("ab,b->ab")),
            situation("scalar", (), (3,), **_labels(",b->b")),
            situation("batch", (2, 3, 2), (3, 2, 2), **_labels("kbi,bjk->bij")),
            situation("batch-row", (2, 3), (2, 3, 2), **_labels("bk,bkj->jb")),
            situation("batch-column", (2, 2, 3), (3, 2), **_labels("bik,kb->ib")),
            situation("batch-vectors", (2, 3), (3, 2), **_labels("bk,kb->b")),
            situation("several", (2, 3, 2, 2), (2, 2, 3), **_labels("iklm,mjk->jli")),
            situation("size-0-inside", (2, 0), (0, 3), **_labels("ik,kj->ij")),
            situation("size-0-outside", (0, 2), (2, 3), **_labels("ik,kj->ji")),
            situation("size-0-batch", (0, 2, 2), (0, 2), **_labels("bij,bj->bi")),
            situation("non-contiguous", Strided((2, 3)), Strided((3, 2)), **_labels("ik,kj->ji")),
        ),
        call=_einsum,
        cr=recorded("contract"),
    ),
    row(
        "cross",
        (
            situation("plain", (3,), (3,), axis=-1),
            situation("rows", (2, 3), (2, 3), axis=-1),
            situation("columns", (3, 2), (3, 2), axis=-2),
            situation("broadcast", (2, 1, 3), (1, 4, 3), axis=-1),
            situation("broadcast-lead", (2, 1, 3), (4, 3), axis=-1, peer=False),
            situation("size-0", (0, 3), (0, 3), axis=-1),
            situation("non-contiguous", Strided((2, 3)), Strided((2, 3)), axis=-1),
        ),
        call=lambda library, x, y, axis: library.linalg.cross(x, y, axis=axis),
        np=lambda np, x, y, axis: np.cross(x, y, axis=axis),
        torch=lambda torch, x, y, axis: torch.linalg.cross(x, y, dim=axis),
        cr=recorded("cross"),
    ),
)
