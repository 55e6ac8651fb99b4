"""Modules and other objects in files, by the name of their class and their attributes.

No code is in a file. Without trust, `load` makes modules of classes that the program has imported;
with trust it also imports classes and functions by the names in the file, and makes objects.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

from chainrule.errors import FormatError
from chainrule.pytree import Stateful

SAFE_GLOBALS: list[Any] = []
"""Classes and functions that the program trusts, whatever file names them."""

_OWN_FUNCTIONS = ("chainrule.nn.functional.", "chainrule.ops.")
"""Modules of functions of arrays, which are activations of saved modules."""


class Parts(NamedTuple):
    """The parts of which an object is made again."""

    type: type
    args: tuple[Any, ...]
    state: Any
    items: list[Any]
    pairs: list[Any]


def is_function(x: Any) -> bool:
    """Return whether a file can name an object: a function or a class."""
    return isinstance(x, (FunctionType, BuiltinFunctionType, type))


def name_of(x: Any) -> list[str] | None:
    """Return the module and the name by which a function or class is found, None if it isn't."""
    module, name = getattr(x, "__module__", None) or "", getattr(x, "__qualname__", "")
    return [module, name] if _found(module, name, sys.modules.get) is x else None


_NEW_OBJECT = object().__reduce_ex__(2)[0]
"""The function that makes an object of a class without calling `__init__`: `copyreg.__newobj__`."""


def parts_of(x: Any) -> Parts | None:
    """Return the parts of an object of a class in Python, None if a file cannot contain it.

    Modules are such objects; optimizers and generators have a state that is saved instead.
    """
    if hasattr(x, "get_state") or (hasattr(x, "state_dict") and not isinstance(x, Stateful)):
        return None
    if not hasattr(x, "__dict__") or is_function(x) or name_of(type(x)) is None:
        return None
    try:
        reduced = x.__reduce_ex__(2)
    except TypeError:
        return None
    if isinstance(reduced, str) or reduced[0] is not _NEW_OBJECT:
        return None
    (kind, *args), state, items, pairs = (*reduced[1:], None, None, None)[:4]
    return Parts(kind, tuple(args), state, list(items or ()), list(pairs or ()))


def _found(module: str, name: str, modules: Callable[[str], Any]) -> Any:
    found = modules(module)
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)  # no code runs, of `__getattr__` neither
    return found


def find(module: str, name: str, trusted: bool) -> Any:
    """Return a function or class by its name; without trust only if it is known to be harmless."""
    if not isinstance(module, str) or not isinstance(name, str):
        raise ValueError("a name must be a string")
    for each in SAFE_GLOBALS:
        if name_of(each) == [module, name]:
            return each
    found = _found(module, name, _imported if trusted else sys.modules.get)
    if name_of(found) == [module, name]:
        is_module = isinstance(found, type) and issubclass(found, Stateful)
        is_own = isinstance(found, FunctionType) and f"{module}.".startswith(_OWN_FUNCTIONS)
        if trusted or is_module or is_own:
            return found
        raise FormatError(
            f"cr.load: the file names {module}.{name}, which is no nn.Module: if you trust the "
            "file, say cr.load(f, weights_only=False), or list it with "
            f"cr.serialization.add_safe_globals([{name}])"
        )
    raise FormatError(
        f"cr.load: the file needs {module}.{name}, which this program has not imported: import "
        "or define it"
        + ("" if trusted else ", or say cr.load(f, weights_only=False) if you trust the file")
    )


def _imported(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        return None


def empty(kind: Any, args: list[Any], trusted: bool) -> Any:
    """Return a new object of a class, without its attributes; `__init__` isn't called."""
    if not isinstance(kind, type) or (args and not trusted and kind not in SAFE_GLOBALS):
        raise ValueError("only classes have objects")
    made: Any = kind.__new__(kind, *args)
    return made


def fill(made: Any, state: Any, items: list[Any], pairs: list[Any]) -> None:
    """Give an object its attributes, and a list or dict its items."""
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif state is not None:
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        made.__dict__.update(attributes or {})
        for name, value in (slots or {}).items():
            setattr(made, name, value)
    if items:
        made.extend(items)
    for key, value in pairs:
        made[key] = value
