"""Primitives: the differentiable operations. They compute on arrays through `xp` alone."""

from chainrule.primitives import (
    activations,
    binary,
    contraction,
    convolution,
    distances,
    elementwise,
    fourier,
    indexing,
    losses,
    normalisation,
    norms,
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
    "binary",
    "contraction",
    "convolution",
    "distances",
    "elementwise",
    "fourier",
    "indexing",
    "losses",
    "normalisation",
    "norms",
    "pooling",
    "reductions",
    "resampling",
    "shaping",
    "special",
]
