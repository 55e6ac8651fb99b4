"""Source of literals and containers: what an exported function compares with, and returns."""

from __future__ import annotations

import keyword
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from chainrule import pytree
from chainrule.compiler.codegen.expression import literal
from chainrule.compiler.ir.program import Names
from chainrule.errors import CompileError

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def key_source(key: Any, where: str) -> str:
    """Return the literal of a dict key; raise CompileError if it has none."""
    if type(key) is tuple:
        parts = [key_source(part, where) for part in key]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    if type(key) not in _PLAIN:
        raise CompileError(
            f"export: {where} has a key of type {type(key).__name__}, which a module of NumPy "
            "can't spell: use strings or numbers as keys, such as the name of an enum's member"
        )
    return literal(key).text


def field_source(name: str, where: str) -> str:
    """Return the name of a field, if it is one in Python."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise CompileError(f"export: {where} has a field {name!r}, which is no name in Python")
    return name


class ResultSource:
    """The source that builds the containers of a result, and of the classes that they need."""

    def __init__(self, result: Any, arrays: list[str], is_array: Callable[[Any], bool]) -> None:
        self._arrays = iter(arrays)
        self._is_array = is_array
        self._classes: dict[type, str] = {}
        self._names = Names()
        self.imports: list[str] = []
        self.definitions: list[str] = []
        self.text = self._source(result)

    def _source(self, node: Any) -> str:
        if self._is_array(node):
            return next(self._arrays)
        kind = type(node)
        parts = pytree.children(node)
        if parts is None:
            try:
                return literal(node).text
            except TypeError:
                raise CompileError(
                    f"export: the function returns an object of type {kind.__name__}, which a "
                    "module of NumPy can't make: return arrays, numbers and strings, in dicts, "
                    "lists, tuples, named tuples and dataclasses"
                ) from None
        shown = [self._source(part) for _, part in parts]
        if kind in (dict, OrderedDict):
            keys = [key_source(key, "the result") for key in node]
            text = f"{{{', '.join(f'{k}: {p}' for k, p in zip(keys, shown, strict=True))}}}"
            return (
                text if kind is dict else f"{self._imported('OrderedDict', 'collections')}({text})"
            )
        if kind is list:
            return f"[{', '.join(shown)}]"
        if kind is tuple:
            return f"({', '.join(shown)}{',' * (len(shown) == 1)})"
        if isinstance(node, list | tuple | dict) and not hasattr(kind, "_fields"):
            raise CompileError(
                f"export: the function returns a {kind.__name__}, whose behaviour a module of "
                "NumPy doesn't know: return a dict, list or tuple"
            )
        return f"{self._class(kind, [path for path, _ in parts])}({', '.join(shown)})"

    def _class(self, kind: Any, paths: list[str]) -> str:
        """Return the name of a class of the module that has the fields of a class."""
        if kind not in self._classes:
            where = f"the result's {kind.__name__}"
            stem = str(kind.__name__)
            stem = stem if stem.isidentifier() and not keyword.iskeyword(stem) else "Result"
            name = self._classes[kind] = self._names.another(stem)
            if hasattr(kind, "_fields"):
                fields = [field_source(f, where) for f in kind._fields]
                maker = self._imported("namedtuple", "collections")
                self.definitions.append(f"{name} = {maker}({name!r}, {fields!r})")
            else:
                fields = [field_source(path[1:], where) for path in paths]
                maker = self._imported("dataclass", "dataclasses")
                lines = [f"    {field}: object" for field in fields] or ["    pass"]
                self.definitions.append("\n".join([f"@{maker}", f"class {name}:", *lines]))
        return self._classes[kind]

    def _imported(self, name: str, module: str) -> str:
        line = f"from {module} import {name}"
        if line not in self.imports:
            self.imports.append(line)
        return name

    @property
    def class_names(self) -> Iterator[str]:
        """The names that the definitions define."""
        yield from self._classes.values()
