"""Convolution: three primitives, the partial derivatives of one trilinear form.

The form is Σ y[i] w[k] x[stride i + dilation k - padding], linear in image x, kernel w and output
y. Each primitive is its derivative by one of the three arrays, so the derivatives of each are the
two others, to any order. `window` is (stride, padding, dilation, groups); `size` is that of the
result, without samples and channels. Padding is a pair for each dimension, before and after.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import general

Array = Any


convolve = general(
    "convolve",
    lambda xp, x, w, *, window: xp.convolve(x, w, window=window),
    vjp=(
        lambda xp, g, w, x_shape, *, window: xp.convolve_input(
            g, w, size=x_shape[2:], window=window
        ),
        lambda xp, g, x, w_shape, *, window: xp.convolve_weight(
            x, g, size=w_shape[2:], window=window
        ),
    ),
    jvp=(
        lambda xp, t, w, *, window: xp.convolve(t, w, window=window),
        lambda xp, t, x, *, window: xp.convolve(x, t, window=window),
    ),
    label="ConvolutionBackward0",
    broadcasts=False,
    series="product",
)

convolve_input = general(
    "convolve_input",
    lambda xp, y, w, *, size, window: xp.convolve_input(y, w, size=size, window=window),
    vjp=(
        lambda xp, g, w, *, window: xp.convolve(g, w, window=window),
        lambda xp, g, y, w_shape, *, window: xp.convolve_weight(
            g, y, size=w_shape[2:], window=window
        ),
    ),
    jvp=(
        lambda xp, t, w, *, size, window: xp.convolve_input(t, w, size=size, window=window),
        lambda xp, t, y, *, size, window: xp.convolve_input(y, t, size=size, window=window),
    ),
    label="ConvolutionBackward0",
    broadcasts=False,
    series="product",
)

convolve_weight = general(
    "convolve_weight",
    lambda xp, x, y, *, size, window: xp.convolve_weight(x, y, size=size, window=window),
    vjp=(
        lambda xp, g, y, x_shape, *, window: xp.convolve_input(
            y, g, size=x_shape[2:], window=window
        ),
        lambda xp, g, x, *, window: xp.convolve(x, g, window=window),
    ),
    jvp=(
        lambda xp, t, y, *, size, window: xp.convolve_weight(t, y, size=size, window=window),
        lambda xp, t, x, *, size, window: xp.convolve_weight(x, t, size=size, window=window),
    ),
    broadcasts=False,
    series="product",
)
