"""Losses: functions of outputs and targets, reduced to one number by default."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from chainrule.arguments import DeviceLike, DTypeLike
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.creation import zeros
from chainrule.errors import ArgumentError, OutOfBoundsError, ShapeError
from chainrule.nn import functional as F
from chainrule.nn.functional.losses import reduction_of
from chainrule.nn.modules.container import ModuleList, Sequential
from chainrule.nn.modules.layer import FunctionLayer
from chainrule.nn.modules.linear import Linear
from chainrule.nn.modules.module import Module
from chainrule.nn.modules.shape import PairwiseDistance
from chainrule.ops import cat, where

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(FunctionLayer):
    """A loss with PyTorch's former arguments of its reduction, and class weights as a buffer."""

    _omitted = ("size_average", "reduce")
    _shown = ()
    reduction: str

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        """Set the reduction: for losses of users, which compute in `forward`."""
        Module.__init__(self)
        self.reduction = reduction
        if size_average is not None or reduce is not None:
            self.reduction = reduction_of(size_average, reduce)

    def _convert(self) -> None:
        values = self.__dict__
        mean, reduce = values.get("size_average"), values.get("reduce")
        if mean is not None or reduce is not None:
            values["reduction"] = reduction_of(mean, reduce)
        for name in ("weight", "pos_weight"):
            if name in values:
                self._buffers[name] = values[name]


class _WeightedLoss(_Loss):
    """A loss of users with class weights, which are a buffer."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class BCELoss(_Loss):
    """Binary cross-entropy of probabilities: see `nn.functional.binary_cross_entropy`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.BCELoss()(cr.tensor([0.5, 0.9]), cr.tensor([0.0, 1.0]))
    tensor(0.3993)
    """

    function = F.binary_cross_entropy
    weight: Tensor | None = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy of logits: see `nn.functional.binary_cross_entropy_with_logits`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.BCEWithLogitsLoss()(cr.tensor([0.0, 2.0]), cr.tensor([0.0, 1.0]))
    tensor(0.4100)
    """

    function = F.binary_cross_entropy_with_logits
    weight: Tensor | None = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None


class CosineEmbeddingLoss(_Loss):
    """Loss of pairs that are to be similar or not, by the cosine of their angle.

    See `nn.functional.cosine_embedding_loss`.
    """

    function = F.cosine_embedding_loss
    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class CrossEntropyLoss(_Loss):
    """Cross-entropy of logits with classes or probabilities: see `nn.functional.cross_entropy`.

    Examples
    --------
    >>> import chainrule as cr
    >>> logits = cr.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> cr.nn.CrossEntropyLoss()(logits, cr.tensor([0, 2]))
    tensor(0.8955)
    """

    function = F.cross_entropy
    weight: Tensor | None = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"
    label_smoothing: float = 0.0


@dataclass(frozen=True, slots=True)
class LinearCrossEntropyOptions:
    """PyTorch's settings of `linear_cross_entropy`, without effect: scores are computed at once.

    Parameters
    ----------
    allow_retain_graph, batch_chunk_size, chunking_method, acc_policy, acc_dtype
        As in PyTorch.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross-entropy of a linear layer's outputs: see `nn.functional.linear_cross_entropy`.

    Parameters
    ----------
    in_features, num_classes : int
        Sizes of the input and of the scores.
    out_features : tuple of ints, default ()
        Shape of the targets of one row.
    bias : bool, default False
        Whether the linear layer has a bias.
    device, dtype
        Those of the linear layer.
    reduction, weight, ignore_index, label_smoothing, options
        As for `nn.functional.linear_cross_entropy`.

    Attributes
    ----------
    linear : Linear
        The layer; its outputs are the scores of all targets.

    Examples
    --------
    >>> import chainrule as cr
    >>> loss = cr.nn.LinearCrossEntropyLoss(3, 10)
    >>> loss(cr.ones(2, 3), cr.tensor([0, 9])).shape
    ()
    """

    weight: Tensor | None

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, tuple(out_features)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.options = options
        count = math.prod(self.out_features, start=num_classes)
        self.linear = Linear(in_features, count, bias, device, dtype)

    def forward(self, input: Any, target: Any) -> Tensor:
        """Return the loss of features."""
        layer, shape = self.linear, (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            layer.weight.reshape(*shape, layer.in_features),
            target,
            linear_bias=None if layer.bias is None else layer.bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
        )

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            f"reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


class GaussianNLLLoss(_Loss):
    """Negative log-likelihood of normal distributions: see `nn.functional.gaussian_nll_loss`."""

    function = F.gaussian_nll_loss
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"


class HingeEmbeddingLoss(_Loss):
    """Loss of distances of pairs that are to be similar or not.

    See `nn.functional.hinge_embedding_loss`.
    """

    function = F.hinge_embedding_loss
    margin: float = 1.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class HuberLoss(_Loss):
    """Quadratic loss, which is linear above δ: see `nn.functional.huber_loss`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.HuberLoss()(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    function = F.huber_loss
    reduction: str = "mean"
    delta: float = 1.0


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence from log-probabilities: see `nn.functional.kl_div`.

    Examples
    --------
    >>> import chainrule as cr
    >>> log_probs = cr.tensor([[0.5, 0.5]]).log()
    >>> cr.nn.KLDivLoss(reduction="batchmean")(log_probs, cr.tensor([[0.25, 0.75]]))
    tensor(0.1308)
    """

    function = F.kl_div
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"
    log_target: bool = False


class L1Loss(_Loss):
    """Absolute error: see `nn.functional.l1_loss`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.L1Loss()(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 4.0]))
    tensor(1.)
    """

    function = F.l1_loss
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MSELoss(_Loss):
    """Squared error: see `nn.functional.mse_loss`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.MSELoss()(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 4.0]))
    tensor(2.)
    """

    function = F.mse_loss
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MarginRankingLoss(_Loss):
    """Loss of pairs in the wrong order: see `nn.functional.margin_ranking_loss`."""

    function = F.margin_ranking_loss
    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MultiLabelMarginLoss(_Loss):
    """Hinge loss of several classes per example: see `nn.functional.multilabel_margin_loss`."""

    function = F.multilabel_margin_loss
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MultiLabelSoftMarginLoss(_Loss):
    """Logistic loss of several classes per example.

    See `nn.functional.multilabel_soft_margin_loss`.
    """

    function = F.multilabel_soft_margin_loss
    weight: Tensor | None = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class MultiMarginLoss(_Loss):
    """Hinge loss of one class per example: see `nn.functional.multi_margin_loss`."""

    function = F.multi_margin_loss
    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class NLLLoss(_Loss):
    """Negative log-likelihood of classes, from log-probabilities: see `nn.functional.nll_loss`.

    Examples
    --------
    >>> import chainrule as cr
    >>> log_probs = cr.tensor([[0.5, 0.25, 0.25]]).log()
    >>> cr.nn.NLLLoss()(log_probs, cr.tensor([0]))
    tensor(0.6931)
    """

    function = F.nll_loss
    weight: Tensor | None = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"


class PoissonNLLLoss(_Loss):
    """Negative log-likelihood of Poisson distributions: see `nn.functional.poisson_nll_loss`."""

    function = F.poisson_nll_loss
    log_input: bool = True
    full: bool = False
    size_average: bool | None = None
    eps: float = 1e-8
    reduce: bool | None = None
    reduction: str = "mean"


class SmoothL1Loss(_Loss):
    """Absolute error, which is quadratic below β: see `nn.functional.smooth_l1_loss`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.SmoothL1Loss()(cr.tensor([1.0, 2.0]), cr.tensor([1.0, 4.0]))
    tensor(0.7500)
    """

    function = F.smooth_l1_loss
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"
    beta: float = 1.0


class SoftMarginLoss(_Loss):
    """Logistic loss of two classes, -1 and 1: see `nn.functional.soft_margin_loss`."""

    function = F.soft_margin_loss
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class TripletMarginLoss(_Loss):
    """Loss of triplets: anchors nearer to negatives than to positives.

    See `nn.functional.triplet_margin_loss`.
    """

    function = F.triplet_margin_loss
    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


class NLLLoss2d(NLLLoss):
    """`NLLLoss` of images, under its former name."""


class CTCLoss(FunctionLayer):
    """Negative log-likelihood of unaligned sequences: see `nn.functional.ctc_loss`."""

    function = F.ctc_loss
    _shown = ()
    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False


class TripletMarginWithDistanceLoss(FunctionLayer):
    """Loss of triplets, with any distance: see `nn.functional.triplet_margin_with_distance_loss`.

    All arguments are given by name.
    """

    function = F.triplet_margin_with_distance_loss
    _shown = ()
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def _convert(self) -> None:
        if self.distance_function is None:
            self.distance_function = PairwiseDistance()


class AdaptiveLogSoftmaxOutput(NamedTuple):
    """What `AdaptiveLogSoftmaxWithLoss` returns."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax over many classes, of which frequent ones come first, in groups [1]_.

    Rare classes are in groups with smaller projections: the head has the frequent ones and an
    entry for each group.

    Parameters
    ----------
    in_features : int
        The size of inputs.
    n_classes : int
        The number of classes.
    cutoffs : sequence of int
        The first class of each group, ascending, below `n_classes`.
    div_value : number, default 4
        Each group's projection is as many times smaller than the one before.
    head_bias : bool, default False
        Whether the head has a bias.
    device, dtype
        Of the parameters.

    References
    ----------
    .. [1] E. Grave, A. Joulin, M. Cissé, D. Grangier, H. Jégou, Efficient softmax approximation for
       GPUs, ICML 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
    >>> output, loss = layer(cr.ones(3, 8), cr.tensor([0, 7, 19]))
    >>> output.shape, layer.log_prob(cr.ones(3, 8)).shape
    ((3,), (3, 20))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        limits = list(cutoffs)
        if (
            not limits
            or limits != sorted(set(limits))
            or limits[0] <= 0
            or limits[-1] >= n_classes
            or any(int(limit) != limit for limit in limits)
        ):
            raise ArgumentError(
                "AdaptiveLogSoftmaxWithLoss: cutoffs should be a sequence of unique, positive "
                f"integers sorted in an increasing order, each below n_classes={n_classes}, got "
                f"{limits}"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs, self.div_value, self.head_bias = [*limits, n_classes], div_value, head_bias
        self.shortlist_size, self.n_clusters = limits[0], len(limits)
        self.head_size = self.shortlist_size + self.n_clusters
        place: Any = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **place)
        self.tail = ModuleList()
        for i, (start, stop) in enumerate(pairwise(self.cutoffs)):
            size = int(in_features // div_value ** (i + 1))
            inner = Linear(in_features, size, bias=False, **place)
            self.tail.append(Sequential(inner, Linear(size, stop - start, bias=False, **place)))

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        self.head.reset_parameters()
        for group in self.tail:
            for layer in group.children():
                layer.reset_parameters()  # type: ignore[attr-defined]  # linear layers

    def forward(self, input_: Tensor, target_: Tensor) -> AdaptiveLogSoftmaxOutput:
        """Return the logarithms of the targets' probabilities, and minus their mean.

        Parameters
        ----------
        input_ : Tensor, shape (n, in_features) or (in_features,)
        target_ : Tensor of int64, shape (n,) or ()
            The classes.
        """
        batched = target_.ndim > 0
        x, target = (input_, target_) if batched else (input_[None], target_[None])
        if x.ndim != 2 or target.shape != x.shape[:1]:
            raise ShapeError(
                "AdaptiveLogSoftmaxWithLoss: Input and target should have the same size in the "
                f"batch dimension, got {list(input_.shape)} and {list(target_.shape)}"
            )
        if is_known(target._array) and ((target < 0) | (target >= self.n_classes)).any():
            raise OutOfBoundsError(
                f"AdaptiveLogSoftmaxWithLoss: Target values should be in [0, {self.n_classes - 1}]"
            )
        head = F.log_softmax(self.head(x), 1)
        entry, within = target, zeros(target.shape, dtype=x.dtype, device=x.device)
        for i, (start, stop) in enumerate(pairwise(self.cutoffs)):
            here = (target >= start) & (target < stop)
            entry = where(here, self.shortlist_size + i, entry)
            rows = here.nonzero().squeeze(1)
            if len(rows):
                of_group = F.log_softmax(self.tail[i](x.index_select(0, rows)), 1)
                chosen = target.index_select(0, rows) - start
                values = of_group.gather(1, chosen.unsqueeze(1)).squeeze(1)
                within = within.index_add(0, rows, values)
        output = head.gather(1, entry.unsqueeze(1)).squeeze(1) + within
        return AdaptiveLogSoftmaxOutput(output if batched else output[0], -output.mean())

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the logarithms of the probabilities of all classes, of shape (n, n_classes)."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, group in enumerate(self.tail):
            entry = self.shortlist_size + i
            parts.append(F.log_softmax(group(input), 1) + head[:, entry : entry + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the class of the greatest probability, of shape (n,)."""
        return self.log_prob(input).argmax(1)
