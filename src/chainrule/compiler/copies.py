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
from collections.abc import Iterator
from typing import Any

from chainrule.autograd.function_wrapper import FunctionWrapper
from chainrule.autograd.location import user_function
from chainrule.autograd.tensor import Tensor
from chainrule.backend import ndarray
from chainrule.compiler.build import Built
from chainrule.compiler.ir.constants import same_constant
from chainrule.compiler.tracing.array_reads import never_changes
from chainrule.compiler.tracing.found import MAX_COMPARED_BYTES, DictItem, Found, Identities
from chainrule.compiler.tracing.locations import is_internal_class
from chainrule.compiler.tracing.object_kinds import is_constant, is_generator

_MAX_SEARCHED = 50_000
"""Number of objects of a program among which references to the original are searched for."""


def is_copy(function: Any) -> bool:
    """Whether a function was unpickled by value: its globals are of no module."""
    inner = user_function(function)
    space = getattr(inner, "__globals__", None)
    module = sys.modules.get(getattr(inner, "__module__", None) or "")
    return space is not None and space is not getattr(module, "__dict__", None)


def rebound(built: Built, original: Any, copied: Any) -> Built | None:
    """Return the programs of a function for its copy, None if the two differ."""
    if any(place.scope is not None for place in built.varying):
        return None  # its calls read numbers from the objects of the original
    pairs = _Pairs(built.inputs)
    try:
        pairs.relate(original, copied)
        pairs.relate_reads(built.reads)
        reads = [pairs.read(item) for item in built.reads]
    except _DifferenceError:
        return None
    if not all(pairs.knows(held) for held in built.call.__globals__.values()):
        return None
    call, arrays = (_with_objects(each, pairs) for each in (built.call, built.arrays))
    if _reaches([call, arrays], pairs.replaced):
        return None
    return built._replace(call=call, arrays=arrays, first=call, reads=reads)


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
        """Whether the pairs have a tensor or array: one that they lack may have a copy, too."""
        return id(held) in self._old or not isinstance(held, Tensor | ndarray)

    def get(self, old: Any) -> Any:
        """Return the object in the place of another one."""
        if isinstance(old, Identities):
            return Identities(map(self.get, old.parts))
        return self._new.get(id(old), old)

    def relate_reads(self, reads: list[Found]) -> None:
        """Relate what the original has read to what the copy has in the same places.

        Each place begins at an object that another place has led to, in any order.
        """
        pending = reads
        while pending:
            later = [item for item in pending if not self._relate_read(item)]
            if len(later) == len(pending):  # the others begin at what both share, if at anything
                shared = [item.scope for item in later if _is_shared(item.scope)]
                if not shared:
                    raise _DifferenceError
                for scope in shared:
                    self.relate(scope, scope)
            pending = later

    def _relate_read(self, item: Found) -> bool:
        """Relate what is in one place; return whether it is known where the place begins."""
        scope = item.scope
        if isinstance(scope, DictItem) and id(scope) not in self._old:
            if id(scope.of) not in self._old:
                return False
            new = DictItem(self.get(scope.of), self.get(scope.key))
            self._old[id(scope)], self._new[id(scope)] = scope, new
        if id(scope) not in self._old:
            return False
        if not (item.by_value or item.form):  # else the checks of a call compare
            try:
                new = eval(f"scope{item.path}", {"scope": self.get(scope)})
            except Exception:  # of a property of the user, for example
                raise _DifferenceError from None
            self.relate(item.value, new)
        return True

    def read(self, item: Found) -> Found:
        """Return what the copy reads in the place of what the original does."""
        scope, value = self.get(item.scope), self.get(item.value)
        return Found(scope, item.path, value, item.by_value, item.form)

    def relate(self, old: Any, new: Any) -> None:
        """Note that an object is in the place of another one; raise if it can't be."""
        if id(old) in self._old:
            if self._new[id(old)] is not new:
                raise _DifferenceError
            return
        if old is not new and type(old) is not type(new):
            raise _DifferenceError
        self._old[id(old)], self._new[id(old)] = old, new
        for one, other in _parts(old, new):
            self.relate(one, other)
        if old is not new and not self._are_alike(old, new):
            raise _DifferenceError

    def _are_alike(self, old: Any, new: Any) -> bool:
        if isinstance(old, types.CodeType):
            return bool(old == new)
        if isinstance(old, FunctionWrapper):
            self._relate_arguments(tuple(old.made), tuple(new.made))
        if is_internal_class(type(old)) and hasattr(old, "default_dtype"):
            return old.default_dtype is new.default_dtype
        if isinstance(old, ndarray):
            if (old.dtype, old.shape, old.strides) != (new.dtype, new.shape, new.strides):
                return False
            read_at_each_call = id(old) in self._inputs and not never_changes(old)
            return read_at_each_call or _are_equal(old, new)
        return isinstance(old, _COPIED) or (not is_generator(old) and _is_plain_object(old))

    def _relate_arguments(self, old: Any, new: Any) -> None:
        """Relate functions in the arguments of a transform; other arguments must be equal."""
        if callable(old):
            self.relate(old, new)
        elif type(old) is not type(new):
            raise _DifferenceError
        elif isinstance(old, tuple | list):
            if len(old) != len(new):
                raise _DifferenceError
            for one, other in zip(old, new, strict=True):
                self._relate_arguments(one, other)
        elif isinstance(old, dict):
            self._relate_arguments(list(old.items()), list(new.items()))
        elif not (is_constant(old) and same_constant(old, new)):
            raise _DifferenceError


def _parts(old: Any, new: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the pairs of objects at which reads may begin, if two objects are a pair."""
    if isinstance(old, types.MethodType):
        yield old.__self__, new.__self__
        yield old.__func__, new.__func__
    elif isinstance(old, types.ModuleType):
        yield vars(old), vars(new)
    elif isinstance(old, types.FunctionType):
        yield old.__code__, new.__code__
        yield old.__globals__, new.__globals__
        cells = old.__closure__ or (), new.__closure__ or ()
        if len(cells[0]) != len(cells[1]):
            raise _DifferenceError
        yield from zip(*cells, strict=True)


def _is_shared(scope: Any) -> bool:
    """Whether a class, or the namespace of a module, is that of all functions of the process."""
    if isinstance(scope, type) or scope is sys.modules:
        return True
    name = scope.get("__name__") if isinstance(scope, dict) else None
    return isinstance(name, str) and getattr(sys.modules.get(name), "__dict__", None) is scope


def _are_equal(old: Any, new: Any) -> bool:
    """Whether two arrays have the same elements, and the copy can change only if the other can."""
    if old.dtype.hasobject or old.nbytes > MAX_COMPARED_BYTES:
        return False
    return bool(old.tobytes() == new.tobytes()) and never_changes(old) <= never_changes(new)


_FUNCTIONS = (types.FunctionType, types.MethodType, types.CellType, functools.partial)
_COPIED = (Tensor, *_FUNCTIONS, tuple, list, dict)
"""Types whose copies are alike, since the checks of a call compare what is read in them."""


def _is_plain_object(x: Any) -> bool:
    """Whether the state of an object is in its attributes alone."""
    written_in_python = all(cls is object or cls.__flags__ & _HEAP_TYPE for cls in type(x).__mro__)
    return hasattr(x, "__dict__") and written_in_python and not isinstance(x, type)


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def _with_objects(function: Any, pairs: _Pairs) -> Any:
    """Return a generated function with the objects of the copy."""
    scope = {name: pairs.get(value) for name, value in function.__globals__.items()}
    return types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)


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
        if not (type(item) is dict and _is_shared(item)):
            pending += gc.get_referents(item)
    return False
