"""Operands of functions of images: one real dtype, and values for each axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any

import numpy as np

from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.backend.extensions import SCIPY
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError
from chainrule.interop.operands import array_of, tensor_of
from chainrule.scipy.dispatch import Table
from chainrule.scipy.operands import inexact

TABLE = Table("scipy.ndimage", SCIPY, has_scipys_numbers=True)
"""The functions of tensors of `scipy.ndimage`."""

MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}
"""The modes of `numpy.pad` for those of an image beyond its edges."""


def image(name: str, x: Any, output: Any = None) -> Tensor:
    """Return an image, which has SciPy's dtype of results."""
    found = tensor_of(x)
    if output is not None:
        found = cast(found, _dtype_of(name, output))
    if found.dtype.kind != "f":
        raise DTypeError(
            f"{name}: expected an image of real floating-point numbers, got {found.dtype}, of "
            "which SciPy's result has the dtype, too: convert it with x.astype(float), and filter "
            "real and imaginary parts of complex numbers each"
        )
    return found


def _dtype_of(name: str, output: Any) -> Any:
    """Return the dtype of results that an argument asks for."""
    dtype = None if isinstance(output, np.ndarray | Tensor) else np.dtype(output)
    if dtype is None or dtype.kind not in "fc":
        raise ArgumentTypeError(
            f"{name}: where a gradient is recorded, output= is a floating dtype, got "
            f"{type(output).__name__ if dtype is None else dtype}: assign the result"
        )
    return dtype


def doubles(name: str, *values: Any) -> list[Tensor]:
    """Return real operands in double precision, in which SciPy computes."""
    return [cast(x, "float64") for x in inexact(name, *values, real=True)]


def axes_of(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes that an argument names: all of them for None."""
    if axes is None:
        return tuple(range(ndim))
    given = tuple([*map(index, np.atleast_1d(axes))])
    for axis in given:
        if not -ndim <= axis < ndim:
            raise ArgumentError(f"{name}: axis {axis} is not one of the {ndim} axes of the image")
    found = tuple([axis % ndim for axis in given])
    if len(set(found)) != len(found):
        raise ArgumentError(f"{name}: axes must be unique, got {given}")
    return found


def window_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes of a window of several axes, which SciPy takes in ascending order."""
    found = axes_of(name, axes, ndim)
    if list(found) != sorted(found):
        raise ArgumentError(f"{name}: give axes in ascending order, got {axes}")
    return found


def one_for_each(name: str, label: str, value: Any, count: int) -> Sequence[Any]:
    """Return a value for each axis, given one for all or a sequence."""
    if isinstance(value, str) or not getattr(value, "ndim", hasattr(value, "__len__")):
        return [value] * count
    if len(value) != count:
        raise ArgumentError(f"{name}: expected {label} for {count} axes, got {len(value)}")
    return [value[i] for i in range(count)]


def each_axis(name: str, axes: Sequence[int], **values: Any) -> Iterator[tuple[Any, ...]]:
    """Yield each axis and its values, of which each is given for all axes or in a sequence."""
    columns = [one_for_each(name, label, each, len(axes)) for label, each in values.items()]
    return zip(axes, *columns, strict=True)


def check_mode(name: str, mode: Any) -> str:
    """Return the name of a mode, checked."""
    if mode not in MODES:
        raise ArgumentError(f"{name}: mode is one of {', '.join(MODES)}, got {mode!r}")
    return str(mode)


def number_of(name: str, label: str, value: Any, mend: str) -> float:
    """Return a number that a shape depends on."""
    if isinstance(value, Tensor) and not is_known(value._array):
        raise ArgumentError(
            f"{name}: a shape depends on {label}, which a compiled function and vmap don't know: "
            f"{mend}"
        )
    return float(array_of(value))
