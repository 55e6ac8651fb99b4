"""Quantiles: what lies between the elements at two ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, Operand, cast, either, one_dim, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import dtype_title, holds_somewhere, is_known, whole
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.ops.partial import MANY
from chainrule.ops.permute import movedim
from chainrule.ops.reshape import reshape
from chainrule.ops.wrappers import reshaped

__all__ = ["quantile", "nanquantile"]

Array = Any


def quantile(
    input: Operand,
    q: float | Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    axis: int | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return quantiles: values that given shares of the elements lie below.

    Parameters
    ----------
    input : Tensor
        Real floating numbers. Where one is nan, so are the quantiles.
    q : number, or Tensor of at most one dimension
        Shares, from 0 (the smallest element) to 1 (the largest).
    dim : int, optional
        Along which dimension: of everything if left out. Also spelled `axis`.
    keepdim : bool, default False
        Keep the dimension, with length 1. Also spelled `keepdims`.
    interpolation : {"linear", "lower", "higher", "midpoint", "nearest"}, default "linear"
        What to do where the rank q (n - 1) is no integer.

    Returns
    -------
    Tensor
        If `q` has a dimension, it comes first.

    Raises
    ------
    DTypeError
        If `input` is not of real floating numbers.
    ArgumentError
        If `q` is not from [0, 1], or `interpolation` is something else.
    ShapeError
        If there is no element.

    Notes
    -----
    Derivative: of an element next to the rank, its weight; of `q`, the difference of the two
    elements, times n - 1, unless `interpolation` makes steps. Where the rank is an integer, or both
    neighbours are one infinity, they are not subtracted; PyTorch gets a nan there.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.quantile(cr.tensor([1.0, 2.0, 4.0]), 0.75)
    tensor(3.)
    """
    return _quantile("quantile", input, q, either(dim, axis), keepdim or keepdims, interpolation)


def nanquantile(
    input: Operand,
    q: float | Operand,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    axis: int | None = None,
    keepdims: bool = False,
) -> Tensor:
    """Return quantiles of what is not nan; the arguments are those of `quantile`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nanquantile(cr.tensor([1.0, cr.nan, 3.0]), 0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", input, q, either(dim, axis), keepdim or keepdims, interpolation)


def _quantile(
    name: str, x: Operand, q: Any, dim: int | None, keepdim: bool, interpolation: str
) -> Tensor:
    x = tensor_of(x)
    if x.dtype.kind != "f":
        raise DTypeError(
            f"{name}() input tensor must be either float or double dtype, got "
            f"{dtype_title(x.dtype)}: convert it first, with .float()"
        )
    if x.numel() == 0:
        raise ShapeError(f"{name}() input tensor must be non-empty, got shape {list(x.shape)}")
    shares = q._array.astype(np.float64) if isinstance(q, Tensor) else np.asarray(q, np.float64)
    if shares.ndim > 1:
        raise ArgumentError(
            f"{name}() q must be a scalar or 1D tensor, got {shares.ndim} dimensions"
        )
    if holds_somewhere(~((shares >= 0) & (shares <= 1))):
        raise ArgumentError(
            f"{name}() q must be in the range [0, 1] but got {whole(shares).tolist()}"
        )
    number = None if dim is None or x.ndim == 0 else one_dim(dim, x.ndim)
    rows = reshape(x, -1) if number is None else movedim(x, number, -1)
    q = reshape(q, -1) if isinstance(q, Tensor) and q.requires_grad else None
    values = _at_ranks(rows, shares.reshape(-1), q, interpolation, name)
    # The shares stand last: to the front with them, or away.
    kept = (1,) * x.ndim if number is None else (*x.shape[:number], 1, *x.shape[number + 1 :])
    short = () if number is None else (*x.shape[:number], *x.shape[number + 1 :])
    shape = kept if keepdim else short
    if shares.ndim == 0:
        return reshaped(values, shape)
    return reshape(movedim(values, -1, 0), (len(shares), *shape))


def _at_ranks(x: Tensor, shares: Array, q: Tensor | None, interpolation: str, name: str) -> Tensor:
    """Return what is at the ranks q (n - 1) of each row; `q` are the shares, if they need grad."""
    missing = np.count_nonzero(np.isnan(x._array), axis=-1, keepdims=True)
    length = x.shape[-1]
    known = is_known(missing) and is_known(shares)
    if length > MANY and known and not missing.any():  # then the ranks are the same in all rows
        needed = shares * (length - 1)
        wanted = np.unique([np.floor(needed), np.ceil(needed)]).astype(np.intp)
        order = np.argpartition(x._array, wanted, axis=-1)
    else:
        order = np.argsort(x._array, axis=-1, kind="stable")
    steps = length - 1
    if name == "nanquantile":
        steps = np.maximum(length - missing - 1, 0)
    ranks = shares * steps
    if name != "nanquantile":
        ranks = np.where(missing > 0, length - 1, ranks)  # where a nan is
    low, weight = _neighbours(ranks, interpolation, name)
    below = _picked(x, order, low)
    if weight is None or (known and q is None and not weight.any()):
        return below
    above = _picked(x, order, np.ceil(ranks))
    usable = (weight > 0) & ~((above._array == below._array) & np.isinf(above._array))
    ends = [RECORDERS["masked"](end, make(usable, None)) for end in (above, below)]
    step = RECORDERS["subtract"](*ends)
    share = make(weight.astype(x.dtype), None)
    if q is not None and interpolation == "linear":
        exact = RECORDERS["multiply"](cast(q, np.float64), make(np.multiply(steps, 1.0), None))
        share = cast(RECORDERS["subtract"](exact, make(low, None)), x.dtype)
    return RECORDERS["add"](below, RECORDERS["multiply"](step, share))


def _neighbours(ranks: Array, interpolation: str, name: str) -> tuple[Array, Array | None]:
    """Return the rank to take, and the weight of the next; None if it never has any."""
    if interpolation == "nearest":
        return np.rint(ranks), None
    if interpolation == "higher":
        return np.ceil(ranks), None
    low = np.floor(ranks)
    if interpolation == "lower":
        return low, None
    if interpolation == "midpoint":
        return low, np.where(ranks > low, 0.5, 0.0)
    if interpolation == "linear":
        return low, ranks - low
    raise ArgumentError(
        f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
        f"but got {interpolation}"
    )


def _picked(x: Tensor, order: Array, ranks: Array) -> Tensor:
    places = np.take_along_axis(order, ranks.astype(np.intp), -1)
    return RECORDERS["take_along_axis"](x, make(places, None), axis=x.ndim - 1)
