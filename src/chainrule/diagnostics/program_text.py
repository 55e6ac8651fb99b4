"""Evidence in the source: the lines that assigned a variable, and what cuts a history there.

Nothing is recorded for this. The functions that are running have their variables and their source.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, NamedTuple

from chainrule.autograd.location import (
    INTERNAL,
    Location,
    expression_at,
    user_frame,
    user_function,
)
from chainrule.autograd.tensor import Tensor


class Cut(NamedTuple):
    """A place in the source where a history ends."""

    kind: str  # "no_grad", "detach", "data", "number", "copy", "integer", "gradient"
    text: str  # the call or the block
    location: Location
    names: frozenset[str]  # the variables in the statement


def frames() -> list[FrameType]:
    """Return the running functions of the user, the innermost first."""
    found: list[FrameType] = []
    frame = user_frame(sys._getframe(1))
    while frame is not None and len(found) < 20:
        found.append(frame)
        frame = user_frame(frame.f_back)
    return found


def variables() -> Iterator[tuple[str, Any]]:
    """Yield names and values of the variables of the running functions."""
    for frame in frames():
        yield from [*frame.f_locals.items()]
        if frame.f_locals is not frame.f_globals:
            yield from [pair for pair in [*frame.f_globals.items()] if isinstance(pair[1], Tensor)]


def name_of(tensor: Any) -> str | None:
    """Return the name of a variable that holds a tensor, if there is one."""
    names = (name for name, value in variables() if value is tensor and name[:1] != "_")
    return next(names, None)


def argument() -> str:
    """Return the first argument of the user's call, if it is a name with attributes and indices."""
    frame = user_frame(sys._getframe(1))
    text = "" if frame is None else expression_at(frame.f_code, frame.f_lasti)
    call = _tree("", text.strip())
    statement = call.body[0] if call is not None and call.body else None
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.Call) or not value.args:
        return ""
    parts = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load)
    first = value.args[0]
    return ast.unparse(first) if all(isinstance(n, parts) for n in ast.walk(first)) else ""


def cut_of(tensor: Tensor, *, inside: bool = False) -> Cut | None:
    """Return where the history of a variable's tensor ends, as the source has it.

    With `inside`, the tensor has a history, and where some other one ended on the way to it.
    """
    for frame in frames():
        names = {name for name, value in [*frame.f_locals.items()] if value is tensor}
        if names:
            return _cut_of_names(frame, names, set(), inside)
    return None


# --- assignments ----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=32)
def _tree(filename: str, source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _parsed(code: CodeType, scope: dict[str, Any] | None) -> ast.Module | None:
    return _tree(code.co_filename, "".join(linecache.getlines(code.co_filename, scope)))


def _body(code: CodeType, tree: ast.Module) -> list[ast.AST]:
    """Return the syntax of a function, all nested nodes, or of a module."""
    if code.co_name == "<module>":
        return [tree]
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        and min([node.lineno, *[d.lineno for d in getattr(node, "decorator_list", ())]])
        == code.co_firstlineno
    ]


def _cut_of_names(frame: FrameType, names: set[str], seen: set[str], inside: bool) -> Cut | None:
    """Return the cut on the way to one of these variables of a running function."""
    code, tree = frame.f_code, _parsed(frame.f_code, frame.f_globals)
    if tree is None:
        return None
    for function in _body(code, tree):
        found = _assignment(function, names, frame.f_lineno)
        if found is None:
            continue
        statement, around = found
        cut = _cut_in(code, statement, [*_decorations(function), *around])
        if cut is not None:
            return cut
        for called in _called(statement, frame):
            cut = _cut_in_function(called)
            if cut is not None:
                return cut
        return _cut_of_operands(frame, statement, seen | names, inside)
    return None


def _cut_of_operands(
    frame: FrameType, statement: ast.stmt, seen: set[str], inside: bool
) -> Cut | None:
    value = getattr(statement, "value", None)
    used = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} if value else set()
    for name in sorted(used - seen):
        operand = frame.f_locals.get(name)
        if isinstance(operand, Tensor) and (inside or not operand.requires_grad):
            cut = _cut_of_names(frame, {name}, seen, inside)
            if cut is not None:
                return cut
    return None


def _assignment(
    function: ast.AST, names: set[str], line: int
) -> tuple[ast.stmt, list[ast.AST]] | None:
    """Return the last statement up to a line that assigns a variable, and the blocks around it."""
    found: list[tuple[int, ast.stmt, list[ast.AST]]] = []

    def visit(node: ast.AST, around: list[ast.AST]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if isinstance(child, ast.Assign | ast.AugAssign | ast.AnnAssign):
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                stored = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                if stored & names:
                    found.append((child.lineno, child, around))
            visit(child, [*around, child] if isinstance(child, ast.With) else around)

    visit(function, [])
    before = [entry for entry in found if entry[0] <= line] or found
    return max(before, key=lambda entry: entry[0])[1:] if before else None


def _decorations(function: ast.AST) -> list[ast.AST]:
    return list(getattr(function, "decorator_list", ()))


# --- what cuts a history --------------------------------------------------------------------------

_BLOCKS = ("no_grad", "inference_mode", "set_grad_enabled(False)")

_CALLS = {
    **dict.fromkeys(["detach", "stop_gradient"], "detach"),
    **dict.fromkeys(["item", "tolist", "numpy", "array", "asarray"], "number"),
    **dict.fromkeys(["tensor", "as_tensor", "from_numpy", "new_tensor", "Tensor"], "copy"),
    **dict.fromkeys(["argmax", "argmin", "argsort", "count_nonzero"], "integer"),
    "autograd_grad": "gradient",
}
"""What calls of these names do to a history, as functions and as methods."""

_BUILTINS = dict.fromkeys(["float", "int", "bool"], "number")
_ATTRIBUTES = {"data": "data", "grad": "gradient"}
_METHODS = dict.fromkeys(["long", "int", "bool"], "integer")


def _cut_in(code: CodeType, node: ast.AST, around: list[ast.AST]) -> Cut | None:
    """Return what cuts a history in a statement, or in the blocks and decorators around it."""
    for block in reversed(around):
        items = [i.context_expr for i in block.items] if isinstance(block, ast.With) else [block]
        for item in items:
            text = ast.unparse(item)
            if any(name in text for name in _BLOCKS) and "no_grad(False" not in text:
                form = f"with {text}" if isinstance(block, ast.With) else f"@{text}"
                return Cut("no_grad", form, _location(code, block), _names(node))
    for part in ast.walk(node):
        kind = _kind(part)
        if kind is not None:
            return Cut(kind, ast.unparse(part), _location(code, part), _names(node))
    return None


def _names(node: ast.AST) -> frozenset[str]:
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _kind(part: ast.AST) -> str | None:
    """Return what an expression does to a history; None if it keeps it, or may."""
    if isinstance(part, ast.Attribute):
        return _ATTRIBUTES.get(part.attr) if isinstance(part.ctx, ast.Load) else None
    if not isinstance(part, ast.Call):
        return None
    if any(
        k.arg in ("requires_grad", "create_graph") and ast.unparse(k.value) == "True"
        for k in part.keywords
    ):
        return None
    function = part.func
    if isinstance(function, ast.Name):
        return _CALLS.get(function.id) or _BUILTINS.get(function.id)
    name = getattr(function, "attr", "")
    return _CALLS.get(name) or _METHODS.get(name)


def _location(code: CodeType, node: ast.AST) -> Location:
    return Location(code.co_filename, getattr(node, "lineno", 0), code.co_name)


def _called(statement: ast.stmt, frame: FrameType) -> Iterator[FunctionType]:
    """Yield the user's functions that a statement calls."""
    for part in ast.walk(statement):
        if not isinstance(part, ast.Call):
            continue
        names = ast.unparse(part.func).split(".")
        value: Any = frame.f_locals.get(names[0], frame.f_globals.get(names[0]))
        for name in names[1:]:
            value = getattr(value, name, None)
        forward = getattr(type(value), "forward", None)
        function = user_function(value if forward is None else forward)
        if isinstance(function, MethodType):
            function = function.__func__
        if isinstance(function, FunctionType):
            yield function


def _cut_in_function(function: FunctionType) -> Cut | None:
    code = function.__code__
    if INTERNAL[code.co_filename]:
        return None
    tree = _parsed(code, function.__globals__)
    for node in [] if tree is None else _body(code, tree):
        for block in [n for n in ast.walk(node) if isinstance(n, ast.With)]:
            cut = _cut_in(code, ast.Pass(), [block])
            if cut is not None:
                return cut
        cut = _cut_in(code, node, _decorations(node))
        if cut is not None:
            return cut
    return None
