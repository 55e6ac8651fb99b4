"""Maximal repetitions of a sequence, found in O(n log² n) whatever the sequence.

A repetition with period p is a stretch in which each item equals the one p places later. It is
maximal if it can't be extended at either end, and there are fewer than n of them: each has a Lyndon
word as its root, which is the longest Lyndon word at one of its places, for one of the two orders
of the alphabet (Bannai et al., "The 'Runs' Theorem", SIAM J. Comput. 46 (2017) 1501).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

Array = Any


class Repetition(NamedTuple):
    """The items from `start` to before `end`, each equal to the one `period` places later."""

    start: int
    end: int
    period: int


def repetitions(items: Iterable[int], least: int) -> list[Repetition]:
    """Return the maximal repetitions of at least so many periods, with their shortest period."""
    keys = np.fromiter(items, np.int64)
    ranks = _ranks(keys)
    found = []
    for order in (ranks[-1], _ranks(-keys)[-1]):
        first = np.arange(len(keys))
        second = _next_smaller(order)
        inside = second < len(keys)
        first, second = first[inside], second[inside]
        period = second - first
        start = first - _common_before(ranks, first, second)
        end = second + _common_after(ranks, first, second)
        long = end - start >= least * period
        found.append(np.stack([start[long], end[long], period[long]], axis=1))
    return [Repetition(*map(int, each)) for each in np.unique(np.concatenate(found), axis=0)]


def _ranks(keys: Array) -> list[Array]:
    """Return for each power of two the ranks of the parts of this length that begin at each place.

    Parts that the end of the sequence cuts off are longer ones' predecessors. The last ranks are
    those of the suffixes.
    """
    ranks = [np.unique(keys, return_inverse=True)[1]]
    length, count = 1, len(keys)
    while length < count:
        following = np.full(count, -1)
        following[:-length] = ranks[-1][length:]
        pairs = ranks[-1] * (count + 1) + following
        ranks.append(np.unique(pairs, return_inverse=True)[1])
        length *= 2
    return ranks


def _next_smaller(ranks: Array) -> Array:
    """Return for each place the next one with a smaller rank; the length if there is none.

    Between the two is the longest Lyndon word that begins at the place.
    """
    following = np.full(len(ranks), len(ranks))
    waiting: list[int] = []
    for place, rank in enumerate(values := ranks.tolist()):
        while waiting and values[waiting[-1]] > rank:
            following[waiting.pop()] = place
        waiting.append(place)
    return following


def _common_after(ranks: list[Array], first: Array, second: Array) -> Array:
    """Return the lengths of the common parts that begin at two places, the first one sooner."""
    count, length = len(ranks[0]), np.zeros_like(first)
    for level in reversed(range(len(ranks))):
        a, b = first + length, second + length
        fits = b + (1 << level) <= count
        same = fits.copy()
        same[fits] = ranks[level][a[fits]] == ranks[level][b[fits]]
        length[same] += 1 << level
    return length


def _common_before(ranks: list[Array], first: Array, second: Array) -> Array:
    """Return the lengths of the common parts that end before two places, the first one sooner."""
    length = np.zeros_like(first)
    for level in reversed(range(len(ranks))):
        a, b = first - length - (1 << level), second - length - (1 << level)
        fits = a >= 0
        same = fits.copy()
        same[fits] = ranks[level][a[fits]] == ranks[level][b[fits]]
        length[same] += 1 << level
    return length
