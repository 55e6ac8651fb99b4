"""Methods of tensors that look at the same memory otherwise, and their opposites."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import RECORDERS, DTypeLike, Sizes, dtype_of, one_dim, sizes_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace, storage_of
from chainrule.errors import ShapeError
from chainrule.ops.reshape import full_shape, view_shape
from chainrule.ops.wrappers import reshaped

_DTYPES = (np.dtype, type)


def view(x: Tensor, /, *sizes: Any, size: Sizes | None = None, dtype: DTypeLike = None) -> Tensor:
    """Return a view of `x` in another shape; the arguments are those of `reshape`.

    Parameters
    ----------
    dtype : dtype, optional
        In the place of a shape: read the bits of the elements as numbers of this dtype. If it is
        narrower or wider, the last dimension becomes longer or shorter.

    Raises
    ------
    ShapeError
        If the memory layout needs a copy: use `reshape`. If the last dimension can't hold the
        other dtype.

    Notes
    -----
    Derivative: 1; the gradient is reshaped back. Another dtype has none.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).view(-1).shape
    (6,)
    """
    if len(sizes) == 1 and isinstance(sizes[0], _DTYPES):
        return _bits(x, sizes[0])
    if dtype is not None:
        return _bits(x, dtype)
    wanted = sizes_of(sizes if size is None else (size,))
    fitting = view_shape(x, wanted)
    if fitting is None:
        full_shape(x, wanted)  # which raises if it's the number of elements that doesn't fit
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return RECORDERS["reshape"](x, shape=fitting)


def _bits(x: Tensor, dtype: DTypeLike) -> Tensor:
    target = dtype_of(dtype)
    if target == x.dtype:
        return RECORDERS["reshape"](x, shape=x.shape)
    times = target.itemsize / x.dtype.itemsize
    as_other = f"to view {x.dtype} as {target} (different element sizes), but got"
    if times != 1 and x.ndim == 0:
        raise ShapeError(f"view: self.dim() cannot be 0 {as_other} a number")
    if times > 1 and x.shape[-1] % times:
        raise ShapeError(
            f"view: self.size(-1) must be divisible by {times:.0f} {as_other} {x.shape[-1]}"
        )
    try:
        return make(x._array.view(target), None)
    except ValueError:
        raise ShapeError(
            f"view: self.stride(-1) must be 1 {as_other} {x.stride(-1)}: take contiguous() first"
        ) from None


def contiguous(x: Tensor, /) -> Tensor:
    """Return `x` itself if its elements lie in memory in row-major order, else a copy that does.

    Notes
    -----
    Derivative: 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).t().contiguous().is_contiguous()
    True
    """
    found = namespace(x._array).is_contiguous(x._array)
    if found is None:  # a compiler that can't tell which of the two it is refuses writes to it
        return reshaped(reshaped(x, (x.numel(),)), x.shape)
    return x if found else RECORDERS["reshape_copy"](x, shape=x.shape)


def sum_to_size(x: Tensor, /, *sizes: Any) -> Tensor:
    """Return the tensor summed to a shape that broadcasts to its own.

    Parameters
    ----------
    *sizes : int, or one sequence of ints
        The shape to have.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If that shape does not broadcast to the tensor's.

    Notes
    -----
    Derivative: 1 for every element.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2, 3).sum_to_size(1, 3)
    tensor([[2., 2., 2.]])
    """
    shape = sizes_of(sizes)
    lead = x.ndim - len(shape)
    fits = lead >= 0 and all(
        [n in (1, length) for n, length in zip(shape, x.shape[lead:], strict=True)]
    )
    if not fits:
        raise ShapeError(
            f"size {list(shape)} is not expandable to size {list(x.shape)}: sum_to_size() sums "
            "over leading dimensions, and over those where the size is 1"
        )
    axes = tuple([i for i in range(x.ndim) if i < lead or shape[i - lead] != x.shape[i]])
    return reshaped(RECORDERS["sum"](x, axis=axes, keepdims=True), shape) if axes else x


def stride(x: Tensor, dim: int | None = None) -> Any:
    """Return by how many elements of memory neighbours are apart, along each dimension or one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3).stride()
    (3, 1)
    """
    steps = tuple([step // x._array.itemsize for step in x._array.strides])
    return steps if dim is None else steps[one_dim(dim, x.ndim)]


def storage_offset(x: Tensor) -> int:
    """Return how many elements of the memory come before the first one of this tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.zeros(2, 3)[1].storage_offset()
    3
    """
    first = storage_of(x._array)
    apart = x._array.ctypes.data - first.ctypes.data
    return int(apart // x._array.itemsize)
