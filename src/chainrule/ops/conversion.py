"""Copies, and conversion to other dtypes and devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import DeviceLike, DTypeLike, Operand, dtype_of, is_device, tensor_of
from chainrule.autograd.tensor import Tensor, default_dtype
from chainrule.backend import DTYPE_TITLES, dtype_title
from chainrule.backend import device as as_device
from chainrule.operation import operation
from chainrule.primitives import elementwise

__all__ = ["clone", "astype", "numel", "is_tensor"]


@operation()
def clone(input: Operand, *, memory_format: Any = None) -> Tensor:
    """Return a copy of `input` that is part of the graph; PyTorch's `memory_format` has no effect.

    Notes
    -----
    Derivative: 1. For a copy outside of the graph write ``x.detach().clone()``.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.zeros(2)
    >>> y = cr.clone(x)
    >>> x.add_(1)
    tensor([1., 1.])
    >>> y
    tensor([0., 0.])
    """
    return elementwise.clone.apply(tensor_of(input))


@operation(array_api=True)
def astype(
    x: Operand, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None
) -> Tensor:
    """Return `x` in another dtype.

    Parameters
    ----------
    x : Tensor
        Any tensor.
    dtype : dtype
        The dtype to convert to.
    copy : bool, default True
        Whether to copy if no conversion is needed: False may return `x` itself.
    device : device or str, optional
        The device of the result: that of `x` if left out.

    Returns
    -------
    Tensor, shape of `x`

    Notes
    -----
    Derivative: 1; the gradient is converted back to the dtype of `x`. Conversion to integers
    stops it.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.astype(cr.tensor([1, 2]), cr.float32)
    tensor([1., 2.])
    """
    return to(tensor_of(x), dtype=dtype, device=device, copy=copy)


def numel(input: Operand) -> int:
    """Return the number of elements.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.numel(cr.zeros(2, 3))
    6
    """
    return tensor_of(input).numel()


def is_tensor(obj: Any, /) -> bool:
    """Return whether an object is a Tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_tensor(1.0)
    False
    """
    return isinstance(obj, Tensor)


# --- methods --------------------------------------------------------------------------------------


@operation()
def to(
    x: Tensor,
    *target: Any,
    dtype: DTypeLike = None,
    device: Any = None,
    copy: bool = False,
    other: Tensor | None = None,
    non_blocking: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return the tensor in another dtype or on another device; itself if nothing changes.

    Parameters
    ----------
    *target : dtype, device or Tensor
        In any order; of a Tensor, its dtype and its device are used. Bools after them are PyTorch's
        `non_blocking` and `copy`.
    dtype, device : optional
        The same, by name.
    copy : bool, default False
        Whether to copy in any case.
    other : Tensor, optional
        The Tensor whose dtype and device are used.
    non_blocking, memory_format
        Accepted for compatibility with PyTorch, and ignored.

    Returns
    -------
    Tensor, shape of `x`

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2).to(cr.float64)
    tensor([1., 1.], dtype=float64)
    >>> cr.ones(2).to("cpu").device
    device(type='cpu')
    """
    targets = list(target) if other is None else [*target, other]
    flags = [item for item in targets if isinstance(item, bool)]
    copy = copy or flags[1:2] == [True]  # the first bool is PyTorch's non_blocking
    for item in targets:
        if isinstance(item, bool):
            continue
        if isinstance(item, Tensor):
            dtype, device = item.dtype, item.device
        elif is_device(item):
            device = item
        else:
            dtype = item
    result = x
    if dtype is not None and dtype_of(dtype) != x.dtype:
        result = elementwise.astype.apply(result, dtype=dtype_of(dtype))
    if device is not None and as_device(device) != x.device:
        result = elementwise.to_device.apply(result, source=x.device, target=as_device(device))
    return elementwise.clone.apply(x) if copy and result is x else result


_TYPE_NAMES = {f"{title}Tensor": name for name, title in DTYPE_TITLES.items()}


@operation(method="type")
def type_(x: Tensor, dtype: DTypeLike = None) -> Any:
    """Return the tensor in another dtype; itself if the dtype is the same.

    Without a dtype, return PyTorch's name of the tensor's type, such as ``"torch.FloatTensor"``,
    which is accepted as a dtype here, too. ``cr.Tensor`` stands for the default dtype.
    """
    if dtype is None:
        return f"torch.{dtype_title(x.dtype)}Tensor"
    if isinstance(dtype, str):
        dtype = _TYPE_NAMES.get(dtype.removeprefix("torch."), dtype)
    elif dtype is Tensor:  # PyTorch's default type of tensors
        dtype = default_dtype()
    return to(x, dtype=dtype)


@operation()
def to_dense(x: Tensor) -> Tensor:
    """Return this tensor, which is dense: scripts call it of sparse ones."""
    return x


@operation()
def type_as(x: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype of `other`."""
    return to(x, dtype=other.dtype)


@operation()
def cpu(x: Tensor) -> Tensor:
    """Return the tensor on the CPU; itself if it is there already."""
    return to(x, device="cpu")


@operation()
def cuda(x: Tensor, device: Any = "cuda", non_blocking: bool = False) -> Tensor:
    """Return the tensor on a GPU; itself if it is there already."""
    return to(x, device=f"cuda:{device}" if isinstance(device, int) else device)


def _converter(name: str, dtype: str) -> Any:
    target = np.dtype(dtype)

    def method(x: Tensor, memory_format: Any = None) -> Tensor:
        return x if x.dtype == target else elementwise.astype.apply(x, dtype=target)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Return the tensor as {dtype}; itself if it has that dtype already."
    return method


for _name, _dtype in {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "bool": "bool",
}.items():
    operation()(_converter(_name, _dtype))
