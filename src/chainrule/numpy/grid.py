"""Names of NumPy's that don't dispatch: classes, objects and functions, over recorded arrays."""

from __future__ import annotations

import functools
import itertools
import math
import re
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
            rows = [call(np.atleast_1d, (a,), {}) for a in arrays]
            # Numbers have no dtype of their own.
            kinds = [
                a if type(a) in (int, float, complex) else r.dtype
                for a, r in zip(arrays, rows, strict=True)
            ]
            return call(np.concatenate, (rows,), {"dtype": np.result_type(*kinds)})
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


class broadcast:
    """The shape that arguments are broadcast to, and an iterator of tuples of their elements."""

    def __init__(self, *args: Any) -> None:
        arrays = [call(np.asarray, (arg,), {}) for arg in args]
        self.shape = np.broadcast_shapes(*[a.shape for a in arrays])
        self._arrays = [call(np.broadcast_to, (a, self.shape), {}) for a in arrays]
        self.ndim = self.nd = len(self.shape)
        self.size, self.numiter, self.index = math.prod(self.shape), len(arrays), 0

    @property
    def iters(self) -> tuple[Any, ...]:
        """An iterator of the elements for each argument."""
        return tuple([a.flat for a in self._arrays])

    def reset(self) -> None:
        """Begin with the first elements again."""
        self.index = 0

    def __iter__(self) -> broadcast:
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self.index == self.size:
            raise StopIteration
        place = np.unravel_index(self.index, self.shape)
        self.index += 1
        return tuple([a[place] for a in self._arrays])


class vectorize:
    """A function of numbers, called for each element of its broadcast arguments.

    The elements are arrays of no dimension, and what the function returns is stacked, recorded.
    With a signature, the function gets arrays of the dimensions that it names.
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
        self.pyfunc, self.signature = pyfunc, signature
        self.otypes = None if otypes is None else [np.dtype(kind) for kind in otypes]
        self.excluded = set(excluded or ())
        self._doc = doc
        self.__doc__ = pyfunc.__doc__ if doc is None else doc
        self.__name__ = getattr(pyfunc, "__name__", "vectorize")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.pyfunc is None:  # it is a decorator, with settings
            settings = (self.otypes, self._doc, [*self.excluded], False, self.signature)
            return vectorize(args[0], *settings)
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        taken = [k for k, x in given.items() if k not in self.excluded and _has_elements(x)]
        arrays = [call(np.array, (given[k],), {}) for k in taken]
        shape, arrays = self._broadcast(arrays)
        results = []
        for index in np.ndindex(shape):
            given |= {k: array[index] for k, array in zip(taken, arrays, strict=True)}
            positional = [given[i] for i in range(len(args))]
            results.append(self.pyfunc(*positional, **{name: given[name] for name in kwargs}))
        if results and isinstance(results[0], tuple):
            columns = enumerate(zip(*results, strict=True))
            return tuple([self._stacked(part, shape, i) for i, part in columns])
        return self._stacked(results, shape, 0)

    def _broadcast(self, arrays: list[Any]) -> tuple[tuple[int, ...], list[Any]]:
        """Return the shape of the calls, and the arguments in it, before their own dimensions."""
        cores = [()] * len(arrays) if self.signature is None else _dimensions(self.signature)
        if len(cores) != len(arrays):
            raise ArgumentTypeError(
                f"vectorize: the signature {self.signature!r} has {len(cores)} arguments, and "
                f"{len(arrays)} were given"
            )
        sizes: dict[str, int] = {}
        outer = []
        for array, core in zip(arrays, cores, strict=True):
            ndim = len(array.shape) - len(core)
            own = array.shape[max(ndim, 0) :]
            outer.append(array.shape[: max(ndim, 0)])
            if ndim < 0 or any(
                [sizes.setdefault(d, n) != n for d, n in zip(core, own, strict=True)]
            ):
                raise ArgumentError(
                    f"vectorize: an argument of shape {array.shape} doesn't fit its dimensions "
                    f"({','.join(core)}) in the signature {self.signature!r}, with sizes {sizes}"
                )
        shape = np.broadcast_shapes(*outer)
        wanted = [shape + tuple([sizes[d] for d in core]) for core in cores]
        pairs = zip(arrays, wanted, strict=True)
        return shape, [call(np.broadcast_to, pair, {}) for pair in pairs]

    def _stacked(self, results: Sequence[Any], shape: tuple[int, ...], number: int) -> Any:
        dtype = None if self.otypes is None else self.otypes[number]
        stacked = call(np.array, (list(results), dtype), {})
        return call(np.reshape, (stacked, shape + stacked.shape[1:]), {})


class frompyfunc(vectorize):
    """A function of numbers, called for each element, with methods of ufuncs.

    Results are arrays of numbers, where NumPy's are arrays of objects.
    """

    def __init__(self, func: Callable[..., Any], nin: int, nout: int, **identity: Any) -> None:
        super().__init__(func)
        self.nin, self.nout, self.nargs = nin, nout, nin + nout
        self.identity = identity.get("identity")

    def reduce(self, array: Any, axis: int = 0) -> Any:
        """Return the elements along an axis, joined by the function from the first on."""
        return functools.reduce(self, call(np.moveaxis, (array, axis, 0), {}))

    def accumulate(self, array: Any, axis: int = 0) -> Any:
        """Return what `reduce` returns of the first element, of the first two and so on."""
        rows = [*itertools.accumulate(call(np.moveaxis, (array, axis, 0), {}), self)]
        return call(np.stack, (rows, axis), {})

    def outer(self, a: Any, b: Any) -> Any:
        """Return the function of all pairs of elements."""
        pairs = call(np.reshape, (a, np.shape(a) + (1,) * np.ndim(b)), {})
        return self(pairs, b)


def _dimensions(signature: str) -> list[tuple[str, ...]]:
    """Return the names of the dimensions of each argument in a signature such as (n),(n)->()."""
    text = signature.replace(" ", "")
    if not re.fullmatch(rf"{_DIMENSIONS}->{_DIMENSIONS}", text):
        raise ArgumentError(f"vectorize: not a valid signature: {signature!r}, as (m,n),(n)->(m)")
    groups = re.findall(r"\(([^)]*)\)", text.partition("->")[0])
    return [tuple(group.split(",")) if group else () for group in groups]


_DIMENSIONS = r"\((?:\w+(?:,\w+)*)?\)(?:,\((?:\w+(?:,\w+)*)?\))*"


def _has_elements(x: Any) -> bool:
    """Whether an argument is an array, a number or nested numbers, not a function or a text."""
    return hasattr(x, "shape") or isinstance(x, int | float | complex | list | tuple)


# --- functions ------------------------------------------------------------------------------------


def iterable(y: Any) -> bool:
    """Return whether an object can be iterated over, as an array of no dimension can't."""
    if isinstance(y, ndarray | ArrayProxy):
        return y.ndim > 0
    return np.iterable(y)


def fromiter(iter: Any, dtype: Any, count: int = -1) -> Any:
    """Return an array of one dimension with elements of an iterable."""
    elements = [*itertools.islice(iter, None if count < 0 else count)]
    if len(elements) < count:
        raise ArgumentError(f"iterator too short: fromiter of {len(elements)}, expected {count}")
    return call(np.array, (elements, dtype), {})


def isfortran(a: Any) -> bool:
    """Return whether an array's elements are in the order of columns: not where it records."""
    return not isinstance(a, ndarray | ArrayProxy) and np.isfortran(a)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Any:
    """Return an array, and raise where it has NaN or infinite elements."""
    array = call(np.asarray, (a, dtype), {"order": order})
    if are_known(array) and not np.all(np.isfinite(array)):
        raise ArgumentError("asarray_chkfinite: array must not contain infs or NaNs")
    return array


def kaiser(M: float, beta: Any) -> Any:
    """Return the window of Kaiser, recorded by `beta`."""
    if M < 2:
        return np.ones(max(int(M), 0))
    middle = (M - 1) / 2
    width = np.sqrt(1 - ((np.arange(M) - middle) / middle) ** 2)
    return call(np.i0, (width * beta,), {}) / call(np.i0, (beta,), {})


def fftfreq(n: int, d: Any = 1.0, device: Any = None) -> Any:
    """Return the frequencies of a Fourier transform, recorded by the sample spacing."""
    return np.fft.fftfreq(n, device=device) / d


def rfftfreq(n: int, d: Any = 1.0, device: Any = None) -> Any:
    """Return the frequencies of a Fourier transform of real numbers, recorded by the spacing."""
    return np.fft.rfftfreq(n, device=device) / d
