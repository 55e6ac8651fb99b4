"""Padding of tensors, or cropping."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import ArgumentError, ShapeError
from chainrule.kernels.resampling import Taps
from chainrule.primitives import indexing, resampling
from chainrule.primitives.indexing import getitem

__all__ = ["pad"]


def pad(
    input: Operand, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Return `input` padded, or cropped, along its last dimensions.

    Parameters
    ----------
    input : Tensor
        Any shape and dtype.
    pad : sequence of an even number of ints
        Numbers of elements before and after, first for the last dimension, then for the one before
        it, and so on. Negative numbers crop.
    mode : {"constant", "reflect", "replicate", "circular"}
        The new elements: `value`; the mirror image without the element at the edge; the element at
        the edge; the elements from the other end.
    value : float, default 0
        For "constant".

    Returns
    -------
    Tensor, dtype of `input`

    Raises
    ------
    ArgumentError
        If `pad` is of odd length, `mode` is another word, or a value is given for another mode.
    ShapeError
        If there are more pairs than dimensions, a length would become negative, or the input is too
        short to reflect or repeat.

    Notes
    -----
    Linear (apart from `value`): the gradient of an element is the sum of those of its copies.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0, 3.0])
    >>> cr.nn.functional.pad(x, (1, 2))
    tensor([0., 1., 2., 3., 0., 0.])
    >>> cr.nn.functional.pad(x, (2, 0), mode="reflect")
    tensor([3., 2., 1., 2., 3.])
    """
    x = tensor_of(input)
    pairs = _pairs(x, pad)
    if mode == "constant":
        return _constant(x, pairs, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise ArgumentError(
            f"pad: Unrecognised padding mode {mode!r}: try 'constant', 'reflect', 'replicate' or "
            "'circular'"
        )
    if value is not None and value != 0:
        raise ArgumentError(f"pad: Padding mode {mode!r} doesn't take in value argument")
    if mode == "circular" and any(n < 0 for pair in pairs for n in pair):
        x = _constant(x, [(min(low, 0), min(high, 0)) for low, high in pairs], 0)  # cut first
        pairs = [(max(low, 0), max(high, 0)) for low, high in pairs]
    for axis, (low, high) in enumerate(pairs):
        if low or high:
            _check(mode, x, axis, low, high)
            x = resampling.resample.apply(
                x, taps=_padding_map(mode, x.shape[axis], low, high), axis=axis
            )
    return x if any(map(any, pairs)) else x.clone()  # never the input itself, which may be written


def _pairs(x: Tensor, pad: Sequence[int]) -> list[tuple[int, int]]:
    """Return the numbers of elements before and after, for each dimension."""
    given = [index(n) for n in pad]
    if len(given) % 2:
        raise ArgumentError(f"pad: Padding length must be divisible by 2, but got {len(given)}")
    if len(given) > 2 * x.ndim:
        raise ShapeError(
            f"pad: Padding length should be less than or equal to two times the input dimension but"
            f" got padding length {len(given)} and input of dimension {x.ndim}"
        )
    pairs = list(zip(given[::2], given[1::2], strict=True))[::-1]
    pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    for axis, (low, high) in enumerate(pairs):
        if x.shape[axis] + low + high < 0:
            raise ShapeError(
                f"pad: The input size {x.shape[axis]}, plus negative padding {low} and {high}, "
                f"resulted in a negative output size at dimension {axis}. Check dimension {axis} "
                "of your input."
            )
    return pairs


def _constant(x: Tensor, pairs: list[tuple[int, int]], value: Any) -> Tensor:
    sizes = list(zip(x.shape, pairs, strict=True))
    shape = tuple([n + low + high for n, (low, high) in sizes])
    inside = tuple([slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in sizes])
    if any(part != slice(0, n) for part, n in zip(inside, x.shape, strict=True)):
        x = indexing.getitem.apply(x, key=inside)
    sizes = list(zip(x.shape, pairs, strict=True))
    key = tuple([slice(max(low, 0), max(low, 0) + n) for n, (low, _) in sizes])
    if value == 0:
        return indexing.index_add.apply(x, shape=shape, key=key)
    around = make(namespace(x._array).full(shape, value, dtype=x.dtype), None)
    return indexing.assign.apply(around, x, path=((getitem, {"key": key}),), lasting=None)


def _check(mode: str, x: Tensor, axis: int, low: int, high: int) -> None:
    n, largest = x.shape[axis], max(low, high)
    if mode == "reflect" and largest >= n:
        raise ShapeError(
            "pad: Padding size should be less than the corresponding input dimension, but got: "
            f"padding ({low}, {high}) at dimension {axis} of input {list(x.shape)}"
        )
    if mode == "circular" and largest > n:
        raise ShapeError(
            f"pad: Padding value causes wrapping around more than once: padding ({low}, {high}) at "
            f"dimension {axis} of input {list(x.shape)}"
        )
    if n == 0:
        raise ShapeError(f"pad: nothing to {mode} at dimension {axis} of input {list(x.shape)}")


@lru_cache(maxsize=256)
def _padding_map(mode: str, n: int, low: int, high: int) -> Taps:
    """Return the map from a dimension of n elements to the padded one."""
    rows = np.arange(n + low + high)
    positions = rows - low
    if mode == "reflect":
        positions = n - 1 - abs(n - 1 - abs(positions))
    elif mode == "replicate":
        positions = np.clip(positions, 0, n - 1)
    else:
        positions = positions % n
    # The inside is one slice; only the few elements before and after need indices.
    inside = (rows >= low) & (rows < low + n)
    parts = [(rows[some], positions[some], None) for some in (inside, rows < low, rows >= low + n)]
    return Taps(n + low + high, n, parts)


def constant_pad_nd(input: Operand, pad: Sequence[int], value: float = 0.0) -> Tensor:
    """Return `input` padded with a number: PyTorch's other name of ``pad(input, pad)``.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.constant_pad_nd(cr.ones(2), (1, 1), 5.0)
    tensor([5., 1., 1., 5.])
    """
    return _pad(input, pad, "constant", value)


_pad = pad  # `pad` is also the name of an argument
