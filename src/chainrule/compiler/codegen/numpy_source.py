"""Readable NumPy source of programs."""

from __future__ import annotations

import keyword
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.expression import (
    Expression,
    array_literal,
    attribute,
    binary,
    call,
    item,
    literal,
    method,
    negative,
)
from chainrule.compiler.codegen.loop_source import region_source
from chainrule.compiler.ir.op_traits import returns_1_tuple
from chainrule.compiler.ir.program import Names, Op, Program, Value
from chainrule.compiler.passes.buffer_planning import Plan, plan_buffers
from chainrule.compiler.passes.numpy_lowering import lower_to_numpy
from chainrule.compiler.passes.regions import in_regions
from chainrule.compiler.passes.tiling import tile_elementwise

_OPERATORS = {
    "np.add": "+",
    "np.subtract": "-",
    "np.multiply": "*",
    "np.divide": "/",
    "np.power": "**",
    "np.pow": "**",
    "np.matmul": "@",
    "np.equal": "==",
    "np.not_equal": "!=",
    "np.less": "<",
    "np.less_equal": "<=",
    "np.greater": ">",
    "np.greater_equal": ">=",
    "np.bitwise_and": "&",
    "np.bitwise_or": "|",
    "np.bitwise_xor": "^",
}

_METHODS = frozenset(
    [
        *("np.sum", "np.max", "np.min", "np.mean", "np.prod", "np.any", "np.all", "np.argmax"),
    ]
)
RESERVED_NAMES = (
    "np",
    "scipy",
    "kernels",
    "native",
    "slice",
    "complex",
    "range",
    "reversed",
    "map",
)
"""Names that the source uses for other things than values, beside helpers and keywords."""

_AUGMENTED = {"np.add": "+=", "np.subtract": "-=", "np.multiply": "*=", "np.divide": "/="}


_NO_NAMES: Mapping[Value, str] = MappingProxyType({})


class Source:
    """The source of a program as a function, and the objects that calling it needs.

    The arguments of the function are the inputs of the program, `constants`, and memory: scratch
    for `buffers`, then arrays for the outputs in `large`. `named` are names of values that are
    given. With `any_size`, nothing depends on thresholds of sizes.
    """

    def __init__(
        self, program: Program, named: Mapping[Value, str] = _NO_NAMES, any_size: bool = False
    ) -> None:
        if not any_size:
            program = tile_elementwise(in_regions(lower_to_numpy)(program))
        self.program = program
        self.plan: Plan = plan_buffers(program, any_size)
        self.names = Names({*RESERVED_NAMES, *runtime.__all__, *keyword.kwlist, *named.values()})
        self.names.update(named)
        self.constants = [v for v, a in program.constants.items() if a.size > _MAX_LITERAL_SIZE]
        self.inline: dict[Value, Expression] = {}  # the expressions of views that are used once
        self.objects: dict[str, Any] = {}  # settings that have no literal, by name
        self.made = {v: op for op in program.ops for v in op.outs}
        self.uses = self.uses_in(program)
        for value in program.inputs:
            _ = self.names[value]
        self.body = _grouped(self.statements(self.program))
        self.results = list(map(self.show, program.outputs))
        self.body += [*self._copies(), *self._writes()]

    @property
    def buffers(self) -> list[Value]:
        """Scratch memory that a call needs, as values of its types."""
        return self.plan.buffers

    @property
    def large(self) -> list[Value]:
        """Outputs that are written into memory which the caller passes."""
        return self.plan.results

    @cached_property
    def text(self) -> str:
        """The source of the function.

        Its assertions say for which types it is right, where the text is pasted. They don't run in
        a compiled function, which has checked its signature.
        """
        names = self.names
        groups = [
            ("", self.program.inputs),
            ("constants: ", self.constants),
            ("scratch: ", self.buffers),
            ("results: ", self.large),
        ]
        arguments = ", ".join(names[v] for _, values in groups for v in values)
        lines = [f"def {self.program.name}({arguments}):"]
        if len(lines[0]) > _WIDTH:
            lines = [f"def {self.program.name}("]
            lines += [f"    {line}" for line in textwrap.wrap(arguments, _WIDTH - 10)]
            lines[-1] += "):"
        for kind, values in groups:
            lines += self.type_comments(values, kind)
        given = [v for _, values in groups for v in values]
        lines += _assertions([names[v] for v in given], given)
        lines += self.body
        lines.append(f"return {', '.join(self.results) or None}")
        return "\n    ".join(lines) + "\n"

    def type_comments(self, values: list[Value], kind: str = "") -> list[str]:
        """Return comment lines with the types of values."""
        return _wrapped(kind, [f"{self.names[v]} {v.type_text}" for v in values])

    def uses_in(self, program: Program) -> Counter[Value]:
        """Return the use counts of values; free values of regions count twice, as not inlinable."""
        uses = Counter(v for op in program.ops for v in op.inputs)
        uses.update(program.results())
        uses.update(v for op in program.ops for r in op.regions for v in r.free_values())
        return uses

    def statements(self, program: Program) -> Iterator[str]:
        """Yield the source lines of the ops; views used once are inlined where they are used."""
        uses = self.uses_in(program)
        for op in program.ops:
            if op.regions:
                yield from region_source(self, op)
            elif op.function in _INLINED_VIEWS and uses[op.out] == 1:
                self.inline[op.out] = self.expression(op)
            else:
                yield self._statement(op)

    def _copies(self) -> Iterator[str]:
        """Yield copies of outputs that alias other memory."""
        for position, value in enumerate(self.program.outputs):
            if position in self.plan.aliased:
                name = self.names.another(f"{self.names[value]}_copy")
                yield f"{name} = np.array({self.results[position]})"
                self.results[position] = name

    def _writes(self) -> Iterator[str]:
        """Yield the writes to inputs that no op has done in place."""
        targets = {write.target for write in self.program.writes}
        pending = [w for w in self.program.writes if w.target not in self.plan.written]
        saved: dict[Value, str] = {}
        for write in pending:  # an input that is overwritten before another write reads it
            if write.value in targets:
                saved[write.value] = f"{self.names[write.value]}_before"
                yield f"{saved[write.value]} = {self.names[write.value]}.copy()"
        for write in pending:
            new = saved.get(write.value) or self.show(self._before_broadcast(write.value))
            yield f"{self.names[write.target]}[...] = {new}"

    def _before_broadcast(self, value: Value) -> Any:
        """Return the operand that broadcasts to a value, since assignment broadcasts too."""
        op = self.made.get(value)
        if op is not None and value in self.inline and op.function == "np.broadcast_to":
            return op.args[0]
        return value

    def _statement(self, op: Op) -> str:
        outs = ", ".join(self._name(v) for v in op.outs)
        memory = self.plan.memory.get(op.outs[0])
        if op.function.startswith("native."):
            text = self._native_call(op)
        elif memory is None:
            found = self.expression(op)
            text = f"{outs} = {item(found, '0').text if returns_1_tuple(op) else found.text}"
        else:
            self.names[op.out] = self.names[memory]
            text = self._in_place_statement(op, self.names[memory])
        return f"{text:<52}  # {', '.join(v.type_text for v in op.outs)}"

    def _in_place_statement(self, op: Op, memory: str) -> str:
        """Return a statement that writes the result into existing memory."""
        shown = [self.show(arg) for arg in op.args]
        if op.function == "plus_at":
            return f"{memory}[{_index(op.args[2], self.show)}] += {shown[1]}"
        if op.function == "assign_at":
            return f"{memory}[{_index(op.args[2], self.show)}] = {shown[1]}"
        if op.function == "add_at":
            return f"np.add.at({memory}, {self.show(op.kwargs['key'])}, {shown[1]})"
        augmented = _AUGMENTED.get(op.function)
        if augmented and shown[0] == memory and shown[1] != memory:
            return f"{memory} {augmented} {shown[1]}"
        shown += [f"{key}={self.show(value)}" for key, value in op.kwargs.items()]
        return f"{op.function}({', '.join([*shown, f'out={memory}'])})"

    def _native_call(self, op: Op) -> str:
        """Return the call of a native kernel, with `out=` for results that have memory."""
        memory = [self.plan.memory.get(v) for v in op.outs]
        made = ["_" if m else self._name(v) for v, m in zip(op.outs, memory, strict=True)]
        for value, m in zip(op.outs, memory, strict=True):
            if m is not None:
                self.names[value] = self.names[m]
        shown = [self.show(arg) for arg in op.args]
        if any(memory):
            shown.append(f"out={self.show(tuple(memory))}")
        call = f"{op.function}({', '.join(shown)})"
        return call if all(memory) else f"{', '.join(made)} = {call}"

    def _name(self, value: Value) -> str:
        return self.names[value]

    def expression(self, op: Op) -> Expression:
        """Return the expression of an op as a person would write it, with operators and methods."""
        function, args = op.function, op.args
        shown = [self.show(arg) for arg in args]
        given = {
            k: v[0] if k == "axis" and type(v) is tuple and len(v) == 1 else v
            for k, v in op.kwargs.items()
        }
        keywords = [
            f"{key}={self.show(value)}"
            for key, value in given.items()
            if not (function in _METHODS and (value is None or value is False))
        ]
        operator = _OPERATORS.get(function)
        if operator and len(args) == 2 and not keywords and _is_exact(operator, op):
            return binary(operator, *map(self.tree, args))
        if function == "draw":
            return self._draw(op.out, args, shown, keywords)
        if not args or not isinstance(args[0], Value):
            return call(function, [*shown, *keywords])
        first = self.tree(args[0])
        match function:
            case "np.negative":
                return negative(first)
            case "getitem":
                return item(first, _index(args[1], self.show))
            case "np.permute_dims" if args[1] == (1, 0):
                return attribute(first, "T")
            case "np.permute_dims":
                return method(first, "transpose", [shown[1][1:-1]])
            case "np.reshape":
                return method(first, "reshape", [shown[1][1:-1].rstrip(",") or "()"])
            case "np.astype":
                return method(first, "astype", shown[1:])
        if function in _METHODS:
            return method(first, function[3:], [*shown[1:], *keywords])
        return call(function, [*shown, *keywords])

    def _draw(self, out: Value, args: Any, shown: list[str], keywords: list[str]) -> Expression:
        """Return the call of a generator's method, or of a function that takes the generator."""
        generator, drawn, *rest = shown
        if isinstance(args[1], str):
            found = method(Expression(generator), args[1], [*rest, *keywords])
        else:
            found = call(drawn, [generator, *rest, *keywords])
        return found if out.shape else call("np.asarray", [found.text])

    def show(self, tree: Any) -> str:
        """Return the source of an argument, or of nested arguments."""
        return self.tree(tree).text

    def item(self, tree: Any, index: str) -> Expression:
        """Return the expression of an item of an argument."""
        return item(self.tree(tree), index)

    def tree(self, tree: Any) -> Expression:
        """Return the expression of an argument, or of nested arguments."""
        if isinstance(tree, Value):
            if tree in self.inline:
                return self.inline[tree]
            array = self.program.constants.get(tree)
            if array is None or tree in self.constants:
                return Expression(self._name(tree))
            return array_literal(array) if array.ndim else literal(array[()])
        if isinstance(tree, tuple):
            parts = ", ".join(map(self.show, tree))
            return Expression(f"({parts}{',' * (len(tree) == 1)})")
        if isinstance(tree, list):
            return Expression(f"[{', '.join(map(self.show, tree))}]")
        try:
            return literal(tree)
        except TypeError:
            return Expression(self._object_name(tree))

    def _object_name(self, value: Any) -> str:
        """Return the name under which the source finds an object that has no literal."""
        for name, known in self.objects.items():
            if known is value:
                return name
        stem = getattr(value, "__name__", type(value).__name__.lower())
        name = self.names.another(stem if isinstance(stem, str) else "object")
        self.objects[name] = value
        return name


def _grouped(lines: Iterable[str]) -> list[str]:
    """Return the lines as statements: a compound statement is one string of several lines."""
    found: list[str] = []
    for line in lines:
        if line.startswith((" ", "else:", "each_block(")):
            found[-1] += f"\n    {line}"
        else:
            found.append(line)
    return found


_INLINED_VIEWS = frozenset(["np.permute_dims", "np.reshape", "np.broadcast_to", "getitem"])
"""Views that are written within larger expressions when they are used once."""

_WIDTH = 100
"""Number of characters from which lines of generated source are broken."""

_MAX_LITERAL_SIZE = 8
"""Largest number of elements of a constant array that is written as a literal."""


def _is_exact(operator: str, op: Op) -> bool:
    """Whether an operator gives the bits of the function it stands for.

    NumPy rounds powers of its scalars otherwise, takes roots for some powers of arrays, and orders
    complex scalars with nan otherwise.
    """
    scalar = not op.out.shape
    if operator == "**":
        return not scalar and op.out.dtype.kind != "c" and op.out.dtype.char != "e"
    return not scalar or operator not in _ORDERS or all(v.dtype.kind != "c" for v in op.inputs)


_ORDERS = ("<", "<=", ">", ">=")


def _index(key: Any, show: Any) -> str:
    """Return an index as it is written between brackets."""
    if isinstance(key, tuple) and key:
        return ", ".join(_index(part, show) for part in key) + "," * (len(key) == 1)
    if isinstance(key, slice):
        ends = ["" if part is None else show(part) for part in (key.start, key.stop)]
        return ":".join([*ends, *([] if key.step is None else [show(key.step)])])
    return str(show(key))


def _assertions(names: list[str], values: list[Value]) -> list[str]:
    """Return statements that raise unless the arguments have the shapes and dtypes of values."""
    if not values:
        return []
    shapes, dtypes = [str(v.shape) for v in values], [repr(v.dtype.str[1:]) for v in values]
    return [
        *_comparison("np.shape", names, shapes, "shapes"),
        *_comparison("np.result_type", names, dtypes, "dtypes"),
    ]


def _comparison(function: str, names: list[str], wanted: list[str], aspect: str) -> list[str]:
    """Return the lines of a statement that compares a function of each argument."""
    given = ", ".join(names) + "," * (len(names) == 1)
    listed, message = ", ".join(wanted), f'"other {aspect}"'
    head = f"assert [*map({function}, ({given}))] == ["
    if len(head) + len(listed) + len(message) <= _WIDTH - 7:
        return [f"{head}{listed}], {message}"]
    begin = [head]
    if len(head) > _WIDTH - 4:
        begin = [f"assert [*map({function}, (", *_indented(given), "))] == ["]
    return [*begin, *_indented(listed), f"], {message}"]


def _indented(text: str) -> list[str]:
    return [f"    {line}" for line in textwrap.wrap(text, _WIDTH - 10)]


def _wrapped(kind: str, parts: list[str]) -> list[str]:
    """Return comment lines of a comma-separated list, broken between its parts."""
    lines: list[str] = []
    line = kind
    for position, part in enumerate(parts):
        if len(line) + len(part) + 2 > _WIDTH - 4:
            lines.append(line)
            line = ""
        line += part + ", " * (position + 1 < len(parts))
    return [f"# {line}".rstrip() for line in [*lines, line] if parts]
