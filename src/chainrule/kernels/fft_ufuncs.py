"""Fourier transforms of NumPy arrays: `numpy.fft` without the overhead of its functions.

The functions of `numpy.fft` take five microseconds before their ufuncs run, as long as a transform
of 500 points, and compute a transform of single precision that divides by nothing in double, with
conversions: the factor 1 that they pass is an integer. Here the ufuncs are called directly. They
are private, so a first call compares them with `numpy.fft`, which runs if they are not as expected.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from chainrule.kernels import threads

Array = Any
Ufuncs = dict[str, Any]

PARALLEL_MIN_WORK = 400_000
"""Number of elements times prime factors from which several threads pay: 60 microseconds of one."""

_PARTS = {"f": "f", "d": "d", "F": "f", "D": "d"}
"""The type of the parts of each type that the ufuncs are called with, by type character."""
_NORMS = (None, "backward", "ortho", "forward")


@cache
def _ufuncs() -> Ufuncs | None:
    """Return the ufuncs of `numpy.fft`, None if they don't do what its functions do."""
    try:
        module = import_module("numpy.fft._pocketfft_umath")
        found = {name: getattr(module, name) for name in ("fft", "ifft", "irfft")}
        found["rfft_even"], found["rfft_odd"] = module.rfft_n_even, module.rfft_n_odd
        return found if _agree(found) else None
    except Exception:  # another version of NumPy
        return None


def _agree(ufuncs: Ufuncs) -> bool:
    """Whether the ufuncs compute the transforms of `numpy.fft`, along both axes of an array."""
    for n in (4, 5):
        x = np.cos(np.arange(float(n * n))).reshape(n, n)
        for axis in (0, 1):
            half = np.fft.rfft(x, axis=axis)
            for name, given, settings in (
                ("fft", x + 1j * x.T, {}),
                ("ifft", x + 1j * x.T, {}),
                ("rfft", x, {}),
                ("irfft", half, {"n": n}),
            ):
                wanted = getattr(np.fft, name)(given, axis=axis, norm="ortho", **settings)
                found = _run(ufuncs, name, given, n, axis, "ortho", None)
                if not np.array_equal(found, wanted):
                    return False
    return True


@lru_cache(maxsize=256)
def _factor(n: int, norm: str, inverse: bool, char: str) -> Any:
    """Return the factor of a transform, in the type of the parts."""
    kind = np.dtype(char).type
    if norm == "ortho":
        return 1 / np.sqrt(kind(n))
    return kind(1) if (norm == "forward") == inverse else 1 / kind(n)


@lru_cache(maxsize=256)
def _sum_of_factors(n: int) -> int:
    """Return the sum of the prime factors of a length: the operations for each element."""
    total, factor = 1, 2
    while factor * factor <= n:
        if n % factor:
            factor += 1
        else:
            total, n = total + factor, n // factor
    return total + n


def _run(
    ufuncs: Ufuncs, name: str, x: Array, n: int, axis: int, norm: str, out: Array | None
) -> Array:
    char = _PARTS[x.dtype.char]
    factor = _factor(n, norm, name[0] == "i", char)
    ufunc = name if name != "rfft" else "rfft_odd" if n % 2 else "rfft_even"
    if out is None:
        shape, size = x.shape, n // 2 + 1 if name == "rfft" else n
        dtype = char if name == "irfft" else char.upper()
        out = np.empty((*shape[:axis], size, *shape[axis + 1 :]), dtype)
    axes = [(axis,), (), (axis,)]
    if x.ndim == 1 or x.size * _sum_of_factors(n) < PARALLEL_MIN_WORK:
        ufuncs[ufunc](x, factor, axes=axes, out=out)
        return out
    function = ufuncs[ufunc]
    other = max([i for i in range(x.ndim) if i != axis], key=x.shape.__getitem__)
    rows = x.shape[other]
    count = min(threads.get_num_threads(), rows)

    def part(i: int) -> None:
        block = (*(slice(None),) * other, slice(i * rows // count, (i + 1) * rows // count))
        function(x[block], factor, axes=axes, out=out[block])

    threads.parallel_for(part, range(count))
    return out


def _one(name: str) -> Any:
    """Return a transform along one axis, with the signature of NumPy's."""
    inverse = name == "irfft"  # of half a spectrum
    kinds = "fd" if name == "rfft" else "FD"
    plain = getattr(np.fft, name)

    def transform(
        a: Array,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        out: Array | None = None,
    ) -> Array:
        ufuncs = _ufuncs()
        if ufuncs is not None and a.__class__ is np.ndarray and a.dtype.char in kinds:
            position = axis + a.ndim if axis < 0 else axis
            if 0 <= position < a.ndim and norm in _NORMS:
                size = a.shape[position]
                points = size if n is None else n
                if points > 0 and size == (points // 2 + 1 if inverse else points):
                    return _run(ufuncs, name, a, points, position, norm or "backward", out)
        return plain(a, n=n, axis=axis, norm=norm, out=out)

    return transform


fft, ifft, rfft, irfft = map(_one, ("fft", "ifft", "rfft", "irfft"))


def _several(name: str) -> Any:
    """Return a transform along several axes, with the signature of NumPy's."""
    first, others = (rfft, fft) if name == "rfftn" else (globals()[name[:-1]],) * 2
    plain = getattr(np.fft, name)

    def transform(
        a: Array,
        s: Any = None,
        axes: tuple[int, ...] | None = None,
        norm: str | None = None,
        out: Array | None = None,
    ) -> Array:
        if s is not None or not axes or a.__class__ is not np.ndarray:
            return plain(a, s=s, axes=axes, norm=norm, out=out)
        found = first(a, None, axes[-1], norm, out)
        for axis in axes[-2::-1]:  # in place: the array is new, or `out`
            found = others(found, None, axis, norm, found)
        return found

    return transform


fftn, ifftn, rfftn = map(_several, ("fftn", "ifftn", "rfftn"))


def __getattr__(name: str) -> Any:
    return getattr(np.fft, name)
