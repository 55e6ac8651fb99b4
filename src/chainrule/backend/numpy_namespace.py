"""NumPy's namespace, with the fastest formulation of each function.

For small arrays the overhead of a call matters, for large ones the formulation; see
`benchmarks/kernels.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy import ndarray

from chainrule.backend.devices import move
from chainrule.backend.extensions import SCIPY, LazyModule, Namespace, kernels_of, windows
from chainrule.interrupts import errstate
from chainrule.kernels import accumulation, fast_numpy, flat_indexing, reductions

Array = Any

# glibc returns free blocks of 128 KB or more, and a free heap of 256 KB, to the system at once, and
# the pages of each new array then fault: 2,200 faults and 4.5 of 6 ms in a gradient with arrays of
# 0.8 MB. Freeing one large block, which nothing touched, raises the limits to its size and twice
# that (see M_MMAP_THRESHOLD in mallopt(3)), unless the environment sets them.
np.empty((1 << 25) - (1 << 16), np.uint8)


def _matmul(x: Array, y: Array) -> Array:
    # ndarray.dot has an overhead of 0.3 µs, np.matmul of 0.75; they agree up to two dimensions.
    if x.ndim == 2 == y.ndim or (x.ndim == 1 and 0 < y.ndim <= 2) or (x.ndim == 2 and y.ndim == 1):
        return x.dot(y)
    if 0 < y.ndim <= 2 < x.ndim and x.flags.c_contiguous and x.size:
        # One product for the whole stack, instead of one for each matrix of it.
        return x.reshape(-1, x.shape[-1]).dot(y).reshape(x.shape[:-1] + y.shape[1:])
    if x.ndim == y.ndim > 2 and x.size >= _STACK_MIN_ELEMENTS:
        from chainrule.kernels import product_stacks  # keeps import chainrule fast

        return product_stacks.matmul(x, y)
    return np.matmul(x, y)


_STACK_MIN_ELEMENTS = 1 << 14
"""Number of elements of a stack of matrices from which several threads may pay."""


def _reshape(x: Array, shape: tuple[int, ...], copy: bool | None = None) -> Array:
    if copy is None:
        return x.reshape(shape)
    if copy and x.shape == shape and fast_numpy.is_transposed(x):
        return fast_numpy.transposed(x)
    return x.reshape(shape, copy=copy)


def _broadcast_to(x: Array, shape: tuple[int, ...]) -> Array:
    if x.shape == shape:
        return x[...]  # np.broadcast_to would make it read-only
    # The constructor takes 0.2 µs, np.broadcast_to 2.
    if x.size == 1:
        return ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    if x.flags.c_contiguous and x.size and len(shape) >= x.ndim:
        lead = len(shape) - x.ndim
        strides = [0] * lead
        for size, length, stride in zip(shape[lead:], x.shape, x.strides, strict=True):
            if length == size:
                strides.append(stride)
            elif length == 1:
                strides.append(0)
            else:
                break
        else:
            return ndarray(shape, x.dtype, x, 0, strides)
    return np.broadcast_to(x, shape)


def _spread(x: Array, shape: tuple[int, ...]) -> Array:
    """Return `x` broadcast to `shape`; small results are copies, which may be modified."""
    if x.shape == shape:
        return x
    if math.prod(shape) > _SPREAD_MAX_ELEMENTS:
        return _broadcast_to(x, shape)
    out = np.empty(shape, x.dtype)
    out[...] = x
    return out


_SPREAD_MAX_ELEMENTS = 1024
"""Number of elements up to which filling an array is as fast as making a view."""


def _masked(x: Array, mask: Array) -> Array:
    """Return `x` where `mask`, else 0, also where x is nan or inf.

    np.where takes 3.7 ms for a million float32 with a random mask; multiplying the bit patterns by
    0 or 1 takes 0.2 ms, and 0 * inf cannot occur.
    """
    integer = fast_numpy.BIT_PATTERNS.get(x.dtype.char)
    if integer is None or x.ndim == 0:
        return np.where(mask, x, np.zeros((), x.dtype))
    return np.multiply(x.view(integer), mask).view(x.dtype)


_MIN_BIT_PATTERNS = 1 << 12
"""Number of elements from which `where` by bit patterns pays."""


def _where(condition: Array, x: Array, y: Array) -> Array:
    if (
        x.__class__ is ndarray is y.__class__
        and x.size >= _MIN_BIT_PATTERNS
        and x.shape == y.shape == condition.shape
        and x.dtype is y.dtype
        and x.dtype.char in fast_numpy.BIT_PATTERNS
        and condition.dtype.kind == "b"
    ):
        return fast_numpy.where(condition, x, y)
    return np.where(condition, x, y)


def _clip(x: Array, low: Any, high: Any) -> Array:
    if low is not None:
        low = np.array(low, x.dtype)
    if high is not None:
        high = np.array(high, x.dtype)
    if x.size >= 1024 and x.dtype.kind == "f":
        # clip with two bounds is vectorised, np.maximum with a number is not.
        return x.clip(-np.inf if low is None else low, np.inf if high is None else high)
    if x.dtype.kind == "c":
        return x.clip(low, high)
    if low is not None:
        x = np.maximum(*keep_on_tie(x, low))
    return x if high is None else np.minimum(*keep_on_tie(x, high))


def keep_on_tie(x: Any, bound: Any) -> tuple[Any, Any]:
    """Return x and its bound in the order in which NumPy's extrema keep x, as PyTorch does.

    Of 0.0 and -0.0 they are the second operand: processors' instructions for float32 and float64
    are so defined. For other dtypes NumPy's own loops take the first.
    """
    return (bound, x) if x.dtype.char in "fd" else (x, bound)


def _cumulative_sum(x: Array, *, axis: int) -> Array:
    if x.size >= 4096 and x.dtype.char in "fd":
        if axis == x.ndim - 1 and x.shape[-1] >= 64:
            found = accumulation.cumulative_sum(x)
            if found is not None:
                return found
        if accumulation.has_many_sequences(x, axis):
            return accumulation.accumulated(np.add, x, axis)
    return np.cumulative_sum(x, axis=axis)


def _cumulative_prod(x: Array, *, axis: int) -> Array:
    if x.dtype.kind in "fc" and accumulation.has_many_sequences(x, axis):
        return accumulation.accumulated(np.multiply, x, axis)
    return np.cumulative_prod(x, axis=axis)


elementwise = LazyModule("chainrule.kernels.elementwise")
remainders = LazyModule("chainrule.kernels.remainders")
matrices = LazyModule("chainrule.kernels.matrices")


def _by_rounding(ufunc: Any, formula: str) -> Callable[[Array, Array], Array]:
    """Return a ufunc of remainders that takes less time for large arrays."""

    def call(x: Array, y: Array) -> Array:
        if x.size < _MIN_ROUNDED:
            return ufunc(x, y)
        return remainders.in_blocks(ufunc, getattr(remainders, formula), x, y)

    return call


_MIN_ROUNDED = 1 << 12
"""Number of elements from which remainders by rounded quotients take less time than NumPy's."""


def _expm1(x: Array) -> Array:
    return elementwise.complex_expm1(np, x) if x.dtype.kind == "c" else np.expm1(x)


def _log1p(x: Array) -> Array:
    return elementwise.complex_log1p(np, x) if x.dtype.kind == "c" else np.log1p(x)


def _index_add(value: Array, *, shape: tuple[int, ...], key: Any) -> Array:
    """Return zeros of `shape` with `value` added at `key`, accumulating repeated indices."""
    out = np.zeros(shape, value.dtype)
    if flat_indexing.is_basic_index(key):
        out[key] = value
    elif flat_indexing.is_masks(key):
        flat_indexing.write(out, key, value)
    else:
        flat_indexing.add(out, key, value, zeros=True)
    return out


def _add_in_place(out: Array, key: Any, value: Array) -> bool:
    """Add `value` to an array at `key`, accumulating repeated indices; return whether it is."""
    if flat_indexing.is_basic_index(key):
        out[key] += value
    elif not out.flags.c_contiguous:
        return False
    elif flat_indexing.is_masks(key):
        flat_indexing.write(out, key, flat_indexing.read(out, key) + value)
    else:
        flat_indexing.add(out, key, value)
    return True


def _combine_at(base: Array, value: Array, *, key: Any, ufunc: Any = np.add) -> Array:
    """Return a copy of `base` with `value` combined at `key`, accumulating repeated indices."""
    out = np.array(base, order="C")
    if flat_indexing.is_masks(key):
        flat_indexing.write(out, key, ufunc(flat_indexing.read(out, key), value))
    elif not (
        ufunc is np.add
        and value.size >= _GATHER_MIN_ELEMENTS
        and _try_along_last("add_along_last", out, key, value)
    ):
        flat_indexing.add(out, key, value, ufunc)
    return out


def _try_along_last(kernel: str, out: Array, key: Any, value: Array) -> bool:
    """Run a kernel of an index along the last axis, if it is one; return whether it has run."""
    from chainrule.kernels import gather_scatter

    index = gather_scatter.index_along_last(out.shape, key)
    if index is None or index.shape != value.shape:
        return False
    done: bool = getattr(gather_scatter, kernel)(out, index, value)
    return done


def _index(x: Array, key: Any) -> Array:
    if (
        key.__class__ is tuple
        and len(key) == x.ndim > 1
        and x.size >= _GATHER_MIN_ELEMENTS
        and key[0].__class__ is ndarray
    ):
        from chainrule.kernels import gather_scatter

        index = gather_scatter.index_along_last(x.shape, key)
        found = (
            None
            if index is None or index.size < _GATHER_MIN_ELEMENTS
            else gather_scatter.gather_along_last(x, index)
        )
        if found is not None:
            return found
    return flat_indexing.read(x, key)


def _assign_at(base: Array, value: Array, key: Any) -> Array:
    """Return a copy of `base` with `value` at `key`."""
    out = np.array(base, order="C")
    if not (
        value.size >= _GATHER_MIN_ELEMENTS and _try_along_last("assign_along_last", out, key, value)
    ):
        flat_indexing.write(out, key, value)
    return out


def _take_along_axis(x: Array, index: Array, *, axis: int) -> Array:
    if x.ndim == 1:
        return x[index]
    if index.size >= _GATHER_MIN_ELEMENTS and axis == x.ndim - 1:
        from chainrule.kernels import gather_scatter

        found = (
            gather_scatter.gather_along_last(x, index)
            if gather_scatter.covers_rows(x.shape, index)
            else None
        )
        if found is not None:
            return found
    return flat_indexing.read(x, flat_indexing.grid(index, axis))


def _add_along_axis(x: Array, index: Array, *, shape: tuple[int, ...], axis: int) -> Array:
    """Return zeros of `shape` with `x` added at `index` along `axis`: take_along_axis' adjoint."""
    out = np.zeros(shape, x.dtype)
    if index.size >= _GATHER_MIN_ELEMENTS and axis == len(shape) - 1 > 0 and x.shape == index.shape:
        from chainrule.kernels import gather_scatter

        if gather_scatter.covers_rows(shape, index) and gather_scatter.add_along_last(
            out, index, x
        ):
            return out
    flat_indexing.add(out, flat_indexing.grid(index, axis), x)
    return out


_GATHER_MIN_ELEMENTS = 1 << 12
"""Number of elements from which gathering and scattering in chunks of rows pays."""


def _diagonal(x: Array, *, offset: int, key: Any) -> Array:
    """Return a view of a diagonal of the last two axes, writeable if `x` is.

    `key` is the equivalent index, for namespaces without such views.
    """
    found = np.diagonal(x, offset, -2, -1)
    if x.flags.writeable:
        found.flags.writeable = True
    return found


def _solve_triangular(a: Array, b: Array, *, upper: bool, unit: bool) -> Array:
    from chainrule.blas import lapack  # keeps import chainrule fast

    return lapack.solve_triangular(a, b, upper=upper, unit=unit)


def _has_lu_factors(shape: tuple[int, ...], dtype: Any) -> bool:
    from chainrule.blas import lapack  # keeps import chainrule fast

    return lapack.pays(shape, dtype)


def _factorize(x: Array, *, pivot: bool) -> tuple[Array, Array]:
    from chainrule.blas import lapack  # keeps import chainrule fast

    return lapack.factorize(x, pivot=pivot)


def _lu_factor(x: Array) -> tuple[Array, Array]:
    from chainrule.blas import lapack  # keeps import chainrule fast

    return lapack.lu_factor(x)


LAPACK = {
    "solve_triangular": _solve_triangular,
    "has_lu_factors": _has_lu_factors,
    "factorize": _factorize,
    "lu_factor": _lu_factor,
    **{
        name: functools.partial(kernels_of(np)[name], solve=_solve_triangular)
        for name in ("lu_solve", "lu_inverse")
    },
}
"""Functions of matrices that call LAPACK."""


@errstate(invalid="ignore")  # NumPy warns of nan
def _logcumsumexp(x: Array, *, axis: int) -> Array:
    return np.logaddexp.accumulate(x, axis)


def _stack(arrays: Any, axis: int = 0) -> Array:
    axis %= arrays[0].ndim + 1
    key = (*(slice(None),) * axis, None)
    return np.concatenate(
        [array[key] for array in arrays], axis
    )  # faster than np.stack, which is Python


def _flip(x: Array, axis: Any = None) -> Array:
    axes = range(x.ndim) if axis is None else axis if axis.__class__ is tuple else (axis,)
    key = [slice(None)] * x.ndim
    for i in axes:
        key[i] = _REVERSED
    return x[tuple(key)].copy()  # np.flip takes 3 µs to build this key


_REVERSED = slice(None, None, -1)


def _expand_dims(x: Array, axis: Any) -> Array:
    if axis.__class__ is not int:
        return np.expand_dims(x, axis)
    return x[(slice(None),) * (axis % (x.ndim + 1)) + (None,)]  # np.expand_dims takes 3 µs


def _moveaxis(x: Array, source: int, destination: int) -> Array:
    order = list(range(x.ndim))
    order.insert(destination % x.ndim, order.pop(source))
    return x.transpose(order)  # np.moveaxis takes 5 µs to compute this order


def _ones(shape: tuple[int, ...], dtype: Any) -> Array:
    if not shape:
        return np.array(1, dtype)
    out = np.empty(shape, dtype)
    out.fill(1)  # np.ones takes three times as long
    return out


RULE_KERNELS = {
    "batch_norm": ("batch_normalized", "batch_normalized_rule"),
    "pair_distances": ("pair_distances", "pair_gradients"),
    "elementwise": ("sigmoid", "sigmoid_rule", "tanh_rule", "relu_rule", "cross"),
    "gather_scatter": ("sum_of_windows",),
    "layer_norm": ("layer_normalized", "layer_normalized_rule"),
    "accumulation": ("cumulative_sum_vjp", "cumulative_prod_vjp", "row_products_of_others"),
    "matrices": ("on_diagonal", "below_diagonal"),
    "normal": ("gelu", "gelu_rule"),
    "parallel": ("formula_in_parts",),
    "pooling": ("max_pool_vjp",),
    "softmax_norm": (
        *("softmax", "softmax_rule", "log_softmax", "log_softmax_vjp"),
        *("logsumexp", "logsumexp_vjp"),
        *("standardized", "standardized_rule", "class_losses", "class_losses_vjp"),
    ),
}
"""Names of the kernels that replace formulas of rules for NumPy arrays, by module."""


class _RuleKernels(dict[str, Any]):
    """The kernels of `RULE_KERNELS`, each imported at its first use."""

    def __missing__(self, name: str) -> Any:
        module = next(module for module, names in RULE_KERNELS.items() if name in names)
        found = getattr(import_module(f"chainrule.kernels.{module}"), name)
        self[name] = functools.partial(found, np)
        return self[name]


class _LinearAlgebra:
    """The module `numpy.linalg`, with Cholesky factors that LAPACK computes in place.

    Small matrices of a stack are inverted together.
    """

    def __getattr__(self, name: str) -> Any:
        value = getattr(np.linalg, name)
        self.__dict__[name] = value
        return value

    def cholesky(self, x: Array, /, *, upper: bool = False) -> Array:
        from chainrule.blas import lapack  # keeps import chainrule fast

        return lapack.cholesky(x, upper=upper)

    def inv(self, x: Array, /) -> Array:
        found: Array = matrices.inverse(np, x)
        return found


numpy_xp = Namespace(
    np,
    **kernels_of(np) | LAPACK,
    fft=LazyModule("chainrule.kernels.fft_ufuncs"),
    linalg=_LinearAlgebra(),
    special=LazyModule("scipy.special", SCIPY),
    rule_kernels=_RuleKernels(),
    ones=_ones,
    # ndarray's methods, without the overhead of NumPy's functions.
    reshape=_reshape,
    permute_dims=lambda x, axes: x.transpose(axes),
    # Views in NumPy, copies here: writes through views would go unnoticed.
    flip=_flip,
    roll=fast_numpy.roll,
    real=lambda x: np.array(x.real),
    imag=lambda x: np.array(x.imag),
    matrix_transpose=lambda x: x.swapaxes(-1, -2),
    stack=_stack,
    expand_dims=_expand_dims,
    moveaxis=_moveaxis,
    matmul=_matmul,
    broadcast_to=_broadcast_to,
    spread=_spread,
    masked=_masked,
    # np.sum, np.max and the like add a microsecond of overhead to these.
    sum=reductions.sum_over,
    where=_where,
    clip=_clip,
    cumulative_sum=_cumulative_sum,
    cumulative_prod=_cumulative_prod,
    mean=reductions.mean,
    remainder=_by_rounding(np.remainder, "floored"),
    fmod=_by_rounding(np.fmod, "truncated"),
    floor_divide=_by_rounding(np.floor_divide, "floored_quotient"),
    expm1=_expm1,
    log1p=_log1p,
    argmax=lambda x, axis=None, keepdims=False: x.argmax(axis, keepdims=keepdims),
    argmin=lambda x, axis=None, keepdims=False: x.argmin(axis, keepdims=keepdims),
    prod=reductions.prod,
    max=reductions.largest,
    min=reductions.smallest,
    all=reductions.all_of,
    any=reductions.any_of,
    index=_index,
    index_add=_index_add,
    add_in_place=_add_in_place,
    add_at=_combine_at,
    maximum_at=lambda base, value, *, key: _combine_at(base, value, key=key, ufunc=np.maximum),
    minimum_at=lambda base, value, *, key: _combine_at(base, value, key=key, ufunc=np.minimum),
    assign_at=_assign_at,
    diagonal=_diagonal,
    windows=functools.partial(windows, np.lib.stride_tricks.as_strided),
    logcumsumexp=_logcumsumexp,
    take_along_axis=_take_along_axis,
    add_along_axis=_add_along_axis,
    to_device=lambda x, *, source, target: move(x, target),
)

REPLACED_UFUNCS = tuple(
    [
        name
        for name in vars(numpy_xp)
        if isinstance(ufunc := getattr(np, name, None), np.ufunc) and ufunc.signature is None
    ]
)
"""Names of the elementwise ufuncs that have functions of their own in NumPy's namespace."""
