"""Arrays of the stand-in: they hold NumPy's, and refuse to become them unasked."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

from cupy_stand_in import runtime
from cupy_stand_in.runtime import transfers

Host = np.ndarray[Any, Any]

_SCALARS = bool | int | float | complex | np.generic


class NumPyCallError(AssertionError):
    """A function of NumPy was called on an array of a device.

    CuPy would pass it on to its own function, if it has one: the library must not rely on that.
    """


class Flags:
    """The three flags that CuPy's arrays have."""

    __slots__ = ("c_contiguous", "f_contiguous", "owndata")

    def __init__(self, host: Host) -> None:
        self.c_contiguous = host.flags.c_contiguous
        self.f_contiguous = host.flags.f_contiguous
        self.owndata = host.flags.owndata


@dataclass
class MemoryPointer:
    """The address of an array's memory."""

    ptr: int


class ndarray:
    """An array in the memory of a device."""

    __slots__ = ("_host", "_device", "base", "__weakref__")
    __module__ = "cupy"
    __array_priority__ = 100
    __hash__ = None  # as CuPy's

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: Any = None,
        strides: Any = None,
        order: Any = "C",
    ) -> None:
        self._hold(np.zeros(shape, dtype, order=order))

    def _hold(self, host: Host, base: ndarray | None = None) -> None:
        self._host, self.base, self._device = host, base, runtime.current_device()
        if base is None:
            runtime.allocated(self._device, host.nbytes)

    def __del__(self) -> None:
        if getattr(self, "base", self) is None:
            runtime.pools[self._device].free(self._host.nbytes)

    # --- attributes ---

    @property
    def device(self) -> runtime.Device:
        return runtime.Device(self._device)

    @property
    def flags(self) -> Flags:
        return Flags(self._host)

    @property
    def data(self) -> MemoryPointer:
        return MemoryPointer(self._host.ctypes.data)

    shape = property(lambda self: self._host.shape)
    dtype = property(lambda self: self._host.dtype)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    nbytes = property(lambda self: self._host.nbytes)
    itemsize = property(lambda self: self._host.itemsize)
    strides = property(lambda self: self._host.strides)
    T = property(lambda self: wrap(host_of(self).T, [self]))
    mT = property(lambda self: wrap(host_of(self).mT, [self]))

    @property
    def real(self) -> ndarray:
        return wrap(host_of(self).real, [self])

    @real.setter
    def real(self, value: Any) -> None:
        host_of(self).real = operand(value)

    @property
    def imag(self) -> ndarray:
        return wrap(host_of(self).imag, [self])

    @imag.setter
    def imag(self, value: Any) -> None:
        host_of(self).imag = operand(value)

    # --- to the host ---

    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> Host:
        transfers.record("to_host")
        return np.array(self._host, order=order)  # any order

    def item(self, *index: int) -> Any:
        transfers.record("to_host")
        return self._host.item(*index)

    def tolist(self) -> Any:
        transfers.record("to_host")
        return self._host.tolist()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    def __format__(self, form: str) -> str:
        return format(self.get(), form)

    def __reduce__(self) -> Any:
        return _uploaded, (self.get(),)

    # --- what CuPy refuses ---

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct "
            "a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if any(isinstance(value, np.ndarray) for value in inputs):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        if method == "__call__" and any(isinstance(value, np.generic) for value in inputs):
            return call_ufunc(ufunc.__name__, *inputs, **settings)  # number + array, in operators
        raise NumPyCallError(f"numpy.{ufunc.__name__} on an array of a device")

    def __array_function__(self, function: Any, *rest: Any) -> Any:
        raise NumPyCallError(f"numpy.{function.__name__} on an array of a device")

    # --- elements ---

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> ndarray:
        found = host_of(self)[index_of(key, self.shape)]
        parts = key if isinstance(key, tuple) else [key]
        if any(isinstance(part, ndarray) for part in parts):
            found = np.array(found, order="C")  # NumPy's has the order of the indices
        return wrap(found, [self])

    def __setitem__(self, key: Any, value: Any) -> None:
        """Assign. The last of repeated indices need not win: here the first does."""
        host, key = host_of(self), index_of(key, self.shape)
        value = operand(value)
        if not any(isinstance(part, np.ndarray) for part in (key if type(key) is tuple else [key])):
            host[key] = value
            return
        places = np.arange(self.size).reshape(self.shape)[key]
        values = np.broadcast_to(np.asarray(value).astype(self.dtype), places.shape)
        host.flat[places.reshape(-1)[::-1]] = values.reshape(-1)[::-1]

    # --- DLPack ---

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self._device

    def __dlpack__(self, **settings: Any) -> Any:
        return Capsule(self)

    def __copy__(self) -> ndarray:
        return self.copy()  # added below

    def __deepcopy__(self, memo: Any) -> ndarray:
        with self.device:
            return self.__copy__()


class Capsule:
    """Shared memory between libraries: `DLManagedTensor`."""

    def __init__(self, array: ndarray) -> None:
        self.array = array


def _uploaded(host: Host) -> ndarray:
    transfers.record("to_device")
    return wrap(host.copy())


def operand(value: Any) -> Any:
    """Return what NumPy computes on for an operand; refuse an array of the host."""
    if isinstance(value, ndarray):
        return host_of(value)
    if isinstance(value, _SCALARS):
        return value
    raise TypeError(f"Unsupported type {type(value)}")


def host_of(array: ndarray) -> Host:
    """Return the memory of an array, which has to be on the current device."""
    current = runtime.current_device()
    if array._device != current:
        raise ValueError(
            "Array device must be same as the current device: array device = "
            f"{array._device} while current = {current}"
        )
    return array._host


def unwrap(value: Any) -> Any:
    """Return an argument with the memory of the arrays in it; refuse arrays of the host."""
    if isinstance(value, tuple | list):
        return type(value)([unwrap(part) for part in value])
    if isinstance(value, np.ndarray) or hasattr(value, "_array"):
        raise TypeError(f"Unsupported type {type(value)}")
    return host_of(value) if isinstance(value, ndarray) else value


def wrap(result: Any, parents: Iterable[Any] = ()) -> Any:
    """Return a result with arrays of the current device, views with their base; 0-d for numbers."""
    if isinstance(result, tuple | list):
        parts = [wrap(part, parents) for part in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if not isinstance(result, np.ndarray | np.generic):
        return result
    host = np.asarray(result)
    if host.dtype.kind not in "biufc":
        raise TypeError(f"Unsupported dtype {host.dtype}")
    array = ndarray.__new__(ndarray)
    for parent in parents:
        if isinstance(parent, ndarray) and np.may_share_memory(parent._host, host):
            with suppress(ValueError):  # of what stands in several places
                host.flags.writeable = True  # a diagonal, too
            array._hold(host, parent if parent.base is None else parent.base)
            return array
    array._hold(host if host.base is None and host.flags.writeable else host.copy())
    return array


def index_of(key: Any, shape: tuple[int, ...]) -> Any:
    """Return an index for NumPy, in which indices out of range wrap around."""
    parts = list(key) if isinstance(key, tuple) else [key]
    used = sum(part.ndim if _is_mask(part) else not _is_free(part) for part in parts)
    axis, found = 0, []
    for part in parts:
        if part is Ellipsis:
            axis += len(shape) - used
            found.append(part)
        elif _is_free(part):
            found.append(part)
        elif isinstance(part, ndarray):
            if _is_mask(part):
                transfers.record("to_host")  # the number of elements
                found.append(host_of(part))
                axis += part.ndim
                continue
            if part.dtype.kind not in "iu":
                raise IndexError("arrays used as indices must be of integer or boolean type")
            length = shape[axis] if axis < len(shape) else 1
            found.append(host_of(part) % max(length, 1) if length else host_of(part))
            axis += 1
        elif isinstance(part, int | np.integer | slice):
            found.append(part)
            axis += 1
        else:
            raise IndexError(f"an index of {type(part)} is copied from the host")
    return tuple(found) if isinstance(key, tuple) else found[0]


def _is_mask(part: Any) -> bool:
    return isinstance(part, ndarray) and part.dtype.kind == "b"


def _is_free(part: Any) -> bool:
    return part is None or isinstance(part, EllipsisType | bool)


def call_ufunc(name: str, *arguments: Any, **settings: Any) -> Any:
    from cupy_stand_in.functions import UFUNCS  # they need this module

    return UFUNCS[name](*arguments, **settings)


# --- operators and methods ------------------------------------------------------------------------

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}

_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}

_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}


def _deferred(other: Any) -> bool:
    """Return whether the other operand's own operator is called."""
    known = isinstance(other, ndarray | _SCALARS | np.ndarray)
    return not known and getattr(other, "__array_priority__", -1) > ndarray.__array_priority__


def _operator(ufunc: str, swapped: bool = False) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        if _deferred(other):
            return NotImplemented
        return call_ufunc(ufunc, *((other, self) if swapped else (self, other)))

    return method


def _in_place(ufunc: str) -> Any:
    def method(self: ndarray, other: Any) -> Any:
        return call_ufunc(ufunc, self, other, out=self)

    return method


for _name, _ufunc in _BINARY.items():
    setattr(ndarray, f"__{_name}__", _operator(_ufunc))
    setattr(ndarray, f"__r{_name}__", _operator(_ufunc, swapped=True))
    if _name != "matmul":
        setattr(ndarray, f"__i{_name}__", _in_place(_ufunc))
for _name, _ufunc in _COMPARISONS.items():
    setattr(ndarray, f"__{_name}__", _operator(_ufunc))
for _name, _ufunc in _UNARY.items():
    setattr(ndarray, f"__{_name}__", lambda self, ufunc=_ufunc: call_ufunc(ufunc, self))


METHODS = {
    "all": "axis= out= keepdims=",
    "any": "axis= out= keepdims=",
    "argmax": "axis= out= dtype= keepdims=",
    "argmin": "axis= out= dtype= keepdims=",
    "argsort": "axis= kind=",
    "astype": "dtype order= casting= subok= copy=",
    "clip": "min= max= out=",
    "conj": "",
    "conjugate": "",
    "copy": "order=",
    "cumprod": "axis= dtype= out=",
    "cumsum": "axis= dtype= out=",
    "diagonal": "offset= axis1= axis2=",
    "dot": "b out=",
    "fill": "value",
    "flatten": "order=",
    "max": "axis= out= keepdims=",
    "mean": "axis= dtype= out= keepdims=",
    "min": "axis= out= keepdims=",
    "nonzero": "",
    "prod": "axis= dtype= out= keepdims=",
    "ravel": "order=",
    "repeat": "repeats axis=",
    "reshape": "*shape order=",
    "round": "decimals= out=",
    "searchsorted": "v side= sorter=",
    "sort": "axis= kind=",
    "squeeze": "axis=",
    "std": "axis= dtype= out= ddof= keepdims=",
    "sum": "axis= dtype= out= keepdims=",
    "swapaxes": "axis1 axis2",
    "take": "indices axis= out=",
    "trace": "offset= axis1= axis2= dtype= out=",
    "transpose": "*axes",
    "var": "axis= dtype= out= ddof= keepdims=",
    "view": "dtype=",
}
"""Methods of `cupy.ndarray` that NumPy's arrays have too, with CuPy's parameters."""


def _saturated(host: Host, dtype: Any) -> Host:
    """Return floats with those out of an integer's range at its ends, as CUDA converts them."""
    if host.dtype.kind != "f" or dtype.kind not in "iu":
        return host
    limits = np.iinfo(dtype)
    if not host.size or np.all((host > limits.min) & (host < limits.max)):
        return host
    wide = host.astype(np.longdouble)
    return np.where(np.isnan(wide), 0, np.clip(wide, limits.min, limits.max))


def _method(name: str, parameters: str) -> Any:
    from cupy_stand_in.surface import signature_of

    signature = signature_of(parameters.split())

    def method(self: ndarray, *arguments: Any, **settings: Any) -> Any:
        signature.bind(*arguments, **settings)
        if name == "nonzero":
            transfers.record("to_host")  # the number of elements
        if name == "take":  # indices out of range wrap around
            length = self.size if settings.get("axis") is None else self.shape[settings["axis"]]
            arguments = (arguments[0] % max(length, 1), *arguments[1:])
        settings = {key: unwrap(value) for key, value in settings.items()}
        host = host_of(self)
        if name == "astype":
            host = _saturated(host, np.dtype(settings.get("dtype") or arguments[0]))
        with np.errstate(all="ignore"):
            found = getattr(host, name)(*[unwrap(a) for a in arguments], **settings)
        return wrap(found, [self])

    return method


for _name, _parameters in METHODS.items():
    setattr(ndarray, _name, _method(_name, _parameters))
