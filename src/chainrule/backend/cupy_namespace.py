"""CuPy's namespace. A module of its own: importing CuPy waits for the first CuPy array.

Nothing here waits for the device but solvers of linear algebra, whose error codes are looked at.
Nothing is copied from the host but arrays of indices.
"""

from __future__ import annotations

import functools
from functools import cache
from typing import Any

import numpy as np

from chainrule.backend.devices import cupy_module, move
from chainrule.backend.extensions import KERNELS, LazyModule, Namespace, kernels_of, windows
from chainrule.errors import DeviceFunctionError
from chainrule.kernels import elementwise, lu
from chainrule.kernels.flat_indexing import is_basic_index

Array = Any
Key = Any


@cache
def cupy_namespace() -> Namespace:
    """Return the namespace of CuPy's arrays."""
    cupy = cupy_module()
    return CuPyNamespace(
        cupy,
        linalg=_LinearAlgebra(),
        special=_Refusing(LazyModule("cupyx.scipy.special"), "cupyx.scipy.special"),
        masked=lambda x, mask: cupy.where(mask, x, cupy.zeros((), x.dtype)),
        to_device=lambda x, *, source, target: move(x, target),
        windows=functools.partial(windows, cupy.lib.stride_tricks.as_strided),
        # Views in CuPy, copies here: writes through views would go unnoticed.
        flip=lambda x, axis=None: cupy.flip(x, axis).copy(),
        real=lambda x: x.real.copy(),
        imag=lambda x: x.imag.copy(),
        diagonal=lambda x, *, offset, key: cupy.diagonal(x, offset, -2, -1),
        vecdot=lambda x, y, axis=-1: (p := x.conj() * y).sum(axis=axis, dtype=p.dtype),
    )


class CuPyNamespace(Namespace):
    """CuPy's functions, with those that it lacks or that differ from NumPy's."""

    waits = True

    def __init__(self, module: Any, **extensions: Any) -> None:
        names = [name for name in KERNELS["elementwise"] if hasattr(module, name)]
        own = {name: getattr(module, name) for name in names}
        own["sigmoid"] = self._sigmoid
        super().__init__(module, **kernels_of(self) | own | extensions)
        self.factorize = functools.partial(lu.factorize, self)
        for name in ("lu_solve", "lu_inverse"):
            kernel = functools.partial(getattr(lu, name), self, solve=self.solve_triangular)
            setattr(self, name, kernel)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise _missing("cupy", name) from None

    def number(self, x: Array, like: Array) -> Array:
        with like.device:
            return self.asarray(x.item(), dtype=x.dtype)

    def asarray(self, x: Any, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return an array; a number is filled in by the device, which copies nothing."""
        if isinstance(x, bool | int | float | complex | np.generic):
            return self.full((), x, dtype)
        array = self._module.asarray(x, dtype=dtype)
        return array.copy() if copy and array is x else array

    def reshape(self, x: Array, shape: tuple[int, ...], copy: bool | None = None) -> Array:
        return self._module.reshape(x, shape, copy=copy)

    def argsort(self, x: Array, axis: int = -1, **kind: Any) -> Array:
        return self._module.argsort(x, axis)  # always stable

    def sort(self, x: Array, axis: int = -1, **kind: Any) -> Array:
        return self._module.sort(x, axis)

    def count_nonzero(self, x: Array, axis: Any = None, keepdims: bool = False) -> Array:
        return self.sum(x != 0, axis=axis, keepdims=keepdims)

    def max(self, x: Array, axis: Any = None, keepdims: bool = False, initial: Any = None) -> Array:
        if initial is None:
            return self._module.max(x, axis, keepdims=keepdims)
        if x.size == 0:
            return self.full(x.sum(axis, keepdims=keepdims).shape, initial, x.dtype)
        found = self._module.max(x, axis, keepdims=keepdims)
        return self.maximum(found, self.asarray(initial, dtype=x.dtype))

    def spread(self, x: Array, shape: tuple[int, ...]) -> Array:
        """Return a copy: CuPy has no read-only views, and a write must reach one element."""
        return x if x.shape == shape else self.broadcast_to(x, shape).copy()

    def add_in_place(self, out: Array, key: Any, value: Array) -> bool:
        if not is_basic_index(key):
            return False
        out[key] += value
        return True

    def lock(self, x: Array) -> None:
        """Do nothing: CuPy's arrays are always writeable, and `write` looks at their strides."""

    def reshaped_view(self, x: Array, shape: tuple[int, ...]) -> Array:
        return self._module.reshape(x, shape, copy=False)

    def clip(self, x: Array, low: Any, high: Any) -> Array:
        if low is not None:
            x = self.maximum(x, self.asarray(low, dtype=x.dtype))
        return x if high is None else self.minimum(x, self.asarray(high, dtype=x.dtype))

    def expm1(self, x: Array) -> Array:
        xp = self._module
        return elementwise.complex_expm1(xp, x) if x.dtype.kind == "c" else xp.expm1(x)

    def log1p(self, x: Array) -> Array:
        xp = self._module
        return elementwise.complex_log1p(xp, x) if x.dtype.kind == "c" else xp.log1p(x)

    def cumulative_sum(self, x: Array, *, axis: int) -> Array:
        return self.cumsum(x, axis)

    def cumulative_prod(self, x: Array, *, axis: int) -> Array:
        return self.cumprod(x, axis)

    # CuPy computes x - floor(x / y) y: inexact, and nan for infinite y.

    def remainder(self, x: Array, y: Array) -> Array:
        if x.dtype.kind != "f":
            return self._module.remainder(x, y)
        rest = self.fmod(x, y)
        rest = self.where(_is_across(rest, y), rest + y, rest)
        return self.where(rest == 0, self.copysign(rest, y), rest)

    def floor_divide(self, x: Array, y: Array) -> Array:
        if x.dtype.kind != "f":
            return self._module.floor_divide(x, y)
        if x.dtype.itemsize == 2:
            wide = self.floor_divide(x.astype(np.float32), y.astype(np.float32))
            return wide.astype(x.dtype)
        ratio, rest = x / y, self.fmod(x, y)
        whole = self.rint((x - rest) / y - _is_across(rest, y))
        whole = self.where(whole == 0, self.copysign(whole, ratio), whole)
        return self.where(y == 0, ratio, whole)

    def _sigmoid(self, x: Array) -> Array:
        return self.special.expit(x).astype(x.dtype, copy=False)

    def logcumsumexp(self, x: Array, *, axis: int) -> Array:
        return self.accumulate("logaddexp", x, axis=axis)

    def accumulate(self, ufunc: str, x: Array, *, axis: int) -> Array:
        """Scan by doubling (W. D. Hillis, G. L. Steele, Comm. ACM 29(12), 1986)."""
        combine, x = getattr(self, ufunc), self.moveaxis(x, axis, -1)
        step = 1
        while step < x.shape[-1]:
            found = combine(x[..., step:], x[..., :-step])
            x = self.concatenate([x[..., :step], found], axis=-1)
            step *= 2
        return self.moveaxis(x, -1, axis)

    def solve_triangular(self, a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
        """Solve; raise for a zero on the diagonal, for which CuPy divides by zero."""
        from cupyx.scipy import linalg

        if not unit and bool((self.diagonal(a, offset=0, key=None) == 0).any()):
            raise np.linalg.LinAlgError("Singular matrix")
        a, b = _stacked(a, b)
        return linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unit)

    # --- gather and scatter ---

    def index(self, x: Array, key: Key) -> Array:
        return x[self._on_device(key)]

    def index_add(self, value: Array, *, shape: tuple[int, ...], key: Key) -> Array:
        return self._combined("add", self.zeros(shape, value.dtype), value, key)

    def add_at(self, base: Array, value: Array, *, key: Key) -> Array:
        return self._combined("add", base.copy(), value, key)

    def maximum_at(self, base: Array, value: Array, *, key: Key) -> Array:
        return self._combined("max", base.copy(), value, key)

    def minimum_at(self, base: Array, value: Array, *, key: Key) -> Array:
        return self._combined("min", base.copy(), value, key)

    def assign_at(self, base: Array, value: Array, key: Key) -> Array:
        out = base.copy()
        self.write(out, key, value)
        return out

    def write(self, out: Array, key: Key, value: Array) -> None:
        """Assign in place. At repeated indices the last value wins, as with NumPy.

        CuPy leaves open which of them does: so all are given the last one.
        """
        lengths = zip(out.shape, out.strides, strict=True)
        if out.size and any([step == 0 and n > 1 for n, step in lengths]):
            raise ValueError("read-only: several elements are one place in memory")
        key = self._on_device(key)
        if _repeats(key):
            places = self._places(key, out.shape)
            value = self.broadcast_to(value, places.shape).reshape(-1)
            value = value[self._last_writer(places, out.size)[places]]
        out[key] = value

    def lasting(self, key: Key, shape: tuple[int, ...]) -> Array | None:
        key = self._on_device(key)
        if not _repeats(key):
            return None
        places = self._places(key, shape)
        number = self.arange(places.size).reshape(places.shape)
        return self._last_writer(places, int(np.prod(shape)))[places] == number

    def take_along_axis(self, x: Array, index: Array, *, axis: int) -> Array:
        return x[self._grid(index, axis)]

    def add_along_axis(self, x: Array, index: Array, *, shape: tuple[int, ...], axis: int) -> Array:
        return self.index_add(x, shape=shape, key=self._grid(index, axis))

    def _on_device(self, key: Key) -> Key:
        """Return an index with its arrays on the device."""
        if isinstance(key, tuple):
            return tuple([self._on_device(part) for part in key])
        return self.asarray(key) if isinstance(key, np.ndarray) else key

    def _grid(self, index: Array, axis: int) -> Key:
        """Return the index of all axes that is equivalent to one along an axis."""
        last = index.ndim - 1
        return tuple(
            [
                index if i == axis else self.arange(n).reshape((-1,) + (1,) * (last - i))
                for i, n in enumerate(index.shape)
            ]
        )

    def _places(self, key: Key, shape: tuple[int, ...]) -> Array:
        """Return the positions in the flattened array of the elements that an index selects."""
        return self.arange(int(np.prod(shape))).reshape(shape)[key]

    def _last_writer(self, places: Array, size: int) -> Array:
        """Return for each element the number of the last place in `places` that is its own."""
        writer = self.zeros(size, np.int32)
        _scatter("max")(writer, places.reshape(-1), self.arange(places.size, dtype=np.int32))
        return writer

    def _combined(self, name: str, out: Array, value: Array, key: Key) -> Array:
        """Combine values with the elements of an array, in a dtype that CuPy has atomics of."""
        key = self._on_device(key)
        dtype = out.dtype
        if dtype == np.int64:  # two's complement: sums of uint64 are those of int64
            sign = 0 if name == "add" else np.uint64(1 << 63)
            out, value = out.view(np.uint64) ^ sign, value.astype(np.int64).view(np.uint64) ^ sign
            _scatter(name)(out, key, value)
            return (out ^ sign).view(np.int64)
        wide = _ATOMIC.get((name == "add", dtype.kind, dtype.itemsize), dtype)
        out = out.astype(wide, copy=False)
        _scatter(name)(out, key, value.astype(wide, copy=False))
        return out.astype(dtype, copy=False)


_ATOMIC: dict[tuple[bool, str, int], Any] = {
    **{(add, kind, size): np.int32 for add in (True, False) for kind in "bi" for size in (1, 2)},
    **{(add, "u", size): np.uint32 for add in (True, False) for size in (1, 2)},
    (False, "f", 2): np.float32,
}
"""Dtypes in which others are combined: CuPy has atomic sums and extrema of a few only."""


def _scatter(name: str) -> Any:
    import cupyx

    return getattr(cupyx, f"scatter_{name}")


def _repeats(key: Key) -> bool:
    """Return whether an index may select an element twice: whether it has arrays of integers."""
    parts = key if isinstance(key, tuple) else (key,)
    return any([getattr(part, "dtype", np.dtype(bool)).kind in "iu" for part in parts])


def _is_across(rest: Array, y: Array) -> Array:
    """Return where a remainder with the sign of the dividend is on the other side of zero."""
    return (rest != 0) & ((rest < 0) != (y < 0))


# --- what CuPy lacks ------------------------------------------------------------------------------


def _missing(module: str, name: str) -> DeviceFunctionError:
    return DeviceFunctionError(
        f"{module} has no {name}, so it can't be computed on a GPU: move the tensors with .cpu()"
    )


class _Refusing:
    """A module of CuPy's, with an error that says how to mend for functions that it lacks."""

    def __init__(self, module: Any, name: str) -> None:
        self._module, self._name = module, name

    def __getattr__(self, name: str) -> Any:
        try:
            value = getattr(self._module, name)
        except AttributeError:
            raise _missing(self._name, name) from None
        self.__dict__[name] = value
        return value


class _LinearAlgebra(_Refusing):
    """The module `cupy.linalg`, with NumPy's errors, and its broadcasting in `solve`."""

    def __init__(self) -> None:
        super().__init__(cupy_module().linalg, "cupy.linalg")

    def __getattr__(self, name: str) -> Any:
        function = checked(super().__getattr__(name))
        self.__dict__[name] = function
        return function

    def solve(self, a: Array, b: Array) -> Array:
        if b.ndim != 1:
            a, b = _stacked(a, b)
        return checked(self._module.solve)(a, b)

    def cholesky(self, x: Array, /, *, upper: bool = False) -> Array:
        factor = checked(self._module.cholesky)(x.swapaxes(-1, -2).conj() if upper else x)
        return factor.swapaxes(-1, -2).conj() if upper else factor


def checked(solver: Any) -> Any:
    """Return a function that raises LinAlgError where CuPy's returns what a failed solver left.

    That need be neither nan nor infinite. CuPy doesn't look unless it is told to, since it waits.
    """

    @functools.wraps(solver)
    def waiting(*arguments: Any, **settings: Any) -> Any:
        import cupyx

        with cupyx.errstate(linalg="raise"):
            return solver(*arguments, **settings)

    return waiting


def _stacked(a: Array, b: Array) -> tuple[Array, Array]:
    """Return matrices with the axes in front broadcast, as CuPy's solvers want them."""
    cupy = cupy_module()
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return tuple(cupy.broadcast_to(x, stack + x.shape[-2:]) for x in (a, b))
