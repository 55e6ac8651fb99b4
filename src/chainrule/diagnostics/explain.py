"""The mode `explain`: tensors outside the graph remember the operation that left it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

from chainrule.autograd.location import Location, locate, user_frame
from chainrule.autograd.modes import ModeContext, current_modes, prepare_looking
from chainrule.autograd.tensor import Tensor
from chainrule.primitives.primitive import Primitive


class Cause(NamedTuple):
    """The operation at which a history ended."""

    kind: str  # "no_grad", "constant" (no derivative), "detached"
    operation: str
    code: CodeType | None
    instruction: int

    @property
    def location(self) -> Location | None:
        """The line of user code."""
        return locate(self.code, self.instruction)


_causes: dict[int, tuple[weakref.ref[Tensor], Cause]] = {}
"""By id of a tensor outside the graph: the tensor, and why it is."""

_tracked: dict[int, weakref.ref[Any]] = {}
"""By its id: each array of a tensor in the graph. A detached tensor has the same one."""


class explain(ModeContext):
    """Remember why tensors have no history, so that `why` can name the exact line.

    Each operation in the block takes longer, and compiled functions run eagerly.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor(2.0, requires_grad=True)
    >>> with cr.explain():
    ...     with cr.no_grad():
    ...         scale = w * 3
    ...     loss = (scale + 1) ** 2
    >>> print(cr.why(loss))
    `loss` does not require grad: its history ended at multiply, which ran under no_grad()...
    """

    def __init__(self) -> None:
        for prepare in prepare_looking:
            prepare()
        self._changes = {"explain": _note}


def cause_of(tensor: Tensor) -> Cause | None:
    """Return why a tensor has no history, if it was computed under `explain`."""
    entry = _causes.get(id(tensor))
    return entry[1] if entry is not None and entry[0]() is tensor else None


def _note(primitive: Primitive, operands: Sequence[Any], results: Sequence[Tensor]) -> None:
    """Remember an operation that was computed."""
    tensors = [t for t in operands if t is not None]
    tracked = [t for t in tensors if t._edge is not None]
    for tensor in tracked:
        _keep(_tracked, tensor._array, None)
    for result in results:
        if result._edge is not None:
            _keep(_tracked, result._array, None)
            continue
        cause = _cause(primitive, bool(tracked)) if tracked else _inherited(primitive, tensors)
        if cause is not None:
            _keep(_causes, result, cause)


def _cause(primitive: Primitive, tracked: bool) -> Cause:
    modes = current_modes()
    frame = user_frame(sys._getframe(1))
    off = modes is not None and not modes.grad
    kind = ("no_grad" if off else "constant") if tracked else "detached"
    code, at = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)
    return Cause(kind, primitive.name, code, at)


def _inherited(primitive: Primitive, tensors: Sequence[Tensor]) -> Cause | None:
    for tensor in tensors:
        found = cause_of(tensor)
        if found is not None:
            return found
        known = _tracked.get(id(tensor._array))
        if known is not None and known() is tensor._array:
            return _cause(primitive, False)
    return None


def _keep(table: dict[int, Any], value: Any, cause: Cause | None) -> None:
    key = id(value)
    try:
        reference = weakref.ref(value, lambda _: table.pop(key, None))
    except TypeError:  # an array without weak references
        return
    table[key] = reference if cause is None else (reference, cause)
