"""Write the stubs: the public names of chainrule and the methods that operations give `Tensor`.

    python3 tools/stubs.py            write the stubs
    python3 tools/stubs.py --check    only say whether they are current

Three things are known only when chainrule has been imported: names that are imported when they are
first asked for, methods that `chainrule.operation` attaches to `Tensor`, and the functions of the
array API that are chainrule's own. Editors and type checkers read them in these files, whose
signatures are those of the functions themselves.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import json
import re
import sys
import textwrap
import typing
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import chainrule as cr
from chainrule import operation

SOURCES = Path(cr.__file__).parent
WIDTH = 100
WRITTEN_BY = "Written by `python3 tools/stubs.py`: change the functions, not this file."

# (module, name), or (module, "") for a module itself
Origin = tuple[str, str]


def stubs() -> dict[Path, str]:
    """Return the text of each stub by its path."""
    return {
        SOURCES / "__init__.pyi": package(),
        SOURCES / "array_api_names.pyi": array_api_names(),
        SOURCES / "autograd" / "tensor_methods.pyi": tensor_methods(),
    }


# --- names of the package -------------------------------------------------------------------------


def package() -> str:
    """Return the stub of `chainrule` itself: every public name, from where it is defined."""
    imports, constants = Imports(), []
    lazy = vars(cr)["_LATER"]
    modules = {
        alias.name
        for statement in _tree("chainrule").body
        if isinstance(statement, ast.ImportFrom) and statement.module == "chainrule"
        for alias in statement.names
    }
    for name in sorted({*vars(cr)["__all__"], *lazy, *modules}):
        value = getattr(cr, name)
        if isinstance(value, ModuleType):
            imports.add(("chainrule", name), name)
        elif isinstance(value, np.dtype):
            constants.append(f"{name}: np.dtype[np.{value.name}]")
        elif value is tuple:
            constants.append(f"{name} = builtins.tuple[builtins.int, ...]")
        elif value is None or isinstance(value, float):
            constants.append(f"{name}: {'None' if value is None else 'builtins.float'}")
        elif isinstance(value, type) and value.__module__ == "numpy":
            imports.add(("numpy", value.__name__), name)
        else:
            module, own = origin(lazy.get(name, "chainrule"), name)
            imports.add((module, own), own, exported=own == name)
            if own != name:  # a stub exports `a as a`, but not `a as b`
                constants.append(f"{name} = {own}")
    imports.add(("builtins", ""), "")
    imports.add(("numpy", ""), "np")
    summary = f'"""The public names of chainrule.\n\n{WRITTEN_BY}\n"""'
    return "\n".join([summary, "", *imports.lines(), "", "__version__: str", *constants, ""])


def array_api_names() -> str:
    """Return the stub of the array API's functions and dtypes that are chainrule's own."""
    from chainrule import array_api

    imports, constants = Imports(), []
    for name, function in operation.ARRAY_API.items():
        if getattr(array_api, name) is function:
            imports.add(origin(function.__module__, name), name)
    for name, dtype in array_api._DTYPES.items():
        if name == "bool":  # array_api itself means Python's in its annotations
            continue
        constants.append(f"{name}: np.dtype[np.{dtype.name}]")
    imports.add(("numpy", ""), "np")
    summary = (
        '"""Functions and dtypes of the array API that are the same in `chainrule`.\n\n'
        f'{WRITTEN_BY}\n"""'
    )
    return "\n".join([summary, "", *imports.lines(), "", *constants, ""])


# --- methods of Tensor ----------------------------------------------------------------------------

METHODS_HEAD = f'''\
"""Methods, operators and properties that `chainrule.operation` gives `Tensor`.

{WRITTEN_BY}
"""
'''


UNARY = {"__abs__", "__invert__", "__neg__", "__pos__"}
BINARY = {
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul"),
    *("lshift", "rshift", "and", "or", "xor", "eq", "ne", "lt", "le", "gt", "ge"),
}


def tensor_methods() -> str:
    """Return the stub of the base class that `Tensor` has for type checkers alone."""
    in_class = {
        member.name
        for statement in _tree("chainrule.autograd.tensor").body
        if isinstance(statement, ast.ClassDef) and statement.name == "Tensor"
        for member in statement.body
        if isinstance(member, ast.FunctionDef)
    }
    attached = {
        name: value
        for name, value in vars(cr.Tensor).items()
        if name not in in_class and (callable(value) or isinstance(value, property))
    }
    sections: dict[str, list[str]] = {}
    writer = SignatureWriter(shadowed=frozenset(attached))
    for name, value in attached.items():
        module, lines = _member(name, value, writer)
        sections.setdefault(module, []).extend(lines)
    lines = [
        METHODS_HEAD,
        *writer.imports.lines(),
        "",
        "class TensorMethods:",
        "    __slots__ = ()",
    ]
    for module in sorted(sections):
        lines += [f"    # --- {module} ---", *sections[module]]
    return "\n".join([*lines, ""])


def _member(name: str, value: Any, writer: SignatureWriter) -> tuple[str, list[str]]:
    """Return the module that defines a method or property, and its lines in the stub."""
    if isinstance(value, property):
        return _property(name, value, writer)
    function, documented = _definition(value)
    module = function.__module__
    if name in UNARY or (name.startswith("__") and _forward(name) in BINARY):
        return "operators", [writer.operator(name)]
    lines: list[str] = []
    overloads = typing.get_overloads(function)
    for version in overloads or [function]:
        lines += ["    @overload"] if overloads else []
        lines += writer.method(name, version, _summary(documented))
    if overloads:
        writer.imports.add(("typing", "overload"), "overload")
    return module, lines


def _forward(name: str) -> str:
    """Return the operator's name without the prefix of its reflected or in-place form."""
    own = name.removeprefix("__").removesuffix("__")
    return own if own in BINARY or own[:1] not in ("i", "r") else own[1:]


def _definition(method: Any) -> tuple[Any, Any]:
    """Return the functions with a method's signature and with its docstring."""
    for (function, _), form in operation._IN_PLACE.items():
        if form is method:
            return function, method
    if method.__qualname__.startswith(operation._lazy_method.__name__):
        found = inspect.getclosurevars(method).nonlocals
        method = getattr(import_module(found["module"]), found["name"])
        method = getattr(method, "without_out", method)
    return method, method


def _property(name: str, value: property, writer: SignatureWriter) -> tuple[str, list[str]]:
    get: Any = value.fget
    kind = inspect.signature(get).return_annotation
    if kind is inspect.Signature.empty:  # a lambda
        kind = type(get(cr.zeros(1, 1))).__name__
    result = writer.annotation(kind, get.__module__)
    lines = [
        "    @property",
        f"    def {name}(self) -> {result}:",
        f'        """{value.__doc__}"""',
    ]
    if value.fset is not None:
        operand = writer.annotation("Operand", "chainrule.arguments")
        lines += [
            f"    @{name}.setter",
            f"    def {name}(self, value: {operand}) -> None: ...",
        ]
    return get.__module__, lines


def _summary(function: Any) -> str:
    """Return the first sentence of a docstring on one line."""
    paragraph = (inspect.getdoc(function) or "").split("\n\n")[0]
    return " ".join(paragraph.split())


# --- signatures -----------------------------------------------------------------------------------


class SignatureWriter:
    """Writes signatures as their source does, and collects the imports that these need."""

    def __init__(self, shadowed: frozenset[str]) -> None:
        self.imports = Imports()
        self.shadowed = shadowed

    def method(self, name: str, function: Any, summary: str) -> Iterator[str]:
        """Yield the lines of a method, whose first parameter is the tensor."""
        signature = inspect.signature(function)
        module = function.__module__
        tensor, *others = signature.parameters.values()
        if name.endswith("_"):  # a form in place, of which the first argument is the output
            others = [parameter for parameter in others if parameter.name != "out"]
        kinds = [tensor.kind, *(parameter.kind for parameter in others)]
        texts = ["self", *(self._parameter(parameter, module) for parameter in others)]
        if tensor.KEYWORD_ONLY in kinds and tensor.VAR_POSITIONAL not in kinds:
            texts.insert(kinds.index(tensor.KEYWORD_ONLY), "*")
        if positional := kinds.count(tensor.POSITIONAL_ONLY):
            texts.insert(positional, "/")
        result = self.annotation(signature.return_annotation, module)
        yield from _definition_lines(name, texts, result, summary)

    def operator(self, name: str) -> str:
        """Return the line of an operator, whose function takes anything and refuses it itself."""
        result = self.annotation("Tensor", "chainrule.arguments")
        if name in UNARY:
            return f"    def {name}(self) -> {result}: ..."
        if name in ("__eq__", "__ne__"):
            return f"    def {name}(self, other: object) -> {result}: ...  # type: ignore[override]"
        operand = self.annotation("Operand", "chainrule.arguments")
        result = f"tuple[{result}, {result}]" if "divmod" in name else result
        return f"    def {name}(self, other: {operand}) -> {result}: ..."

    def annotation(self, text: str, module: str) -> str:
        """Return an annotation of a function in `module`, with imports for the names in it."""
        tree = ast.parse(text, mode="eval")
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                if (where := origin(module, node.id))[0] != "builtins":
                    if node.id in self.shadowed:
                        raise ValueError(f"{module}: {text} names what is a method in the stub")
                    self.imports.add(where, node.id)
                elif node.id in self.shadowed:
                    self.imports.add(("builtins", ""), "")
                    node.id = f"builtins.{node.id}"
        return _in_double_quotes(ast.unparse(tree))

    def _parameter(self, parameter: inspect.Parameter, module: str) -> str:
        text = str(parameter.replace(annotation=parameter.empty, default=parameter.empty))
        text += f": {self.annotation(parameter.annotation, module)}"
        if parameter.default is parameter.empty:
            return text
        return f"{text} = {_default(parameter.default)}"


def _default(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    plain = value is None or type(value) in (bool, int) or (type(value) is float and value % 1 >= 0)
    return repr(value) if plain else "..."


def _definition_lines(name: str, parameters: list[str], result: str, summary: str) -> Iterator[str]:
    """Yield a definition, in as many lines as the formatter would give it."""
    line = f"    def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) <= WIDTH:
        yield line
    else:
        yield f"    def {name}("
        joined = f"        {', '.join(parameters)}"
        yield from [joined] if len(joined) <= WIDTH else [f"        {p}," for p in parameters]
        yield f"    ) -> {result}:"
    text = f'"""{summary}"""'
    raw = "r" if "\\" in text else ""
    yield from textwrap.wrap(raw + text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)


def _in_double_quotes(text: str) -> str:
    return re.sub(r"'([^'\"]*)'", r'"\1"', text)


# --- imports --------------------------------------------------------------------------------------


class Imports:
    """Import statements, each for one name, in the order of the formatter."""

    def __init__(self) -> None:
        self._origins: dict[str, Origin] = {}
        self._private: set[str] = set()

    def add(self, where: Origin, name: str, exported: bool = True) -> None:
        """Import what is defined somewhere under a name; exported ones as PEP 484 marks them."""
        key = name or where[0]
        if self._origins.setdefault(key, where) != where:
            raise ValueError(f"{key} is both {self._origins[key]} and {where}")
        if not exported:
            self._private.add(key)

    def lines(self) -> list[str]:
        """Return the import statements, by section."""
        sections: list[list[tuple[Any, str]]] = [[], [], []]
        for name, (module, attribute) in self._origins.items():
            if attribute:
                private = name in self._private
                imported = attribute if private else f"{attribute} as {name}"
                text = f"from {module} import {imported}"
                if len(text) > WIDTH:  # as the formatter writes it
                    text = f"from {module} import (\n    {imported},\n)"
            else:
                text = f"import {module}" if name == module else f"import {module} as {name}"
            root = module.split(".")[0]
            section = 0 if root in sys.stdlib_module_names else 1 + (root == "chainrule")
            kind = 0 if attribute.isupper() else 1 if attribute[:1].isupper() else 2
            key = (bool(attribute), module, kind, _natural(attribute), attribute, name)
            sections[section].append((key, text))
        texts = ["\n".join(text for _, text in sorted(part)) for part in sections if part]
        return "\n\n".join(texts).split("\n")


def _natural(name: str) -> list[Any]:
    parts = re.split(r"(\d+)", name.lower())
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


@cache
def origin(module: str, name: str) -> Origin:
    """Return where a name of a module is defined, following the imports in the sources."""
    if module.split(".")[0] != "chainrule":
        return module, name
    for statement in _statements(module):
        match statement:
            case ast.Import(names=aliases):
                for alias in aliases:
                    if (alias.asname or alias.name) == name:
                        return alias.name, ""
            case ast.ImportFrom(module=str(source), names=aliases):
                for alias in aliases:
                    if alias.name == "*" and name in sys.modules[source].__all__:
                        return origin(source, name)
                    if (alias.asname or alias.name) == name:
                        return origin(source, alias.name)
            case ast.FunctionDef() | ast.ClassDef() if statement.name == name:
                return module, name
            case ast.Assign(targets=targets, value=value) if name in _names(*targets):
                if module == "chainrule" and isinstance(value, ast.Name):  # another public name
                    return origin(module, value.id)
                return module, name
            case ast.AnnAssign(target=target) if name in _names(target):
                return module, name
    if f"{module}.{name}" in sys.modules:
        return module, name
    if hasattr(builtins, name):
        return "builtins", name
    raise LookupError(f"{name} is not defined at the top level of {module}")


def _names(*targets: ast.expr) -> set[str]:
    nodes = (node for target in targets for node in ast.walk(target))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _statements(module: str) -> Iterator[ast.stmt]:
    """Yield the statements at the top level of a module, those under `if` included."""
    waiting = list(_tree(module).body)
    while waiting:
        statement = waiting.pop(0)
        yield statement
        if isinstance(statement, ast.If):
            waiting[:0] = statement.body + statement.orelse


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(import_module(module)))


def main(options: list[str]) -> int:
    """Write the stubs, or say which are out of date."""
    texts = stubs()
    stale = [
        path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text
    ]
    if "--check" in options:
        for path in stale:
            print(f"{path} is out of date: run `python3 tools/stubs.py`")
        return 1 if stale else 0
    for path in stale:
        path.write_text(texts[path], encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
