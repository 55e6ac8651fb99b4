"""Matrix products as machine code, run by spinning threads.

OpenBLAS is as fast with the right kernels, but it wakes its threads for every product, and may use
the kernels of an older processor (see `chainrule.blas`). Panels of columns of the second matrix are
packed; the elements of the first are read in place, so both may be transposed. The order of
summation does not depend on the thread that computes an element.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.blas import openblas
from chainrule.blas.cpu import AVX2, AVX512
from chainrule.blas.startup import is_disabled
from chainrule.compiler.ir.program import Op, Program
from chainrule.compiler.native.call_wrapper import fresh, to_out
from chainrule.compiler.native.loop_nest import collapse_axes
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.threads.tasks import Task
from chainrule.compiler.passes.regions import with_regions
from chainrule.kernels.threads import get_num_threads

Array = Any
Shape = tuple[int, ...]
Strides = Sequence[int]  # in elements

MIN_MULTIPLIES = 1 << 15
"""Number of multiplications from which a product takes longer than its call."""

MIN_DIMENSION = 4
"""Number of rows, columns and terms from which a product is not bound by memory."""

PARALLEL_MIN_MULTIPLIES = 1 << 19
"""Number of multiplications from which a second spinning thread pays."""

WAKE_MIN_MULTIPLIES = 1 << 22
"""Number of multiplications from which waking a sleeping thread pays."""

_PANEL_BYTES = 40 << 10
"""Number of bytes of a panel that are packed at a time; they fit into the first-level cache."""

_MAX_PANELS = 4
"""Number of panels up to which they are packed together, which reads longer pieces of rows."""

_UNPACKED_MAX_TILES = 5
"""Number of tiles up to which contiguous columns are not packed."""

_BLOCK_BYTES = 4 << 20
"""Number of bytes of a block of rows, which stay in a core's cache for all panels."""

_STRIPS_BYTES = 192 << 10
"""Number of bytes of packed rows, which stay in the second-level cache for all panels."""

_STRIP_TERMS = 128
"""Number of terms of packed rows; with fewer terms, more rows are packed at a time."""

_MIN_ITERATIONS = 16
"""Number of iterations that a product is divided into for threads, if it has enough rows."""

_PACKED_PER_MULTIPLIED = 16.0
"""Time to pack a row or column, in that of multiplying a row by a column."""

_WAIT = 0.25
"""Part of an iteration during which a thread waits for another, which began later."""

_IN_PLACE, _PACKS_ONLY, _IS_PACKED = 1, 2, 3
"""Values of `packing`: the second matrix is read in place, packed and stored, or packed already."""

_MAX_PLANS = 64
"""Number of memory layouts of the operands for which plans are cached."""

_LOOP = """
def pack_panels(b, at, b_row, b_column, columns, terms, panels, to):
    \"\"\"Pack columns of a matrix that begins at an index: panels, one after the other.\"\"\"
    full = columns // {panel_columns} * {panel_columns}
    first = terms // {vector} * {vector} if b_row == 1 else 0
    for column in range(0, columns, {vector} if b_row == 1 else columns):
        panel = column // {panel_columns} * {panel_columns}
        step = {vector} if columns - panel <= {vector} else {panel_columns}
        for p in range(0, first, {vector}):
            origin, target = at + column * b_column + p, to + panel * terms + column - panel
            count = min(columns - column, {vector})
            {transpose}(b, origin, b_column, count, panels, target + p * step, step)
    for p in range(first, terms if b_column == 1 else 0):
        origin, target = at + p * b_row, to + p * {panel_columns}
        for column in range(0, full, {panel_columns}):
            {copy}(b, origin + column, {vector}, panels, target)
            {copy}(b, origin + column + {vector}, {vector}, panels, target + {vector})
            target += {panel_columns} * terms
    step = {vector} if columns - full <= {vector} else {panel_columns}
    for p in range(first, terms if b_column == 1 and full < columns else 0):
        origin, target = at + full + p * b_row, to + full * terms + p * step
        for q in range(0, step, {vector}):
            {copy}(b, origin + q, columns - full - q, panels, target + q)
    for p in range(first, 0 if b_column == 1 else terms):
        for column in range(columns):
            panel = column // {panel_columns} * {panel_columns}
            step = {vector} if columns - panel <= {vector} else {panel_columns}
            target = to + panel * terms + p * step + column - panel
            panels[target] = b[at + p * b_row + column * b_column]

def pack_strips(a, at, a_column, rows, terms, strips, size):
    \"\"\"Pack rows that are columns in memory: strips of a tile's rows.\"\"\"
    for p in range(terms):
        origin, target, i = at + p * a_column, p * {strip_rows}, 0
        while i + {strip_rows} <= rows:
            for q in range(0, {strip_rows}, {vector}):
                {copy}(a, origin + i + q, {vector}, strips, target + q)
            i += {height}
            target += size
        while i < rows:
            for q in range(0, {strip_rows}, {vector}):
                {copy}(a, origin + i + q, rows - i - q, strips, target + q)
            i += {height}
            target += size

def loop(start, stop, left, right, c, plan):
    panels, strips = {buffer}(), {strips}()
    rows, columns, depth, block_terms = plan[0], plan[1], plan[2], plan[3]
    row_blocks, block_rows, column_blocks, block_columns = plan[4], plan[5], plan[6], plan[7]
    left_row, left_column, b_row, b_column = plan[8], plan[9], plan[10], plan[11]
    c_row, inner, has_strips = plan[12], plan[13], plan[14]
    packing, group_columns = plan[19], plan[20]
    slots = (columns + {panel_columns} - 1) // {panel_columns} * {panel_columns}
    for iteration in range(start, stop):
        begin = iteration % row_blocks * block_rows
        end = min(begin + block_rows, rows)
        first = iteration // row_blocks % column_blocks * block_columns
        last = min(first + block_columns, columns)
        matrix = iteration // (row_blocks * column_blocks)
        left_at = matrix // inner * plan[15] + matrix % inner * plan[16]
        right_at = matrix // inner * plan[17] + matrix % inner * plan[18]
        for k in range(0, depth, block_terms):
            terms = min(block_terms, depth - k)
            size = terms * {strip_rows} + {padding}
            if has_strips:
                at = left_at + begin + k * left_column
                pack_strips(left, at, left_column, end - begin, terms, strips, size)
            for group in range(first, last, group_columns):
                group_end = min(group + group_columns, last)
                at = right_at + group * b_column + k * b_row
                b, panels_at, stays = panels, 0, 0
                if packing == {is_packed}:
                    b, panels_at = right, k * slots + group * terms
                elif packing == {packs_only}:
                    at_slot = k * slots + group * terms
                    pack_panels(right, at, b_row, b_column, group_end - group, terms, c, at_slot)
                elif packing == {in_place} and group_end - group == {panel_columns}:
                    b, panels_at, stays = right, at, 1
                else:
                    pack_panels(right, at, b_row, b_column, group_end - group, terms, panels, 0)
                for column in range(group, group_end, {panel_columns}):
                    width = min({panel_columns}, columns - column)
                    panel, panel_at = b, panels_at + (column - group) * terms
                    panel_row = {vector} if width <= {vector} else {panel_columns}
                    panel_row = b_row if stays else panel_row
                    i = begin
                    while i < end:
                        if has_strips:
                            a, a_origin = strips, (i - begin) // {height} * size
                            a_row, a_column = 1, {strip_rows}
                        else:
                            a, a_origin = left, left_at + i * left_row + k * left_column
                            a_row, a_column = left_row, left_column
                        c_origin = (matrix * rows + i) * c_row + column
                        remaining = end - i
{tiles}
"""
_TILE = """
                {when}:
                    {name}(
                        a, a_origin, a_row, a_column, panel, panel_at, panel_row, terms,
                        c, c_origin, c_row, min(remaining, {height}), width, k
                    )
                    i += {height}
"""


class Registers(NamedTuple):
    """Register blocking of a processor: bytes of a vector, and heights of tiles of two vectors."""

    vector: int
    heights: tuple[int, ...]


@functools.cache
def registers() -> Registers | None:
    """Return the register blocking of this processor, None if products are left to NumPy."""
    if openblas.loaded() is None or is_disabled(
        os.environ
    ):  # MKL and Accelerate see to it themselves
        return None
    features = openblas.features()
    if features >= AVX512:
        return Registers(64, (14, 8))
    return Registers(32, (6, 4)) if features >= AVX2 else None


class GemmKernel(NamedTuple):
    """The machine code for products of a dtype, and its blocking."""

    task: Task
    text: str
    panel_columns: int
    panel_depth: int  # terms that are packed at a time
    heights: tuple[int, ...]  # rows of the tiles
    max_strips: int  # tiles whose rows are packed at a time


@functools.cache
def kernel_for(code: str, registers: Registers) -> GemmKernel:
    """Return the machine code for products of a dtype."""
    itemsize = np.dtype(code).itemsize
    vector_elements = registers.vector // itemsize
    panel_columns = 2 * vector_elements
    panel_depth = _PANEL_BYTES // (panel_columns * itemsize)
    height = registers.heights[0]
    strip_rows = -(-height // vector_elements) * vector_elements
    # The padding avoids that all strips are in the same sets of a cache.
    max_strips = _STRIPS_BYTES // itemsize // (_STRIP_TERMS * strip_rows + panel_columns)
    strips_size = max_strips * (_STRIP_TERMS * strip_rows + panel_columns)
    helpers = (
        f"buffer_{code}_{panel_columns * panel_depth}",
        f"copy_{code}_{vector_elements}",
        f"transpose_{code}_{vector_elements}",
    )
    text = _LOOP.format(
        **{name.partition("_")[0]: name for name in helpers},
        strips=f"buffer_{code}_{strips_size}",
        panel_columns=panel_columns,
        vector=vector_elements,
        height=height,
        strip_rows=strip_rows,
        packs_only=_PACKS_ONLY,
        is_packed=_IS_PACKED,
        in_place=_IN_PLACE,
        padding=panel_columns,
        tiles=textwrap.indent(tile_calls(code, registers, unless="has_strips"), " " * 8),
    )
    task = Task(text, (code, code, code, "i8"), long=False)
    return GemmKernel(task, text, panel_columns, panel_depth, registers.heights, max_strips)


def tile_calls(
    code: str,
    registers: Registers,
    heights: tuple[int, ...] = (),
    narrow: tuple[int, ...] = (),
    unless: str = "",
) -> str:
    """Return the source that computes the next tile of rows, and advances `i`.

    `heights` are those of tiles of two vectors, `narrow` those of a single vector, of which there
    is only one by default, since each takes some 10 ms to compile. Two low tiles take the place of
    a high and a low one if they suffice, `unless` a condition holds.
    """
    vector_elements = registers.vector // np.dtype(code).itemsize
    heights = heights or registers.heights
    return "\n".join(
        _TILE.format(when=when, name=name, height=height).strip("\n")
        for when, name, height in _tiles(
            code, vector_elements, heights, narrow or heights[:1], unless
        )
    )


def _tiles(
    code: str,
    vector_elements: int,
    heights: tuple[int, ...],
    narrow: tuple[int, ...],
    unless: str,
) -> Iterator[tuple[str, str, int]]:
    """Yield the condition for each tile, its name and its number of rows."""
    word = "if"
    for vectors, available in ((1, narrow), (2, heights)):
        for height, lower in itertools.pairwise([*available, 0]):
            conditions = [f"width <= {vector_elements}"] * (vectors == 1)
            if lower:
                pair = f"not {height} < remaining <= {2 * lower}"
                conditions += [f"remaining > {lower}"]
                conditions += [f"({unless} or {pair})" if unless else pair]
            when = f"{word} {' and '.join(conditions)}" if conditions else "else"
            yield when, f"tile_{code}_{vector_elements}_{height}x{vectors}", height
            word = "elif"


class Plan(NamedTuple):
    """Loop bounds of a product: parallel iterations, iterations at a time, and loop parameters."""

    iterations: int
    step: int
    numbers: list[int]


class Product:
    """The product of matrices, or stacks of matrices, of known shapes."""

    def __init__(self, a: Shape, b: Shape, dtype: Any, registers: Registers) -> None:
        self.stack = np.broadcast_shapes(a[:-2], b[:-2])
        self.rows, self.depth, self.columns = a[-2], a[-1], b[-1]
        self.dtype = np.dtype(dtype)
        self.registers, self.kernel = registers, kernel_for(CODES[self.dtype], registers)
        self.shape = (*self.stack, self.rows, self.columns)
        self.work = math.prod(self.shape) * self.depth
        self._plans: dict[Any, tuple[int, int, Array] | None] = {}  # by the operands' strides

    def __reduce__(self) -> Any:
        a, b = (*self.stack, self.rows, self.depth), (*self.stack, self.depth, self.columns)
        return Product, (a, b, self.dtype, self.registers)

    def __call__(self, a: Array, b: Array, out: Any = None) -> Array:
        """Return the product, stored in `out[0]` if given."""
        given = None if out is None else out[0]
        strides = (a.strides, b.strides, get_num_threads())
        try:
            plan = self._plans[strides]
        except KeyError:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = self._plans[strides] = self._plan_of(a, b)
        if plan is None:
            return np.matmul(a, b, out=given)
        iterations, step, parameters = plan
        result = fresh(given, self.shape, self.dtype)
        self.kernel.task.run(
            iterations, step, self.work >= WAKE_MIN_MULTIPLIES, a, b, result, parameters
        )
        return to_out(given, result)

    def _plan_of(self, a: Array, b: Array) -> tuple[int, int, Array] | None:
        """Return the plan for two arrays; None leaves the product to NumPy."""
        strides_a, strides_b = self._element_strides(a), self._element_strides(b)
        if strides_a is None or strides_b is None:
            return None
        plan = self.plan(strides_a, strides_b)
        return plan and (plan.iterations, plan.step, np.array(plan.numbers, np.int64))

    def plan(self, strides_a: Strides, strides_b: Strides, packed: bool = False) -> Plan | None:
        """Return the plan for operands of these strides, None if they have too many axes.

        If it is `packed`, the second matrix is the result of `packing_plan`.
        """
        groups = collapse_axes(self.stack, [list(strides_a), list(strides_b)])
        if len(groups) > 2:
            return None
        axes = [axis for _, axis in groups]
        inner = groups[-1][0] if groups else 1
        stack_strides = [
            number
            for strides in (strides_a, strides_b)
            for number in ([0] * (2 - len(axes)) + [strides[axis] for axis in axes])
        ]
        has_strips = self._has_strips(*strides_a[-2:]) and not packed
        rows, columns = self._strip_blocks() if has_strips else self._blocks()
        blocks = -(-self.rows // rows), -(-self.columns // columns)
        terms = self._terms(has_strips)
        numbers = [self.rows, self.columns, self.depth, terms]
        numbers += [blocks[0], rows, blocks[1], columns]
        numbers += [*strides_a[-2:], *strides_b[-2:], self.columns, inner, has_strips]
        numbers += [*stack_strides, self._packing(rows, strides_b[-1], packed), self._group(terms)]
        iterations = math.prod(self.stack) * math.prod(blocks)
        step = 1 if self.work >= PARALLEL_MIN_MULTIPLIES else iterations
        return Plan(iterations, step, numbers)

    @property
    def packed_size(self) -> int:
        """The number of elements of the second matrix when it is packed."""
        width = self.kernel.panel_columns
        return self.depth * -(-self.columns // width) * width

    def packing_plan(self, strides_b: Strides) -> Plan:
        """Return the plan that packs the second matrix, without a stack, for `plan`."""
        columns = self.columns
        terms = self._terms(has_strips=False)
        numbers = [0, columns, self.depth, terms, 1, 0, 1, columns]
        numbers += [0, 0, *strides_b, columns, 1, 0, 0, 0, 0, 0, _PACKS_ONLY, self._group(terms)]
        return Plan(1, 1, numbers)

    def _packing(self, rows: int, column_step: int, packed: bool) -> int:
        """Return how iterations with a number of rows read the second matrix."""
        if packed:
            return _IS_PACKED
        is_low = rows <= _UNPACKED_MAX_TILES * self.kernel.heights[0]
        return _IN_PLACE if is_low and column_step == 1 else 0

    def _group(self, terms: int) -> int:
        """Return the number of columns that are packed together: panels that fit in the buffer."""
        panels = max(min(self.kernel.panel_depth // terms, _MAX_PANELS), 1)
        return panels * self.kernel.panel_columns

    def _terms(self, has_strips: bool) -> int:
        """Return the number of terms that are packed at a time: of equal parts."""
        limit = _STRIP_TERMS if has_strips else self.kernel.panel_depth
        return -(-self.depth // -(-self.depth // limit))

    def _has_strips(self, row_step: int, column_step: int) -> bool:
        """Return whether the rows of the first matrix are packed in strips, as tiles read them.

        Columns in memory order would be read with large steps. Packing does not pay for a single
        panel, or if the elements of a tile's rows stay in the first-level cache.
        """
        is_large = self.rows * self.depth * self.dtype.itemsize > _PANEL_BYTES // 2
        has_panels = self.columns > self.kernel.panel_columns
        return row_step == 1 != column_step and has_panels and is_large

    def _blocks(self) -> tuple[int, int]:
        """Return the rows and columns of an iteration: a panel, and rows that stay in a cache."""
        _, _, panel_columns, _, heights, _ = self.kernel
        panels = -(-self.columns // panel_columns)
        size = self.rows * self.depth * self.dtype.itemsize
        least = max(_MIN_ITERATIONS // (panels * math.prod(self.stack)), size // _BLOCK_BYTES, 1)
        blocks = min(least, max(self.rows // (2 * heights[0]), 1))
        rows = -(-self.rows // blocks)
        remainder = rows % heights[0]
        if remainder:  # round up to whole tiles
            rows += min(height for height in heights if height >= remainder) - remainder
        return rows, panel_columns

    def _strip_blocks(self) -> tuple[int, int]:
        """Return the rows and columns of an iteration that packs rows: many of both."""
        height, panel_columns = self.kernel.heights[0], self.kernel.panel_columns
        strips, panels = -(-self.rows // height), -(-self.columns // panel_columns)
        threads = get_num_threads() if self.work >= PARALLEL_MIN_MULTIPLIES else 1
        least, stack = -(-strips // self.kernel.max_strips), math.prod(self.stack)

        def size(blocks: tuple[int, int]) -> tuple[int, int]:
            return -(-strips // blocks[0]) * height, -(-panels // blocks[1]) * panel_columns

        def duration(blocks: tuple[int, int]) -> float:
            rows, columns = size(blocks)
            turns = -(-stack * math.prod(blocks) // threads) + _WAIT * (threads > 1)
            return turns * (rows * columns + _PACKED_PER_MULTIPLIED * (rows + columns))

        row_blocks = range(least, min(least + 2 * threads, strips) + 1)
        column_blocks = range(1, min(threads, panels) + 1)
        return size(min(itertools.product(row_blocks, column_blocks), key=duration))

    def _element_strides(self, x: Array) -> list[int] | None:
        """Return strides in elements, with broadcast stack axes; None if they are not integers."""
        size = self.dtype.itemsize
        missing = len(self.stack) + 2 - x.ndim
        element_strides = [0] * missing + [
            0 if n == 1 else step for n, step in zip(x.shape, x.strides, strict=True)
        ]
        if any(step % size for step in element_strides):
            return None
        return [step // size for step in element_strides]


def make_product(a: Shape, b: Shape, dtype: Any, other_dtype: Any) -> Product | None:
    """Return the product of matrices of these shapes, None if it is left to NumPy."""
    blocking = registers()
    if blocking is None or min(len(a), len(b)) < 2 or a[-1] != b[-2]:
        return None
    if dtype != other_dtype or dtype.char not in "fd" or not dtype.isnative:
        return None
    if min(*a[-2:], b[-1]) < MIN_DIMENSION:
        return None
    try:
        return Product(a, b, dtype, blocking)
    except ValueError:  # stacks that don't broadcast: NumPy raises
        return None


def lower_products(program: Program) -> tuple[Program, dict[str, Product]]:
    """Return a program whose large products are machine code, and the products that it calls."""
    products: dict[str, Product] = {}

    def with_calls(program: Program) -> Program:
        return program.with_ops([product(op) for op in program.ops])

    def product(op: Op) -> Op:
        if op.regions:
            return with_regions(op, tuple(map(with_calls, op.regions)))
        if op.function != "np.matmul" or op.kwargs:
            return op
        a, b = op.args
        if op.out.size * a.shape[-1] < MIN_MULTIPLIES:
            return op
        compiled = make_product(a.shape, b.shape, a.dtype, b.dtype)
        if compiled is None:
            return op
        name = f"matmul_{len(products) + 1}"
        products[name] = compiled
        return Op(f"native.{name}", op.args, {"over": (None,)}, op.outs, op.location)

    return with_calls(program), products
