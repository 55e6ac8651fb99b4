"""Embeddings: rows of a learned table, looked up by index; and one-hot vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, cast, constant, floating, tensor_of, whole_number
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import (
    CPU,
    check_known,
    device_of,
    elements_for_shape,
    first_where,
    is_array,
    is_known,
    move,
    namespace,
)
from chainrule.errors import ArgumentError, DTypeError, OutOfBoundsError, ShapeError
from chainrule.primitives import elementwise, indexing

__all__ = ["embedding", "embedding_bag", "one_hot"]

Array = Any


def embedding(
    input: Operand,
    weight: Operand,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` at the indices in `input`.

    Parameters
    ----------
    input : Tensor of ints, any shape
        Numbers of rows, from 0.
    weight : Tensor, shape (rows, d)
        The table.
    padding_idx : int, optional
        This row counts as constant: no gradient flows into it. Negative ones count from the end.
    max_norm : number, optional
        Rows that are looked up and have a larger norm are scaled down to it first, in place.
    norm_type : number, default 2
        The order of this norm.
    scale_grad_by_freq : bool, default False
        Divide the gradient of each row by its number of occurrences in `input`.
    sparse : bool, default False
        Has no effect: gradients are dense.

    Returns
    -------
    Tensor, shape (*input.shape, d)

    Raises
    ------
    DTypeError, ShapeError, OutOfBoundsError
        If `input` is not of integers, `weight` is not a matrix, or an index is out of range.

    Notes
    -----
    Derivative: the gradient of a row is the sum of those of its copies.

    Examples
    --------
    >>> import chainrule as cr
    >>> table = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cr.nn.functional.embedding(cr.tensor([1, 1, 0]), table)
    tensor([[3., 4.],
            [3., 4.],
            [1., 2.]])
    """
    table, numbers = _table("embedding", weight), _indices("embedding", input)
    padding = _padding("embedding", padding_idx, table.shape[0])
    _check_rows("embedding", numbers, table.shape[0])
    if max_norm is not None:
        _renormalize(table, numbers, float(max_norm), norm_type)
    rows = indexing.index.apply(table, key=numbers)
    if scale_grad_by_freq:
        rows = _by_frequency(rows, numbers, table.shape[0])
    if padding is not None:
        rows = _constant_where(rows, numbers == padding)
    return rows


def _table(name: str, weight: Operand) -> Tensor:
    table = weight if isinstance(weight, Tensor) else floating(weight)
    if table.ndim != 2:
        raise ShapeError(f"{name}: 'weight' must be 2-D, but has the shape {list(table.shape)}")
    return table


def _indices(name: str, input: Operand) -> Array:
    given = isinstance(input, Tensor) or is_array(input)
    tensor = tensor_of(input if given else np.asarray(input))
    if tensor.dtype.kind not in "iu":
        raise DTypeError(
            f"{name}: Expected tensor for argument 'input' to have one of the following scalar "
            f"types: Long, Int; but got {tensor.dtype} instead: convert it with .long()"
        )
    return tensor._array


def _padding(name: str, padding_idx: int | None, count: int) -> int | None:
    if padding_idx is None:
        return None
    padding_idx = whole_number(padding_idx, name, "padding_idx")
    if not -count <= padding_idx < count:
        raise OutOfBoundsError(
            f"{name}: Padding_idx must be within num_embeddings: {padding_idx} is not among "
            f"{count} rows"
        )
    return padding_idx % count


def _check_rows(name: str, numbers: Array, count: int) -> None:
    wrong = first_where((numbers < 0) | (numbers >= count), numbers)
    if wrong is not None:
        raise OutOfBoundsError(
            f"{name}: index out of range in self: {wrong} is none of the {count} rows, which have "
            f"the numbers 0 to {count - 1}"
        )


@no_grad()
def _renormalize(table: Tensor, numbers: Array, max_norm: float, norm_type: float) -> None:
    check_known(numbers, "embedding with max_norm", "renorm() the table")
    used = np.unique(move(numbers, CPU))
    rows = move(table._array[move(used, table.device)], CPU)
    lengths = np.linalg.norm(rows, norm_type, axis=1, keepdims=True)
    long = lengths[:, 0] > max_norm
    if long.any():
        scale = max_norm / (lengths[long] + 1e-7)
        table[used[long]] = constant((rows[long] * scale).astype(table.dtype), table)


def _counts(numbers: Array, count: int) -> Array:
    """Return the number of occurrences of each of `count` indices."""
    if isinstance(numbers, np.ndarray):
        return np.bincount(numbers, minlength=count)
    xp = namespace(numbers)
    ones = xp.ones(numbers.shape, np.dtype(np.int64))
    return xp.index_add(ones, shape=(count,), key=numbers)


def _by_frequency(rows: Tensor, numbers: Array, count: int) -> Tensor:
    counts = _counts(numbers.ravel(), count)[numbers]
    share = (1 / counts[..., None]).astype(rows.dtype)
    scaled = elementwise.multiply.apply(rows, make(share, None))
    return ops.add(scaled, ops.subtract(rows.detach(), scaled.detach()))


def _constant_where(rows: Tensor, mask: Array) -> Tensor:
    if is_known(mask) and not (namespace(mask).waits or mask.any()):
        return rows
    constant = mask[..., None]
    variable = elementwise.masked.apply(rows, ~constant)
    return ops.add(variable, elementwise.masked.apply(rows.detach(), constant))


def embedding_bag(
    input: Operand,
    weight: Operand,
    offsets: Operand | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Operand | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the mean, the sum or the maximum of the rows of `weight` that each bag names.

    Parameters
    ----------
    input : Tensor of ints, shape (bags, n), or (n,) with `offsets`
        Numbers of rows, from 0: one row of `input` is one bag.
    weight, max_norm, norm_type, scale_grad_by_freq, sparse
        As for `embedding`.
    offsets : Tensor of ints, shape (bags,), optional
        The start of each bag, if `input` has one dimension. The first is 0.
    mode : {"mean", "sum", "max"}
        The reduction of the rows of a bag. For an empty bag it is 0.
    per_sample_weights : Tensor, shape of `input`, optional
        Multiplies each row; for "sum" alone.
    include_last_offset : bool, default False
        The last offset is where the last bag ends.
    padding_idx : int, optional
        Occurrences of this row are ignored.

    Returns
    -------
    Tensor, shape (bags, d)

    Raises
    ------
    DTypeError, ShapeError, OutOfBoundsError, ArgumentError
        As for `embedding`; and if `mode` is another word, or `offsets` or `per_sample_weights`
        don't fit.

    Notes
    -----
    Derivative: as for `embedding`, through the mean, the sum or the maximum (the first of several).

    Examples
    --------
    >>> import chainrule as cr
    >>> table = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> cr.nn.functional.embedding_bag(cr.tensor([0, 1, 1]), table, cr.tensor([0, 2]), mode="sum")
    tensor([[4., 6.],
            [3., 4.]])
    """
    name = "embedding_bag"
    if mode not in ("mean", "sum", "max"):
        raise ArgumentError(f"{name}: mode has to be one of sum, mean or max, but got {mode!r}")
    table, numbers = _table(name, weight), _indices(name, input)
    padding = _padding(name, padding_idx, table.shape[0])
    _check_rows(name, numbers, table.shape[0])
    bag, count = _bags(numbers, offsets, include_last_offset)
    factors = _sample_weights(per_sample_weights, numbers.shape, mode)
    numbers = numbers.ravel()
    if max_norm is not None:
        _renormalize(table, numbers, float(max_norm), norm_type)
    bags = count
    if padding is not None and not is_known(numbers) and mode != "max":
        bag = np.where(numbers == padding, count, move(bag, device_of(numbers)))  # left out later
        bags += 1
    elif padding is not None:
        numbers, bag, factors = _drop_padding(padding, numbers, bag, factors)
    if mode == "max":
        return _bag_maxima(table, numbers, bag, count)
    rows = indexing.index.apply(table, key=numbers)
    if scale_grad_by_freq:
        rows = _by_frequency(rows, numbers, table.shape[0])
    if factors is not None:
        rows = ops.multiply(rows, ops.unsqueeze(cast(factors, rows.dtype), -1))
    total = indexing.index_add.apply(rows, shape=(bags, table.shape[1]), key=bag)
    total = total if bags == count else total[:count]
    if mode == "sum":
        return total
    size = np.maximum(_counts(bag, bags)[:count], 1)[:, None].astype(rows.dtype)
    return ops.divide(total, constant(size, total))


def _bags(numbers: Array, offsets: Operand | None, last: bool) -> tuple[Array, int]:
    """Return the bag of each index, flat, and the number of bags."""
    if numbers.ndim == 2:
        if offsets is not None:
            raise ArgumentError(
                "embedding_bag: if input is 2D, then offsets has to be None, as input is treated "
                "as a mini-batch of fixed length sequences"
            )
        return np.repeat(np.arange(numbers.shape[0]), numbers.shape[1]), numbers.shape[0]
    if numbers.ndim != 1:
        raise ShapeError(
            f"embedding_bag: input has to be 1D or 2D Tensor, but got Tensor of dimension "
            f"{numbers.ndim}"
        )
    if offsets is None:
        raise ArgumentError("embedding_bag: offsets has to be a 1D Tensor, for an input of 1D")
    starts = _indices("embedding_bag", offsets)
    starts = move(starts, CPU) if is_known(starts) else starts
    if starts.ndim == 1 and starts.size and not is_known(starts):
        count = starts.size - last
        return np.searchsorted(starts[:count], np.arange(numbers.size), "right") - 1, count
    ends_well = starts.ndim == 1 and starts.size and starts[0] == 0
    if not ends_well or (np.diff(starts) < 0).any() or starts[-1] > numbers.size:
        raise ArgumentError(
            "embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has "
            f"to start from position 0, and no offset less than the one before or more than the "
            f"{numbers.size} numbers; but got {starts.tolist()}"
        )
    ends = starts[1:] if last else np.append(starts[1:], numbers.size)
    count = ends.size
    sizes = ends - starts[:count]
    bag = np.repeat(np.arange(count), sizes)
    if bag.size != numbers.size:
        raise ArgumentError(
            f"embedding_bag: the last offset, {starts[-1]}, has to be the number of elements, "
            f"{numbers.size}, with include_last_offset=True"
        )
    return bag, count


def _drop_padding(
    padding: int, numbers: Array, bag: Array, factors: Tensor | None
) -> tuple[Array, Array, Tensor | None]:
    """Return the indices, bags and factors without those of the padding row."""
    check_known(numbers, "embedding_bag with mode='max'", "take embedding() and amax()")
    present = np.nonzero(move(numbers, CPU) != padding)[0]
    kept = None if factors is None else indexing.index.apply(factors, key=present)
    return numbers[move(present, device_of(numbers))], bag[present], kept


def _sample_weights(factors: Operand | None, shape: tuple[int, ...], mode: str) -> Tensor | None:
    if factors is None:
        return None
    if mode != "sum":
        raise ArgumentError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode={mode!r})"
        )
    weights = floating(factors)
    if weights.shape != shape:
        raise ShapeError(
            f"embedding_bag: If per_sample_weights ({list(weights.shape)}) is not None, then it "
            f"must have the same shape as the input ({list(shape)})"
        )
    return ops.reshape(weights, (-1,))


def _bag_maxima(table: Tensor, numbers: Array, bag: Array, count: int) -> Tensor:
    """Return the maxima of each bag and column, taken from the first row that has them."""
    width = table.shape[1]
    if not numbers.size:  # zeros, recorded: a network still has gradients
        rows = indexing.index.apply(table, key=numbers)
        return indexing.index_add.apply(rows, shape=(count, width), key=bag)
    check_known(numbers, "embedding_bag with mode='max'", "take embedding() and amax()")
    rows, numbers = move(table._array[numbers], CPU), move(numbers, CPU)
    starts = np.searchsorted(bag, np.arange(count))
    sizes = np.bincount(bag, minlength=count)
    filled = np.nonzero(sizes)[0]
    tops = np.maximum.reduceat(rows, starts[filled], axis=0)
    order = np.arange(numbers.size)[:, None]
    spread = np.repeat(tops, sizes[filled], axis=0)
    hits = (rows == spread) | (rows != rows)
    first = np.minimum.reduceat(np.where(hits, order, numbers.size), starts[filled], axis=0)
    chosen = indexing.index.apply(table, key=(numbers[first], np.arange(width)))
    return indexing.index_add.apply(chosen, shape=(count, width), key=filled)


def one_hot(tensor: Operand, num_classes: int = -1) -> Tensor:
    """Return for each class number a vector that is 1 at this position, else 0.

    Parameters
    ----------
    tensor : Tensor of ints, any shape
        Numbers of classes, from 0.
    num_classes : int, default -1
        The length of the vectors: one more than the largest number if negative.

    Returns
    -------
    Tensor of int64, shape (*tensor.shape, num_classes)

    Raises
    ------
    DTypeError, ArgumentError
        If `tensor` is not of integers, or a number is out of range.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.one_hot(cr.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    numbers = _indices("one_hot", tensor)
    num_classes = whole_number(num_classes, "one_hot", "num_classes")
    if num_classes < -1 or (num_classes == 0 and numbers.size):
        raise ArgumentError(
            f"one_hot: num_classes should be positive, or -1 for the largest number, got "
            f"{num_classes}"
        )
    if num_classes < 0 and not numbers.size:
        raise ArgumentError(
            "one_hot: Can not infer total number of classes from empty tensor: give num_classes"
        )
    if num_classes < 0:
        numbers = elements_for_shape(numbers, "one_hot", "give num_classes")
    low = first_where(numbers < 0, numbers)
    if low is not None:
        raise ArgumentError(f"one_hot: Class values must be non-negative, but got {low}")
    count = int(numbers.max()) + 1 if num_classes < 0 else num_classes
    high = first_where(numbers >= count, numbers)
    if high is not None:
        raise ArgumentError(
            f"one_hot: Class values must be smaller than num_classes: got {high} with "
            f"num_classes={count}"
        )
    xp = namespace(numbers)
    return make((numbers[..., None] == xp.arange(count)).astype(np.int64), None)
