"""The array namespace of tensors, in which rules compute when they are themselves recorded.

It has the names of the array API, so that a rule is the same for arrays and for tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import Namespace, is_array, namespace, numpy_xp, whole
from chainrule.primitives import elementwise, indexing, reductions, shaping
from chainrule.primitives.indexing import index
from chainrule.primitives.primitive import TABLE

Shape = tuple[int, ...]


class TensorNamespace:
    """Functions of tensors, by the names that rules call; constants are arrays of `constants`."""

    records = True
    rule_kernels: Any = None
    special: Any = None  # the special functions, set by `chainrule.scipy`, which declares rules

    def __init__(self, constants: Namespace = numpy_xp) -> None:
        self._constants = constants

    def beside(self, x: Any) -> TensorNamespace:
        """Return the namespace whose constants are where a tensor is, or the first of a dict."""
        x = next(iter(x.values())) if x.__class__ is dict else x
        xp = namespace(whole(x._array))
        return _on_device(xp) if xp.waits else self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        primitive = TABLE.get(name)
        if primitive is None:
            raise AttributeError(f"the namespace of tensors has no function {name!r}")
        function = self.__dict__[name] = primitive.apply
        return function

    def reshape(self, x: Tensor, shape: Shape, *, copy: bool | None = None) -> Any:
        reshape = shaping.reshape_copy if copy else shaping.reshape
        return reshape.apply(x, shape=shape)

    def broadcast_to(self, x: Tensor, shape: Shape) -> Any:
        return shaping.broadcast_to.apply(x, shape=shape)

    spread = broadcast_to

    def permute_dims(self, x: Tensor, axes: Shape) -> Any:
        return shaping.permute_dims.apply(x, axes=axes)

    def matrix_transpose(self, x: Tensor) -> Any:
        axes = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
        return shaping.permute_dims.apply(x, axes=axes)

    def moveaxis(self, x: Tensor, source: int, destination: int) -> Any:
        order = [i for i in range(x.ndim) if i != source % x.ndim]
        order.insert(destination % x.ndim, source % x.ndim)
        return shaping.permute_dims.apply(x, axes=tuple(order))

    def expand_dims(self, x: Tensor, *, axis: int) -> Any:
        axis %= x.ndim + 1
        return shaping.reshape.apply(x, shape=(*x.shape[:axis], 1, *x.shape[axis:]))

    def squeeze(self, x: Tensor, *, axis: int) -> Any:
        axis %= x.ndim
        return shaping.reshape.apply(x, shape=(*x.shape[:axis], *x.shape[axis + 1 :]))

    def sum(self, x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Any:
        axis = (axis,) if isinstance(axis, int) else axis
        return reductions.sum.apply(x, axis=_positive(axis, x.ndim), keepdims=keepdims)

    def max(self, x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Any:
        axis = (axis,) if isinstance(axis, int) else axis
        return reductions.max.apply(x, axis=_positive(axis, x.ndim), keepdims=keepdims)

    def concat(self, arrays: Sequence[Tensor], *, axis: int) -> Any:
        return shaping.concat.apply(*arrays, axis=axis)

    def stack(self, arrays: Sequence[Tensor], *, axis: int) -> Any:
        return shaping.stack.apply(*arrays, axis=axis)

    def astype(self, x: Tensor, dtype: Any) -> Any:
        return x if x.dtype == dtype else elementwise.astype.apply(x, dtype=dtype)

    def clip(self, x: Tensor, low: float | None, high: float | None) -> Any:
        return elementwise.clamp.apply(x, low=low, high=high)

    def assign_at(self, base: Tensor, value: Tensor, key: Any) -> Any:
        return indexing.assign.apply(base, value, path=((index, {"key": key}),), lasting=None)

    # --- constants ---

    def zeros_like(self, x: Tensor) -> Tensor:
        return make(namespace(x._array).zeros_like(x._array), None)

    def ones_like(self, x: Tensor) -> Tensor:
        return make(namespace(x._array).ones_like(x._array), None)

    def zeros(self, shape: Shape, *, dtype: Any) -> Tensor:
        return make(self._constants.zeros(shape, dtype), None)

    def ones(self, shape: Shape, *, dtype: Any) -> Tensor:
        return make(self._constants.ones(shape, dtype), None)

    def eye(self, n: int, *, dtype: Any) -> Tensor:
        return make(self._constants.eye(n, dtype=dtype), None)

    def arange(self, n: int) -> Tensor:
        return make(self._constants.arange(n), None)

    def asarray(self, x: Any, *, dtype: Any = None, copy: bool | None = None) -> Any:
        if isinstance(x, Tensor):
            return elementwise.clone.apply(x) if copy else x
        xp = namespace(x) if is_array(x) else self._constants
        return make(xp.asarray(x, dtype=dtype), None)


def _positive(axis: Any, ndim: int) -> Any:
    return None if axis is None else tuple([i % ndim for i in axis])


TENSOR_XP = TensorNamespace()
_on_device = functools.cache(TensorNamespace)


def connected(x: Tensor, others: Sequence[Tensor]) -> Tensor:
    """Return x, whose derivatives by `others` are exactly zero."""
    for other in others:
        nothing = TENSOR_XP.reshape(other, (-1,))[:0]
        x = x + TENSOR_XP.astype(TENSOR_XP.sum(nothing), x.dtype)
    return x
