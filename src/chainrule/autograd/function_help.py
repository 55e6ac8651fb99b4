"""Help for users of custom functions: their docs, and hints about outputs and gradients."""

from __future__ import annotations

import ast
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.location import file_text, user_stack_level
from chainrule.autograd.tensor import Tensor


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
    function = _parsed(backward)
    if not isinstance(function, ast.FunctionDef):  # such as a lambda
        return set(names) if len(names) == 1 else None
    found: set[str] = set()
    for result in _returned(function.body):
        of_this = _of_result(result, names)
        if of_this is None:
            return None
        found |= of_this
    return found


def _parsed(function: Any) -> ast.stmt:
    """Return the parsed definition of a function; an empty statement if it has no source."""
    try:
        (found,) = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return ast.Pass()
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
    """Warn of outputs that have no gradient and should, where inputs require grad.

    They are arrays, containers of tensors, and a single output that is no tensor.
    """
    for index, output in enumerate(outputs):
        mend = _mend_of_output(output, len(outputs) == 1)
        if mend:
            warnings.warn(
                f"{name}: forward returned {type(output).__name__} as output {index}, to which no "
                f"gradient flows, though an input requires grad: return {mend}",
                UserWarning,
                stacklevel=user_stack_level(),
            )


def _mend_of_output(output: Any, single: bool) -> str:
    """Return what forward should return in the place of an output, "" if that is fine."""
    if isinstance(output, Tensor):
        return ""
    if isinstance(output, np.ndarray | np.floating | np.complexfloating):
        return "cr.tensor(...) of it" if output.dtype.kind in "fc" else ""
    if isinstance(output, Mapping | list | tuple):
        parts = [leaf for _, leaf in pytree.leaves(output)]
        return "its tensors as a tuple" if any(isinstance(p, Tensor) for p in parts) else ""
    if output is None and single:
        return "the result: is there a return statement?"
    return "the tensor, not its number" if isinstance(output, float) and single else ""


def warn_of_lost_gradients(function: Any) -> None:
    """Warn of a backward that returned None, if its source has no return statement."""
    rule = _parsed(function.backward_rule)
    if isinstance(rule, ast.FunctionDef) and not list(_returned(rule.body)):
        warnings.warn(
            f"{function.name}: backward returned None, so no gradient flows: it has no return "
            "statement. If that is meant, write return None",
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
