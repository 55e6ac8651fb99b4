"""Methods that change a tensor's shape in place: the same memory, read in another order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.inplace import turn_in_place
from chainrule.autograd.tensor import Tensor
from chainrule.ops.permute import t, transpose
from chainrule.ops.reshape import squeeze, unsqueeze


def t_(x: Tensor) -> Tensor:
    """Transpose a matrix in place; a vector or a number stays.

    Returns
    -------
    Tensor
        `x` itself. Views made before keep their shape and the memory that they share with it.

    Raises
    ------
    InPlaceError
        If `x` is a leaf that requires grad.
    ShapeError
        If `x` has more than two dimensions.

    Notes
    -----
    No element moves, so nothing that the graph has saved is stale. The history follows, also in
    no_grad(): derivative 1, the gradient is transposed back.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.zeros(2, 3)
    >>> x.t_().shape, x.shape
    ((3, 2), (3, 2))
    """
    return turn_in_place(x, "t_", t)


def transpose_(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Swap two dimensions in place, as `t_` does.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3, 4).transpose_(0, 2).shape
    (4, 3, 2)
    """
    return turn_in_place(x, "transpose_", lambda y: transpose(y, dim0, dim1))


def squeeze_(x: Tensor, dim: int | Sequence[int] | None = None, *, axis: Any = None) -> Tensor:
    """Drop dimensions of length 1 in place: all, or those named. See `t_`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(1, 2, 1).squeeze_(0).shape
    (2, 1)
    """
    return turn_in_place(x, "squeeze_", lambda y: squeeze(y, dim, axis=axis))


def unsqueeze_(x: Tensor, dim: int | None = None, *, axis: int | None = None) -> Tensor:
    """Put in a dimension of length 1 in place. See `t_`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2).unsqueeze_(0).shape
    (1, 2)
    """
    return turn_in_place(x, "unsqueeze_", lambda y: unsqueeze(y, dim, axis=axis))


METHODS: dict[str, Callable[..., Tensor]] = {
    "t_": t_,
    "transpose_": transpose_,
    "swapaxes_": transpose_,
    "swapdims_": transpose_,
    "squeeze_": squeeze_,
    "unsqueeze_": unsqueeze_,
}
