"""Formulas of sizes: the numbers in which programs for several sizes differ, as expressions.

A program is generated as text for several points, each an assignment of sizes to names. Texts that
differ in numbers only become one text with formulas in place of these numbers. A formula is taken
if it gives the number at every point, and the points are chosen so that no two formulas do.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from chainrule.interrupts import errstate

Point = dict[str, int]
"""A size for each name."""

_NUMBER = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)")

_MAX_DIVISOR = 16
"""Largest number by which formulas of integers divide, such as the stride of a convolution."""
_MAX_FACTORS = 4
"""Largest number of sizes that formulas multiply with each other."""


class Mismatch(Exception):
    """Two texts that differ otherwise than in numbers, or numbers without a formula.

    `names` are the sizes that are to blame, as far as that is known.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__("no formula")
        self.names = set(names)


class _Formula(NamedTuple):
    """An expression, and its values at the points."""

    text: str
    values: tuple[Any, ...]


@cache
def _code(text: str) -> Any:
    return compile(text, "<formula>", "eval")


def value_at(text: str, point: Point) -> Any:
    """Return the value of a formula."""
    return eval(_code(text), {"__builtins__": {"max": max}}, dict(point))


def parts_of(text: str) -> list[str]:
    """Return the parts of a text: what is between numbers, and the numbers, alternating."""
    return _NUMBER.split(text)


class Template:
    """Texts for several points as one text with formulas."""

    def __init__(self, texts: list[str], formulas: Formulas) -> None:
        split = [parts_of(text) for text in texts]
        if len({tuple(parts[::2]) for parts in split}) > 1:
            raise Mismatch
        self.parts: list[str] = []
        self._tolerances: dict[int, float] = {}  # of the numbers with formulas, by position
        for position, column in enumerate(zip(*split, strict=True)):
            if position % 2 and len(set(column)) > 1:
                numbers = [_number(text) for text in column]
                self.parts.append(formulas.find(numbers))
                self._tolerances[position] = _tolerance(numbers)
            else:
                self.parts.append(column[0])

    def text(self) -> str:
        """Return the text with formulas."""
        return "".join(self.parts)

    def equals(self, text: str, point: Point) -> bool:
        """Whether the formulas give the text at another point."""
        found = parts_of(text)
        return len(found) == len(self.parts) and all(
            mine == other
            or (i in self._tolerances and _agree(mine, other, point, self._tolerances[i]))
            for i, (mine, other) in enumerate(zip(self.parts, found, strict=True))
        )


def _agree(formula: str, text: str, point: Point, tolerance: float) -> bool:
    try:
        value, other = value_at(formula, point), _number(text)
    except (ZeroDivisionError, ValueError):
        return False
    return type(value) is type(other) and abs(value - other) <= tolerance * abs(other)


def _number(text: str) -> Any:
    return int(text) if text.isdigit() else float(text)


_PRECISE: dict[Any, float] = {np.float16: 1e-3, np.float32: 1.2e-7, np.float64: 1e-15}
"""The real dtypes, and the relative distance of their neighbours, or a little more."""

_DIGITS = (3, 7, 12, 17)
"""Numbers of digits that are tried for a constant."""


@errstate(all="ignore")
def _tolerance(numbers: list[Any]) -> float:
    """Return the relative rounding of numbers of one dtype, the least precise that has them all.

    Numbers are shown with as many digits as their dtype needs.
    """
    if all(type(n) is int for n in numbers):
        return 0.0
    if all(float(n).is_integer() for n in numbers):
        return _PRECISE[np.float64]
    fitting = [kind for kind in _PRECISE if all(_is_of_dtype(n, kind) for n in numbers)]
    return _PRECISE[fitting[0]] if fitting else _PRECISE[np.float64]


def _is_of_dtype(number: float, kind: Any) -> bool:
    rounded = kind(number)
    return number in (float(str(rounded)), float(rounded))


class Formulas:
    """Search for formulas of numbers that depend on sizes."""

    def __init__(self, points: list[Point]) -> None:
        self.points = points
        self._known: dict[tuple[Any, ...], str] = {}
        self._atoms = [
            _Formula(name, tuple([point[name] for point in points])) for name in points[0]
        ]
        self._set_products()

    def find(self, values: list[Any]) -> str:
        """Return the formula of a number with these values at the points."""
        key = (*map(type, values), *values)
        if key not in self._known:
            search = self._integer if all(type(v) is int for v in values) else self._real
            text = search(values)
            if text is None:
                raise Mismatch(self._varying(values))
            self._known[key] = text
        return self._known[key]

    def _varying(self, values: list[Any]) -> Iterator[str]:
        """Yield the names whose change alone changes a number."""
        first = self.points[0]
        for point, value in zip(self.points, values, strict=True):
            changed = [name for name in first if point[name] != first[name]]
            if len(changed) == 1 and value != values[0]:
                yield changed[0]

    def _set_products(self) -> None:
        """Make the products of atoms."""
        self._products = list(self._atoms)
        for count in range(2, _MAX_FACTORS + 1):
            if len(self._atoms) ** count > 5000:
                break
            for factors in itertools.combinations_with_replacement(self._atoms, count):
                text = " * ".join([_atomic(f.text) for f in factors])
                values = zip(*(f.values for f in factors), strict=True)
                self._products.append(_Formula(text, tuple(map(math.prod, values))))

    # --- integers ---

    def _integer(self, values: list[int]) -> str | None:
        for candidate in self._products:
            found = _linear(candidate, values)
            if found is not None:
                return found
        return self._sum(values) or self._quotient(values) or self._two_products(values)

    def _sum(self, values: list[int]) -> str | None:
        """Return the sum of multiples of sizes that the values are."""
        rows = [[*point.values(), 1] for point in self.points]
        found = _whole_solution(rows, values)
        if found is None:
            return None
        return _atomic(_terms([*zip(found, [*self.points[0], ""], strict=True)]))

    def _two_products(self, values: list[int]) -> str | None:
        for one, two in itertools.combinations(self._products[:60], 2):
            rows = [[a, b, 1] for a, b in zip(one.values, two.values, strict=True)]
            found = _whole_solution(rows, values)
            if found is not None:
                return _atomic(_terms([*zip(found, [one.text, two.text, ""], strict=True)]))
        return None

    def _quotient(self, values: list[int]) -> str | None:
        """Return (atom + offset) // divisor, or its remainder, or a constant // product."""
        for candidate, divisor in itertools.product(self._atoms, range(2, _MAX_DIVISOR + 1)):
            pairs = list(zip(candidate.values, values, strict=True))
            low = max(v * divisor - a for a, v in pairs)
            high = min((v + 1) * divisor - 1 - a for a, v in pairs)
            if low <= high:  # offsets from low to high are the same at all points
                if low < high:
                    continue
                text = f"({_terms([(1, candidate.text), (low, '')])} // {divisor})"
                self._add(text, values)
                return text
            if all(a % divisor == v for a, v in pairs):
                return f"({_atomic(candidate.text)} % {divisor})"
        for candidate in self._products:
            pairs = list(zip(candidate.values, values, strict=True))
            low = max(a * v for a, v in pairs)
            high = min(a * (v + 1) - 1 for a, v in pairs)
            power = 1 << high.bit_length() - 1 if high > 0 else 0
            if low <= power <= high and power > 1:
                return f"max(1, {power} // {_atomic(candidate.text)})"
        return None

    def _add(self, text: str, values: list[int]) -> None:
        """Let further formulas be made of this one."""
        self._atoms.append(_Formula(text, tuple(values)))
        self._set_products()

    # --- real numbers ---

    def _real(self, values: list[Any]) -> str | None:
        less = [
            _Formula(f"({a.text} - 1)", tuple([v - 1 for v in a.values])) for a in self._products
        ]
        for candidate in (*self._products, *less):
            if 0 in candidate.values:
                continue
            numbers, text = np.asarray(candidate.values, float), _atomic(candidate.text)
            for form, factors in (
                ("{0} / {1}", 1 / numbers),
                ("{0} * {1}", numbers),
                ("{0} / {1} ** 0.5", numbers**-0.5),
                ("{0} * {1} ** 0.5", numbers**0.5),
                ("{0} / {1} ** 0.25", numbers**-0.25),
            ):
                constant = _constant(values, factors.tolist())
                if constant is not None:
                    text = form.format(constant, text)
                    return f"({text.removeprefix('1.0 * ') if '**' in text else text})"
        for candidate in self._products:
            for form, targets in (("{0}", values), ("1.0 / ({0})", [1 / v for v in values if v])):
                line = _line(candidate, targets)
                if line is not None:
                    return f"({form.format(line)})"
        return None


def _constant(values: list[Any], factors: list[float]) -> str | None:
    """Return a constant that times the factors gives the values, as short as it can be."""
    ratios = [value / factor for value, factor in zip(values, factors, strict=True)]
    exact, rounding = (min(ratios) + max(ratios)) / 2, _tolerance(values)
    for tolerance, digits in itertools.product(sorted(_PRECISE.values()), _DIGITS):
        constant = float(f"{exact:.{digits}g}")
        near = [abs(constant - ratio) <= tolerance * abs(ratio) for ratio in ratios]
        if tolerance <= rounding and all(near):
            return repr(constant)
    return None


def _line(candidate: _Formula, values: list[float]) -> str | None:
    """Return the line through real numbers, multiple · candidate + offset; None if there is none.

    Two numbers determine it, so the rounding must be small.
    """
    pairs = sorted(zip(candidate.values, values, strict=False))
    (low, one), (high, other) = pairs[0], pairs[-1]
    if len(pairs) < len(candidate.values) or low == high:
        return None
    multiple = (other - one) / (high - low)
    offset = one - multiple * low
    for tolerance, digits in itertools.product(sorted(_PRECISE.values())[:2], _DIGITS):
        a, b = float(f"{multiple:.{digits}g}"), float(f"{offset:.{digits}g}")
        if all(abs(a * x + b - y) <= 2 * tolerance * abs(y) for x, y in pairs):
            return f"{a!r} * {_atomic(candidate.text)} {'-' if b < 0 else '+'} {abs(b)!r}"
    return None


def _linear(candidate: _Formula, values: list[int]) -> str | None:
    """Return multiple · candidate + offset if that gives the values."""
    (a, *_), (v, *_) = candidate.values, values
    for b, w in zip(candidate.values, values, strict=True):
        if b != a:
            multiple, rest = divmod(w - v, b - a)
            if rest or not multiple:
                return None
            offset = v - multiple * a
            pairs = zip(candidate.values, values, strict=True)
            if any(multiple * x + offset != y for x, y in pairs):
                return None
            text = _terms([(multiple, candidate.text), (offset, "")])
            return text if text == candidate.text and text.isidentifier() else f"({text})"
    return None


def _whole_solution(rows: list[list[int]], values: list[int]) -> list[int] | None:
    """Return the integers with which the rows give the values, if there are unique ones."""
    if len(rows) <= len(rows[0]):
        return None
    solution, _, rank, _ = np.linalg.lstsq(np.asarray(rows, float), np.asarray(values, float))
    whole = [round(x) for x in solution.tolist()]
    fits = all(
        sum(x * y for x, y in zip(row, whole, strict=True)) == value
        for row, value in zip(rows, values, strict=True)
    )
    return whole if fits and rank == len(rows[0]) else None


def _terms(terms: list[tuple[int, str]]) -> str:
    """Return the sum of multiples as text; the constant term has no name."""
    text = ""
    for multiple, name in sorted(terms, key=lambda term: term[0] < 0):
        size = abs(multiple)
        if multiple:
            shown = f"{size}" if not name else name if size == 1 else f"{size} * {_atomic(name)}"
            sign = ("-" if not text else " - ") if multiple < 0 else " + " if text else ""
            text += sign + shown
    return text or "0"


def _atomic(text: str) -> str:
    """Return an expression in parentheses, unless it is a name or has them."""
    if text.isidentifier() or text.isdigit() or (text[0] == "(" and _closes_last(text)):
        return text
    return f"({text})"


def _closes_last(text: str) -> bool:
    """Whether the first parenthesis is closed by the last character."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
