"""From a program to NumPy source that people read."""

from __future__ import annotations

import keyword
import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from chainrule.compiler.codegen import runtime
from chainrule.compiler.codegen.loop_source import loop_rows
from chainrule.compiler.ir.op_traits import is_alone
from chainrule.compiler.ir.program import Names, Op, Program, Value
from chainrule.compiler.passes.buffer_planning import Plan, planned
from chainrule.compiler.passes.numpy_lowering import lowered
from chainrule.compiler.passes.regions import everywhere
from chainrule.compiler.passes.tiling import in_blocks

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
_TAKEN = ("np", "kernels", "native", "slice")
_AUGMENTED = {"np.add": "+=", "np.subtract": "-=", "np.multiply": "*=", "np.divide": "/="}


class Source:
    """The text of a program as a function, and what calling it needs.

    Its arguments are the program's inputs, then `constants`, then memory: scratch for `buffers`,
    and for those of the outputs that are `large`.
    """

    def __init__(self, program: Program) -> None:
        self.program = program = in_blocks(everywhere(lowered)(program))
        self.plan: Plan = planned(program)
        self.names = Names({*_TAKEN, *runtime.__all__, *keyword.kwlist})
        self.constants = [v for v, a in program.constants.items() if a.size > _SPELLED]
        self.inline: dict[Value, str] = {}  # views that are used once, where they are used
        self.objects: dict[str, Any] = {}  # settings that have no spelling
        self.made = {v: op for op in program.ops for v in op.outs}
        self.uses = self.uses_in(program)
        for value in program.inputs:
            _ = self.names[value]
        self.body = _grouped(self.statements(self.program))
        self.results = list(map(self.show, program.outputs))
        self.body += [*self._copies(), *self._writes()]

    @property
    def buffers(self) -> list[Value]:
        """What the scratch memory is that a call needs."""
        return self.plan.buffers

    @property
    def large(self) -> list[Value]:
        """The outputs that go into memory which a call brings."""
        return self.plan.results

    @property
    def text(self) -> str:
        """The whole function."""
        names = self.names
        groups = [
            ("", self.program.inputs),
            ("constants: ", self.constants),
            ("scratch: ", self.buffers),
            ("results: ", self.large),
        ]
        arguments = ", ".join(names[v] for _, values in groups for v in values)
        rows = [f"def {self.program.name}({arguments}):"]
        if len(rows[0]) > _WIDTH:
            rows = [f"def {self.program.name}("]
            rows += [f"    {row}" for row in textwrap.wrap(arguments, _WIDTH - 10)]
            rows[-1] += "):"
        for kind, values in groups:
            rows += self.described(values, kind)
        rows += self.body
        rows.append(f"return {', '.join(self.results) or None}")
        return "\n    ".join(rows) + "\n"

    def described(self, values: list[Value], kind: str = "") -> list[str]:
        """Return comments that say the types of values."""
        return _wrapped(kind, [f"{self.names[v]} {v.type_text}" for v in values])

    def uses_in(self, program: Program) -> Counter[Value]:
        """Return how often values are used; what a body uses from outside counts twice."""
        uses = Counter(v for op in program.ops for v in op.inputs)
        uses.update(program.results())
        uses.update(v for op in program.ops for body in op.regions for v in body.free())
        return uses

    def statements(self, program: Program) -> Iterator[str]:
        """Yield a row for each line, but for views that stand where they are used.

        A line with bodies has several.
        """
        uses = self.uses_in(program)
        for op in program.ops:
            if op.regions:
                yield from loop_rows(self, op)
            elif op.function in _SHORT and uses[op.out] == 1:
                self.inline[op.out] = self.expression(op)
            else:
                yield self._statement(op)

    def _copies(self) -> Iterator[str]:
        """Yield what makes outputs the caller's own."""
        for position, value in enumerate(self.program.outputs):
            if position in self.plan.borrowed:
                name = self.names.another(f"{self.names[value]}_copy")
                yield f"{name} = np.array({self.results[position]})"
                self.results[position] = name

    def _writes(self) -> Iterator[str]:
        """Yield what writes over inputs, where no line has done so."""
        targets = {write.target for write in self.program.writes}
        late = [w for w in self.program.writes if w.target not in self.plan.settled]
        taken: dict[Value, str] = {}
        for write in late:  # what is written over while another write still needs it
            if write.value in targets:
                taken[write.value] = f"{self.names[write.value]}_before"
                yield f"{taken[write.value]} = {self.names[write.value]}.copy()"
        for write in late:
            new = taken.get(write.value) or self.show(self._unspread(write.value))
            yield f"{self.names[write.target]}[...] = {new}"

    def _unspread(self, value: Value) -> Any:
        """Return what gives a value by broadcasting, which writing does anyway."""
        op = self.made.get(value)
        if op is not None and value in self.inline and op.function == "np.broadcast_to":
            return op.args[0]
        return value

    def _statement(self, op: Op) -> str:
        outs = ", ".join(self._name(v) for v in op.outs)
        place = self.plan.places.get(op.outs[0])
        if op.function.startswith("native."):
            text = self._loop(op)
        elif place is None:
            text = f"{outs} = {self.expression(op)}{'[0]' * is_alone(op)}"
        else:
            self.names[op.out] = self.names[place]
            text = self._into(op, self.names[place])
        return f"{text:<52}  # {', '.join(v.type_text for v in op.outs)}"

    def _into(self, op: Op, place: str) -> str:
        """Return a statement that writes into memory that is there."""
        shown = [self.show(arg) for arg in op.args]
        if op.function == "plus_at":
            return f"{place}[{_index(op.args[2], self.show)}] += {shown[1]}"
        if op.function == "assign_at":
            return f"{place}[{_index(op.args[2], self.show)}] = {shown[1]}"
        augmented = _AUGMENTED.get(op.function)
        if augmented and shown[0] == place and shown[1] != place:
            return f"{place} {augmented} {shown[1]}"
        return f"{op.function}({', '.join([*shown, f'out={place}'])})"

    def _loop(self, op: Op) -> str:
        """Return the call of a loop of machine code, with memory for what has a place."""
        places = [self.plan.places.get(v) for v in op.outs]
        made = ["_" if place else self._name(v) for v, place in zip(op.outs, places, strict=True)]
        for value, place in zip(op.outs, places, strict=True):
            if place is not None:
                self.names[value] = self.names[place]
        shown = [self.show(arg) for arg in op.args]
        if any(places):
            shown.append(f"out={self.show(tuple(places))}")
        call = f"{op.function}({', '.join(shown)})"
        return call if all(places) else f"{', '.join(made)} = {call}"

    def _name(self, value: Value) -> str:
        return self.names[value]

    def expression(self, op: Op) -> str:
        """Return an expression as a person would write it."""
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
        if operator and len(args) == 2 and not keywords:
            return f"{shown[0]} {operator} {shown[1]}"
        match function:
            case "draw":
                return self._draw(op.out, args, shown, keywords)
            case "np.negative":
                return f"-{shown[0]}"
            case "getitem":
                return f"{shown[0]}[{_index(args[1], self.show)}]"
            case "np.permute_dims" if args[1] == (1, 0):
                return f"{shown[0]}.T"
            case "np.permute_dims":
                return f"{shown[0]}.transpose({shown[1][1:-1]})"
            case "np.reshape":
                return f"{shown[0]}.reshape({shown[1][1:-1].rstrip(',') or '()'})"
            case "np.astype":
                return f"{shown[0]}.astype({shown[1]})"
        if function in _METHODS:
            return f"{shown[0]}.{function[3:]}({', '.join([*shown[1:], *keywords])})"
        return f"{function}({', '.join([*shown, *keywords])})"

    def _draw(self, out: Value, args: Any, shown: list[str], keywords: list[str]) -> str:
        """Return a call of a generator's method, or of a function that draws from it."""
        generator, method, *rest = shown
        if isinstance(args[1], str):
            call = f"{generator}.{args[1]}({', '.join([*rest, *keywords])})"
        else:
            call = f"{method}({', '.join([generator, *rest, *keywords])})"
        return call if out.shape else f"np.asarray({call})"

    def show(self, tree: Any) -> str:
        if isinstance(tree, Value):
            if tree in self.inline:
                return self.inline[tree]
            array = self.program.constants.get(tree)
            return self._name(tree) if array is None or tree in self.constants else _array(array)
        if isinstance(tree, tuple):
            return f"({', '.join(map(self.show, tree))}{',' * (len(tree) == 1)})"
        if isinstance(tree, list):
            return f"[{', '.join(map(self.show, tree))}]"
        try:
            return literal(tree)
        except TypeError:
            return self._held(tree)

    def _held(self, value: Any) -> str:
        """Return the name of an object that has no spelling."""
        for name, known in self.objects.items():
            if known is value:
                return name
        stem = name = getattr(value, "__name__", type(value).__name__.lower())
        while name in self.names.taken:
            name = f"{stem}_{len(self.names.taken)}"
        self.names.taken.add(name)
        self.objects[name] = value
        return name


def _grouped(rows: Iterable[str]) -> list[str]:
    """Return statements: a loop with its body is one, of several rows."""
    found: list[str] = []
    for row in rows:
        if row.startswith((" ", "else:", "each_block(")):
            found[-1] += f"\n    {row}"
        else:
            found.append(row)
    return found


_SHORT = frozenset(["np.permute_dims", "np.reshape", "np.broadcast_to", "getitem"])
"""Views that stand in the middle of an expression as a person would write them."""

_WIDTH = 100
_SPELLED = 8
"""Up to so many elements, a constant array stands in the text."""


def _array(array: Any) -> str:
    kind = literal(array.dtype)
    if array.size == 0:
        return f"np.empty({array.shape}, {kind})"
    if array.ndim == 0 and array.dtype.kind != "c":
        return f"{kind}({literal(array.item())})"
    return f"np.array({array.tolist()}, {kind})".replace("nan", "np.nan").replace("inf", "np.inf")


def literal(value: Any) -> str:
    """Return a Python value as source."""
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({literal(value.item())})"
    if isinstance(value, np.dtype):
        return f"np.{value.name}"
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    if isinstance(value, slice):
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if value is Ellipsis:
        return "..."
    if isinstance(value, type) and issubclass(value, np.generic):
        return f"np.{value.__name__}"
    if isinstance(value, bool | int | float | complex | str | bytes | type(None)):
        return repr(value)
    raise TypeError(f"{type(value).__name__} has no literal")


def _index(key: Any, show: Any) -> str:
    """Return an index as it stands between brackets."""
    if isinstance(key, tuple) and key:
        return ", ".join(_index(part, show) for part in key) + "," * (len(key) == 1)
    if isinstance(key, slice):
        ends = ["" if part is None else show(part) for part in (key.start, key.stop)]
        return ":".join([*ends, *([] if key.step is None else [show(key.step)])])
    return str(show(key))


def _wrapped(kind: str, parts: list[str]) -> list[str]:
    """Return comment rows of a list, broken between its parts."""
    rows: list[str] = []
    row = kind
    for position, part in enumerate(parts):
        if len(row) + len(part) + 2 > _WIDTH - 4:
            rows.append(row)
            row = ""
        row += part + ", " * (position + 1 < len(parts))
    return [f"# {row}".rstrip() for row in [*rows, row] if parts]
