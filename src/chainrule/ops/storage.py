"""The memory of a tensor: shared with other processes, resized or replaced; loops over elements."""

from __future__ import annotations

import math
import mmap
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import CPU, address_of, device_of, storage_of
from chainrule.errors import AutogradError
from chainrule.operation import operation

__all__: list[str] = []  # methods alone


@operation()
def share_memory_(x: Tensor) -> Tensor:
    """Move a tensor to memory that processes share which are forked afterwards; return it.

    Notes
    -----
    A process that is spawned gets a copy: tensors are pickled by value.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.ones(2).share_memory_().is_shared()
    True
    """
    array = x._array
    if isinstance(array, np.ndarray) and not is_shared(x):
        memory = mmap.mmap(-1, max(array.nbytes, 1))
        shared = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
        shared[...] = array
        x.data = make(shared, None)
    return x


@operation()
def is_shared(x: Tensor) -> bool:
    """Return whether processes that are forked share the memory of a tensor."""
    owner: Any = x._array
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return isinstance(owner, mmap.mmap)


@operation()
def pin_memory(x: Tensor, device: Any = None) -> Tensor:
    """Return this tensor: memory isn't page-locked."""
    return x


@operation()
def is_pinned(x: Tensor, device: Any = None) -> bool:
    """Return whether the memory is page-locked: False."""
    return False


@operation()
def record_stream(x: Tensor, stream: Any) -> None:
    """Keep the memory until a stream has done its work, once the tensor is used no more.

    For tensors that another `chainrule.cuda.Stream` uses than the one that made them. Without a GPU
    it has no effect.
    """
    array = storage_of(x._array)
    if device_of(array) != CPU:
        weakref.finalize(array, _release, array.data, stream)


def _release(memory: Any, stream: Any) -> None:
    """Let go of memory, of which nothing else is left, when a stream has used it."""
    stream.synchronize()


class Storage:
    """The memory of a tensor: all its elements in one row, or its bytes.

    ``x.storage()`` and ``x.untyped_storage()`` make it. Tensors that share memory have storages of
    the same `data_ptr`. Elements are read and written as those of a tensor of one dimension.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 4.0], [2.0, 1.0]])
    >>> memory = x[1].storage()
    >>> memory[0] = 5.0
    >>> list(memory), x[0, 0].item()
    ([5.0, 4.0, 2.0, 1.0], 5.0)
    """

    def __init__(self, tensor: Tensor, dtype: Any) -> None:
        self._row: Tensor = make(storage_of(tensor._array).ravel(order="K").view(dtype), None)
        self.dtype: Any = self._row.dtype

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return int(address_of(self._row._array))

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return int(self._row._array.nbytes)

    def element_size(self) -> int:
        """Return the number of bytes of an element."""
        return int(self._row._array.itemsize)

    def size(self) -> int:
        """Return the number of elements."""
        return len(self)

    def tolist(self) -> list[Any]:
        """Return the elements as a list."""
        return list(self)

    def __len__(self) -> int:
        return int(self._row._array.size)

    def __getitem__(self, index: Any) -> Any:
        found = self._row[index]
        return found if isinstance(index, slice) else found.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._row[index] = value

    def __iter__(self) -> Any:
        return iter(self._row.tolist())

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self)
        return f"{lines}[{type(self).__name__} of {self.dtype}, of size {len(self)}]"


@operation()
def storage(x: Tensor) -> Storage:
    """Return the memory of a tensor as a row of elements: a `Storage`."""
    return Storage(x, x.dtype)


@operation()
def untyped_storage(x: Tensor) -> Storage:
    """Return the memory of a tensor as a row of bytes: a `Storage`."""
    return Storage(x, np.uint8)


@operation()
def resize_(x: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Give a tensor another shape, in place; return it.

    Parameters
    ----------
    *sizes : int, or one sequence of them
        The shape.
    memory_format
        As in PyTorch, without effect.

    Returns
    -------
    Tensor
        `x`: its first elements keep their values, those that it gets on top have none. A tensor
        that becomes longer gets memory of its own.

    Raises
    ------
    AutogradError
        If `x` requires grad.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.arange(6).resize_(2, 2)
    tensor([[0, 1],
            [2, 3]])
    """
    shape = tuple(sizes[0]) if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if x.requires_grad:
        raise AutogradError("resize_: cannot resize a tensor that requires grad: say x.data")
    flat, count = x.reshape(-1), math.prod(shape)
    if count <= flat.shape[0]:
        x.data = flat[:count].reshape(shape)
    else:
        longer = x.new_empty(count)
        longer[: flat.shape[0]] = flat
        x.data = longer.reshape(shape)
    return x


@operation()
def resize_as_(x: Tensor, other: Tensor, memory_format: Any = None) -> Tensor:
    """Give a tensor the shape of another, in place, as `resize_` does; return it."""
    return resize_(x, other.shape)


@operation()
def set_(x: Tensor, source: Tensor | None = None) -> Tensor:
    """Give a tensor the memory, shape and dtype of another; return it.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.zeros(3)
    >>> x.set_(cr.ones(2))
    tensor([1., 1.])
    """
    x.data = x.new_empty(0) if source is None else source.detach()
    return x


@operation()
def apply_(x: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function returns for it, in place; return the tensor.

    Slow, and without a derivative: for preparations.

    Raises
    ------
    AutogradError
        If `x` requires grad.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tensor([1.0, 4.0]).apply_(lambda v: v + 0.5)
    tensor([1.5000, 4.5000])
    """
    return _filled("apply_", x, [callable(value) for value in x.reshape(-1).tolist()])


@operation()
def map_(x: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by a function of it and another tensor's, in place; return the tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.tensor([1.0, 4.0]).map_(cr.tensor([2.0, 3.0]), max)
    tensor([2., 4.])
    """
    others = tensor.expand(x.shape).reshape(-1).tolist()
    pairs = zip(x.reshape(-1).tolist(), others, strict=True)
    return _filled("map_", x, [callable(a, b) for a, b in pairs])


def _filled(title: str, x: Tensor, values: list[Any]) -> Tensor:
    if x.requires_grad:
        raise AutogradError(f"{title}: a tensor that requires grad can't be written: say x.data")
    return x.copy_(x.new_tensor(values).reshape(x.shape))
