"""The mode `explain`: tensors outside the graph remember the operation that left it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from types import CodeType
from typing import Any, NamedTuple

from chainrule.autograd.location import Location, locate, user_frame
from chainrule.autograd.modes import ModeContext, current_modes, prepare_looking
from chainrule.autograd.node import Node
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


class _Causes:
    """What is remembered of tensors while `explain` is on, and as long as they live."""

    def __init__(self) -> None:
        self._causes: dict[int, tuple[weakref.ref[Tensor], Cause]] = {}
        """By id of a tensor outside the graph: the tensor, and why it is."""
        self._tracked: dict[int, weakref.ref[Any]] = {}
        """By its id: each array of a tensor in the graph. A detached tensor has the same one."""

    def of(self, tensor: Tensor) -> Cause | None:
        entry = self._causes.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def see(self, primitive: Primitive, operands: Sequence[Any], results: Sequence[Tensor]) -> None:
        """Remember an operation that was computed."""
        tensors = [t for t in operands if t is not None]
        tracked = [t for t in tensors if t._edge is not None]
        for tensor in tracked:
            _keep(self._tracked, tensor._array, None)
        for result in results:
            if result._edge is not None:
                _keep(self._tracked, result._array, None)
                continue
            if tracked:
                cause: Cause | None = _cause(primitive, True)
            else:
                cause = self._inherited(primitive, tensors)
            if cause is not None:
                _keep(self._causes, result, cause)

    def see_same(
        self, tensor: Tensor, array: Any, other: Tensor, other_array: Any, node: Node | None
    ) -> None:
        """Remember of a tensor what is known of another one: these are the two sides of a vmap."""
        cause = self.of(tensor)
        if cause is not None:
            _keep(self._causes, other, cause)
        if node is not None or self._is_tracked(array):
            _keep(self._tracked, other_array, None)

    def _inherited(self, primitive: Primitive, tensors: Sequence[Tensor]) -> Cause | None:
        for tensor in tensors:
            found = self.of(tensor)
            if found is not None:
                return found
            if self._is_tracked(tensor._array):
                return _cause(primitive, False)
        return None

    def _is_tracked(self, array: Any) -> bool:
        known = self._tracked.get(id(array))
        return known is not None and known() is array


_CAUSES = _Causes()

cause_of = _CAUSES.of
"""Return why a tensor has no history, if it was computed under `explain`."""


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
        self._changes = {"explain": _CAUSES}


def _cause(primitive: Primitive, tracked: bool) -> Cause:
    modes = current_modes()
    frame = user_frame(sys._getframe(1))
    off = modes is not None and not modes.grad
    kind = ("no_grad" if off else "constant") if tracked else "detached"
    code, at = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)
    return Cause(kind, primitive.name, code, at)


def _keep(table: dict[int, Any], value: Any, cause: Cause | None) -> None:
    key = id(value)
    try:
        reference = weakref.ref(value, lambda _: table.pop(key, None))
    except TypeError:  # an array without weak references
        return
    table[key] = reference if cause is None else (reference, cause)
