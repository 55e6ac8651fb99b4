"""Maximum pooling; `pool_pick` and `pool_place` are each other's adjoint.

`window` is (kernel, stride, padding, dilation); `size` is that of the images.
"""

from __future__ import annotations

from typing import Any

from chainrule.primitives.primitive import constant, general, use_kernel

Array = Any


@use_kernel
def _max_pool_vjp(xp: Any, g: Array, x: Array, out: Array, *, window: Any) -> Array:
    positions = xp.pool_positions(x, out, window=window)
    return xp.pool_place(g, positions, size=tuple(x.shape[2:]), window=window)


def _max_pool_jvp(xp: Any, t: Array, x: Array, out: Array, *, window: Any) -> Array:
    return xp.pool_pick(t, xp.pool_positions(x, out, window=window), window=window)


max_pool = general(
    "max_pool",
    lambda xp, x, *, window: xp.max_pool(x, window=window),
    vjp=(lambda xp, g, x, out, *, window: _max_pool_vjp(xp, g, x, out, window=window),),
    jvp=(_max_pool_jvp,),
    label="MaxPoolBackward0",
)

pool_positions = constant(
    "pool_positions", forward=lambda xp, x, out, *, window: xp.pool_positions(x, out, window=window)
)

pool_pick = general(
    "pool_pick",
    lambda xp, x, positions, *, window: xp.pool_pick(x, positions, window=window),
    vjp=(
        lambda xp, g, positions, x_shape, *, window: xp.pool_place(
            g, positions, size=tuple(x_shape[2:]), window=window
        ),
        None,
    ),
    jvp=(lambda xp, t, positions, *, window: xp.pool_pick(t, positions, window=window), None),
    broadcasts=False,
)

pool_place = general(
    "pool_place",
    lambda xp, x, positions, *, size, window: xp.pool_place(x, positions, size=size, window=window),
    vjp=(lambda xp, g, positions, *, window: xp.pool_pick(g, positions, window=window), None),
    jvp=(
        lambda xp, t, positions, *, size, window: xp.pool_place(
            t, positions, size=size, window=window
        ),
        None,
    ),
    broadcasts=False,
)
