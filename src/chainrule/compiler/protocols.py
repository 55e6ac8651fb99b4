"""NumPy called with symbols: `np.sin(x)`, `np.add.reduce(x)`, `out=`."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.compiler.tracing.namespace import SYMBOL_XP, record
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.errors import CompileError

_STATIC = frozenset(
    ["shape", "ndim", "size", "result_type", "can_cast", "iscomplexobj", "isrealobj"]
)
"""Functions of shapes and dtypes alone: their results are known."""

_WRITERS = frozenset(["put", "place", "putmask", "put_along_axis", "fill_diagonal"])
_AS_NUMPYS = frozenset(
    [
        *("reshape", "transpose", "permute_dims", "matrix_transpose", "moveaxis", "swapaxes"),
        *("expand_dims", "squeeze", "broadcast_to", "astype", "zeros_like", "ones_like"),
    ]
)
"""Functions that take here what NumPy's take, and give views."""


def _array_ufunc(self: Symbol, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Record a ufunc."""
    if any(isinstance(x, Tensor) for x in inputs):
        return NotImplemented  # what has a history is the tensor's to record
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if getattr(np, ufunc.__name__, None) is not ufunc or method == "at":
        raise CompileError(f"{name} can't be compiled: it is no function of NumPy's, or writes")
    (target,) = kwargs.pop("out", (None,))
    return record(name, *inputs, out=target, **kwargs)


def _array_function(self: Symbol, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Record any other function."""
    if any(issubclass(kind, Tensor) for kind in types):
        return NotImplemented
    name = str(function.__name__)
    module = str(function.__module__).replace("numpy", "np", 1)
    if name in _STATIC:
        args = tuple(
            np.broadcast_to(np.ones((), a.dtype), a.shape) if isinstance(a, Symbol) else a
            for a in args
        )
        return function(*args, **kwargs)
    if name == "copyto":
        target, value = args[:2]
        where = kwargs.get("where", True)
        target[...] = value if where is True else record("np.where", where, value, target)
        return None
    if name in _WRITERS:
        raise CompileError(f"np.{name} writes in place, which can't be compiled: assign to x[i]")
    if name in _AS_NUMPYS and module == "np":
        return getattr(SYMBOL_XP, name)(*args, **kwargs)
    return record(f"{module}.{name}", *args, **kwargs)


for _name, _method in {
    "__array_ufunc__": _array_ufunc,
    "__array_function__": _array_function,
}.items():
    setattr(Symbol, _name, _method)
