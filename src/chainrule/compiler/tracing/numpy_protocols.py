"""NumPy's functions, ufuncs and methods of arrays on symbols, as users call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.tensor import Tensor, make
from chainrule.compiler.tracing.namespace import SYMBOL_XP, record
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.errors import CompileError
from chainrule.numpy import array_class
from chainrule.numpy.array_class import ndarray
from chainrule.numpy.array_operators import METHODS

_STATIC = frozenset(
    ["shape", "ndim", "size", "result_type", "can_cast", "iscomplexobj", "isrealobj"]
)
"""Functions that read only shapes and dtypes: their results are known while tracing."""

_BY_RULES = frozenset(
    [
        *("copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal"),
        *("split", "array_split", "hsplit", "vsplit", "dsplit", "unstack"),
        *("flip", "fliplr", "flipud", "rot90", "rollaxis"),
        *("atleast_1d", "atleast_2d", "atleast_3d", "real", "imag", "copy"),
    ]
)
"""Functions that write to an argument, or return views, as our rules for NumPy's functions do."""

_FROM_NAMESPACE = frozenset(
    [
        *("reshape", "transpose", "permute_dims", "matrix_transpose", "moveaxis", "swapaxes"),
        *("expand_dims", "squeeze", "broadcast_to", "astype", "zeros_like", "ones_like", "ravel"),
    ]
)
"""Functions of `SymbolNamespace` with the signatures of NumPy's."""


_JOINING = (np.concatenate, np.stack)
"""Functions whose axis is a keyword in programs."""


def _array_ufunc(self: Symbol, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Record a ufunc."""
    if any(isinstance(x, Tensor) for x in inputs):
        return NotImplemented  # tensors record their operations themselves
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if getattr(np, ufunc.__name__, None) is not ufunc:
        raise CompileError(f"{name} can't be compiled: it is no function of NumPy's")
    if method == "at":
        ndarray.__array_ufunc__(_recorded(self), ufunc, method, *map(_recorded, inputs))
        return None
    out, where = kwargs.pop("out", None), kwargs.get("where", True)
    if method != "__call__":
        result = record(name, *inputs, **kwargs)
    elif where is True:
        inputs = _symbols(array_class.ufunc_operands(inputs, kwargs))
        result = record(name, *inputs, **kwargs)
    else:
        # Elsewhere the ufunc may have no value: it isn't computed there.
        del kwargs["where"]
        inside = [np.where(where, value, 1) for value in inputs]
        found = _array_ufunc(self, ufunc, method, *inside, **kwargs)
        result = _symbols(array_class.selected(where, found, out))
    return result if out is None else array_class.written(ufunc, out, result)


def _array_function(self: Symbol, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Record any other function."""
    if any(issubclass(kind, Tensor) for kind in types):
        return NotImplemented
    out = kwargs.get("out")
    if out is not None:
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        found = _array_function(self, function, types, args, kwargs)
        return array_class.written(function, out, found)
    name = str(function.__name__)
    module = str(function.__module__).replace("numpy", "np", 1)
    if name in _STATIC:
        args = tuple(
            np.broadcast_to(np.ones((), a.dtype), a.shape) if isinstance(a, Symbol) else a
            for a in args
        )
        return function(*args, **kwargs)
    if name in _BY_RULES and module == "np":
        return _symbols(array_class.call(function, _recorded(args), _recorded(kwargs)))
    if name in _FROM_NAMESPACE and module == "np":
        return getattr(SYMBOL_XP, name)(*args, **kwargs)
    if function in (np.sum, np.mean) and len(args) < 3 and kwargs.keys() <= {"axis", "keepdims"}:
        return getattr(SYMBOL_XP, name)(*args, **kwargs)
    if function in _JOINING and len(args) == 2:
        args, kwargs = args[:1], {"axis": args[1], **kwargs}
    return record(f"{module}.{name}", *args, **kwargs)


def _recorded(tree: Any) -> Any:
    """Return arguments with arrays that record in the place of symbols, of the same memory."""
    return pytree.map_leaves(tree, lambda x: _as_recorded(x) if isinstance(x, Symbol) else x)


def _as_recorded(x: Symbol) -> Any:
    return array_class.as_ndarray(make(x, None))


def _symbols(tree: Any) -> Any:
    """Return results with symbols in the place of arrays that record."""
    return pytree.map_leaves(tree, lambda x: x._array if x.__class__ is ndarray else x)


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


def install() -> None:
    """Give symbols the protocols, and the methods that arrays have by functions of NumPy."""
    found = {"__array_ufunc__": _array_ufunc, "__array_function__": _array_function}
    own = {**vars(ArrayProxy), **vars(Symbol)}
    found |= {name: _method(name) for name in METHODS.split() if name not in own}
    found |= {name: vars(ndarray)[name] for name in _OF_ARRAYS}
    for name, method in found.items():
        setattr(Symbol, name, method)


_OF_ARRAYS = (
    *("clip", "compress", "conj", "conjugate", "fill", "flat", "flatten", "partition", "resize"),
    *("sort", "transpose", "__contains__", "__divmod__", "__rdivmod__", "__round__"),
)
"""Methods of arrays that record, which call functions of NumPy in other ways."""
