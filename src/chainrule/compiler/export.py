"""`export`: write a function as a module that needs only NumPy."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.tensor import Tensor
from chainrule.compiler.api import uncompiled
from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.expression import array_literal, literal
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Value, every_op
from chainrule.compiler.passes import optimize
from chainrule.compiler.tracing.run import trace_call
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import overlapping
from chainrule.errors import CompileError

_MAX_INLINE_SIZE = 64
"""Largest number of elements of a parameter that is written in the text of the module."""


def export(
    function: Callable[..., Any], path: str | Path, *examples: Any, **named_examples: Any
) -> Path:
    """Write a module with a function that computes the same as `function`, with NumPy only.

    Parameters
    ----------
    function : callable
        Of tensors or arrays; compiled or not. To export a gradient, export a function that returns
        it: of arguments that require grad, `autograd_grad` gives it.
    path : str or Path
        The file of the module, such as ``model.py``. Parameters of more than 64 elements are
        written to an ``.npz`` file in the same folder.
    *examples, **named_examples
        Arguments to trace the function with. The exported function takes NumPy arrays of their
        shapes and dtypes, in the same containers; all other arguments are constants.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    CompileError
        If the function can't be traced, sets a `.grad`, draws random numbers, or calls a function
        that NumPy alone doesn't have.

    Notes
    -----
    Tensors that the function closes over become the parameters of the module, arrays in its
    `PARAMETERS`. If the function writes to them, the exported one does, too.

    Examples
    --------
    >>> import tempfile, runpy
    >>> import chainrule as cr
    >>> scale = cr.tensor([2.0, 3.0])
    >>> def model(x):
    ...     return (x * scale).sum()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = cr.export(model, f"{folder}/model.py", cr.ones(2))
    ...     float(runpy.run_path(str(file))["model"](np.array([1.0, 1.0], np.float32)))
    5.0
    """
    function = uncompiled(function)
    path = Path(path)
    module = _Module(function, examples, named_examples)
    arrays = module.large
    if arrays:
        beside = path.with_suffix(".npz")
        np.savez(beside, **arrays)
    path.write_text(module.text(path.with_suffix(".npz").name), encoding="utf-8")
    return path


class _Module:
    """An exported module."""

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        self.doc = inspect.getdoc(function) or ""
        self.arguments = _bind_arguments(function, args, kwargs)
        call = trace_call(function, args, kwargs)
        self.trace = call.trace
        self.paths = self._paths()
        self._check()
        self.outputs: list[Value] = []
        template = pytree.map_leaves(call.result, self._leaf)
        self.program = optimize(call.program(self.outputs))
        self.source = Source(self.program)
        self._check_numpy_only()
        self.returned = _result_source(template, self.source.results)
        self.parameters = self._parameters()
        self.large = {n: a for n, a in self.parameters.items() if a.size > _MAX_INLINE_SIZE}

    def _paths(self) -> dict[Value, str]:
        """Return the inputs that are arguments, with the source of the path to each."""
        found: dict[Value, str] = {}
        known = {id(a): v for a, _, v in self.trace.arrays}
        known |= {key: c.value for key, c in self.trace.captures.items()}
        for name, value in self.arguments.items():
            for path, leaf in pytree.leaves(value, name):
                if id(leaf) in known:
                    found.setdefault(known[id(leaf)], path)
        return found

    def _check(self) -> None:
        captures = list(self.trace.captures.values())
        if any(before is not after for before, after in (c.grads for c in captures)):
            raise CompileError(
                "export: the function sets a tensor's .grad, which a module of NumPy has no place "
                "for: return the gradients, from autograd_grad()"
            )
        if any(op.function == DRAW for op in every_op(self.trace.ops)):
            raise CompileError(
                "export: the function draws random numbers: pass them as an argument"
            )
        if overlapping(self.trace) is not None:
            raise CompileError("export: the function writes to memory that two tensors share")

    def _check_numpy_only(self) -> None:
        missing = {
            op.function for op in self.source.program.ops if op.function.startswith("kernels.")
        }
        missing |= {type(value).__name__ for value in self.source.objects.values()}
        if missing:
            raise CompileError(
                f"export: {', '.join(sorted(missing))} has no spelling in NumPy alone: compute it "
                "outside of what is exported"
            )

    def _leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, Symbol):
            value = leaf.value
        elif isinstance(leaf, Tensor):
            proxy = self.trace.proxy(leaf)
            value = SLOTS["_array"].__get__(proxy).value
        else:
            return _Leaf(literal(leaf).text)
        self.outputs.append(value)
        return _Leaf(len(self.outputs) - 1)

    def _parameters(self) -> dict[str, Any]:
        """Return the arrays that the function closes over, by name."""
        names = self.source.names
        arrays = {c.value: SLOTS["_array"].__get__(c.tensor) for c in self.trace.captures.values()}
        arrays |= {v: a for a, _, v in self.trace.arrays}
        arrays |= {v: self.source.program.constants[v] for v in self.source.constants}
        used = {v for op in self.source.program.ops for v in op.inputs} | {*self.program.results()}
        used |= {write.target for write in self.program.writes}
        return {names[v]: a for v, a in arrays.items() if v not in self.paths and v in used}

    def text(self, beside: str) -> str:
        """Return the source of the module; `beside` is the name of its ``.npz`` file."""
        name, source = self.program.name, self.source
        lines = list(self._parameter_lines(beside))
        for helper in runtime.__all__:
            if any(re.search(rf"\b{helper}\(", line) for line in source.body):
                lines += ["", _without_annotations(inspect.getsource(getattr(runtime, helper)))]
        lines += ["", f"def {name}({', '.join(self.arguments)}):"]
        lines += [f"    {line}".rstrip() for line in self._body_lines()]
        text = "\n".join(lines) + "\n"
        head = [f'"""{name}, exported by chainrule: it needs only NumPy."""', ""]
        head += ["from pathlib import Path", ""] if self.large else []
        head += ["import numpy as np", ""] if "np." in text else []
        return "\n".join(head) + "\n" + text

    def _parameter_lines(self, beside: str) -> Iterator[str]:
        if not self.parameters:
            return
        if self.large:
            yield f'PARAMETERS = dict(np.load(Path(__file__).with_name("{beside}")))'
        else:
            yield "PARAMETERS = {}"
        for name, array in self.parameters.items():
            if name not in self.large:
                yield f'PARAMETERS["{name}"] = {array_literal(array).text}'
        yield ""

    def _body_lines(self) -> Iterator[str]:
        source, names = self.source, self.source.names
        yield f'"""{self.doc or f"{self.program.name}, of NumPy arrays."}"""'.replace(
            "\n", "\n    "
        )
        yield from source.type_comments(list(self.paths))
        for value, path in self.paths.items():
            if names[value] != path:
                yield f"{names[value]} = {path}"
        for name in self.parameters:
            yield f'{name} = PARAMETERS["{name}"]'
        for value in (*source.buffers, *source.large):
            yield f"{names[value]} = np.empty({value.shape}, {literal(value.dtype).text})"
        yield from source.body
        yield f"return {self.returned}"


class _Leaf:
    """A leaf of the result: the index of an output, or the source of a constant."""

    def __init__(self, source: int | str) -> None:
        self.source = source


def _result_source(node: Any, results: list[str]) -> str:
    """Return the source that builds the containers of the result."""
    if isinstance(node, _Leaf):
        return node.source if isinstance(node.source, str) else results[node.source]
    if isinstance(node, dict):
        items = [f"{key!r}: {_result_source(part, results)}" for key, part in node.items()]
        return f"{{{', '.join(items)}}}"
    parts = [_result_source(part, results) for _, part in pytree.children(node) or ()]
    if isinstance(node, list):
        return f"[{', '.join(parts)}]"
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def _bind_arguments(function: Any, args: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by the names of the parameters."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except ValueError:  # a builtin function without signature
        return {f"x{i}": arg for i, arg in enumerate(args)} | kwargs
    found: dict[str, Any] = bound.arguments
    return found


def _without_annotations(source: str) -> str:
    """Return the source of a helper without annotations, whose names the module lacks."""
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    parameters = function.args
    for parameter in (*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs):
        parameter.annotation = None
    body = source.splitlines()[function.body[0].lineno - 1 :]
    return "\n".join([f"def {function.name}({ast.unparse(parameters)}):", *body]) + "\n"
