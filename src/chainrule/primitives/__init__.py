"""What is differentiable: the table of primitives. Arrays are seen only through `xp`."""

from chainrule.primitives import (
    activations,
    contraction,
    convolution,
    distances,
    elementwise,
    fourier,
    indexing,
    losses,
    normalisation,
    norms,
    pairs,
    pooling,
    reductions,
    resampling,
    shaping,
    special,
)
from chainrule.primitives.primitive import TABLE, Primitive

__all__ = [
    "TABLE",
    "Primitive",
    "activations",
    "contraction",
    "convolution",
    "distances",
    "elementwise",
    "fourier",
    "indexing",
    "losses",
    "normalisation",
    "norms",
    "pairs",
    "pooling",
    "reductions",
    "resampling",
    "shaping",
    "special",
]
