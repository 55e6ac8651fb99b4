"""Functions of `scipy.linalg` and filters along an axis, of arrays whose dtype the results keep."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from chainrule.errors import AutogradError, DeviceFunctionError, MissingExtraError

Array = Any
Shape = tuple[int, ...]

CORES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(["expm", "logm", "sqrtm", "signm", "fractional_matrix_power", "polar"], (2,)),
    **dict.fromkeys(["eigh", "qr_pivots"], (2,)),
    **dict.fromkeys(["expm_frechet", "solve_banded"], (2, 2)),
    **dict.fromkeys(["solve_continuous_lyapunov", "solve_discrete_lyapunov"], (2, 2)),
    "lfilter": (1, 2),
    "spline_filter1d": (1,),
    "solve_sylvester": (2, 2, 2),
    "solve_toeplitz": (1, 1, 2),
    **dict.fromkeys(["solve_continuous_are", "solve_discrete_are"], (2, 2, 2, 2)),
}
"""Number of dimensions of one argument each; those in front are stacks."""

_LIKE_LAST = frozenset(["lfilter", "solve_banded", "solve_toeplitz", "solve_sylvester"])


class ComplexResultError(AutogradError):
    """A real matrix whose function has complex elements."""


def _dimensions(routine: str, shapes: list[Shape]) -> list[Shape]:
    """Return the shapes of the results for single arguments."""
    first = shapes[0]
    if routine == "eigh":
        return [first[:1], first]
    if routine == "qr_pivots":
        return [first[1:]]
    return [shapes[-1] if routine in _LIKE_LAST else first]


def result_types(routine: str, *arrays: Any) -> list[tuple[Shape, Any]]:
    """Return the shapes and dtypes of the results, given those of the arguments."""
    cores = CORES[routine]
    stack = np.broadcast_shapes(
        *[a.shape[: len(a.shape) - n] for a, n in zip(arrays, cores, strict=True)]
    )
    single = [a.shape[len(a.shape) - n :] for a, n in zip(arrays, cores, strict=True)]
    dtype = np.result_type(*[a.dtype for a in arrays])
    found = []
    for k, shape in enumerate(_dimensions(routine, single)):
        kind = np.dtype(dtype.char.lower()) if routine == "eigh" and k == 0 else dtype
        found.append(((*stack, *shape), np.dtype(np.intp) if routine == "qr_pivots" else kind))
    return found


def scipy_linalg(xp: Any, *arrays: Array, routine: str, **settings: Any) -> Any:
    """Return the result of a function of SciPy, for each of a stack of arguments."""
    if xp.__name__ != "numpy":
        raise DeviceFunctionError(
            f"{_package(routine)}.{routine} is computed on the CPU only: move the tensors with "
            ".cpu()"
        )
    call = _FUNCTIONS.get(routine) or _scipys(routine)
    types = result_types(routine, *arrays)
    cores = CORES[routine]
    stacks = [a.shape[: a.ndim - n] for a, n in zip(arrays, cores, strict=True)]
    if any(stacks) and routine not in _OF_STACKS:
        outs = _one_by_one(call, arrays, stacks, types, settings)
    elif 0 in types[0][0]:
        outs = [np.zeros(shape, dtype) for shape, dtype in types]
    else:
        found = call(*arrays, **settings)
        outs = list(found) if isinstance(found, tuple) else [found]
    outs = [_in_dtype(routine, out, dtype) for out, (_, dtype) in zip(outs, types, strict=True)]
    return outs[0] if len(outs) == 1 else tuple(outs)


_OF_STACKS = frozenset(["expm", "spline_filter1d"])
"""Functions of SciPy that loop over a stack in C."""


def _one_by_one(
    call: Callable[..., Any],
    arrays: tuple[Array, ...],
    stacks: list[Shape],
    types: list[tuple[Shape, Any]],
    settings: dict[str, Any],
) -> list[Array]:
    stack = np.broadcast_shapes(*stacks)
    full = [
        np.broadcast_to(a, (*stack, *a.shape[len(own) :]))
        for a, own in zip(arrays, stacks, strict=True)
    ]
    rows: list[list[Any]] = []
    for index in np.ndindex(stack):
        found = call(*[a[index] for a in full], **settings)
        rows.append(list(found) if isinstance(found, tuple) else [found])
    if not rows:
        return [np.zeros(shape, dtype) for shape, dtype in types]
    return [
        np.stack(column).reshape(shape)
        for column, (shape, _) in zip(zip(*rows, strict=True), types, strict=True)
    ]


def _in_dtype(routine: str, out: Array, dtype: Any) -> Array:
    out = np.asarray(out)
    if out.dtype == dtype:
        return out
    if out.dtype.kind == "c" and dtype.kind == "f":
        raise ComplexResultError(
            f"scipy.linalg.{routine}: the result for this real matrix is complex, which a "
            "compiled function and vmap can't know before: pass a complex matrix, "
            "a.to(chainrule.complex128)"
        )
    return out.astype(dtype)


_PACKAGES = {"lfilter": "scipy.signal", "spline_filter1d": "scipy.ndimage"}


def _package(routine: str) -> str:
    return _PACKAGES.get(routine, "scipy.linalg")


def _scipys(routine: str) -> Callable[..., Any]:
    package = _package(routine)
    try:
        module = import_module(package)
    except ImportError as error:
        raise MissingExtraError(
            f"{package}.{routine} needs SciPy, which is not installed: "
            "pip install 'chainrule[scipy]'"
        ) from error
    found: Callable[..., Any] = getattr(module, routine)
    return found


# --- functions of other arguments -----------------------------------------------------------------


def _solve_banded(ab: Array, b: Array, *, lower: int, upper: int, positive: bool) -> Array:
    if positive:  # the lower half says it all
        return _scipys("solveh_banded")(ab[upper:], b, lower=True, check_finite=False)
    return _scipys("solve_banded")((lower, upper), ab, b, check_finite=False)


def _solve_toeplitz(c: Array, r: Array, b: Array) -> Array:
    return _scipys("solve_toeplitz")((c, r), b, check_finite=False)


def _lfilter(a: Array, v: Array) -> Array:
    one = np.ones(1, v.dtype)
    return _scipys("lfilter")(one, np.concatenate([one, a]), v)


def _expm_frechet(a: Array, e: Array) -> Array:
    return _scipys("expm_frechet")(a, e, compute_expm=False, check_finite=False)


def _polar(a: Array) -> Array:
    return _scipys("polar")(a)[0]


def _qr_pivots(a: Array) -> Array:
    return _scipys("qr")(a, mode="r", pivoting=True, check_finite=False)[1].astype(np.intp)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "solve_banded": _solve_banded,
    "solve_toeplitz": _solve_toeplitz,
    "expm_frechet": _expm_frechet,
    "polar": _polar,
    "lfilter": _lfilter,
    "qr_pivots": _qr_pivots,
}
"""Functions whose arguments differ from SciPy's: arrays only, and settings by keyword."""
