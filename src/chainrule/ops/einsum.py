"""`einsum`: its equations, its plan of pairwise contractions, and their execution."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import index
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import Any, NamedTuple

import numpy as np

from chainrule.arguments import cast, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import promoted
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.ops.reshape import reshape
from chainrule.primitives import contraction, indexing, reductions, shaping

__all__ = [
    "einsum",
]

# --- parsing of equations -------------------------------------------------------------------------
#
# The label of a letter is its code point; dimensions of an ellipsis are labelled …, -2, -1.

Labels = tuple[int, ...]
Shape = tuple[int, ...]

_ELLIPSIS = 0
_LETTERS = ascii_uppercase + ascii_lowercase


class Equation(NamedTuple):
    """A parsed equation: the labels of the operands' dimensions and of the result's."""

    terms: tuple[Labels, ...]
    shapes: tuple[Shape, ...]
    out: Labels
    sizes: dict[int, int]


def parse_equation(equation: str, shapes: tuple[Shape, ...]) -> Equation:
    """Parse an equation for operands of these shapes."""
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
    terms = [_expand_ellipsis(term, len(shapes[i]), i) for i, term in enumerate(written)]
    ellipsis_ndim = max([sum(label < 0 for label in term) for term in terms])
    ellipsis_labels = tuple(range(-ellipsis_ndim, 0))
    if arrow:
        out = _output_labels(_labels(right, equation, "output"), terms, ellipsis_labels)
    else:
        counts = Counter(label for term in written for label in term if label != _ELLIPSIS)
        out = (*ellipsis_labels, *sorted(label for label, count in counts.items() if count == 1))
    return Equation(tuple(terms), shapes, out, _sizes(terms, shapes))


def _labels(term: str, equation: str, where: str) -> Labels:
    """Return the labels of a term, 0 for an ellipsis."""
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
            if letter not in _LETTERS:
                raise ArgumentError(
                    f"einsum(): invalid subscript {letter!r} given for {where} in the equation "
                    f"string {equation!r}, subscripts must be in [a-zA-Z]"
                )
    middle = (_ELLIPSIS,) if dots else ()
    return (*map(ord, before), *middle, *map(ord, after))


def _expand_ellipsis(term: Labels, ndim: int, position: int) -> Labels:
    """Return the labels of an operand with its ellipsis replaced by labels."""
    ellipsis = _ELLIPSIS in term
    ellipsis_ndim = ndim - len(term) + ellipsis
    if ellipsis_ndim < 0 or (ellipsis_ndim and not ellipsis):
        raise ShapeError(
            f"einsum(): the number of subscripts in the equation ({len(term) - ellipsis}) "
            f"{'is more than' if ellipsis else 'does not match'} the number of dimensions ({ndim}) "
            f"for operand {position}{'' if ellipsis else ' and no ellipsis was given'}"
        )
    if not ellipsis:
        return term
    ellipsis_at = term.index(_ELLIPSIS)
    return (*term[:ellipsis_at], *range(-ellipsis_ndim, 0), *term[ellipsis_at + 1 :])


def _output_labels(out: Labels, terms: list[Labels], ellipsis_labels: Labels) -> Labels:
    """Return the labels after the arrow, which must be distinct and occur in an operand."""
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
    ellipsis_at = out.index(_ELLIPSIS) if _ELLIPSIS in out else None
    if ellipsis_at is None:
        return out
    return (*out[:ellipsis_at], *ellipsis_labels, *out[ellipsis_at + 1 :])


def _sizes(terms: list[Labels], shapes: tuple[Shape, ...]) -> dict[int, int]:
    """Return the size of each label; sizes other than 1 must be equal."""
    sizes: dict[int, int] = {}
    for position, (term, shape) in enumerate(zip(terms, shapes, strict=True)):
        operand_sizes: dict[int, int] = {}
        for label, size in zip(term, shape, strict=True):
            name = chr(label) if label > 0 else f"... ({label})"
            if operand_sizes.setdefault(label, size) != size:
                raise ShapeError(
                    f"einsum(): subscript {name} is repeated for operand {position} but the sizes "
                    f"don't match, {size} != {operand_sizes[label]}"
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


def equation_from_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the equation and the operands of a call with lists of ints as labels."""
    count = len(arguments) // 2
    operands = arguments[: 2 * count : 2]
    if not count or not all(map(_is_list, arguments[1::2][:count])):
        raise ArgumentTypeError(
            "einsum(): the first argument must be an equation string, or operands must each be "
            f"followed by a list of ints, but got {', '.join(type(a).__name__ for a in arguments)}"
        )
    terms = ",".join(map(_term_of, arguments[1 : 2 * count : 2]))
    if len(arguments) % 2:
        terms += "->" + _term_of(arguments[-1])
    return terms, operands


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _term_of(labels: Any) -> str:
    if not _is_list(labels):
        raise ArgumentTypeError(
            f"einsum(): expected a list of ints as labels, got {type(labels).__name__}"
        )
    return "".join("..." if label is Ellipsis else _letter_of(label) for label in labels)


def _letter_of(label: Any) -> str:
    number = index(label)
    if not 0 <= number < len(_LETTERS):
        raise ArgumentError(
            f"einsum(): subscript {number} is not within the valid range [0, {len(_LETTERS)})"
        )
    return _LETTERS[number]


# --- the public function --------------------------------------------------------------------------


def einsum(equation: str | Any, /, *operands: Any) -> Tensor:
    """Return a sum of products of the operands' elements, by the Einstein summation convention.

    Parameters
    ----------
    equation : str
        A letter for each dimension of each operand, "ij,jk->ik". Dimensions with the same letter
        have the same index; a letter that is repeated in one operand selects a diagonal. Letters
        that are missing after "->" are summed over. Without "->", letters that appear once are
        kept, in alphabetical order. "..." stands for dimensions without a letter, which broadcast.
    *operands : Tensor
        One for each term. Instead of using an equation, each operand may be followed by a list of
        ints below 52 or ``...`` as its labels, and the last operand by the labels of the result.

    Returns
    -------
    Tensor
        A dimension for each letter after "->"; of the operands' common dtype.

    Raises
    ------
    ArgumentError
        If the equation is malformed, or does not match the operands: a `ShapeError` if their
        shapes are the reason.

    Notes
    -----
    Dimensions of size 1 broadcast. Products of two operands are BLAS matrix products; several
    operands are contracted in pairs, in the order that `numpy.einsum_path` finds.

    Derivative: for each operand the einsum of the gradient and the other operands.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cr.einsum("ij,j->i", x, cr.tensor([1.0, 10.0]))
    tensor([21., 43.])
    >>> cr.einsum("ii", x)
    tensor(5.)
    >>> cr.einsum(x, [0, 1], x, [2, 1], [0, 2])
    tensor([[ 5., 11.],
            [11., 25.]])
    """
    if not isinstance(equation, str):
        equation, operands = equation_from_lists((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], tuple | list):
        operands = tuple(operands[0])
    tensors = [tensor_of(operand) for operand in operands]
    plan = make_plan(equation, tuple([t._array.shape for t in tensors]))
    dtypes = {t._array.dtype for t in tensors}
    if len(dtypes) > 1:
        dtype = functools.reduce(promoted, dtypes)
        tensors = [cast(t, dtype) for t in tensors]
    if plan.preparations:
        for position, preparation in plan.preparations:
            tensors[position] = _prepare(tensors[position], preparation)
    for i, j, labels in plan.pairs:
        y, x = tensors.pop(j), tensors.pop(i)
        tensors.append(contract_pair(x, y, *labels))
    (result,) = tensors
    return result if plan.order is None else shaping.permute_dims.apply(result, axes=plan.order)


def contract_pair(
    x: Tensor, y: Tensor, x_labels: Labels, y_labels: Labels, out_labels: Labels
) -> Tensor:
    """Return the product of two tensors, summed over the labels that aren't in `out_labels`."""
    if _is_matmul(x_labels, y_labels, out_labels):
        return contraction.matmul.apply(x, y)
    return contraction.contract.apply(
        x, y, x_labels=x_labels, y_labels=y_labels, out_labels=out_labels
    )


@functools.lru_cache(maxsize=1024)
def _is_matmul(x: Labels, y: Labels, out: Labels) -> bool:
    if not len(x) == len(y) == len(out) >= 2 or not x[:-2] == y[:-2] == out[:-2]:
        return False
    return x[-1] == y[-2] and out[-2:] == (x[-2], y[-1]) and x[-1] not in out


# --- plans: the steps for an equation and shapes --------------------------------------------------


class Preparation(NamedTuple):
    """The steps for one operand before contractions."""

    diagonals: tuple[tuple[Labels, Shape], ...]  # permutation, and shape with both axes merged
    shape: Shape | None  # without dimensions of size 1 that are longer in other operands
    summed: Labels  # the axes whose labels occur in no other operand and not in the result


_NO_PREPARATION = Preparation((), None, ())
Pair = tuple[int, int, tuple[Labels, Labels, Labels]]


class Plan(NamedTuple):
    """The steps of an equation for operands of certain shapes."""

    preparations: tuple[tuple[int, Preparation], ...]
    pairs: tuple[Pair, ...]
    order: Labels | None  # of the axes, if there is a single operand


@functools.lru_cache(maxsize=1024)
def make_plan(equation: str, shapes: tuple[Shape, ...]) -> Plan:
    """Return the steps for an equation and operands of these shapes."""
    parsed = parse_equation(equation, shapes)
    prepared = [_preparation(parsed, i, shapes[i]) for i in range(len(shapes))]
    preparations = tuple([(i, p) for i, (p, _) in enumerate(prepared) if p != _NO_PREPARATION])
    terms = [labels for _, labels in prepared]
    if len(terms) == 1:
        return Plan(preparations, (), tuple([terms[0].index(label) for label in parsed.out]))
    return Plan(preparations, tuple(_pairs(terms, parsed)), None)


def _preparation(parsed: Equation, position: int, shape: Shape) -> tuple[Preparation, Labels]:
    """Return the preparation of an operand, and its labels afterwards."""
    labels, diagonals = list(parsed.terms[position]), []
    sizes = list(shape)
    for label, count in Counter(labels).items():
        for _ in range(count - 1):
            first = labels.index(label)
            second = labels.index(label, first + 1)
            order = [i for i in range(len(labels)) if i not in (first, second)]
            n = sizes[first]
            sizes = [*(sizes[i] for i in order), n]
            labels = [*(labels[i] for i in order), label]
            diagonals.append(((*order, first, second), (*sizes[:-1], n * n)))
    kept = [i for i, label in enumerate(labels) if sizes[i] == parsed.sizes[label]]
    dropped = len(kept) < len(labels)
    labels, sizes = [labels[i] for i in kept], [sizes[i] for i in kept]
    elsewhere = _labels_elsewhere(parsed, position) | set(parsed.out)
    summed = tuple([i for i, label in enumerate(labels) if label not in elsewhere])
    left = tuple([label for label in labels if label in elsewhere])
    return Preparation(tuple(diagonals), tuple(sizes) if dropped else None, summed), left


def _labels_elsewhere(parsed: Equation, position: int) -> set[int]:
    """Return the labels of the other operands' dimensions of full size."""
    return {
        label
        for i, (term, shape) in enumerate(zip(parsed.terms, parsed.shapes, strict=True))
        if i != position
        for label, size in zip(term, shape, strict=True)
        if size == parsed.sizes[label]
    }


def _prepare(x: Tensor, preparation: Preparation) -> Tensor:
    for order, joined in preparation.diagonals:
        x = shaping.permute_dims.apply(x, axes=order)
        n = x.shape[-1]
        x = reshape(x, joined)
        x = indexing.getitem.apply(x, key=(..., slice(None, None, n + 1)))
    if preparation.shape is not None:
        x = shaping.reshape.apply(x, shape=preparation.shape)
    if preparation.summed:
        x = reductions.sum.apply(x, axis=preparation.summed, keepdims=False)
        x = cast(x, "int64") if x._array.dtype.kind == "u" else x
    return x


def _pairs(terms: list[Labels], parsed: Equation) -> Iterator[Pair]:
    """Yield the positions of two operands, and the labels of both and of their product.

    Both are removed from the list of operands, and their product is appended.
    """
    for path in _path(terms, parsed):
        group = sorted(path)
        while len(group) > 1:
            i, j = group[:2]
            y, x = terms.pop(j), terms.pop(i)
            needed = set(parsed.out).union(*terms)
            product = tuple([label for label in dict.fromkeys((*x, *y)) if label in needed])
            terms.append(product if terms else parsed.out)
            yield i, j, (x, y, terms[-1])
            group = [*(number - 2 for number in group[2:]), len(terms) - 1]


def _path(terms: list[Labels], parsed: Equation) -> Sequence[Sequence[int]]:
    """Return the positions of the operands to contract in each step."""
    labels = list(parsed.sizes)
    if len(terms) == 2 or len(labels) > len(ascii_letters):
        return [range(len(terms))]
    letters = dict(zip(labels, ascii_letters, strict=False))
    equation = ",".join("".join(letters[label] for label in term) for term in terms)
    out = "".join(letters[label] for label in parsed.out)
    dummies = [np.broadcast_to(0, [parsed.sizes[label] for label in term]) for term in terms]
    strategy = "optimal" if len(terms) <= 4 else "greedy"
    path: Sequence[Sequence[int]]
    path = np.einsum_path(f"{equation}->{out}", *dummies, optimize=strategy)[0][1:]
    return path
