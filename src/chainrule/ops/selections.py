"""Selections by masks that aren't known: ``x[mask]`` in compiled functions and under vmap.

How many elements there are depends on values, so there is no array of them. What users do with one
needs none: elementwise functions, then ``x[mask] = ...`` of the same mask, or a sum. All else takes
the array, which there is where a trace may read the mask after all: one of constants by name.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.tensor import Tensor, make
from chainrule.primitives import indexing

Array = Any


class Selection(np.lib.mixins.NDArrayOperatorsMixin):
    """The elements of a tensor that a mask selects, as a tensor of the shape of the whole.

    In the place of each other element is the first that is selected, so what is computed from
    them is finite wherever it is for those that are, and has a finite derivative.
    """

    is_selection = True  # operations on tensors take its elements

    def __init__(self, mask: ArrayProxy, whole: Any) -> None:
        self._mask, self._whole = mask, whole

    @classmethod
    def of(cls, x: Tensor, mask: ArrayProxy) -> Any:
        """Return ``x[mask]``, which stands for a tensor."""
        found = cls(mask.copy(), None)
        if mask.shape != x.shape[: mask.ndim]:
            return indexing.index.apply(x, key=mask)  # which raises
        selected = make(found._mask, None)
        flat = np.reshape(x, (-1, *x.shape[mask.ndim :]))
        first = np.take(flat, np.argmax(np.ravel(selected)), axis=0)
        spare = np.asarray(0.5 if x._array.dtype.kind in "fc" else 1, x._array.dtype)
        found._whole = found._or(x, np.where(np.any(selected), first, spare))
        return found

    def _or(self, whole: Any, others: Any) -> Any:
        """Return `whole` where the mask is true, else `others`."""
        mask = make(self._mask, None)
        return np.where(
            np.reshape(mask, mask.shape + (1,) * (whole.ndim - mask.ndim)), whole, others
        )

    def elements(self) -> Any:
        """Return the elements as a tensor.

        Raises
        ------
        CompileError, AutogradError
            If a trace doesn't know how many there are, or the number differs between examples.
        """
        return indexing.index.apply(self._whole, key=self._mask)

    def write_to(self, x: Tensor, mask: Any) -> None:
        """Write ``x[mask] = self``."""
        same = isinstance(mask, ArrayProxy) and self._mask.has_same_elements(mask)
        if same and self._whole.shape == x.shape:
            x[...] = self._or(self._whole, x)
        else:
            x[make(mask, None) if isinstance(mask, ArrayProxy) else mask] = self.elements()

    # --- functions of it ---

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        out = settings.pop("out", ())
        plain = method == "__call__" and ufunc.signature is None and ufunc.nout == 1
        if (
            not plain
            or settings
            or any(x is not self for x in out)
            or not all(map(self._fits, inputs))
        ):
            if out:
                settings["out"] = out
            return getattr(ufunc, method)(*map(elements_of, inputs), **settings)
        whole = ufunc(*[x._whole if isinstance(x, Selection) else x for x in inputs])
        if out:
            self._whole = whole
            return self
        return Selection(self._mask, whole)

    def _fits(self, x: Any) -> bool:
        if isinstance(x, Selection):
            return self._mask.has_same_elements(x._mask) and x._whole.ndim == self._whole.ndim
        return np.ndim(x) == 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc):
            return partial(ufunc, self)
        return getattr(self.elements(), name)

    def sum(self, *args: Any, **settings: Any) -> Any:
        """Return the sum of all elements."""
        if _is_given(args, settings):
            return self.elements().sum(*args, **settings)
        return np.sum(self._or(self._whole, np.zeros((), self._whole._array.dtype)))

    def mean(self, *args: Any, **settings: Any) -> Any:
        """Return the mean of all elements."""
        if _is_given(args, settings):
            return self.elements().mean(*args, **settings)
        rest = math.prod(self._whole.shape[self._mask.ndim :])
        return self.sum() / (np.sum(make(self._mask, None)) * rest)

    def __array_function__(self, function: Any, types: Any, args: Any, settings: Any) -> Any:
        if function in (np.sum, np.mean) and args[0] is self:
            return getattr(self, function.__name__)(*args[1:], **settings)
        args, settings = pytree.map_leaves((args, settings), elements_of)
        return function(*args, **settings)


def _is_given(args: tuple[Any, ...], settings: dict[str, Any]) -> bool:
    return any([value is not None for value in (*args, *settings.values())])


def elements_of(x: Any) -> Any:
    """Return the elements of a selection; anything else as it is."""
    return x.elements() if isinstance(x, Selection) else x


def _of_elements(name: str) -> Any:
    """Return a special method that calls the one of the elements."""

    def method(self: Selection, *args: Any) -> Any:
        return getattr(self.elements(), name)(*args)

    return method


for _name in (
    *("array", "bool", "int", "float", "index", "complex", "len", "iter", "getitem", "setitem"),
    "contains",
):
    setattr(Selection, f"__{_name}__", _of_elements(f"__{_name}__"))
