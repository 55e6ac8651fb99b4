"""Traces of calls: a node for each operation on what depends on the argument."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor
from chainrule.compiler.ir.program import Op, Value
from chainrule.compiler.recorded_graph import evaluate
from chainrule.compiler.tracing.run import Traced, trace_call
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.errors import MissingRuleError

__all__ = ["Node", "trace"]


class Node:
    """Base class of the nodes that `trace` makes."""

    def __init__(
        self,
        value: Any,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        parent_argnums: Sequence[int],
        parents: Sequence[Any],
    ) -> None:
        # A class of nodes must define it, but one without may stand for the argument, as in HIPS
        # autograd: so it is no abstract method, which would forbid to make the first node.
        raise MissingRuleError(
            f"{type(self).__name__} has no __init__ for an operation: define "
            "__init__(self, value, fun, args, kwargs, parent_argnums, parents)"
        )

    def initialize_root(self, *args: Any, **kwargs: Any) -> None:
        """Set the attributes of the node of the argument."""

    @classmethod
    def new_root(cls, *args: Any, **kwargs: Any) -> Any:
        """Return the node of the argument of a traced function."""
        root = cls.__new__(cls)
        root.initialize_root(*args, **kwargs)
        return root


def trace(start_node: Any, fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return the value of a function of one array, and the node of its last operation.

    Parameters
    ----------
    start_node : Node
        The node of the argument. For each operation on what depends on it, its class is called as
        ``Node(value, fun, args, kwargs, parent_argnums, parents)``, in order of execution.
    fun : callable
        A function of one array or number that returns one. It may be a derivative.
    x : array or number
        Its argument.

    Returns
    -------
    (value, node)
        The node is None if the value doesn't depend on `x`.

    Notes
    -----
    The function runs once, in the compiler's trace, whose operations are then evaluated: they are
    those that `chainrule.compile` starts from.
    """
    argument = np.array(x)
    call = trace_call(fun, (argument,), {})
    array = call.result._array if isinstance(call.result, Tensor) else call.result
    arrays = _inputs(call)
    nodes = {value: start_node for value, given in arrays.items() if given is argument}
    for op in call.program([]).ops:
        evaluate([op], arrays)
        made = _node(type(start_node), op, arrays, nodes)
        if made is not None:
            nodes.update(dict.fromkeys(op.outs, made))
    if not isinstance(array, Symbol):
        warnings.warn("Output seems independent of input.", stacklevel=user_stack_level())
        return call.result, None
    return arrays[array.value][()], nodes.get(array.value)


def _inputs(call: Traced) -> dict[Value, Any]:
    """Return the arrays of the inputs and constants of a trace."""
    given = {value: array for array, _, value in call.trace.arrays}
    return call.trace.constants | given | {c.value: c.tensor._array for c in call.captures}


def _node(kind: Any, op: Op, arrays: dict[Value, Any], nodes: dict[Value, Any]) -> Any:
    """Return the node of an operation; None if it doesn't depend on the argument."""
    argnums = [i for i, arg in enumerate(op.args) if isinstance(arg, Value) and arg in nodes]
    if not argnums:
        return None
    parents = [nodes[op.args[i]] for i in argnums]
    values = [arrays[arg][()] if isinstance(arg, Value) else arg for arg in op.args]
    results = [arrays[value][()] for value in op.outs]
    value = results[0] if len(results) == 1 else tuple(results)
    return kind(value, _Named(op.function), values, op.kwargs, argnums, parents)


class _Named:
    """An operation by its name."""

    def __init__(self, name: str) -> None:
        self.__name__ = name.rpartition(".")[2]
