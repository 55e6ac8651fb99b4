"""Layers with arguments and input shapes: the table of the tests of `nn`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A layer, its arguments, and the shapes of its inputs, or functions that draw them."""

    layer: str
    args: tuple[Any, ...] = ()
    inputs: tuple[Any, ...] = ((3, 4),)
    kwargs: dict[str, Any] = field(default_factory=dict)
    train: bool = False

    def __str__(self) -> str:
        args = [*map(str, self.args), *(f"{k}={v}" for k, v in self.kwargs.items())]
        return f"{self.layer}({', '.join(args)}){'train' if self.train else ''}"


def case(layer: str, *args: Any, x: Any = ((3, 4),), train: bool = False, **kwargs: Any) -> Case:
    return Case(layer, args, x, kwargs, train)


def classes(n: int, *shape: int) -> Any:
    return lambda rng: rng.integers(0, n, shape)


def signs(*shape: int) -> Any:
    return lambda rng: rng.choice([-1.0, 1.0], shape)


def chances(*shape: int) -> Any:
    return lambda rng: rng.uniform(0.1, 0.9, shape)


def logs(*shape: int) -> Any:
    return lambda rng: np.log(rng.dirichlet(np.ones(shape[-1]), shape[:-1]))


def mask(*shape: int) -> Any:
    return lambda rng: np.triu(np.ones(shape, bool), 1)


ACTIVATIONS = [
    *(
        case(name)
        for name in ["CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh"]
    ),
    *(
        case(name)
        for name in ["LeakyReLU", "LogSigmoid", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU"]
    ),
    *(
        case(name)
        for name in ["SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink"]
    ),
    *(case(name, dim=1) for name in ["LogSoftmax", "Softmax", "Softmin"]),
    *(case(name, 0.7) for name in ["CELU", "ELU", "Hardshrink", "LeakyReLU", "Softshrink"]),
    *(case(name, inplace=True) for name in ["ReLU", "ReLU6", "SiLU", "Mish", "ELU", "LeakyReLU"]),
    case("GELU", approximate="tanh"),
    case("GLU"),
    case("GLU", 0, x=((4, 2),)),
    case("Hardtanh", -0.5, 0.6),
    case("PReLU", 4, init=0.1),
    case("RReLU", 0.2, 0.4),
    case("Softmax2d", x=((2, 3, 4, 2),)),
    case("Softplus", 2.0, 1.0),
    case("Threshold", 0.1, 20),
]
LINEAR = [
    case("Identity", 5),
    case("Linear", 4, 2),
    case("Linear", 4, 2, bias=False, x=((2, 3, 4),)),
    case("Bilinear", 4, 3, 2, x=((5, 4), (5, 3))),
]
CONVOLUTIONS = [
    case("Conv1d", 2, 4, 3, x=((2, 2, 7),)),
    case("Conv1d", 2, 4, 3, stride=2, padding=1, dilation=2, groups=2, x=((2, 2, 9),)),
    case("Conv1d", 2, 3, 3, padding=2, padding_mode="circular", x=((2, 2, 7),)),
    case("Conv2d", 2, 3, 3, x=((2, 2, 5, 6),)),
    case("Conv2d", 2, 3, (3, 2), padding="same", bias=False, x=((2, 2, 5, 6),)),
    case("Conv2d", 2, 3, 3, padding="same", padding_mode="reflect", x=((2, 2, 5, 6),)),
    case("Conv2d", 2, 3, 3, padding="valid", padding_mode="replicate", x=((2, 2, 5, 6),)),
    case("Conv2d", 2, 3, 3, padding=(1, 2), padding_mode="reflect", x=((2, 5, 6),)),
    case("Conv3d", 1, 2, 2, x=((2, 1, 3, 4, 3),)),
    case("ConvTranspose1d", 2, 4, 3, stride=2, x=((2, 2, 5),)),
    case("ConvTranspose2d", 2, 4, 3, 2, 1, 1, groups=2, x=((2, 2, 4, 3),)),
    case("ConvTranspose3d", 1, 2, 2, x=((1, 1, 3, 2, 3),)),
]
POOLING = [
    case("MaxPool1d", 3, x=((2, 3, 8),)),
    case("MaxPool2d", 2, x=((2, 3, 6, 4),)),
    case("MaxPool2d", 3, stride=2, padding=1, ceil_mode=True, x=((2, 3, 6, 5),)),
    case("MaxPool3d", 2, x=((2, 1, 4, 4, 4),)),
    case("AvgPool1d", 3, 2, 1, x=((2, 3, 8),)),
    case("AvgPool2d", (3, 2), stride=(2, 1), count_include_pad=False, x=((2, 3, 6, 5),)),
    case("AvgPool3d", 2, x=((2, 1, 4, 4, 4),)),
    case("LPPool1d", 2, 3, x=((2, 3, 8),)),
    case("LPPool2d", 2, 2, stride=1, x=((2, 3, 5, 4),)),
    case("LPPool3d", 2, 2, x=((2, 1, 4, 4, 4),)),
    case("AdaptiveAvgPool1d", 3, x=((2, 3, 8),)),
    case("AdaptiveAvgPool2d", (2, None), x=((2, 3, 5, 4),)),
    case("AdaptiveAvgPool3d", 1, x=((2, 1, 4, 4, 4),)),
    case("AdaptiveMaxPool1d", 3, x=((2, 3, 8),)),
    case("AdaptiveMaxPool2d", 2, x=((2, 3, 5, 4),)),
    case("AdaptiveMaxPool3d", 1, x=((2, 1, 4, 4, 4),)),
    case("MaxUnpool1d", 2, x=((1, 1, 2), lambda rng: np.array([[[1, 2]]]))),
    case("MaxUnpool2d", 2, x=((1, 1, 1, 2), lambda rng: np.array([[[[1, 6]]]]))),
    case("MaxUnpool3d", 2, x=((1, 1, 1, 1, 1), lambda rng: np.array([[[[[3]]]]]))),
]
NORMALIZATION = [
    *(
        case(f"BatchNorm{n}d", 3, train=train, x=((4, 3, *(2,) * n),))
        for n in (1, 2, 3)
        for train in (True, False)
    ),
    case("BatchNorm1d", 3, train=True, x=((4, 3),)),
    case("BatchNorm1d", 3, affine=False, momentum=None, train=True, x=((4, 3),)),
    case("BatchNorm1d", 3, track_running_stats=False, x=((4, 3),)),
    *(case(f"InstanceNorm{n}d", 3, x=((2, 3, *(4,) * n),)) for n in (1, 2, 3)),
    case("InstanceNorm1d", 3, affine=True, track_running_stats=True, train=True, x=((2, 3, 4),)),
    case("InstanceNorm2d", 3, affine=True, track_running_stats=True, x=((3, 4, 2),)),
    case("GroupNorm", 2, 4, x=((3, 4, 5),)),
    case("GroupNorm", 2, 4, affine=False, x=((3, 4, 5),)),
    case("LayerNorm", 4),
    case("LayerNorm", (3, 4), eps=0.1, bias=False, x=((2, 3, 4),)),
    case("LayerNorm", 4, elementwise_affine=False),
    case("RMSNorm", 4),
    case("RMSNorm", (4,), eps=0.1, elementwise_affine=False),
    case("LocalResponseNorm", 2, x=((2, 4, 3),)),
]
SHAPES = [
    case("Flatten", x=((2, 3, 4),)),
    case("Flatten", 0, 1, x=((2, 3, 4),)),
    case("Unflatten", 1, (2, 2)),
    case("Fold", (4, 5), (2, 2), x=((1, 8, 12),)),
    case("Unfold", (2, 2), padding=1, x=((1, 2, 4, 5),)),
    case("PixelShuffle", 2, x=((1, 8, 2, 3),)),
    case("PixelUnshuffle", 2, x=((1, 2, 4, 6),)),
    case("ChannelShuffle", 2, x=((1, 4, 2, 2),)),
    case("Upsample", scale_factor=2, x=((1, 2, 3),)),
    case("Upsample", size=(5, 6), mode="bilinear", x=((1, 2, 3, 4),)),
    case("UpsamplingNearest2d", scale_factor=2, x=((1, 2, 3, 4),)),
    case("UpsamplingBilinear2d", size=(5, 6), x=((1, 2, 3, 4),)),
    case("CosineSimilarity", x=((3, 4), (3, 4))),
    case("PairwiseDistance", keepdim=True, x=((3, 4), (3, 4))),
    *(
        case(name, 0.3, x=((2, 3, 2, 2),))
        for name in ["Dropout", "Dropout2d", "Dropout3d", "AlphaDropout"]
    ),
    case("Dropout1d", inplace=True, x=((2, 3, 2),)),
    case("FeatureAlphaDropout", inplace=True),
    *(
        case(f"{kind}Pad{n}d", 1, *value, x=((2, 3, *(3,) * n),))
        for kind, value in [
            ("Zero", ()),
            ("Constant", (3.5,)),
            ("Reflection", ()),
            ("Replication", ()),
            ("Circular", ()),
        ]
        for n in (1, 2, 3)
    ),
    case("ZeroPad2d", (1, 0, 2, 1), x=((2, 3, 3, 3),)),
]
LOSSES = [
    case("AdaptiveLogSoftmaxWithLoss", 8, 20, [5, 10], div_value=2, x=((6, 8), classes(20, 6))),
    case("AdaptiveLogSoftmaxWithLoss", 8, 9, [3], head_bias=True, x=((4, 8), classes(9, 4))),
    *(
        case(name, **reduction, x=((3, 4), (3, 4)))
        for name in ["L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"]
        for reduction in ({}, {"reduction": "sum"}, {"reduction": "none"})
    ),
    *(
        case("MSELoss", size_average=mean, reduce=reduce, x=((3, 4), (3, 4)))
        for mean in (None, True, False)
        for reduce in (None, True, False)
    ),
    case("BCELoss", x=(chances(3, 4), chances(3, 4))),
    case("BCEWithLogitsLoss", x=((3, 4), chances(3, 4))),
    case("CrossEntropyLoss", x=((3, 4), classes(4, 3))),
    case("LinearCrossEntropyLoss", 3, 4, bias=True, x=((5, 3), classes(4, 5))),
    case("LinearCrossEntropyLoss", 3, 4, ignore_index=1, x=((3,), classes(4))),
    case(
        "LinearCrossEntropyLoss",
        3,
        4,
        out_features=(2,),
        bias=True,
        reduction="none",
        label_smoothing=0.1,
        x=((5, 3), classes(4, 5, 2)),
    ),
    case("CrossEntropyLoss", label_smoothing=0.1, ignore_index=1, x=((5, 4), classes(4, 5))),
    case("NLLLoss", x=(logs(3, 4), classes(4, 3))),
    case("KLDivLoss", reduction="batchmean", x=(logs(3, 4), chances(3, 4))),
    case("PoissonNLLLoss", x=((3, 4), chances(3, 4))),
    case("GaussianNLLLoss", x=((3, 4), (3, 4), chances(3, 4))),
    case("HingeEmbeddingLoss", x=((3, 4), signs(3, 4))),
    case("SoftMarginLoss", x=((3, 4), signs(3, 4))),
    case("CosineEmbeddingLoss", 0.2, x=((3, 4), (3, 4), signs(3))),
    case("MarginRankingLoss", 0.2, x=((3,), (3,), signs(3))),
    case("MultiLabelMarginLoss", x=((2, 3), lambda rng: np.array([[1, 0, -1], [2, -1, 0]]))),
    case("MultiLabelSoftMarginLoss", x=((3, 4), lambda rng: rng.integers(0, 2, (3, 4)) * 1.0)),
    case("MultiMarginLoss", x=((3, 4), classes(4, 3))),
    case("TripletMarginLoss", x=((3, 4), (3, 4), (3, 4))),
    case("TripletMarginWithDistanceLoss", swap=True, x=((3, 4), (3, 4), (3, 4))),
    case(
        "CTCLoss",
        x=(
            logs(6, 2, 4),
            lambda rng: rng.integers(1, 4, (2, 3)),
            lambda rng: np.array([6, 5]),
            lambda rng: np.array([3, 2]),
        ),
    ),
]
EMBEDDINGS = [
    case("Embedding", 6, 3, x=(classes(6, 2, 4),)),
    case("Embedding", 6, 3, padding_idx=-2, scale_grad_by_freq=True, x=(classes(6, 2, 4),)),
    case("EmbeddingBag", 6, 3, x=(classes(6, 2, 4),)),
    case("EmbeddingBag", 6, 3, mode="sum", padding_idx=1, x=(classes(6, 2, 4),)),
    case("EmbeddingBag", 6, 3, mode="max", x=(classes(6, 7), lambda rng: np.array([0, 3]))),
]
RECURRENT = [
    *(
        case(name, 3, 5, x=((4, 2, 3),), **kwargs)
        for name in ["RNN", "LSTM", "GRU"]
        for kwargs in (
            {},
            {"num_layers": 2, "bidirectional": True},
            {"batch_first": True, "bias": False},
        )
    ),
    case("RNN", 3, 5, nonlinearity="relu", x=((4, 2, 3),)),
    case("RNN", 3, 5, 2, x=((4, 3), (2, 5))),
    case("GRU", 3, 5, x=((4, 2, 3), (1, 2, 5))),
    case("LSTM", 3, 5, 2, dropout=0.2, proj_size=2, x=((4, 2, 3),)),
    case("RNNCell", 3, 5, x=((2, 3),)),
    case("RNNCell", 3, 5, bias=False, nonlinearity="relu", x=((2, 3), (2, 5))),
    case("LSTMCell", 3, 5, x=((2, 3),)),
    case("GRUCell", 3, 5, x=((3,), (5,))),
]
_LAYER = {"dim_feedforward": 6, "dropout": 0.1}
ATTENTION = [
    case("MultiheadAttention", 4, 2, x=((3, 2, 4),) * 3),
    case("MultiheadAttention", 4, 2, kdim=3, vdim=5, x=((3, 2, 4), (4, 2, 3), (4, 2, 5))),
    case("MultiheadAttention", 4, 2, bias=False, batch_first=True, x=((3, 2, 4),) * 3),
    case("MultiheadAttention", 4, 2, add_bias_kv=True, add_zero_attn=True, x=((3, 2, 4),) * 3),
    case("MultiheadAttention", 4, 2, x=((3, 4),) * 3),
    case("TransformerEncoderLayer", 4, 2, **_LAYER, x=((3, 2, 4),)),
    case("TransformerEncoderLayer", 4, 2, **_LAYER, activation="gelu", x=((3, 2, 4), mask(3, 3))),
    case("TransformerEncoderLayer", 4, 2, 6, norm_first=True, batch_first=True, x=((2, 3, 4),)),
    case("TransformerDecoderLayer", 4, 2, **_LAYER, x=((3, 2, 4), (5, 2, 4), mask(3, 3))),
    case("Transformer", 4, 2, 2, 1, **_LAYER, x=((3, 2, 4), (4, 2, 4))),
]
CASES = [
    *(*ACTIVATIONS, *LINEAR, *CONVOLUTIONS, *POOLING, *NORMALIZATION, *SHAPES),
    *(*LOSSES, *EMBEDDINGS, *RECURRENT, *ATTENTION),
]


LABELED = {c.layer for c in LOSSES if not all(isinstance(x, tuple) for x in c.inputs)} - {
    "CosineEmbeddingLoss"
}


def draw(specification: Any, rng: Any, dtype: str) -> Any:
    values = specification(rng) if callable(specification) else rng.normal(size=specification)
    return values.astype(dtype) if values.dtype.kind == "f" else values


def outputs(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [each for part in result for each in outputs(part)]
    return [] if result is None else [result]
