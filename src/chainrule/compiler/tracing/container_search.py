"""Search of containers: their contents, number by number or at once, and objects with buffers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import numpy as np

from chainrule.backend import is_array
from chainrule.compiler.ir.constants import count_marshalled, equality
from chainrule.compiler.tracing.found import (
    FOREIGN_ARRAY,
    IDENTITIES,
    MAX_COMPARED_BYTES,
    MEMORY,
    DictItem,
    Found,
    Identities,
    large_memory,
)
from chainrule.compiler.tracing.object_kinds import is_literal, is_plain
from chainrule.errors import CompileError

_MAX_ITEMWISE = 8
"""Number of numbers and strings above which a container is compared at once, not item by item."""


class ContainerSearch(ABC):
    """Records of what containers hold."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.complete = True  # whether all that ran was reported, and guards can compare it
        self.errors: list[CompileError] = []  # why the function can't be compiled
        self._places: set[tuple[int, str]] = set()

    @abstractmethod
    def add(self, scope: Any, path: str, value: Any) -> None:
        """Add an object to those that are to be visited."""

    def _record(self, scope: Any, path: str, value: Any, by_value: bool = False) -> None:
        """Record the value at a path."""
        place = id(scope), path
        if place not in self._places:
            self._places.add(place)
            self.found.append(Found(scope, path, value, by_value))

    def _dict(self, scope: Any, path: str, value: dict[Any, Any]) -> None:
        if self._at_once(scope, path, value):
            return
        self.found.append(Found(scope, f"{path}.__len__()", len(value), True))
        own_access = type(value).__getitem__ is not dict.__getitem__
        literal = not own_access and all(map(is_literal, value))
        for key, part in list(value.items()):
            if not own_access and is_literal(key):
                self.add(scope, f"{path}[{key!r}]", part)
            else:
                self.add(key, "", key)  # code may read its attributes, or compare it
                self.add(DictItem(value, key), ".value", part)
        if literal:
            self._items(scope, path, list(value))
            return
        if path:
            self._record(scope, path, value)
        self.found.append(Found(value, "", Identities(value), form=IDENTITIES))

    def _sequence(self, scope: Any, path: str, value: Any) -> None:
        if isinstance(value, deque):
            self._record(scope, f"{path}.maxlen", value.maxlen, True)
        if self._at_once(scope, path, value):
            return
        self.found.append(Found(scope, f"{path}.__len__()", len(value), True))
        for i, part in enumerate(value):
            self.add(scope, f"{path}[{i}]", part)

    def _at_once(self, scope: Any, path: str, value: Any) -> bool:
        """Record the content of a container with many numbers or strings and nothing else."""
        if (count_marshalled(value) or 0) <= _MAX_ITEMWISE:
            return False
        form, held = equality(value)
        size = Found(scope, f"{path}.__len__()", len(value), True)
        self.found += [size, Found(scope, path, held, form=form)]
        return True

    def _items(self, scope: Any, path: str, parts: list[Any]) -> None:
        """Record the numbers and strings in a set, or the keys of a dict, in their order."""
        form, held = equality(parts)
        self.found.append(Found(scope, path, held, form=form.replace("{0}", "[*{0}]")))

    def _set(self, scope: Any, path: str, value: Any) -> None:
        parts = list(value)
        if all(map(is_plain, parts)):
            if path:
                self.found.append(Found(scope, f"{path}.__class__", type(value)))
            self._items(scope, path, parts)
            return
        if path:
            self._record(scope, path, value)
        self.found.append(Found(value, "", Identities(parts), form=IDENTITIES))
        for part in parts:
            self.add(part, "", part)

    def _memory(self, value: Any) -> bool:
        """Record the bytes of an object that has a buffer."""
        form = MEMORY
        try:
            view = memoryview(value)
        except (TypeError, ValueError):
            if not hasattr(type(value), "__dlpack__") or is_array(value):
                return False
            try:  # an array of another library
                array: Any = np.asarray(value)
                view, form = memoryview(array), FOREIGN_ARRAY
            except Exception:
                self.complete = False
                return True
        if view.nbytes <= MAX_COMPARED_BYTES:
            self.found.append(Found(value, "", view.tobytes(), form=form))
        else:
            self.errors.append(CompileError(large_memory(type(value).__name__, view.nbytes)))
        return True
