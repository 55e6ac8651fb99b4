"""Slopes by differences of neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from chainrule.arguments import Dims, Operand, either, floating, many_dims, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.creation import full
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops.cumulative import diff
from chainrule.ops.join_split import cat
from chainrule.ops.permute import moveaxis
from chainrule.ops.reshape import broadcast_to

__all__ = ["gradient"]


def gradient(
    input: Operand,
    *,
    spacing: Operand | Sequence[Operand] | None = None,
    dim: Dims = None,
    edge_order: int = 1,
    axis: Dims = None,
) -> tuple[Tensor, ...]:
    """Return the slopes of sampled values along dimensions, by differences of neighbours.

    Parameters
    ----------
    input : Tensor
        The samples; integers are taken as numbers of the default dtype.
    spacing : number, or sequence of numbers or Tensors, optional
        How far samples are apart, 1 if left out: one number for all dimensions, or one for each. A
        vector is the samples' coordinates along its dimension.
    dim : int or sequence of ints, optional
        Along which dimensions: all if left out. Also spelled `axis`.
    edge_order : 1 or 2
        At the ends, the slope of a line through two samples, or of a parabola through three.

    Returns
    -------
    tuple of Tensors, shape of `input`
        One for each dimension.

    Raises
    ------
    ShapeError
        If there is not one spacing for each dimension.
    ArgumentError
        If `edge_order` is another, or there are no more than `edge_order` samples.

    See Also
    --------
    autograd_grad : the exact derivatives of what chainrule computed.

    Notes
    -----
    Within, the slope of the parabola through three neighbours [1]_. Derivative: linear in `input`;
    coordinates that require grad have theirs, too.

    References
    ----------
    .. [1] B. Fornberg, Math. Comp. 51(184), 1988, 699–706.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.gradient(cr.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    samples = floating(input)
    dims = many_dims(either(dim, axis), samples.ndim)
    dims = tuple(range(samples.ndim)) if dims is None else dims
    spacing = 1 if spacing is None else spacing
    distances = list(spacing) if isinstance(spacing, list | tuple) else [spacing] * len(dims)
    if len(distances) != len(dims):
        raise ShapeError(
            "gradient: expected spacing to be unspecified, a scalar, or as long as dim, but got "
            f"a spacing argument of length {len(distances)} and {len(dims)} dimensions"
        )
    if edge_order not in (1, 2):
        raise ArgumentError(
            f"gradient: only supports edge_order=1 and edge_order=2, got {edge_order}"
        )
    return tuple(
        [
            slopes(samples, _distance(h, samples), number, edge_order)
            for h, number in zip(distances, dims, strict=True)
        ]
    )


def _distance(value: Any, samples: Tensor) -> Tensor:
    if isinstance(value, int | float):
        return full((), value, dtype=samples.dtype)
    return tensor_of(value)


def slopes(f: Tensor, h: Tensor, axis: int, edge_order: int) -> Tensor:
    """Return the slopes along one axis: those of parabolas through three neighbours.

    At distances d and e before and behind, the weights are -e / (d (d + e)), (e - d) / (d e) and
    d / (e (d + e)); the slope of the same parabola at its ends is the second-order edge.
    """
    n = f.shape[axis]
    if n < edge_order + 1:
        raise ArgumentError(
            "gradient: expected each dimension size to be at least edge_order+1. Shape of array "
            "too small to calculate a numerical gradient, at least (edge_order + 1) elements are "
            f"required: axis {axis} has {n}"
        )
    if h.ndim and h.shape != (n,):
        raise ArgumentError(
            f"gradient: expected a distance, or {n} coordinates along axis {axis}, got the shape "
            f"{list(h.shape)}"
        )
    f = moveaxis(f, axis, -1)
    steps = diff(h) if h.ndim else broadcast_to(h, (n - 1,))
    rises = diff(f) / steps
    first, last = rises[..., :1], rises[..., -1:]
    d, e = steps[:-1], steps[1:]
    if h.ndim:
        inner = (rises[..., :-1] * e + rises[..., 1:] * d) / (d + e)
    else:  # without the middle, which may be infinite
        inner = (f[..., 2:] - f[..., :-2]) / (2 * h)
    if edge_order == 2:
        first = first + (rises[..., :1] - rises[..., 1:2]) * d[:1] / (d + e)[:1]
        last = last + (rises[..., -1:] - rises[..., -2:-1]) * e[-1:] / (d + e)[-1:]
    return moveaxis(cat([first, inner, last], -1), -1, axis)
