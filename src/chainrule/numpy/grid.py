"""Names of NumPy's that don't dispatch: classes, objects and functions, over recorded arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.interop.operands import are_known
from chainrule.numpy.array_class import as_ndarrays, call, ndarray


class _Concatenation:
    """An object such as `numpy.r_`: indexed by arrays, numbers and slices, it joins them."""

    def __init__(self, numpys: Any, *, columns: bool) -> None:
        self._numpys, self._columns = numpys, columns

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if any([isinstance(part, str) for part in parts]):
            return as_ndarrays(self._numpys[key])
        arrays = [np.r_[part] if isinstance(part, slice) else part for part in parts]
        if not self._columns:
            return call(np.concatenate, ([call(np.atleast_1d, (a,), {}) for a in arrays],), {})
        rows = [call(np.asarray, (a,), {}) for a in arrays]
        at_least_two = [a if np.ndim(a) > 1 else call(np.reshape, (a, (-1, 1)), {}) for a in rows]
        return call(np.concatenate, (at_least_two,), {"axis": -1})


r_ = _Concatenation(np.r_, columns=False)
c_ = _Concatenation(np.c_, columns=True)


class ndenumerate:
    """Pairs of the index and the element, in C order."""

    def __init__(self, arr: Any) -> None:
        self.arr = call(np.asarray, (arr,), {})

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        return iter([(index, self.arr[index]) for index in np.ndindex(self.arr.shape)])


class vectorize:
    """A function of numbers, called for each element of its broadcast arguments.

    The elements are arrays of no dimension, and what the function returns is stacked, recorded.
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any] | None = None,
        otypes: Any = None,
        doc: str | None = None,
        excluded: Sequence[Any] | None = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        if signature is not None:
            raise ArgumentTypeError(
                "chainrule.numpy.vectorize takes no signature: map a function of arrays with "
                "chainrule.vmap, or stack its results with np.stack"
            )
        self.pyfunc, self.otypes = pyfunc, otypes
        self.excluded = set(excluded or ())
        self._doc = doc
        self.__doc__ = pyfunc.__doc__ if doc is None else doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is None:  # it is a decorator, with settings
            return vectorize(args[0], self.otypes, self._doc, [*self.excluded])
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        taken = [k for k, x in given.items() if k not in self.excluded and _has_elements(x)]
        arrays = [call(np.array, (given[k],), {}) for k in taken]
        shape = np.broadcast_shapes(*[array.shape for array in arrays])
        arrays = [call(np.broadcast_to, (array, shape), {}) for array in arrays]
        results = []
        for index in np.ndindex(shape):
            given |= {k: array[index] for k, array in zip(taken, arrays, strict=True)}
            positional = [given[i] for i in range(len(args))]
            results.append(self.pyfunc(*positional, **{name: given[name] for name in kwargs}))
        if results and isinstance(results[0], tuple):
            return tuple([self._stacked(part, shape) for part in zip(*results, strict=True)])
        return self._stacked(results, shape)

    def _stacked(self, results: Sequence[Any], shape: tuple[int, ...]) -> Any:
        return call(np.reshape, (call(np.array, (list(results),), {}), shape), {})


def _has_elements(x: Any) -> bool:
    """Whether an argument is an array, a number or nested numbers, not a function or a text."""
    return hasattr(x, "shape") or isinstance(x, int | float | complex | list | tuple)


# --- functions ------------------------------------------------------------------------------------


def iterable(y: Any) -> bool:
    """Return whether an object can be iterated over, as an array of no dimension can't."""
    if isinstance(y, ndarray | ArrayProxy):
        return y.ndim > 0
    return np.iterable(y)


def isfortran(a: Any) -> bool:
    """Return whether an array's elements are in the order of columns: not where it records."""
    return not isinstance(a, ndarray | ArrayProxy) and np.isfortran(a)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Return an array, and raise where it has NaN or infinite elements."""
    array = call(np.asarray, (a, dtype), {"order": order})
    if are_known(array) and not np.all(np.isfinite(array)):
        raise ArgumentError("asarray_chkfinite: array must not contain infs or NaNs")
    return array


def kaiser(M: int, beta: Any) -> Any:
    """Return the window of Kaiser, recorded by `beta`."""
    if M < 2:
        return np.ones(max(M, 0))
    middle = (M - 1) / 2
    width = np.sqrt(1 - ((np.arange(M) - middle) / middle) ** 2)
    return call(np.i0, (width * beta,), {}) / call(np.i0, (beta,), {})
