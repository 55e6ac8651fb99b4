"""Records of what a function reads: the path to an object, and its value before the trace."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import numpy as np

from chainrule.compiler.ir.constants import EQUALITY_SCOPE, same_constant

MAX_COMPARED_BYTES = 1 << 20
"""Largest size, in bytes, of memory that is compared at each call."""


class Found:
    """An object that a function can reach: the path to it, and its value when it was found."""

    __slots__ = ("by_value", "form", "path", "scope", "value")

    def __init__(
        self, scope: Any, path: str, value: Any, by_value: bool = False, form: str = ""
    ) -> None:
        self.scope = scope  # a namespace (dict), a cell, or an object
        self.path = path  # source code of the access from there
        self.value = value
        self.by_value = by_value  # whether an equal object of the same type will do
        self.form = form  # source of the condition on object and value, if not identity

    def holds(self) -> bool:
        """Whether the condition still holds."""
        names = {"scope": self.scope, "held": self.value, **FORM_SCOPE}
        try:
            source = self.form.format(f"scope{self.path}", "held") or f"scope{self.path}"
            value = eval(compile(source, "<compiled check>", "eval"), names)
            if self.form:
                return bool(value)
        except (KeyError, AttributeError, IndexError, TypeError, ValueError):
            return False
        return value is self.value or (self.by_value and same_constant(value, self.value))


CACHED = frozenset(["__slotnames__", "__annotations_cache__"])
"""Attributes in which Python caches what it knows of a class, when an object is copied."""

FORM_SCOPE: dict[str, Any] = {
    **EQUALITY_SCOPE,
    "asarray": np.asarray,
    "memoryview": memoryview,
    "CACHED": CACHED,
    "get_referents": gc.get_referents,
}
"""Names that the conditions of `Found` use."""

LACKS = "{1}.isdisjoint({0})"
LACKS_GLOBALS = "{0}.keys().isdisjoint({1})"
ORDER = "[*{0}] == {1}"
IDENTITIES = "[*map(id, {0})] == {1}"
EMPTY = "{0} == {1}"
CLASS_SIZE = "len({0}) - sum(map({0}.__contains__, CACHED)) == {1}"
LAYOUT = "({0}.shape, {0}.strides, {0}.dtype) == {1}"
REFERENTS = "[*map(id, get_referents({0}))] == {1}"
MEMORY = "memoryview({0}).tobytes() == {1}"
FOREIGN_ARRAY = "asarray({0}).tobytes() == {1}"


class Identities(list[int]):
    """The ids of objects, which are held so that no others get them."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self.parts = list(parts)
        super().__init__(map(id, self.parts))


class DictItem:
    """The item of a dict for a key without literal, such as a tensor."""

    __slots__ = ("key", "of")

    def __init__(self, of: dict[Any, Any], key: Any) -> None:
        self.of, self.key = of, key

    @property
    def value(self) -> Any:
        return dict.__getitem__(self.of, self.key)


def large_memory(kind: str, size: int) -> str:
    """Return the error message for memory that is too large to compare."""
    return (
        f"a compiled function reads Python numbers from a {kind} of {size / 1e6:.1f} MB that it "
        "finds by name, which each call would have to compare: pass it as an argument, make a "
        "tensor of it outside, or read what is needed outside"
    )
