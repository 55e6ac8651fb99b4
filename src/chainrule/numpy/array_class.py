"""The class `ndarray`: tensors with the methods and operators of NumPy's arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import GenericAlias
from typing import Any, NoReturn

import numpy as np

from chainrule import ops
from chainrule.autograd.array_proxy import ArrayProxy, class_in_isinstance, of_arrays
from chainrule.autograd.conversions import check_differentiated, has_gradient, text_of
from chainrule.autograd.inplace import view_in_place
from chainrule.autograd.modes import DEFAULT, MODES, is_grad_enabled
from chainrule.autograd.recorders import use_class
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, is_known
from chainrule.errors import ArgumentTypeError
from chainrule.interop import array_function, manipulation
from chainrule.interop.memory import call_on_copies, is_function, is_locked, locked
from chainrule.interop.operands import (
    are_known,
    array_of,
    arrays_of,
    is_tracked,
    tensor_of,
    unwatched_for,
    with_dtypes_of_numpy,
)
from chainrule.interop.table import NEW, RULES
from chainrule.interrupts import P, T, call_with
from chainrule.numpy.out_arguments import place_of_out, write_at, written
from chainrule.numpy.plain_calls import PlainCall
from chainrule.numpy.ufunc_methods import call_method, has_own_rule
from chainrule.ops.indexing import set_at
from chainrule.ops.inplace import set_imag, set_real
from chainrule.ops.ufuncs import array_ufunc, function_of_ufunc

Array = Any

__all__ = ["ndarray"]


class _Arrays(type):
    """The class of `ndarray`, of which NumPy's own arrays are instances for ``isinstance``."""

    def __instancecheck__(cls, x: Any) -> bool:
        if type(x) is cls or isinstance(x, np.ndarray):
            return True
        return isinstance(x, ArrayProxy) and x.is_visible and not x.is_scalar

    def __subclasscheck__(cls, kind: type) -> bool:
        return type.__subclasscheck__(cls, kind) or (
            cls is ndarray and issubclass(kind, np.ndarray)
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an array of NumPy's constructor: a shape, and perhaps a dtype and a buffer."""
        made = cls is ndarray and (args or kwargs)
        return call(np.ndarray, args, kwargs) if made else super().__call__(*args, **kwargs)


class ndarray(Tensor, metaclass=_Arrays):
    """An array that records what happens to it, with NumPy's methods and operators.

    Made by the functions of `chainrule.numpy`, and handed to functions by transforms in the place
    of NumPy's arrays. Results of operations on it are of this class, too, if they are real or
    complex numbers; integers and truth values, which have no gradient, are NumPy's own arrays.
    It is also a `Tensor`, with those methods that NumPy's arrays don't have.

    Examples
    --------
    >>> import chainrule as cr
    >>> import chainrule.numpy as np
    >>> def energy(v):
    ...     dy = np.zeros(2)
    ...     dy[0] = -2 * v[0]
    ...     return (dy**2).sum() + v.std()
    >>> cr.grad(energy)(np.array([1.0, 3.0]))
    array([7.5, 0.5])
    """

    __slots__ = ()

    is_carried = True

    __class__ = class_in_isinstance

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        return GenericAlias(cls, item)  # as in annotations: ndarray[shape, dtype]

    # --- NumPy's protocols ---

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if not settings and method == "__call__":
            function = function_of_ufunc(ufunc)
            if function is not None and all([_is_float(value) for value in inputs]):
                return as_ndarrays(function(*inputs))
        unwatched = None if settings else unwatched_for(inputs)
        if unwatched is not None:
            return unwatched(self.__array_ufunc__, ufunc, method, *inputs)
        out = settings.pop("out", None)
        if method == "at":
            return write_at(ufunc, *inputs)
        if method != "reduceat":
            inputs = tuple([_operand(value) for value in inputs])
        if not is_tracked(inputs, settings) and are_known(inputs):
            if out is not None:  # written to below, as the log of writes has to know
                settings["out"] = tuple([None if t is None else np.copy(arrays_of(t)) for t in out])
            results = getattr(ufunc, method)(*arrays_of(inputs), **arrays_of(settings))
        else:
            results = _recorded(self, ufunc, method, inputs, out, settings)
        if results is NotImplemented or out is None:
            return as_ndarrays(results)
        return written(ufunc, out, results)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call(function, args, kwargs)

    # --- attributes ---

    @property
    def size(self) -> int:
        """The number of elements."""
        size: int = self._array.size
        return size

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return int(self._array.itemsize)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> Any:
        """The bytes between neighbours in each dimension."""
        return self._array.strides

    @property
    def flags(self) -> Any:
        """NumPy's information on the memory."""
        return self._array.flags

    @property
    def base(self) -> Any:
        """The array that this is a view of, or None."""
        return self._base

    @property
    def flat(self) -> _Flat:
        """The elements in C order: to iterate over, to read and to write by index."""
        return _Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[:] = value

    @property  # type: ignore[override]  # NumPy's shapes are plain tuples
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions; assigned to, the array is reshaped in place."""
        shape: tuple[int, ...] = self._array.shape
        return shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        view_in_place(self, "shape", lambda t: ops.reshape(t, shape))

    @property
    def real(self) -> Any:
        """The real part, a view; can be assigned to."""
        return self if self._array.dtype.kind == "f" else as_ndarrays(ops.real(self))

    @real.setter
    def real(self, value: Any) -> None:
        set_real(self, array_of_list(value))

    @property
    def imag(self) -> Any:
        """The imaginary part, a view; zeros of real numbers. Can be assigned to."""
        return as_ndarrays(ops.imag(self))

    @imag.setter
    def imag(self, value: Any) -> None:
        set_imag(self, array_of_list(value))

    @property
    def T(self) -> Any:
        """The array with its dimensions in reversed order, a view."""
        return self.transpose()

    # --- items ---

    numpy_indices = True
    """The dimensions of ``x[0, :, i]`` are in NumPy's order."""

    def __getitem__(self, key: Any) -> Any:
        is_number = _is_number(key)
        if is_number and self._array.__class__ is np.ndarray and not self.requires_grad:
            try:
                found = self._array[key]
            except IndexError:
                found = None  # raised below, with the line
            if isinstance(found, np.generic):
                return found  # nothing to record
        result = Tensor.__getitem__(self, key)
        if is_number and not result._array.ndim:
            # As in NumPy, a single element is a number and not a view.
            result._view, result._array = None, result._array.copy()
        return as_ndarrays(result)

    def __setitem__(self, key: Any, value: Any) -> None:
        set_at(self, key, array_of_list(value))

    def __iter__(self) -> Iterator[Any]:
        if not self._array.ndim:
            raise ArgumentTypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(len(self._array))])

    def __reversed__(self) -> Any:  # an iterator, as of NumPy
        return iter(self[::-1])

    __len__ = of_arrays(Tensor.__len__)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    # As `float(x)` is, these are NumPy's everyday conversions, not the choice of a constant.

    def item(self, *index: Any) -> Any:
        """Return one element as a Python number."""
        check_differentiated(self)
        return self._array.item(*index)

    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers."""
        check_differentiated(self)
        return self._array.tolist()

    # --- methods whose arguments are not those of NumPy's function ---

    def reshape(self, *shape: Any, order: Any = "C", copy: Any = None) -> Any:  # type: ignore[override]
        """Return the elements in another shape: a view if possible."""
        sizes = shape[0] if len(shape) == 1 else shape
        if type(self) is ndarray and self._array.__class__ is np.ndarray:
            return manipulation.reshape(self, sizes, order, copy)
        return np.reshape(self, sizes, order=order, copy=copy)

    def transpose(self, *axes: Any) -> Any:
        """Return a view with the dimensions in another order, reversed by default."""
        order = axes[0] if len(axes) == 1 else axes or None
        if type(self) is ndarray and self._array.__class__ is np.ndarray:
            return manipulation.transpose(self, order)
        return np.transpose(self, order)

    def astype(  # type: ignore[override] # NumPy's signature, as below
        self,
        dtype: Any,
        order: Any = "K",
        casting: Any = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """Return the elements in another dtype."""
        dtype = np.dtype(dtype)
        if not np.can_cast(self.dtype, dtype, casting):
            raise ArgumentTypeError(
                f"Cannot cast array data from {self.dtype!r} to {dtype!r} according to the rule "
                f"{casting!r}"
            )
        if dtype.kind == "O" and is_tracked(self):
            return np.fromiter(self.ravel(), object).reshape(self.shape)
        if dtype.kind not in "fc" and is_tracked(self) and is_known(self._array):
            return self._array.astype(dtype)  # piecewise constant
        return call(np.astype, (self, dtype), {"copy": copy})

    def copy(self, order: Any = "C") -> Any:
        """Return a copy, recorded."""
        return np.copy(self, order)

    def __copy__(self) -> Any:
        return self.copy()

    def clip(self, min: Any = None, max: Any = None, out: Any = None, **settings: Any) -> Any:
        """Return the elements within limits, one of which may be None."""
        return np.clip(self, min, max, out, **settings)

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Any:
        """Return the slices along an axis for which a condition holds."""
        return np.compress(condition, self, axis, out)

    def flatten(self, order: Any = "C") -> Any:  # type: ignore[override]
        """Return a copy of one dimension."""
        return np.copy(np.ravel(self, order))

    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
        self[...] = value

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None) -> None:  # type: ignore[override]
        """Sort the elements in place."""
        self[...] = np.sort(self, axis, kind, order)

    def partition(self, kth: Any, axis: int = -1, kind: Any = "introselect") -> None:
        """Partition the elements in place."""
        self[...] = np.partition(self, kth, axis, kind)

    def __pos__(self) -> Any:
        """Return a copy, which a Tensor's isn't."""
        return np.positive(self)

    def conj(self, *out: Any) -> Any:
        """Return the complex conjugate; the array itself if it is real."""
        return np.conjugate(self, *out) if out or np.iscomplexobj(self) else self

    conjugate = conj

    def view(self, dtype: Any = None, type: Any = None) -> Any:  # type: ignore[override]
        """Return another array of the same memory; as integers, a read-only one of NumPy's own."""
        is_number = type is None and dtype is not None and np.dtype(dtype).kind in "biuSV"
        if is_number and not is_tracked(self) and is_known(self._array):
            return locked(self).view(dtype)
        if type is not None or (dtype is not None and np.dtype(dtype) != self.dtype):
            raise ArgumentTypeError(
                f"view() of an array that records takes its own dtype, {self.dtype}, alone: the "
                "bits of a number have no derivative. Convert with .astype(dtype), or take "
                ".detach().numpy().view(dtype)"
            )
        return self[...]

    def tobytes(self, order: Any = "C") -> bytes:
        """Return the bytes of the elements."""
        check_differentiated(self)
        return bytes(np.asarray(array_of(self)).tobytes(order))

    def setflags(self, write: bool | None = None, **_: Any) -> None:
        """Refuse or allow writes."""
        if isinstance(self._array, np.ndarray):
            self._array.setflags(write=write)

    def resize(self, *_: Any, **__: Any) -> NoReturn:
        """Not available: the memory of an array that records has one size."""
        raise ArgumentTypeError(
            "resize() changes the memory of an array, which its history refers to: "
            "use a = np.resize(a, shape), or reshape()"
        )

    # --- operators, formatting ---

    def __hash__(self) -> int:
        # By value, as `numpy.float64`, where no gradient passes: a table of results by the value
        # of what is differentiated would give those of another one.
        if not self._array.ndim and is_known(self._array) and not has_gradient(self):
            return hash(self._array.item())
        return id(self)

    def __round__(self, ndigits: int | None = None) -> Any:
        return np.round(self, ndigits or 0)

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if takes_no_ufuncs(other) else np.divmod(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return np.divmod(other, self)

    def __repr__(self) -> str:
        if not is_known(self._array):
            return Tensor.__repr__(self)
        text = repr(self._array)
        if self.grad_fn is not None:
            return f"{text[:-1]}, grad_fn={self.grad_fn})"
        return f"{text[:-1]}, requires_grad=True)" if self.requires_grad else text

    def __str__(self) -> str:
        known = is_known(self._array)
        return text_of(self, str(self._array)) if known else Tensor.__repr__(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return Tensor.__deepcopy__(self, memo) if self.is_leaf else self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        rebuild, parts = Tensor.__reduce_ex__(self, protocol)
        return functools.partial(_rebuild, rebuild), parts


use_class(ndarray)


def _rebuild(rebuild: Callable[..., Any], *parts: Any) -> Any:
    return as_ndarray(rebuild(*parts))


def takes_no_ufuncs(value: Any) -> bool:
    """Return whether a class computes with arrays itself, such as `numpy.polynomial.Polynomial`."""
    return getattr(type(value), "__array_ufunc__", value) is None


def behaves_as_array(leaf: Any) -> bool:
    """Return whether a function gets an `ndarray` in the place of this argument."""
    return is_array(leaf) or isinstance(leaf, np.generic) or type(leaf) is ndarray


# --- calls of NumPy's functions -------------------------------------------------------------------


def call(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a function of NumPy, recorded where it must be; arrays in the result are `ndarray`s."""
    rule = RULES.get(function)
    if rule is not None and is_grad_enabled():
        found = PlainCall(function, args, kwargs)
        if found.is_plain:
            keeps = found.keeps_dtype
            return as_ndarrays(rule(args, kwargs) if keeps else in_float64(rule, args, kwargs))
    unwatched = None if kwargs else unwatched_for(args)
    if unwatched is not None:
        return unwatched(call, function, args, kwargs)
    if function in _PARTS and args and isinstance(args[0], ndarray | ArrayProxy):
        return getattr(args[0], function.__name__)  # a view
    out = kwargs.get("out")
    if out is None and len(args) > 1:
        place = place_of_out(function)
        if len(args) > place and args[place] is not None:
            out, args = args[place], (*args[:place], None, *args[place + 1 :])
    if out is not None:
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        return written(function, out, call(function, args, kwargs))
    if kwargs and str(kwargs.get("device")) == "cpu":  # also an array's own, which is chainrule's
        kwargs = {key: value for key, value in kwargs.items() if key != "device"}
    if function is np.isscalar:
        records = isinstance(args[0], Tensor | ArrayProxy)
        return not args[0].ndim if records else np.isscalar(*args, **kwargs)
    if _is_recorded(function, args, kwargs):
        return as_ndarrays(in_float64(array_function, function, (), args, kwargs))
    try:
        results = function(*locked(args), **locked(kwargs))
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        if function not in RULES:
            return as_ndarrays(call_on_copies(function, args, kwargs))
    else:
        if function not in RULES or not is_locked(results):
            return as_ndarrays(results)
    # It writes to an argument, or its result is a view of one.
    return as_ndarrays(in_float64(array_function, function, (), args, kwargs))


def _is_recorded(function: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a call needs more than the numbers of its arguments."""
    if is_tracked(args, kwargs):
        return function not in _WITHOUT_GRADIENT
    has_rule = function in RULES
    if has_rule and is_function([args, kwargs]):
        return True  # what it closes over may be tracked
    return (has_rule or function in NEW) and not are_known((args, kwargs))


def in_float64(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function with NumPy's default dtype, which integers become in a quotient."""
    modes = MODES.get() or DEFAULT
    if modes.default_dtype == np.float64:
        return function(*args, **kwargs)
    return call_with({MODES: modes.in_float64()}, function, *args, **kwargs)


_WITHOUT_GRADIENT = {np.format_float_positional, np.format_float_scientific, np.ma.isMaskedArray}


def as_ndarrays(results: Any) -> Any:
    """Return results with their arrays as `ndarray`s, integers and truth values as NumPy's own.

    Other tensors, which the caller may know, keep their class: views of them are returned.
    """
    kind = type(results)
    if isinstance(results, Tensor):
        array = results._array
        if array.dtype.kind in "biu" and array.__class__ is np.ndarray:
            return array if array.ndim else array[()]
        return as_ndarray(results[...]) if kind is Tensor else results
    is_symbol = isinstance(results, ArrayProxy) and results.is_visible and not results.is_scalar
    if kind is np.ndarray or is_symbol:
        return results if results.dtype.kind not in "fc" else as_ndarray(make(results, None))
    if kind in (tuple, list):
        return kind([as_ndarrays(part) for part in results])
    if isinstance(results, tuple) and hasattr(results, "_fields"):
        made = tuple.__new__(kind, [as_ndarrays(part) for part in results])
        for name, value in getattr(results, "__dict__", {}).items():  # SciPy's further results
            made.__dict__[name] = as_ndarrays(value)
        return made
    return results


def as_ndarray(fresh: Tensor) -> Any:
    """Return a tensor that nobody else knows as an `ndarray`."""
    fresh.__class__ = ndarray
    return fresh


_PARTS = frozenset([np.real, np.imag])


def _is_number(key: Any) -> bool:
    """Return whether an index is made of integers."""
    parts = key if key.__class__ is tuple else (key,)
    return all([part.__class__ is int or isinstance(part, np.integer) for part in parts])


def _is_float(value: Any) -> bool:
    """Return whether an operand has known numbers whose dtype NumPy treats as tensors do."""
    kind = type(value)
    if kind is ndarray:
        array = value._array
        return array.__class__ is np.ndarray and array.dtype.kind in "fc"
    return kind is float or kind is int or (kind is np.ndarray and value.dtype.kind in "fc")


def _operand(value: Any) -> Any:
    """Return an operand of a ufunc: NumPy's scalars with a dtype of their own, lists as arrays."""
    if type(value) is ndarray:
        return value
    return np.asarray(value) if isinstance(value, np.generic) else array_of_list(value)


def array_of_list(value: Any) -> Any:
    """Return a list of numbers and arrays as an array, recorded."""
    return call(np.array, (value,), {}) if type(value) in (list, tuple) else value


def _recorded(
    x: ndarray, ufunc: Any, method: str, inputs: tuple[Any, ...], out: Any, settings: dict[str, Any]
) -> Any:
    """Return the result of a ufunc, recorded, with NumPy's settings."""
    inputs, where = ufunc_operands(inputs, settings), settings.get("where", True)
    if method in ("reduce", "accumulate", "reduceat") and not has_own_rule(ufunc, method):
        first = as_ndarrays(tensor_of(inputs[0]))
        return call_method(ufunc, method, first, *inputs[1:], **settings)
    if where is True or method != "__call__":
        if any([type(value) is np.ndarray and value.dtype.kind in "biu" for value in inputs]):
            inputs = tuple(with_dtypes_of_numpy(inputs))
            return in_float64(array_ufunc, x, ufunc, method, *inputs, **settings)
        return array_ufunc(x, ufunc, method, *inputs, **settings)
    # Elsewhere the ufunc may have no value: it isn't computed there.
    del settings["where"]
    inside = tuple([call(np.where, (where, value, 1), {}) for value in inputs])
    return selected(where, array_ufunc(x, ufunc, method, *inside, **settings), out)


def selected(where: Any, results: Any, out: Any) -> Any:
    """Return results where a condition holds, elsewhere what `out` has."""
    if isinstance(results, tuple):
        kept = (None,) * len(results) if out is None else out
        pairs = zip(results, kept, strict=True)
        return tuple([selected(where, part, None if o is None else (o,)) for part, o in pairs])
    return call(np.where, (where, results, 0.0 if out is None else out[0]), {})


def ufunc_operands(inputs: tuple[Any, ...], settings: dict[str, Any]) -> tuple[Any, ...]:
    """Return the operands of a ufunc in the dtype of its settings, of which that is taken."""
    for name in ("casting", "order", "subok"):  # they decide on errors and on memory
        settings.pop(name, None)
    dtype = settings.pop("dtype", None)
    if dtype is None or np.dtype(dtype).kind not in "fc":
        return inputs
    return tuple([call(np.asarray, (value, dtype), {}) for value in inputs])


class _Flat:
    """The elements of an array in C order (`ndarray.flat`)."""

    def __init__(self, array: ndarray) -> None:
        self.base = array

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        return iter(np.ravel(self.base))

    def __getitem__(self, key: Any) -> Any:
        found = np.ravel(self.base)[key]
        return np.copy(found) if found.ndim else found

    def __setitem__(self, key: Any, value: Any) -> None:
        positions = np.arange(self.base.size)[key]
        call(np.put, (self.base, positions, value), {})
