"""Operands of linear algebra as SciPy converts them, and operations that several modules share."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, namespace
from chainrule.backend.extensions import SCIPY
from chainrule.errors import ArgumentError, ShapeError
from chainrule.interop.operands import tensors_of
from chainrule.ops import masked_fill, matrix_transpose
from chainrule.ops.complex import conj
from chainrule.scipy.dispatch import Table

TABLE = Table("scipy.linalg", SCIPY, has_scipys_numbers=True)
"""The functions of tensors of `scipy.linalg`."""


def _as_array(value: Any) -> Any:
    """Return an object with an array in it, such as a matrix of another library, as an array."""
    if isinstance(value, Tensor | np.ndarray) or is_array(value):
        return value
    is_foreign = hasattr(value, "__array__") or hasattr(value, "__array_interface__")
    return np.asarray(value) if is_foreign else value


def operands(name: str, *values: Any, finite: bool = True) -> list[Tensor]:
    """Return operands as tensors of one dtype: integers as float64, half precision as single."""
    tensors = tensors_of([_as_array(value) for value in values])
    dtype = functools.reduce(np.promote_types, [t._array.dtype for t in tensors])
    if dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    elif dtype.char == "e":
        dtype = np.dtype(np.float32)
    for t in tensors:
        if finite and t._array.__class__ is np.ndarray and not np.isfinite(t._array).all():
            raise ArgumentError(f"scipy.linalg.{name}: array must not contain infs or NaNs")
    return [cast(t, dtype) for t in tensors]


def square(name: str, *values: Any, finite: bool = True) -> list[Tensor]:
    """Return operands, which are square matrices of one size."""
    tensors = operands(name, *values, finite=finite)
    for t in tensors:
        if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
            raise ShapeError(
                f"scipy.linalg.{name}: expected a square matrix, got the shape {list(t.shape)}"
            )
    sizes = {t.shape[-1] for t in tensors}
    if len(sizes) > 1:
        raise ShapeError(
            f"scipy.linalg.{name}: expected square matrices of one size, got the shapes "
            f"{', '.join(str(list(t.shape)) for t in tensors)}"
        )
    return tensors


def system(name: str, a: Any, b: Any, finite: bool = True) -> tuple[Tensor, Tensor, bool]:
    """Return a matrix, right sides in columns, and whether they were one vector."""
    matrix, sides = operands(name, a, b, finite=finite)
    if matrix.ndim < 2:
        matrix = ops.reshape(matrix, (1,) * (2 - matrix.ndim) + matrix.shape)
    (matrix,) = square(name, matrix, finite=False)
    sides = sides if sides.ndim else ops.reshape(sides, (1,))
    vector = sides.ndim == 1
    sides = ops.reshape(sides, (*sides.shape, 1)) if vector else sides
    if sides.ndim < 2 or sides.shape[-2] != matrix.shape[-1]:
        raise ShapeError(
            f"scipy.linalg.{name}: incompatible shapes: a matrix of shape {list(matrix.shape)} "
            f"and right sides of shape {list(np.shape(b))}"
        )
    return matrix, sides, vector


def as_vector(x: Tensor, vector: bool) -> Tensor:
    """Return a solution in one column as a vector, if the right side was one."""
    return ops.reshape(x, x.shape[:-1]) if vector else x


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose."""
    flipped = matrix_transpose(x)
    return conj(flipped) if x.is_complex() else flipped


def eye_like(x: Tensor, n: int) -> Tensor:
    """Return the identity of order `n` in the dtype of a tensor."""
    return make(namespace(x._array).eye(n, dtype=x.dtype), None)


def taken(x: Tensor, index: np.ndarray[Any, Any]) -> Tensor:
    """Return the elements of the last axis at an index array, of -1 the number 0."""
    missing = index < 0
    found: Tensor = x[..., np.where(missing, 0, index)]
    return masked_fill(found, missing, 0) if missing.any() else found
