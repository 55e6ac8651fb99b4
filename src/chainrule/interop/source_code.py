"""Python code of other libraries, in which ``float(x)`` of what is differentiated is recorded.

``int(x)`` of it is a constant.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import resolve_name
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from chainrule.autograd.intercept import intercepted_by
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.interop.operands import is_tracked

__all__ = ["recording_code", "run_code"]


def recording_code(
    loader: SourceFileLoader, name: str, *, has_shortcuts: bool = False
) -> CodeType | None:
    """Return the code of a module that makes numbers by ``float(x)``; None if it doesn't.

    With `has_shortcuts`, what it leaves out where a number happens to be 1, or an array 0, is
    computed for those that are differentiated: they have a derivative there, too.
    """
    path = loader.get_filename(name)
    source = loader.get_data(path)
    changes: list[ast.NodeTransformer] = [_Numbers()] if _MAKES_NUMBERS.search(source) else []
    if has_shortcuts and _SHORTCUTS.search(source):
        changes.append(_Shortcuts())
    if not changes:
        return None
    tree = ast.parse(source, path)
    for change in changes:
        tree = change.visit(tree)
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def run_code(code: CodeType, module: ModuleType, find: Callable[[str, Sequence[str]], Any]) -> None:
    """Run a module's code, which imports what `find` returns.

    No transform sees it: a constant of a module may be made in a function under vmap that is the
    first to use the module, and outlives it. See `_recording_builtins` for `find`.
    """
    vars(module)["__builtins__"] = _recording_builtins(find)
    intercepted_by(None, exec, code, vars(module))


def _recording_builtins(find: Callable[[str, Sequence[str]], Any]) -> dict[str, Any]:
    """Return Python's own functions, for modules that import others than they name.

    `find` takes the absolute name of a module, and the names that are imported from it. It returns
    what the statement binds, the first package if there are no such names, or None for Python's
    own.
    """

    def import_(
        name: str,
        globals: Any = None,
        locals: Any = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        names = fromlist or ()
        absolute = resolve_name("." * level + name, globals["__package__"]) if level else name
        found = find(absolute, names)
        return builtins.__import__(name, globals, locals, names, level) if found is None else found

    own: dict[str, Any] = {
        **{_AS_NUMBER: _as_number, "isinstance": _is_instance},
        **{_DIFFERS: _differs, _ANY: _any},
    }
    return {**vars(builtins), **own, "__import__": import_}


_KINDS = r"(?:int|float|complex|double)(?:_|16|32|64|128)?|\w*dtype"
_MAKES_NUMBERS = re.compile(rf"\b(?:{_KINDS})\(|\.(?:item|tolist)\(\)".encode())


class _Numbers(ast.NodeTransformer):
    """Replaces ``float(x)`` by ``_AS_NUMBER(float, x)``; so ``np.float64(x)`` and ``x.item()``."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call."""
        self.generic_visit(node)
        kind, args = node.func, node.args
        name = kind.id if isinstance(kind, ast.Name) else getattr(kind, "attr", "")
        if node.keywords:
            return node
        if name in ("item", "tolist") and isinstance(kind, ast.Attribute) and not args:
            args, kind = [kind.value], ast.Constant(name)
        elif not re.fullmatch(_KINDS, name):
            return node
        named = ast.Name(_AS_NUMBER, ast.Load())
        return ast.copy_location(ast.Call(named, [kind, *args], []), node)


_SHORTCUTS = re.compile(rb"!= 1\b|\bany\(\w+\)")


class _Shortcuts(ast.NodeTransformer):
    """Replaces ``x != 1`` by ``_DIFFERS(x, 1)``, and ``np.any(x)`` by ``_ANY(np.any, x)``."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Replace a comparison."""
        self.generic_visit(node)
        (other, *_), (operator, *_) = node.comparators, node.ops
        is_one = isinstance(other, ast.Constant) and other.value == 1
        if not is_one or not isinstance(operator, ast.NotEq) or len(node.ops) > 1:
            return node
        args = [node.left, other]
        return ast.copy_location(ast.Call(ast.Name(_DIFFERS, ast.Load()), args, []), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call."""
        self.generic_visit(node)
        kind, args = node.func, node.args
        if getattr(kind, "attr", "") != "any" or len(args) != 1 or node.keywords:
            return node
        return ast.copy_location(ast.Call(ast.Name(_ANY, ast.Load()), [kind, *args], []), node)


_DIFFERS, _ANY = "_chainrule_differs", "_chainrule_any"


def _differs(x: Any, number: Any) -> Any:
    """Return whether a number is another, as one that is differentiated is in general."""
    return (isinstance(x, Tensor) and not x.ndim and is_tracked(x)) or x != number


def _any(function: Callable[..., Any], x: Any) -> Any:
    """Return whether an array has other elements than 0, as one that is differentiated has."""
    return (isinstance(x, Tensor) and is_tracked(x)) or function(x)


_AS_NUMBER = "_chainrule_as_number"


def _as_number(kind: Any, *args: Any) -> Any:
    """Return a number; an array without dimensions for one that is differentiated or unknown.

    `kind` is a class or the name of a method. NumPy's classes convert whole arrays, too.
    """
    x = args[0] if len(args) == 1 else None
    if isinstance(x, Tensor) and (is_tracked(x) or not is_known(x._array)):
        if kind is int:  # the derivative is 0
            return int(x.detach())
        if isinstance(kind, type) and issubclass(kind, np.inexact):
            return x.astype(kind)
        if kind == "tolist":
            return _as_list(x)
        if x.numel() == 1 and kind in ("item", float, complex):
            return x.reshape(()).astype(kind) if kind is complex else x.reshape(())
    return getattr(args[0], kind)() if isinstance(kind, str) else kind(*args)


def _as_list(x: Any) -> Any:
    return [_as_list(part) for part in x] if x.ndim else x


def _is_instance(x: Any, kinds: Any) -> bool:
    """Tell whether an object is of a class: as NumPy's numbers, where it is in their place."""
    if isinstance(x, kinds):
        return True
    is_number = isinstance(x, Tensor) and not x.ndim and (is_tracked(x) or not is_known(x._array))
    return is_number and isinstance(x.dtype.type(0), kinds)
