"""The arrays of a loop of its own, and the function that Python calls to bring and to take them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.ir.program import Names, Value
from chainrule.compiler.native.loop_nest import LOOP, RESERVED, Nest, Place
from chainrule.compiler.native.scalar_codegen import CODES, scalar

PART = 5_000
"""So many nanoseconds of work are one thread's to do at a time."""

WORTH = 2 * PART
"""With less, to hand work over costs what it gains, to threads that wait awake."""

JOIN = 1_500
"""So many more, for each result that is joined from partial ones."""

_MANY = 256
"""So many parts, at most, of equal work: large ones, where memory is what takes the time."""

_FEW = 4
"""Of partial results there may be so many rows, and more while they are an eighth of the work."""

_JOINS = {"sum": "np.add", "max": "np.maximum", "min": "np.minimum"}
_NUMBERS = {"sum": "0", "max": "-np.inf", "min": "np.inf"}


class _Result(NamedTuple):
    """An array that the loop fills: how the caller makes it, and what it returns of it."""

    name: str
    made: str
    back: str
    parted: bool  # into a row for each part of the work


class Arrays:
    """Gives each value of a loop an array; the turns of the outermost loop may be shared.

    What is written over an input has that input's array, which the loop reads and writes.
    """

    expression = staticmethod(scalar)
    parted = True

    def __init__(self, name: str, cost: float) -> None:
        self.name, self.cost = name, cost  # nanoseconds that an element takes
        self.joined: list[int] = []  # sizes of results to which all turns of the outermost loop add
        self.over: dict[Value, Value] = {}  # outputs, and the inputs whose array they share
        self.names = Names(RESERVED | {name})
        self.calls: set[str] = set()
        self.inputs: dict[Value, str] = {}  # the names of the arrays that are read
        self.codes: dict[str, str] = {}  # what the elements of each array are
        self.results: list[_Result] = []

    def place(self, value: Value) -> Place:
        """Return the array that holds a value."""
        if value not in self.inputs:
            name = self.names.another(f"{value.hint or self.names[value]}_in")
            self.inputs[value], self.codes[name] = name, CODES[value.dtype]
        return Place(self.inputs[value], "")

    def allocate(self, value: Value) -> Place:
        """Return the array that is to hold a value, and note how the caller makes it."""
        target = self.over.get(value)
        if target is not None:
            name = self.place(target).array
            made = f"over({self._given()}, {name})"
        else:
            name = self.names.another(f"{self.names[value]}_out")
            made = f"fresh({self._given()}, {value.shape}, {_dtype(value)})"
            self.codes[name] = CODES[value.dtype]
        self.results.append(_Result(name, made, name, parted=False))
        return Place(name, "")

    def reduced(
        self, value: Value, kind: str, nest: Nest, steps: list[int], fills: bool
    ) -> tuple[Place, list[str]]:
        """Return the array that is to hold a reduction; the caller begins it."""
        given, shape, dtype = self._given(), value.shape, _dtype(value)
        name = back = self.names.another(f"{self.names[value]}_out")
        self.codes[name] = CODES[value.dtype]
        parted = not steps[0] and self.shared(nest)
        start = f"part * u8({value.size})" if parted else ""
        if parted:
            back = f"np.asarray({_JOINS[kind]}.reduce({name}), {dtype}).reshape({shape})"
            given, shape = "None", (self._blocks(nest), value.size)
            if kind == "sum" and not any(steps) and CODES[value.dtype] == "f4":
                dtype, self.codes[name] = "np.float64", "f8"
        arguments = f"{given}, {shape}, {dtype}"
        made = f"filled({arguments}, {_NUMBERS[kind]})" if fills else f"fresh({arguments})"
        self.results.append(_Result(name, made, back, parted))
        return Place(name, start), []

    def _given(self) -> str:
        return f"out[{len(self.results)}]"

    def loop(self, nest: Nest) -> str:
        """Return the loop as a function, for Numba."""
        step = ["step"] if self._in_parts() else []
        rows = [f"def {LOOP}({', '.join(['start', 'stop', *step, *self._flat()])}):"]
        rows += ["    part = u8(start) // u8(step)"] * len(step)
        rows += [f"    {row}" for row in nest.rows()]
        return "\n".join(rows) + "\n"

    def types(self, nest: Nest) -> tuple[str, ...]:
        """Return what the loop's arguments are, for Numba; where it's shared, behind its ends."""
        ends = () if self.shared(nest) else ("n", "n")
        step = ("n",) if self._in_parts() else ()
        return (*ends, *step, *(self.codes[name] for name in self._flat()))

    def caller(self, nest: Nest) -> str:
        """Return the function that Python calls, with arrays of any layout and memory to fill."""
        none = "None, " * len(self.results)
        rows = [f"def {self.name}({', '.join([*self.inputs.values(), f'out=({none})'])}):"]
        turns, step, shared = nest.sizes[0], self._step(nest), self.shared(nest)
        sharing = f", the outermost's shared by {step}" if shared else ""
        rows.append(f"    # {' · '.join(map(str, nest.sizes))} turns{sharing}")
        rows += [f"    {result.name} = {result.made}" for result in self.results]
        given = [f"{turns}, {step}" if shared else f"0, {turns}"]
        given += [str(step)] if self._in_parts() else []
        given += [f"{name}.ravel()" for name in self._flat()]
        rows.append(f"    {LOOP}({', '.join(given)})")
        backs = [f"handed(out[{i}], {result.back})" for i, result in enumerate(self.results)]
        rows.append(f"    return {', '.join(backs)}")
        return "\n".join(rows) + "\n"

    def _flat(self) -> list[str]:
        results = [result.name for result in self.results]
        return list(dict.fromkeys([*self.inputs.values(), *results]))

    def _in_parts(self) -> bool:
        return any(result.parted for result in self.results)

    # --- sharing the work ---

    def shared(self, nest: Nest) -> bool:
        """Say whether the work is done in parts, which several threads may share."""
        worth = WORTH + JOIN * len(self.joined)
        return self.cost * math.prod(nest.sizes) >= worth and self._step(nest) < nest.sizes[0]

    def _step(self, nest: Nest) -> int:
        """Return how many turns of the outermost loop are a part.

        It depends on the work alone: so results don't depend on who does it.
        """
        turns, turn = nest.sizes[0], math.prod(nest.sizes[1:])
        step = max(int(PART / (self.cost * turn)), -(-turns // _MANY), 1)
        if self.joined:
            step = max(step, -(-turns // max(turns * turn // (8 * max(self.joined)), _FEW)))
        return step

    def _blocks(self, nest: Nest) -> int:
        return -(-nest.sizes[0] // self._step(nest))


def _dtype(value: Value) -> str:
    return "bool" if value.dtype.kind == "b" else f"np.{value.dtype.name}"


# --- calls ----------------------------------------------------------------------------------------
#
# What the callers of loops call: memory to fill.


def fresh(given: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return memory for a result: what is given, if its elements follow each other, or new."""
    if given is not None and given.flags.c_contiguous:
        return given
    return np.empty(shape, dtype)


def filled(given: Any, shape: tuple[int, ...], dtype: Any, number: float) -> Any:
    """Return the same, full of a number."""
    array = fresh(given, shape, dtype)
    array.fill(number)
    return array


def over(given: Any, array: Any) -> Any:
    """Return what a loop is to read and write: the array, if that is what is given, or a copy."""
    return array if given is array and array.flags.c_contiguous else np.array(array, order="C")


def handed(given: Any, made: Any) -> Any:
    """Return a result, which is where it was wanted."""
    if given is None or given is made:
        return made
    given[...] = made
    return given


NAMES = {function.__name__: function for function in (fresh, filled, over, handed)}
"""What a caller finds by name."""
