"""The namespace over tensors: what a rule computes with when its computation is itself recorded.

It has the array API's spellings, so that a rule reads the same for arrays and for tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.record import RECORDERS
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, namespace, numpy_xp
from chainrule.primitives.indexing import index

Shape = tuple[int, ...]


class TensorNamespace:
    """Functions of tensors under the names that rules call."""

    rule_kernels: Any = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = RECORDERS.get(name)
        if function is None:
            raise AttributeError(f"the namespace of tensors has no function {name!r}")
        self.__dict__[name] = function
        return function

    def recorder(self, name: str) -> Callable[..., Any]:
        """Return the function that applies and records a primitive."""
        return RECORDERS[name]

    def reshape(self, x: Tensor, shape: Shape, *, copy: bool | None = None) -> Any:
        return RECORDERS["reshape_copy" if copy else "reshape"](x, shape=shape)

    def broadcast_to(self, x: Tensor, shape: Shape) -> Any:
        return RECORDERS["broadcast_to"](x, shape=shape)

    spread = broadcast_to

    def permute_dims(self, x: Tensor, axes: Shape) -> Any:
        return RECORDERS["permute_dims"](x, axes=axes)

    def matrix_transpose(self, x: Tensor) -> Any:
        axes = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
        return RECORDERS["permute_dims"](x, axes=axes)

    def moveaxis(self, x: Tensor, source: int, destination: int) -> Any:
        order = [i for i in range(x.ndim) if i != source % x.ndim]
        order.insert(destination % x.ndim, source % x.ndim)
        return RECORDERS["permute_dims"](x, axes=tuple(order))

    def expand_dims(self, x: Tensor, *, axis: int) -> Any:
        axis %= x.ndim + 1
        return RECORDERS["reshape"](x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))

    def squeeze(self, x: Tensor, *, axis: int) -> Any:
        axis %= x.ndim
        return RECORDERS["reshape"](x, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))

    def sum(self, x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Any:
        axis = (axis,) if isinstance(axis, int) else axis
        return RECORDERS["sum"](x, axis=_positive(axis, x.ndim), keepdims=keepdims)

    def max(self, x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Any:
        axis = (axis,) if isinstance(axis, int) else axis
        return RECORDERS["max"](x, axis=_positive(axis, x.ndim), keepdims=keepdims)

    def concat(self, arrays: Sequence[Tensor], *, axis: int) -> Any:
        return RECORDERS["concat"](*arrays, axis=axis)

    def stack(self, arrays: Sequence[Tensor], *, axis: int) -> Any:
        return RECORDERS["stack"](*arrays, axis=axis)

    def astype(self, x: Tensor, dtype: Any) -> Any:
        return x if x.dtype == dtype else RECORDERS["astype"](x, dtype=dtype)

    def assign_at(self, base: Tensor, value: Tensor, key: Any) -> Any:
        return RECORDERS["assign"](base, value, path=((index, {"key": key}),), lasting=None)

    # --- constants ---

    def zeros_like(self, x: Tensor) -> Tensor:
        return make(namespace(x._array).zeros_like(x._array), None)

    def ones_like(self, x: Tensor) -> Tensor:
        return make(namespace(x._array).ones_like(x._array), None)

    def zeros(self, shape: Shape, *, dtype: Any) -> Tensor:
        return make(numpy_xp.zeros(shape, dtype), None)

    def ones(self, shape: Shape, *, dtype: Any) -> Tensor:
        return make(numpy_xp.ones(shape, dtype), None)

    def eye(self, n: int, *, dtype: Any) -> Tensor:
        return make(numpy_xp.eye(n, dtype=dtype), None)

    def triu(self, x: Tensor) -> Tensor:
        return make(numpy_xp.triu(x._array), None)

    def asarray(self, x: Any, *, dtype: Any = None, copy: bool | None = None) -> Any:
        if isinstance(x, Tensor):
            return RECORDERS["clone"](x) if copy else x
        xp = namespace(x) if is_array(x) else numpy_xp
        return make(xp.asarray(x, dtype=dtype), None)


def _positive(axis: Any, ndim: int) -> Any:
    return None if axis is None else tuple([i % ndim for i in axis])


TENSOR_XP = TensorNamespace()
