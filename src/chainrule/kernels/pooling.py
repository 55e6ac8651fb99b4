"""The largest number in each window of images: where it is, and what passes there and back.

A window is told by (kernel, stride, padding, dilation); padding behind an image may be negative,
where the last windows leave something over. Python loops run over the positions in a kernel alone,
and the maximum itself is taken one dimension after the other.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from chainrule.kernels.parallel import share

Array = Any
Sizes = tuple[int, ...]
Window = tuple[Sizes, Sizes, tuple[tuple[int, int], ...], Sizes]


def max_pool(xp: Any, x: Array, *, window: Window) -> Array:
    """Return the largest number in each window; nan where there is one."""
    kernel, stride, _, dilation = window
    counts = _counts(x.shape[2:], window)
    out = _padded(xp, x, window, -math.inf)
    for axis, (k, s, d, n) in enumerate(zip(kernel, stride, dilation, counts, strict=True), 2):
        lead = (slice(None),) * axis
        first, *others = [out[(*lead, slice(j * d, j * d + s * (n - 1) + 1, s))] for j in range(k)]
        out = xp.maximum(first, others[0]) if others else first
        for other in others[1:]:
            xp.maximum(out, other, out=out)
    return out.copy() if max(kernel) == 1 else out


def pool_positions(xp: Any, x: Array, out: Array, *, window: Window) -> Array:
    """Return which position of its kernel holds the largest number: the first, or the last nan."""
    count = math.prod(window[0])
    found = xp.zeros(out.shape, xp.uint8 if count <= 256 else xp.int32)
    missed = xp.ones(out.shape, bool)
    # What lies in the padding is nan here, which equals nothing.
    for part in itertools.islice(_parts(_padded(xp, x, window, math.nan), out, window), count - 1):
        missed &= part != out
        found += missed
    if (out != out).any():
        for k, part in enumerate(_parts(_padded(xp, x, window, 0.0), out, window)):
            found[part != part] = k
    return found


def pool_pick(xp: Any, x: Array, positions: Array, *, window: Window) -> Array:
    """Return what `x` holds at these positions of its windows."""
    out = xp.zeros(positions.shape, x.dtype)
    for k, part in enumerate(_parts(_padded(xp, x, window, 0.0), out, window)):
        xp.copyto(out, part, where=positions == k)
    return out


def pool_place(xp: Any, g: Array, positions: Array, *, size: Sizes, window: Window) -> Array:
    """Return images of this size with `g` added at its positions: adjoint to `pool_pick`."""
    kernel, stride, padding, dilation = window
    room = [n + low + max(high, 0) for n, (low, high) in zip(size, padding, strict=True)]
    out = xp.zeros((*g.shape[:2], *room), g.dtype)
    apart = all([d == 1 and s >= k for k, s, d in zip(kernel, stride, dilation, strict=True)])
    bits = g.view(f"i{g.itemsize}")
    for k, part in enumerate(_parts(out, g, window)):
        chosen = xp.multiply(bits, positions == k).view(g.dtype)  # cannot make 0 * inf
        if apart:
            part[...] = chosen
        else:
            xp.add(part, chosen, out=part)
    inside = [slice(low, low + n) for n, (low, _) in zip(size, padding, strict=True)]
    return xp.ascontiguousarray(out[(..., *inside)])


def max_pool_vjp(xp: Any, g: Array, x: Array, out: Array, *, window: Window) -> Array:
    """Return `pool_place` of `g` at `pool_positions`, which are never written down."""
    if out.size == 0 or (top := out.max()) != top:  # nan
        positions = pool_positions(xp, x, out, window=window)
        return pool_place(xp, g, positions, size=x.shape[2:], window=window)
    padded = _padded(xp, x, window, math.nan)  # nan equals nothing
    total = xp.zeros(padded.shape, g.dtype)
    share(_distribute, xp, (total, padded, g, out), {"window": window}, by_rows=True)
    if padded is x:
        return total
    inside = [slice(low, low + n) for n, (low, _) in zip(x.shape[2:], window[2], strict=True)]
    return xp.ascontiguousarray(total[(..., *inside)])


def _distribute(xp: Any, total: Array, x: Array, g: Array, out: Array, *, window: Window) -> None:
    kernel, stride, _, dilation = window
    apart = all([d == 1 and s >= k for k, s, d in zip(kernel, stride, dilation, strict=True)])
    integer = f"i{g.itemsize}"
    bits, last = g.view(integer), math.prod(kernel) - 1
    missed = xp.ones(out.shape, bool)
    pairs = zip(_parts(x, out, window), _parts(total, out, window), strict=True)
    for k, (part, place) in enumerate(pairs):
        if k < last:
            hit = part == out
            hit &= missed
            missed ^= hit
        else:
            hit = missed
        if apart:
            xp.multiply(bits, hit, out=place.view(integer))  # cannot make 0 * inf
        else:
            xp.add(place, xp.multiply(bits, hit).view(g.dtype), out=place)


def _counts(size: Sizes, window: Window) -> Sizes:
    """Return how many windows there are in each dimension."""
    return tuple(
        [
            (n + sum(pads) - d * (k - 1) - 1) // s + 1
            for n, k, s, pads, d in zip(size, *window, strict=True)
        ]
    )


def _padded(xp: Any, x: Array, window: Window, value: float) -> Array:
    padding = window[2]
    if all([low == 0 >= high for low, high in padding]):
        return x
    sizes = list(zip(x.shape[2:], padding, strict=True))
    room = [n + low + max(high, 0) for n, (low, high) in sizes]
    out = xp.full((*x.shape[:2], *room), value, x.dtype)
    out[(..., *[slice(low, low + n) for n, (low, _) in sizes])] = x
    return out


def _parts(x: Array, out: Array, window: Window) -> Iterator[Array]:
    """Yield views of padded images: what all windows have at each position of the kernel."""
    kernel, stride, _, dilation = window
    spans = [s * (n - 1) + 1 for s, n in zip(stride, out.shape[2:], strict=True)]
    for position in itertools.product(*map(range, kernel)):
        starts = [j * d for j, d in zip(position, dilation, strict=True)]
        steps = zip(starts, spans, stride, strict=True)
        yield x[(..., *[slice(start, start + span, s) for start, span, s in steps])]
