"""Where the elements of a value are: a view is positions in the memory of another value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import is_basic_index
from chainrule.compiler.ir.abstract_eval import resolve
from chainrule.compiler.ir.op_traits import scalar_of
from chainrule.compiler.ir.program import Op, Program, Value, values_in

_FOLLOWED = frozenset(
    [
        *("np.reshape", "np.permute_dims", "np.broadcast_to", "getitem", "diagonal", "windows"),
        *("np.flip", "np.squeeze", "np.expand_dims", "np.ravel", "np.swapaxes", "np.moveaxis"),
    ]
)
_FILLED = {"np.zeros": 0, "np.ones": 1}


class Access(NamedTuple):
    """A value as elements of memory: i, j is at offset + i * strides[0] + j * strides[1]."""

    base: Value
    offset: int
    strides: tuple[int, ...]

    def over(self, shape: tuple[int, ...], of: tuple[int, ...]) -> Access:
        """Return the access to a value of shape `of` where it's broadcast to `shape`."""
        strides = (0,) * (len(shape) - len(of)) + self.strides
        sizes = (1,) * (len(shape) - len(of)) + of
        kept = tuple(0 if n == 1 else s for s, n in zip(strides, sizes, strict=True))
        return self._replace(strides=kept)


class Accesses:
    """Finds the memory of the values of a program; NumPy itself says what views are."""

    def __init__(
        self, program: Program, constants: dict[Value, Any], around: Accesses | None = None
    ) -> None:
        self.constants = constants
        self.made: dict[Value, Op] = {} if around is None else dict(around.made)
        self.made |= {value: op for op in program.ops for value in op.outs}
        self._views: dict[Value, tuple[Value, Any, Any]] = {}

    def of(self, value: Value) -> Access:
        """Return where a value's elements are."""
        return _position(*self._view(value))

    def owners(self, value: Value) -> Iterator[Value]:
        """Yield the values in whose memory a value is, also where a step's number says where."""
        base = self._view(value)[0]
        yield base
        op = self.made.get(base)
        if op is not None and op.function == "getitem":
            yield from self.owners(op.args[0])

    def number(self, value: Value) -> Any:
        """Return the one number that all elements of a value always are, or None."""
        base = self._view(value)[0]
        op = self.made.get(base)
        if op is not None and op.function in _FILLED:
            return _FILLED[op.function]
        return scalar_of(base, self.constants)

    def view_of(self, op: Op) -> tuple[Access, tuple[int, ...]] | None:
        """Return what a line picks of its first argument's own memory, and its shape."""
        whole = np.empty(op.args[0].shape, op.args[0].dtype)
        if not _may_be_view(op):
            return None
        view = _taken(op, whole)
        if not np.may_share_memory(view, whole):
            return None
        return _position(op.args[0], whole, view), view.shape

    def is_view(self, op: Op) -> bool:
        """Say whether a line makes a view that loops can look through."""
        return len(op.outs) == 1 and self._view(op.out)[0] is not op.out

    def _view(self, value: Value) -> tuple[Value, Any, Any]:
        """Return a value's base, memory as large as that, and the view, never written or read."""
        found = self._views.get(value)
        if found is None:
            found = self._views[value] = self._found(value)
        return found

    def _found(self, value: Value) -> tuple[Value, Any, Any]:
        op = self.made.get(value)
        if op is not None and _may_be_view(op):
            base, memory, whole = self._view(op.args[0])
            try:
                view = _taken(op, whole)
            except ValueError:  # a reshape that copies
                view = None
            if view is not None and np.may_share_memory(view, memory):
                return base, memory, view
        memory = np.empty(value.shape, value.dtype)
        return value, memory, memory


def _position(base: Value, memory: Any, view: Any) -> Access:
    """Return where a view of a value's memory is."""
    step = view.itemsize
    offset = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    return Access(base, offset // step, tuple(stride // step for stride in view.strides))


def _may_be_view(op: Op) -> bool:
    if op.function not in _FOLLOWED or len(op.outs) != 1:
        return False
    key = op.args[1] if op.function == "getitem" else ()
    return not any(values_in((op.args[1:], tuple(op.kwargs.values())))) and is_basic_index(key)


def _taken(op: Op, whole: Any) -> Any:
    if op.function == "np.reshape":
        return np.reshape(whole, op.args[1], copy=False)
    if op.function == "getitem":
        key = op.args[1] if isinstance(op.args[1], tuple) else (op.args[1],)
        return whole[key if Ellipsis in key else (*key, ...)]  # a view, of one element too
    return resolve(op.function)(whole, *op.args[1:], **op.kwargs)
