"""Text of an exported module: its parameters, helpers, the checks on entry, and the function."""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import keyword
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.backend import ndarray
from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.expression import array_literal, literal
from chainrule.compiler.export import entry_checks
from chainrule.compiler.export.body import COMMENT, MODULE_NAMES, PARAMETERS, Body, Symbolic
from chainrule.compiler.export.kernel_source import kernel_source
from chainrule.compiler.export.results import field_source, key_source
from chainrule.compiler.ir.program import Names
from chainrule.errors import CompileError

MAX_INLINE_SIZE = 64
"""Largest number of elements of a parameter that is written in the text of the module."""

_HELPERS = (*runtime.__all__, *entry_checks.__all__)


class Module:
    """The text of a module, for one body and the sizes that are symbolic in it."""

    def __init__(
        self,
        body: Body,
        symbolic: Symbolic | None,
        name: str,
        doc: str,
        needs_order: bool = False,
        needs_kind: bool = False,
    ) -> None:
        self.body, self.symbolic = body, symbolic
        self.needs_order, self.needs_kind = needs_order, needs_kind
        self.constants = {} if symbolic is None else symbolic.parameters
        self.parameters = {n: a for n, a in body.parameters.items() if n not in self.constants}
        self.large = {n: a for n, a in self.parameters.items() if not _is_inline(a)}
        self.name = name if _is_name(name) else "function"
        self.doc = doc
        self.renamed: dict[str, str] = {}  # names of the text, and the user's in their place
        taken = Names({*MODULE_NAMES, *body.names_in_use, *body.result.class_names})
        self.signature, self.arguments = self._signature(taken)
        self.function = self._placeholder(self.name, taken, [*body.result.class_names])
        self.entry = _Entry(self)

    def _placeholder(self, name: str, taken: Names, others: Any = ()) -> str:
        """Return the name under which the text has a name of the user's: it, if it is free."""
        if name not in MODULE_NAMES and name not in others:
            return name
        text = taken.another(f"{name}_")
        self.renamed[text] = name
        return text

    def _signature(self, taken: Names) -> tuple[str, list[tuple[str, str, Any]]]:
        """Return the parameters as source, and the name, its placeholder and value of each."""
        parts: list[str] = []
        arguments = []
        given, signature = self.body.arguments, self.body.signature
        kinds = inspect.Parameter
        parameters = [] if signature is None else list(signature.parameters.values())
        known = {p.name: p.kind for p in parameters}
        omitted = star = False
        for name in [*known, *(n for n in given if n not in known)]:
            kind = known.get(name, kinds.POSITIONAL_OR_KEYWORD)
            if name not in given or not _is_shown(given[name]):
                omitted = True
                continue
            text = self._placeholder(name, taken)
            arguments.append((name, text, given[name]))
            keyword_only = kind is kinds.KEYWORD_ONLY or (
                omitted and kind is kinds.POSITIONAL_OR_KEYWORD
            )
            if keyword_only and not star:
                parts.append("*")
            star = star or keyword_only or kind is kinds.VAR_POSITIONAL
            prefix = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(kind, "")
            parts.append(prefix + text)
            if kind is kinds.POSITIONAL_ONLY:
                following = [known.get(n) for n in [*known][[*known].index(name) + 1 :]]
                if kinds.POSITIONAL_ONLY not in following:
                    parts.append("/")
        return ", ".join(parts), arguments

    def text(self, beside: str | None) -> str:
        """Return the text; `beside` names the ``.npz`` file, None if parameters are given."""
        lines = [] if beside is None else list(self._parameter_lines(beside))
        body = self._function_lines()
        for helper in _HELPERS:
            if any(re.search(rf"\b{helper}\(", line) for line in body):
                module: Any = runtime if helper in runtime.__all__ else entry_checks
                source = _without_annotations(inspect.getsource(getattr(module, helper)))
                lines += ["", source]
        if self.body.kernels:
            lines += ["", kernel_source(self.body.kernels)]
        for definition in self.body.result.definitions:
            lines += ["", definition, ""]
        lines += ["", *body]
        text = "\n".join(lines) + "\n"
        title = f"{self.name}, exported by chainrule: it needs only NumPy."
        head = [_docstring(title), ""]
        imports = list(self.body.result.imports)
        imports += ["from pathlib import Path"] if self.large and beside is not None else []
        head += [*imports, ""] if imports else []
        head += ["import numpy as np", ""] if "np." in text else []
        return self._with_users_names("\n".join(head) + "\n" + text)

    def _function_lines(self) -> list[str]:
        inner = [_docstring(self.doc or f"{self.name}, of NumPy arrays.", "    ")]
        inner += self.entry.lines
        inner += [f"{name} = {text}" for name, text in self.constants.items()]
        if self.symbolic is None:
            inner += self.body.text(self.constants).split("\n")
        else:
            inner += self.symbolic.text.split("\n")
        lines = [f"def {self.function}({self.signature}):"]
        return lines + [f"    {_aligned(line)}".rstrip() for line in inner]

    def _parameter_lines(self, beside: str) -> Iterator[str]:
        if not self.parameters:
            return
        if self.large:
            yield f"{PARAMETERS} = dict(np.load(Path(__file__).with_name({beside!r})))"
        else:
            yield f"{PARAMETERS} = {{}}"
        for name, array in self.parameters.items():
            if name not in self.large:
                yield f"{PARAMETERS}[{name!r}] = {_wrapped(array_literal(array).text)}"
        yield ""

    # --- the user's names ---

    def _with_users_names(self, text: str) -> str:
        """Return the text with the user's names in place of placeholders.

        A name of the text that is the user's, too, gets another one. This is done in the syntax
        tree, which has no comments.
        """
        if not self.renamed and self.function not in vars(builtins):
            return text
        tree = ast.parse(text)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if self.function in vars(builtins) and self.function in used:
            self.renamed.setdefault(self.function, self.function)
        if not self.renamed:
            return text
        return _renamed(tree, text, self.renamed, used | set(self.renamed.values()))


def _renamed(tree: ast.Module, text: str, renamed: dict[str, str], used: set[str]) -> str:
    """Return a module with other names; what had such a name before is moved out of the way."""
    fresh = Names(used | set(re.findall(r"\w+", text)))
    changes = {user: fresh.another(f"{user}_") for user in renamed.values()}
    aliases = [name for name in changes if name in vars(builtins)]
    placeholders = {p: user for p, user in renamed.items() if p != user}
    own = {user for p, user in renamed.items() if p == user}  # a function with a builtin's name
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = placeholders.get(node.id) or changes.get(node.id, node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name not in own:
            node.name = placeholders.get(node.name) or changes.get(node.name, node.name)
        elif isinstance(node, ast.arg):
            node.arg = placeholders.get(node.arg, node.arg)
        elif isinstance(node, ast.alias) and (node.asname or node.name) in changes:
            node.asname = changes[node.asname or node.name]
    lines = [f"{changes[name]} = {name}" for name in aliases]
    tree.body[1:1] = ast.parse("\n".join(lines)).body
    return ast.unparse(tree) + "\n"


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)


def _is_shown(value: Any) -> bool:
    """Whether an argument is one of the exported function: an array, container or literal."""
    if isinstance(value, Tensor | ndarray | list | tuple | dict):
        return True
    return hasattr(type(value), "__dataclass_fields__") or _literal(value) is not None


def _literal(value: Any) -> str | None:
    try:
        return literal(value).text
    except TypeError:
        return None


# --- checks on entry ------------------------------------------------------------------------------


class _Entry:
    """The statements that check the arguments, and find arrays and sizes in them."""

    def __init__(self, module: Module) -> None:
        self.module, self.body = module, module.body
        self.arrays: list[tuple[str, str, Any]] = []  # label, source and array
        self.lines: list[str] = []
        for name, text, value in module.arguments:
            self._add(name, text, value)
        self._add_arrays()
        for name, path in self._inputs():
            if name != path:
                self.lines.append(f"{name} = {path}")

    def _add(self, label: str, text: str, value: Any) -> None:
        """Add the checks of an argument, or of a part of it."""
        if isinstance(value, Tensor | ndarray):
            self.arrays.append((label, text, value))
        elif isinstance(value, dict):
            keys = [key_source(key, f"the argument {label}") for key in value]
            end = ", ordered=True" if self.module.needs_order and len(keys) > 1 else ""
            self.lines.append(f"check_keys({label!r}, {text}, [{', '.join(keys)}]{end})")
            for key, part in zip(keys, value.values(), strict=True):
                self._add(f"{label}[{key}]", f"{text}[{key}]", part)
        elif isinstance(value, list | tuple):
            self.lines.append(self._length_check(label, text, value))
            for i, part in enumerate(value):
                self._add(f"{label}[{i}]", f"{text}[{i}]", part)
        elif hasattr(type(value), "__dataclass_fields__"):
            for field in value.__dataclass_fields__:
                step = field_source(field, f"the argument {label}")
                self._add(f"{label}.{step}", f"{text}.{step}", getattr(value, field))
        else:
            shown = _literal(value)
            if shown is None:
                raise CompileError(
                    f"export: {label} is a {type(value).__name__} within an argument, which a "
                    "module of NumPy can't check: pass it as an argument of its own, or let the "
                    "function find it by name"
                )
            self.lines.append(f"check_value({label!r}, {text}, {shown})")

    def _length_check(self, label: str, text: str, value: Any) -> str:
        fields = getattr(type(value), "_fields", None)
        if fields is not None:
            return f"check_length({label!r}, {text}, {len(value)}, fields={fields!r})"
        kind = f", {type(value).__name__}" if self.module.needs_kind else ""
        return f"check_length({label!r}, {text}, {len(value)}{kind})"

    def _add_arrays(self) -> None:
        first: dict[int, tuple[str, str]] = {}
        rows, same = [], []
        order: dict[str, None] = {}
        for label, text, array in self.arrays:
            if id(array) in first:
                same.append(
                    f"check_same({label!r}, {text}, {first[id(array)][0]!r}, {first[id(array)][1]})"
                )
                continue
            first[id(array)] = label, text
            number = self.body.numbers[id(array)]
            names = {} if self.module.symbolic is None else self.module.symbolic.names
            shape = [names.get((number, axis)) or size for axis, size in enumerate(array.shape)]
            order |= dict.fromkeys(part for part in shape if isinstance(part, str))
            sizes = f"({', '.join(map(repr, shape))}{',' * (len(shape) == 1)})"
            rows.append(f"({label!r}, {text}, {array.dtype.name!r}, {sizes})")
        if not rows:
            return
        least = {} if self.module.symbolic is None else self.module.symbolic.least
        options = {name: low for name, low in least.items() if low > 0}
        ends = [f"least={options!r}"] if options else []
        ends += ["c_order=True"] if self.body.trace.order_matters else []
        sizes = f"({next(iter(order))},)" if len(order) == 1 else ", ".join(order)
        target = f"{sizes} = " if order else ""
        call = f"{target}check_arrays({', '.join([*rows, *ends])})"
        if len(call) > 90:
            call = "\n        ".join([f"{target}check_arrays(", *(f"{r}," for r in [*rows, *ends])])
            call += "\n    )"
        self.lines += [call, *same]
        if self.body.writes and len(first) > 1:
            listed = ", ".join([f"({label!r}, {text})" for label, text in first.values()])
            self.lines.append(f"check_apart({listed})")

    def _inputs(self) -> Iterator[tuple[str, str]]:
        """Yield the names of the program's inputs that are arguments, and the paths to these."""
        seen = set()
        for _, text, array in self.arrays:
            value = self.body.inputs.get(id(array))
            if value is not None and value not in seen:
                seen.add(value)
                yield self.body.source.names[value], text


# --- text -----------------------------------------------------------------------------------------


def _docstring(text: str, indent: str = "") -> str:
    """Return the literal of a docstring: in three quotes if nothing in it is special."""
    text = text.encode("utf-8", "backslashreplace").decode()  # Python 3.13 takes no lone surrogate
    lines = text.split("\n")
    special = "\\" in text or '"""' in text or text.endswith('"')
    if special or not all(line.isprintable() for line in lines):
        return repr(text)
    following = [f"\n{indent}{line}" if line else "\n" for line in lines[1:]]
    return f'"""{lines[0]}{"".join(following)}"""'


def _aligned(line: str) -> str:
    """Return a line with its comment in the column where comments begin."""
    match = COMMENT.search(line)
    if match is None:
        return line
    comment, code = match.group(1), line[: match.start()]
    statement = code.lstrip()
    indent = code[: len(code) - len(statement)]
    comment = re.sub(r"(?<=[\[ ])\(([^()]*)\)(?=[,\]])", r"\1", comment)
    return f"{indent}{statement:<52}  {comment}"


def _is_inline(array: Any) -> bool:
    return bool(array.size <= MAX_INLINE_SIZE)


def _wrapped(literal: str) -> str:
    """Return the literal of an array in lines of the usual width."""
    lines = textwrap.wrap(literal, 80, break_long_words=False, break_on_hyphens=False)
    return "\n    ".join(lines)


def _without_annotations(source: str) -> str:
    """Return the source of a helper without annotations, whose names the module lacks."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    parameters = function.args
    stars = [p for p in (parameters.vararg, parameters.kwarg) if p is not None]
    for parameter in (
        *itertools.chain(parameters.posonlyargs, parameters.args, parameters.kwonlyargs),
        *stars,
    ):
        parameter.annotation = None
    body = source.splitlines()[function.body[0].lineno - 1 :]
    return "\n".join([f"def {function.name}({ast.unparse(parameters)}):", *body]) + "\n"


# --- running the text -----------------------------------------------------------------------------


def evaluate(body: Body, symbolic: Symbolic | None, call: tuple[Any, Any]) -> Any:
    """Return the results of an exported function, and the parameters after the call."""
    module = Module(body, symbolic, "function", "")
    scope: dict[str, Any] = {
        "__name__": "exported",
        PARAMETERS: {name: np.array(a) for name, a in module.parameters.items()},
    }
    exec(compile(module.text(None), "<exported>", "exec"), scope)
    args, kwargs = call
    if body.signature is not None:
        bound = body.signature.bind(*args, **kwargs)
        shown = {name for name, *_ in module.arguments}
        omitted = [name for name in bound.arguments if name not in shown]
        if omitted:  # what follows is keyword-only then
            args, kwargs = (), {n: v for n, v in bound.arguments.items() if n in shown}
    result = scope["function"](*args, **kwargs)
    return result, [scope[PARAMETERS][name] for name in body.captured if name in module.parameters]
