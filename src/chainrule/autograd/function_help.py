"""Help for users of custom functions: their docs, and hints about outputs and gradients."""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.location import file_text, user_stack_level


def help_text(
    doc: str | None, names: Sequence[str], backward: Any, jvp: Callable[..., Any] | None, title: str
) -> str:
    """Return the help of a custom function with arguments of these names."""
    if backward is None:
        lines = [f"None: it has no backward, which @{title}.backward gives it"]
    else:
        where = _line_of(backward)
        with_gradient = _names_with_gradient(names, backward)
        if with_gradient is None:
            lines = [f"{', '.join(names)} : those that backward returns{where}"]
        else:
            none = [name for name in names if name not in with_gradient]
            has = [name for name in names if name in with_gradient]
            lines = [f"{', '.join(has) or 'none'} : by backward{where}"]
            lines += [f"{', '.join(none)} : no gradient"] if none else []
    lines.append(
        "forward mode : no jvp rule" if jvp is None else f"forward mode : by jvp{_line_of(jvp)}"
    )
    parts = [inspect.cleandoc(doc)] if doc else []
    return "\n\n".join([*parts, "\n".join(["Gradients", "---------", *lines])])


def _line_of(rule: Any) -> str:
    code = getattr(inspect.unwrap(rule), "__code__", None)
    return "" if code is None else f", {file_text(code.co_filename)}:{code.co_firstlineno}"


def _names_with_gradient(names: Sequence[str], backward: Any) -> set[str] | None:
    """Return the arguments for which the source of backward returns gradients, None if unknown."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(backward)))
        (function,) = ast.parse(source).body
    except (OSError, TypeError, ValueError, SyntaxError):
        function = ast.Pass()
    if not isinstance(function, ast.FunctionDef):  # such as a lambda
        return set(names) if len(names) == 1 else None
    found: set[str] = set()
    for result in _returned(function.body):
        of_this = _of_result(result, names)
        if of_this is None:
            return None
        found |= of_this
    return found


def _of_result(result: ast.expr | None, names: Sequence[str]) -> set[str] | None:
    """Return the arguments that a returned expression has gradients for, None if unknown."""
    if result is None or _is_none(result):
        return set()
    if isinstance(result, ast.Dict):
        given = zip(result.keys, result.values, strict=True)
        keys = [(getattr(key, "value", None), value) for key, value in given]
    elif isinstance(result, ast.Call) and getattr(result.func, "id", "") == "dict":
        keys = [(each.arg, each.value) for each in result.keywords]
    elif isinstance(result, ast.Tuple) and len(result.elts) == len(names):
        keys = list(zip(names, result.elts, strict=True))
    elif len(names) == 1 and not isinstance(result, ast.Name | ast.Tuple):
        return set(names)
    else:
        return None
    known = all([key in names for key, _ in keys])
    return {str(key) for key, value in keys if not _is_none(value)} if known else None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _returned(body: Sequence[ast.stmt]) -> Iterator[ast.expr | None]:
    """Yield what the return statements of a function return, without those of inner functions."""
    for statement in body:
        if isinstance(statement, ast.Return):
            yield statement.value
        elif not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                for each in getattr(statement, field, ()):
                    yield from _returned([each] if isinstance(each, ast.stmt) else each.body)


# --- hints ----------------------------------------------------------------------------------------


def warn_of_lost_outputs(name: str, outputs: Sequence[Any]) -> None:
    """Warn of an output that is an array, or nothing, where inputs require grad."""
    for index, output in enumerate(outputs):
        is_array = isinstance(output, np.ndarray | np.floating | np.complexfloating)
        if (is_array and output.dtype.kind in "fc") or (output is None and len(outputs) == 1):
            kind = type(output).__name__
            mend = "cr.tensor(...) of it" if is_array else "the result: is there a return statement"
            warnings.warn(
                f"{name}: forward returned {kind} as output {index}, to which no gradient "
                f"flows, though an input requires grad: return {mend}{'' if is_array else '?'}",
                UserWarning,
                stacklevel=user_stack_level(),
            )


def packed_text(name: str, rule: Any, count: int | None, outputs: int) -> str:
    """Return what a backward with fewer parameters than outputs gets, "" for all others."""
    if rule is None or count is None or count >= outputs:
        return ""
    names = list(inspect.signature(rule).parameters)
    *before, last = names[: count + 1]
    each = [f"{last}{i}" for i in range(outputs - count + 1)]
    return (
        f". {name} has {outputs} outputs, and {last!r} is a tuple of the gradients of the last "
        f"{len(each)}: write backward({', '.join(before + each)})"
    )
