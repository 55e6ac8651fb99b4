"""Names of tensors, parameters and modules: those that the user gives, or the user's variables."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.location import expression_at
from chainrule.autograd.node import AccumulateGrad, Edge, Node, endpoint
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import is_uninitialized


class Naming:
    """Names of tensors by their place in the graph and by their array, and the known modules."""

    def __init__(self, names: Any = None, frame: FrameType | None = None) -> None:
        self.modules: dict[str, Module] = {}  # by path
        self._leaves: dict[Node, tuple[str, str | None]] = {}  # name, and path of the module
        self._nodes: dict[Node, str] = {}
        self._arrays: dict[int, tuple[str, Any]] = {}
        if names is not None:
            for name, value in _given(names):
                self._add(name, value)
        variables = {} if frame is None else {**frame.f_globals, **_locals_of(frame)}
        for name, value in variables.items():
            if isinstance(value, Module) and not name.startswith("_"):
                self._add("" if name == "self" else name, value)
        for name, value in variables.items():
            if isinstance(value, Tensor) and not name.startswith("_"):
                self._add(name, value)
            elif isinstance(value, np.ndarray) and not name.startswith("_"):
                self._arrays.setdefault(id(value), (name, value))

    def _add(self, name: str, value: Any) -> None:
        if isinstance(value, Module):
            dot = f"{name}." if name else ""
            for path, module in value.named_modules():
                self.modules.setdefault(f"{dot}{path}".rstrip("."), module)
            for path, parameter in value.named_parameters():
                owner = f"{dot}{path}".rpartition(".")[0]
                self._add_tensor(f"{dot}{path}", parameter, owner)
            for path, buffer in value.named_buffers():
                self._add_tensor(f"{dot}{path}", buffer, None)
        else:
            self._add_tensor(name, value, None)

    def _add_tensor(self, name: str, tensor: Tensor, owner: str | None) -> None:
        if is_uninitialized(tensor):
            return
        edge = tensor._edge
        self._arrays.setdefault(id(tensor._array), (name, tensor._array))
        if edge is None:
            return
        node = endpoint(edge)[0]
        if type(node) is AccumulateGrad:
            self._leaves.setdefault(node, (name, owner))
        else:
            self._nodes.setdefault(node, name)

    def rename(self, node: Node, outputs: Sequence[Edge]) -> None:
        """Give the name of a node to a single output that stands in its place."""
        if node in self._nodes and len(outputs) == 1 and outputs[0] is not None:
            self._nodes.setdefault(endpoint(outputs[0])[0], self._nodes[node])

    def of_leaf(self, node: AccumulateGrad) -> tuple[str, str | None]:
        """Return the name of a leaf, and the path of the module that it is a parameter of."""
        return self._leaves.get(node, ("", None))

    def of_node(self, node: Node) -> str:
        """Return the name of the variable with the result of a node."""
        return self._nodes.get(node, "")

    def of_array(self, array: Any) -> str:
        """Return the name of a tensor that has this array."""
        name, found = self._arrays.get(id(array), ("", None))
        return name if found is array else ""

    def of_tensor(self, tensor: Tensor) -> str:
        """Return the name of a tensor."""
        edge = tensor._edge
        if edge is None:
            return self.of_array(tensor._array)
        node = endpoint(edge)[0]
        return self._leaves.get(node, ("", None))[0] or self._nodes.get(node, "")

    def forward_codes(self) -> dict[int, list[str]]:
        """Return the paths of the modules by the id of the code of their forward.

        By the id, since the hash of a code takes as long as the code is.
        """
        found: dict[int, list[str]] = {}
        for path, module in self.modules.items():
            code = getattr(type(module).forward, "__code__", None)
            if code is not None:
                found.setdefault(id(code), []).append(path)
        return found


_OPERATORS: dict[str, type[ast.operator]] = {
    **{"add": ast.Add, "subtract": ast.Sub, "multiply": ast.Mult, "divide": ast.Div},
    **{"matmul": ast.MatMult, "power": ast.Pow},
}
"""Python's operators by the names of the primitives that they apply."""

_MAX_OPERAND = 24
"""Number of characters up to which the source of an operand is a name of it."""


def operands_in_source(code: CodeType, instruction: int, operation: str, count: int) -> list[str]:
    """Return the operands of an operation as the user wrote them, "" where they are computed."""
    try:
        (statement,) = ast.parse(expression_at(code, instruction).strip()).body
    except (SyntaxError, ValueError, RecursionError):
        return []
    match statement:
        case ast.Expr(ast.BinOp(left, operator, right)) | ast.AugAssign(left, operator, right):
            parts = [left, right] if isinstance(operator, _OPERATORS.get(operation, ())) else []
        case ast.Expr(ast.Call(ast.Attribute(owner, name), args)) if name == operation:
            parts = args if len(args) == count else [owner, *args]
        case ast.Expr(ast.Call(ast.Name(name), args)) if name == operation:
            parts = args
        case _:
            parts = []
    texts = [ast.unparse(part) if _is_variable(part) else "" for part in parts]
    return [text if len(text) <= _MAX_OPERAND else "" for text in texts] * (len(texts) == count)


def _is_variable(expression: ast.expr) -> bool:
    parts = (ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.expr_context)
    return all(isinstance(node, parts) for node in ast.walk(expression))


def _locals_of(frame: FrameType) -> dict[str, Any]:
    """Return the local variables of a frame, which does not go on holding their values."""
    snapshot = frame.f_locals
    found = dict(snapshot)
    if (
        isinstance(snapshot, dict)  # before Python 3.13, the frame keeps it, and all that is in it
        and frame.f_code.co_flags & inspect.CO_OPTIMIZED
        and sys.getrefcount(snapshot) <= _KEPT_BY_FRAME  # else it is the user's `locals()`
    ):
        snapshot.clear()
    return found


_KEPT_BY_FRAME = 3
"""References to the local variables of a frame, as `getrefcount` counts them in `_locals_of`."""


def _given(names: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names that the user gave: a module, or a dict, list … of tensors and modules."""
    if isinstance(names, Module):
        yield "", names
        return
    if not isinstance(names, Mapping):
        raise ArgumentError(
            f"names: expected a dict of tensors and modules by name, or a module, got "
            f"{type(names).__name__}: write names={{'w': w}}"
        )
    for name, value in names.items():
        for path, leaf in [("", value)] if isinstance(value, Module) else pytree.leaves(value):
            if not isinstance(leaf, Tensor | Module):
                raise ArgumentError(
                    f"names: {name}{path} is {type(leaf).__name__}, expected a Tensor or a Module"
                )
            yield f"{name}{path}", leaf
