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
from collections.abc import Iterator
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

Array = Any
Shape = tuple[int, ...]

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

_UNPACKED_MAX_TILES = 5
"""Number of tiles up to which contiguous columns are not packed."""

_BLOCK_BYTES = 4 << 20
"""Number of bytes of a block of rows, which stay in a core's cache for all panels."""

_MIN_ITERATIONS = 16
"""Number of iterations that a product is divided into for threads, if it has enough rows."""

_MAX_PLANS = 64
"""Number of memory layouts of the operands for which plans are cached."""

_LOOP = """
def loop(start, stop, a, b, c, plan):
    packed = {buffer}()
    rows, columns, depth, panel_depth = plan[0], plan[1], plan[2], plan[3]
    blocks, block_rows, panels, inner = plan[4], plan[5], plan[6], plan[7]
    a_row, a_column, b_row, b_column, c_row = plan[8], plan[9], plan[10], plan[11], plan[12]
    for iteration in range(start, stop):
        begin = iteration % blocks * block_rows
        end = min(begin + block_rows, rows)
        column = iteration // blocks % panels * {panel_columns}
        width = min({panel_columns}, columns - column)
        padded = {vector} if width <= {vector} else {panel_columns}
        matrix = iteration // (panels * blocks)
        a_at = matrix // inner * plan[13] + matrix % inner * plan[14]
        b_at = matrix // inner * plan[15] + matrix % inner * plan[16] + column * b_column
        c_at = matrix * rows * c_row + column
        unpacked = b_column == 1 and width == {panel_columns} and end - begin <= {unpacked_rows}
        for k in range(0, depth, panel_depth):
            terms = min(panel_depth, depth - k)
            source = b_at + k * b_row
            if unpacked:
                panel, panel_at, panel_row = b, source, b_row
            else:
                panel, panel_at, panel_row = packed, 0, padded
                p = 0
                while b_row == 1 and p + {vector} <= terms:
                    for q in range(0, padded, {vector}):
                        origin, target = source + p + q * b_column, p * padded + q
                        count = min(width - q, {vector})
                        {transpose}(b, origin, b_column, count, packed, target, padded)
                    p += {vector}
                for p in range(p, terms):
                    origin, target = source + p * b_row, p * padded
                    if b_column == 1:
                        for q in range(0, padded, {vector}):
                            {copy}(b, origin + q, width - q, packed, target + q)
                    else:
                        for q in range(padded):
                            packed[target + q] = b[origin + min(q, width - 1) * b_column]
            i = begin
            while i < end:
                a_origin = a_at + i * a_row + k * a_column
                c_origin = c_at + i * c_row
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


@functools.cache
def kernel_for(code: str, registers: Registers) -> GemmKernel:
    """Return the machine code for products of a dtype."""
    itemsize = np.dtype(code).itemsize
    vector_elements = registers.vector // itemsize
    panel_columns = 2 * vector_elements
    panel_depth = _PANEL_BYTES // (panel_columns * itemsize)
    helpers = (
        f"buffer_{code}_{panel_columns * panel_depth}",
        f"copy_{code}_{vector_elements}",
        f"transpose_{code}_{vector_elements}",
    )
    text = _LOOP.format(
        **{name.partition("_")[0]: name for name in helpers},
        panel_columns=panel_columns,
        vector=vector_elements,
        unpacked_rows=_UNPACKED_MAX_TILES * registers.heights[0],
        tiles=tile_calls(code, registers),
    )
    task = Task(text, (code, code, code, "i8"), long=False)
    return GemmKernel(task, text, panel_columns, panel_depth, registers.heights)


def tile_calls(
    code: str, registers: Registers, heights: tuple[int, ...] = (), narrow: tuple[int, ...] = ()
) -> str:
    """Return the source that computes the next tile of rows, and advances `i`.

    `heights` are those of tiles of two vectors, `narrow` those of a single vector, of which there
    is only one by default, since each takes some 10 ms to compile.
    """
    vector_elements = registers.vector // np.dtype(code).itemsize
    heights = heights or registers.heights
    return "\n".join(
        _TILE.format(when=when, name=name, height=height).strip("\n")
        for when, name, height in _tiles(code, vector_elements, heights, narrow or heights[:1])
    )


def _tiles(
    code: str, vector_elements: int, heights: tuple[int, ...], narrow: tuple[int, ...]
) -> Iterator[tuple[str, str, int]]:
    """Yield the condition for each tile, its name and its number of rows."""
    word = "if"
    for vectors, available in ((1, narrow), (2, heights)):
        for height, lower in itertools.pairwise([*available, 0]):
            conditions = [f"width <= {vector_elements}"] * (vectors == 1)
            if lower:  # two of the lower tiles compute less if they suffice
                conditions += [f"remaining > {lower}"]
                conditions += [f"not {height} < remaining <= {2 * lower}"]
            when = f"{word} {' and '.join(conditions)}" if conditions else "else"
            yield when, f"tile_{code}_{vector_elements}_{height}x{vectors}", height
            word = "elif"


class _Plan(NamedTuple):
    """Loop bounds of a product: parallel iterations, iterations at a time, and loop parameters."""

    iterations: int
    step: int
    numbers: Array


class Product:
    """The product of matrices, or stacks of matrices, of known shapes."""

    def __init__(self, a: Shape, b: Shape, dtype: Any, registers: Registers) -> None:
        self.stack = np.broadcast_shapes(a[:-2], b[:-2])
        self.rows, self.depth, self.columns = a[-2], a[-1], b[-1]
        self.dtype = np.dtype(dtype)
        self.kernel = kernel_for(CODES[self.dtype], registers)
        self.shape = (*self.stack, self.rows, self.columns)
        self.work = math.prod(self.shape) * self.depth
        self._plans: dict[Any, _Plan | None] = {}  # by the strides of the operands

    def __call__(self, a: Array, b: Array, out: Any = None) -> Array:
        """Return the product, stored in `out[0]` if given."""
        given = None if out is None else out[0]
        strides = (a.strides, b.strides)
        try:
            plan = self._plans[strides]
        except KeyError:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            plan = self._plans[strides] = self._plan(a, b)
        if plan is None:
            return np.matmul(a, b, out=given)
        result = fresh(given, self.shape, self.dtype)
        self.kernel.task.run(
            plan.iterations, plan.step, self.work >= WAKE_MIN_MULTIPLIES, a, b, result, plan.numbers
        )
        return to_out(given, result)

    def _plan(self, a: Array, b: Array) -> _Plan | None:
        """Return the plan for operands of these strides; None leaves the product to NumPy."""
        strides_a, strides_b = (self._element_strides(x) for x in (a, b))
        if strides_a is None or strides_b is None:
            return None
        groups = collapse_axes(self.stack, [strides_a, strides_b])
        if len(groups) > 2:
            return None
        axes = [axis for _, axis in groups]
        inner = groups[-1][0] if groups else 1
        stack_strides = [
            number
            for element_strides in (strides_a, strides_b)
            for number in ([0] * (2 - len(axes)) + [element_strides[axis] for axis in axes])
        ]
        _, _, panel_columns, max_depth, heights = self.kernel
        panel_depth = -(-self.depth // -(-self.depth // max_depth))
        panels = -(-self.columns // panel_columns)
        matrices = math.prod(self.stack)
        size = self.rows * self.depth * self.dtype.itemsize
        min_blocks = max(_MIN_ITERATIONS // (panels * matrices), size // _BLOCK_BYTES, 1)
        blocks = min(min_blocks, max(self.rows // (2 * heights[0]), 1))
        block_rows = -(-self.rows // blocks)
        remainder = block_rows % heights[0]
        if remainder:  # round up to whole tiles
            block_rows += min(height for height in heights if height >= remainder) - remainder
        blocks = -(-self.rows // block_rows)
        numbers = [
            self.rows,
            self.columns,
            self.depth,
            panel_depth,
            blocks,
            block_rows,
            panels,
            inner,
        ]
        numbers += [*strides_a[-2:], *strides_b[-2:], self.columns, *stack_strides]
        iterations = matrices * blocks * panels
        return _Plan(
            iterations,
            1 if self.work >= PARALLEL_MIN_MULTIPLIES else iterations,
            np.array(numbers, np.int64),
        )

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
