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
from chainrule.compiler.ir.abstract_eval import outcome
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


class Line:
    """One call: the function's name, its arguments (values among them), what comes out."""

    __slots__ = ("args", "bodies", "function", "kwargs", "location", "outs")

    def __init__(
        self,
        function: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        outs: tuple[Value, ...],
        location: Location | None = None,
        bodies: tuple[Program, ...] = (),
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.outs = outs
        self.location = location
        self.bodies = bodies

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
        for body in self.bodies:
            found += body.free()
        return found

    def replaced(self, change: Callable[[Value], Any]) -> Line:
        """Return the line with other values for its arguments."""
        args = mapped(self.args, change)
        kwargs = {key: mapped(value, change) for key, value in self.kwargs.items()}
        bodies = tuple([body.replaced(change) for body in self.bodies])
        return Line(self.function, args, kwargs, self.outs, self.location, bodies)


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


def every_line(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines, and those of their bodies."""
    for line in lines:
        yield line
        for body in line.bodies:
            yield from every_line(body.lines)


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
        lines: list[Line],
        outputs: list[Value],
        writes: list[Write],
    ) -> None:
        self.name = name
        self.inputs = inputs
        self.constants = constants
        self.lines = lines
        self.outputs = outputs
        self.writes = writes

    def with_lines(self, lines: list[Line]) -> Program:
        """Return the same program of other lines."""
        return Program(
            self.name, self.inputs, self.constants, lines, list(self.outputs), list(self.writes)
        )

    def free(self) -> list[Value]:
        """Return the values of the programs around it that a body uses."""
        made = {*self.inputs, *self.constants}
        made.update(v for line in self.lines for v in line.outs)
        used = [v for line in self.lines for v in line.inputs] + self.results()
        return list(dict.fromkeys(v for v in used if v not in made))

    def replaced(self, change: Callable[[Value], Any]) -> Program:
        """Return a body with other values of the programs around it."""
        others = {v: change(v) for v in self.free()}
        if all(v is other for v, other in others.items()):
            return self
        lines = [line.replaced(lambda v: others.get(v, v)) for line in self.lines]
        body = self.with_lines(lines)
        body.outputs = [others.get(v, v) for v in self.outputs]
        return body

    def results(self) -> list[Value]:
        """Return the values that outlive the program: outputs, and what is written."""
        return [*self.outputs, *(write.value for write in self.writes)]

    def check_reach(self, around: Iterable[Value] = ()) -> None:
        """Raise if a line uses what another line's body made."""
        known = {*around, *self.inputs, *self.constants}
        for line in self.lines:
            if not known.issuperset(line.inputs):
                raise CompileError(
                    "a tensor that the function of a loop or branch made is used outside of it"
                    f"{'' if line.location is None else f', at {line.location}'}: it has a value "
                    "for each step. Return it from the function: as carry, or as y"
                )
            for body in line.bodies:
                body.check_reach(known)
            known.update(line.outs)

    def check(self, around: Iterable[Value] = ()) -> None:
        """Raise if a value is used before it is made, made twice, or of another type than it says.

        Run after every pass in the tests.
        """
        known = {*around, *self.inputs, *self.constants}
        for line in self.lines:
            self._check_known(line.inputs, known, line)
            if not known.isdisjoint(line.outs):
                raise CompileError(f"{self.name}: made twice: {text_of(line)}")
            for body in line.bodies:
                body.check(known)
            types = [(value.shape, value.dtype) for value in line.outs]
            if line.bodies:
                found = types_of_loop(line)
            else:
                found = outcome(line.function, line.args, line.kwargs).types
            if found != types:
                raise CompileError(f"{self.name}: {text_of(line)} gives {found}, but says {types}")
            known.update(line.outs)
        self._check_known(self.results(), known, None)
        for target, value in self.writes:
            if target not in self.inputs or not is_alike(target, value):
                raise CompileError(f"{self.name}: can't write {value} over {target}")

    def _check_known(self, values: Iterable[Value], known: set[Value], line: Line | None) -> None:
        for value in values:
            if value not in known:
                where = "the results" if line is None else text_of(line)
                raise CompileError(f"{self.name}: {value} is used before it is made: {where}")

    def __str__(self) -> str:
        names = Names()
        head = ", ".join(f"{names[v]}: {v.type_text}" for v in self.inputs)
        rows = [f"program {self.name}({head})"]
        rows += [f"  {names[v]} = {a!r}" for v, a in self.constants.items()]
        return "\n".join([*rows, *(f"  {row}" for row in self.rows(names))])

    def rows(self, names: dict[Value, str]) -> Iterator[str]:
        """Yield the lines as people read them, and what comes out."""
        for line in self.lines:
            yield text_of(line, names)
            for body in line.bodies:
                head = ", ".join(f"{names[v]}: {v.type_text}" for v in body.inputs)
                yield f"  {body.name}({head})"
                yield from (f"    {row}" for row in body.rows(names))
        yield from (f"{names[target]}[...] = {names[value]}" for target, value in self.writes)
        yield f"return {', '.join(names[v] for v in self.outputs)}"


def is_alike(value: Value, other: Value) -> bool:
    """Say whether two values have the same shape and dtype."""
    return (value.shape, value.dtype) == (other.shape, other.dtype)


def types_of_loop(line: Line) -> list[tuple[Shape, Any]]:
    """Return the types of what comes out of a line with bodies, after checking what goes in."""
    given: list[Any] = [v for group in line.args if type(group) is tuple for v in group]
    carries: list[Value] = []
    if line.function != "if":
        carries = list(line.args[0])
        slices = [
            Value((), np.int64) if isinstance(v, range) else Value(v.shape[1:], v.dtype)
            for v in given[len(carries) :]
        ]
        for body in line.bodies:
            if not all(map(is_alike, body.inputs, [*carries, *slices])) or not all(
                map(is_alike, body.outputs, carries if body is line.bodies[-1] else ())
            ):
                raise CompileError(f"{body.name} doesn't take what it gets: {text_of(line)}")
    elif not all(map(is_alike, line.bodies[0].outputs, line.bodies[1].outputs)):
        raise CompileError(f"two branches differ: {text_of(line)}")
    count, outputs = len(carries), line.bodies[-1].outputs
    lead = (line.kwargs["length"],) if line.function == "for" else ()
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


def text_of(line: Line, names: dict[Value, str] | None = None) -> str:
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

    parts = [show(item) for item in line.args]
    parts += [f"{key}={show(item)}" for key, item in line.kwargs.items()]
    outs = ", ".join(f"{spelled[v]}: {v.type_text}" for v in line.outs)
    return f"{outs} = {line.function}({', '.join(parts)})"
