"""Conversion of public arguments: operands, dimensions, sizes, dtypes and devices."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from operator import index
from typing import Any, TypedDict

import numpy as np

from chainrule.autograd.conversions import check_differentiated
from chainrule.autograd.inplace import set_item
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, default_dtype, make
from chainrule.backend import CPU, DEFAULT_DEVICE, device, device_of, dtype_title, move
from chainrule.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    OutOfBoundsError,
    ShapeError,
)
from chainrule.primitives import elementwise

Operand = Tensor | np.ndarray[Any, Any] | np.generic | complex  # a number, a bool too
DTypeLike = Any  # an argument of numpy.dtype
DeviceLike = device | str | None
Dims = int | Sequence[int] | None
Sizes = int | Sequence[int]


WATCHER: ContextVar[Callable[[Any], Any] | None]
WATCHER = ContextVar("chainrule arrays", default=None)
"""A tracing compiler's function that replaces NumPy arrays by symbols."""


CREATOR: ContextVar[Callable[..., Any] | None]
CREATOR = ContextVar("chainrule creation", default=None)
"""A tracing compiler's function that makes arrays, which may be too large to be kept."""


def created(name: str, shape: tuple[int, ...], dtype: Any, *args: Any) -> Any:
    """Return the array of a type that a function of NumPy makes from numbers."""
    creator = CREATOR.get()
    if creator is None:
        return getattr(np, name)(*args)
    return creator(name, math.prod(shape) * dtype.itemsize, *args)


def watched(array: Any) -> Any:
    """Return a NumPy array given by the user, or its symbol under a tracing compiler."""
    watcher = WATCHER.get()
    return array if watcher is None else watcher(array)


def tensor_of(value: Operand) -> Tensor:
    """Return an operand as a tensor, sharing the memory of arrays."""
    if type(value) is Tensor or (isinstance(value, Tensor) and value.is_carried):
        return value
    return as_tensors((value,))[0]


def floating(value: Operand) -> Tensor:
    """Return a floating or complex tensor; integers are converted to the default dtype."""
    tensor = tensor_of(value)
    if tensor._array.dtype.kind in "fc":
        return tensor
    return elementwise.astype.apply(tensor, dtype=default_dtype())


def are_integers(*values: Any) -> bool:
    """Return whether all operands are tensors or arrays of integers."""
    for value in values:
        if getattr(getattr(value, "dtype", None), "kind", None) not in ("i", "u"):
            return False
    return True


def number_for(operation: str, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a number as an element of a dtype: a whole one for integers; raise if it can't be."""
    given = getattr(getattr(value, "dtype", None), "kind", None)
    fits = dtype.kind == "c" or not (given == "c" or isinstance(value, complex))
    if fits and dtype.kind in "iu" and isinstance(value, float | np.floating):
        limits = np.iinfo(dtype)
        fits = bool(limits.min <= value <= limits.max and value < 2.0**63)
        value = int(value) if fits else value
    if not fits:
        raise DTypeError(
            f"{operation}: value {value} cannot be converted to type {dtype} without overflow: "
            "convert the tensor first, with .to(dtype)"
        )
    return value


def plain_number(value: Any) -> Any:
    """Return a number given as a Tensor as Python's; raise if a gradient would be lost."""
    if not isinstance(value, Tensor):
        return value
    check_differentiated(value)
    return value.item()


def is_one(value: Any) -> bool:
    """Return whether a factor is the number 1, a constant that may be left out."""
    return not isinstance(value, Tensor) and bool(value == 1)


def cast(x: Tensor, dtype: DTypeLike) -> Tensor:
    """Return `x` in another dtype; unchanged if that is None or its own."""
    if dtype is None or x.dtype == dtype_of(dtype):
        return x
    return elementwise.astype.apply(x, dtype=dtype_of(dtype))


# --- dimensions -----------------------------------------------------------------------------------


def one_dim(dim: Any, ndim: int) -> int:
    """Return a dimension as a non-negative int."""
    number: int
    if dim.__class__ is int and 0 <= dim < ndim:
        number = dim
        return number
    try:
        if isinstance(dim, bool):
            raise TypeError
        number = index(dim)
    except TypeError:
        raise ArgumentTypeError(f"a dimension must be an int, not {type(dim).__name__}") from None
    bound = ndim or 1  # as in PyTorch, a 0-d tensor has the dimensions 0 and -1
    if not -bound <= number < bound:
        first = ": the first dimension is 0" if number == bound else ""
        raise OutOfBoundsError(
            f"Dimension out of range (expected to be in range of [{-bound}, "
            f"{bound - 1}], but got {number}){first}"
        )
    return number % bound


def check_flag(name: str, value: Any) -> None:
    """Raise if a setting that is True or False is a text or a container, which would be true."""
    if not isinstance(value, bool | int | np.bool_):
        raise ArgumentTypeError(f"{name} is True or False, but got {value!r}")


def whole_number(value: Any, operation: str, name: str) -> int:
    """Return a setting as an int; raise if it isn't one."""
    if value.__class__ is int:
        number: int = value
        return number
    try:
        return index(value)
    except TypeError:
        raise ArgumentTypeError(
            f"{operation}: {name} must be an int, got {value!r} ({type(value).__name__})"
        ) from None


def many_dims(dims: Dims, ndim: int) -> tuple[int, ...] | None:
    """Return dimensions as non-negative ints; None, which means all, stays."""
    if dims is None:
        return None
    if dims.__class__ is int and -ndim <= dims < ndim:
        return (dims % ndim,)
    if isinstance(dims, np.ndarray) and dims.ndim == 1:
        dims = dims.tolist()
    listed = tuple(dims) if isinstance(dims, Sequence) else (dims,)
    counted = tuple([one_dim(dim, ndim) for dim in listed])
    if len(set(counted)) < len(counted):
        twice = next(i for i in counted if counted.count(i) > 1)
        raise ArgumentError(
            f"dim {twice} appears multiple times in the list of dims {listed}: each can appear once"
        )
    return counted if ndim else None


def either(dim: Any, axis: Any) -> Any:
    """Return the argument that PyTorch calls `dim` and the array API `axis`."""
    if axis is None:
        return dim
    if dim is not None:
        raise ArgumentTypeError("dim and axis are two names of one argument: give one of them")
    return axis


def over(dim: Dims, axis: Dims) -> Dims:
    """Return the dimensions of a reduction: an empty `dim` means all, an empty `axis` means none.

    The first is PyTorch's convention, the second the array API's.
    """
    if axis is None and isinstance(dim, Sequence) and not dim:
        return None
    dims: Dims = either(dim, axis)
    return dims


# --- sizes ----------------------------------------------------------------------------------------


def sizes_of(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape given as ``f(2, 3)`` or as ``f((2, 3))``."""
    listed = sizes[0] if len(sizes) == 1 and not hasattr(sizes[0], "__index__") else sizes
    try:
        return tuple(map(index, listed))
    except TypeError:
        if len(sizes) == 1 and hasattr(sizes[0], "ndim") and not isinstance(sizes[0], Tensor):
            with contextlib.suppress(TypeError):  # a shape in an array
                return tuple(map(index, sizes[0]))
        mend = ""
        if len(sizes) == 1 and isinstance(sizes[0], Tensor):
            mend = ": write x.tolist()"
        elif isinstance(listed, Sequence):
            nested = [size for size in listed if isinstance(size, tuple | list)]
            mend = f": unpack {nested[0]!r} with a star, as in *x.shape" if nested else ""
        raise ArgumentTypeError(
            f"sizes must be ints, or one sequence of ints, not {sizes!r}{mend}"
        ) from None


def lengths_of(sizes: tuple[Any, ...], size: Sizes | None = None) -> tuple[int, ...]:
    """Return the shape of a new tensor, given by position or by name; no size may be negative."""
    shape = sizes_of(sizes if size is None else (size,))
    if any(size < 0 for size in shape):
        raise ArgumentError(f"a size can't be negative, but got the shape {list(shape)}")
    return shape


# --- dtypes and devices ---------------------------------------------------------------------------


class _MissingDType:
    """A dtype of PyTorch that NumPy lacks: scripts may name it, and its use raises."""

    is_floating_point = True

    def __repr__(self) -> str:
        return "torch.bfloat16"


bfloat16 = _MissingDType()


def dtype_of(dtype: DTypeLike) -> np.dtype[Any]:
    """Return an argument of numpy.dtype as a dtype that tensors support."""
    if isinstance(dtype, _MissingDType):
        raise DTypeError(
            "bfloat16: NumPy has no such dtype. Use float32, or float16 for 16 bits with a smaller "
            "range"
        )
    try:
        found = np.dtype(dtype)
    except TypeError:
        import difflib  # for errors alone

        close = difflib.get_close_matches(str(dtype), _DTYPES, 1) or ["float32"]
        raise DTypeError(
            f"data type {dtype!r} not understood: a dtype is one of chainrule's or its name, such "
            f"as {close[0]!r}"
        ) from None
    if found.kind not in "biufc":
        raise DTypeError(
            f"can't make a tensor of dtype {found}. The only supported types are: float64, "
            "float32, float16, complex64, complex128, the integers and bool."
            f"{_OTHER_KINDS.get(found.kind, '')}"
        )
    return found


_DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
_OTHER_KINDS = dict.fromkeys("US", " Text is no number: convert it, as float(text) does") | {
    "O": " It is the dtype of objects that are no numbers, such as None, dicts and strings among "
    "numbers: a missing number is cr.nan",
    "M": " Convert dates to numbers, as (dates - dates[0]) / np.timedelta64(1, 's') does",
    "m": " Convert times to numbers, as times / np.timedelta64(1, 's') does",
}


def is_device(item: Any) -> bool:
    """Return whether an argument of `to` is a device, and no dtype; raise for an unknown one."""
    name = str(item).partition(":")[0]
    if isinstance(item, device) or (isinstance(item, str) and name in ("cpu", "cuda", "meta")):
        return True
    if item.__class__ is int or (isinstance(item, str) and name.lower() in _OTHER_DEVICES):
        raise DeviceError(
            f"to(): {item!r} is no device of this library: say 'cpu', or 'cuda' for a GPU of "
            "NVIDIA or AMD"
        )
    return False


_OTHER_DEVICES = ("gpu", "mps", "xpu", "tpu", "hip", "xla", "vulkan", "opencl")


def destination(*args: Any, **kwargs: Any) -> tuple[DeviceLike, np.dtype[Any] | None]:
    """Return the device and the dtype of the arguments of `to`; None for those not given."""
    found, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    tensor = kwargs.pop("tensor", None)
    for name in ("non_blocking", "copy", "memory_format"):
        kwargs.pop(name, None)
    if kwargs:
        raise ArgumentTypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}")
    for arg in args:
        if isinstance(arg, Tensor):
            tensor = arg
        elif arg is None or isinstance(arg, bool):  # non_blocking
            continue
        elif is_device(arg):
            found = arg
        else:
            dtype = arg
    if tensor is not None:
        found, dtype = tensor.device, tensor.dtype
    return found, None if dtype is None else dtype_of(dtype)


def dtype_or_default(dtype: DTypeLike) -> np.dtype[Any]:
    """Return a dtype, or the default dtype for None."""
    return default_dtype() if dtype is None else dtype_of(dtype)


def complex_dtype() -> np.dtype[Any]:
    """Return the complex dtype of the precision of the default dtype."""
    return np.dtype(np.complex128 if default_dtype().itemsize > 4 else np.complex64)


class MemoryOptions(TypedDict, total=False):
    """PyTorch's options of memory: a tensor for the result, and others without effect.

    New tensors are dense and in C order.
    """

    out: Any
    layout: Any
    pin_memory: bool
    memory_format: Any


_NO_OPTIONS: MemoryOptions = {}


def leaf(
    array: Any,
    target: DeviceLike = None,
    requires_grad: bool = False,
    memory: MemoryOptions = _NO_OPTIONS,
) -> Tensor:
    """Return a new leaf tensor of `array`, on the device `target` (the default one if None)."""
    if memory:
        _check_memory(memory)
    if requires_grad.__class__ is not bool:
        check_flag("requires_grad", requires_grad)
    if requires_grad and array.dtype.kind not in "fc":
        raise DTypeError(
            "only Tensors of floating point and complex dtype can require gradients, got "
            f"{dtype_title(array.dtype)}: write 1.0 for 1 or dtype=cr.float32, or leave out "
            "requires_grad"
        )
    if target is None:
        target = DEFAULT_DEVICE.get()
    tensor = make(array if target is None else move(array, device(target)), None)
    if memory.get("out") is not None:
        given: Tensor = written(tensor, memory["out"], converts=True)
        return given
    return tensor.requires_grad_() if requires_grad else tensor


def _check_memory(memory: MemoryOptions) -> None:
    for name, value in memory.items():
        if name not in MemoryOptions.__annotations__:
            raise ArgumentTypeError(f"unexpected keyword argument {name!r}")
        if name == "layout" and value is not None and str(value) != "torch.strided":
            raise ArgumentError(
                f"layout={value}: new tensors are dense: say to_sparse() or to_sparse_csr() of one"
            )


def written(results: Any, out: Any, converts: bool = False) -> Any:
    """Return `out`, a tensor or a tuple of them, after writing the results to its memory.

    With `converts`, the results become numbers of its dtype, else only where no kind is lost.
    An `out` of another shape gets theirs, without `converts` with PyTorch's warning if not empty.
    """
    if isinstance(results, Tensor):
        _check_out(results, out, converts)
        return _write(results, out, warns=not converts)
    fields = getattr(results, "_fields", ())
    if not isinstance(out, tuple | list) or len(out) != len(results):
        names = f" for {', '.join(fields)}" if fields else ""
        raise ArgumentError(
            f"`out` must be a tuple of {len(results)} tensors{names}, got "
            + (f"{len(out)}" if isinstance(out, tuple | list) else type(out).__name__)
        )
    for result, target in zip(results, out, strict=True):
        _check_out(result, target, converts)
    for result, target in zip(results, out, strict=True):
        _write(result, target)
    return type(results)(*out) if fields else tuple(out)


_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def keeps_kind(dtype: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Return whether a dtype converts to another without losing its kind."""
    return _RANKS[dtype.kind] <= _RANKS[to.kind]


def _check_out(result: Tensor, out: Any, converts: bool) -> None:
    """Raise an error if a result can't be written to `out`."""
    if not isinstance(out, Tensor):
        raise ArgumentTypeError(
            f"`out` must be a Tensor, not {type(out).__name__}: say cr.empty(0), which "
            "gets the shape of the result"
        )
    if (result.requires_grad or out.requires_grad) and is_grad_enabled():
        raise ArgumentError(
            "functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad: leave out `out`, or write under no_grad()"
        )
    if not (converts or keeps_kind(result.dtype, out.dtype)):
        raise DTypeError(
            f"the result of dtype {result.dtype} can't be cast to that of `out`, "
            f"{out.dtype}: say out=cr.empty(0, dtype=cr.{result.dtype})"
        )
    if out.shape != result.shape and out.numel() and out._is_view():
        raise ShapeError(
            f"`out` is a view of another tensor and must have the shape of the result, "
            f"{list(result.shape)}, but has {list(out.shape)}"
        )


def _write(result: Tensor, out: Tensor, warns: bool = True) -> Tensor:
    if out.shape == result.shape:
        set_item(out, Ellipsis, result, "copy_")
        return out
    if warns and out.numel():
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out.shape)},"
            f" which does not match the required output shape {list(result.shape)}: say "
            "cr.empty(0), or out.resize_(0) before",
            stacklevel=user_stack_level(),
        )
    out.data = result.detach().to(out.dtype, copy=True)
    return out


def constant(array: np.ndarray[Any, Any], like: Tensor) -> Tensor:
    """Return an array of NumPy's as a tensor on the device of another, without history."""
    if like._array.__class__ is not np.ndarray:
        array = move(array, like.device)
    return make(array, None)


def on_host(array: Any) -> Any:
    """Return an array whose values NumPy can look at: that of a device is moved to the CPU."""
    return move(array, CPU)


def beside(array: Any, target: DeviceLike) -> DeviceLike:
    """Return the device of a tensor that is made like another: that of `array` if None is given."""
    return device_of(array) if target is None and DEFAULT_DEVICE.get() is not None else target
