"""Reads, additions and writes at a million indices: NumPy's alternatives, and whole operations.

The first table shows why `chainrule.kernels.flat_indexing` works with indices into flat memory. The
second compares operations, forward and backward, with PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import harness
import numpy as np

import chainrule as cr

try:
    import torch
except ImportError:
    torch = None

RNG = np.random.default_rng(0)
SIDE, MANY = 1000, 1_000_000


def alternatives() -> list[tuple[str, Callable[[], Any]]]:
    """Return alternative NumPy computations of the same results, a million float32 each."""
    index = RNG.integers(0, SIDE, (SIDE, SIDE))
    values = RNG.standard_normal((SIDE, SIDE), np.float32)
    grid = (np.arange(SIDE)[:, None], index)
    flat = index + np.arange(0, MANY, SIDE)[:, None]
    one, row = index.ravel(), values.ravel()
    mask = RNG.random((SIDE, SIDE)) < 0.5
    chosen = values[mask]

    def added(indices: Any, shape: Any, x: Any) -> Any:
        out = np.zeros(shape, np.float32)
        np.add.at(out, indices, x)
        return out

    def positions() -> Any:
        return index + np.arange(0, MANY, SIDE)[:, None]

    def sorted_sums() -> Any:
        order = np.argsort(one, kind="stable")
        ordered = one[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        out = np.zeros(SIDE, np.float32)
        out[ordered[starts]] = np.add.reduceat(row[order], starts)
        return out

    def assigned() -> Any:
        out = np.zeros((SIDE, SIDE), np.float32)
        out[mask] = chosen
        return out

    def assigned_flat() -> Any:
        out = np.zeros(MANY, np.float32)
        out[np.flatnonzero(mask)] = chosen
        return out.reshape(SIDE, SIDE)

    return [
        ("add, two index arrays: `np.add.at`", lambda: added(grid, (SIDE, SIDE), values)),
        ("· positions, then `np.add.at`", lambda: added(positions().ravel(), MANY, row)),
        ("· `np.bincount`", lambda: np.bincount(flat.ravel(), row, MANY).astype(np.float32)),
        ("add, one index array: `np.add.at`", lambda: added(one, SIDE, row)),
        ("· `np.bincount`", lambda: np.bincount(one, row, SIDE).astype(np.float32)),
        ("· sorting and `np.add.reduceat`", sorted_sums),
        ("add 10⁴ rows of 100: `np.add.at`", lambda: added(one[:10000], (SIDE, 100), _rows(row))),
        ("· positions, then `np.add.at`", lambda: added(_spread(one), SIDE * 100, row)),
        ("read, two index arrays: `x[i, j]`", lambda: values[grid]),
        ("· positions, then `take`", lambda: row.take(positions())),
        ("read a random mask: `x[mask]`", lambda: values[mask]),
        ("· `np.flatnonzero`, then `take`", lambda: row.take(np.flatnonzero(mask))),
        ("write a random mask: `x[mask] = v`", assigned),
        ("· `np.flatnonzero`, then `x[i] = v`", assigned_flat),
    ]


def _rows(row: Any) -> Any:
    return row.reshape(10000, 100)


def _spread(one: Any) -> Any:
    return (one[:10000, None] * 100 + np.arange(100)).ravel()


def jobs() -> list[tuple[str, Callable[[Any, dict[str, Any]], Any]]]:
    """Return the operations by name, as functions of a library and its tensors."""
    return [
        ("`gather(1)`", lambda lib, t: t["x"].gather(1, t["index"])),
        ("`scatter_add(1)`", lambda lib, t: t["x"].scatter_add(1, t["index"], t["y"])),
        ("`scatter(1)`", lambda lib, t: t["x"].scatter(1, t["index"], t["y"])),
        ("`x[mask]`", lambda lib, t: t["x"][t["mask"]]),
        ("`x[i, j]`", lambda lib, t: t["x"][t["i"], t["j"]]),
        ("`x[rows]`", lambda lib, t: t["x"][t["rows"]]),
        ("`index_add(0)`", lambda lib, t: t["x"].index_add(0, t["rows"], t["y"])),
        ("`scatter_reduce(1, amax)`", lambda lib, t: _largest(t)),
        ("`cummax(1)`", lambda lib, t: t["x"].cummax(1)[0]),
        ("`logcumsumexp(1)`", lambda lib, t: t["x"].logcumsumexp(1)),
        ("`median(1)`", lambda lib, t: t["x"].median(1)[0]),
        ("`quantile(0.3)`", lambda lib, t: t["x"].quantile(0.3)),
    ]


def _largest(t: dict[str, Any]) -> Any:
    return t["x"].scatter_reduce(1, t["index"], t["y"], "amax")


def _tensors(lib: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    x, y = [rng.standard_normal((SIDE, SIDE), np.float32) for _ in range(2)]
    made = {name: lib.tensor(a).requires_grad_() for name, a in (("x", x), ("y", y))}
    made["index"] = lib.tensor(rng.integers(0, SIDE, (SIDE, SIDE)))
    made["mask"] = lib.tensor(rng.random((SIDE, SIDE)) < 0.5)
    made["rows"] = lib.tensor(rng.integers(0, SIDE, SIDE))
    made["i"], made["j"] = [lib.tensor(rng.integers(0, SIDE, MANY)) for _ in range(2)]
    return made


def _job(lib: Any, operation: Callable[[Any, dict[str, Any]], Any]) -> Callable[[], None]:
    tensors = _tensors(lib)

    def job() -> None:
        tensors["x"].grad = tensors["y"].grad = None
        operation(lib, tensors).sum().backward()

    return job


def main() -> str:
    lines = ["| a million float32 in NumPy | ms |", "| --- | --- |"]
    for name, job in alternatives():
        row = harness.measure(name, {"chainrule": job}, {}, rounds=7)
        lines.append(f"| {name} | {row.median('chainrule') * 1e3:.2f} |")
    rows = []
    for name, operation in jobs():
        libraries = {"chainrule": _job(cr, operation)}
        if torch is not None:
            libraries["PyTorch"] = _job(torch, operation)
        rows.append(harness.measure(name, libraries, {"PyTorch": 1.5}, rounds=7))
    return "\n".join(lines) + "\n\n" + harness.table(rows, ["chainrule", "PyTorch"])


if __name__ == "__main__":
    print(main())
