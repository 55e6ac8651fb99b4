"""Evidence in the source: the lines that assigned a variable, and what cuts a history there.

Nothing is recorded for this. The functions that are running have their variables and their source.
"""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

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

    kind: str  # a key of `MENDS`, such as "no_grad" or "detach"
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
    arguments = _arguments(user_frame(sys._getframe(1)))
    return ast.unparse(arguments[0]) if arguments and _is_variable(arguments[0]) else ""


def _is_variable(expression: ast.expr) -> bool:
    """Tell whether an expression is a name with attributes and indices."""
    parts = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Load)
    return all(isinstance(node, parts) for node in ast.walk(expression))


def _arguments(frame: FrameType | None) -> list[ast.expr]:
    """Return the arguments of the call that a function of the user's is in."""
    call = _call(frame)
    return [] if call is None else call.args


def _object(frame: FrameType) -> list[ast.expr]:
    """Return the object of the method call that a function of the user's is in."""
    call = _call(frame)
    return [call.func.value] if call is not None and isinstance(call.func, ast.Attribute) else []


def _call(frame: FrameType | None) -> ast.Call | None:
    """Return the call that a function of the user's is in, with its line."""
    text = "" if frame is None else expression_at(frame.f_code, frame.f_lasti)
    try:
        tree = ast.parse(text.strip())
    except SyntaxError:
        return None
    value = getattr(tree.body[0], "value", None) if tree.body else None
    if frame is None or not isinstance(value, ast.Call):
        return None
    ast.increment_lineno(value, frame.f_lineno - 1)
    return value


def cut_of(tensor: Tensor, *, inside: bool = False) -> Cut | None:
    """Return where the history of a variable's tensor ends, as the source has it.

    With `inside`, the tensor has a history, and where some other one ended on the way to it.
    """
    for frame in frames():
        names = {name for name, value in [*frame.f_locals.items()] if value is tensor}
        if names:
            return _cut_of_names(frame, names, set(), inside)
    for frame in frames()[:1]:  # it is no variable, but an argument of the call, or its object
        for given in [*_arguments(frame), *_object(frame)]:
            if not _is_variable(given):
                return _cut_of_statement(frame, ast.Expr(given), [], set(), inside)
    return None


def cut_with(name: str) -> Cut | None:
    """Return the last assignment of a value without a history that was computed of a variable."""
    for frame in frames():
        code, tree = frame.f_code, _parsed(frame.f_code, frame.f_globals)
        if name not in frame.f_locals or tree is None:
            continue
        for statement, _ in reversed(_assignments(tree, code, None, frame.f_lineno)):
            for part in ast.walk(statement):
                kind = _kind(part) or _new_leaf(part)
                if kind is not None and name in _names(part):
                    return Cut(kind, ast.unparse(part), _location(code, part), _names(statement))
    return None


def sources_of(tensor: Tensor) -> dict[str, Any]:
    """Return the variables that a variable's tensor without a history was computed of."""
    found: dict[str, Any] = {}
    for frame in frames():
        code, tree = frame.f_code, _parsed(frame.f_code, frame.f_globals)
        pending = [name for name, value in [*frame.f_locals.items()] if value is tensor]
        while pending and tree is not None:
            for statement, _ in _assignments(tree, code, {pending.pop()}, frame.f_lineno)[-1:]:
                for name in sorted(_names(getattr(statement, "value", statement)) - {*found}):
                    value = frame.f_locals.get(name, frame.f_globals.get(name))
                    found[name] = value
                    if isinstance(value, Tensor) and not value.requires_grad:
                        pending.append(name)
    return found


def is_recorded_gradient(tensor: Tensor) -> bool:
    """Tell whether a variable's tensor was assigned from a gradient with ``create_graph=True``."""
    for frame in frames():
        code, tree = frame.f_code, _parsed(frame.f_code, frame.f_globals)
        names = {name for name, value in [*frame.f_locals.items()] if value is tensor}
        found = _assignments(tree, code, names, frame.f_lineno) if tree and names else []
        for statement, _ in found[-1:]:
            return "create_graph=True" in ast.unparse(statement)
    return False


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
    tree = _parsed(frame.f_code, frame.f_globals)
    found = [] if tree is None else _assignments(tree, frame.f_code, names, frame.f_lineno)
    for statement, around in found[-1:]:
        return _cut_of_statement(frame, statement, around, seen | names, inside)
    return None


def _cut_of_statement(
    frame: FrameType, statement: ast.stmt, around: list[ast.AST], seen: set[str], inside: bool
) -> Cut | None:
    scope = {**frame.f_globals, **frame.f_locals}
    for name in seen:  # assigned here: what it was before is not known
        scope.pop(name, None)
    cut = _cut_in(frame.f_code, statement, around, scope)
    if cut is not None:
        return cut
    for called in _called(statement, frame):
        cut = _cut_in_function(called)
        if cut is not None:
            return cut
    cut = _cut_of_operands(frame, statement, seen, inside)
    return cut if cut is not None or inside else _comparison(frame.f_code, statement, scope)


def _cut_of_operands(
    frame: FrameType, statement: ast.stmt, seen: set[str], inside: bool
) -> Cut | None:
    for name in sorted(_names(getattr(statement, "value", None) or ast.Pass()) - seen):
        operand = frame.f_locals.get(name)
        if isinstance(operand, Tensor) and (inside or not operand.requires_grad):
            cut = _cut_of_names(frame, {name}, seen, inside)
            if cut is not None:
                return cut
    return None


def _assignments(
    tree: ast.Module, code: CodeType, names: set[str] | None, line: int
) -> list[tuple[ast.stmt, list[ast.AST]]]:
    """Return the assignments of variables up to a line, and the blocks and decorators around them.

    They are those of a function, or of a module; of all variables if none are given.
    """
    found: list[tuple[int, ast.stmt, list[ast.AST]]] = []

    def visit(node: ast.AST, around: list[ast.AST]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            if isinstance(child, ast.Assign | ast.AugAssign | ast.AnnAssign):
                targets = child.targets if isinstance(child, ast.Assign) else [child.target]
                if names is None or any(_names(target) & names for target in targets):
                    found.append((child.lineno, child, around))
            visit(child, [*around, child] if isinstance(child, ast.With) else around)

    for function in _body(code, tree):
        visit(function, _decorations(function))
    before = [entry for entry in found if entry[0] <= line] or found
    return [entry[1:] for entry in sorted(before, key=lambda entry: entry[0])]


def _decorations(function: ast.AST) -> list[ast.AST]:
    return list(getattr(function, "decorator_list", ()))


# --- what cuts a history --------------------------------------------------------------------------

_BLOCKS = ("no_grad", "inference_mode", "set_grad_enabled(False)")

_CALLS = {
    **dict.fromkeys(["detach", "stop_gradient"], "detach"),
    **dict.fromkeys(["item", "tolist", "numpy", "array", "asarray"], "number"),
    **dict.fromkeys(["tensor", "as_tensor", "from_numpy", "new_tensor", "Tensor"], "copy"),
    **dict.fromkeys(["argmax", "argmin", "argsort", "count_nonzero", "one_hot"], "integer"),
    **dict.fromkeys(["normal", "bernoulli", "multinomial", "poisson"], "draw"),
    **{"autograd_grad": "gradient", "sample": "sample", "state_dict": "state"},
}
"""What calls of these names do to a history, as functions and as methods."""

_BUILTINS = dict.fromkeys(["float", "int", "bool"], "number")
_ATTRIBUTES = {"data": "data", "grad": "gradient"}
_METHODS = dict.fromkeys(["long", "int", "bool"], "integer")
_LEAVES = ("tensor", "as_tensor", "Parameter", "Variable")

MENDS = {
    "no_grad": "Move what needs a gradient out of the block",
    "update": (
        "The parameter is rebound there to a new tensor: write to its own memory, as in w -= lr * "
        "w.grad or w.sub_(lr * w.grad), which keeps it a leaf"
    ),
    "detach": "Leave the call out where a gradient is to pass",
    "data": "Use the tensor itself in the place of its .data",
    "number": "A number or a NumPy array has no history: keep the tensor, without the conversion",
    "copy": (
        "It copies the numbers alone: cr.stack or x.clone() keeps the history, and requires_grad="
        "True makes a new leaf"
    ),
    "leaf": "It makes a new leaf of the numbers, where gradients end: use what is in it itself",
    "integer": "Integers have no derivative: use a soft version, such as softmax for argmax",
    "comparison": (
        "A comparison is true or false, without a derivative: use a smooth step, such as "
        "sigmoid(k * (x - y))"
    ),
    "draw": "A draw has no derivative: for a normal one, write mean + std * cr.randn(shape)",
    "sample": "A sample has no derivative: use rsample(), where the distribution has it",
    "state": "A state dict is detached: pass dict(module.named_parameters())",
    "gradient": (
        "A gradient has a history of its own only if the pass was recorded: backward(create_graph="
        "True), or autograd_grad(..., create_graph=True)"
    ),
    "constant": "Use an operation that has a derivative",
    "detached": "Leave the detach() or .data out where a gradient is to pass",
}
"""What to write instead, by the kind of a cut, or of what `explain` has remembered."""


def _cut_in(
    code: CodeType, node: ast.AST, around: list[ast.AST], scope: dict[str, Any]
) -> Cut | None:
    """Return what cuts a history in a statement, or in the blocks and decorators around it."""
    for block in reversed(around):
        items = [i.context_expr for i in block.items] if isinstance(block, ast.With) else [block]
        for item in items:
            text = ast.unparse(item)
            if any(name in text for name in _BLOCKS) and "no_grad(False" not in text:
                form = f"with {text}" if isinstance(block, ast.With) else f"@{text}"
                in_block = "update" if _is_update(node) else "no_grad"
                return Cut(in_block, form, _location(code, block), _names(node))
    for part in ast.walk(node):
        kind = _kind(part)
        if kind is not None and _has_source(part, scope):
            return Cut(kind, ast.unparse(part), _location(code, part), _names(node))
    return None


def _is_update(statement: ast.AST) -> bool:
    """Tell whether a statement computes the new value of a variable of its old one."""
    if not isinstance(statement, ast.Assign):
        return False
    names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return not _names(statement.value).isdisjoint(names)


def _comparison(code: CodeType, node: ast.AST, scope: dict[str, Any]) -> Cut | None:
    """Return a comparison in a statement of something that may have a history."""
    for part in ast.walk(node):
        if isinstance(part, ast.Compare) and _has_source(part, scope):
            return Cut("comparison", ast.unparse(part), _location(code, part), _names(node))
    return None


def _has_source(part: ast.AST, scope: dict[str, Any]) -> bool:
    """Tell whether something in an expression may have a history, as a literal has none."""
    return any(_may_track(scope[name]) if name in scope else True for name in _names(part))


def _may_track(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.requires_grad
    if isinstance(value, FunctionType):
        return not INTERNAL[value.__code__.co_filename]
    return not isinstance(value, ModuleType | type | str | int | None | np.ufunc)


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


def _new_leaf(part: ast.AST) -> str | None:
    """Return "leaf" for an expression that makes a leaf which requires grad."""
    function = part.func if isinstance(part, ast.Call) else None
    name = getattr(function, "attr", getattr(function, "id", ""))
    return "leaf" if name in _LEAVES else None


def _location(code: CodeType, node: ast.AST) -> Location:
    return Location(code.co_filename, getattr(node, "lineno", 0), code.co_name)


def _called(statement: ast.stmt, frame: FrameType) -> Iterator[FunctionType]:
    """Yield the user's functions that a statement calls, or passes to what calls them."""
    calls = [part for part in ast.walk(statement) if isinstance(part, ast.Call)]
    passed = [x for call in calls for x in call.args if isinstance(x, ast.Name)]
    for part in [*[call.func for call in calls], *passed]:
        names = ast.unparse(part).split(".")
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
            cut = _cut_in(code, ast.Pass(), [block], {})
            if cut is not None:
                return cut
        arguments = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        scope = {n: v for n, v in function.__globals__.items() if n not in arguments}
        cut = _cut_in(code, node, _decorations(node), scope)
        if cut is not None:
            return cut
    return None
