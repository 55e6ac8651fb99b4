"""Intermediate representation: a program of typed ops, each one call of a function of arrays.

An op may have regions, programs that it runs: `for` and `while` run theirs any number of times,
`if` runs one of two. A `for` has two arguments: the initial carry, and the arrays (or `range`) of
which each step gets one slice. A region has inputs of its own, and may use values of the enclosing
programs: its free values.

Programs are in static single assignment form: each value is defined once and never changes. Side
effects are at the end: `writes` says which value the memory of an input holds afterwards.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.location import Location
from chainrule.compiler.ir.abstract_eval import abstract_eval
from chainrule.errors import CompileError

Shape = tuple[int, ...]

ATOMS = frozenset([int, float, complex, bool, str, type(None), type(...)])
"""Types of settings without values in them, by which arguments are walked faster."""


class Value:
    """One array of a program, known by its shape and dtype."""

    __slots__ = ("dtype", "hint", "shape")

    def __init__(self, shape: Shape, dtype: Any, hint: str = "") -> None:
        self.shape = shape
        self.dtype = dtype if isinstance(dtype, np.dtype) else np.dtype(dtype)
        self.hint = hint  # the name of the user's variable, where it is known

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(math.prod(self.shape))

    @property
    def nbytes(self) -> int:
        """The memory that it takes, in bytes."""
        return self.size * int(self.dtype.itemsize)

    @property
    def type_text(self) -> str:
        """Its type as comments show it, like ``f4[64, 100]``."""
        return f"{self.dtype.str[1:]}[{', '.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"<{self.hint or 'value'}: {self.type_text}>"


class Op:
    """One call: the function's name, its arguments (operands and settings), its results."""

    __slots__ = (
        "args",
        "function",
        "kwargs",
        "location",
        "operands",
        "outs",
        "regions",
        "structure",
    )

    def __init__(
        self,
        function: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        outs: tuple[Value, ...],
        location: Location | None = None,
        regions: tuple[Program, ...] = (),
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.outs = outs
        self.location = location
        self.regions = regions
        self.operands: tuple[Value, ...] | None = None  # the values in the arguments, once known
        self.structure: list[Any] | None = None  # shared by ops of one kind, for their key

    @property
    def out(self) -> Value:
        """The result of an op with a single result."""
        (value,) = self.outs
        return value

    @property
    def inputs(self) -> Sequence[Value]:
        """The operands, in order and with repeats, then the free values of its regions."""
        if self.operands is None:
            found: list[Value] = []
            _collect(self.args, found)
            if self.kwargs:
                _collect(tuple(self.kwargs.values()), found)
            self.operands = tuple(found)
        if not self.regions:
            return self.operands
        operands = [*self.operands]
        for region in self.regions:
            operands += region.free_values()
        return operands

    def substitute(self, change: Callable[[Value], Any]) -> Op:
        """Return the op with `change(value)` in place of each input."""
        if self.operands is self.args:  # values alone
            operands = tuple([change(v) for v in self.args])
            made = Op(self.function, operands, self.kwargs, self.outs, self.location)
            if all([v.__class__ is Value for v in operands]):
                made.operands = operands
            return made
        args = map_values(self.args, change)
        kwargs = {key: map_values(value, change) for key, value in self.kwargs.items()}
        if not self.regions:
            return Op(self.function, args, kwargs, self.outs, self.location)
        regions = tuple([region.substitute(change) for region in self.regions])
        return Op(self.function, args, kwargs, self.outs, self.location, regions)


def values_in(tree: Any) -> list[Value]:
    """Return the values in nested arguments."""
    found: list[Value] = []
    _collect(tree, found)
    return found


def _collect(tree: Any, found: list[Value]) -> None:
    kind = tree.__class__
    if kind is Value:
        found.append(tree)
    elif kind in ATOMS:
        return
    elif isinstance(tree, (tuple, list)):
        for item in tree:
            _collect(item, found)
    elif kind is slice:
        _collect((tree.start, tree.stop, tree.step), found)


def map_values(tree: Any, change: Callable[[Value], Any]) -> Any:
    """Return nested arguments with `change(value)` in place of each value."""
    kind = tree.__class__
    if kind is Value:
        return change(tree)
    if kind in ATOMS:
        return tree
    if kind is tuple:
        return tuple([map_values(item, change) for item in tree])
    if isinstance(tree, (tuple, list)):
        items = [map_values(item, change) for item in tree]
        return kind(*items) if hasattr(tree, "_fields") else kind(items)
    if kind is slice:
        return slice(*(map_values(part, change) for part in (tree.start, tree.stop, tree.step)))
    return tree


def every_op(ops: Iterable[Op]) -> Iterator[Op]:
    """Yield all ops, each before those of its regions."""
    for op in ops:
        yield op
        for region in op.regions:
            yield from every_op(region.ops)


class Write(NamedTuple):
    """A write at the end of a program: the memory of the input `target` gets `value`."""

    target: Value
    value: Value


class Program:
    """A function of arrays: inputs, constants, ops, outputs and writes to inputs."""

    def __init__(
        self,
        name: str,
        inputs: list[Value],
        constants: dict[Value, Any],
        ops: list[Op],
        outputs: list[Value],
        writes: list[Write],
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.constants = constants
        self.ops = ops
        self.outputs = outputs
        self.writes = writes

    def with_ops(self, ops: list[Op]) -> Program:
        """Return the program with other ops."""
        return Program(
            self.name, self.inputs, self.constants, ops, list(self.outputs), list(self.writes)
        )

    def free_values(self) -> list[Value]:
        """Return the values of enclosing programs that a region uses."""
        defined = {*self.inputs, *self.constants}
        defined.update(v for op in self.ops for v in op.outs)
        used = [v for op in self.ops for v in op.inputs] + self.results()
        return list(dict.fromkeys(v for v in used if v not in defined))

    def substitute(self, change: Callable[[Value], Any]) -> Program:
        """Return the region with `change(value)` in place of each free value."""
        others = {v: change(v) for v in self.free_values()}
        if all(v is other for v, other in others.items()):
            return self
        ops = [op.substitute(lambda v: others.get(v, v)) for op in self.ops]
        region = self.with_ops(ops)
        region.outputs = [others.get(v, v) for v in self.outputs]
        return region

    def results(self) -> list[Value]:
        """Return the values that outlive the program: outputs and written values."""
        return [*self.outputs, *(write.value for write in self.writes)]

    def check_scopes(self, enclosing: Iterable[Value] = ()) -> None:
        """Raise if an op uses a value that the region of another op defines."""
        known = {*enclosing, *self.inputs, *self.constants}
        for op in self.ops:
            if not known.issuperset(op.inputs):
                raise CompileError(
                    "a tensor that the function of a loop or branch made is used outside of it"
                    f"{'' if op.location is None else f', at {op.location}'}: it has a value "
                    "for each step. Return it from the function: as carry, or as y"
                )
            for region in op.regions:
                region.check_scopes(known)
            known.update(op.outs)

    def check(self, enclosing: Iterable[Value] = ()) -> None:
        """Verify the program: definitions before uses, single assignment, types of results.

        The tests run it after every pass.
        """
        known = {*enclosing, *self.inputs, *self.constants}
        for op in self.ops:
            self._check_defined(op.inputs, known, op)
            if not known.isdisjoint(op.outs):
                raise CompileError(f"{self.name}: defined twice: {format_op(op)}")
            for region in op.regions:
                region.check(known)
            types = [(value.shape, value.dtype) for value in op.outs]
            if op.regions:
                found = region_op_types(op)
            else:
                found = abstract_eval(op.function, op.args, op.kwargs).types
            if found != types:
                raise CompileError(
                    f"{self.name}: {format_op(op)} returns {found}, but its results have the types "
                    f"{types}"
                )
            known.update(op.outs)
        self._check_defined(self.results(), known, None)
        for target, value in self.writes:
            if target not in self.inputs or not same_type(target, value):
                raise CompileError(f"{self.name}: can't write {value} over {target}")

    def _check_defined(self, values: Iterable[Value], known: set[Value], op: Op | None) -> None:
        for value in values:
            if value not in known:
                user = "the results" if op is None else format_op(op)
                raise CompileError(f"{self.name}: {value} is used before it is defined: {user}")

    def __str__(self) -> str:
        names = Names()
        head = ", ".join(f"{names[v]}: {v.type_text}" for v in self.inputs)
        lines = [f"program {self.name}({head})"]
        lines += [f"  {names[v]} = {a!r}" for v, a in self.constants.items()]
        return "\n".join([*lines, *(f"  {line}" for line in self.format_body(names))])

    def format_body(self, names: dict[Value, str]) -> Iterator[str]:
        """Yield the readable text of ops, writes and outputs, line by line."""
        for op in self.ops:
            yield format_op(op, names)
            for region in op.regions:
                head = ", ".join(f"{names[v]}: {v.type_text}" for v in region.inputs)
                yield f"  {region.name}({head})"
                yield from (f"    {line}" for line in region.format_body(names))
        yield from (f"{names[target]}[...] = {names[value]}" for target, value in self.writes)
        yield f"return {', '.join(names[v] for v in self.outputs)}"


def same_type(value: Value, other: Value) -> bool:
    """Whether two values have the same shape and dtype."""
    return (value.shape, value.dtype) == (other.shape, other.dtype)


def region_op_types(op: Op) -> list[tuple[Shape, Any]]:
    """Return the types of the results of an op with regions, after checking its operands."""
    operands: list[Any] = [v for group in op.args if type(group) is tuple for v in group]
    carries: list[Value] = []
    if op.function != "if":
        carries = list(op.args[0])
        slices = [
            Value((), np.int64) if isinstance(v, range) else Value(v.shape[1:], v.dtype)
            for v in operands[len(carries) :]
        ]
        for region in op.regions:
            if not all(map(same_type, region.inputs, [*carries, *slices])) or not all(
                map(same_type, region.outputs, carries if region is op.regions[-1] else ())
            ):
                raise CompileError(f"{region.name} gets operands of other types: {format_op(op)}")
    elif not all(map(same_type, op.regions[0].outputs, op.regions[1].outputs)):
        raise CompileError(f"the two branches return different types: {format_op(op)}")
    count, outputs = len(carries), op.regions[-1].outputs
    lead = (op.kwargs["length"],) if op.function == "for" else ()
    types = [(v.shape, v.dtype) for v in outputs[: count if lead else None]]
    return types + [
        ((*lead, *v.shape), v.dtype) for v in outputs[count if lead else len(outputs) :]
    ]


class Names(dict[Value, str]):
    """A unique name for each value: its hint where that is not taken."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._numbers: Counter[str] = Counter()  # the last number given to each stem

    def __missing__(self, value: Value) -> str:
        self[value] = name = self.another(value.hint)
        return name

    def another(self, stem: str) -> str:
        """Return a name that is not taken yet, and take it; `t` and a number without a stem."""
        stem = _as_name(stem)
        name, hint, stem = stem, stem, stem or "t"
        while not name or name in self.taken:
            self._numbers[stem] += 1
            separator = "_" if stem[-1].isdigit() else ""
            name = f"{stem}{separator}{self._numbers[stem] + bool(hint)}"
        self.taken.add(name)
        return name


def _as_name(text: str) -> str:
    """Return a text as a name, in the form in which Python compares names; empty if it is none."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if text.isidentifier():
        return text
    return re.sub(r"\W", "", text, flags=re.ASCII).lstrip("0123456789")


def format_op(op: Op, names: dict[Value, str] | None = None) -> str:
    """Return the readable text of an op, with the types of its results."""
    known = Names() if names is None else names

    def show(tree: Any) -> str:
        if isinstance(tree, Value):
            return known[tree]
        if isinstance(tree, list):
            return f"[{', '.join(map(show, tree))}]"
        if isinstance(tree, tuple):
            return f"({''.join(show(item) + ', ' for item in tree)})"
        return repr(tree)

    parts = [show(item) for item in op.args]
    parts += [f"{key}={show(item)}" for key, item in op.kwargs.items()]
    outs = ", ".join(f"{known[v]}: {v.type_text}" for v in op.outs)
    return f"{outs} = {op.function}({', '.join(parts)})"
