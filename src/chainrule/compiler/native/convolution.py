"""Convolutions as machine code: matrix products whose columns are packed from images.

The columns of im2col exist only as panels in the first-level cache, one at a time: an implicit
matrix product, as in Chetlur et al., "cuDNN: efficient primitives for deep learning", 2014. Images
are padded first, and with a stride divided into its phases, so a shift by one element of the kernel
is a constant offset in memory. With few outputs for each group, as in depthwise convolution, a
product would compute rows of zeros: shifted images are added up instead.

The order of summation does not depend on the number of threads.
"""

from __future__ import annotations

import functools
import math
import textwrap
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.native.gemm import (
    PARALLEL_MIN_MULTIPLIES,
    WAKE_MIN_MULTIPLIES,
    GemmKernel,
    Registers,
    kernel_for,
    registers,
    tile_calls,
)
from chainrule.compiler.native.padded_images import STEP_MULTIPLIES, Case, Plan
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.shifted_images import ShiftedImages, ShiftedProducts
from chainrule.compiler.native.threads.tasks import Task

Array = Any
Sizes = tuple[int, ...]

_MIN_TILE_ROWS = 4
"""Rows of the lowest tile: images and kernels may have few channels."""

_MAX_DIRECT, _MAX_DIRECT_WEIGHT = 1, 1
"""Outputs of a group up to which shifted images are added, in the output and in the kernels."""

_CORRELATE = """
def loop(start, stop, a, x, c, plan, taps, firsts, segments):
    panel = {buffer}()
    panel_at, panel_row, a_column = 0, {panel_columns}, 1
    rows, depth, panel_depth, panels = plan[0], plan[1], plan[2], plan[3]
    groups, group_size, pixels = plan[4], plan[5], plan[6]
    a_row, c_row = depth, pixels
    for iteration in range(start, stop):
        image = iteration // panels
        number = iteration % panels
        column = number * {panel_columns}
        width = min({panel_columns}, pixels - column)
        for k in range(0, depth, panel_depth):
            terms = min(panel_depth, depth - k)
            for p in range(terms):
                source = image * group_size + taps[u8(k + p)]
                for s in range(u8(firsts[u8(number)]), u8(firsts[u8(number + 1)])):
                    at = p * {panel_columns} + segments[s + s + u8(1)]
                    {copy}(x, source + segments[s + s], {vector}, panel, at)
            i = 0
            while i < rows:
                a_origin = (image % groups * rows + i) * depth + k
                c_origin = (image * rows + i) * pixels + column
                remaining = rows - i
{tiles}
"""

_PACK = """
def loop(start, stop, y, packed, plan, lines):
    columns, panels, depth = plan[0], plan[1], plan[2]
    pixels, length, count, total, wide = plan[3], plan[4], plan[5], plan[6], plan[7]
    for iteration in range(start, stop):
        image = iteration // panels
        first = iteration % panels * wide
        width = min(wide, columns - first)
        begin = iteration * (depth + {vector}) * wide  # a vector may end behind it
        end = begin + depth * wide
        for line in range(count):
            source = (image * columns + first) * pixels + line * length
            target = begin + lines[u8(line)] * wide
            p = 0
            while p < length and source + (width - 1) * pixels + p + {vector} <= total:
                for q in range(0, width, {vector}):
                    origin, vectors = source + p + q * pixels, min(width - q, {vector})
                    at = target + p * wide + q
                    {transpose}(y, origin, pixels, vectors, packed, at, wide)
                p += {vector}
            while p < length:
                for q in range(width):
                    packed[u8(target + p * wide + q)] = y[u8(source + p + q * pixels)]
                p += 1
            after = begin + lines[u8(line + 1)] * wide
            for j in range(u8(target + length * wide), u8(min(after, end))):
                packed[j] = 0
"""

_CORRELATE_WEIGHT = """
def loop(start, stop, a, panel, c, plan, origins):
    rows, columns, depth, panel_depth = plan[0], plan[1], plan[2], plan[3]
    panels, others, groups, images = plan[4], plan[5], plan[6], plan[7]
    a_row, group_size, wide, adds = plan[8], plan[9], plan[10], plan[11]
    a_column, panel_row, c_row = 1, wide, columns
    for iteration in range(start, stop):
        other = iteration % others
        number = iteration // others % panels
        group = iteration // (others * panels)
        column = number * wide
        width = min(wide, columns - column)
        for image in range(group, images, groups):
            for first in range(0, depth, panel_depth):
                k = adds + image - group + first
                terms = min(panel_depth, depth - first)
                panel_at = (image * panels + number) * (depth + {vector}) + first
                panel_at *= wide
                a_image = image * group_size + origins[u8(other)] + first
                i = 0
                while i < rows:
                    a_origin = a_image + i * a_row
                    c_origin = ((group * others + other) * rows + i) * columns + column
                    remaining = rows - i
{tiles}
"""


class _Kernels(NamedTuple):
    """The machine code for convolutions of a dtype, and the blocking of its products."""

    correlate: Task
    pack: Task
    correlate_weight: Task
    vector: int  # elements
    gemm: GemmKernel


@functools.cache
def _kernels_for(code: str, registers: Registers) -> _Kernels:
    gemm = kernel_for(code, registers)
    vector = registers.vector // np.dtype(code).itemsize
    heights = tuple(sorted({*registers.heights, _MIN_TILE_ROWS}, reverse=True))
    tiles = tile_calls(code, registers, heights, heights)
    names = {
        "buffer": f"buffer_{code}_{gemm.panel_columns * gemm.panel_depth + vector}",
        "copy": f"copy_{code}_{vector}",
        "transpose": f"transpose_{code}_{vector}",
        "panel_columns": gemm.panel_columns,
        "vector": vector,
    }

    def task(text: str, *types: str, tiles: str = "") -> Task:
        return Task(text.format(**names, tiles=tiles), types, long=False)

    return _Kernels(
        task(_CORRELATE, code, code, code, "i8", "i8", "i8", "i8", tiles=tiles),
        task(_PACK, code, code, "i8", "i8"),
        task(
            *(_CORRELATE_WEIGHT, code, code, code, "i8", "i8"),
            tiles=textwrap.indent(tiles, "    "),
        ),
        vector,
        gemm,
    )


class _Correlation(Plan):
    """The output of a convolution."""

    def __init__(self, case: Case, registers: Registers) -> None:
        super().__init__(case, registers)
        self.kernels = _kernels_for(case.code, registers)
        gemm, depth = self.kernels.gemm, case.inputs * math.prod(case.kernel)
        self.panels = -(-self.pixels // gemm.panel_columns)
        self.tap_offsets = self.taps([*range(len(case.kernel) + 1)])
        self.firsts, self.segments = self._segments(gemm.panel_columns, self.kernels.vector)
        panel_depth = -(-depth // -(-depth // gemm.panel_depth))
        numbers = [case.outputs, depth, panel_depth, self.panels]
        numbers += [case.groups, case.inputs * self.plane, self.pixels]
        self.numbers = np.array(numbers, np.int64)

    def _segments(self, columns: int, vector: int) -> tuple[Array, Array]:
        """Return the first segment of each panel, and the source and column of each segment.

        A segment is a part of a row, not longer than a vector.
        """
        length = self.case.size[-1]
        lines = self.lines.tolist()
        firsts: list[int] = []
        found: list[tuple[int, int]] = []
        for begin in range(0, self.pixels, columns):
            firsts.append(len(found))
            at, end = begin, min(begin + columns, self.pixels)
            while at < end:
                line, column = divmod(at, length)
                found.append((lines[line] + column, at - begin))
                at += min(length - column, vector, end - at)
        firsts.append(len(found))
        return np.array(firsts, np.int64), np.array(found, np.int64).reshape(-1)

    def __call__(self, x: Array, w: Array) -> Array:
        case = self.case
        x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
        out = np.empty((case.samples, case.groups * case.outputs, *case.size), x.dtype)
        for batch in self.batches():
            padded = self.pad(x[batch])
            images = len(x[batch]) * case.groups
            iterations, work = images * self.panels, images * self.work
            step = max(1, STEP_MULTIPLIES * self.panels // self.work)
            self.kernels.correlate.run(
                iterations,
                step if work >= PARALLEL_MIN_MULTIPLIES else iterations,
                work >= WAKE_MIN_MULTIPLIES,
                *(w.reshape(-1), padded, out[batch].reshape(-1)),
                *(self.numbers, self.tap_offsets, self.firsts, self.segments),
            )
        return out


class _WeightCorrelation(Plan):
    """The adjoint with respect to the kernels.

    A tile has rows of the longest axis of a kernel, of which the channels are one.
    """

    def __init__(self, case: Case, registers: Registers) -> None:
        super().__init__(case, registers)
        self.kernels = _kernels_for(case.code, registers)
        counts = (case.inputs, *case.kernel)
        steps = [set(np.diff(offsets).tolist()) for offsets in self.offsets]
        regular = [axis for axis, found in enumerate(steps) if len(found) < 2]
        self.axis = max(regular, key=lambda axis: counts[axis])
        self.others = [axis for axis in range(len(counts)) if axis != self.axis]
        self.origins = self.taps(self.others)
        self.starts = np.append(self.lines, np.int64(1) << 40)
        gemm = self.kernels.gemm
        self.panels = -(-case.outputs // gemm.panel_columns)
        self.panel_depth = -(-self.depth // -(-self.depth // gemm.panel_depth))
        step = max(steps[self.axis], default=0)
        self.numbers = [counts[self.axis], case.outputs, self.depth, self.panel_depth, self.panels]
        self.numbers += [len(self.origins), case.groups, 0, step, case.inputs * self.plane]
        # A single vector of columns is enough for few outputs.
        self.numbers.append(min(-(-case.outputs // self.vector), 2) * self.vector)

    def __call__(self, x: Array, y: Array) -> Array:
        case, rows = self.case, self.numbers[0]
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        total = np.empty((case.groups, len(self.origins), rows, case.outputs), x.dtype)
        for batch in self.batches():
            padded, packed = self.pad(x[batch]), self._packed(y[batch])
            images = len(x[batch]) * case.groups
            numbers = np.array([*self.numbers, batch.start], np.int64)
            numbers[7] = images
            iterations, work = case.groups * self.panels * len(self.origins), images * self.work
            self.kernels.correlate_weight.run(
                iterations,
                1 if work >= PARALLEL_MIN_MULTIPLIES else iterations,
                work >= WAKE_MIN_MULTIPLIES,
                *(padded, packed, total.reshape(-1), numbers, self.origins),
            )
        return self._kernels_of(total)

    def _packed(self, y: Array) -> Array:
        """Return the pixels of a batch as rows of a panel for each sample, with zeros between."""
        case, columns = self.case, self.numbers[-1]
        panels = len(y) * case.groups * self.panels
        packed = np.empty(panels * (self.depth + self.kernels.vector) * columns, y.dtype)
        numbers = [case.outputs, self.panels, self.depth, self.pixels, case.size[-1]]
        numbers += [len(self.starts) - 1, y.size, columns]
        step = max(1, (1 << 13) // (self.depth * columns))
        arguments = y.reshape(-1), packed, np.array(numbers, np.int64), self.starts
        self.kernels.pack(panels, step, *arguments)
        return packed

    def _kernels_of(self, total: Array) -> Array:
        """Return kernels (o, c, …) of sums (groups, other axes, rows, o)."""
        case, counts = self.case, (self.case.inputs, *self.case.kernel)
        others = [counts[axis] for axis in self.others]
        split = total.reshape(case.groups, *others, counts[self.axis], case.outputs)
        order = [*self.others, self.axis]
        places = [order.index(axis) + 1 for axis in range(len(counts))]
        w = split.transpose(0, len(counts) + 1, *places)
        return w.reshape(case.groups * case.outputs, *counts)


@functools.lru_cache(128)
def _correlation(case: Case, registers: Registers) -> _Correlation | ShiftedImages:
    kind = ShiftedImages if case.outputs <= _MAX_DIRECT else _Correlation
    return kind(case, registers)


@functools.lru_cache(128)
def _weight_correlation(case: Case, registers: Registers) -> _WeightCorrelation | ShiftedProducts:
    kind = ShiftedProducts if case.outputs <= _MAX_DIRECT_WEIGHT else _WeightCorrelation
    return kind(case, registers)


class Correlations(NamedTuple):
    """Convolutions of at least this number of multiplications; others, and other dtypes, are None.

    `where` is the padding before, the size of the result, stride, dilation and groups, as functions
    of `kernels.convolution` take them.
    """

    min_multiplies: int

    def correlate(self, x: Array, w: Array, *where: Any) -> Array | None:
        """Return the output."""
        pad_before, size, *steps, groups = where
        sizes = w.shape[1], len(w) // groups, w.shape[2:]
        return self._run(_correlation, x, w, sizes, (pad_before, size, *steps, groups))

    def correlate_weight(self, x: Array, y: Array, *where: Any) -> Array | None:
        """Return the adjoint with respect to the kernels."""
        pad_before, kernel, *steps, groups = where
        sizes = x.shape[1] // groups, y.shape[1] // groups, kernel
        return self._run(
            _weight_correlation, x, y, sizes, (pad_before, y.shape[2:], *steps, groups)
        )

    def _run(
        self,
        plan_of: Any,
        x: Array,
        other: Array,
        sizes: tuple[int, int, Sizes],
        where: tuple[Any, ...],
    ) -> Array | None:
        blocking = registers()
        dtype, (inputs, outputs, kernel) = x.dtype, sizes
        pad_before, size, stride, dilation, groups = where
        if blocking is None or dtype.char not in "fd" or dtype != other.dtype or not dtype.isnative:
            return None
        work = len(x) * groups * inputs * outputs * math.prod(kernel) * math.prod(size)
        if work < max(self.min_multiplies, 1):
            return None
        zeros, ones = (0,) * len(size), (1,) * len(size)
        case = Case(
            *(CODES[dtype], len(x), groups, inputs, outputs, x.shape[2:], kernel, tuple(size)),
            *(pad_before or zeros, stride or ones, dilation or ones),
        )
        found: Array = plan_of(case, blocking)(x, other)
        return found
