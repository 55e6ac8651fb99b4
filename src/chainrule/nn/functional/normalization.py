"""Normalisation over the batch, instances, groups, neighbouring channels or last dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, cast, floating, whole_number
from chainrule.autograd.array_proxy import as_float
from chainrule.autograd.inplace import can_replace, replace
from chainrule.autograd.modes import no_grad
from chainrule.autograd.record import add_to_new
from chainrule.autograd.tensor import Tensor
from chainrule.creation import ones, zeros, zeros_like
from chainrule.errors import ArgumentError, DTypeError, ShapeError
from chainrule.primitives import normalisation

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "local_response_norm",
    "layer_norm",
    "rms_norm",
]

# --- standardisation and affine maps --------------------------------------------------------------


def normalize_channels(
    x: Tensor, dims: tuple[int, ...], weight: Operand | None, bias: Operand | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `x` normalised along `dims`, and the means and variances, detached, dims kept."""
    wide, count = widen_half(x), x.shape[1]
    factor = ones(count, dtype=wide.dtype) if weight is None else cast(floating(weight), wide.dtype)
    offset = zeros(count, dtype=wide.dtype) if bias is None else cast(floating(bias), wide.dtype)
    out, *statistics = normalisation.batch_normalize.apply(
        wide, factor, offset, axis=dims, eps=as_float(eps)
    )
    mean, variance = [value.detach() for value in statistics]
    return cast(out, x.dtype), mean, variance


def standardize(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    """Return `x` with mean 0 and variance 1 along `dims`."""
    return cast(
        normalisation.standardize.apply(widen_half(x), axis=dims, eps=as_float(eps))[0], x.dtype
    )


def normalize_rows(
    x: Tensor,
    dims: tuple[int, ...],
    weight: Operand | None,
    bias: Operand | None,
    eps: float,
    shape: tuple[int, ...],
) -> Tensor:
    """Return `x` normalised along its last dimensions, times weight, plus bias, of a shape."""
    if weight is None:
        return affine(standardize(x, dims, eps), None, bias, shape)
    wide = widen_half(x)
    factor = cast(floating(weight), wide.dtype)
    if bias is None:
        offset = zeros(factor.shape, dtype=wide.dtype)
    else:
        offset = cast(floating(bias), wide.dtype)
    out = normalisation.layer_normalize.apply(wide, factor, offset, axis=dims, eps=as_float(eps))
    return cast(out[0], x.dtype)


def widen_half(x: Tensor) -> Tensor:
    """Return half precision as float32, since its squares overflow; raise for complex numbers."""
    if x.dtype.kind == "c":
        raise DTypeError(
            f"normalisation: expected real numbers, got {x.dtype}: the mean and the variance are "
            "those of real numbers. Normalise the real and the imaginary part"
        )
    return cast(x, np.float32) if x.dtype.itemsize == 2 else x


def affine(
    x: Tensor, weight: Operand | None, bias: Operand | None, shape: tuple[int, ...] | None = None
) -> Tensor:
    """Return x · weight + bias, both in the given shape."""
    if weight is not None:
        factor = cast(floating(weight), x.dtype)
        x = ops.multiply(x, factor if shape is None else ops.reshape(factor, shape))
    if bias is None:
        return x
    offset = cast(floating(bias), x.dtype)
    if shape is not None:
        offset = ops.reshape(offset, shape)
    return ops.add(x, offset) if weight is None else add_to_new(x, offset)


# --- batch, group, instance and local response normalisation --------------------------------------


def batch_norm(
    input: Operand,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Operand | None = None,
    bias: Operand | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` with mean 0 and variance 1 in each channel.

    Parameters
    ----------
    input : Tensor, shape (n, c) or (n, c, ...)
        Real numbers: dimension 1 is that of the channels.
    running_mean, running_var : Tensor, shape (c,), or None
        Running means and variances. In training they are updated in place towards those of this
        batch; otherwise they are used to normalise.
    weight, bias : Tensor, shape (c,), optional
        Scale and offset of each channel.
    training : bool, default False
        Use the mean and the variance of this batch.
    momentum : number, default 0.1
        Weight of this batch in the update of the running statistics.
    eps : number, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError
        If shapes don't fit, or in training a channel has a single element.
    ArgumentError
        If there are no running statistics outside of training.

    Notes
    -----
    A batch is normalised by the population variance, while `running_var` is updated with the sample
    variance, as in PyTorch. In training, gradients flow through mean and variance too [1]_.

    References
    ----------
    .. [1] S. Ioffe, C. Szegedy, Batch normalization, ICML 2015.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0], [3.0]])
    >>> mean, var = cr.zeros(1), cr.ones(1)
    >>> cr.nn.functional.batch_norm(x, mean, var, training=True)
    tensor([[-1.0000],
            [ 1.0000]])
    >>> mean, var
    (tensor([0.2000]), tensor([1.1000]))
    """
    x, name = floating(input), "batch_norm"
    if x.ndim < 2:
        raise ShapeError(
            f"{name}: expected at least 2D input (n, c, ...), but got {x.ndim}D: {list(x.shape)}"
        )
    count = x.shape[1]
    _check_channels(
        name, count, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError(
                f"{name}: Expected running_mean and running_var to be defined when training=False: "
                "give both, or training=True"
            )
        return _normalize_by_running(x, running_mean, running_var, weight, bias, eps)
    size = x.numel() // max(count, 1)
    if size == 1:
        raise ShapeError(
            f"{name}: Expected more than 1 value per channel when training, got input size "
            f"{list(x.shape)}: a single value is its own mean. Give more examples at once "
            "(drop_last=True leaves out a short last batch), or call net.eval() to predict"
        )
    dims = (0, *range(2, x.ndim))
    out, mean, variance = normalize_channels(x, dims, weight, bias, eps)
    if size:  # an empty batch has no statistics
        _update_running(running_mean, running_var, mean, variance, size, momentum)
    return out


def _normalize_by_running(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    weight: Operand | None,
    bias: Operand | None,
    eps: float,
) -> Tensor:
    # One factor and one offset for each channel: two passes over the input.
    factor = ops.rsqrt(ops.add(cast(variance, x.dtype), eps))
    if weight is not None:
        factor = ops.multiply(factor, cast(floating(weight), x.dtype))
    offset = ops.negative(ops.multiply(cast(mean, x.dtype), factor))
    if bias is not None:
        offset = ops.add(offset, cast(floating(bias), x.dtype))
    return affine(x, factor, offset, _per_channel(x))


def _update_running(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    size: int,
    momentum: float,
) -> None:
    """Move running statistics towards the means over the batch of those of `size` elements."""
    updates = [
        (running, value, factor)
        for running, value, factor in (
            (running_mean, mean, 1),
            (running_var, variance, size / max(size - 1, 1)),
        )
        if running is not None
    ]
    if momentum.__class__ is float and all([can_replace(r, v) for r, v, _ in updates]):
        results = [
            running._array * (1 - momentum) + value._array.reshape(-1) * (momentum * factor)
            for running, value, factor in updates
        ]
        replace([running for running, _, _ in updates], results, "batch_norm")
        return
    with no_grad():
        for running, value, factor in updates:
            value = cast(ops.mean(value, 0) if value.shape[0] > 1 else value, running.dtype)
            running.mul_(1 - momentum)
            running.add_(ops.reshape(value, running.shape), alpha=momentum * factor)


def group_norm(
    input: Operand,
    num_groups: int,
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` with mean 0 and variance 1 in each group of channels of each instance.

    Parameters
    ----------
    input : Tensor, shape (n, c) or (n, c, ...)
        Real numbers: dimension 1 is that of the channels.
    num_groups : int
        Number of groups of channels.
    weight, bias : Tensor, shape (c,), optional
        Scale and offset of each channel.
    eps : number, default 1e-5
        Added to the variance.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError
        If shapes don't fit, or c is not a multiple of `num_groups`.

    Notes
    -----
    Like `layer_norm`, over groups of channels [1]_.

    References
    ----------
    .. [1] Y. Wu, K. He, Group normalization, ECCV 2018.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.group_norm(cr.tensor([[1.0, 3.0, 5.0, 9.0]]), 2)
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]])
    """
    x, name = floating(input), "group_norm"
    if x.ndim < 2:
        raise ShapeError(
            f"{name}: Expected at least 2 dimensions for input tensor but got {x.ndim}"
        )
    count = x.shape[1]
    if num_groups < 1 or count % num_groups:
        raise ShapeError(
            f"{name}: Expected number of channels in input to be divisible by num_groups, but got "
            f"input of shape {list(x.shape)} and num_groups={num_groups}"
        )
    _check_channels(name, count, weight=weight, bias=bias)
    each = count // num_groups
    if x.numel() // num_groups == 1 and x.shape[0] == 1:
        raise ShapeError(
            f"{name}: Expected more than 1 value per channel when training, got input size "
            f"{list(x.shape)} and {num_groups} groups: a single value is its own mean"
        )
    grouped = ops.reshape(x, (x.shape[0], num_groups, each, math.prod(x.shape[2:])))
    out = normalize_rows(grouped, (2, 3), weight, bias, eps, (num_groups, each, 1))
    return ops.reshape(out, x.shape)


def instance_norm(
    input: Operand,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Operand | None = None,
    bias: Operand | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` with mean 0 and variance 1 in each channel of each instance.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...)
        Real numbers: dimension 1 is that of the channels.
    running_mean, running_var, weight, bias, momentum, eps
        As for `batch_norm`. The running statistics are updated with means over the batch.
    use_input_stats : bool, default True
        Normalise by the statistics of each instance, not by the running ones.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError, ArgumentError
        As for `batch_norm`.

    Notes
    -----
    Like `layer_norm`, over single channels [1]_.

    References
    ----------
    .. [1] D. Ulyanov, A. Vedaldi, V. Lempitsky, Instance normalization, arXiv 1607.08022.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.instance_norm(cr.tensor([[[1.0, 3.0], [5.0, 9.0]]]))
    tensor([[[-1.0000,  1.0000],
             [-1.0000,  1.0000]]])
    """
    x, name = floating(input), "instance_norm"
    if x.ndim < 3:
        raise ShapeError(
            f"{name}: expected input with at least 3 dimensions (n, c, ...), but got "
            f"{list(x.shape)}"
        )
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    _check_channels(
        name,
        x.shape[1],
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
    )
    size = math.prod(x.shape[2:])
    if size == 1:
        raise ShapeError(
            f"{name}: Expected more than 1 spatial element when training, got input size "
            f"{list(x.shape)}"
        )
    dims = tuple(range(2, x.ndim))
    out, mean, variance = normalize_channels(x, dims, weight, bias, eps)
    if x.numel():
        _update_running(running_mean, running_var, mean, variance, size, momentum)
    return out


def local_response_norm(
    input: Operand, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return `input` divided by a power of the mean square of neighbouring channels.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...)
        Real numbers: dimension 1 is that of the channels.
    size : int
        Number of neighbouring channels; there are zeros before the first and after the last one.
    alpha, beta, k : number
        Scale, exponent and offset, as below.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Raises
    ------
    ShapeError
        If there are fewer than three dimensions.

    Notes
    -----
    x / (k + alpha · mean x²)^beta, the mean over `size` channels [1]_.

    References
    ----------
    .. [1] A. Krizhevsky, I. Sutskever, G. E. Hinton, ImageNet classification with deep
       convolutional neural networks, NIPS 2012.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.functional.local_response_norm(cr.ones(1, 2, 1), 2, alpha=2.0, beta=1.0)
    tensor([[[0.5000],
             [0.3333]]])
    """
    x = floating(input)
    if x.ndim < 3:
        raise ShapeError(
            "local_response_norm: Expected 3D or higher dimensionality input (got "
            f"{x.ndim} dimensions)"
        )
    if whole_number(size, "local_response_norm", "size") < 1:
        raise ArgumentError(f"local_response_norm: size must be at least 1, but got {size}")
    square = ops.square(x)
    count = x.shape[1]
    total = square
    for shift in range(-(size // 2), (size - 1) // 2 + 1):
        if shift == 0 or abs(shift) >= count:
            continue
        part = square[:, max(shift, 0) : count + min(shift, 0)]
        gap = zeros_like(square[:, : abs(shift)].detach())
        total = ops.add(total, ops.concat([part, gap] if shift > 0 else [gap, part], 1))
    scale = ops.add(ops.multiply(total, alpha / size), k)
    return ops.divide(x, ops.pow(scale, beta))


def _check_channels(name: str, count: int, **given: Operand | None) -> None:
    for which, value in given.items():
        if value is not None and floating(value).shape != (count,):
            raise ShapeError(
                f"{name}: {which} should contain {count} elements, one for each channel "
                f"(dimension 1 of input), but has the shape {list(floating(value).shape)}"
            )


def _per_channel(x: Tensor) -> tuple[int, ...]:
    return (-1,) + (1,) * (x.ndim - 2)


# --- layer and root-mean-square normalisation -----------------------------------------------------


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
        Scale and offset of the result.
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
    (x - mean) / √(variance + eps), with the population variance [1]_.

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
    return normalize_rows(x, dims, weight, bias, eps, tuple([x.shape[i] for i in dims]))


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
    wide = widen_half(x)
    scale = ops.rsqrt(ops.add(normalisation.mean_square.apply(wide, axis=dims), small))
    return affine(cast(ops.multiply(wide, scale), x.dtype), weight, None)
