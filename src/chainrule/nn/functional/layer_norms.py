"""Normalisation over the last dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from chainrule import ops
from chainrule.arguments import RECORDERS, Operand, cast, floating
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ShapeError
from chainrule.nn.functional.standardizing import affine, standardized, widened

__all__ = ["layer_norm", "rms_norm"]


def layer_norm(
    input: Operand,
    normalized_shape: int | Sequence[int],
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` with mean 0 and variance 1 over its last dimensions.

    Parameters
    ----------
    input : Tensor, shape (..., *normalized_shape)
        Real numbers.
    normalized_shape : int or sequence of ints
        The lengths of the last dimensions: they are normalised together.
    weight, bias : Tensor, shape `normalized_shape`, optional
        What the result is multiplied by, and what is then added.
    eps : number, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    (x - mean) / √(variance + eps), with the variance of the population [1]_.

    References
    ----------
    .. [1] J. L. Ba, J. R. Kiros, G. E. Hinton, Layer normalization, arXiv 1607.06450.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.layer_norm(cr.tensor([[1.0, 3.0]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    x = floating(input)
    dims = _last_dims("layer_norm", x, normalized_shape, weight=weight, bias=bias)
    return affine(standardized(x, dims, eps), weight, bias)


def _last_dims(
    name: str, x: Tensor, normalized_shape: int | Sequence[int], **given: Operand | None
) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape:
        raise ShapeError(
            f"{name}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
            "least one element, but got normalized_shape = []"
        )
    if x.shape[-len(shape) :] != shape:
        raise ShapeError(
            f"{name}: Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size {list(x.shape)}"
        )
    for which, value in given.items():
        if value is not None and floating(value).shape != shape:
            raise ShapeError(
                f"{name}: Expected {which} to be of same shape as normalized_shape, but got "
                f"{which} of shape {list(floating(value).shape)} and normalized_shape = "
                f"{list(shape)}"
            )
    return tuple(range(x.ndim - len(shape), x.ndim))


def rms_norm(
    input: Operand,
    normalized_shape: int | Sequence[int],
    weight: Operand | None = None,
    eps: float | None = None,
) -> Tensor:
    """Return `input`, divided by the root of the mean square over its last dimensions.

    Parameters
    ----------
    input, normalized_shape, weight
        As for `layer_norm`.
    eps : number, optional
        Added to the mean square: the distance from 1 to the next number if left out.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError
        If the shapes don't fit.

    Notes
    -----
    x / √(mean x² + eps) [1]_.

    References
    ----------
    .. [1] B. Zhang, R. Sennrich, Root mean square layer normalization, NeurIPS 2019.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.rms_norm(cr.tensor([[1.0, 7.0]]), (2,))
    tensor([[0.2000, 1.4000]])
    """
    x = floating(input)
    dims = _last_dims("rms_norm", x, normalized_shape, weight=weight)
    small = 2.0 ** -{2: 10, 4: 23}.get(x.dtype.itemsize, 52) if eps is None else eps
    wide = widened(x)
    scale = ops.rsqrt(ops.add(RECORDERS["mean_square"](wide, axis=dims), small))
    return affine(cast(ops.multiply(wide, scale), x.dtype), weight, None)
