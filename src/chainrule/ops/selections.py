"""Selections by masks that aren't known: ``x[mask]`` in compiled functions and under vmap.

How many elements there are depends on values, so there is no array of them. What users do with one
needs none: elementwise functions, then ``x[mask] = ...`` of the same mask, or a sum.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NoReturn

import numpy as np

from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import AutogradError
from chainrule.primitives import indexing

Array = Any


class Selection(np.lib.mixins.NDArrayOperatorsMixin):
    """The elements of a tensor that a mask selects, as a tensor of the shape of the whole.

    In the place of each other element is the first that is selected, so what is computed from
    them is finite wherever it is for those that are, and has a finite derivative.
    """

    mend_as_operand = (
        "x[mask], of a mask whose values aren't known here, has no number of elements: NumPy's "
        "elementwise functions and sum() take it, and so does x[mask] = ...; else write "
        "where(mask, f(x), x)"
    )

    def __init__(self, source: Tensor, mask: ArrayProxy, whole: Any) -> None:
        self._source, self._mask, self._whole = source, mask, whole

    @classmethod
    def of(cls, x: Tensor, mask: ArrayProxy) -> Any:
        """Return ``x[mask]``, which stands for a tensor."""
        found = cls(x, mask.copy(), None)
        if mask.shape != x.shape[: mask.ndim]:
            found.refuse()
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

    def refuse(self) -> NoReturn:
        """Raise the error of ``x[mask]``."""
        indexing.index.apply(self._source, key=self._mask)
        raise AutogradError("x[mask]: the mask isn't known")

    def write_to(self, x: Tensor, mask: Any) -> None:
        """Write ``x[mask] = self``."""
        same = isinstance(mask, ArrayProxy) and self._mask.has_same_elements(mask)
        if not same or self._whole.shape != x.shape:
            self.refuse()
        x[...] = self._or(self._whole, x)

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
            self.refuse()
        whole = ufunc(*[x._whole if isinstance(x, Selection) else x for x in inputs])
        if out:
            self._whole = whole
            return self
        return Selection(self._source, self._mask, whole)

    def _fits(self, x: Any) -> bool:
        if isinstance(x, Selection):
            return self._mask.has_same_elements(x._mask) and x._whole.ndim == self._whole.ndim
        return np.ndim(x) == 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        ufunc = getattr(np, name, None)
        return partial(ufunc, self) if isinstance(ufunc, np.ufunc) else self.refuse()

    def sum(self, axis: None = None, dtype: None = None, out: None = None) -> Any:
        """Return the sum of all elements."""
        if (axis, dtype, out) != (None, None, None):
            self.refuse()
        return np.sum(self._or(self._whole, np.zeros((), self._whole._array.dtype)))

    def mean(self, axis: None = None, dtype: None = None, out: None = None) -> Any:
        """Return the mean of all elements."""
        rest = math.prod(self._whole.shape[self._mask.ndim :])
        return self.sum(axis, dtype, out) / (np.sum(make(self._mask, None)) * rest)

    def _read(self, *_: Any) -> NoReturn:
        self.refuse()

    __array__ = __bool__ = __int__ = __float__ = __index__ = __complex__ = _read
    __len__ = __iter__ = __getitem__ = __setitem__ = __contains__ = _read
