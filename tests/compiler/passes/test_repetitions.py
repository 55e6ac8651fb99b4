"""Maximal repetitions, and the first loop in one, beside searches that try everything."""

from __future__ import annotations

import random

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from chainrule.compiler.passes.repetitions import Repetition, repetitions
from chainrule.compiler.passes.reroll import MIN_STEPS, Operands

words = st.integers(1, 4).flatmap(lambda n: st.lists(st.integers(0, n), max_size=40))


def found_by_trying(items: list[int], least: int) -> set[Repetition]:
    """Return the maximal repetitions, each with its shortest period."""
    shortest: dict[tuple[int, int], int] = {}
    for period in range(1, len(items) // least + 1):
        begin = 0
        while begin + period < len(items):
            end = begin
            while end + period < len(items) and items[end] == items[end + period]:
                end += 1
            if end + period - begin >= least * period:
                shortest.setdefault((begin, end + period), period)
            begin = end + 1
    return {Repetition(*ends, period) for ends, period in shortest.items()}


@hypothesis.given(items=words, least=st.integers(2, 4))
@hypothesis.example(items=[], least=2)
@hypothesis.example(items=[0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1], least=3)
def test_all_maximal_repetitions_are_found(items: list[int], least: int) -> None:
    assert set(repetitions(items, least)) == found_by_trying(items, least)


@pytest.mark.parametrize("period", [1, 7, 900])
def test_long_sequences(period: int) -> None:
    rng = random.Random(period)
    body = [rng.randrange(5) for _ in range(period - 1)] + [9]
    items = [7, 8] + body * (30_000 // period) + [8]
    (found,) = repetitions(items, 20)
    assert found == Repetition(2, len(items) - 1, period)
    assert repetitions([rng.randrange(40) for _ in range(30_000)], 8) == []


def nested_loops(rng: random.Random, depth: int) -> list[int]:
    """Return a sequence of loops within loops, with items between them."""
    if depth == 0:
        return [rng.randrange(3) for _ in range(rng.randint(1, 4))]
    items: list[int] = []
    for _ in range(rng.randint(1, 2)):
        items += nested_loops(rng, depth - 1) * rng.choice([1, 2, 5, 9, 12, 30])
        items += [rng.randrange(4) for _ in range(rng.randint(0, 3))]
    return items


def test_what_is_cut_out_of_long_ones_is_found() -> None:
    for seed in [2374, 278, *range(25)]:
        rng = random.Random(seed)
        items = nested_loops(rng, rng.randint(1, 3))[:700]
        for least in (4, 8):
            assert set(repetitions(items, least)) == found_by_trying(items, least), seed


def long_loops(rng: random.Random) -> list[int]:
    """Return loops that are long, whose bodies contain short ones, and end anywhere."""
    items: list[int] = []
    for _ in range(rng.randint(1, 3)):
        items += [rng.randrange(3) for _ in range(rng.randint(0, 5))]
        word = [rng.randrange(3) for _ in range(rng.randint(1, 3))]
        body: list[int] = []
        for _ in range(rng.randint(1, 3)):
            body += [rng.randrange(3) for _ in range(rng.randint(0, 3))] + word * rng.randint(1, 8)
        items += body * rng.randint(1, 59) + body[: rng.randint(0, len(body))]
    return items


@pytest.mark.parametrize("seed", [28, 31, 67, 160])
def test_short_repetitions_at_the_ends_of_long_ones(seed: int) -> None:
    items = long_loops(random.Random(seed))
    for least in (4, 8):
        assert set(repetitions(items, least)) == found_by_trying(items, least)


# --- roles of operands ----------------------------------------------------------------------------


def role(maker: int, start: int, begin: int, period: int) -> object:
    """Return the role of an operand in the step at `start` of a loop from `begin` on."""
    if maker >= start:
        return "same", maker - start
    if maker < begin:
        return "outside"
    return ("before", maker - start + period) if maker >= start - period else "too far"


def loop_by_trying(makers: list[list[int]], start: int, end: int, period: int) -> object:
    """Return the first place of a loop, and the number of its steps, by the roles of each step."""
    for begin in range(start, end - MIN_STEPS * period + 1):
        roles = [
            [
                role(maker, first, begin, period)
                for each in makers[first : first + period]
                for maker in each
            ]
            for first in range(begin, end - period + 1, period)
        ]
        early = ["outside" if part[0] == "before" else part for part in roles[1]]
        if roles[0] != early or "too far" in roles[1]:
            continue
        alike = [each == roles[1] for each in roles[1:]]
        steps = 1 + (alike.index(False) if False in alike else len(alike))
        if steps >= MIN_STEPS:
            return begin, steps
    return None


@pytest.mark.parametrize("seed", range(90))
def test_the_first_loop_with_the_same_roles(seed: int) -> None:
    rng = random.Random(seed)
    period, steps, prologue = rng.randint(1, 4), rng.randint(8, 14), rng.randint(0, 6)
    counts = [rng.randint(0, 2) for _ in range(period)]
    longest = rng.choice([3, 3, 9]) * period
    distances = [[rng.randint(1, longest) for _ in range(n)] for n in counts]
    makers: list[list[int]] = [[] for _ in range(prologue)]
    for i in range(period * steps):
        place = prologue + i
        own = [max(place - d, -1) for d in distances[i % period]]
        fixed = [rng.randrange(-1, place) if rng.random() < 0.02 else maker for maker in own]
        makers.append(
            [rng.randrange(-1, prologue + 1) if rng.random() < 0.02 else m for m in fixed]
        )
    made = {f"v{i}": (i, 0) for i in range(len(makers))}
    operands = Operands([[f"v{m}" for m in each] for each in makers], made)  # type: ignore[arg-type]
    bounds = prologue, len(makers), period * rng.choice([1, 1, 2])
    if bounds[1] - bounds[0] >= MIN_STEPS * bounds[2]:
        assert operands.consistent(*bounds) == loop_by_trying(makers, *bounds)


def test_windows() -> None:
    from chainrule.compiler.passes.reroll import _window_max

    array = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    for width in range(1, 9):
        expected = [array[i : i + width].max() for i in range(9 - width)]
        assert _window_max(array, width).tolist() == expected
