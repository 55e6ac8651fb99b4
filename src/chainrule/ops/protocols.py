"""Protocols of other libraries: DLPack, the array API's namespace, `__array_function__`."""

from __future__ import annotations

import functools
from importlib import import_module
from types import ModuleType
from typing import Any

from chainrule.arguments import DeviceLike, dtype_of, watched
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import array_from_dlpack, is_array, is_known
from chainrule.backend import device as as_device
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.operation import operation
from chainrule.ops.conversion import to

__all__ = ["from_dlpack", "to_dlpack"]


@operation(method=False, array_api=True)
def from_dlpack(input: Any, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of another library's array.

    Writing to one changes the other. A write through the other library is invisible to the graph:
    it does not change the version, so a gradient that needs the old values is silently wrong.

    Parameters
    ----------
    input : object with ``__dlpack__``, or a capsule of `to_dlpack`
        For example an array of NumPy, CuPy, PyTorch or JAX. A read-only array, such as one of JAX,
        makes a read-only tensor.
    device : device or str, optional
        The device of the tensor: that of `input` if left out.
    copy : bool, optional
        True always copies; False raises if sharing is impossible; None copies if necessary.

    Returns
    -------
    Tensor
        A leaf that does not require grad.

    Raises
    ------
    TypeError
        If `input` has no ``__dlpack__``.
    BufferError
        If the memory can't be shared, or `input` is a Tensor that requires grad.
    ArgumentError
        If `copy` is False and another device needs a copy.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> a = np.zeros(2)
    >>> t = cr.from_dlpack(a)
    >>> a[0] = 5
    >>> t
    tensor([5., 0.], dtype=float64)
    """
    if type(input).__name__ == "PyCapsule":
        input = _Capsule(input)
    if is_array(input) and not is_known(found := watched(input)):
        dtype_of(input.dtype)
        return make(found.copy() if copy else found, None)
    if not hasattr(input, "__dlpack__"):
        raise ArgumentTypeError(
            f"from_dlpack(): expected an array with __dlpack__, got {type(input).__name__}: "
            "asarray() takes sequences and numbers"
        )
    array = array_from_dlpack(input, None if device is None else as_device(device), copy)
    dtype_of(array.dtype)
    return make(array, None)


class _Capsule:
    """The memory in a capsule of `to_dlpack`, on the CPU."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **settings: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


# --- methods --------------------------------------------------------------------------------------


@operation(method="__dlpack__")
def dlpack(
    x: Tensor,
    /,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return the memory as a DLPack capsule, for `from_dlpack` of any library.

    Memory with negative strides is copied, unless ``copy=False``: PyTorch ends the process when it
    receives negative strides.

    Raises
    ------
    BufferError
        If the tensor requires grad: call ``detach()`` first.
    """
    if x.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if copy is None and min(x._array.strides, default=0) < 0:
        copy = True
    return x._array.__dlpack__(
        stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


def to_dlpack(input: Tensor) -> Any:
    """Return `input.__dlpack__()`: a capsule of the memory, which `from_dlpack` functions take."""
    return input.__dlpack__()


@operation(method="__dlpack_device__")
def dlpack_device(x: Tensor, /) -> tuple[Any, int]:
    """Return the type and the index of the tensor's device, as DLPack numbers them."""
    kind_and_number: tuple[Any, int] = x._array.__dlpack_device__()
    return kind_and_number


@operation()
def to_device(x: Tensor, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on a device; itself if it is there already.

    Raises
    ------
    ArgumentError
        If a stream is given: use CuPy's ``with stream:`` instead.
    """
    if stream is not None:
        raise ArgumentError("to_device(): stream must be None: use CuPy's `with stream:` around it")
    return to(x, device=device)


@operation(method="__array_namespace__")
def array_namespace(x: Tensor, /, *, api_version: str | None = None) -> ModuleType:
    """Return `chainrule.array_api`, the array API's functions over tensors.

    Raises
    ------
    ArgumentError
        If this version of the standard is not supported.
    """
    module = import_module("chainrule.array_api")  # an upper layer, which imports this one
    if api_version not in (None, *module.VERSIONS):
        raise ArgumentError(
            f"chainrule has the array API of {', '.join(module.VERSIONS)}, got {api_version!r}"
        )
    return module


@operation(method="__array_function__")
def array_function(x: Tensor, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call the function of tensors for a NumPy function; see the package `interop`."""
    return _interop().array_function(function, types, args, kwargs)


@functools.cache
def _interop() -> ModuleType:
    """Import `interop`, an upper layer, when a NumPy function is first called on tensors."""
    return import_module("chainrule.interop")
