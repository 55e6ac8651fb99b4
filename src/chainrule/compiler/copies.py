"""Programs of copied functions: a function that was unpickled by value uses those of its original.

cloudpickle copies a function with what it reaches: its code, closure and globals. The copy has
tensors and other objects of its own. So the calls of its programs are those of the original, with
the objects of the copy in their place; checks and shapes are the same.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
from typing import Any

from chainrule.autograd.function_wrapper import FunctionWrapper
from chainrule.autograd.tensor import Tensor
from chainrule.backend import ndarray
from chainrule.compiler.build import Built
from chainrule.compiler.tracing.discovery import Found, is_constant, is_generator, reachable

_MAX_SEARCHED = 50_000
"""Number of objects of a program among which references to the original are searched for."""


def innermost(function: Any) -> Any:
    """Return the function that methods, partials and wrappers lead to."""
    while True:
        if isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, functools.partial):
            function = function.func
        else:
            return function


def is_copy(function: Any) -> bool:
    """Whether a function was unpickled by value: its globals are of no module."""
    inner = innermost(function)
    space = getattr(inner, "__globals__", None)
    module = sys.modules.get(getattr(inner, "__module__", None) or "")
    return space is not None and space is not getattr(module, "__dict__", None)


def rebound(built: Built, original: Any, copied: Any) -> Built | None:
    """Return the programs of a function for its copy, None if the two differ."""
    try:
        pairs = _Pairs(built.inputs)
        pairs.relate(original, copied)
        found = [reachable(function, []) for function in (original, copied)]
        for one, other in zip(*found, strict=True):
            pairs.relate_found(one, other)
    except (_DifferenceError, ValueError):
        return None
    if not all(pairs.knows(held) for held in built.call.__globals__.values()):
        return None
    call, arrays = (_with_objects(each, pairs) for each in (built.call, built.arrays))
    if _reaches([call, arrays], pairs.replaced):
        return None
    return built._replace(call=call, arrays=arrays, first=call)


class _DifferenceError(Exception):
    """A function is no copy of another one."""


class _Pairs:
    """The objects of a copy, by those of the original that they are in the place of."""

    def __init__(self, inputs: frozenset[int]) -> None:
        self._inputs = inputs  # ids of the arrays that programs take, whose elements may differ
        self._old: dict[int, Any] = {}
        self._new: dict[int, Any] = {}

    @property
    def replaced(self) -> set[int]:
        """The ids of objects that the copy must not use; code is equal, and gives locations."""
        found = {key for key, old in self._old.items() if self._new[key] is not old}
        return found - {key for key in found if isinstance(self._old[key], types.CodeType)}

    def knows(self, held: Any) -> bool:
        """Whether the search came by a tensor or array: one that it misses may have a copy, too."""
        return id(held) in self._old or not isinstance(held, Tensor | ndarray)

    def get(self, old: Any) -> Any:
        """Return the object in the place of another one."""
        return self._new.get(id(old), old)

    def relate_found(self, one: Found, other: Found) -> None:
        """Relate what two searches found at one step."""
        if (one.path, one.form, one.by_value) != (other.path, other.form, other.by_value):
            raise _DifferenceError
        self.relate(one.scope, other.scope)
        if not (one.by_value or one.form):  # else the checks of a call compare
            self.relate(one.value, other.value)

    def relate(self, old: Any, new: Any) -> None:
        """Note that an object is in the place of another one; raise if it can't be."""
        if id(old) in self._old:
            if self._new[id(old)] is not new:
                raise _DifferenceError
            return
        if old is not new and (type(old) is not type(new) or not self._are_alike(old, new)):
            raise _DifferenceError
        self._old[id(old)], self._new[id(old)] = old, new

    def _are_alike(self, old: Any, new: Any) -> bool:
        if isinstance(old, types.CodeType):
            return bool(old == new)
        if isinstance(old, FunctionWrapper):
            self._relate_parts(tuple(old.made), tuple(new.made))
            return old.default_dtype is new.default_dtype
        if isinstance(old, ndarray):
            return id(old) in self._inputs or old.nbytes <= _MAX_COMPARED_BYTES
        if isinstance(old, types.MethodType):
            self.relate(old.__self__, new.__self__)
            self.relate(old.__func__, new.__func__)
            return True
        if isinstance(old, tuple | list | dict):
            return len(old) == len(new)
        if is_generator(old):
            return False
        known = (Tensor, types.FunctionType, types.CellType, functools.partial)
        return isinstance(old, known) or _is_plain_object(old)

    def _relate_parts(self, old: Any, new: Any) -> None:
        """Relate functions in the arguments of a transform; other arguments must be equal."""
        if callable(old):
            self.relate(old, new)
        elif type(old) is not type(new):
            raise _DifferenceError
        elif isinstance(old, tuple | list):
            for one, other in zip(old, new, strict=True):
                self._relate_parts(one, other)
        elif isinstance(old, dict):
            self._relate_parts(list(old.items()), list(new.items()))
        elif not is_constant(old) or old != new:
            raise _DifferenceError


_MAX_COMPARED_BYTES = 1 << 14
"""Size in bytes up to which calls compare the elements of arrays that Python code reads."""


def _is_plain_object(x: Any) -> bool:
    """Whether the state of an object is in its attributes alone, which the search visits."""
    written_in_python = all(cls is object or cls.__flags__ & _HEAP_TYPE for cls in type(x).__mro__)
    return hasattr(x, "__dict__") and written_in_python and not isinstance(x, type)


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def _with_objects(function: Any, pairs: _Pairs) -> Any:
    """Return a generated function with the objects of the copy."""
    scope = {name: pairs.get(value) for name, value in function.__globals__.items()}
    return types.FunctionType(function.__code__, scope, function.__name__)


def _reaches(roots: list[Any], ids: set[int]) -> bool:
    """Whether some of these objects can be reached from others, or too many can."""
    seen: set[int] = set()
    pending = [part for root in roots for part in root.__globals__.values()]
    while pending:
        item = pending.pop()
        if id(item) in ids or len(seen) > _MAX_SEARCHED:
            return True
        if id(item) in seen or isinstance(item, types.ModuleType | type | types.CodeType):
            continue
        seen.add(id(item))
        if isinstance(item, types.FunctionType):
            module = sys.modules.get(item.__module__ or "")
            parts = gc.get_referents(item)
            if item.__globals__ is getattr(module, "__dict__", None):
                parts = [part for part in parts if part is not item.__globals__]
            pending += parts
        else:
            pending += gc.get_referents(item)
    return False
