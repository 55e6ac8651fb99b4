"""Max pooling: values, positions of the maxima, and gather and scatter at these positions.

A window is (kernel, stride, padding, dilation); padding after an image may be negative, if the last
windows do not reach its end. Python loops run over the elements of a kernel only, and the maximum
is separable: it is computed one dimension after the other.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

from chainrule.kernels.parallel import parallel_fill

Array = Any
Sizes = tuple[int, ...]
Window = tuple[Sizes, Sizes, tuple[tuple[int, int], ...], Sizes]


def max_pool(xp: Any, x: Array, *, window: Window) -> Array:
    """Return the maximum of each window; nan if the window contains one."""
    kernel, stride, _, dilation = window
    counts = window_counts(x.shape[2:], window)
    out = padded(xp, x, window, -math.inf)
    for axis, (k, s, d, n) in enumerate(zip(kernel, stride, dilation, counts, strict=True), 2):
        lead = (slice(None),) * axis
        first, *others = [out[(*lead, slice(j * d, j * d + s * (n - 1) + 1, s))] for j in range(k)]
        out = xp.maximum(first, others[0]) if others else first
        for other in others[1:]:
            xp.maximum(out, other, out=out)
    return out.copy() if max(kernel) == 1 else out


def pool_positions(xp: Any, x: Array, out: Array, *, window: Window) -> Array:
    """Return the position of the maximum in each window: the first one, or the last nan."""
    count = math.prod(window[0])
    found = xp.zeros(out.shape, xp.uint8 if count <= 256 else xp.int32)
    unmatched = xp.ones(out.shape, bool)
    # The padding is nan, which equals nothing.
    for window_view in itertools.islice(
        _views_by_position(padded(xp, x, window, math.nan), out, window), count - 1
    ):
        unmatched &= window_view != out
        found += unmatched
    if getattr(xp, "waits", False) or (out != out).any():
        for k, window_view in enumerate(
            _views_by_position(padded(xp, x, window, 0.0), out, window)
        ):
            xp.copyto(found, k, where=window_view != window_view)
    return found


def pool_pick(xp: Any, x: Array, positions: Array, *, window: Window) -> Array:
    """Gather `x` at these positions of its windows."""
    out = xp.zeros(positions.shape, x.dtype)
    for k, window_view in enumerate(_views_by_position(padded(xp, x, window, 0.0), out, window)):
        xp.copyto(out, window_view, where=positions == k)
    return out


def pool_place(xp: Any, g: Array, positions: Array, *, size: Sizes, window: Window) -> Array:
    """Scatter-add `g` at its positions into images of this size: the adjoint of `pool_pick`."""
    kernel, stride, padding, dilation = window
    padded_size = [n + low + max(high, 0) for n, (low, high) in zip(size, padding, strict=True)]
    out = xp.zeros((*g.shape[:2], *padded_size), g.dtype)
    disjoint = all([d == 1 and s >= k for k, s, d in zip(kernel, stride, dilation, strict=True)])
    bits = g.view(f"i{g.itemsize}")
    for k, window_view in enumerate(_views_by_position(out, g, window)):
        selected = xp.multiply(bits, positions == k).view(g.dtype)  # cannot make 0 * inf
        if disjoint:
            window_view[...] = selected
        else:
            xp.add(window_view, selected, out=window_view)
    inside = [slice(low, low + n) for n, (low, _) in zip(size, padding, strict=True)]
    return xp.ascontiguousarray(out[(..., *inside)])


def max_pool_vjp(xp: Any, g: Array, x: Array, out: Array, *, window: Window) -> Array:
    """Return `pool_place` of `g` at `pool_positions`, without storing the positions."""
    if out.size == 0 or (top := out.max()) != top:  # nan
        positions = pool_positions(xp, x, out, window=window)
        return pool_place(xp, g, positions, size=x.shape[2:], window=window)
    wide = padded(xp, x, window, math.nan)  # nan equals nothing
    total = xp.zeros(wide.shape, g.dtype)
    parallel_fill(_scatter_gradient, xp, (total, wide, g, out), {"window": window}, by_rows=True)
    if wide is x:
        return total
    inside = [slice(low, low + n) for n, (low, _) in zip(x.shape[2:], window[2], strict=True)]
    return xp.ascontiguousarray(total[(..., *inside)])


def _scatter_gradient(
    xp: Any, total: Array, x: Array, g: Array, out: Array, *, window: Window
) -> None:
    kernel, stride, _, dilation = window
    disjoint = all([d == 1 and s >= k for k, s, d in zip(kernel, stride, dilation, strict=True)])
    integer = f"i{g.itemsize}"
    bits, last = g.view(integer), math.prod(kernel) - 1
    unmatched = xp.ones(out.shape, bool)
    pairs = zip(
        _views_by_position(x, out, window), _views_by_position(total, out, window), strict=True
    )
    for k, (window_view, target) in enumerate(pairs):
        if k < last:
            hit = window_view == out
            hit &= unmatched
            unmatched ^= hit
        else:
            hit = unmatched
        if disjoint:
            xp.multiply(bits, hit, out=target.view(integer))  # cannot make 0 * inf
        else:
            xp.add(target, xp.multiply(bits, hit).view(g.dtype), out=target)


def window_counts(size: Sizes, window: Window) -> Sizes:
    """Return the number of windows in each dimension."""
    return tuple(
        [
            (n + sum(pads) - d * (k - 1) - 1) // s + 1
            for n, k, s, pads, d in zip(size, *window, strict=True)
        ]
    )


def padded(xp: Any, x: Array, window: Window, value: float) -> Array:
    padding = window[2]
    if all([low == 0 >= high for low, high in padding]):
        return x
    sizes = list(zip(x.shape[2:], padding, strict=True))
    padded_size = [n + low + max(high, 0) for n, (low, high) in sizes]
    out = xp.full((*x.shape[:2], *padded_size), value, x.dtype)
    out[(..., *[slice(low, low + n) for n, (low, _) in sizes])] = x
    return out


def _views_by_position(x: Array, out: Array, window: Window) -> Iterator[Array]:
    """Yield for each position of the kernel a view of the padded images at all windows."""
    for key in _keys_by_position(out.shape[2:], window):
        yield x[key]


@functools.lru_cache(32)
def _keys_by_position(counts: Sizes, window: Window) -> list[tuple[Any, ...]]:
    kernel, stride, _, dilation = window
    keys: list[tuple[Any, ...]] = []
    for position in itertools.product(*map(range, kernel)):
        axes = zip(position, dilation, stride, counts, strict=True)
        keys.append((..., *[slice(j * d, j * d + s * (n - 1) + 1, s) for j, d, s, n in axes]))
    return keys
