"""Checks of matrix arguments, and errors that name the matrix on which LAPACK fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.arguments import Operand, cast, floating
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor
from chainrule.backend import dtype_title, namespace, promoted, whole
from chainrule.errors import DTypeError, LinAlgError, ShapeError
from chainrule.primitives import contraction, elementwise, shaping
from chainrule.primitives.primitive import Primitive

Array = Any


def matrices(x: Operand, name: str) -> Tensor:
    """Return a tensor of floating or complex matrices, of a dtype that LAPACK supports."""
    tensor = floating(x)
    if tensor.ndim < 2:
        raise ShapeError(
            f"linalg.{name}: The input tensor must have at least 2 dimensions, but has shape "
            f"{list(tensor.shape)}."
        )
    if tensor.dtype.itemsize < 4:
        raise DTypeError(
            f"linalg.{name}: Low precision dtypes not supported. Got {dtype_title(tensor.dtype)}: "
            "convert with .float() first"
        )
    return tensor


def square(x: Operand, name: str) -> Tensor:
    """Return a tensor of square matrices."""
    tensor = matrices(x, name)
    m, n = tensor.shape[-2:]
    if m != n:
        raise ShapeError(
            f"linalg.{name}: A must be batches of square matrices, but they are {m} by {n} matrices"
        )
    return tensor


def with_common_dtype(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Return two tensors promoted to their common dtype."""
    if x.dtype == y.dtype:
        return x, y
    dtype = promoted(x.dtype, y.dtype)
    return cast(x, dtype), cast(y, dtype)


def is_tracked(x: Tensor) -> bool:
    """Tell whether operations on `x` are recorded."""
    return is_grad_enabled() and x.requires_grad


def adjoint(x: Tensor) -> Tensor:
    """Return the conjugate transpose."""
    flipped = transposed(x)
    return elementwise.conj.apply(flipped) if x.is_complex() else flipped


def transposed(x: Tensor) -> Tensor:
    axes = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    return shaping.transpose.apply(x, axes=axes)


def matmul(x: Tensor, y: Tensor) -> Tensor:
    return contraction.matmul.apply(x, y)


def column(x: Tensor) -> Tensor:
    """Return vectors as matrices of one column."""
    return shaping.reshape.apply(x, shape=(*x.shape, 1))


def without_column(x: Tensor) -> Tensor:
    """Return matrices of one column as vectors; the result is no view."""
    vectors = shaping.reshape.apply(x, shape=x.shape[:-1])
    vectors._view = None
    return vectors


Reason = str | Callable[[Array], str]


def apply_lapack(
    name: str,
    operation: Primitive | Callable[..., Any],
    reason: Reason,
    *inputs: Tensor,
    trial: str = "",
    **settings: Any,
) -> Any:
    """Apply a primitive or a function; if LAPACK fails, raise an error naming the matrix and why.

    The matrix is one of the first input; `trial` names a function of NumPy's linalg that fails on
    it, too.
    """
    try:
        apply = operation.apply if isinstance(operation, Primitive) else operation
        return apply(*inputs, **settings)
    except np.linalg.LinAlgError:
        x = whole(inputs[0]._array)
        kernel = getattr(namespace(x).linalg, trial or getattr(operation, "name", name))
        prefix, matrix = first_failing(x, kernel)
        text = reason if isinstance(reason, str) else reason(matrix)
        if isinstance(reason, str) and not namespace(x).isfinite(matrix).all():
            what = text.split(" because ")[0]
            text = f"{what} because the input matrix contained non-finite values."
        raise LinAlgError(f"linalg.{name}: {prefix}{text}") from None


def first_failing(x: Array, kernel: Callable[[Array], Any]) -> tuple[str, Array]:
    """Return a prefix that names the first matrix on which a kernel fails, and that matrix."""
    stack = x.reshape(-1, *x.shape[-2:])
    for i, matrix in enumerate(stack):
        if not accepts(kernel, matrix):
            return (f"(Batch element {i}): " if x.ndim > 2 else ""), matrix
    return "", stack[0]


def accepts(kernel: Callable[[Array], Any], matrix: Array) -> bool:
    """Tell whether a function of NumPy's linalg succeeds on a matrix."""
    try:
        kernel(matrix)
    except ValueError:  # base class of NumPy's LinAlgError
        return False
    return True
