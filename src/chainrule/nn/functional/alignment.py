"""The loss of a sequence of labels whose places in time are not known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, cast, floating
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import (
    CPU,
    check_known,
    first_where,
    holds_somewhere,
    is_array,
    is_known,
    move,
)
from chainrule.errors import DTypeError, OutOfBoundsError, ShapeError
from chainrule.nn.functional.reduction import check_reduction

__all__ = ["ctc_loss"]

Array = Any

_NEVER = -1e30
"""The logarithm of no probability: finite, so that differences of two of them are numbers."""


def ctc_loss(
    log_probs: Operand,
    targets: Operand,
    input_lengths: Operand | Sequence[int],
    target_lengths: Operand | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return how improbable sequences of labels are, over all ways to spread them in time.

    Parameters
    ----------
    log_probs : Tensor, shape (t, n, c) or (t, c)
        The logarithms of the probabilities of c labels at t times, as of `log_softmax`.
    targets : Tensor of integers, shape (n, s), or (s,), or (sum of target_lengths,)
        The labels: padded, or one sequence after the other.
    input_lengths, target_lengths : Tensor or sequence of ints, shape (n,); or int
        How many times, and how many labels, count in each sequence.
    blank : int, default 0
        The label that stands for none: it parts equal labels, and is left out at the end.
    reduction : {"mean", "sum", "none"}
        Divide each loss by its number of labels and take the mean; add them up; or return them.
    zero_infinity : bool, default False
        Return 0, not inf, for labels that don't fit into the time.

    Returns
    -------
    Tensor, shape (), or (n,) for "none"
        -log Σ Π p: over all ways [1]_, of the product of probabilities.

    Raises
    ------
    ShapeError
        If the shapes or the lengths don't fit.
    DTypeError
        If targets or lengths are no integers.
    OutOfBoundsError
        If a label is none of the c, or `blank` is.

    Notes
    -----
    Derivative: minus the probability of each label at each time, given the sequence; 0 where the
    loss is infinite. That is the derivative in `log_probs` itself: PyTorch's has exp(log_probs)
    added, which the gradient of `log_softmax` takes off again.

    References
    ----------
    .. [1] A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, "Connectionist temporal
       classification", ICML 2006.

    Examples
    --------
    >>> import chainrule as cr
    >>> log_probs = cr.full((2, 2), 0.5).log()
    >>> cr.nn.functional.ctc_loss(log_probs, cr.tensor([1]), 2, 1).exp()
    tensor(1.3333)
    """
    check_reduction("ctc_loss", reduction)
    scores = floating(log_probs)
    if scores.ndim not in (2, 3):
        raise ShapeError(
            f"ctc_loss: expected log_probs of shape (t, n, c) or (t, c), got {list(scores.shape)}"
        )
    batched = scores.ndim == 3
    if not batched:
        scores = ops.unsqueeze(scores, 1)
    steps, count, classes = scores.shape
    if not 0 <= blank < classes:
        raise OutOfBoundsError(
            f"ctc_loss: blank must be in label range, 0 … {classes - 1}, got {blank}"
        )
    times = _lengths("input_lengths", input_lengths, count, steps)
    lengths = _lengths("target_lengths", target_lengths, count, None)
    labels = _padded(_integers("targets", targets), lengths, batched)
    inside = np.arange(labels.shape[1]) < lengths[:, None]
    _check_labels(labels, inside, classes)
    dtype = scores.dtype
    if dtype.itemsize < 4:
        scores = cast(scores, np.float32)
    losses = _losses(scores, np.where(inside, labels, blank), times, lengths, blank)
    impossible = make(losses._array > -_NEVER / 10, None)
    losses = cast(ops.where(impossible, 0.0 if zero_infinity else np.inf, losses), dtype)
    if reduction == "mean":
        losses = ops.mean(ops.divide(losses, make(np.maximum(lengths, 1).astype(dtype), None)))
    elif reduction == "sum":
        losses = ops.sum(losses)
    return losses if batched or reduction != "none" else ops.reshape(losses, ())


def _check_labels(labels: Array, inside: Array, classes: int) -> None:
    outside = first_where(inside & ((labels < 0) | (labels >= classes)), labels)
    if outside is not None:
        raise OutOfBoundsError(
            f"ctc_loss: Target {outside} is out of bounds: the {classes} labels have the "
            f"numbers 0 … {classes - 1}"
        )


def _integers(name: str, value: Any) -> Array:
    given = value._array if isinstance(value, Tensor) else value
    array = move(given, CPU) if is_array(given) else np.asarray(given)
    if array.size and array.dtype.kind not in "iu":
        raise DTypeError(f"ctc_loss: {name} must be of integral type, got {array.dtype}")
    return array.astype(np.int64)


def _lengths(name: str, value: Any, count: int, most: int | None) -> Array:
    lengths = np.atleast_1d(_integers(name, value))
    if lengths.shape != (count,):
        raise ShapeError(
            f"ctc_loss: {name} must be of size batch_size, {count}, got {list(lengths.shape)}"
        )
    if holds_somewhere(lengths < 0) or (most is not None and holds_somewhere(lengths > most)):
        bound = "" if most is None else f" and at most {most}, the number of times"
        raise ShapeError(f"ctc_loss: Expected {name} to be not negative{bound}, got {lengths}")
    return lengths


def _padded(targets: Array, lengths: Array, batched: bool) -> Array:
    """Return the labels as one row for each sequence."""
    if targets.ndim == 1 and batched:
        check_known(lengths, "ctc_loss", "pad targets to the shape (n, longest)")
    known = is_known(lengths)
    longest = int(lengths.max(initial=0)) if known else np.atleast_2d(targets).shape[1]
    if targets.ndim == 1 and batched:
        if len(targets) != lengths.sum():
            raise ShapeError(
                f"ctc_loss: {len(targets)} targets one after the other, but target_lengths add up "
                f"to {lengths.sum()}"
            )
        rows = np.zeros((len(lengths), longest), np.int64)
        rows[np.arange(longest) < lengths[:, None]] = targets
        return rows
    rows = np.atleast_2d(targets)
    if rows.ndim != 2 or len(rows) != len(lengths) or rows.shape[1] < longest:
        raise ShapeError(
            f"ctc_loss: expected targets of shape ({len(lengths)}, {longest}) or wider, got "
            f"{list(targets.shape)}"
        )
    return rows[:, :longest]


def _between(values: Array, filler: Any) -> Array:
    """Return rows with a filler before, between and after their values."""
    fillers = np.full(values.shape, filler, values.dtype)
    pairs = np.stack([fillers, values], -1).reshape(len(values), 2 * values.shape[1])
    return np.concatenate([pairs, np.full((len(values), 1), filler, values.dtype)], 1)


def _losses(scores: Tensor, labels: Array, times: Array, lengths: Array, blank: int) -> Tensor:
    """Return the loss of each sequence; -`_NEVER` and more where there is no way.

    A way goes through the labels with blanks around each. In one step it stays, goes one further,
    or two: over a blank, between labels that differ.
    """
    count, longest = labels.shape
    places = _between(labels, blank)
    number = np.arange(places.shape[1])
    differs = np.concatenate(
        [np.zeros((count, 1), bool)[:, :longest], labels[:, 1:] != labels[:, :-1]], 1
    )
    skips = _between(differs, False)
    key = (slice(None), np.arange(count)[:, None], places)
    rows = ops.unbind(ops.clamp_min(RECORDERS["index"](scores, key=key), _NEVER))
    never = np.asarray(_NEVER, scores.dtype)
    edge = make(np.full((count, 2), never), None)
    none, may_skip = make(never, None), make(skips, None)
    # Before the first step: as if the way came from the blank in front, or had not yet begun.
    begun = np.full(places.shape, never)
    begun[:, 0] = 0
    sums = make(begun, None)
    first = make(number[None] < 2, None)
    for time, row in enumerate(rows):
        if time == 0:
            new = ops.where(first, row, none)
        else:
            wide = ops.cat([edge, sums], 1)
            jumps = ops.where(may_skip, wide[:, :-2], none)
            new = ops.logsumexp(ops.stack([sums, wide[:, 1:-1], jumps]), 0) + row
        running = time < times
        sums = (
            new
            if is_known(running) and running.all()
            else ops.where(make(running[:, None], None), new, sums)
        )
    rows_of = np.arange(count)
    last = RECORDERS["index"](sums, key=(rows_of, 2 * lengths))
    label = RECORDERS["index"](sums, key=(rows_of, np.maximum(2 * lengths - 1, 0)))
    ends = ops.stack([last, ops.where(make(lengths > 0, None), label, none)])
    return RECORDERS["negative"](ops.logsumexp(ends, 0))
