"""Strided memory access: views as offset and strides in the memory of their base."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import is_basic_index
from chainrule.compiler.ir.abstract_eval import resolve
from chainrule.compiler.ir.constants import scalar_of
from chainrule.compiler.ir.program import Op, Program, Value, values_in
from chainrule.compiler.tracing.symbol import c_strides, dummy_array

_VIEW_OPS = frozenset(
    [
        *("np.reshape", "np.permute_dims", "np.broadcast_to", "getitem", "diagonal", "windows"),
        *("np.flip", "np.squeeze", "np.expand_dims", "np.ravel", "np.swapaxes", "np.moveaxis"),
    ]
)
_FILL_OPS = {"np.zeros": 0, "np.ones": 1}


class Access(NamedTuple):
    """A strided access in elements: i, j is at offset + i * strides[0] + j * strides[1]."""

    base: Value
    offset: int
    strides: tuple[int, ...]

    def broadcast(self, shape: tuple[int, ...], of: tuple[int, ...]) -> Access:
        """Return the access to a value of shape `of` broadcast to `shape`."""
        strides = (0,) * (len(shape) - len(of)) + self.strides
        sizes = (1,) * (len(shape) - len(of)) + of
        kept = tuple(0 if n == 1 else s for s, n in zip(strides, sizes, strict=True))
        return self._replace(strides=kept)


class Accesses:
    """Finds the base and strides of each value of a program, by NumPy's own views."""

    def __init__(
        self, program: Program, constants: dict[Value, Any], outer: Accesses | None = None
    ) -> None:
        self.constants = constants
        self.producers: dict[Value, Op] = {} if outer is None else dict(outer.producers)
        self.producers |= {value: op for op in program.ops for value in op.outs}
        self._views: dict[Value, tuple[Value, Any, Any]] = {}
        self._found: dict[Value, Access] = {}

    def of(self, value: Value) -> Access:
        """Return the access to a value."""
        found = self._found.get(value)
        if found is None:
            found = self._found[value] = _access(*self._view(value))
        return found

    def owners(self, value: Value) -> Iterator[Value]:
        """Yield the bases of a value, through entries of stacks, too."""
        base = self._view(value)[0]
        yield base
        op = self.producers.get(base)
        if op is None or op.function != "getitem":
            return
        if not any(v.shape for v in values_in(op.args[1])):  # at index arrays, it is a copy
            yield from self.owners(op.args[0])

    def uniform_value(self, value: Value) -> Any:
        """Return the constant that all elements of a value equal, or None."""
        base = self._view(value)[0]
        op = self.producers.get(base)
        if op is not None and op.function in _FILL_OPS:
            return _FILL_OPS[op.function]
        constant = self.constants.get(base)
        if constant is not None and not constant.ndim and constant.dtype.kind == "c":
            return constant.item()
        return scalar_of(base, self.constants)

    def view_of(self, op: Op) -> tuple[Access, tuple[int, ...]] | None:
        """Return the access and shape of a view of the operation's first argument, or None."""
        if not _may_be_view(op):
            return None
        array = _dummy_of(op.args[0])
        view = _apply(op, array)
        if not np.may_share_memory(view, array):
            return None
        return _access(op.args[0], array, view), view.shape

    def is_view(self, op: Op) -> bool:
        """Return whether an operation makes a view that loops can access through its base."""
        return len(op.outs) == 1 and self._view(op.out)[0] is not op.out

    def _view(self, value: Value) -> tuple[Value, Any, Any]:
        """Return the base of a value, a dummy array of its shape, and the view of that array."""
        found = self._views.get(value)
        if found is None:
            found = self._views[value] = self._trace(value)
        return found

    def _trace(self, value: Value) -> tuple[Value, Any, Any]:
        op = self.producers.get(value)
        if op is not None and _may_be_view(op):
            base, memory, array = self._view(op.args[0])
            try:
                view = _apply(op, array)
            except ValueError:  # a reshape that copies
                view = None
            if view is not None and np.may_share_memory(view, memory):
                return base, memory, view
        memory = _dummy_of(value)
        return value, memory, memory


def _dummy_of(value: Value) -> Any:
    """Return an array like a value, without memory: its elements must not be read or copied."""
    return dummy_array(value.shape, value.dtype, c_strides(value.shape, value.dtype.itemsize))


def _access(base: Value, memory: Any, view: Any) -> Access:
    """Return the access that a view of a dummy array stands for."""
    step = view.itemsize
    offset = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return Access(base, offset // step, tuple(stride // step for stride in view.strides))


def _may_be_view(op: Op) -> bool:
    if op.function not in _VIEW_OPS or len(op.outs) != 1:
        return False
    key = op.args[1] if op.function == "getitem" else ()
    return not any(values_in((op.args[1:], tuple(op.kwargs.values())))) and is_basic_index(key)


def _apply(op: Op, array: Any) -> Any:
    if op.function in ("np.reshape", "np.ravel"):
        return np.reshape(array, *(op.args[1:] or (-1,)), copy=False)
    if op.function == "getitem":
        key = op.args[1] if isinstance(op.args[1], tuple) else (op.args[1],)
        return array[key if Ellipsis in key else (*key, ...)]  # a view also of a single element
    return resolve(op.function)(array, *op.args[1:], **op.kwargs)
