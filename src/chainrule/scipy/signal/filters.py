"""Digital filters, along one axis, with derivatives by signals, coefficients and states."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.errors import ArgumentError, ShapeError
from chainrule.interop.operands import arrays_of
from chainrule.linalg import solve
from chainrule.primitives.indexing import index as index_primitive
from chainrule.primitives.primitive import Primitive, applied, general
from chainrule.scipy.operands import inexact
from chainrule.scipy.signal.arguments import TABLE, axis_last, padded, vector
from chainrule.scipy.signal.convolutions import direct

Array = Any

# --- the recursion y[n] + a[0] y[n - 1] + a[1] y[n - 2] + … = v[n], for v in rows -----------------


def _part(xp: Any, x: Array, part: slice) -> Array:
    return applied(index_primitive, xp)(x, key=(slice(None), part))


_REVERSED = slice(None, None, -1)


def _delayed(xp: Any, x: Array, steps: int) -> Array:
    """Return rows with zeros before them, and as many samples less at their ends."""
    rest = _part(xp, x, slice(0, x.shape[1] - steps))
    return xp.index_add(rest, shape=x.shape, key=(slice(None), slice(steps, None)))


def _recursion_vjp(
    xp: Any, g: Array, a: Array, out: Array, needs: tuple[bool, ...]
) -> tuple[Array | None, Array | None]:
    back = _part(xp, applied(recursion, xp)(a, _part(xp, g, _REVERSED)), _REVERSED)
    if not needs[0]:
        return None, back
    n = out.shape[1]
    sums = [
        xp.sum(_part(xp, back, slice(k, None)) * _part(xp, out, slice(0, n - k)))
        for k in range(1, a.shape[0] + 1)
    ]
    return -xp.stack(sums, axis=0), back if needs[1] else None


def _recursion_jvp(xp: Any, t: Array, a: Array, out: Array) -> Array:
    parts = [
        applied(index_primitive, xp)(t, key=(k,)) * _delayed(xp, out, k + 1)
        for k in range(a.shape[0])
    ]
    return -applied(recursion, xp)(a, sum(parts[1:], parts[0]))


recursion: Primitive = general(
    "scipy_lfilter",
    lambda xp, a, v: xp.scipy_linalg(a, v, routine="lfilter"),
    vjp=_recursion_vjp,
    jvp=(_recursion_jvp, lambda xp, t, a: applied(recursion, xp)(a, t)),
    broadcasts=False,
)


# --- with the axis of time last -------------------------------------------------------------------


def _with_feedback(a: Tensor, v: Tensor) -> Tensor:
    """Return the y with y[n] + a[1] y[n - 1] + a[2] y[n - 2] + … = v[n], for a[0] = 1."""
    n = v.shape[-1]
    rows = ops.reshape(v, (-1, n))
    return ops.reshape(recursion.apply(a[1 : max(n, 2)], rows), v.shape)


def _filtered(b: Tensor, a: Tensor, x: Tensor, zi: Tensor | None) -> tuple[Tensor, Any]:
    """Return the filtered signal and, for states before it, those after it."""
    b, a = b / a[0], a / a[0]
    n, states = x.shape[-1], max(a.shape[0], b.shape[0]) - 1
    size = n if zi is None else n + states
    moving = direct(padded(x, 0, max(size + 1 - n - b.shape[0], 0)), b, [(0, size)], 1)
    if zi is None:
        return _with_feedback(a, moving) if a.shape[0] > 1 else moving, None
    moving = moving + padded(zi, 0, n)
    y = _with_feedback(a, moving[..., :n]) if a.shape[0] > 1 else moving[..., :n]
    rest = direct(padded(y, 0, states), a, [(n, states)], 1) if states else moving[..., n:]
    return y, moving[..., n:] - rest


# --- SciPy's functions ----------------------------------------------------------------------------


def _coefficients(name: str, b: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    b, a = vector(name, "b", b), vector(name, "a", a)
    if holds_somewhere((a[0] == 0)._array):
        raise ArgumentError(f"{name}: a[0] must not be 0: leave out the zeros in front")
    return b, a


@TABLE.function("lfilter", "composite")
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Return a signal filtered by the coefficients `b` and `a`; with `zi`, the last states, too."""
    b, a, x, *given = inexact("lfilter", b, a, x, *([] if zi is None else [zi]))
    b, a = _coefficients("lfilter", b, a)
    x = axis_last("lfilter", x, axis)
    if zi is None:
        return ops.movedim(_filtered(b, a, x, None)[0], -1, axis)
    states, (z,) = max(a.shape[0], b.shape[0]) - 1, given
    if z.ndim == x.ndim:
        z = ops.movedim(z, axis, -1)
    expected = (*x.shape[:-1], states)
    if z.ndim != x.ndim or any(n not in (m, 1) for n, m in zip(z.shape, expected, strict=True)):
        raise ShapeError(
            f"lfilter: unexpected shape of zi: expected {list(expected)} with the axis last, got "
            f"{list(z.shape)}"
        )
    y, last = _filtered(b, a, x, ops.broadcast_to(z, expected))
    return ops.movedim(y, -1, axis), ops.movedim(last, -1, axis)


@TABLE.function("lfilter_zi", "composite")
def lfilter_zi(b: Any, a: Any) -> Tensor:
    """Return the states of a filter whose input has been 1 for ever."""
    b, a = _coefficients("lfilter_zi", *inexact("lfilter_zi", b, a))
    return _resting(b / a[0], a / a[0])


def _resting(b: Tensor, a: Tensor) -> Tensor:
    n = max(a.shape[0], b.shape[0])
    a, b = padded(a, 0, n - a.shape[0]), padded(b, 0, n - b.shape[0])
    real = np.finfo(a.dtype).dtype
    constant = np.eye(n - 1, dtype=real) - np.eye(n - 1, k=1, dtype=real)
    constant, first, _ = inexact("lfilter_zi", constant, np.eye(1, n - 1, dtype=real), a)
    return solve(constant + a[1:, None] * first, b[1:] - a[1:] * b[0])


_EXTENSIONS = ("even", "odd", "constant")


def _extended(name: str, x: Tensor, padtype: Any, padlen: Any, taps: int) -> tuple[Tensor, int]:
    """Return a signal with samples before and after it, and their number."""
    if padtype is not None and padtype not in _EXTENSIONS:
        raise ArgumentError(
            f"{name}: unknown value {padtype!r} given to padtype. padtype must be 'even', 'odd', "
            "'constant', or None"
        )
    n = x.shape[-1]
    edge = 0 if padtype is None else 3 * taps if padlen is None else int(padlen)
    if n <= edge:
        raise ArgumentError(
            f"{name}: the length of the input vector x must be greater than padlen, which is "
            f"{edge}: got {n}"
        )
    if edge < 1:
        return x, 0
    first, last = x[..., :1], x[..., -1:]
    before, after = ops.flip(x[..., 1 : edge + 1], (-1,)), ops.flip(x[..., -edge - 1 : -1], (-1,))
    if padtype == "odd":
        before, after = 2 * first - before, 2 * last - after
    elif padtype == "constant":
        before, after = [ops.broadcast_to(part, before.shape) for part in (first, last)]
    return ops.cat([before, x, after], dim=-1), edge


def _both_ways(sections: Any, x: Tensor, states: list[Tensor], edge: int) -> Tensor:
    """Return a signal filtered forward and backward, without the samples that were added."""
    for _ in range(2):
        x, _ = _cascade(sections, x, [each * x[..., :1] for each in states])
        x = ops.flip(x, (-1,))
    return x[..., edge : x.shape[-1] - edge]


@TABLE.function("filtfilt", "composite")
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: Any = "odd",
    padlen: int | None = None,
    method: str = "pad",
    irlen: int | None = None,
) -> Tensor:
    """Return a signal filtered forward and backward."""
    if method != "pad":
        raise ArgumentError(
            f"filtfilt: method must be 'pad' where a gradient is recorded, got {method!r}"
        )
    b, a, x = inexact("filtfilt", b, a, x)
    b, a = _coefficients("filtfilt", b, a)
    x = axis_last("filtfilt", x, axis)
    x, edge = _extended("filtfilt", x, padtype, padlen, max(a.shape[0], b.shape[0]))
    zi = _resting(b / a[0], a / a[0])
    return ops.movedim(_both_ways([(b, a)], x, [zi], edge), -1, axis)


@TABLE.function("sosfilt", "composite")
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """Return a signal filtered by sections of second order; with `zi`, the last states, too."""
    sos, x, *given = inexact("sosfilt", sos, x, *([] if zi is None else [zi]))
    sections = _sections("sosfilt", sos)
    x = axis_last("sosfilt", x, axis)
    if zi is None:
        for b, a in sections:
            x, _ = _filtered(b, a, x, None)
        return ops.movedim(x, -1, axis)
    states = given[0]
    expected = (len(sections), *x.shape[:-1], 2)
    if states.ndim == x.ndim + 1:
        states = ops.movedim(states, axis if axis < 0 else axis + 1, -1)
    if tuple(states.shape) != expected:
        raise ShapeError(
            f"sosfilt: invalid zi shape: expected {list(expected)} with the axis last, got "
            f"{list(states.shape)}"
        )
    x, last = _cascade(sections, x, list(states))
    return ops.movedim(x, -1, axis), ops.movedim(
        ops.stack(last), -1, axis if axis < 0 else axis + 1
    )


def _cascade(sections: Any, x: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    last = []
    for (b, a), zi in zip(sections, states, strict=True):
        x, after = _filtered(b, a, x, zi)
        last.append(after)
    return x, last


@TABLE.function("sosfilt_zi", "composite")
def sosfilt_zi(sos: Any) -> Tensor:
    """Return the states of sections of second order whose input has been 1 for ever."""
    sections = _rows("sosfilt_zi", *inexact("sosfilt_zi", sos))
    return ops.stack(_resting_cascade([(b / a[0], a / a[0]) for b, a in sections]))


def _resting_cascade(sections: Any) -> list[Tensor]:
    states: list[Tensor] = []
    gain: Any = 1.0
    for b, a in sections:
        states.append(gain * _resting(b, a))
        gain = gain * ops.sum(b) / ops.sum(a)
    return states


@TABLE.function("sosfiltfilt", "composite")
def sosfiltfilt(
    sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: int | None = None
) -> Tensor:
    """Return a signal filtered forward and backward by sections of second order."""
    given = sos
    sos, x = inexact("sosfiltfilt", sos, x)
    sections = _sections("sosfiltfilt", sos)
    x = axis_last("sosfiltfilt", x, axis)
    taps = _taps_of_cascade(given) if padtype is not None and padlen is None else 0
    x, edge = _extended("sosfiltfilt", x, padtype, padlen, taps)
    zi = _resting_cascade(sections)
    return ops.movedim(_both_ways(sections, x, zi, edge), -1, axis)


def _taps_of_cascade(sos: Any) -> int:
    """Return the number of coefficients of the filter that the sections make."""
    sections = np.asarray(arrays_of(sos))
    missing = min((sections[:, column] == 0).sum() for column in (2, 5))
    return int(2 * len(sections) + 1 - missing)


def _sections(name: str, sos: Tensor) -> list[tuple[Tensor, Tensor]]:
    found = _rows(name, sos)
    if holds_somewhere((sos[:, 3] != 1)._array):
        raise ArgumentError(f"{name}: sos[:, 3] should be all ones")
    return found


def _rows(name: str, sos: Tensor) -> list[tuple[Tensor, Tensor]]:
    if sos.ndim != 2 or sos.shape[1] != 6 or not sos.shape[0]:
        raise ShapeError(f"{name}: sos array must be shape (n_sections, 6), got {list(sos.shape)}")
    return [(row[:3], row[3:]) for row in sos]


# --- other rates ----------------------------------------------------------------------------------

_ENDS = {"constant": "constant", "symmetric": "symmetric", "reflect": "reflect", "edge": "edge"}
_ENDS |= {"wrap": "wrap", "periodic": "wrap"}


@TABLE.function("upfirdn", "bilinear")
def upfirdn(
    h: Any,
    x: Any,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Tensor:
    """Return a signal with `up` - 1 zeros between samples, filtered, and each `down`-th of it.

    Of each result, the samples and those coefficients that don't meet zeros are taken.
    """
    if mode not in _ENDS:
        raise ArgumentError(
            f"upfirdn: mode must be one of {', '.join(_ENDS)} where a gradient is recorded, got "
            f"{mode!r}"
        )
    if up < 1 or down < 1:
        raise ArgumentError(f"upfirdn: both up and down must be >= 1, got {up} and {down}")
    h, x = inexact("upfirdn", h, x)
    h, x = vector("upfirdn", "h", h), axis_last("upfirdn", x, axis)
    n, taps = x.shape[-1], -(-h.shape[0] // up)
    count = -(-((n - 1) * up + h.shape[0]) // down)
    last, phase = np.divmod(np.arange(count) * down, up)
    x = padded(x, taps - 1, max(0, int(last[-1]) - n + 1), _ENDS[mode], cval)
    windows = x[..., last[:, None] + np.arange(taps)]
    by_phase = ops.reshape(padded(h, 0, taps * up - h.shape[0]), (taps, up))
    weights = ops.flip(by_phase, (0,))[:, phase]
    return ops.movedim(ops.sum(windows * ops.transpose(weights, 0, 1), dim=-1), -1, axis)
