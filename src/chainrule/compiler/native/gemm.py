"""Products of matrices as machine code, shared by threads that wait awake.

OpenBLAS multiplies as quickly where it has the right kernels, but it wakes its threads for every
product, and may have the kernels of an older processor (see `chainrule.blas`). Of one matrix a
panel of columns is packed; the elements of the other are read where they are. So both may be
transposed. Each element is the sum of the same terms in the same order, whoever computes it.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import ndarray, numpy_xp
from chainrule.backend.extensions import Namespace, kernels_of
from chainrule.blas import openblas
from chainrule.blas.cpu import AVX2, AVX512
from chainrule.blas.startup import is_disabled
from chainrule.compiler.ir.program import Op, Program
from chainrule.compiler.native.call_wrapper import fresh, handed
from chainrule.compiler.native.loop_nest import merged_axes
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.threads.tasks import Task
from chainrule.compiler.passes.regions import with_regions

Array = Any
Shape = tuple[int, ...]

WORTH = 1 << 15
"""With so many multiplications, a product takes longer than it takes to call it."""

LEAST = 4
"""With fewer rows, columns or terms, it's memory that takes the time."""

SHARED = 1 << 19
"""With so many, it is worth a second thread that is awake."""

LARGE = 1 << 22
"""With so many, it is worth waking one."""

_PACKED = 40 << 10
"""So many bytes of a panel are packed at a time: a core's nearest cache holds them."""

_FEW = 5
"""For so many tiles, columns that lie side by side already aren't packed."""

_NEAR = 4 << 20
"""So many bytes of rows stay in a core's own cache while they meet one panel after the other."""

_TURNS = 16
"""Threads get so many turns to share, at least, where rows are many enough."""

_MOST = 64
"""So many layouts of the same matrices are remembered."""

_LOOP = """
def loop(start, stop, a, b, c, plan):
    packed = {room}()
    rows, columns, depth, deep = plan[0], plan[1], plan[2], plan[3]
    blocks, chunk, panels, inner = plan[4], plan[5], plan[6], plan[7]
    a_row, a_column, b_row, b_column, c_row = plan[8], plan[9], plan[10], plan[11], plan[12]
    for turn in range(start, stop):
        begin = turn % blocks * chunk
        end = min(begin + chunk, rows)
        column = turn // blocks % panels * {wide}
        width = min({wide}, columns - column)
        across = {narrow} if width <= {narrow} else {wide}
        matrix = turn // (panels * blocks)
        a_at = matrix // inner * plan[13] + matrix % inner * plan[14]
        b_at = matrix // inner * plan[15] + matrix % inner * plan[16] + column * b_column
        c_at = matrix * rows * c_row + column
        straight = b_column == 1 and width == {wide} and end - begin <= {few}
        for k in range(0, depth, deep):
            terms = min(deep, depth - k)
            source = b_at + k * b_row
            if straight:
                panel, panel_at, panel_row = b, source, b_row
            else:
                panel, panel_at, panel_row = packed, 0, across
                p = 0
                while b_row == 1 and p + {narrow} <= terms:
                    for q in range(0, across, {narrow}):
                        here, to = source + p + q * b_column, p * across + q
                        {turned}(b, here, b_column, min(width - q, {narrow}), packed, to, across)
                    p += {narrow}
                for p in range(p, terms):
                    here, to = source + p * b_row, p * across
                    if b_column == 1:
                        for q in range(0, across, {narrow}):
                            {copied}(b, here + q, width - q, packed, to + q)
                    else:
                        for q in range(across):
                            packed[to + q] = b[here + min(q, width - 1) * b_column]
            i = begin
            while i < end:
                at = a_at + i * a_row + k * a_column
                to = c_at + i * c_row
                left = end - i
{tiles}
"""
_TILE = """
                {when}:
                    {name}(
                        a, at, a_row, a_column, panel, panel_at, panel_row, terms,
                        c, to, c_row, min(left, {height}), width, k
                    )
                    i += {height}
"""


class Registers(NamedTuple):
    """What a processor has for the sums of a tile: vectors of so many bytes, and rows of two."""

    vector: int
    heights: tuple[int, ...]


@functools.cache
def registers() -> Registers | None:
    """Return what this processor has, None where products are left to NumPy."""
    if openblas.loaded() is None or is_disabled(
        os.environ
    ):  # MKL and Accelerate see to it themselves
        return None
    features = openblas.features()
    if features >= AVX512:
        return Registers(64, (14, 8))
    return Registers(32, (6, 4)) if features >= AVX2 else None


class Kind(NamedTuple):
    """The machine code for products of a type, and how it cuts them."""

    task: Task
    text: str
    wide: int  # columns of a panel
    deep: int  # terms at a time
    heights: tuple[int, ...]  # rows of its tiles


@functools.cache
def kind_of(code: str, registers: Registers) -> Kind:
    """Return the machine code for products of a type."""
    itemsize = np.dtype(code).itemsize
    narrow = registers.vector // itemsize
    wide = 2 * narrow
    deep = _PACKED // (wide * itemsize)
    helpers = (f"room_{code}_{wide * deep}", f"copied_{code}_{narrow}", f"turned_{code}_{narrow}")
    tiles = [*_tiles(code, narrow, registers.heights)]
    text = _LOOP.format(
        **{name.partition("_")[0]: name for name in helpers},
        wide=wide,
        narrow=narrow,
        few=_FEW * registers.heights[0],
        tiles="\n".join(
            _TILE.format(when=w, name=name, height=n).strip("\n") for w, name, n in tiles
        ),
    )
    calls = frozenset([*helpers, *(name for _, name, _ in tiles)])
    task = Task(text, (code, code, code, "i8"), calls, long=False)
    return Kind(task, text, wide, deep, registers.heights)


def _tiles(code: str, narrow: int, heights: tuple[int, ...]) -> Iterator[tuple[str, str, int]]:
    """Yield when a tile is the right one, its name, and how many rows it has.

    Of one vector there is one, since each takes some hundredths of a second to compile.
    """
    tile = f"tile_{code}_{narrow}"
    yield f"if width <= {narrow}", f"{tile}_{heights[0]}x1", heights[0]
    for height, lower in itertools.pairwise([*heights, 0]):
        # Where two of the lower ones do, they compute less.
        when = f"elif left > {lower} and not {height} < left <= {2 * lower}" if lower else "else"
        yield when, f"{tile}_{height}x2", height


class _Plan(NamedTuple):
    """How a product is computed: in how many turns, how many at a time, by which numbers."""

    turns: int
    step: int
    numbers: Array


class Product:
    """The product of matrices, or stacks of them, of known shapes."""

    def __init__(self, a: Shape, b: Shape, dtype: Any, registers: Registers) -> None:
        self.stack = np.broadcast_shapes(a[:-2], b[:-2])
        self.rows, self.depth, self.columns = a[-2], a[-1], b[-1]
        self.dtype = np.dtype(dtype)
        self.kind = kind_of(CODES[self.dtype], registers)
        self.shape = (*self.stack, self.rows, self.columns)
        self.work = math.prod(self.shape) * self.depth
        self._plans: dict[Any, _Plan | None] = {}  # by the strides of what is multiplied

    def __call__(self, a: Array, b: Array, out: Any = None) -> Array:
        """Return the product, in the first of the arrays given for it."""
        given = None if out is None else out[0]
        strides = (a.strides, b.strides)
        try:
            plan = self._plans[strides]
        except KeyError:
            if len(self._plans) >= _MOST:
                self._plans.clear()
            plan = self._plans[strides] = self._plan(a, b)
        if plan is None:
            return np.matmul(a, b, out=given)
        made = fresh(given, self.shape, self.dtype)
        self.kind.task.run(plan.turns, plan.step, self.work >= LARGE, a, b, made, plan.numbers)
        return handed(given, made)

    def _plan(self, a: Array, b: Array) -> _Plan | None:
        """Return turns, how many at a time, and the loop's numbers; None leaves it to NumPy."""
        steps_a, steps_b = (self._steps(x) for x in (a, b))
        if steps_a is None or steps_b is None:
            return None
        groups = merged_axes(self.stack, [steps_a, steps_b])
        if len(groups) > 2:
            return None
        axes = [axis for _, axis in groups]
        inner = groups[-1][0] if groups else 1
        between = [
            number
            for steps in (steps_a, steps_b)
            for number in ([0] * (2 - len(axes)) + [steps[axis] for axis in axes])
        ]
        _, _, wide, most, heights = self.kind
        deep = -(-self.depth // -(-self.depth // most))
        panels = -(-self.columns // wide)
        matrices = math.prod(self.stack)
        size = self.rows * self.depth * self.dtype.itemsize
        wanted = max(_TURNS // (panels * matrices), size // _NEAR, 1)
        blocks = min(wanted, max(self.rows // (2 * heights[0]), 1))
        chunk = -(-self.rows // blocks)
        rest = chunk % heights[0]
        if rest:  # fills a tile
            chunk += min(height for height in heights if height >= rest) - rest
        blocks = -(-self.rows // chunk)
        numbers = [self.rows, self.columns, self.depth, deep, blocks, chunk, panels, inner]
        numbers += [*steps_a[-2:], *steps_b[-2:], self.columns, *between]
        turns = matrices * blocks * panels
        return _Plan(turns, 1 if self.work >= SHARED else turns, np.array(numbers, np.int64))

    def _steps(self, x: Array) -> list[int] | None:
        """Return how far elements are apart: of the stack, of a column and of a row."""
        size = self.dtype.itemsize
        missing = len(self.stack) + 2 - x.ndim
        steps = [0] * missing + [
            0 if n == 1 else step for n, step in zip(x.shape, x.strides, strict=True)
        ]
        if any(step % size for step in steps):
            return None
        return [step // size for step in steps]


def product_of(a: Shape, b: Shape, dtype: Any, other: Any) -> Product | None:
    """Return what multiplies such matrices, or stacks of them; None if it is left to NumPy."""
    found = registers()
    if found is None or min(len(a), len(b)) < 2 or a[-1] != b[-2]:
        return None
    if dtype != other or dtype.char not in "fd" or not dtype.isnative:
        return None
    if min(*a[-2:], b[-1]) < LEAST:
        return None
    try:
        return Product(a, b, dtype, found)
    except ValueError:  # stacks that don't fit, of which NumPy tells
        return None


def with_products(program: Program) -> tuple[Program, dict[str, Product]]:
    """Return a program whose large products are machine code, and what it calls."""
    products: dict[str, Product] = {}

    def changed(program: Program) -> Program:
        return program.with_ops([product(op) for op in program.ops])

    def product(op: Op) -> Op:
        if op.regions:
            return with_regions(op, tuple(map(changed, op.regions)))
        if op.function != "np.matmul" or op.kwargs:
            return op
        a, b = op.args
        if op.out.size * a.shape[-1] < WORTH:
            return op
        found = product_of(a.shape, b.shape, a.dtype, b.dtype)
        if found is None:
            return op
        name = f"matmul_{len(products) + 1}"
        products[name] = found
        return Op(f"native.{name}", op.args, {"over": (None,)}, op.outs, op.location)

    return changed(program), products


# --- library --------------------------------------------------------------------------------------
#
# NumPy's namespace with matrix products, and so convolutions, that are machine code.

LIBRARY_WORTH = 1 << 17
"""With so many multiplications, it's worth looking for a product of these shapes."""

_known = functools.lru_cache(256)(product_of)


@functools.cache
def library(worth: int = LIBRARY_WORTH) -> Namespace:
    """Return the namespace: what has fewer multiplications than are `worth` it is NumPy's."""

    def matmul(x: Array, y: Array, out: Array | None = None) -> Array:
        if x.ndim > 1 < y.ndim and x.size * y.shape[-1] >= worth:
            product = _known(x.shape, y.shape, x.dtype, y.dtype)
            if product is not None and x.__class__ is ndarray is y.__class__:
                return product(x, y, None if out is None else (out,))
        return numpy_xp.matmul(x, y) if out is None else np.matmul(x, y, out=out)

    own = {"matmul": matmul}
    return Namespace(np, **vars(numpy_xp) | kernels_of(Namespace(np, **own)) | own)
