"""The arrays of a loop of its own, and the function that Python calls to bring and to take them."""

from __future__ import annotations

import math
from typing import NamedTuple

from chainrule.compiler.native.nest import LOOP, RESERVED, Nest, Place
from chainrule.compiler.native.scalars import CODES, scalar
from chainrule.compiler.program import Names, Value

PART = 40_000
"""So many nanoseconds of work are one thread's to do at a time."""

WORTH = 5 * PART
"""With less, to wake a thread costs what it gains: 40 µs, twice that while those of a BLAS spin."""

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
        parted = not steps[0] and self._blocks(nest) > 1
        if parted:
            back = f"np.asarray({name}.{kind}(0), {dtype}).reshape({shape})"
            given, shape = "None", (self._blocks(nest), value.size)
            if kind == "sum" and not any(steps) and CODES[value.dtype] == "f4":
                dtype, self.codes[name] = "np.float64", "f8"
        arguments = f"{given}, {shape}, {dtype}"
        made = f"filled({arguments}, {_NUMBERS[kind]})" if fills else f"fresh({arguments})"
        self.results.append(_Result(name, made, back, parted))
        return Place(name, ""), []

    def _given(self) -> str:
        return f"out[{len(self.results)}]"

    def loop(self, nest: Nest) -> str:
        """Return the loop as a function, for Numba."""
        rows = [f"def {LOOP}({', '.join(['start', 'stop', *self._flat(), *self._parts()])}):"]
        rows += [f"    {row}" for row in nest.rows()]
        return "\n".join(rows) + "\n"

    @property
    def types(self) -> tuple[str, ...]:
        """What the loop's arguments are, for Numba."""
        return ("n", "n", *(self.codes[name] for name in [*self._flat(), *self._parts()]))

    def caller(self, nest: Nest) -> str:
        """Return the function that Python calls, with arrays of any layout and memory to fill."""
        none = "None, " * len(self.results)
        rows = [f"def {self.name}({', '.join([*self.inputs.values(), f'out=({none})'])}):"]
        rows.append(f"    # {' · '.join(map(str, nest.sizes))} turns")
        rows += [f"    {result.name} = {result.made}" for result in self.results]
        flat = ", ".join(f"{name}.ravel()" for name in self._flat())
        turns = nest.sizes[0]
        if self._blocks(nest) == 1:
            rows.append(f"    {LOOP}(0, {turns}, {flat})")
        else:
            parts = "".join(f"{name}, " for name in self._parts())
            rows.append(f"    shared({LOOP}, {turns}, {self._step(nest)}, ({flat},), ({parts}))")
        backs = [f"handed(out[{i}], {result.back})" for i, result in enumerate(self.results)]
        rows.append(f"    return {', '.join(backs)}")
        return "\n".join(rows) + "\n"

    def _flat(self) -> list[str]:
        """Return the arrays that all parts of the work see whole."""
        whole = [result.name for result in self.results if not result.parted]
        return list(dict.fromkeys([*self.inputs.values(), *whole]))

    def _parts(self) -> list[str]:
        return [result.name for result in self.results if result.parted]

    # --- sharing the work ---

    def _step(self, nest: Nest) -> int:
        """Return how many turns of the outermost loop one thread does at a time."""
        turn = self.cost * math.prod(nest.sizes[1:])
        return max(int(PART / turn), 1)

    def _blocks(self, nest: Nest) -> int:
        """Return in how many parts the work is done; so results don't depend on who does them."""
        if self.cost * math.prod(nest.sizes) < WORTH:
            return 1
        return -(-nest.sizes[0] // self._step(nest))


def _dtype(value: Value) -> str:
    return "bool" if value.dtype.kind == "b" else f"np.{value.dtype.name}"
