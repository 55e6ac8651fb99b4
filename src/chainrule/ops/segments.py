"""Reductions of consecutive parts of a tensor."""

from __future__ import annotations

from math import inf, nan

from chainrule.arguments import Operand, one_dim, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.creation import full, ones_like, zeros
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops.cumulative import diff
from chainrule.ops.reductions import cumsum
from chainrule.ops.reshape import broadcast_to, reshape
from chainrule.ops.scatter import scatter_add, scatter_reduce
from chainrule.ops.views import narrow
from chainrule.ops.where import where

__all__ = ["segment_reduce"]

_REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -inf),
    "min": ("amin", inf),
}


def segment_reduce(
    data: Operand,
    reduce: str,
    *,
    lengths: Operand | None = None,
    indices: None = None,
    offsets: Operand | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce consecutive segments of different lengths along a dimension.

    Parameters
    ----------
    data : Tensor, shape (..., n, ...), floating
        Numbers; the dimensions before n are those of batches.
    reduce : {"sum", "mean", "prod", "max", "min"}
        How the elements of a segment are combined.
    lengths : Tensor of integers, shape (..., s)
        Number of elements of each segment, for each batch.
    indices : None
        For compatibility with PyTorch, which has no use for it either.
    offsets : Tensor of integers, shape (..., s + 1)
        In the place of `lengths`: where the segments begin, from 0 on, and the end of the last.
    axis : int, default 0
        The dimension of n.
    unsafe : bool, default False
        Don't check that the lengths add up to n. What is beyond the last segment is left out.
    initial : number, optional
        A first element of each segment, which counts as none in a mean. If left out, the sum of an
        empty segment is 0, its product 1, its mean nan, its maximum -inf and its minimum inf.

    Returns
    -------
    Tensor, shape (..., s, ...)

    Raises
    ------
    ArgumentError
        If not one of `lengths` and `offsets` is given, or `reduce` is another word.
    ShapeError
        If the lengths don't add up to n, or are of other batches.

    Notes
    -----
    Derivative: as for `scatter_reduce`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.segment_reduce(cr.tensor([1.0, 2.0, 3.0]), "sum", lengths=cr.tensor([2, 0, 1]))
    tensor([3., 0., 3.])
    """
    x = tensor_of(data)
    number = one_dim(axis, x.ndim)
    batch, n, rest = x.shape[:number], x.shape[number], x.shape[number + 1 :]
    given = lengths if offsets is None else offsets
    if given is None or (lengths is not None and offsets is not None) or indices is not None:
        raise ArgumentError("segment_reduce: expected either lengths or offsets")
    if reduce not in _REDUCTIONS:
        raise ArgumentError(
            f"segment_reduce: expected reduce to be one of {', '.join(_REDUCTIONS)}, got {reduce!r}"
        )
    counts = tensor_of(given) if offsets is None else diff(tensor_of(given))
    if counts.ndim != number + 1 or counts.shape[:-1] != batch:
        raise ShapeError(
            f"segment_reduce: expected lengths of shape {[*batch, 's']} for data of shape "
            f"{list(x.shape)} and axis {number}, got {list(counts.shape)}"
        )
    ends = cumsum(counts, -1)
    if not unsafe and is_known(counts._array):
        _check_lengths(counts, ends, n)
    name, first = _REDUCTIONS[reduce]
    segments = counts.shape[-1]
    marks = zeros((*batch, n + 1), dtype="int64", device=x.device)
    ended = cumsum(scatter_add(marks, -1, ends.clamp(max=n), ones_like(ends)), -1)
    index = reshape(narrow(ended, -1, 0, n), (*batch, n, *[1] * len(rest)))
    start = full(
        (*batch, segments + 1, *rest),  # the last one is of what is beyond the segments
        first if initial is None else initial,
        dtype=x.dtype,
        device=x.device,
    )
    found = scatter_reduce(start, number, broadcast_to(index, x.shape), x, name)
    found = narrow(found, number, 0, segments)
    if reduce == "mean":
        size = reshape(counts, (*counts.shape, *[1] * len(rest)))
        found = where(size > 0, found / size.clamp(min=1), nan if initial is None else found)
    return found


def _check_lengths(counts: Tensor, ends: Tensor, n: int) -> None:
    if (counts < 0).any():
        raise ArgumentError("segment_reduce: lengths contains negative value!")
    if not (ends[..., -1] == n if counts.shape[-1] else ends.sum(-1) == n).all():
        raise ShapeError(
            f"segment_reduce: Expected all rows of lengths along axis to sum to {n}: say "
            "unsafe=True to leave out the rest"
        )
