"""Calls of NumPy's functions that may go straight to their rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.numpy.out_arguments import place_of_out


class PlainCall:
    """A call of a function that has a rule, and whether it takes nothing but the rule.

    That is so for arrays of known numbers, one of which has a history, and settings, if no argument
    is written to.
    """

    __slots__ = ("is_plain", "keeps_dtype", "records")

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        self.records = False  # whether an argument has a history
        self.keeps_dtype = True  # else the result might have the default one
        self.is_plain = function not in _WRITING and _SPECIAL.isdisjoint(kwargs)
        if self.is_plain:
            self._see(args)
        if self.is_plain and kwargs:
            self._see(kwargs.values())
        if not self.records or (len(args) > 1 and len(args) > place_of_out(function)):
            self.is_plain = False
        elif not self.keeps_dtype:
            self.keeps_dtype = function in _OF_ANY_DTYPE

    def _see(self, values: Iterable[Any]) -> None:
        for value in values:
            kind = type(value)
            if kind in _SETTINGS:
                continue
            if kind is np.ndarray:
                if value.dtype.kind not in "fc":
                    self.keeps_dtype = False
                    self.is_plain = self.is_plain and value.dtype.kind in "biu"
            elif kind is tuple or kind is list:
                self._see(value)
                if not value or not isinstance(value[0], Tensor):
                    self.keeps_dtype = False
            elif isinstance(value, Tensor) and value.is_carried:
                array = value._array
                if array.__class__ is not np.ndarray or array.dtype.kind not in "fc":
                    self.is_plain = False
                elif value._node is not None:
                    self.records = True
            else:
                self.is_plain = False
            if not self.is_plain:
                return


_SETTINGS = frozenset([int, float, bool, str, type(None)])
_SPECIAL = frozenset(["out", "device", "like"])
_WRITING = frozenset([np.real, np.imag, np.copyto, np.put])
"""Functions that write to an argument, or return what is written to through it."""

_OF_ANY_DTYPE = frozenset(
    {np.where, np.sum, np.prod, np.max, np.min, np.take, np.reshape, np.transpose, np.squeeze}
    | {np.broadcast_to, np.expand_dims, np.moveaxis, np.swapaxes, np.flip, np.roll, np.tile}
    | {np.repeat}
)
"""Functions whose results never have the default dtype."""
