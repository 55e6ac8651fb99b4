"""Fusion of a layer with the batch normalisation after it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from chainrule.autograd.tensor import Tensor
from chainrule.creation import ones_like, zeros_like
from chainrule.errors import ArgumentError
from chainrule.nn.modules.module import Module
from chainrule.nn.modules.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from chainrule.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

M = TypeVar("M", bound=Module)
BatchNorm = BatchNorm1d | BatchNorm2d | BatchNorm3d


def fuse_conv_bn_eval(conv: M, bn: BatchNorm, transpose: bool = False) -> M:
    """Return a copy of a convolution that also does the batch normalisation after it.

    Parameters
    ----------
    conv, bn : Modules
        Both in evaluation mode.
    transpose : bool, default False
        Whether the convolution is a transposed one.

    Returns
    -------
    Module
        Of the class of `conv`, with a bias.

    Raises
    ------
    ArgumentError
        If one of them is in training mode, or `bn` has no running statistics.

    Examples
    --------
    >>> import chainrule as cr
    >>> conv, bn = cr.nn.Conv2d(1, 2, 3).eval(), cr.nn.BatchNorm2d(2).eval()
    >>> x = cr.ones(1, 1, 4, 4)
    >>> fused = fuse_conv_bn_eval(conv, bn)
    >>> cr.allclose(fused(x), bn(conv(x)), atol=1e-6)
    True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, transpose)


def fuse_linear_bn_eval(linear: M, bn: BatchNorm) -> M:
    """Return a copy of a linear layer that also does the batch normalisation after it.

    Parameters
    ----------
    linear, bn : Modules
        Both in evaluation mode, for the same number of features.

    Returns
    -------
    Module
        Of the class of `linear`, with a bias.

    Raises
    ------
    ArgumentError
        If one of them is in training mode, or the numbers of features differ.

    Examples
    --------
    >>> import chainrule as cr
    >>> linear, bn = cr.nn.Linear(3, 2).eval(), cr.nn.BatchNorm1d(2).eval()
    >>> x = cr.ones(1, 3)
    >>> fused = fuse_linear_bn_eval(linear, bn)
    >>> cr.allclose(fused(x), bn(linear(x)), atol=1e-6)
    True
    """
    features = linear.out_features  # type: ignore[attr-defined]  # or it is no linear layer
    if bn.num_features not in (features, 1):
        raise ArgumentError(
            "fuse_linear_bn_eval: To fuse, linear.out_features == bn.num_features or "
            f"bn.num_features == 1, got {features} and {bn.num_features}"
        )
    return _fused("fuse_linear_bn_eval", linear, bn, False)


def _fused(title: str, layer: M, bn: BatchNorm, transpose: bool) -> M:
    if layer.training or bn.training:
        raise ArgumentError(f"{title}: Fusion only for eval! Say .eval() for both modules")
    mean, var = (bn._buffers[name] for name in ("running_mean", "running_var"))
    if mean is None or var is None:
        raise ArgumentError(f"{title}: the batch normalisation has no running statistics")
    made: Any = copy.deepcopy(layer)
    statistics = mean, var, bn.eps, bn.weight, bn.bias
    made.weight, made.bias = fuse_conv_bn_weights(made.weight, made.bias, *statistics, transpose)
    found: M = made
    return found


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of a convolution with the batch normalisation after it.

    Parameters
    ----------
    conv_w, conv_b : Tensor
        Weight and bias of the convolution; the bias may be None.
    bn_rm, bn_rv, bn_eps, bn_w, bn_b
        Running mean, running variance, ``eps``, weight and bias of the normalisation.
    transpose : bool, default False
        Whether the second dimension of the weight is that of the outputs.

    Examples
    --------
    >>> import chainrule as cr
    >>> one = cr.ones(1)
    >>> fuse_conv_bn_weights(cr.ones(1, 1, 1), None, one, one, 0.0, one, one)[1].tolist()
    [0.0]
    """
    conv_b = zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * (bn_rv + bn_eps).rsqrt()
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = (conv_w * scale.reshape(shape)).to(conv_w.dtype)
    bias = ((conv_b - bn_rm) * scale + bn_b).to(conv_b.dtype)
    weight = Parameter(weight.detach(), conv_w.requires_grad)
    return weight, Parameter(bias.detach(), conv_b.requires_grad)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of a linear layer with the batch normalisation after it.

    The parameters are those of `fuse_conv_bn_weights`.
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
