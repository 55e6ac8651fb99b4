"""Where the values of a small program are: each has its place in memory that all of it shares."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chainrule.compiler.ir.program import Names, Program, Shape, Value
from chainrule.compiler.native.loop_nest import RESERVED, Memory, Nest, Place, merged_axes
from chainrule.compiler.native.scalar_codegen import CODES, literal, small_scalar
from chainrule.compiler.native.strides import Access, Accesses

LARGEST = 1 << 14
"""The most elements of an array of a small program; stacks of a loop's steps may have more."""

_ROOM = 1 << 20  # the most elements of all
_ALIGNED = 16  # elements, so that values begin where vectors may


class UnfitError(Exception):
    """A program is not small, or does what has no loops."""


class Layout:
    """Gives values their places, and writes what moves them."""

    expression = staticmethod(small_scalar)
    parted = False

    def __init__(self, program: Program) -> None:
        taken = RESERVED | {f"memory_{code}" for code in CODES.values()}
        self.names = Names(taken)
        self.calls: set[str] = set()
        self.places: dict[Value, Place] = {}
        self.borrowed: set[Value] = set()  # what is a part of another value's memory
        self.counters: dict[Value, tuple[range, str]] = {}  # numbers of steps, and its own
        self.sizes: Counter[str] = Counter()  # of the memory for each type
        self.constants: dict[Value, Any] = {}  # arrays that are arguments
        for value, array in program.constants.items():
            if array.ndim:
                self.constant(value, array)

    def constant(self, value: Value, array: Any) -> None:
        """Make an array an argument."""
        self.parameter(value, "constant")
        self.constants[value] = array

    def parameter(self, value: Value, stem: str = "in") -> str:
        """Return the name of the argument that holds a value."""
        if value.dtype not in CODES or not 0 < value.size <= LARGEST:
            raise UnfitError(f"{value} is no argument of a small program")
        name = self.names.another(f"{value.hint or 'x'}_{stem}")
        self.places[value] = Place(name, "")
        return name

    def place(self, value: Value) -> Place:
        """Return where a value is."""
        found = self.places.get(value)
        if found is None:
            raise UnfitError(f"{value} is nowhere")
        return found

    def allocate(self, value: Value) -> Place:
        """Return where a value is to be."""
        if value in self.places:
            return self.places[value]
        code = CODES.get(value.dtype)
        if code is None or not value.size:
            raise UnfitError(f"{value} has no place")
        found = self.places[value] = Place(f"memory_{code}", f"u8({self.sizes[code]})")
        self.sizes[code] += -(-value.size // _ALIGNED) * _ALIGNED
        if sum(self.sizes.values()) > _ROOM:
            raise UnfitError("the program is large")
        return found

    def reduced(
        self, value: Value, kind: str, nest: Nest, steps: list[int], fills: bool
    ) -> tuple[Place, list[str]]:
        """Return where a reduction is to be, and the source that fills it with its first number."""
        place, number = self.allocate(value), {"sum": "0", "max": "-INF", "min": "INF"}[kind]
        return place, self.filled(value, f"{CODES[value.dtype]}({number})") if fills else []

    # --- moving ---

    def filled(self, value: Value, number: str) -> list[str]:
        """Return the source that writes a number over a value."""
        place = self.place(value)
        element = Memory(place.array, 0, [1], place.start).element
        return [f"for i in range(u8({value.size})):", f"    {element} = {number}"]

    def copied(self, value: Value, accesses: Accesses, target: Place) -> list[str]:
        """Return the source that copies a value to a place."""
        step, strides = 1, [0] * len(value.shape)
        for axis in reversed(range(len(value.shape))):
            strides[axis] = step
            step *= value.shape[axis]
        return self.moved(value, accesses, target, Access(value, 0, tuple(strides)), value.shape)

    def moved(
        self,
        value: Value,
        accesses: Accesses,
        target: Place,
        region: Access,
        shape: Shape,
        adds: bool = False,
    ) -> list[str]:
        """Return the source that writes a value, broadcast, to a region of a place, or adds it."""
        number = accesses.number(value)
        if number is not None:
            source, strides = literal(number, value.dtype), (0,) * len(shape)
        else:
            access = accesses.of(value).over(shape, value.shape)
            origin, strides = self.place(access.base), access.strides
            if not adds and (origin, access.offset, strides) == (
                target,
                region.offset,
                region.strides,
            ):
                return []
        groups = merged_axes(shape, [list(strides), list(region.strides)])
        nest = Nest([groups_size for groups_size, _ in groups] or [1], parted=False)
        steps = [axis for _, axis in groups]
        to = Memory(
            target.array, region.offset, [region.strides[a] for a in steps] or [0], target.start
        )
        if number is None:
            back = [strides[a] for a in steps] or [0]
            source = Memory(origin.array, access.offset, back, origin.start).element
        nest.before[-1].append(f"{to.element} = {f'{to.element} + {source}' if adds else source}")
        return nest.rows()
