"""Which lines of a program share a loop.

Lines that act element by element on arrays of one shape join, each with the loop that makes or
reads one of its operands, and reductions close the loop of what they reduce. A line may join a loop
only if none of its operands needs that loop to have ended. Products, decompositions, sorts and
draws stay calls of NumPy's, between the loops.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import Any

from chainrule.compiler.native.access import Accesses
from chainrule.compiler.native.scalars import CODES, ELEMENTARY, is_fusible
from chainrule.compiler.program import Line, Program, Shape, Value
from chainrule.compiler.vocabulary import DRAW

REDUCTIONS = {"np.sum": "sum", "np.max": "max", "np.min": "min", "np.vdot": "sum"}
FEWEST = 2
"""So many lines are worth a loop of their own; fewer stay NumPy's, unless a function is dear."""

_DEAR = frozenset(ELEMENTARY)
_LARGE = 1 << 16
_LATEST = 8  # loops of a shape that a line may still join


class Cluster:
    """Lines that run in one loop over arrays of one shape; or one line that stays a call."""

    def __init__(self, number: int, shape: Shape | None) -> None:
        self.number = number
        self.shape = shape
        self.lines: list[tuple[int, Line]] = []
        self.bases: set[Value] = set()  # what its lines read
        self.before = 0  # the set of those that must have ended, as bits

    @property
    def bit(self) -> int:
        """What stands for it in sets."""
        return 1 << self.number

    @property
    def is_loop(self) -> bool:
        """Say whether it is worth a loop."""
        if self.shape is None or len(self.lines) >= FEWEST:
            return self.shape is not None
        line = self.lines[0][1]
        return line.function in _DEAR and line.out.size >= _LARGE


def loop_shape(line: Line) -> Shape | None:
    """Return the shape of the loop that a line can be part of, if it can."""
    if line.function in REDUCTIONS and len(line.outs) == 1:
        x = line.args[0]
        known = isinstance(x, Value) and x.size and _reduces(line, x)
        return x.shape if known else None
    return line.out.shape if is_fusible(line) else None


def _reduces(line: Line, x: Value) -> bool:
    if line.function == "np.vdot":
        y = line.args[1]
        alike = isinstance(y, Value) and (y.shape, y.dtype) == (x.shape, x.dtype)
        return alike and CODES.get(x.dtype) in ("f4", "f8")
    known = len(line.args) == 1 and set(line.kwargs) <= {"axis", "keepdims"}
    kinds = ("f4", "f8", "i8") if line.function == "np.sum" else ("f4", "f8")
    return known and CODES.get(line.out.dtype) in kinds and CODES.get(x.dtype) in CODES.values()


def clustered(program: Program, accesses: Accesses) -> list[Cluster]:
    """Return the clusters of a program, in an order in which they can run."""
    return _Partition(program, accesses).ordered()


class _Partition:
    def __init__(self, program: Program, accesses: Accesses) -> None:
        self.accesses = accesses
        self.clusters: dict[int, Cluster] = {}
        self.home: dict[Value, Cluster] = {}  # the cluster that makes a value
        self.inside: set[Value] = set()  # values that a loop has element by element
        self.open: dict[Shape, list[Cluster]] = defaultdict(list)
        self.draw: Cluster | None = None
        self.count = 0
        for number, line in enumerate(program.lines):
            self._place(number, line)

    def _new(self, shape: Shape | None) -> Cluster:
        cluster = self.clusters[self.count] = Cluster(self.count, shape)
        self.count += 1
        if shape is not None:
            self.open[shape].append(cluster)
            del self.open[shape][:-_LATEST]
        return cluster

    def _place(self, number: int, line: Line) -> None:
        shape = None if self.accesses.is_view(line) else loop_shape(line)
        inputs = dict.fromkeys(line.inputs)
        bases = {self.accesses.of(v).base for v in inputs}
        chosen = None if shape is None else self._chosen(shape, inputs, bases)
        if chosen is None:
            chosen = self._new(shape)
        self._join(chosen, inputs)
        if line.function == DRAW:  # draws keep their order
            if self.draw is not None:
                self._needs(chosen, self.draw.before | self.draw.bit)
            self.draw = chosen
        chosen.lines.append((number, line))
        chosen.bases |= bases
        for value in line.outs:
            self.home[value] = chosen
        if shape is not None and line.function not in REDUCTIONS:
            self.inside.add(line.out)
            for value in inputs:
                self._merge(chosen, self.home.get(value), value)

    def _chosen(self, shape: Shape, inputs: Any, bases: set[Value]) -> Cluster | None:
        """Return the loop that a line joins: the latest that has to do with its operands."""
        for cluster in reversed(self.open[shape]):
            makes = any(self.home.get(v) is cluster for v in inputs)
            if (makes or not bases.isdisjoint(cluster.bases)) and self._may_join(cluster, inputs):
                return cluster
        return None

    def _may_join(self, cluster: Cluster, inputs: Any) -> bool:
        for value in inputs:
            home = self.home.get(value)
            if home is cluster:
                if value not in self.inside:
                    return False
            elif home is not None and home.before & cluster.bit:
                return False
        return True

    def _join(self, cluster: Cluster, inputs: Any) -> None:
        """Note what has to have ended before a cluster, now that it has these operands."""
        needed = 0
        for value in inputs:
            home = self.home.get(value)
            if home is not None and home is not cluster:
                needed |= home.before | home.bit
        self._needs(cluster, needed)

    def _needs(self, cluster: Cluster, needed: int) -> None:
        if not needed & ~cluster.before:
            return
        cluster.before |= needed
        for other in self.clusters.values():
            if other.before & cluster.bit:
                other.before |= needed

    def _merge(self, cluster: Cluster, other: Cluster | None, value: Value) -> None:
        """Make one loop of two of which the second reads what the first makes, if it can be."""
        if other is None or other is cluster or other.shape != cluster.shape:
            return
        if other.shape is None or value not in self.inside or other not in self.open[other.shape]:
            return
        if not all(v in self.inside for v in self._between(other, cluster)):
            return
        for third in self.clusters.values():  # one that needs the first, and that the second needs
            if third.before & other.bit and cluster.before & third.bit:
                return
        cluster.lines = sorted([*other.lines, *cluster.lines], key=lambda item: item[0])
        cluster.bases |= other.bases
        for _, line in other.lines:
            for out in line.outs:
                self.home[out] = cluster
        self.open[other.shape].remove(other)
        del self.clusters[other.number]
        cluster.before &= ~other.bit
        for third in self.clusters.values():
            if third.before & other.bit:
                third.before = third.before & ~other.bit | cluster.bit
        self._needs(cluster, other.before)
        for third in self.clusters.values():
            if third.before & cluster.bit:
                third.before |= cluster.before

    def _between(self, first: Cluster, second: Cluster) -> list[Value]:
        """Return the values that the second reads of the first."""
        return [v for _, line in second.lines for v in line.inputs if self.home.get(v) is first]

    def ordered(self) -> list[Cluster]:
        """Return the clusters so that each comes after those that it needs, early lines first."""
        waiting = {c.number: c.before.bit_count() for c in self.clusters.values()}
        after: dict[int, list[Cluster]] = defaultdict(list)
        for cluster in self.clusters.values():
            bits = cluster.before
            while bits:
                lowest = bits & -bits
                after[lowest.bit_length() - 1].append(cluster)
                bits ^= lowest
        ready = [(c.lines[-1][0], n) for n, c in self.clusters.items() if not waiting[n]]
        heapq.heapify(ready)
        found = []
        while ready:
            _, number = heapq.heappop(ready)
            found.append(self.clusters[number])
            for cluster in after[number]:
                waiting[cluster.number] -= 1
                if not waiting[cluster.number]:
                    heapq.heappush(ready, (cluster.lines[-1][0], cluster.number))
        assert len(found) == len(self.clusters)
        return found
