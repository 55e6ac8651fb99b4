"""Padded images of convolutions as machine code: offsets of elements of kernels, and copies.

With a stride, images are divided into phases: the pixels whose positions have the same remainder.
The pixels that an element of a kernel meets are neighbours then, too, in the rows of one phase.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.native.gemm import Registers
from chainrule.compiler.native.threads.tasks import Task

Array = Any
Sizes = tuple[int, ...]

SCRATCH_ELEMENTS = 1 << 20
"""Number of elements of padded images that are computed with at a time; they stay in the cache."""

STEP_MULTIPLIES = 1 << 18
"""Number of multiplications that a thread computes at a time."""

_STEP_ELEMENTS = 1 << 13
"""Number of elements that a thread copies at a time."""

_PAD = """
def loop(start, stop, x, padded, plan, blocks):
    for image in range(u8(start), u8(stop)):
        target = image * u8(plan[0])
        for j in range(target, target + u8(plan[0])):
            padded[j] = 0
        for n in range(0, u8(plan[1]), u8(9)):
            source = image * u8(plan[2]) + u8(blocks[n + u8(3)])
            row = target + u8(blocks[n + u8(6)])
            for a in range(u8(blocks[n])):
                for b in range(u8(blocks[n + u8(1)])):
                    at = source + a * u8(blocks[n + u8(4)]) + b * u8(blocks[n + u8(5)])
                    to = row + a * u8(blocks[n + u8(7)]) + b * u8(blocks[n + u8(8)])
                    for c in range(u8(blocks[n + u8(2)])):
                        padded[to + c] = x[at + c{step}]
"""


@functools.cache
def _pad_task(code: str, step: int) -> Task:
    """Return the machine code that copies pixels of a row; steps of 3 stand for any larger one."""
    known = f" * {step}" if step < 3 else " * u8(plan[3])"
    return Task(_PAD.format(step=known if step > 1 else ""), (code, code, "i8", "i8"), long=False)


class Case(NamedTuple):
    """A convolution: shapes of a group, and where the first window begins."""

    code: str
    samples: int
    groups: int
    inputs: int
    outputs: int
    image: Sizes
    kernel: Sizes
    size: Sizes  # of the output
    pad_before: Sizes
    stride: Sizes
    dilation: Sizes


class Plan:
    """Offsets in padded images, and loop bounds, of one case."""

    def __init__(self, case: Case, registers: Registers) -> None:
        self.case = case
        self.vector = registers.vector // np.dtype(case.code).itemsize
        axes = list(zip(case.size, case.kernel, case.stride, case.dilation, strict=True))
        extents = [d * (k - 1) for _, k, _, d in axes]
        self.phases = [min(s, e + 1) for s, e in zip(case.stride, extents, strict=True)]
        self.rows = [n + e // s for n, s, e in zip(case.size, case.stride, extents, strict=True)]
        whole, rank = math.prod(self.rows), len(axes)
        self.steps = [math.prod(self.rows[i + 1 :]) for i in range(rank)]
        self.phase_steps = [math.prod(self.phases[i + 1 :]) * whole for i in range(rank)]
        self.plane = math.prod(self.phases) * whole
        self.pixels = math.prod(case.size)
        self.lines = self._sums(
            [np.arange(n) * s for n, s in zip(case.size, self.steps, strict=True)][:-1]
        )
        self.depth = int(self.lines[-1]) + case.size[-1]
        channels = case.groups * case.inputs
        self.batch = max(1, min(case.samples, SCRATCH_ELEMENTS // (channels * self.plane)))
        self.work = self.pixels * case.outputs * case.inputs * math.prod(case.kernel)
        taps = [np.arange(k) * d for _, k, _, d in axes]
        self.offsets = [
            np.arange(case.inputs) * self.plane,
            *[
                tap % s * phase + tap // s * step
                for tap, s, phase, step in zip(
                    taps, case.stride, self.phase_steps, self.steps, strict=True
                )
            ],
        ]
        self.image_plan = self._image_plan()

    def _image_plan(self) -> tuple[int, Array, Array]:
        """Return how an image is copied: one block of pixels for each phase."""
        case = self.case
        axes = list(
            zip(case.image, case.pad_before, case.stride, self.phases, self.rows, strict=True)
        )
        steps = [math.prod(case.image[i + 1 :]) for i in range(len(axes))]
        blocks = []
        for phases in itertools.product(*[range(n) for n in self.phases]):
            counts, source, target = [], 0, 0
            for i, (phase, (n, before, stride, _, rows)) in enumerate(
                zip(phases, axes, strict=True)
            ):
                low = max(-(-(before - phase) // stride), 0)  # the first row inside of the image
                high = min((before + n - 1 - phase) // stride + 1, rows)
                counts.append(max(high - low, 0))
                source += (low * stride + phase - before) * steps[i]
                target += phase * self.phase_steps[i] + low * self.steps[i]
            moved = [n * s for n, s in zip(steps, case.stride, strict=True)]
            blocks.append(_block(counts, source, moved, target, self.steps))
        step = case.stride[-1]
        return step, *_pad_plan(self.plane, math.prod(case.image), blocks, step)

    def pad(self, x: Array) -> Array:
        """Return padded images, and memory behind them that a vector may read."""
        step, plan, blocks = self.image_plan
        planes = len(x) * self.case.groups * self.case.inputs
        return self._copied(x, planes, self.plane, step, plan, blocks)

    def spread(self, y: Array) -> Array:
        """Return outputs with the steps of padded images, and zeros between their rows."""
        block = _block(self.case.size, 0, _steps_of(self.case.size), 0, self.steps)
        planes = len(y) * self.case.groups * self.case.outputs
        plan, blocks = _pad_plan(self.depth, self.pixels, [block], 1)
        return self._copied(y, planes, self.depth, 1, plan, blocks)

    def _copied(
        self, x: Array, planes: int, plane: int, step: int, plan: Array, blocks: Array
    ) -> Array:
        padded = np.empty(planes * plane + self.vector, x.dtype)
        count = max(1, _STEP_ELEMENTS // plane)
        _pad_task(self.case.code, min(step, 3))(planes, count, x.reshape(-1), padded, plan, blocks)
        return padded

    def taps(self, axes: list[int]) -> Array:
        """Return the offsets of the elements of a kernel in some of its axes: 0 is the channel."""
        return self._sums([self.offsets[axis] for axis in axes])

    def batches(self) -> Iterator[slice]:
        """Yield the samples of each batch."""
        for start in range(0, self.case.samples, self.batch):
            yield slice(start, start + self.batch)

    @staticmethod
    def _sums(offsets: list[Array]) -> Array:
        """Return the sums of offsets, of one of each."""
        total = functools.reduce(lambda a, b: a[..., None] + b, offsets, np.zeros((), np.int64))
        return total.reshape(-1)


def _steps_of(size: Sizes) -> list[int]:
    return [math.prod(size[i + 1 :]) for i in range(len(size))]


def _block(counts: Any, source: int, steps: Any, target: int, target_steps: Any) -> list[int]:
    """Return numbers of pixels, where they begin, and steps, for three axes."""
    lead = [1] * (3 - len(counts))
    return [*lead, *counts, source, *[*lead, *steps][:2], target, *[*lead, *target_steps][:2]]


def _pad_plan(plane: int, source: int, blocks: list[list[int]], step: int) -> tuple[Array, Array]:
    numbers = [n for block in blocks if 0 not in block[:3] for n in block]
    return np.array([plane, len(numbers), source, step], np.int64), np.array(numbers, np.int64)
