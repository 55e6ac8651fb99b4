"""Sparse linear maps along one axis, each the transpose of another."""

from __future__ import annotations

from chainrule.primitives.primitive import linear

resample = linear(
    "resample",
    lambda xp, g, *, taps, axis: xp.resample(g, taps=taps.transposed, axis=axis),
    forward=lambda xp, x, *, taps, axis: xp.resample(x, taps=taps, axis=axis),
)
