"""Methods and operators of `ndarray` that are functions of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.recorders import twin_of
from chainrule.autograd.tensor import Tensor
from chainrule.numpy.array_class import (
    array_of_list,
    as_ndarrays,
    call,
    ndarray,
    takes_no_ufuncs,
)
from chainrule.ops.sparse_products import is_sparse_matrix, sparse_product


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(function, (self, *args), kwargs)

    method.__name__ = name
    method.__doc__ = f"Do `numpy.{name}`."
    return method


METHODS = """
    all any argmax argmin argpartition argsort choose cumprod cumsum diagonal dot max mean min
    nonzero prod put ravel repeat round searchsorted squeeze std sum swapaxes take trace var"""
"""Methods of arrays that are functions of NumPy."""

for _name in METHODS.split():
    setattr(ndarray, _name, _method(_name))


def _method_of_number(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        """As the method of Python's float."""
        # Whether it is an integer is a truth value, as comparisons give.
        number = self._array.item() if name == "is_integer" else self.item()
        return getattr(number, name)(*args)

    method.__name__ = name
    return method


for _name in ("as_integer_ratio", "hex", "is_integer", "__trunc__"):
    setattr(ndarray, _name, _method_of_number(_name))


def _operator(ufunc: Any, tensors: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    tensors = twin_of(tensors)

    def operator(self: Any, other: Any) -> Any:
        kind = type(other)
        # without the cost of NumPy's protocol
        if kind in _DIRECT or (kind is np.ndarray and other.dtype.kind in "fc"):
            return tensors(self, other)
        if takes_no_ufuncs(other):
            return NotImplemented
        if ufunc in _PRODUCTS and is_sparse_matrix(other):
            return as_ndarrays(sparse_product(self, other, elementwise=ufunc is np.multiply))
        return ufunc(self, other)

    return operator


def _comparison(ufunc: Any) -> Callable[[Any, Any], Any]:
    def comparison(self: Any, other: Any) -> Any:
        if other is None or isinstance(other, str | bytes):  # no number is equal to it
            return ufunc(np.zeros(self.shape, object), other)
        return ufunc(self, other)

    return comparison


def _reflected(ufunc: Any, tensors: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    tensors = twin_of(tensors)

    def operator(self: Any, other: Any) -> Any:
        if type(other) in _DIRECT:
            return tensors(self, other)
        if ufunc is np.true_divide and not self.ndim and is_sparse_matrix(other):
            return sparse_product(other, 1 / self, elementwise=True)
        if ufunc in _PRODUCTS and is_sparse_matrix(other):
            return as_ndarrays(sparse_product(other, self, elementwise=ufunc is np.multiply))
        return ufunc(other, self)

    return operator


_DIRECT = frozenset([ndarray, float, int, complex])
_PRODUCTS = (np.matmul, np.multiply)


def _in_place(ufunc: Any, operator: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not self._array.ndim:  # numbers are NumPy's scalars, which don't change
            result = ufunc(self, other)
            return result if isinstance(result, Tensor) else as_ndarrays(np.asarray(result))
        return operator(self, array_of_list(other))

    return method


_OPERATORS: dict[str, Any] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide},
    **{"floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul},
}
_COMPARISONS: dict[str, Any] = {
    **{"eq": np.equal, "ne": np.not_equal, "lt": np.less},
    **{"le": np.less_equal, "gt": np.greater, "ge": np.greater_equal},
}

for _name, _ufunc in _COMPARISONS.items():
    setattr(ndarray, f"__{_name}__", _comparison(_ufunc))
for _name, _ufunc in _OPERATORS.items():
    setattr(ndarray, f"__{_name}__", _operator(_ufunc, getattr(Tensor, f"__{_name}__")))
    setattr(ndarray, f"__r{_name}__", _reflected(_ufunc, getattr(Tensor, f"__r{_name}__")))
    if _name != "matmul":
        setattr(ndarray, f"__i{_name}__", _in_place(_ufunc, getattr(Tensor, f"__i{_name}__")))


def _matmul_in_place(self: Any, other: Any) -> Any:
    """Write the matrix product to the array itself."""
    self[...] = self @ other
    return self


setattr(ndarray, "__imatmul__", _matmul_in_place)  # noqa: B010 - as the operators above
