"""Sequences of different lengths: padded to one tensor, or packed without padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.creation import full, tensor
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.ops import cat

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

Index = np.ndarray[Any, np.dtype[np.int64]]


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences of different lengths without padding: what `pack_padded_sequence` returns.

    Recurrent layers take and return it.

    Parameters
    ----------
    data : Tensor, shape (sum of lengths, ...)
        The first step of all sequences, the longest one first, then the second step, and so on.
    batch_sizes : Tensor of int64, shape (greatest length,)
        How many sequences have each step.
    sorted_indices : Tensor of int64, shape (n,), optional
        Positions of the sequences in the order of their lengths; None if they were in this order.
    unsorted_indices : Tensor of int64, shape (n,), optional
        The inverse of `sorted_indices`.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([cr.tensor([1, 2, 3]), cr.tensor([4])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """

    _known: tuple[Index, Index | None]  # lengths and order, if they were known when it was made

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        """Return a packed sequence; the inverse permutation is computed if it is left out."""
        if batch_sizes is None:
            raise ArgumentError("PackedSequence: batch_sizes is missing")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        fields = data, batch_sizes, sorted_indices, unsorted_indices
        return super().__new__(cls, *fields)

    def with_data(self, data: Tensor) -> PackedSequence:
        """Return other data in the same order."""
        made = self._replace(data=data)
        vars(made).update(vars(self))
        return made

    def layout(self) -> tuple[Index, Index | None]:
        """Return the lengths in descending order, and the order of the sequences, as arrays.

        A compiled function knows them if the sequence was packed in it: its tensors it doesn't.
        """
        if "_known" not in vars(self):
            sizes = self.batch_sizes.cpu().numpy()
            order = self.sorted_indices
            lengths = (sizes[:, None] > np.arange(sizes[0] if len(sizes) else 0)).sum(0)
            self._known = lengths, None if order is None else order.cpu().numpy()
        return self._known

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data, as `Tensor.to`: this itself if there is nothing to convert."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self.with_data(data)

    def cpu(self) -> PackedSequence:
        """Move the data to the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> PackedSequence:
        """Move the data to a GPU."""
        return self.with_data(self.data.cuda(device))

    def pin_memory(self) -> PackedSequence:
        """Return this: as in PyTorch, without effect."""
        return self

    def double(self) -> PackedSequence:
        """Convert the data to float64."""
        return self.to("float64")

    def float(self) -> PackedSequence:
        """Convert the data to float32."""
        return self.to("float32")

    def half(self) -> PackedSequence:
        """Convert the data to float16."""
        return self.to("float16")

    def long(self) -> PackedSequence:
        """Convert the data to int64."""
        return self.to("int64")

    def int(self) -> PackedSequence:
        """Convert the data to int32."""
        return self.to("int32")

    def short(self) -> PackedSequence:
        """Convert the data to int16."""
        return self.to("int16")

    def char(self) -> PackedSequence:
        """Convert the data to int8."""
        return self.to("int8")

    def byte(self) -> PackedSequence:
        """Convert the data to uint8."""
        return self.to("uint8")

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.device.type == "cuda"


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Return the inverse of a permutation, or None for None.

    Examples
    --------
    >>> import chainrule as cr
    >>> invert_permutation(cr.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    return permutation.argsort()


def steps_of(lengths: Index) -> tuple[Index, Index]:
    """Return the steps and the sequences of all elements, in the order of packed data.

    `lengths` descends.
    """
    longest = lengths[0] if len(lengths) else 0
    present = np.arange(longest)[:, None] < lengths
    return cast(tuple[Index, Index], np.nonzero(present))


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack sequences that are padded to one length.

    Parameters
    ----------
    input : Tensor, shape (l, n, ...), or (n, l, ...) if `batch_first`
        The padded sequences.
    lengths : Tensor or sequence of int, length n
        Their lengths, of 1 at least.
    batch_first : bool, default False
        Whether the first axis counts sequences.
    enforce_sorted : bool, default True
        The lengths descend. If False, they are sorted, and what is unpacked has the order of
        `input` again.

    Returns
    -------
    PackedSequence

    Raises
    ------
    ArgumentError
        If lengths are wrong, or not in descending order when that is asked for.

    Notes
    -----
    Derivative: elements of padding get zero.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    >>> pack_padded_sequence(x, [2, 1, 3], batch_first=True, enforce_sorted=False).data
    tensor([4, 1, 3, 5, 2, 6])
    """
    counts = np.asarray(lengths.cpu().numpy() if isinstance(lengths, Tensor) else lengths)
    x = input.transpose(0, 1) if batch_first else input
    if counts.shape != (x.shape[1],) or counts.dtype.kind not in "iu":
        raise ArgumentError(
            f"pack_padded_sequence: expected a length for each of {x.shape[1]} sequences, got "
            f"{counts.dtype} lengths of shape {list(counts.shape)}"
        )
    if len(counts) and (counts.min() <= 0 or counts.max() > x.shape[0]):
        raise ArgumentError(
            f"pack_padded_sequence: lengths are between 1 and {x.shape[0]}, the length of the "
            f"padded sequences, got {counts.tolist()}"
        )
    order = None
    if not enforce_sorted:
        order = np.argsort(-counts, kind="stable")
        counts = counts[order]
    elif (counts[1:] > counts[:-1]).any():
        raise ArgumentError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order when "
            "`enforce_sorted` is True. You can pass `enforce_sorted=False` to have them sorted"
        )
    steps, sequences = steps_of(counts)
    data = x[steps, sequences if order is None else order[sequences]]
    sizes = np.bincount(steps, minlength=counts[0] if len(counts) else 0)
    fields = (None, None) if order is None else (tensor(order), tensor(np.argsort(order)))
    packed = PackedSequence(data, tensor(sizes), *fields)
    packed._known = counts, order
    return packed


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return packed sequences padded to one length, and their lengths.

    Parameters
    ----------
    sequence : PackedSequence
        What `pack_padded_sequence` or a recurrent layer returned.
    batch_first : bool, default False
        Whether the first axis of the result counts sequences.
    padding_value : number, default 0
        The elements of padding.
    total_length : int, optional
        The length to pad to: that of the longest sequence if left out.

    Returns
    -------
    Tensor, shape (l, n, ...), or (n, l, ...) if `batch_first`
    Tensor of int64, shape (n,)

    Raises
    ------
    ArgumentError
        If `total_length` is less than the greatest length.

    Examples
    --------
    >>> import chainrule as cr
    >>> packed = pack_sequence([cr.tensor([1, 2, 3]), cr.tensor([4])])
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    lengths, order = sequence.layout()
    longest = len(sequence.batch_sizes)
    if total_length is not None and total_length < longest:
        raise ArgumentError(
            f"pad_packed_sequence: Expected total_length to be at least the length of the longest "
            f"sequence in input, but got total_length={total_length} and max sequence length "
            f"being {longest}"
        )
    x = padded(sequence.data, lengths, order, padding_value, total_length or longest)
    lengths = lengths if order is None else lengths[np.argsort(order)]
    return x.transpose(0, 1) if batch_first else x, tensor(lengths)


def padded(
    data: Tensor,
    lengths: Index,
    order: Index | None = None,
    padding_value: float = 0.0,
    longest: int | None = None,
) -> Tensor:
    """Return packed data padded, of shape (l, n, ...)."""
    steps, sequences = steps_of(lengths)
    if order is not None:
        sequences = order[sequences]
    most = lengths[0] if longest is None else longest
    shape = (int(most), len(lengths), *data.shape[1:])
    filled = full(shape, padding_value, dtype=data.dtype, device=data.device)
    return filled.index_put((tensor(steps), tensor(sequences)), data)


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Return sequences of different lengths as one tensor, padded.

    Parameters
    ----------
    sequences : sequence of Tensors, shapes (lᵢ, ...)
        They differ in length only.
    batch_first : bool, default False
        Whether the first axis of the result counts sequences.
    padding_value : number, default 0
        The elements of padding.
    padding_side : {'right', 'left'}
        Where the padding is.

    Returns
    -------
    Tensor, shape (l, n, ...), or (n, l, ...) if `batch_first`

    Examples
    --------
    >>> import chainrule as cr
    >>> pad_sequence([cr.tensor([1, 2, 3]), cr.tensor([4])], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    if padding_side not in ("right", "left"):
        raise ArgumentError(
            f"pad_sequence: padding_side should be 'left' or 'right', got {padding_side!r}"
        )
    if not isinstance(sequences, Iterable):
        raise ArgumentTypeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    listed = list(sequences.unbind(0) if isinstance(sequences, Tensor) else sequences)
    if not listed:
        raise ArgumentError("pad_sequence: received an empty list of sequences")
    rest = {tuple(each.shape[1:]) for each in listed}
    if len(rest) > 1:
        raise ShapeError(
            "pad_sequence: sequences must differ in their first dimension only, got the shapes "
            f"{[tuple(each.shape) for each in listed]}"
        )
    lengths = np.array([len(each) for each in listed])
    longest = int(lengths.max())
    shape = (len(listed), longest, *rest.pop())
    x = full(shape, padding_value, dtype=listed[0].dtype, device=listed[0].device)
    sequence = np.repeat(np.arange(len(listed)), lengths)
    step = np.concatenate([np.arange(length) for length in lengths])
    if padding_side == "left":
        step = step + longest - lengths[sequence]
    x = x.index_put((tensor(sequence), tensor(step)), cat(listed))
    return x if batch_first else x.transpose(0, 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Iterable[Any], batch_first: bool = False
) -> list[Tensor]:
    """Return the sequences in a padded tensor.

    Parameters
    ----------
    padded_sequences : Tensor, shape (l, n, ...), or (n, l, ...) if `batch_first`
        Padded at the end.
    lengths : Tensor or iterable of int, length n
        Their lengths.
    batch_first : bool, default False
        Whether the first axis counts sequences.

    Examples
    --------
    >>> import chainrule as cr
    >>> unpad_sequence(cr.tensor([[1, 2, 3], [4, 0, 0]]), [3, 1], batch_first=True)
    [tensor([1, 2, 3]), tensor([4])]
    """
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    counts = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [each[: int(n)] for each, n in zip(x.unbind(0), counts, strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences of different lengths.

    Parameters
    ----------
    sequences : sequence of Tensors, shapes (lᵢ, ...)
        They differ in length only.
    enforce_sorted : bool, default True
        As for `pack_padded_sequence`.

    Examples
    --------
    >>> import chainrule as cr
    >>> pack_sequence([cr.tensor([1, 2, 3]), cr.tensor([4])]).data
    tensor([1, 4, 2, 3])
    """
    lengths = [len(each) for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences in a packed one, in their original order.

    Examples
    --------
    >>> import chainrule as cr
    >>> unpack_sequence(pack_sequence([cr.tensor([1, 2, 3]), cr.tensor([4])]))
    [tensor([1, 2, 3]), tensor([4])]
    """
    x, _ = pad_packed_sequence(packed_sequences, batch_first=True)
    lengths, order = packed_sequences.layout()
    return unpad_sequence(x, lengths if order is None else lengths[np.argsort(order)], True)
