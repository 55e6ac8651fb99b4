"""The array API standard 2025.12 on tensors: the result of ``tensor.__array_namespace__()``.

`chainrule` itself has PyTorch's names and the standard's. Nearly all functions of the standard are
those of chainrule; the few that differ from PyTorch in arguments, defaults or results are below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule import fft as fft
from chainrule import linalg as _linalg
from chainrule import ops as ops  # fills `ARRAY_API`
from chainrule.arguments import (
    DeviceLike,
    DTypeLike,
    Operand,
    complex_dtype,
    dtype_of,
    many_dims,
    tensor_of,
)
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import CPU, cuda_is_available, device
from chainrule.creation import asarray as asarray
from chainrule.creation import empty_like as empty_like
from chainrule.creation import eye as eye
from chainrule.creation import filled, ranges
from chainrule.creation import full_like as full_like
from chainrule.creation import ones_like as ones_like
from chainrule.creation import zeros_like as zeros_like
from chainrule.errors import ShapeError
from chainrule.operation import ARRAY_API
from chainrule.ops import (
    conversion,
    dtypes,
    elementary,
    join_split,
    products,
    reductions,
    sort_search,
    statistics,
)
from chainrule.ops.dtypes import finfo as finfo
from chainrule.ops.dtypes import iinfo as iinfo
from chainrule.ops.permute import roll as _roll
from chainrule.ops.repeat import meshgrid as _meshgrid
from chainrule.ops.reshape import reshape as _reshape
from chainrule.ops.reshape import squeeze as _squeeze
from chainrule.ops.views import view as _view

if TYPE_CHECKING:
    from chainrule.array_api_names import *  # what `ARRAY_API` and `_DTYPES` add below

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = VERSIONS[-1]

# --- functions that are the same in chainrule -----------------------------------------------------

globals().update(ARRAY_API)

e, inf, nan, newaxis, pi = np.e, np.inf, np.nan, None, np.pi

_DTYPES = {
    np.dtype(code).name: np.dtype(code)
    for code in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16")
}
globals().update(_DTYPES)

# --- functions with other argument names ----------------------------------------------------------


def _of_shape(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a creation function with one argument `shape`; PyTorch also takes single sizes."""

    def create(
        shape: int | tuple[int, ...], *, dtype: DTypeLike = None, device: DeviceLike = None
    ) -> Tensor:
        return function(shape, dtype=dtype, device=device)

    create.__name__ = create.__qualname__ = function.__name__
    create.__doc__ = function.__doc__
    return create


empty, ones, zeros = _of_shape(filled.empty), _of_shape(filled.ones), _of_shape(filled.zeros)


def full(
    shape: int | tuple[int, ...],
    fill_value: Any,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return a constant tensor: PyTorch's `size` is `shape`."""
    return filled.full(shape, fill_value, dtype=dtype, device=device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return evenly spaced values: PyTorch's `end` is `stop`."""
    return ranges.arange(start, stop, step, dtype=dtype, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    endpoint: bool = True,
) -> Tensor:
    """Return `num` evenly spaced values, real or complex; `endpoint=False` excludes `stop`."""
    if endpoint:
        return ranges.linspace(start, stop, num, dtype=dtype, device=device)
    return ranges.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def reshape(x: Operand, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return `x` in another shape; `copy` must (True), must not (False) or may (None) copy."""
    if copy:
        return _reshape(conversion.clone(x), shape)
    return _view(tensor_of(x), shape) if copy is False else _reshape(x, shape)


def roll(x: Operand, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Return `x` with its elements shifted along axes: PyTorch's `shifts` is `shift`."""
    return _roll(x, shift, axis=axis)


# --- functions with other defaults ----------------------------------------------------------------


def concat(arrays: Sequence[Operand], /, *, axis: int | None = 0) -> Tensor:
    """Return tensors joined along an axis; None flattens them first."""
    if axis is None:
        return join_split.cat([_reshape(x, -1) for x in arrays])
    return join_split.cat(arrays, axis)


def meshgrid(*arrays: Operand, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: PyTorch's default of `indexing` is "ij"."""
    return _meshgrid(*arrays, indexing=indexing)


def var(
    x: Operand, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the variance: PyTorch's default of `correction` is 1."""
    return statistics.var(x, axis=axis, correction=correction, keepdims=keepdims)


def std(
    x: Operand, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Return the standard deviation: PyTorch's default of `correction` is 1."""
    return statistics.std(x, axis=axis, correction=correction, keepdims=keepdims)


def sum(
    x: Operand, /, *, axis: Any = None, dtype: DTypeLike = None, keepdims: bool = False
) -> Tensor:
    """Return the sum, of dtype uint64 for unsigned integers (PyTorch: int64)."""
    dtype = reductions.accumulator_dtype(tensor_of(x)) if dtype is None else dtype
    return reductions.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


def prod(
    x: Operand, /, *, axis: Any = None, dtype: DTypeLike = None, keepdims: bool = False
) -> Tensor:
    """Return the product, of dtype uint64 for unsigned integers (PyTorch: int64)."""
    dtype = reductions.accumulator_dtype(tensor_of(x)) if dtype is None else dtype
    return reductions.prod(x, axis=axis, dtype=dtype, keepdims=keepdims)


# --- functions with other results -----------------------------------------------------------------


def can_cast(from_: DTypeLike, to: DTypeLike, /) -> bool:
    """Return whether promotion allows the cast: PyTorch ignores the widths."""
    joint: np.dtype[Any] = dtypes.result_type(from_, to)
    return joint == dtype_of(to)


def clip(x: Operand, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """Return `x` limited to a range; without bounds a copy, for which PyTorch raises."""
    return conversion.clone(x) if min is None is max else elementary.clip(x, min, max)


def max(x: Operand, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the maxima: PyTorch's `max` along a dimension returns their indices, too."""
    return reductions.amax(x, axis=axis, keepdims=keepdims)


def min(x: Operand, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the minima: PyTorch's `min` along a dimension returns their indices, too."""
    return reductions.amin(x, axis=axis, keepdims=keepdims)


def nonzero(x: Operand, /) -> tuple[Tensor, ...]:
    """Return an index tensor for each dimension: PyTorch's `nonzero` returns one matrix."""
    x = tensor_of(x)
    if x.ndim == 0:
        raise ShapeError("nonzero: a tensor without dimensions has no indices: reshape it to (1,)")
    indices: tuple[Tensor, ...] = sort_search.nonzero(x, as_tuple=True)
    return indices


def sort(x: Operand, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements in order: PyTorch's `sort` returns their indices, too."""
    found: Tensor = sort_search.sort(x, axis, descending, stable).values
    return found


def squeeze(x: Operand, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return `x` without axes, which must have length 1: PyTorch ignores others."""
    x = tensor_of(x)
    for number in many_dims(axis, x.ndim) or ():
        if x.shape[number] != 1:
            raise ShapeError(
                f"squeeze: axis {number} of shape {list(x.shape)} has length {x.shape[number]}: "
                "only axes of length 1 can be removed"
            )
    return _squeeze(x, axis)


def vecdot(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Tensor:
    """Return inner products of vectors of equal length: PyTorch broadcasts length 1."""
    lengths = [tensor_of(x).shape[axis : axis + 1 or None] for x in (x1, x2)]
    if lengths[0] != lengths[1]:
        raise ShapeError(
            f"vecdot: expected vectors of equal length along axis {axis}, got the shapes "
            f"{list(tensor_of(x1).shape)} and {list(tensor_of(x2).shape)}"
        )
    return products.vecdot(x1, x2, axis=axis)


def _solve(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the solution x of x1 x = x2; `x2` is a vector only if it is 1-d."""
    right, ndim = tensor_of(x2), tensor_of(x1).ndim
    if right.ndim == 1 or right.ndim >= ndim:
        return _linalg.solve(x1, right)
    return _linalg.solve(x1, _reshape(right, (1,) * (ndim - right.ndim) + right.shape))


_SAME_IN_LINALG = """
    cholesky cross det diagonal eig eigh eigvals eigvalsh inv matmul matrix_norm matrix_power
    matrix_rank matrix_transpose outer pinv qr slogdet svd svdvals tensordot trace vector_norm
"""

linalg = SimpleNamespace(
    **{name: getattr(_linalg, name) for name in _SAME_IN_LINALG.split()},
    solve=_solve,
    vecdot=vecdot,
)

# --- inspection -----------------------------------------------------------------------------------


def __array_namespace_info__() -> SimpleNamespace:
    """Return the inspection functions of this namespace."""
    return SimpleNamespace(
        capabilities=_capabilities,
        default_device=_default_device,
        default_dtypes=_default_dtypes,
        devices=_devices,
        dtypes=_dtypes,
    )


def _capabilities() -> dict[str, Any]:
    """Return the supported optional behaviour of the standard."""
    return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}


def _default_device() -> device:
    """Return the device of new tensors."""
    return CPU


def _devices() -> tuple[device, ...]:
    """Return all devices of this machine."""
    return (CPU, device("cuda")) if cuda_is_available() else (CPU,)


def _default_dtypes(*, device: DeviceLike = None) -> dict[str, Any]:
    """Return the dtypes of Python numbers and of indices."""
    return {
        "real floating": default_dtype(),
        "complex floating": complex_dtype(),
        "integral": np.dtype("int64"),
        "indexing": np.dtype("int64"),
    }


def _dtypes(
    *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None
) -> dict[str, Any]:
    """Return the dtypes of one or several kinds by name."""
    return {
        name: dtype
        for name, dtype in _DTYPES.items()
        if kind is None or dtypes.isdtype(dtype, kind)
    }


# --- NumPy functions outside of the standard ------------------------------------------------------


def __getattr__(name: str) -> Any:
    """Return a function of NumPy, which records on tensors, or its `lib`: xarray calls them."""
    function = getattr(np, name, None)
    if isinstance(function, type(np.sum)) or function is np.lib:  # they dispatch on arguments
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
