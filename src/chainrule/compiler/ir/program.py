"""What a trace becomes: a program of typed lines, each one call of a function of arrays.

A line may have bodies, programs that it runs: `for` and `while` any number of times, `if` one of
two. A `for` has two arguments: what it carries at first, and what it takes slices of; this may be a
`range`, too. A body's inputs are values of its own; it may use those of the programs around it.

Every value is made once and never changes (static single assignment). What a program changes in the
world stands at its end: `writes` says which input's memory holds which value afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.location import Location
from chainrule.compiler.ir.abstract_eval import abstract_eval
from chainrule.errors import CompileError

Shape = tuple[int, ...]


class Value:
    """One array of a program, known by its shape and dtype."""

    __slots__ = ("dtype", "hint", "shape")

    def __init__(self, shape: Shape, dtype: Any, hint: str = "") -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.hint = hint  # the user's name for it, where one is known

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return self.size * int(self.dtype.itemsize)

    @property
    def type_text(self) -> str:
        """Its type as comments show it, like ``f4[64, 100]``."""
        return f"{self.dtype.str[1:]}[{', '.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"<{self.hint or 'value'}: {self.type_text}>"


class Op:
    """One call: the function's name, its arguments (values among them), what comes out."""

    __slots__ = ("args", "regions", "function", "kwargs", "location", "outs")

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

    @property
    def out(self) -> Value:
        """The one value that comes out."""
        (value,) = self.outs
        return value

    @property
    def inputs(self) -> list[Value]:
        """The values among the arguments, in order, as often as they stand there.

        Then those that its bodies use of the programs around them.
        """
        found = values_in((self.args, tuple(self.kwargs.values())))
        for body in self.regions:
            found += body.free()
        return found

    def replaced(self, change: Callable[[Value], Any]) -> Op:
        """Return the line with other values for its arguments."""
        args = mapped(self.args, change)
        kwargs = {key: mapped(value, change) for key, value in self.kwargs.items()}
        regions = tuple([body.replaced(change) for body in self.regions])
        return Op(self.function, args, kwargs, self.outs, self.location, regions)


def values_in(tree: Any) -> list[Value]:
    """Return the values in nested arguments."""
    found: list[Value] = []
    _collect(tree, found)
    return found


def _collect(tree: Any, found: list[Value]) -> None:
    if isinstance(tree, Value):
        found.append(tree)
    elif isinstance(tree, tuple | list):
        for item in tree:
            _collect(item, found)
    elif isinstance(tree, slice):
        _collect((tree.start, tree.stop, tree.step), found)


def mapped(tree: Any, change: Callable[[Value], Any]) -> Any:
    """Return nested arguments with every value changed."""
    if isinstance(tree, Value):
        return change(tree)
    if isinstance(tree, tuple | list):
        items = [mapped(item, change) for item in tree]
        return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
    if isinstance(tree, slice):
        return slice(*(mapped(part, change) for part in (tree.start, tree.stop, tree.step)))
    return tree


def every_op(ops: Iterable[Op]) -> Iterator[Op]:
    """Yield lines, and those of their bodies."""
    for op in ops:
        yield op
        for body in op.regions:
            yield from every_op(body.ops)


class Write(NamedTuple):
    """At the end, the memory of an input holds a value."""

    target: Value
    value: Value


class Program:
    """Inputs, lines, outputs and what is written: a function of arrays."""

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
        """Return the same program of other lines."""
        return Program(
            self.name, self.inputs, self.constants, ops, list(self.outputs), list(self.writes)
        )

    def free(self) -> list[Value]:
        """Return the values of the programs around it that a body uses."""
        made = {*self.inputs, *self.constants}
        made.update(v for op in self.ops for v in op.outs)
        used = [v for op in self.ops for v in op.inputs] + self.results()
        return list(dict.fromkeys(v for v in used if v not in made))

    def replaced(self, change: Callable[[Value], Any]) -> Program:
        """Return a body with other values of the programs around it."""
        others = {v: change(v) for v in self.free()}
        if all(v is other for v, other in others.items()):
            return self
        ops = [op.replaced(lambda v: others.get(v, v)) for op in self.ops]
        body = self.with_ops(ops)
        body.outputs = [others.get(v, v) for v in self.outputs]
        return body

    def results(self) -> list[Value]:
        """Return the values that outlive the program: outputs, and what is written."""
        return [*self.outputs, *(write.value for write in self.writes)]

    def check_reach(self, around: Iterable[Value] = ()) -> None:
        """Raise if a line uses what another line's body made."""
        known = {*around, *self.inputs, *self.constants}
        for op in self.ops:
            if not known.issuperset(op.inputs):
                raise CompileError(
                    "a tensor that the function of a loop or branch made is used outside of it"
                    f"{'' if op.location is None else f', at {op.location}'}: it has a value "
                    "for each step. Return it from the function: as carry, or as y"
                )
            for body in op.regions:
                body.check_reach(known)
            known.update(op.outs)

    def check(self, around: Iterable[Value] = ()) -> None:
        """Raise if a value is used before it is made, made twice, or of another type than it says.

        Run after every pass in the tests.
        """
        known = {*around, *self.inputs, *self.constants}
        for op in self.ops:
            self._check_known(op.inputs, known, op)
            if not known.isdisjoint(op.outs):
                raise CompileError(f"{self.name}: made twice: {text_of(op)}")
            for body in op.regions:
                body.check(known)
            types = [(value.shape, value.dtype) for value in op.outs]
            if op.regions:
                found = types_of_loop(op)
            else:
                found = abstract_eval(op.function, op.args, op.kwargs).types
            if found != types:
                raise CompileError(f"{self.name}: {text_of(op)} gives {found}, but says {types}")
            known.update(op.outs)
        self._check_known(self.results(), known, None)
        for target, value in self.writes:
            if target not in self.inputs or not is_alike(target, value):
                raise CompileError(f"{self.name}: can't write {value} over {target}")

    def _check_known(self, values: Iterable[Value], known: set[Value], op: Op | None) -> None:
        for value in values:
            if value not in known:
                where = "the results" if op is None else text_of(op)
                raise CompileError(f"{self.name}: {value} is used before it is made: {where}")

    def __str__(self) -> str:
        names = Names()
        head = ", ".join(f"{names[v]}: {v.type_text}" for v in self.inputs)
        rows = [f"program {self.name}({head})"]
        rows += [f"  {names[v]} = {a!r}" for v, a in self.constants.items()]
        return "\n".join([*rows, *(f"  {row}" for row in self.rows(names))])

    def rows(self, names: dict[Value, str]) -> Iterator[str]:
        """Yield the lines as people read them, and what comes out."""
        for op in self.ops:
            yield text_of(op, names)
            for body in op.regions:
                head = ", ".join(f"{names[v]}: {v.type_text}" for v in body.inputs)
                yield f"  {body.name}({head})"
                yield from (f"    {row}" for row in body.rows(names))
        yield from (f"{names[target]}[...] = {names[value]}" for target, value in self.writes)
        yield f"return {', '.join(names[v] for v in self.outputs)}"


def is_alike(value: Value, other: Value) -> bool:
    """Say whether two values have the same shape and dtype."""
    return (value.shape, value.dtype) == (other.shape, other.dtype)


def types_of_loop(op: Op) -> list[tuple[Shape, Any]]:
    """Return the types of what comes out of a line with bodies, after checking what goes in."""
    given: list[Any] = [v for group in op.args if type(group) is tuple for v in group]
    carries: list[Value] = []
    if op.function != "if":
        carries = list(op.args[0])
        slices = [
            Value((), np.int64) if isinstance(v, range) else Value(v.shape[1:], v.dtype)
            for v in given[len(carries) :]
        ]
        for body in op.regions:
            if not all(map(is_alike, body.inputs, [*carries, *slices])) or not all(
                map(is_alike, body.outputs, carries if body is op.regions[-1] else ())
            ):
                raise CompileError(f"{body.name} doesn't take what it gets: {text_of(op)}")
    elif not all(map(is_alike, op.regions[0].outputs, op.regions[1].outputs)):
        raise CompileError(f"two branches differ: {text_of(op)}")
    count, outputs = len(carries), op.regions[-1].outputs
    lead = (op.kwargs["length"],) if op.function == "for" else ()
    types = [(v.shape, v.dtype) for v in outputs[: count if lead else None]]
    return types + [
        ((*lead, *v.shape), v.dtype) for v in outputs[count if lead else len(outputs) :]
    ]


class Names(dict[Value, str]):
    """A name for each value, its hint where that is free."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._numbers: Counter[str] = Counter()  # the last one that each stem has had

    def __missing__(self, value: Value) -> str:
        self[value] = name = self.another(value.hint)
        return name

    def another(self, stem: str) -> str:
        """Return a name that is not taken yet, and take it; a number if there is no stem."""
        name, hint, stem = stem, stem, stem or "t"
        while not name or name in self.taken:
            self._numbers[stem] += 1
            apart = "_" if stem[-1].isdigit() else ""
            name = f"{stem}{apart}{self._numbers[stem] + bool(hint)}"
        self.taken.add(name)
        return name


def text_of(op: Op, names: dict[Value, str] | None = None) -> str:
    """Return a line as people read it, with the type of what it makes."""
    spelled = Names() if names is None else names

    def show(tree: Any) -> str:
        if isinstance(tree, Value):
            return spelled[tree]
        if isinstance(tree, list):
            return f"[{', '.join(map(show, tree))}]"
        if isinstance(tree, tuple):
            return f"({''.join(show(item) + ', ' for item in tree)})"
        return repr(tree)

    parts = [show(item) for item in op.args]
    parts += [f"{key}={show(item)}" for key, item in op.kwargs.items()]
    outs = ", ".join(f"{spelled[v]}: {v.type_text}" for v in op.outs)
    return f"{outs} = {op.function}({', '.join(parts)})"
