"""Convolutions with few channels in a group as machine code: sums of shifted images.

A matrix product would compute rows of zeros. The pixels of an image and the margins between its
rows are one run of memory here, so the loops are long for small images, too.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule.compiler.native.gemm import (
    PARALLEL_MIN_MULTIPLIES,
    WAKE_MIN_MULTIPLIES,
    Registers,
)
from chainrule.compiler.native.padded_images import STEP_MULTIPLIES, Case, Plan
from chainrule.compiler.native.threads.tasks import Task

Array = Any

_RUN = 2048
"""Number of pixels that are summed at a time; they stay in the first-level cache."""

_ADD_SHIFTED = """
def loop(start, stop, x, w, out, plan, taps, firsts, segments):
    sums = {buffer}()
    depth, pixels, terms, size = plan[0], plan[1], plan[2], plan[3]
    channels, outputs, groups, runs = plan[4], plan[5], plan[6], plan[7]
    for iteration in range(start, stop):
        image = iteration // channels
        channel = iteration % channels
        first = (image * groups + channel // outputs) * size
        for run in range(runs):
            begin = first + run * {run}
            count = u8(min({run}, depth - run * {run}))
            for j in range(count):
                sums[j] = 0
            t = 0
            while t + 4 <= terms:
                n = u8(channel * terms + t)
                w0, w1, w2, w3 = w[n], w[n + u8(1)], w[n + u8(2)], w[n + u8(3)]
                at0, at1 = u8(begin + taps[u8(t)]), u8(begin + taps[u8(t + 1)])
                at2, at3 = u8(begin + taps[u8(t + 2)]), u8(begin + taps[u8(t + 3)])
                for j in range(count):
                    some = times_plus(sums[j], w0, x[at0 + j])
                    others = times_plus(w2 * x[at2 + j], w1, x[at1 + j])
                    sums[j] = times_plus(some, w3, x[at3 + j]) + others
                t += 4
            while t < terms:
                factor, at = w[u8(channel * terms + t)], u8(begin + taps[u8(t)])
                for j in range(count):
                    sums[j] = times_plus(sums[j], factor, x[at + j])
                t += 1
            for s in range(u8(firsts[u8(run)]), u8(firsts[u8(run + 1)]), u8(3)):
                at, to = u8(segments[s]), u8(iteration * pixels + segments[s + u8(1)])
                for j in range(u8(segments[s + u8(2)])):
                    out[to + j] = sums[at + j]
"""

_SUM_SHIFTED = """
def loop(start, stop, x, y, out, plan, taps):
    depth, terms, size, channels = plan[0], plan[1], plan[2], plan[3]
    outputs, groups, images, adds = plan[4], plan[5], plan[6], plan[7]
    for channel in range(start, stop):
        for t in range(terms if adds == 0 else 0):
            out[u8(channel * terms + t)] = 0
        for image in range(images):
            first = (image * groups + channel // outputs) * size
            for begin in range(0, depth, {run}):
                count = u8(min({run}, depth - begin))
                source = u8((image * channels + channel) * depth + begin)
                t = 0
                while t + 4 <= terms:
                    at0, at1 = u8(first + begin + taps[u8(t)]), u8(first + begin + taps[u8(t + 1)])
                    at2 = u8(first + begin + taps[u8(t + 2)])
                    at3 = u8(first + begin + taps[u8(t + 3)])
                    sum0, sum1, sum2, sum3 = {code}(0), {code}(0), {code}(0), {code}(0)
                    for j in range(count):
                        factor = y[source + j]
                        sum0 = times_plus(sum0, factor, x[at0 + j])
                        sum1 = times_plus(sum1, factor, x[at1 + j])
                        sum2 = times_plus(sum2, factor, x[at2 + j])
                        sum3 = times_plus(sum3, factor, x[at3 + j])
                    n = u8(channel * terms + t)
                    out[n] = out[n] + sum0
                    out[n + u8(1)] = out[n + u8(1)] + sum1
                    out[n + u8(2)] = out[n + u8(2)] + sum2
                    out[n + u8(3)] = out[n + u8(3)] + sum3
                    t += 4
                while t < terms:
                    n, at = u8(channel * terms + t), u8(first + begin + taps[u8(t)])
                    total = {code}(0)
                    for j in range(count):
                        total = times_plus(total, y[source + j], x[at + j])
                    out[n] = out[n] + total
                    t += 1
"""


@functools.cache
def _tasks(code: str) -> tuple[Task, Task]:
    """Return the machine code for the output and for the kernels."""
    names = {"buffer": f"buffer_{code}_{_RUN}", "run": _RUN, "code": code}
    return (
        Task(_ADD_SHIFTED.format(**names), (code, code, code, *["i8"] * 4), long=False),
        Task(_SUM_SHIFTED.format(**names), (code, code, code, "i8", "i8"), long=False),
    )


class ShiftedImages(Plan):
    """The output of a convolution."""

    def __init__(self, case: Case, registers: Registers) -> None:
        super().__init__(case, registers)
        self.tap_offsets = self.taps([*range(len(case.kernel) + 1)])
        runs = -(-self.depth // _RUN)
        self.firsts, self.segments = self._segments(runs)
        channels = case.groups * case.outputs
        numbers = [self.depth, self.pixels, len(self.tap_offsets), case.inputs * self.plane]
        self.numbers = np.array([*numbers, channels, case.outputs, case.groups, runs], np.int64)

    def _segments(self, runs: int) -> tuple[Array, Array]:
        """Return where the segments of each run begin, and their source, target and length."""
        length = self.case.size[-1]
        found: list[list[int]] = [[] for _ in range(runs)]
        for line, at in enumerate(self.lines.tolist()):
            begin = at
            while begin < at + length:
                run, source = divmod(begin, _RUN)
                count = min(at + length - begin, _RUN - source)
                found[run] += [source, line * length + begin - at, count]
                begin += count
        firsts = np.cumsum([0, *map(len, found)])
        return firsts, np.array([n for numbers in found for n in numbers], np.int64)

    def __call__(self, x: Array, w: Array) -> Array:
        case = self.case
        x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
        channels = case.groups * case.outputs
        out = np.empty((case.samples, channels, *case.size), x.dtype)
        for batch in self.batches():
            padded = self.pad(x[batch])
            iterations, work = len(x[batch]) * channels, len(x[batch]) * case.groups * self.work
            step = max(1, STEP_MULTIPLIES * case.outputs // self.work)
            _tasks(case.code)[0].run(
                iterations,
                step if work >= PARALLEL_MIN_MULTIPLIES else iterations,
                work >= WAKE_MIN_MULTIPLIES,
                *(padded, w.reshape(-1), out[batch].reshape(-1)),
                *(self.numbers, self.tap_offsets, self.firsts, self.segments),
            )
        return out


class ShiftedProducts(Plan):
    """The adjoint with respect to the kernels."""

    def __init__(self, case: Case, registers: Registers) -> None:
        super().__init__(case, registers)
        self.tap_offsets = self.taps([*range(len(case.kernel) + 1)])

    def __call__(self, x: Array, y: Array) -> Array:
        case, terms = self.case, len(self.tap_offsets)
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        channels = case.groups * case.outputs
        total = np.empty((channels, case.inputs, *case.kernel), x.dtype)
        for batch in self.batches():
            images = len(x[batch])
            work = images * case.groups * self.work
            numbers = [self.depth, terms, case.inputs * self.plane, channels]
            numbers += [case.outputs, case.groups, images, batch.start]
            _tasks(case.code)[1].run(
                channels,
                1 if work >= PARALLEL_MIN_MULTIPLIES else channels,
                work >= WAKE_MIN_MULTIPLIES,
                *(self.pad(x[batch]), self.spread(y[batch]), total.reshape(-1)),
                *(np.array(numbers, np.int64), self.tap_offsets),
            )
        return total
