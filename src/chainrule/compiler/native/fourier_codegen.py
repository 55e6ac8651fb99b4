"""Fourier transforms of small arrays as machine code, by the passes of `fourier_kernels`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.native.indexing_codegen import Operands, contiguous
from chainrule.compiler.native.layout import LargeError, UnfitError
from chainrule.compiler.native.op_recorder import RecordedArray
from chainrule.compiler.native.scalar_codegen import CODES

MAX_POINTS = 1 << 14
"""Largest number of elements of a transform."""

MAX_FACTOR = 31
"""Largest prime factor of a length: the time of a pass is quadratic in it."""

_MIN_TOGETHER = 8
"""Least number of points of real lines of which two are transformed together."""

FOURIER = "fourier"
"""The operation on real and imaginary parts: a transform along one axis, without a factor."""

_PASSES = {2: "fourier_2", 3: "fourier_3", 4: "fourier_4", 5: "fourier_5"}

# --- transforms of NumPy, as operations on parts --------------------------------------------------


def _along(xp: Any, real: Any, imag: Any, axis: int, inverse: bool, factor: float) -> Any:
    """Return the parts of a transform; an exchange of parts gives the inverse."""
    x, u = (imag, real) if inverse else (real, imag)
    outs = Value(real.shape, real.dtype), Value(real.shape, real.dtype)
    xp.ops.append(Op(FOURIER, (x.value, u.value), {"axis": axis}, outs))
    parts = [RecordedArray(out, xp.ops) for out in outs[:: -1 if inverse else 1]]
    return parts if factor == 1.0 else [part * factor for part in parts]


def _factor(sizes: Sequence[int], norm: str, inverse: bool) -> float:
    """Return the factor of a transform."""
    power = {"backward": float(inverse), "ortho": 0.5, "forward": float(not inverse)}[norm]
    number: float = math.prod(sizes) ** -power
    return number


TRANSFORMS = tuple([f"{kind}fft{axes}" for kind in ("", "i", "r", "ir") for axes in ("", "2", "n")])
"""The functions of `np.fft` that have machine code."""


class Settings(NamedTuple):
    """The axes of a transform, the number of points of the last one, and the norm."""

    axes: tuple[int, ...]
    points: int
    norm: str


def settings(name: str, shape: Sequence[int], *args: Any, **kwargs: Any) -> Settings:
    """Return the settings of a transform, from its arguments after the first.

    Arrays must have the lengths that are transformed.
    """
    given = dict(zip(("s", "axes", "norm", "out"), args, strict=False))
    given |= {_NAMES.get(key, key): value for key, value in kwargs.items()}
    if given.get("out") is not None:
        raise UnfitError("a transform into an array that exists")
    sizes, axes = given.get("s"), given.get("axes")
    if name[-1] == "t":
        sizes = None if sizes is None else (sizes,)
        axes = -1 if axes is None else (axes,)
    if axes is None or axes == -1:
        every = range(len(shape) if sizes is None else len(sizes))
        axes = {"t": (-1,), "2": (-2, -1), "n": [n - len(every) for n in every]}[name[-1]]
    axes = tuple([axis % len(shape) for axis in axes])
    lengths = [shape[axis] for axis in axes]
    points = 2 * (lengths[-1] - 1) if "irfft" in name else lengths[-1]
    if sizes is not None:
        points = lengths[-1] if sizes[-1] is None else sizes[-1]
    lengths[-1] = points // 2 + 1 if "irfft" in name else points
    wanted = [*lengths[:-1]] if sizes is None else [*sizes[:-1]]
    if [*wanted, lengths[-1]] != [shape[axis] for axis in axes] or points < 1:
        raise UnfitError("a transform of another length than the array has")
    return Settings(axes, points, given.get("norm") or "backward")


_NAMES = {"n": "s", "axis": "axes"}
"""The names of settings of transforms along several axes, by those of transforms along one."""


def full(
    xp: Any, real: Any, imag: Any, inverse: bool, axes: Sequence[int], points: int, norm: str
) -> Any:
    """Return the parts of the transform of complex numbers along axes."""
    factor = _factor([real.shape[axis] for axis in axes], norm, inverse)
    for i, axis in enumerate(reversed(axes)):
        last = i == len(axes) - 1
        real, imag = _along(xp, real, imag, axis, inverse, factor if last else 1.0)
    return real, imag


def half(xp: Any, x: Any, axes: Sequence[int], points: int, norm: str) -> Any:
    """Return the parts of the half spectrum of real numbers."""
    *others, axis = axes
    factor = _factor([x.shape[a] for a in axes], norm, False)
    parts = _half_of_line(xp, x, axis, 1.0 if others else factor)
    for i, other in enumerate(others):
        last = i == len(others) - 1
        parts = _along(xp, parts[0], parts[1], other, False, factor if last else 1.0)
    return parts


def _half_of_line(xp: Any, x: Any, axis: int, factor: float) -> Any:
    """Return the parts of a half spectrum along one axis: of two lines by one transform.

    Of a and b it is a half of Z ± conj(Z reversed), where Z is the transform of a + ib (Van Loan,
    4.3.2).
    """
    n = x.shape[axis]
    count, along = n // 2 + 1, _even_axis(x.shape, axis)
    if along is None:
        parts = _along(xp, x, xp.zeros(x.shape, x.dtype), axis, False, factor)
        return [part[_key(axis, slice(count))] for part in parts]
    xp.check(xp.all(xp.isfinite(x)))  # else a line would spoil the other
    first, second = _halves(x, along)
    real, imag = _along(xp, first, second, axis, False, factor / 2)
    (a, c), (b, d) = [
        (z[_key(axis, slice(count))], _reversed(xp, z, axis, n, count)) for z in (real, imag)
    ]
    return xp.concat([a + c, b + d], axis=along), xp.concat([b - d, c - a], axis=along)


def _reversed(xp: Any, z: Any, axis: int, n: int, count: int) -> Any:
    """Return items 0, n - 1, n - 2, … of an axis, so many."""
    rest = xp.flip(z[_key(axis, slice(n - count + 1, n))], axis=axis)
    return xp.concat([z[_key(axis, slice(1))], rest], axis=axis)


def _even_axis(shape: Sequence[int], axis: int) -> int | None:
    """Return another axis, of which two halves are transformed together, if there is one."""
    if shape[axis] < _MIN_TOGETHER:
        return None
    return next((a for a, n in enumerate(shape) if a != axis and n and n % 2 == 0), None)


def _halves(x: Any, axis: int) -> Any:
    middle = x.shape[axis] // 2
    return x[_key(axis, slice(middle))], x[_key(axis, slice(middle, None))]


def _key(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)


def real_of_half(xp: Any, real: Any, imag: Any, axes: Sequence[int], points: int, norm: str) -> Any:
    """Return the real numbers of a half spectrum."""
    *others, axis = axes
    n = points
    if others:
        real, imag = full(xp, real, imag, True, others, points, norm)
    factor = _factor([n], norm, True)
    rest = _key(axis, slice(1, n - n // 2))
    along = _even_axis(real.shape, axis)
    spectrum: tuple[Any, Any] = real, imag
    reflected: tuple[Any, Any] = real, -imag
    if along is not None:  # those of a + ib
        # The imaginary parts of frequencies 0 and n/2 count as zero.
        is_alone = np.isin(np.arange(n // 2 + 1), [0, n / 2])
        mask = xp.constant(is_alone.reshape(-1, *(1,) * (real.ndim - 1 - axis)))
        imag = xp.where(mask, 0.0, imag)
        xp.check(xp.all(xp.isfinite(real) & xp.isfinite(imag)))
        (a, c), (b, d) = _halves(real, along), _halves(imag, along)
        spectrum = a - d, b + c
        reflected = a + d, c - b
    parts = [
        xp.concat([part, xp.flip(other[rest], axis=axis)], axis=axis)
        for part, other in zip(spectrum, reflected, strict=True)
    ]
    found = _along(xp, parts[0], parts[1], axis, True, factor)
    return found[0] if along is None else xp.concat(found, axis=along)


# --- source ---------------------------------------------------------------------------------------


@cache
def factors_of(n: int) -> tuple[int, ...]:
    """Return the factors of the passes of a transform."""
    found = []
    for prime in (4, 2, 3, *range(5, MAX_FACTOR + 1, 2)):
        while n % prime == 0:
            found.append(prime)
            n //= prime
    if n > 1:
        text = f"a transform of a length with the factor {n}: primes are up to {MAX_FACTOR}"
        raise UnfitError(text)
    return tuple(found)


@cache
def _roots(n: int) -> Any:
    """Return cosines and sines of the passes, and where those of each pass begin."""
    tables, starts, at = [], [], 0
    left = n
    for r in factors_of(n):
        if r in _PASSES:
            turns: Any = np.outer(np.arange(1, r), np.arange(left // r)) % left
        else:
            turns = np.arange(left)
        angles = 2 * np.pi / left * turns
        tables += [np.cos(angles).ravel(), np.sin(angles).ravel()]
        starts.append(at)
        at += 2 * turns.size
        left //= r
    return np.concatenate(tables), starts


class Fourier(Operands):
    """Writer of transforms along one axis."""

    def fourier(self, op: Op) -> Iterator[str]:
        """Transform real and imaginary parts along an axis."""
        (x, u), axis, outs = op.args, op.kwargs["axis"], op.outs
        n, code = x.shape[axis], CODES.get(x.dtype, "")
        if x.size > MAX_POINTS:
            raise LargeError("a large transform")
        factors = factors_of(n)
        places = [self.layout.allocate(out) for out in outs]
        if n == 1:
            for part, place in zip((x, u), places, strict=True):
                yield from self.layout.copy_lines(part, self.accesses, place)
            return
        works = [self.layout.scratch(out.size, out.dtype, i) for i, out in enumerate(outs)]
        pairs = [[_argument(place) for place in pair] for pair in (places, works)]
        source = []
        for part, place in zip((x, u), works if len(factors) % 2 else places, strict=True):
            access = self.accesses.of(part)
            is_number = self.accesses.uniform_value(part) is not None
            if is_number or access._replace(offset=0) != contiguous(part, access.base):
                yield from self.layout.copy_lines(part, self.accesses, place)
                source.append(_argument(place))
            else:
                source.append(_argument(self.layout.address(access.base), access.offset))
        table, starts = _roots(n)
        w = self.layout.shared_constant(("fourier", n, code), table.astype(x.dtype))
        width = math.prod(x.shape[axis + 1 :])
        blocks, m, s = x.size // (n * width), n, width
        for i, (r, start) in enumerate(zip(factors, starts, strict=True)):
            m //= r
            target = pairs[(len(factors) - 1 - i) % 2]
            name = _PASSES.get(r, "fourier_any")
            name = "fourier_lines" if r == 4 and s == 1 else name
            sizes = [blocks, m, s, *[r] * (r not in _PASSES)]
            arrays = ", ".join([*source, *target, f"{w.array}, u8({start})"])
            yield f"{name}({arrays}, {', '.join(f'u8({size})' for size in sizes)})"
            source = target
            s *= r


def _argument(place: Any, offset: int = 0) -> str:
    start = place.start or "u8(0)"
    return f"{place.array}, {start} + u8({offset})" if offset else f"{place.array}, {start}"
