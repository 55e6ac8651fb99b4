"""The loss of label sequences: connectionist temporal classification (CTC)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, cast, constant, floating
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
from chainrule.nn.functional.losses import check_reduction
from chainrule.primitives import elementwise, indexing

__all__ = ["ctc_loss"]

Array = Any

_LOG_ZERO = -1e30
"""Logarithm of probability 0: finite, so that differences of two of them are not nan."""


def ctc_loss(
    log_probs: Operand,
    targets: Operand,
    input_lengths: Operand | Sequence[int],
    target_lengths: Operand | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return the negative log-likelihood of label sequences, over all alignments in time (CTC).

    Parameters
    ----------
    log_probs : Tensor, shape (t, n, c) or (t, c)
        The logarithms of the probabilities of c labels at t times, as of `log_softmax`.
    targets : Tensor of integers, shape (n, s), or (s,), or (sum of target_lengths,)
        The labels: padded, or concatenated.
    input_lengths, target_lengths : Tensor or sequence of ints, shape (n,); or int
        The numbers of times, and of labels, of each sequence.
    blank : int, default 0
        The label for no output: it separates equal labels, and is removed at the end.
    reduction : {"mean", "sum", "none"}
        Divide each loss by its number of labels and take the mean; add them up; or return them.
    zero_infinity : bool, default False
        Return 0, not inf, for labels that don't fit into the time.

    Returns
    -------
    Tensor, shape (), or (n,) for "none"
        -log Σ Π p: the sum over all alignments [1]_ of the product of probabilities.

    Raises
    ------
    ShapeError
        If the shapes or the lengths don't fit.
    DTypeError
        If targets or lengths are not integers.
    OutOfBoundsError
        If a label, or `blank`, is out of range.

    Notes
    -----
    Derivative: minus the probability of each label at each time, given the sequence; 0 where the
    loss is infinite. This is the derivative in `log_probs` itself: PyTorch adds exp(log_probs),
    which the gradient of `log_softmax` subtracts again.

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
    labels = _padded_labels(_integers("targets", targets), lengths, batched)
    inside = np.arange(labels.shape[1]) < lengths[:, None]
    _check_labels(labels, inside, classes)
    dtype = scores.dtype
    if dtype.itemsize < 4:
        scores = cast(scores, np.float32)
    losses = _losses(scores, np.where(inside, labels, blank), times, lengths, blank)
    impossible = make(losses._array > -_LOG_ZERO / 10, None)
    losses = cast(ops.where(impossible, 0.0 if zero_infinity else np.inf, losses), dtype)
    if reduction == "mean":
        losses = ops.mean(
            ops.divide(losses, constant(np.maximum(lengths, 1).astype(dtype), losses))
        )
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


def _lengths(name: str, value: Any, count: int, maximum: int | None) -> Array:
    lengths = np.atleast_1d(_integers(name, value))
    if lengths.shape != (count,):
        raise ShapeError(
            f"ctc_loss: {name} must be of size batch_size, {count}, got {list(lengths.shape)}"
        )
    if holds_somewhere(lengths < 0) or (maximum is not None and holds_somewhere(lengths > maximum)):
        bound = "" if maximum is None else f" and at most {maximum}, the number of times"
        raise ShapeError(f"ctc_loss: Expected {name} to be not negative{bound}, got {lengths}")
    return lengths


def _padded_labels(targets: Array, lengths: Array, batched: bool) -> Array:
    """Return the labels with one row for each sequence, padded."""
    if targets.ndim == 1 and batched:
        check_known(lengths, "ctc_loss", "pad targets to the shape (n, longest)")
    known = is_known(lengths)
    longest = int(lengths.max(initial=0)) if known else np.atleast_2d(targets).shape[1]
    if targets.ndim == 1 and batched:
        if len(targets) != lengths.sum():
            raise ShapeError(
                f"ctc_loss: {len(targets)} concatenated targets, but target_lengths add up to "
                f"{lengths.sum()}"
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


def _interleave(values: Array, filler: Any) -> Array:
    """Return rows with a filler before, between and after the values."""
    fillers = np.full(values.shape, filler, values.dtype)
    pairs = np.stack([fillers, values], -1).reshape(len(values), 2 * values.shape[1])
    return np.concatenate([pairs, np.full((len(values), 1), filler, values.dtype)], 1)


def _losses(scores: Tensor, labels: Array, times: Array, lengths: Array, blank: int) -> Tensor:
    """Return the loss of each sequence; -`_LOG_ZERO` or more where there is no alignment.

    Forward recursion of CTC. The states are the labels with blanks around each. A step stays,
    advances by one state, or by two: over a blank between labels that differ.
    """
    count, longest = labels.shape
    states = _interleave(labels, blank)
    state_numbers = np.arange(states.shape[1])
    differs = np.concatenate(
        [np.zeros((count, 1), bool)[:, :longest], labels[:, 1:] != labels[:, :-1]], 1
    )
    skips = _interleave(differs, False)
    key = (slice(None), np.arange(count)[:, None], states)
    rows = ops.unbind(ops.clamp_min(indexing.index.apply(scores, key=key), _LOG_ZERO))
    log_zero = np.asarray(_LOG_ZERO, scores.dtype)
    edge = constant(np.full((count, 2), log_zero), scores)
    none, may_skip = constant(log_zero, scores), constant(skips, scores)
    # Initial state: the first blank, with probability 1.
    initial = np.full(states.shape, log_zero)
    initial[:, 0] = 0
    sums = constant(initial, scores)
    first = constant(state_numbers[None] < 2, scores)
    for time, row in enumerate(rows):
        if time == 0:
            new = ops.where(first, row, none)
        else:
            wide = ops.cat([edge, sums], 1)
            skipped = ops.where(may_skip, wide[:, :-2], none)
            new = ops.logsumexp(ops.stack([sums, wide[:, 1:-1], skipped]), 0) + row
        running = time < times
        sums = (
            new
            if is_known(running) and running.all()
            else ops.where(constant(running[:, None], scores), new, sums)
        )
    rows_of = np.arange(count)
    last = indexing.index.apply(sums, key=(rows_of, 2 * lengths))
    label = indexing.index.apply(sums, key=(rows_of, np.maximum(2 * lengths - 1, 0)))
    ends = ops.stack([last, ops.where(constant(lengths > 0, scores), label, none)])
    return elementwise.negative.apply(ops.logsumexp(ends, 0))
