"""Namespace of symbols: array functions that record ops, for rules and for users' NumPy calls.

Each function records an op that calls NumPy's function of the same name. Functions that return
views, or that read shapes and dtypes only, are defined here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.autograd.array_proxy import NumberProxy
from chainrule.autograd.tensor import Tensor
from chainrule.backend import KERNELS, NamespaceDefaults, numpy_xp
from chainrule.backend.numpy_namespace import keep_on_tie
from chainrule.compiler.codegen import runtime
from chainrule.compiler.ir.program import Value
from chainrule.compiler.tracing import recorder, repeated_calls
from chainrule.compiler.tracing.execution import is_reporting, unreported
from chainrule.compiler.tracing.indices import (
    constant_index,
    is_basic,
    plain_key,
    run_assignment,
    run_indexing,
    without_masks,
)
from chainrule.compiler.tracing.symbol import (
    TRACING,
    Flags,
    Layout,
    Symbol,
    note_memory_use,
    outlived_error,
)
from chainrule.errors import CompileError
from chainrule.primitives import elementwise
from chainrule.primitives.primitive import TABLE

if TYPE_CHECKING:
    from chainrule.compiler.tracing.trace import Trace

# --- namespace ------------------------------------------------------------------------------------

Shape = tuple[int, ...]

_KERNELS = {
    name
    for names in KERNELS.values()
    for name in names
    if name not in TABLE or not TABLE[name].libm  # of these, programs call NumPy's
}


def record(name: str, *args: Any, **kwargs: Any) -> Any:
    """Record an op in the active trace; return symbols of its results."""
    trace = TRACING.get()
    if trace is None:
        raise outlived_error()
    target = kwargs.pop("out", None) if kwargs else None
    if target is not None:
        target[...] = record(name, *args, **kwargs)
        return target
    return unreported(_record, trace, name, args, kwargs)


def _record(trace: Trace, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    outs, container = trace.call(name, args, kwargs)
    c_order = name in _ALWAYS_C_ORDER or all(map(_all_c_ordered, (*args, *kwargs.values())))
    c_order = c_order and name not in _UNKNOWN_ORDER and kwargs.get("order", "C") in (None, "C")
    symbols = [Symbol(value, c_order) for value in outs]
    for symbol in symbols:
        symbol.is_scalar = not symbol.ndim and name not in _ALWAYS_ARRAYS
    if container is None:
        return symbols[0]
    return container(*symbols) if hasattr(container, "_fields") else container(symbols)


_ALWAYS_C_ORDER = frozenset(
    ["np.matmul", "np.zeros", "np.ones", "assign_at", "add_at", "index_add", "solve_triangular"]
)
"""Functions whose results are in C order, whatever the order of their arguments."""
_ALWAYS_ARRAYS = frozenset(["np.copy", "np.ones", "np.tensordot", "np.where", "np.zeros"])
"""Functions whose results without dimensions are arrays, where NumPy's others return scalars."""
_UNKNOWN_ORDER = frozenset(
    [
        *("np.linalg.cross", "kernels.convolve_weight", "kernels.cofactors"),
        "np.asfortranarray",
    ]
)
"""Functions whose results may be in another order even if their arguments are in C order."""


def _all_c_ordered(tree: Any) -> bool:
    if isinstance(tree, Symbol):
        return tree.c_ordered
    return not isinstance(tree, (tuple, list)) or all(map(_all_c_ordered, tree))


_assign_at: Any = functools.partial(record, "assign_at")


def _view(
    x: Any,
    name: str,
    *settings: Any,
    replace: Callable[[Value, Value], Any] | None,
    layout: Layout | None = None,
) -> Symbol:
    """Return a view of `x` by the function `name`, which `replace` inverts for writes."""
    x = as_symbol(x)
    array = None if layout is None else x.dummy()
    strides = None if array is None or layout is None else layout(array).strides

    def take(base: Value) -> Value:
        value: Value = record(name, base, *settings).value
        return value

    def put(base: Value, view: Value) -> Value:
        assert replace is not None
        value: Value = replace(base, view).value
        return value

    return Symbol.view_of(x, take, None if replace is None else put, strides)


def as_symbol(x: Any) -> Symbol:
    """Return an array, a number or a value of the program as a symbol."""
    if isinstance(x, Symbol):
        return x
    trace = TRACING.get()
    assert trace is not None
    return Symbol(x) if isinstance(x, Value) else trace.symbol_of(np.asarray(x))


class _Submodule:
    """A submodule of NumPy, `linalg` or `fft`, or `scipy.special`."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(record, self._prefix + name)


class SymbolNamespace(NamespaceDefaults):
    """Functions of symbols under the names that rules call."""

    known = False
    records = False
    repeats = True
    rule_kernels: Any = None
    loops: Any = None  # the module that records loops and branches, set by `chainrule.compiler`
    linalg = _Submodule("np.linalg.")
    fft = _Submodule("np.fft.")
    special = _Submodule("scipy.special.")
    apply = staticmethod(recorder.apply)
    walk = staticmethod(recorder.walk)

    @property
    def unwatched(self) -> Callable[..., Any] | None:
        return unreported if is_reporting() else None

    def run_forward(
        self, primitive: Any, forward: Callable[..., Any], /, *arrays: Any, **settings: Any
    ) -> Any:
        return repeated_calls.run_forward(primitive, forward, arrays, settings)

    def plus(self, x: Any, y: Any) -> Any:
        if type(y) is not Symbol:
            return x + y
        return unreported(repeated_calls.run_single, elementwise.add, (x, y), None)[0]

    def number(self, x: Any, like: Any) -> Any:
        return repeated_calls.number(x) if type(like) is Symbol else x

    def run_vjp(self, plan: Any, g: Any, saved: tuple[Any, ...], settings: Any) -> Any:
        return unreported(repeated_calls.run_vjp, self, plan, g, saved, settings)

    def __getattr__(self, name: str) -> Any:
        if name in _KEYED:
            found: Any = functools.partial(_record_keyed, name)
        elif name in _KERNELS:
            found = functools.partial(record, f"kernels.{name}")
        elif name in runtime.__all__:
            found = functools.partial(record, name)
        else:
            found = getattr(np, name)
            if callable(found) and not isinstance(found, type) and name not in _NOT_RECORDED:
                found = functools.partial(record, f"np.{name}")
        self.__dict__[name] = found
        return found

    # --- views ---

    def reshape(self, x: Any, shape: Any, order: str = "C", *, copy: bool | None = None) -> Symbol:
        x = as_symbol(x)
        shape = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
        if _is_fortran(x, order):
            return self.transpose(self.reshape(self.transpose(x), shape[::-1], copy=copy))
        if shape == x.shape:
            return Symbol(x.value) if copy else _full_view(x)
        if x.ndim and not _differ_by_ones(x.shape, shape):
            note_memory_use("order")
        array = x.dummy()
        try:
            strides = None if array is None else array.reshape(shape, copy=False).strides
        except ValueError:
            copy = True
        if copy:
            return Symbol(record("np.reshape", x, shape).value)
        found = _view(x, "np.reshape", shape, replace=_reshape_back)
        found.layout = strides
        found.maybe_view = strides is None and not _differ_by_ones(x.shape, found.shape)
        return found

    def ravel(self, x: Any, order: str = "C") -> Symbol:
        flat = self.reshape(x, (x.size,), order)  # NumPy copies what isn't contiguous
        return flat.copy() if self.is_contiguous(flat) is False else flat

    def is_contiguous(self, x: Any) -> bool | None:
        note_memory_use("order")
        return None if x.layout is None else bool(x.dummy().flags.c_contiguous)

    def differs_in_order(self, like: Any, array: Any) -> bool:
        one, two = [x.dummy() if isinstance(x, Symbol) else None for x in (like, array)]
        if one is None or not one.flags.c_contiguous:
            return False
        return two is None or not two.flags.c_contiguous  # a symbol of unknown order gets this one

    def permute_dims(self, x: Any, axes: Shape) -> Symbol:
        axes = tuple(axis % len(axes) for axis in axes)
        if axes == tuple(range(len(axes))):
            return _full_view(as_symbol(x))
        inverse = tuple(int(i) for i in np.argsort(axes))
        return _view(
            x,
            "np.permute_dims",
            axes,
            replace=lambda base, view: record("np.permute_dims", view, inverse),
            layout=lambda a: a.transpose(axes),
        )

    def transpose(self, x: Any, axes: Any = None) -> Symbol:
        return self.permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else axes)

    def matrix_transpose(self, x: Any) -> Symbol:
        n = x.ndim
        return self.permute_dims(x, (*range(n - 2), n - 1, n - 2))

    def moveaxis(self, x: Any, source: int, destination: int) -> Symbol:
        order = [i for i in range(x.ndim) if i != source % x.ndim]
        order.insert(destination % x.ndim, source % x.ndim)
        return self.permute_dims(x, tuple(order))

    def swapaxes(self, x: Any, first: int, second: int) -> Symbol:
        found: Symbol = x.swapaxes(first, second)
        return found

    def expand_dims(self, x: Any, axis: Any) -> Symbol:
        if isinstance(axis, tuple | list):
            return self.reshape(x, np.expand_dims(np.broadcast_to(0, x.shape), axis).shape)
        axis %= x.ndim + 1
        return self.reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))

    def squeeze(self, x: Any, axis: Any = None) -> Symbol:
        axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        dropped = {a % (x.ndim or 1) for a in axes if axis is not None or x.shape[a] == 1}
        return self.reshape(x, tuple(n for i, n in enumerate(x.shape) if i not in dropped))

    def broadcast_to(self, x: Any, shape: Shape) -> Symbol:
        if tuple(shape) == as_symbol(x).shape:
            return _full_view(as_symbol(x))
        return _view(
            x,
            "np.broadcast_to",
            tuple(shape),
            replace=None,
            layout=lambda a: np.broadcast_to(a, shape),
        )

    spread = broadcast_to

    def diagonal(self, x: Any, *, offset: int = 0, key: Any) -> Symbol:
        put = functools.partial(_put_at, key)
        return _view(
            x,
            "diagonal",
            offset,
            replace=put,
            layout=lambda a: np.diagonal(a, offset, -2, -1),
        )

    def part(self, x: Any, name: str) -> Symbol:
        """Return the real or the imaginary part as a view."""
        if x.dtype.kind != "c":
            return _full_view(x) if name == "real" else self.zeros(x.shape, x.dtype)
        put = functools.partial(record, f"with_{name}")
        found = _view(x, f"np.{name}", replace=put, layout=lambda a: getattr(a, name))
        found.is_scalar = x.is_scalar
        return found

    def bits(self, x: Any, dtype: Any) -> Symbol:
        """Return a view of the same bits as another dtype."""
        return _view(
            x,
            "bits",
            dtype,
            replace=lambda base, view: record("bits", view, base.dtype),
            layout=lambda a: a.view(dtype),
        )

    def real_pairs(self, x: Any) -> Symbol:
        return self.bits(self.expand_dims(x, -1), x.dtype.type().real.dtype)

    def complex_pairs(self, x: Any) -> Symbol:
        found = self.bits(x, np.result_type(x.dtype, np.complex64))
        return self.get_item(found, (..., 0))

    def windows(self, x: Any, *, size: int, step: int, key: Any) -> Symbol:
        return _view(
            x,
            "windows",
            size,
            step,
            replace=functools.partial(_put_at, key),
            layout=lambda a: numpy_xp.windows(a, size=size, step=step, key=key),
        )

    def get_item(self, x: Symbol, key: Any) -> Symbol:
        key = plain_key(key)
        return run_indexing(x, key, _view_at) if is_basic(key) else self.index(x, key)

    def index(self, x: Any, key: Any) -> Symbol:
        key = without_masks(plain_key(key))
        found: Symbol = record("getitem", x, key)
        first = key[0] if isinstance(key, tuple) else key
        if found.ndim > 1 and not (isinstance(first, Symbol) or np.ndim(first)):
            found.layout = None  # NumPy chooses the order of advanced indexing
        return found

    def set_item(self, x: Symbol, key: Any, value: Any) -> None:
        is_constant = isinstance(value, Tensor) and not value.requires_grad
        value = as_symbol(value._array if is_constant else value)
        if value.dtype != x.dtype:
            value = self.astype(value, x.dtype)
        key = plain_key(key)
        if key is Ellipsis or (isinstance(key, tuple) and not key):
            shape = value.shape
            while len(shape) > x.ndim and shape[0] == 1:  # as NumPy's assignment does
                shape = shape[1:]
            x.overwrite(self.broadcast_to(self.reshape(value, shape), x.shape).value)
            return
        x.overwrite(self.assign_at(x.value, value, key).value)

    def assign_at(self, base: Any, value: Any, key: Any) -> Symbol:
        mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        if isinstance(mask, Symbol) and mask.dtype.kind == "b" and value.ndim == 0:
            mask = self.reshape(mask, mask.shape + (1,) * (len(base.shape) - mask.ndim))
            found: Symbol = record("np.where", mask, value, base)
            return found
        return run_assignment(base, value, without_masks(key), _assign_at)

    def lasting(self, key: Any, shape: Shape) -> Symbol | None:
        constant = constant_index(key)
        if constant is not None and numpy_xp.lasting(constant, shape) is None:
            return None
        return _record_keyed("lasting", shape=shape, key=key)

    def check_phases(self, phases: Any, gradient: Any, *, operation: str) -> Symbol:
        return as_symbol(True)  # it checks values, which only eager mode has

    # --- creation and copies ---

    def asarray(self, x: Any, *, dtype: Any = None, copy: bool | None = None) -> Symbol:
        if isinstance(x, NumberProxy):
            x = x.as_array(dtype)
        found = as_symbol(x if isinstance(x, Symbol) else np.asarray(x, dtype))
        if dtype is not None and np.dtype(dtype) != found.dtype:
            return self.astype(found, dtype)
        return found.copy("K") if copy else found

    def empty(self, shape: Any, dtype: Any = float) -> Symbol:
        return self.zeros(shape, dtype)

    def array(self, x: Any, dtype: Any = None) -> Symbol:
        return self.asarray(x, dtype=dtype, copy=True)

    def astype(self, x: Any, dtype: Any, *, copy: bool = True) -> Symbol:
        value: Value = record("np.astype", x, np.dtype(dtype)).value
        return as_symbol(x).new_like(value)

    def zeros(self, shape: Any, dtype: Any = float) -> Symbol:
        found: Symbol = record("np.zeros", shape, np.dtype(dtype))
        return found

    def ones(self, shape: Any, dtype: Any = float) -> Symbol:
        found: Symbol = record("np.ones", shape, np.dtype(dtype))
        return found

    def zeros_like(self, x: Any, dtype: Any = None) -> Symbol:
        return self.zeros(x.shape, x.dtype if dtype is None else dtype)

    def ones_like(self, x: Any, dtype: Any = None) -> Symbol:
        return self.ones(x.shape, x.dtype if dtype is None else dtype)

    empty_like = zeros_like

    def to_device(self, x: Any, *, source: Any, target: Any) -> Any:
        if source != target:
            raise CompileError(
                f"a compiled function can't move arrays, from {source} to {target}: call the "
                "function itself, which can, or move them before and after the call"
            )
        return x

    # --- functions with other signatures than NumPy's ---

    def sum(self, x: Any, axis: Any = None, keepdims: bool = False, **_: Any) -> Symbol:
        found: Symbol = record("np.sum", x, axis=axis, keepdims=keepdims)
        return found

    def mean(self, x: Any, axis: Any = None, keepdims: bool = False, **_: Any) -> Symbol:
        if x.dtype.kind not in "fc" or x.size == 0:
            found: Symbol = record("np.mean", x, axis=axis, keepdims=keepdims)
            return found
        total = self.sum(x, axis, keepdims)
        mean: Symbol = record("np.divide", total, x.size // max(total.size, 1))
        return mean

    def clip(self, x: Any, low: Any = None, high: Any = None) -> Any:
        if x.dtype.kind == "b":  # bounds get the dtype of x, as in eager mode
            low, high = [None if bound is None else bool(bound) for bound in (low, high)]
        if x.dtype.kind == "f" and (low is None) != (high is None):
            function, bound = ("np.maximum", low) if high is None else ("np.minimum", high)
            return record(function, *keep_on_tie(x, bound))
        return record("np.clip", x, low, high)

    def exp(self, x: Any) -> Any:
        if x.dtype != np.complex64:
            return record("np.exp", x)
        # Of complex64, NumPy's takes ten times as long as its functions of float32. Of -inf, the
        # result is 0 for any angle; of a real number, it is real.
        angle = self.part(x, "imag")
        root = record("np.exp", record("np.multiply", self.part(x, "real"), 0.5))
        some = record("np.not_equal", root, 0)
        real, imag = [
            record("masked", record("np.multiply", record("np.multiply", root, wave), root), some)
            for wave in (record("np.cos", angle), record("np.sin", angle))
        ]
        imag = record("np.where", record("np.equal", angle, 0), angle, imag)
        return record("kernels.complex", real, imag)

    def sigmoid(self, x: Any) -> Any:
        return elementwise._sigmoid(self, x)

    def bitwise_invert(self, x: Any) -> Any:
        return record("np.invert", x)

    invert = bitwise_invert


_KEYED = frozenset(["index_add", "add_at", "maximum_at", "minimum_at"])
"""Functions with an index as keyword argument `key`."""
_NOT_RECORDED = frozenset(
    ["isdtype", "iinfo", "finfo", "dtype", "broadcast_shapes", "result_type", "errstate"]
)
"""Functions of NumPy that take no arrays."""


def _record_keyed(name: str, *arrays: Any, **settings: Any) -> Symbol:
    settings["key"] = without_masks(settings["key"])
    found: Symbol = record(name, *arrays, **settings)
    return found


def _view_at(x: Symbol, key: Any) -> Symbol:
    put = functools.partial(_put_at, key)
    found = _view(x, "getitem", key, replace=put, layout=lambda a: a[key])
    return _scalar(found) if not found.ndim and not _has_ellipsis(key) else found


def _full_view(x: Symbol) -> Symbol:
    """Return a view of all elements of `x`."""
    return Symbol.view_of(x, lambda base: base, lambda base, view: view, x.layout)


def _scalar(x: Symbol) -> Symbol:
    """Return one element as it is now, as NumPy does where an index is made of integers alone."""
    found = Symbol(x.value)
    found.is_scalar = True
    return found


def _has_ellipsis(key: Any) -> bool:
    return any([part is Ellipsis for part in (key if isinstance(key, tuple) else (key,))])


def _is_fortran(x: Symbol, order: str) -> bool:
    """Whether NumPy takes the first dimension as the fastest one."""
    if order in "CF":
        return order == "F"
    array = x.dummy()
    return array is not None and bool(Flags(x).fnc)


def _reshape_back(base: Value, view: Value) -> Any:
    return record("np.reshape", view, base.shape)


def _differ_by_ones(a: Shape, b: Shape) -> bool:
    """Whether two shapes are equal but for dimensions of size 1."""
    return [n for n in a if n != 1] == [n for n in b if n != 1]


def _put_at(key: Any, base: Value, view: Value) -> Any:
    return record("assign_at", base, view, key)


SYMBOL_XP = SymbolNamespace()
Symbol.namespace = SYMBOL_XP
