"""Normalisation layers: by batch, by instance, by group of channels, by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from chainrule.arguments import DeviceLike, DTypeLike, Operand, floating
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.creation import empty, full_like, ones, zeros
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn import functional as F
from chainrule.nn.modules.layer import FunctionLayer
from chainrule.nn.modules.lazy import LazyModuleMixin
from chainrule.nn.modules.members import BUFFERS, PARAMETER
from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import (
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
    is_uninitialized,
)
from chainrule.ops import stack

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "CrossMapLRN2d",
    "GroupNorm",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LocalResponseNorm",
    "RMSNorm",
    "SyncBatchNorm",
]


class _Affine(Module):
    """A layer that may have a weight, ones at first, and a bias, zeros at first."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_parameters(
        self,
        shape: tuple[int, ...],
        weight: bool,
        bias: bool | None,
        device: DeviceLike,
        dtype: DTypeLike,
    ) -> None:
        for name, wanted in (("weight", weight), ("bias", bias)):
            if wanted is not None:
                made = Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None
                self.register_parameter(name, made)

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        with no_grad():
            for name, parameter in self._parameters.items():
                if parameter is not None:
                    parameter.fill_(1 if name == "weight" else 0)


class _ChannelNorm(_Affine):
    """Normalisation of each channel, with running statistics if asked for."""

    _dimensions: ClassVar[tuple[int, ...]]  # numbers of dimensions of an input

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        device: DeviceLike,
        dtype: DTypeLike,
        bias: bool,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._add_parameters((num_features,), affine, affine and bias, device, dtype)
        tracked: dict[str, Any] = dict.fromkeys(("running_mean", "running_var"))
        tracked["num_batches_tracked"] = None
        if track_running_stats:
            tracked["running_mean"] = zeros(num_features, device=device, dtype=dtype)
            tracked["running_var"] = ones(num_features, device=device, dtype=dtype)
            tracked["num_batches_tracked"] = zeros((), device=device, dtype="int64")
        for name, value in tracked.items():
            self.register_buffer(name, value)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1 and the number of batches to 0."""
        for name, buffer in self._buffers.items():
            if buffer is not None:
                buffer.fill_(1 if name == "running_var" else 0)

    def reset_parameters(self) -> None:
        """Set parameters and running statistics to their initial values."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check(self, input: Any) -> None:
        if input.ndim not in self._dimensions:
            expected = " or ".join(f"{ndim}D" for ndim in self._dimensions)
            raise ShapeError(
                f"{type(self).__name__}: expected {expected} input (got {input.ndim}D input of "
                f"shape {list(input.shape)})"
            )

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_ChannelNorm):
    """Normalisation of each channel over the batch: see `nn.functional.batch_norm`.

    Parameters
    ----------
    num_features : int
        The number of channels.
    eps : number, default 1e-5
        Added to the variance.
    momentum : number or None, default 0.1
        Weight of a batch in the running statistics; None makes them means over all batches.
    affine : bool, default True
        Whether there are a weight and a bias.
    track_running_stats : bool, default True
        Whether evaluation normalises by running statistics; else by those of its batch.
    device, dtype
        Of parameters and buffers.
    bias : bool, default True
        Whether there is a bias, if `affine`.
    """

    _version = 2  # that of PyTorch: since then the number of batches is in the state
    _members_since: ClassVar = {"num_batches_tracked": 2}

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        settings = eps, momentum, affine, track_running_stats, device, dtype, bias
        super().__init__(num_features, *settings)

    def _forget_running_stats(self) -> None:
        self.track_running_stats = False
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(self, name, None)

    def forward(self, input: Operand) -> Tensor:
        """Return the normalised input; in training, update the running statistics."""
        self._check(input)
        values = self.__dict__
        training, count = values["training"], values["num_batches_tracked"]
        mean, var = values["running_mean"], values["running_var"]
        momentum: Any = values["momentum"]
        if training and count is not None and values["track_running_stats"]:
            count.add_(1)
            if momentum is None:
                known = is_known(count._array)  # not while a function is compiled
                momentum = 1.0 / (float(count) if known else count.to(mean.dtype))
        if training and not values["track_running_stats"]:
            mean = var = None
        momentum = 0.0 if momentum is None else momentum
        return self._normalized(input, mean, var, training or mean is None, momentum)

    def _normalized(self, input: Any, mean: Any, var: Any, own: bool, momentum: float) -> Tensor:
        return F.batch_norm(input, mean, var, self.weight, self.bias, own, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of features or sequences: inputs of shape (n, c) or (n, c, l).

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.BatchNorm1d(1)
    >>> layer(cr.tensor([[1.0], [3.0]])).tolist() == layer(cr.tensor([[5.0], [7.0]])).tolist()
    True
    >>> layer.num_batches_tracked
    tensor(2)
    """

    _dimensions = 2, 3


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of images: inputs of shape (n, c, h, w).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.BatchNorm2d(3)(cr.rand(8, 3, 5, 5)).shape
    (8, 3, 5, 5)
    """

    _dimensions = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of volumes: inputs of shape (n, c, d, h, w)."""

    _dimensions = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over the batches of all ranks, in training: inputs of shape (n, c, ...).

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats
        As for `BatchNorm2d`.
    process_group : Communicator, optional
        The ranks, such as `distributed.world()`. None is this rank alone.
    device, dtype, bias
        As for `BatchNorm2d`.

    Notes
    -----
    One exchange for each call. The derivatives are those of batch normalisation of all ranks'
    inputs together: gradients belong to the sum of the ranks' losses, see `Communicator`.

    Examples
    --------
    >>> import chainrule as cr
    >>> def program(comm):
    ...     layer = cr.nn.SyncBatchNorm(1, process_group=comm)
    ...     return layer(cr.tensor([[2.0 * comm.rank]])).item()  # mean 1, variance 1
    >>> cr.distributed.run_ranks(program, 2)
    [-0.99999..., 0.99999...]
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        settings = momentum, affine, track_running_stats, device, dtype
        super().__init__(num_features, eps, *settings, bias=bias)
        self.process_group = process_group

    def _check(self, input: Any) -> None:
        if input.ndim < 2:
            raise ShapeError(f"expected at least 2D input (got {input.ndim}D input)")

    def _normalized(self, input: Any, mean: Any, var: Any, own: bool, momentum: float) -> Tensor:
        if self.process_group is None or not own:
            return super()._normalized(input, mean, var, own, momentum)
        total, center, spread = _moments_of_all(input, self.process_group)
        if mean is not None:
            with no_grad():
                mean.lerp_(center.detach().to(mean.dtype), momentum)
                var.lerp_((spread / (total - 1)).detach().to(var.dtype), momentum)
        factor = (spread / total + self.eps).rsqrt()
        if self.weight is not None:
            factor = factor * self.weight
        shape = [-1 if i == 1 else 1 for i in range(input.ndim)]
        result: Tensor = (input - center.reshape(shape)) * factor.reshape(shape)
        return result if self.bias is None else result + self.bias.reshape(shape)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Return a module with a `SyncBatchNorm` in the place of every batch normalisation.

        Parameters, running statistics and settings are the same objects.

        Examples
        --------
        >>> from chainrule import nn
        >>> net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
        >>> type(nn.SyncBatchNorm.convert_sync_batchnorm(net)[1]).__name__
        'SyncBatchNorm'
        """
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            for name, _ in converted._of(PARAMETER, *BUFFERS):
                setattr(converted, name, getattr(module, name))
            return converted.train(module.training)
        for name, child in module.named_children():
            module.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return module


def _moments_of_all(input: Tensor, ranks: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return the count, the mean and the sum of squared deviations of each channel on all ranks.

    They are combined from those of each rank, which is as accurate as one pass over all inputs.
    """
    axes = [i for i in range(input.ndim) if i != 1]
    shape = [-1 if i == 1 else 1 for i in range(input.ndim)]
    size = input.numel() // max(input.shape[1], 1)
    center = input.sum(axes) / max(size, 1)
    spread = ((input - center.reshape(shape)) ** 2).sum(axes)
    own = stack([full_like(center, size), center, spread])
    sizes, centers, spreads = ranks.allgather(own[:, None], 1)
    sizes = sizes.detach()
    total = sizes.sum(0)
    if float(total[0]) <= 1:
        raise ShapeError(
            "Expected more than 1 value per channel when training, got input size "
            f"{list(input.shape)} on each rank"
        )
    center = (sizes * centers).sum(0) / total
    return total, center, (spreads + sizes * (centers - center) ** 2).sum(0)


class _InstanceNorm(_ChannelNorm):
    """Normalisation of each channel of each example: see `nn.functional.instance_norm`.

    The parameters are those of batch normalisation, but `affine` and `track_running_stats` are
    False by default.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        settings = eps, momentum, affine, track_running_stats, device, dtype, bias
        super().__init__(num_features, *settings)

    def forward(self, input: Any) -> Tensor:
        """Return the normalised input; an input without a batch dimension is one example."""
        self._check(input)
        single = input.ndim == self._dimensions[0]
        x = input.unsqueeze(0) if single else input
        if x.shape[1] != self.num_features and self.affine:
            raise ShapeError(
                f"{type(self).__name__}: expected input's channels to be {self.num_features}, but "
                f"got {x.shape[1]}"
            )
        own = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        values = self.__dict__
        mean, var = values["running_mean"], values["running_var"]
        affine = self.weight, self.bias
        result = F.instance_norm(x, mean, var, *affine, own, momentum, self.eps)
        return result.squeeze(0) if single else result


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of sequences: inputs of shape (n, c, l) or (c, l)."""

    _dimensions = 2, 3


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of images: inputs of shape (n, c, h, w) or (c, h, w)."""

    _dimensions = 3, 4


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of volumes: inputs of shape (n, c, d, h, w) or (c, d, h, w)."""

    _dimensions = 4, 5


class _LazyNorm(LazyModuleMixin):
    """A normalisation that gets the number of channels from its first input."""

    num_features: int

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
        if affine and bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = zeros((), device=device, dtype="int64")

    def reset_parameters(self) -> None:
        """Set parameters and statistics to their initial values, if they have a shape."""
        if not self.has_uninitialized_params() and self.num_features:
            super().reset_parameters()  # type: ignore[misc]  # of the normalisation

    def initialize_parameters(self, input: Tensor) -> None:
        """Set the shapes of the parameters by an input."""
        single = isinstance(self, _InstanceNorm) and input.ndim == self._dimensions[0]
        channels = input.shape[0 if single else 1]
        if self.has_uninitialized_params():
            self.num_features = channels
            for _, value in self._of(PARAMETER, *BUFFERS):
                if is_uninitialized(value):
                    value.materialize((self.num_features,))
            self.reset_parameters()
        known = [value.shape[0] for _, value in self._of(PARAMETER, *BUFFERS) if value.ndim]
        self.num_features = known[0] if known else channels


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A `BatchNorm1d` without `num_features`, which the first input tells.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.LazyBatchNorm1d()
    >>> layer(cr.ones(2, 3)).shape, layer.running_mean.shape
    ((2, 3), (3,))
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A `BatchNorm2d` without `num_features`, which the first input tells."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A `BatchNorm3d` without `num_features`, which the first input tells."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """An `InstanceNorm1d` without `num_features`, which the first input tells."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """An `InstanceNorm2d` without `num_features`, which the first input tells."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """An `InstanceNorm3d` without `num_features`, which the first input tells."""

    cls_to_become = InstanceNorm3d


class GroupNorm(_Affine):
    """Normalisation of groups of channels of each example: see `nn.functional.group_norm`.

    Parameters
    ----------
    num_groups, num_channels : int
        The first divides the second.
    eps : number, default 1e-5
        Added to the variance.
    affine : bool, default True
        Whether there are a weight and a bias.
    device, dtype
        Of the parameters.
    bias : bool, default True
        Whether there is a bias, if `affine`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.GroupNorm(2, 4)(cr.rand(8, 4, 5, 5)).shape
    (8, 4, 5, 5)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups:
            raise ArgumentError(
                f"GroupNorm: num_channels ({num_channels}) must be divisible by num_groups "
                f"({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._add_parameters((num_channels,), affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Operand) -> Tensor:
        """Return the normalised input."""
        values = self.__dict__
        return F.group_norm(input, values["num_groups"], self.weight, self.bias, values["eps"])

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LayerNorm(_Affine):
    """Normalisation over the last dimensions: see `nn.functional.layer_norm`.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The last sizes of inputs, and the shape of the parameters.
    eps : number, default 1e-5
        Added to the variance.
    elementwise_affine : bool, default True
        Whether there are a weight and a bias.
    bias : bool, default True
        Whether there is a bias, if `elementwise_affine`.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.LayerNorm(3)(cr.tensor([[1.0, 2.0, 3.0]]))
    tensor([[-1.2247,  0.0000,  1.2247]], grad_fn=<NativeLayerNormBackward0>)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        parts = elementwise_affine, elementwise_affine and bias
        self._add_parameters(self.normalized_shape, *parts, device, dtype)
        self.reset_parameters()

    def forward(self, input: Operand) -> Tensor:
        """Return the normalised input."""
        values = self.__dict__
        return F.layer_norm(
            input, values["normalized_shape"], self.weight, self.bias, values["eps"]
        )

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """Division by the root mean square over the last dimensions: see `nn.functional.rms_norm`.

    Parameters
    ----------
    normalized_shape : int or sequence of int
        The last sizes of inputs, and the shape of the weight.
    eps : number, optional
        Added to the mean square: the rounding unit of the dtype if left out.
    elementwise_affine : bool, default True
        Whether there is a weight.
    device, dtype
        Of the weight.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.RMSNorm(2)(cr.tensor([[3.0, 4.0]]))
    tensor([[0.8485, 1.1314]], grad_fn=<MulBackward0>)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self._add_parameters(self.normalized_shape, elementwise_affine, None, device, dtype)
        self.reset_parameters()

    def forward(self, input: Operand) -> Tensor:
        """Return the normalised input."""
        values = self.__dict__
        return F.rms_norm(input, values["normalized_shape"], self.weight, values["eps"])

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class LocalResponseNorm(FunctionLayer):
    """Division by a norm of neighbouring channels: see `nn.functional.local_response_norm`."""

    function = F.local_response_norm
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` as Lua's torch and PyTorch define it, by running sums over channels.

    Windows of an even size leave out one channel, and the first channel is in all windows.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.CrossMapLRN2d(3, alpha=3.0)(cr.ones(1, 2, 1, 1)).shape
    (1, 2, 1, 1)
    """

    def forward(self, input: Operand) -> Tensor:
        """Return the normalised input."""
        x, reach = floating(input), (self.size + 1) // 2
        squares, window = (x * x).unsqueeze(1), (2 * reach - 1, 1, 1)
        sums = F.avg_pool3d(squares, window, 1, (reach - 1, 0, 0)).squeeze(1) * window[0]
        sums[:, reach:] += squares[:, 0, :1]
        return x / (self.k + self.alpha / self.size * sums) ** self.beta


def _sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)
