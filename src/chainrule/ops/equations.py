"""Reading the equations of `einsum`: which label each dimension has.

A letter's label is its code; dimensions under an ellipsis are -1, -2, … from the last one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import index
from string import ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple

from chainrule.errors import ArgumentError, ShapeError

Labels = tuple[int, ...]
Shape = tuple[int, ...]

_ELLIPSIS = 0
_OF_INTS = ascii_uppercase + ascii_lowercase


class Equation(NamedTuple):
    """The labels of the operands' dimensions and of the result's."""

    terms: tuple[Labels, ...]
    shapes: tuple[Shape, ...]
    out: Labels
    sizes: dict[int, int]


def read(equation: str, shapes: tuple[Shape, ...]) -> Equation:
    """Return the labels of an equation for operands of these shapes, or say what is wrong."""
    if not shapes:
        raise ArgumentError("einsum(): must provide at least one operand")
    left, arrow, right = equation.partition("->")
    written = [_labels(term, equation, f"operand {i}") for i, term in enumerate(left.split(","))]
    if len(written) != len(shapes):
        fewer = "fewer" if len(shapes) < len(written) else "more"
        raise ArgumentError(
            f"einsum(): {fewer} operands were provided than specified in the equation: "
            f"{equation!r} has {len(written)}, but got {len(shapes)}"
        )
    terms = [_expanded(term, len(shapes[i]), i) for i, term in enumerate(written)]
    hidden = max([sum(label < 0 for label in term) for term in terms])
    under = tuple(range(-hidden, 0))
    if arrow:
        out = _explicit(_labels(right, equation, "output"), terms, under)
    else:
        counts = Counter(label for term in written for label in term if label != _ELLIPSIS)
        out = (*under, *sorted(label for label, count in counts.items() if count == 1))
    return Equation(tuple(terms), shapes, out, _sizes(terms, shapes))


def _labels(term: str, equation: str, where: str) -> Labels:
    """Return the labels as written, 0 for an ellipsis."""
    text = term.replace(" ", "")
    before, dots, after = text.partition("...")
    for part in (before, after):
        if "." in part:
            problem = (
                "but an ellipsis (...) was already found"
                if dots
                else "that is not part of any ellipsis"
            )
            raise ArgumentError(f"einsum(): found '.' for {where} {problem}, in {equation!r}")
        for letter in part:
            if letter not in _OF_INTS:
                raise ArgumentError(
                    f"einsum(): invalid subscript {letter!r} given for {where} in the equation "
                    f"string {equation!r}, subscripts must be in [a-zA-Z]"
                )
    middle = (_ELLIPSIS,) if dots else ()
    return (*map(ord, before), *middle, *map(ord, after))


def _expanded(term: Labels, ndim: int, position: int) -> Labels:
    """Return the labels of an operand with its ellipsis spelled out."""
    ellipsis = _ELLIPSIS in term
    hidden = ndim - len(term) + ellipsis
    if hidden < 0 or (hidden and not ellipsis):
        raise ShapeError(
            f"einsum(): the number of subscripts in the equation ({len(term) - ellipsis}) "
            f"{'is more than' if ellipsis else 'does not match'} the number of dimensions ({ndim}) "
            f"for operand {position}{'' if ellipsis else ' and no ellipsis was given'}"
        )
    if not ellipsis:
        return term
    place = term.index(_ELLIPSIS)
    return (*term[:place], *range(-hidden, 0), *term[place + 1 :])


def _explicit(out: Labels, terms: list[Labels], under: Labels) -> Labels:
    """Return the labels after the arrow, each once and of some operand."""
    known = set().union(*terms)
    for label, count in Counter(out).items():
        if label == _ELLIPSIS:
            continue
        if count > 1:
            raise ArgumentError(
                f"einsum(): output subscript {chr(label)} appears more than once in the output"
            )
        if label not in known:
            raise ArgumentError(
                f"einsum(): output subscript {chr(label)} does not appear in the equation for any "
                "input operand"
            )
    place = out.index(_ELLIPSIS) if _ELLIPSIS in out else None
    return out if place is None else (*out[:place], *under, *out[place + 1 :])


def _sizes(terms: list[Labels], shapes: tuple[Shape, ...]) -> dict[int, int]:
    """Return the size of each label: that of dimensions longer than 1, which must agree."""
    sizes: dict[int, int] = {}
    for position, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        own: dict[int, int] = {}
        for label, size in zip(term, shape, strict=True):
            name = chr(label) if label > 0 else f"... ({label})"
            if own.setdefault(label, size) != size:
                raise ShapeError(
                    f"einsum(): subscript {name} is repeated for operand {position} but the sizes "
                    f"don't match, {size} != {own[label]}"
                )
            known = sizes.setdefault(label, size)
            if known == 1:
                sizes[label] = size
            elif size not in (1, known):
                raise ShapeError(
                    f"einsum(): subscript {name} has size {size} for operand {position} which does "
                    f"not broadcast with previously seen size {known}"
                )
    return sizes


def equation_of(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the equation and the operands of ``einsum(x, [0, 1], y, [1, 2], [0, 2])``."""
    count = len(arguments) // 2
    operands = arguments[: 2 * count : 2]
    if not count or not all(map(_is_list, arguments[1::2][:count])):
        raise TypeError(
            "einsum(): the first argument must be an equation string, or operands must each be "
            f"followed by a list of ints, but got {', '.join(type(a).__name__ for a in arguments)}"
        )
    terms = ",".join(map(_term, arguments[1 : 2 * count : 2]))
    if len(arguments) % 2:
        terms += "->" + _term(arguments[-1])
    return terms, operands


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _term(labels: Any) -> str:
    if not _is_list(labels):
        raise TypeError(f"einsum(): expected a list of ints as labels, got {type(labels).__name__}")
    return "".join("..." if label is Ellipsis else _letter(label) for label in labels)


def _letter(label: Any) -> str:
    number = index(label)
    if not 0 <= number < len(_OF_INTS):
        raise ArgumentError(
            f"einsum(): subscript {number} is not within the valid range [0, {len(_OF_INTS)})"
        )
    return _OF_INTS[number]
