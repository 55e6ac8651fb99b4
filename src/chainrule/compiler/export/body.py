"""Body of an exported function: the optimised program of a trace as NumPy source."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.tensor import Tensor
from chainrule.backend import ndarray
from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.expression import literal
from chainrule.compiler.codegen.numpy_source import RESERVED_NAMES, Source
from chainrule.compiler.export import entry_checks, kernel_source
from chainrule.compiler.export.results import ResultSource
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.program import Value, every_op
from chainrule.compiler.passes import optimize
from chainrule.compiler.tracing.run import Traced
from chainrule.compiler.tracing.symbol import Symbol
from chainrule.compiler.tracing.trace import overlapping
from chainrule.errors import CompileError

COMMENT = re.compile(r" {2,}(# [a-z]\d+\[[^'\"\n]*)$", re.MULTILINE)
"""The comment of a statement, with the spaces before it, of which there are more or fewer."""

PARAMETERS = "PARAMETERS"
"""Name of the dict of a module's arrays."""


MODULE_NAMES = frozenset(
    [
        *RESERVED_NAMES,
        *runtime.__all__,
        *entry_checks.__all__,
        *(PARAMETERS, "Path", "namedtuple", "dataclass", "OrderedDict"),
    ]
)
"""Names that a module uses for other things than the user's."""

Dim = tuple[int, int]
"""A dimension of the arguments: the number of the array, and of its axis."""


IN_NUMPY = {"kernels.inverses": "np.linalg.inv"}
"""Kernels by what a module calls in their place, which raises where they return infinities."""


class Symbolic(NamedTuple):
    """A body for arguments of any sizes, as text with formulas of these."""

    body: Body
    names: dict[Dim, str]  # of the dimensions that may have other sizes
    least: dict[str, int]  # the least size of each name
    text: str
    parameters: dict[str, str]  # constants that depend on sizes: name and expression


class Body:
    """The statements of an exported function, and the arrays that they need."""

    def __init__(
        self, call: Traced, args: Any, kwargs: Any, signature: Any, any_size: bool = False
    ) -> None:
        self.call, self.trace = call, call.trace
        self.signature = signature
        self.arguments = bind_arguments(signature, args, kwargs)
        self.numbers = number_arrays(args, kwargs)
        self._check()
        outputs = [self._value(leaf) for _, leaf in pytree.leaves(call.result) if _is_array(leaf)]
        self.program = optimize(call.program(outputs))
        for op in every_op(self.program.ops):
            op.function = IN_NUMPY.get(op.function, op.function)
        self.inputs = {id(a): v for a, _, v in self.trace.arrays}
        self.inputs |= {key: c.value for key, c in self.trace.captures.items()}
        self.source = Source(self.program, self._parameter_names(), any_size)
        self._check_numpy_only()
        self.result = ResultSource(call.result, self.source.results, _is_array)
        self.parameters = self._parameters()

    def _parameter_names(self) -> dict[Value, str]:
        """Return the names of arguments, so that no other value gets one of them."""
        named = {Value((), np.intp): name for name in MODULE_NAMES}
        for name, leaf in self.arguments.items():
            if name not in MODULE_NAMES:
                named[self.inputs.get(id(leaf), Value((), np.intp))] = name
        return named

    def _value(self, leaf: Any) -> Value:
        if isinstance(leaf, Symbol):
            value: Value = leaf.value
        else:
            value = SLOTS["_array"].__get__(self.trace.proxy(leaf)).value
        return value

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
            raise CompileError(
                "export: the function writes to memory that two tensors share: clone() one of them "
                "first"
            )

    def _check_numpy_only(self) -> None:
        ops = list(every_op(self.source.program.ops))
        missing = kernel_source.missing(ops)
        missing |= {op.function for op in ops if op.function.startswith("scipy.")}
        missing |= {type(value).__name__ for value in self.source.objects.values()}
        if missing:
            raise CompileError(
                f"export: {', '.join(sorted(missing))} has no spelling in NumPy alone: compute it "
                "outside of what is exported"
            )

    def _parameters(self) -> dict[str, Any]:
        """Return the arrays that the function closes over, and its constants, by name."""
        names = self.source.names
        arrays = {c.value: SLOTS["_array"].__get__(c.tensor) for c in self.trace.captures.values()}
        arrays |= {v: a for a, _, v in self.trace.arrays}
        arrays |= {v: self.source.program.constants[v] for v in self.source.constants}
        used = {v for op in self.source.program.ops for v in op.inputs} | {*self.program.results()}
        used |= {write.target for write in self.program.writes}
        given = {self.inputs[key] for key in self.numbers if key in self.inputs}
        return {names[v]: a for v, a in arrays.items() if v not in given and v in used}

    @property
    def kernels(self) -> set[str]:
        """The names of the kernels that the statements call."""
        functions = [op.function for op in every_op(self.source.program.ops)]
        return {f.removeprefix("kernels.") for f in functions if f.startswith("kernels.")}

    @property
    def names_in_use(self) -> set[str]:
        """The names that the statements use."""
        return {*self.source.names.taken, *self.arguments}

    @property
    def captured(self) -> list[str]:
        """The names of the parameters that exist outside of the function."""
        names = self.source.names
        outside = [c.value for c in self.trace.captures.values()] + [
            v for *_, v in self.trace.arrays
        ]
        return [names[v] for v in outside if names.get(v) in self.parameters]

    @property
    def writes(self) -> bool:
        """Whether the function writes to its arguments or parameters."""
        return bool(self.call.writes)

    def text(self, without: Collection[str] = ()) -> str:
        """Return the statements, up to the return; `without` are parameters defined elsewhere."""
        return COMMENT.sub(r"  \1", "\n".join(self._lines(without)))

    def _lines(self, without: Collection[str]) -> Iterator[str]:
        source, names = self.source, self.source.names
        for name in self.parameters:
            if name not in without:
                yield f"{name} = {PARAMETERS}[{name!r}]"
        for value in (*source.buffers, *source.large):
            yield f"{names[value]} = np.empty({value.shape}, {literal(value.dtype).text})"
        for statement in source.body:  # a compound one is indented as in a function
            yield statement.replace("\n    ", "\n")
        yield f"return {self.result.text}"


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, Symbol | Tensor)


def number_arrays(args: Any, kwargs: Any) -> dict[int, int]:
    """Return the numbers of the arrays among arguments, by id."""
    found: dict[int, int] = {}
    for _, leaf in pytree.leaves((args, kwargs)):
        if isinstance(leaf, Tensor | ndarray):
            found.setdefault(id(leaf), len(found))
    return found


def signature_of(function: Any) -> inspect.Signature | None:
    """Return the signature of a function; None for a builtin one without it."""
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def bind_arguments(
    signature: inspect.Signature | None, args: Any, kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments by the names of the parameters."""
    if signature is None:
        return {f"x{i}": arg for i, arg in enumerate(args)} | kwargs
    return dict(signature.bind(*args, **kwargs).arguments)
