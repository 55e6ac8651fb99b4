"""Functions of the stand-in: NumPy's and SciPy's, with CuPy's names, parameters and dtypes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from cupy_stand_in import arrays, runtime
from cupy_stand_in.arrays import Capsule, host_of, ndarray, operand, unwrap, wrap
from cupy_stand_in.runtime import transfers
from cupy_stand_in.surface import signature_of, surface

# --- ufuncs ---------------------------------------------------------------------------------------

_SCATTERED = {"add": "efdFDiILQ", "maximum": "fdiILQ", "minimum": "fdiILQ"}
"""Dtypes whose elements CuPy's scatter functions combine: not int64."""


class ufunc:
    """A ufunc with CuPy's loops: other dtypes are converted to the first that holds them."""

    def __init__(self, name: str, loops: list[str], function: Callable[..., Any]) -> None:
        self.name = self.__name__ = name
        self._function = function
        self.types = loops
        self._loops = [loop.split("->") for loop in loops]

    def _out_dtypes(self, hosts: list[Any]) -> str:
        """Return the dtypes of the results, as the first loop that the operands fit in has them."""
        weak = [value for value in hosts if type(value) in (bool, int, float, complex)]
        strong = [np.result_type(value) for value in hosts if not any(value is w for w in weak)]
        common = np.result_type(*strong, *weak)
        for needs, gives in self._loops:
            if len(needs) != len(hosts):
                continue
            dtypes = [
                np.result_type(*strong, value) if any(value is w for w in weak) else value.dtype
                for value in hosts
            ]
            if all(np.can_cast(d, need) for d, need in zip(dtypes, needs, strict=True)):
                return gives
        raise TypeError(f"Wrong type ({common}) of arguments for cupy_{self.name}")

    def __call__(
        self, *arguments: Any, out: Any = None, casting: Any = "same_kind", dtype: Any = None
    ) -> Any:
        if not any(isinstance(value, ndarray) for value in arguments):
            unsupported = [type(value) for value in arguments if not np.isscalar(value)]
            if unsupported:
                raise TypeError(f"Unsupported type {unsupported[0]}")
        hosts = [operand(value) for value in arguments]
        chars = self._out_dtypes(hosts)
        if dtype is not None:
            hosts = [np.asarray(h).astype(dtype) for h in hosts]
            chars = np.dtype(dtype).char
        with np.errstate(all="ignore"):
            found = self._function(*hosts)
        results = found if isinstance(found, tuple) else (found,)
        results = tuple(
            np.asarray(part).astype(char, order="C")  # whatever the order of the operands
            for part, char in zip(results, chars, strict=True)
        )
        if out is None:
            return wrap(results if len(results) > 1 else results[0])
        if not np.can_cast(results[0].dtype, out.dtype, casting):
            raise TypeError(f"output (typecode {chars!r}) could not be coerced to {out.dtype}")
        host_of(out)[...] = results[0]
        return out

    def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
        if self.name not in _SCATTERED:
            raise NotImplementedError(f"`{self.name}.at` is not supported yet")
        scatter(self.name, a, indices, b)

    def outer(self, a: Any, b: Any, **settings: Any) -> Any:
        return self(a.reshape(*a.shape, *(1,) * b.ndim), b, **settings)

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if self.name not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.name}.reduce` is not supported yet")
        return wrap(getattr(np, self.name).reduce(host_of(array), axis, dtype, keepdims=keepdims))

    def accumulate(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.name not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.name}.accumulate` is not supported yet")
        return wrap(getattr(np, self.name).accumulate(host_of(array), axis, dtype))


def scatter(name: str, a: ndarray, key: Any, value: Any) -> None:
    """Combine values with elements, in an order that a device doesn't promise."""
    if a.dtype.char not in _SCATTERED[name]:
        raise TypeError(f"scatter_{name}: unsupported dtype {a.dtype}")
    host, index = host_of(a), arrays.index_of(key, a.shape)
    places = np.arange(a.size).reshape(a.shape)[index]
    values = np.broadcast_to(np.asarray(operand(value)), places.shape).astype(a.dtype)
    flat = host.reshape(-1).copy()
    with np.errstate(all="ignore"):
        getattr(np, name).at(flat, places.reshape(-1)[::-1], values.reshape(-1)[::-1])
    host[...] = flat.reshape(host.shape)


def _floor_divide(x: Any, y: Any) -> Any:
    """Floor of the rounded quotient, as CuPy has it: 10 for 1 / 0.1."""
    quotient = np.floor_divide(x, y)
    return np.floor(np.true_divide(x, y)) if quotient.dtype.kind == "f" else quotient


def _remainder(x: Any, y: Any) -> Any:
    """Inexact, and nan for an infinite divisor."""
    rest = np.remainder(x, y)
    return x - _floor_divide(x, y) * y if rest.dtype.kind == "f" else rest


_OWN_FORMULAS = {
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "mod": _remainder,
    "divmod": lambda x, y: (_floor_divide(x, y), _remainder(x, y)),
}


def _make_ufuncs(path: str, module: Any) -> dict[str, ufunc]:
    return {
        name: ufunc(name, loops, _OWN_FORMULAS.get(name) or getattr(module, name))
        for name, (kind, loops) in surface()[path].items()
        if kind == "ufunc" and hasattr(module, name)
    }


UFUNCS: dict[str, Any] = _make_ufuncs("cupy", np)

# --- functions ------------------------------------------------------------------------------------


def lifted(name: str, words: list[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays of the host as one of arrays of a device, in CuPy's signature."""
    signature = signature_of(words)

    def on_device(*arguments: Any, **settings: Any) -> Any:
        signature.bind(*arguments, **settings)
        if name in _SYNCHRONISING:
            transfers.record("to_host")
        out = settings.pop("out", None)
        with np.errstate(all="ignore"):
            found = function(*unwrap(arguments), **{k: unwrap(v) for k, v in settings.items()})
        if out is None:
            return wrap(found, _arrays_in(arguments))
        host_of(out)[...] = found
        return out

    on_device.__name__ = name
    return on_device


def _arrays_in(arguments: Any) -> list[Any]:
    nested = [a if isinstance(a, tuple | list) else [a] for a in arguments]
    return [part for part in itertools.chain(*nested) if isinstance(part, ndarray)]


_SYNCHRONISING = {
    *("nonzero", "flatnonzero", "argwhere", "extract", "compress"),
    *("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
    *("intersect1d", "setdiff1d", "setxor1d", "union1d"),
    *("bincount", "histogram", "array_equal"),
}
"""Functions whose shape of the result depends on values, for which the host waits."""

_RENAMED = {
    "amax": "max",
    "amin": "min",
    "alltrue": "all",
    "sometrue": "any",
    "cumproduct": "cumprod",
    "product": "prod",
    "round_": "round",
    "row_stack": "vstack",
    "trapz": "trapezoid",
    "in1d": "isin",
}
"""Names that NumPy 2 has no more."""

_OF_THE_HOST = {
    *("result_type", "promote_types", "can_cast", "isdtype", "issubdtype", "broadcast_shapes"),
    *("ndim", "shape", "isscalar", "iscomplexobj", "isrealobj", "min_scalar_type"),
}
"""Functions of shapes and dtypes, whose results are not arrays."""


def make_functions(path: str, module: Any) -> dict[str, Any]:
    """Return the functions and constants of a module that are in the surface and in NumPy's."""
    found: dict[str, Any] = {}
    for name, (kind, words) in surface()[path].items():
        function = getattr(module, _RENAMED.get(name, name), None)
        if kind == "constant":
            found[name] = _CONSTANTS[words[0]] if words[0] in _CONSTANTS else float(words[0])
        elif kind == "function" and callable(function):
            found[name] = (
                _plain(function) if name in _OF_THE_HOST else lifted(name, words, function)
            )
        elif kind == "class" and function is not None:
            found[name] = function
    return found


UFUNCS["matmul"] = lifted("matmul", surface()["cupy"]["matmul"][1], np.matmul)

_CONSTANTS = {"None": None, "False": False, "True": True}


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    def on_host(*arguments: Any, **settings: Any) -> Any:
        return function(*unwrap(arguments), **settings)

    return on_host


# --- functions that are not NumPy's, or differ ----------------------------------------------------


def array(
    obj: Any,
    dtype: Any = None,
    copy: bool = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> ndarray:
    if isinstance(obj, ndarray):
        found = np.array(host_of(obj), dtype, copy=copy or None, order=order, ndmin=ndmin)
        return obj if found is obj._host else wrap(found, [] if copy else [obj])
    if isinstance(obj, list | tuple) and _arrays_in(obj):
        return wrap(np.array(unwrap(obj), dtype, ndmin=ndmin))
    if hasattr(obj, "_array"):
        raise TypeError(f"Unsupported type {type(obj)}")
    found = np.array(obj, dtype, ndmin=ndmin)
    if found.dtype.kind not in "biufc":
        raise ValueError(f"Unsupported dtype {found.dtype}")
    if not isinstance(obj, bool | int | float | complex | np.generic):  # those are no copies
        transfers.record("to_device")
    return wrap(found)


def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False
) -> ndarray:
    if isinstance(a, ndarray) and not copy and dtype in (None, a.dtype):
        if a._device == runtime.current_device():
            return a
        copied = a._host.copy()
        return wrap(copied)
    return array(a, dtype, copy=bool(copy))


def asnumpy(
    a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True
) -> Any:
    return a.get() if isinstance(a, ndarray) else np.asarray(a)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        return condition.nonzero()
    if not isinstance(condition, ndarray):
        raise TypeError(f"Unsupported type {type(condition)}")
    return wrap(np.where(host_of(condition), operand(x), operand(y)))


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> ndarray:
    capsule = array.__dlpack__()
    if not isinstance(capsule, Capsule):
        raise TypeError("from_dlpack: memory of the host")
    with capsule.array.device:
        return capsule.array.copy() if copy else wrap(capsule.array._host, [capsule.array])


def take(a: ndarray, indices: Any, axis: Any = None, out: Any = None) -> Any:
    return a.take(indices, axis=axis)


def take_along_axis(a: ndarray, indices: ndarray, axis: Any) -> Any:
    wrapped = host_of(indices) % max(a.shape[axis], 1)
    return wrap(np.take_along_axis(host_of(a), wrapped, axis))


def may_share_memory(a: ndarray, b: ndarray, max_work: Any = None) -> bool:
    return np.may_share_memory(a._host, b._host)


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    view = np.lib.stride_tricks.as_strided(host_of(x), shape, strides)
    found: ndarray = ndarray.__new__(ndarray)
    found._hold(view, x if x.base is None else x.base)
    return found


def get_array_module(*args: Any) -> Any:
    import cupy

    return cupy if _arrays_in(args) else np


OWN = {
    "array": array,
    "asarray": asarray,
    "asanyarray": asarray,
    "asnumpy": asnumpy,
    "where": where,
    "from_dlpack": from_dlpack,
    "take": take,
    "take_along_axis": take_along_axis,
    "may_share_memory": may_share_memory,
    "shares_memory": may_share_memory,
    "get_array_module": get_array_module,
    "get_default_memory_pool": lambda: runtime.memory_pool,
    "is_available": lambda: True,
    "ndarray": ndarray,
    "ufunc": ufunc,
    "newaxis": None,
}
