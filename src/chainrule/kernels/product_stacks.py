"""Long matrix products as stacks of small ones, which several threads of ours compute.

OpenBLAS divides a product among its own threads if that is large enough, and lets one thread at a
time do so. It computes smaller ones in the thread that calls it; with AVX-512 they are faster for
each multiplication, too, as they aren't copied into panels first.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.kernels import threads

Array = Any

_SERIAL_MULTIPLIES = (1 << 19) - 1
"""Number of multiplications up to which OpenBLAS computes a product in one thread."""

_MIN_STEP = 24
"""Least length of the products of a stack: with less, each multiplication takes longer."""

_MIN_TERMS = 48
"""Least length if the products are added: each is written and read again for that."""

_VECTOR = 16
"""Number of elements of the longest vectors, of which a step is a multiple."""

_PARALLEL_MIN_MULTIPLIES = 1 << 22
"""Number of multiplications from which a second thread pays."""

_PARTS = 8
"""Number of parts, each of which has memory of its own."""


class Stack:
    """How a long axis of a product is divided.

    `step` is the length of the products, 0 for a single one: since a product of so many
    multiplications for each entry of the axis is large anyway, or on a device. It does not depend
    on the number of threads. With `sums` the axis is the one that is summed over.
    """

    def __init__(
        self, kind: type, length: int, multiplies: int, *, alone: bool, sums: bool = False
    ) -> None:
        most = min(_SERIAL_MULTIPLIES // multiplies, length)
        self.length, self.step = length, 0
        least = _MIN_TERMS if sums else _MIN_STEP
        if alone and length * multiplies > _SERIAL_MULTIPLIES:
            return  # OpenBLAS has threads
        if kind is np.ndarray and most >= min(least, length):
            count = -(-length // most)  # of nearly the same length
            self.step = min(-(-length // count // _VECTOR) * _VECTOR, most)

    def pieces(self) -> list[tuple[slice, int]]:
        """Return the slices of the axis that hold whole steps and the rest, with their steps."""
        if not self.step:
            return []
        whole = self.length // self.step * self.step
        found = [(slice(0, whole), self.step)] if whole else []
        rest = self.length - whole
        return [*found, (slice(whole, self.length), rest)] if rest else found


def parts_of(xp: Any, samples: int, most: int, multiplies: int) -> list[list[slice]]:
    """Return parts for several threads, each of which is a list of blocks of up to `most` samples.

    One part if a second thread doesn't pay, or on a device: it doesn't depend on their number.
    """
    count = -(-samples // most)
    pays = xp is np and multiplies >= _PARALLEL_MIN_MULTIPLIES
    if pays:
        count = min(-(-count // 4) * 4, samples)  # for two or four threads of equal work
    size = -(-samples // count)
    blocks = [slice(i, i + size) for i in range(0, samples, size)]
    parts = min(len(blocks), _PARTS) if pays else 1
    bounds = [i * len(blocks) // parts for i in range(parts + 1)]
    return [blocks[i:j] for i, j in itertools.pairwise(bounds)]


def for_parts(
    run: Callable[[int, list[slice], Any], None],
    parts: list[list[slice]],
    make_memory: Callable[[], Any],
    *,
    parallel: bool,
) -> None:
    """Call a function with the number of each part, its blocks, and memory of its thread.

    In several threads if `parallel`: if the products are too small for those of OpenBLAS.
    """
    unused: deque[Any] = deque()

    def run_part(i: int) -> None:
        try:
            memory = unused.pop()
        except IndexError:
            memory = make_memory()
        run(i, parts[i], memory)
        unused.append(memory)

    if parallel:
        threads.parallel_for(run_part, range(len(parts)))
    else:
        for i in range(len(parts)):
            run_part(i)


def matmul(x: Array, y: Array) -> Array:
    """Return the matrix products of two stacks of the same shape, in several threads if that pays.

    Each is computed in one thread, by the same call of the BLAS.
    """
    lead, (rows, inner), columns = x.shape[:-2], x.shape[-2:], y.shape[-1]
    multiplies = rows * inner * columns
    axis = next((i for i, n in enumerate(lead) if n > 1), None)
    if (
        axis is None
        or multiplies > _SERIAL_MULTIPLIES
        or multiplies * math.prod(lead) < _PARALLEL_MIN_MULTIPLIES
        or x.dtype != y.dtype
        or x.dtype.char not in "fdFD"
        or y.shape[:-1] != (*lead, inner)
    ):
        return np.matmul(x, y)
    out = np.empty((*lead, rows, columns), x.dtype)
    count = min(threads.get_num_threads(), lead[axis])

    def part(i: int) -> None:
        start, stop = i * lead[axis] // count, (i + 1) * lead[axis] // count
        block = (*(slice(None),) * axis, slice(start, stop))
        np.matmul(x[block], y[block], out=out[block])

    threads.parallel_for(part, range(count))
    return out
