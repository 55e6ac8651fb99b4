"""Static memory layout of a small program: the address of each value in shared buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Set
from typing import Any

import numpy as np

from chainrule.compiler.ir.program import Names, Program, Shape, Value
from chainrule.compiler.native.gemm import WAKE_MIN_MULTIPLIES, Plan, Product
from chainrule.compiler.native.loop_nest import RESERVED, Address, Memory, Nest, collapse_axes
from chainrule.compiler.native.scalar_codegen import CODES, literal, scalar_or_libm
from chainrule.compiler.native.strides import Access, Accesses
from chainrule.compiler.native.threads.tasks import SERIAL_WORDS, Task, call_with_team

MAX_ELEMENTS = 1 << 24
"""Largest number of elements of an argument, or of all other values together."""

_ALIGNMENT_ELEMENTS = 16  # values begin at vector boundaries

_MIN_APART = 64
"""Size from which values don't follow each other at once.

Those of 512 float64 would all begin at the same place of a page. A load waits for an earlier store
at the same place of another page, as those of stencils are: 100 steps of waves on 512 points took
280 µs, and take 100.
"""


class UnfitError(Exception):
    """A program is too large, or has operations without native code."""


class LargeError(UnfitError):
    """Arrays are so large that NumPy and the BLAS are as fast."""


class BudgetError(UnfitError):
    """A function would take long to compile: so many milliseconds."""

    def __init__(self, milliseconds: float) -> None:
        super().__init__("the function would take long to compile")
        self.milliseconds = milliseconds


class Products:
    """The products that a function calls, and the words that tell it their tasks and plans."""

    def __init__(self) -> None:
        self.parts: list[tuple[Task, Plan]] = []
        self.size = 0
        self.parallel_work = 0  # of those that threads share

    def add(self, product: Product, plan: Plan, repeats: int) -> int:
        """Add a call; return where its words begin."""
        first = self.size
        self.parts.append((product.kernel.task, plan))
        self.size += 3 + len(plan.numbers)
        if plan.step < plan.iterations:
            self.parallel_work += product.work * repeats
        return first

    def bound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of machine code that is given the words, and a team of threads."""
        if not self.parts:
            return function
        rows = [[t.address(), p.iterations, p.step, *p.numbers] for t, p in self.parts]
        words = np.array([number for row in rows for number in row], np.int64)
        is_shared, is_large = self.parallel_work > 0, self.parallel_work >= WAKE_MIN_MULTIPLIES

        def run(*arguments: Any) -> None:
            if is_shared:
                call_with_team(function, is_large, *arguments, words)
            else:
                function(*arguments, words, SERIAL_WORDS)

        return run


class LoopLines:
    """What a loop computes itself, and the lines that come before it."""

    def __init__(self, computed: Set[Value], length: int) -> None:
        self.computed, self.length = computed, length
        self.before: list[str] = []
        self.packed: dict[Any, Value] = {}  # the packed form of matrices of products


class Layout:
    """Assigns addresses to values, and generates the code that moves them."""

    expression = staticmethod(scalar_or_libm)
    is_split = False
    has_products = True  # whether functions can call those of tiles
    repeats = False  # whether the blocks of a loop stay apart

    def __init__(self, program: Program) -> None:
        taken = RESERVED | {f"memory_{code}" for code in CODES.values()}
        self.names = Names(taken)
        self.is_checked = False  # whether the function says if NumPy has to compute instead
        self.addresses: dict[Value, Address] = {}
        self.aliases: set[Value] = set()  # values in the memory of another value
        self.counters: dict[Value, tuple[range, str]] = {}  # loop counters: range and source
        self.sizes: Counter[str] = Counter()  # elements of the buffer of each type
        self.constants: dict[Value, Any] = {}  # arrays passed as arguments
        self.shared: dict[Any, Value] = {}  # what several operations use
        self.products = Products()
        self.loops: list[LoopLines] = []  # the loops around, outermost first
        for value, array in program.constants.items():
            if array.ndim:
                self.constant(value, array)

    def constant(self, value: Value, array: Any) -> None:
        """Pass a constant array as an argument."""
        self.parameter(value, "constant")
        self.constants[value] = array

    def shared_constant(self, key: Any, array: Any) -> Address:
        """Return the address of a constant array, an argument for all that ask with a key."""
        value = self.shared.get(key)
        if value is None:
            value = self.shared[key] = Value(array.shape, array.dtype)
            self.constant(value, array)
        return self.address(value)

    def scratch(self, size: int, dtype: Any, number: int) -> Address:
        """Return the address of memory for one operation, by its size and number."""
        key = size, dtype, number
        if key not in self.shared:
            self.shared[key] = Value((size,), dtype)
        return self.allocate(self.shared[key])

    def parameter(self, value: Value, stem: str = "in") -> str:
        """Add an argument that holds a value; return its name."""
        if value.size > MAX_ELEMENTS:
            raise LargeError(f"{value} is large")
        if value.dtype not in CODES:
            raise UnfitError(f"{value} cannot be an argument of a small program")
        name = self.names.another(f"{value.hint or 'x'}_{stem}")
        self.addresses[value] = Address(name, "")
        return name

    def address(self, value: Value) -> Address:
        """Return the address of a value."""
        found = self.addresses.get(value)
        if found is None:
            raise UnfitError(f"{value} has no address")
        return found

    def allocate(self, value: Value) -> Address:
        """Return the address of a value, allocated if needed."""
        if value in self.addresses:
            return self.addresses[value]
        code = CODES.get(value.dtype)
        if code is None:
            raise UnfitError(f"{value} cannot be allocated")
        found = self.addresses[value] = self.reserve(value, code)
        return found

    def reserve(self, value: Value, code: str) -> Address:
        """Return the address of unused memory for a value."""
        found = Address(f"memory_{code}", f"u8({self.sizes[code]})")
        count = -(-max(value.size, 1) // _ALIGNMENT_ELEMENTS)
        if value.size >= _MIN_APART:
            count += 1
        self.sizes[code] += count * _ALIGNMENT_ELEMENTS
        if sum(self.sizes.values()) > MAX_ELEMENTS:
            raise LargeError("the program is large")
        return found

    def place(self, places: dict[Value, Address], program: Program) -> None:
        """Let a program compute values where they are stored, if nothing else is their memory."""
        made = {v for op in program.ops for v in op.outs}
        self.addresses |= {v: place for v, place in places.items() if v in made}

    def allocate_reduction(
        self, value: Value, kind: str, nest: Nest, steps: list[int], fills: bool
    ) -> tuple[Address, list[str]]:
        """Return the address of a reduction, and the lines that initialise it."""
        address, number = self.allocate(value), {"sum": "0", "max": "-INF", "min": "INF"}[kind]
        return address, self.fill_lines(value, f"{CODES[value.dtype]}({number})") if fills else []

    def check(self, condition: str, *others: str) -> list[str]:
        """Return the lines that leave the computation to NumPy under a condition, and others."""
        self.is_checked = True
        return [f"if {condition}:", *(f"    {line}" for line in ("status[0] = 1", *others))]

    # --- moving values ---

    def fill_lines(self, value: Value, number: str) -> list[str]:
        """Return the lines that fill a value with a number."""
        address = self.address(value)
        element = Memory(address.array, 0, [1], address.start).element
        return [f"for i in range(u8({value.size})):", f"    {element} = {number}"]

    def copy_lines(self, value: Value, accesses: Accesses, target: Address) -> list[str]:
        """Return the lines that copy a value to an address."""
        step, strides = 1, [0] * len(value.shape)
        for axis in reversed(range(len(value.shape))):
            strides[axis] = step
            step *= value.shape[axis]
        return self.move_lines(
            value, accesses, target, Access(value, 0, tuple(strides)), value.shape
        )

    def move_lines(
        self,
        value: Value,
        accesses: Accesses,
        target: Address,
        region: Access,
        shape: Shape,
        accumulate: bool = False,
    ) -> list[str]:
        """Return the lines that write or add a value, broadcast, to a region at an address."""
        number = accesses.uniform_value(value)
        if number is not None:
            source, strides = literal(number, value.dtype), (0,) * len(shape)
        else:
            access = accesses.of(value).broadcast(shape, value.shape)
            origin, strides = self.address(access.base), access.strides
            if not accumulate and (origin, access.offset, strides) == (
                target,
                region.offset,
                region.strides,
            ):
                return []
        loops = collapse_axes(shape, [list(strides), list(region.strides)])
        nest = Nest([size for size, _ in loops] or [1], is_split=False)
        steps = [axis for _, axis in loops]
        to = Memory(
            target.array, region.offset, [region.strides[a] for a in steps] or [0], target.start
        )
        if number is None:
            source_strides = [strides[a] for a in steps] or [0]
            source = Memory(origin.array, access.offset, source_strides, origin.start).element
        nest.before[-1].append(
            f"{to.element} = {f'{to.element} + {source}' if accumulate else source}"
        )
        return nest.lines()
