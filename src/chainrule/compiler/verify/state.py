"""The state of what a function can reach: kept before a call, and put back."""

from __future__ import annotations

import builtins
import gc
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from contextvars import ContextVar
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.node import Hooks, Node, endpoint
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import logged_writes, restore_writes
from chainrule.backend import ndarray, storage_of
from chainrule.compiler.tracing.code_names import code_names
from chainrule.compiler.tracing.locations import (
    is_internal,
    is_internal_module,
    is_standard_module,
)
from chainrule.compiler.tracing.object_kinds import generator_state, is_generator, is_iterator
from chainrule.interrupts import errstate
from chainrule.random.draw import default_generator

_MAX_VISITS = 5_000
"""Number of objects whose state is kept, breadth first."""

_MAX_ITEMWISE = 1_000
"""Number of plain items above which a list is kept as a whole, without a look at its items."""

_PERTURBATION = 16
"""Size of the perturbations that show how sensitive a function is, in eps."""


class _Place(NamedTuple):
    """Something that can change: a container, a variable, an attribute, a generator."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]


class Snapshot(NamedTuple):
    """The contents of all places, and of the memory of arrays with its log of writes."""

    places: list[Any]
    memory: list[tuple[Any, Any]]


def step_to(position: int, key: Any) -> str:
    """Return the text that leads to an item of a dict: the same before and after writes."""
    return f"[Tensor {position}]" if isinstance(key, Tensor) else f"[{key!r}]"


class State:
    """Everything that a function can reach through its code and arguments, and that can change.

    `restorable` is False if there is an iterator, which can be consumed only once, or a set whose
    copies have another order. `plain` has the numbers, strings and the like as text, by name.
    """

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.restorable = True
        self.plain: dict[str, str] = {}
        self.tensors: list[tuple[str, Tensor]] = []
        self.arrays: list[tuple[str, Any]] = []
        self._places: list[_Place] = []
        self._names: set[str] = set()  # of attributes
        self._modules: list[tuple[str, dict[str, Any]]] = []
        self._variables: set[tuple[int, str]] = set()
        self._seen: dict[int, Any] = {}
        self._queue: deque[tuple[str, Any]] = deque(
            [("the default generator", default_generator())]
        )
        self._queue += [(f"argument {i}", arg) for i, arg in enumerate(args)]
        self._queue += [*kwargs.items(), ("", function)]
        while self._queue and len(self._seen) < _MAX_VISITS:
            self._visit(*self._queue.popleft())
            if not self._queue:
                for prefix, space in self._modules:
                    self._keep_variables(prefix, space, self._names & space.keys())
        self._seen.clear()
        self._queue.clear()
        self.given = {id(tensor) for _, tensor in self.tensors}
        self.arrays += [(name, SLOTS["_array"].__get__(tensor)) for name, tensor in self.tensors]
        self._owners = _owners([array for _, array in self.arrays])

    def now(self) -> Snapshot:
        """Return the present contents."""
        memory = [(array.copy(), logged_writes(array)) for array in self._owners]
        return Snapshot([place.read() for place in self._places], memory)

    def restore(self, snapshot: Snapshot) -> None:
        """Put contents back."""
        for place, content in zip(self._places, snapshot.places, strict=True):
            if not _is_same(place.read(), content):
                place.write(content)
        for array, (content, writes) in zip(self._owners, snapshot.memory, strict=True):
            if array.tobytes() != content.tobytes():
                array[...] = content
            restore_writes(array, writes)

    def changed(self, since: Snapshot) -> Iterator[tuple[str, Any]]:
        """Yield the places with other contents, but not those of tensors."""
        for place, content in zip(self._places, since.places, strict=True):
            now = place.read()
            if place.name and not _is_same(now, content):
                yield place.name, now

    def perturb(self, rng: np.random.Generator) -> None:
        """Change each number of floating point by a few units in the last place."""
        for array in self._owners:
            _perturb(array, rng)

    # --- search ---

    def _visit(self, name: str, value: Any) -> None:
        if isinstance(value, PLAIN):
            self.plain.setdefault(name, repr(value)[:80])
        elif id(value) not in self._seen:
            self._seen[id(value)] = value
            if isinstance(value, Tensor):
                self._tensor(name, value)
            elif isinstance(value, ndarray):
                self.arrays.append((name, value))
            elif is_generator(value):
                self._places.append(_Place(name, *_generator_access(value)))
                self._attributes(name, value)
            elif isinstance(value, dict | list | deque | set | bytearray | tuple | frozenset):
                self._container(name, value)
            elif isinstance(value, types.FunctionType):
                self._function(value)
            elif isinstance(value, types.MethodType):
                self._queue += [(name, value.__self__), (name, value.__func__)]
            elif isinstance(value, types.ModuleType):
                if not _is_library(value.__name__):
                    self._modules.append((f"{name}.", vars(value)))
            elif isinstance(value, type):
                self._class(name, value)
            elif is_iterator(value):
                self.restorable = False
            else:
                self._object(name, value)

    def _container(self, name: str, value: Any) -> None:
        if not isinstance(value, tuple | frozenset):
            kind = next((kind for kind in (dict, set) if isinstance(value, kind)), list)
            if kind is set and list(set(value)) != list(value):  # a function may use its order
                self.restorable = False
            self._places.append(_Place(name, lambda: kind(value), lambda old: _refill(value, old)))
        if isinstance(value, dict):
            items = list(value.items())
            self._queue += [(name + step_to(i, key), v) for i, (key, v) in enumerate(items)]
        elif not (len(value) > _MAX_ITEMWISE and all(isinstance(v, PLAIN) for v in value)):
            self._queue += [(f"{name}[{i}]", part) for i, part in enumerate(value)]

    def _function(self, function: types.FunctionType) -> None:
        if _is_library(function.__module__):
            return
        code, space = function.__code__, function.__globals__
        attributes, names = _names_in(code)
        self._names |= attributes
        for free, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._keep_attribute(free, cell, "cell_contents")
        if not is_internal[code.co_filename]:  # as the calls of custom functions are
            named = (names & space.keys()) | (names - vars(builtins).keys())
            self._keep_variables("", space, named)
        defaults = (function.__defaults__, function.__kwdefaults__, vars(function))
        self._queue += [(function.__name__, part) for part in defaults if part]

    def _keep_variables(self, prefix: str, space: dict[str, Any], names: Set[str]) -> None:
        """Keep the variables of a module that some code names, and visit them."""
        for key in sorted(names):
            if (id(space), key) in self._variables:
                continue
            self._variables.add((id(space), key))
            read, write = partial(_item, space, key), partial(_set_item, space, key)
            self._places.append(_Place(prefix + key, read, write))
            self._queue += [(prefix + key, part) for part in read()]

    def _keep_attribute(self, name: str, owner: Any, key: str) -> None:
        """Keep an attribute, and visit it."""
        read, write = partial(_attribute, owner, key), partial(_set_attribute, owner, key)
        self._places.append(_Place(name, read, write))
        self._queue += [(name, part) for part in read()]

    def _class(self, name: str, cls: type) -> None:
        """Visit the methods of a class, and its attributes that some code names."""
        for base in cls.__mro__[:-1]:
            for key, part in [] if _is_library(base.__module__) else list(vars(base).items()):
                function = getattr(part, "__func__", getattr(part, "fget", part))
                if isinstance(function, types.FunctionType):
                    self._queue.append((f"{name}.{key}", function))
                elif not key.startswith("__") and not hasattr(type(part), "__get__"):
                    self._keep_attribute(f"{base.__name__}.{key}", base, key)

    def _object(self, name: str, value: Any) -> None:
        kind = type(value)
        if kind.__module__.startswith(("chainrule.compiler", "chainrule.primitives")):
            self._queue.append((name, getattr(value, "function", None)))
            return
        for cls in kind.__mro__:  # slots, and members such as `func` of a partial
            for key, member in vars(cls).items():
                if isinstance(member, types.MemberDescriptorType) and not key.startswith("__"):
                    self._keep_attribute(f"{name}.{key}", value, key)
        if isinstance(value, ContextVar | weakref.ref):
            held = value.get(None) if isinstance(value, ContextVar) else value()
            self._queue.append((name, held))
        elif not hasattr(value, "__dict__"):  # an opaque object, such as a mapping proxy
            found = [part for part in gc.get_referents(value) if isinstance(part, dict | list)]
            self._queue += [(name, part) for part in found]
        self._attributes(name, value)
        self._queue.append((name, kind))

    def _attributes(self, name: str, value: Any) -> None:
        space = getattr(value, "__dict__", None)
        if isinstance(space, dict):
            self._places.append(_Place(name, lambda: dict(space), lambda old: _refill(space, old)))
            self._queue += [(f"{name}.{key}", part) for key, part in list(space.items())]

    def _tensor(self, name: str, tensor: Tensor) -> None:
        self.tensors.append((name, tensor))
        for slot in SLOTS:
            read, write = partial(_attribute, tensor, slot), partial(_set_attribute, tensor, slot)
            self._places.append(_Place("", read, write))
        if tensor._node is not None:
            node = endpoint(tensor._node)[0]
            self._places.append(_Place("", lambda: _hooks(node), lambda old: _set_hooks(node, old)))
        grad, view = tensor._grad, tensor._view
        if grad is not None:
            self._queue.append((f"{name}.grad", grad))
        if view is not None and view.base is not None:
            self._queue.append((f"the base of {name}", view.base))


class Roundings:
    """An observer of operations that rounds their results in other ways, as other code may.

    Where a sum cancels to exactly 0 for any inputs, only this shows its rounding. Integers stay:
    they are exact, and may be counts or indices.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def see(self, primitive: Any, operands: Sequence[Any], results: Sequence[Tensor]) -> None:
        """Change the results of an operation, unless they are memory that was there before."""
        given = [id(operand._array) for operand in operands if operand is not None]
        for result in results:
            array = result._array
            is_new = array.__class__ is ndarray and array.base is None and array.flags.writeable
            if is_new and id(array) not in given:
                _perturb(array, self.rng, np.rint(array) != array)

    def see_same(self, *_: Any) -> None:
        """Do nothing: both sides of a `vmap` are one array."""


@errstate(all="ignore")
def _perturb(array: Any, rng: np.random.Generator, where: Any = True) -> None:
    """Change numbers of floating point by a few units in the last place."""
    if array.dtype.kind in "fc":
        limits = np.finfo(array.dtype)
        noise = rng.uniform(-_PERTURBATION, _PERTURBATION, array.shape) * limits.eps
        np.multiply(array, (1 + noise).astype(limits.dtype), out=array, where=where)


PLAIN = (str, bytes, type(None), int, float, complex, np.generic, np.dtype, range, slice)


def _is_library(name: str | None) -> bool:
    """Whether a module belongs to chainrule, NumPy, SciPy or the standard library."""
    module = sys.modules.get(name or "")
    if module is None:
        return False
    own = is_internal_module(module) or is_standard_module(module)
    return own or module.__name__.startswith("scipy.")


@lru_cache(4096)
def _names_in(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of attributes and globals that a function and its inner functions use."""
    inner = [_names_in(part) for part in code.co_consts if isinstance(part, types.CodeType)]
    parts = [code_names(code)[:2], *inner]
    return frozenset().union(*(a for a, _ in parts)), frozenset().union(*(g for _, g in parts))


def _owners(arrays: list[Any]) -> list[Any]:
    """Return one writable array for each memory: the whole of it, if that is an array."""
    owners: dict[int, Any] = {}
    for array in arrays:
        whole = storage_of(array)
        usable = type(whole) is ndarray and whole.dtype.kind in "biufc" and whole.flags.writeable
        if usable:
            owners.setdefault(id(whole), whole)
        elif getattr(array.flags, "writeable", False):  # not on a device
            owners[id(array)] = array
    return list(owners.values())


def _is_same(now: Any, before: Any) -> bool:
    """Whether two contents consist of the same objects, equal numbers and the like."""
    if now is before:
        return True
    if type(now) is not type(before):
        return False
    if isinstance(now, dict):
        return list(now) == list(before) and all(map(_is_same, now.values(), before.values()))
    if isinstance(now, set):
        return bool(now == before)
    if isinstance(now, list | tuple):
        return len(now) == len(before) and all(map(_is_same, now, before))
    if isinstance(now, ndarray):  # in the state of a generator
        return bool(now.dtype == before.dtype) and now.tobytes() == before.tobytes()
    return isinstance(now, PLAIN) and repr(now) == repr(before)


def _generator_access(generator: Any) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """Return the functions that read and set the state of a generator."""
    read = partial(generator_state, generator)
    bits = getattr(generator, "bit_generator", generator)
    if hasattr(bits, "state"):
        return read, lambda old: setattr(bits, "state", old)
    return read, getattr(generator, "set_state", None) or generator.setstate


def _hooks(node: Node) -> list[Any] | None:
    """Return the hooks of a node, as contents of dicts."""
    kept = node.hooks
    if kept is None:
        return None
    several = {index: dict(hooks) for index, hooks in kept.tensor.items()}
    return [kept, several, *(dict(hooks) for hooks in _kinds(kept))]


def _kinds(hooks: Hooks) -> list[dict[int, Any]]:
    return [hooks.pre, hooks.post, hooks.post_accumulate, hooks.retained]


def _set_hooks(node: Node, old: list[Any] | None) -> None:
    """Put hooks back, in the dicts to which their handles refer."""
    if old is None:
        node.hooks = None
        return
    kept, several, *others = old
    for index, hooks in kept.tensor.items():
        _refill(hooks, several.get(index, {}))
    for each, content in zip(_kinds(kept), others, strict=True):
        _refill(each, content)


def _refill(container: Any, content: Any) -> None:
    container.clear()
    (container.update if isinstance(container, dict | set) else container.extend)(content)


def _attribute(owner: Any, name: str) -> list[Any]:
    """Return a list of the attribute, empty if it is not set."""
    try:
        return [getattr(owner, name)]
    except (AttributeError, ValueError):  # ValueError: an empty cell
        return []


def _set_attribute(owner: Any, name: str, content: list[Any]) -> None:
    change = type if isinstance(owner, type) else object
    if content:
        change.__setattr__(owner, name, content[0])
    else:
        change.__delattr__(owner, name)


def _item(space: dict[str, Any], key: str) -> list[Any]:
    """Return a list of the item, empty if there is none."""
    return [space[key]] if key in space else []


def _set_item(space: dict[str, Any], key: str, content: list[Any]) -> None:
    if content:
        space[key] = content[0]
    else:
        del space[key]
