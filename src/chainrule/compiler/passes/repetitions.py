"""Maximal repetitions of a sequence, found in O(n log² n) whatever the sequence.

Of a long one, all periods but some at its ends are cut out before, since the others have nothing
else to tell: so the search takes a time that hardly depends on the number of steps of a loop.

A repetition with period p is a stretch in which each item equals the one p places later. It is
maximal if it can't be extended at either end, and there are fewer than n of them: each has a Lyndon
word as its root, which is the longest Lyndon word at one of its places, for one of the two orders
of the alphabet (Bannai et al., "The 'Runs' Theorem", SIAM J. Comput. 46 (2017) 1501).
"""

from __future__ import annotations

import itertools
import operator
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
    found = _search(np.fromiter(items, np.int64), least)
    return [Repetition(*map(int, each)) for each in found]


def _search(keys: Array, least: int) -> Array:
    """Return the repetitions as rows, in their order."""
    cuts = _cuts(keys, least)
    if not cuts or 4 * sum(cut.end - cut.begin for cut in cuts) < len(keys):
        return _search_all(keys, least)
    kept, marked = np.ones(len(keys), bool), keys.copy()
    numbers: dict[Any, int] = {}
    for cut in cuts:  # all but the last item, in whose place is a number for what was cut
        kept[cut.begin : cut.end - 1] = False
        number = numbers.setdefault((cut.end - cut.begin, cut.whole.period), len(numbers))
        marked[cut.end - 1] = keys.max() + 1 + number
    # A longer repetition may lose up to two periods, if it begins or ends within what is cut.
    found = _search(marked[kept], least - 2)
    return _uncut(keys, least, cuts, np.flatnonzero(kept), found)


def _search_all(keys: Array, least: int) -> Array:
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
    return np.unique(np.concatenate(found), axis=0)


# --- long repetitions -----------------------------------------------------------------------------


class _Cut(NamedTuple):
    """A part of a repetition, a whole number of periods long, that is cut out of its middle."""

    begin: int
    end: int
    whole: Repetition


_WINDOWS = 16
"""How many times longer each window is than the one before, by which periods are looked for."""
_LONGEST_WINDOW = 1 << 12
"""Number of items up to which windows are compared."""
_PERIODS_TRIED = 3
"""Number of periods that are tried for each length of windows."""


def _cuts(keys: Array, least: int) -> list[_Cut]:
    """Return what to cut out, in order: of repetitions that don't overlap, the longest first."""
    if least < 4:  # too few periods would be left
        return []
    found = []
    for period in _likely_periods(keys):
        for start, end in _stretches(keys, period):
            begin = start + (least + 1) * period
            count = (end - begin) // period - least - 1
            if count > 0:
                found.append(_Cut(begin, begin + count * period, Repetition(start, end, period)))
    found.sort(key=lambda cut: (cut.begin - cut.end, cut.whole.period))
    chosen, taken = [], np.zeros(len(keys), bool)
    for cut in found[:_MOST_CUTS]:
        start, end, period = cut.whole
        part = taken[start + 2 * period : end - 2 * period]  # others overlap with it by less
        if not part.any():
            part[:] = True
            chosen.append(cut)
    return sorted(chosen)


_MOST_CUTS = 1 << 12
"""Number of repetitions from which the shorter ones are left as they are."""


def _likely_periods(keys: Array) -> list[int]:
    """Return the most frequent distances between equal windows that follow each other."""
    hashes, width, found = keys.astype(np.uint64), 1, dict[int, None]()
    while width <= min(len(keys) // 8, _LONGEST_WINDOW):
        order = np.argsort(hashes, kind="stable")
        same = hashes[order[1:]] == hashes[order[:-1]]
        counts = np.bincount(np.diff(order)[same])
        best = np.argsort(counts, kind="stable")[-_PERIODS_TRIED:]
        found.update(dict.fromkeys(int(d) for d in best if 8 * d <= len(keys) and counts[d]))
        for _ in range(_WINDOWS.bit_length() - 1):
            hashes = hashes[:-width] * _FACTOR + hashes[width:]  # equality of them proves nothing
            hashes ^= hashes >> np.uint64(29)
            width *= 2
    return list(found)


_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def _stretches(keys: Array, period: int) -> Iterable[tuple[int, int]]:
    """Return where maximal stretches with this period begin and end."""
    equal = np.zeros(len(keys) - period + 2, np.int8)
    equal[1:-1] = keys[:-period] == keys[period:]
    change = np.diff(equal)
    starts, ends = np.flatnonzero(change == 1), np.flatnonzero(change == -1) + period
    return zip(starts.tolist(), ends.tolist(), strict=True)


def _uncut(keys: Array, least: int, cuts: list[_Cut], places: Array, found: Array) -> Array:
    """Return the repetitions of a sequence, from those of what is left of it.

    `places` are those of its items. A short repetition within a long one is there in each period.
    """
    rows: list[Array] = []
    rest = np.ones(len(found), bool)
    start, end, period = found.T
    begin, last = places[start], places[end - 1]
    for cut in cuts:
        whole = cut.whole
        inside = (whole.start < begin) & (last < whole.end - 1) & (period < whole.period)
        rest &= ~inside
        back = cut.begin - begin
        inside &= (2 * whole.period < back) & (back <= 3 * whole.period)
        first, length = begin[inside], (end - start)[inside]
        one = np.stack([first, first + length, period[inside]], axis=1)
        one = one[length >= least * period[inside]]
        low, high = whole.start - cut.begin, whole.end - cut.begin
        moves = np.arange(low // whole.period, high // whole.period + 4) * whole.period
        each = (one[None] + moves[:, None, None] * np.array([1, 1, 0])).reshape(-1, 3)
        rows.append(each[(each[:, 0] > whole.start) & (each[:, 1] < whole.end)])
    shortest: dict[tuple[int, int], int] = {}
    guesses = {
        (int(places[place + p] - places[place]), int(places[place]))
        for a, b, p in found[rest].tolist()
        for place in (a, (a + b - p) // 2, b - 1 - p)  # maybe of a part that was cut less
    }
    for distance, group in itertools.groupby(sorted(guesses), key=operator.itemgetter(0)):
        differs = np.flatnonzero(keys[:-distance] != keys[distance:])
        for _, place in group:
            ends = _extended(differs, len(keys), place, distance)
            if ends[1] - ends[0] >= least * distance:
                shortest.setdefault(ends, distance)
    rows.append(np.array([(*ends, p) for ends, p in shortest.items()], np.int64).reshape(-1, 3))
    return np.unique(np.concatenate(rows), axis=0)


def _extended(differs: Array, count: int, place: int, period: int) -> tuple[int, int]:
    """Return where the stretch with this period around a place begins and ends."""
    after = int(np.searchsorted(differs, place))
    end = int(differs[after]) if after < len(differs) else count - period
    start = int(differs[after - 1]) + 1 if after else 0
    return start, end + period if end > place else start


# --- all repetitions ------------------------------------------------------------------------------


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
