"""Time of functions that are not compiled, by line of the user's code: forward and backward."""

from __future__ import annotations

import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from chainrule import pytree
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.location import INTERNAL, Location, is_installed
from chainrule.autograd.node import AccumulateGrad, Node, RemovableHandle, reachable
from chainrule.autograd.tensor import Tensor
from chainrule.creation import ones_like

_MAX_SECONDS = 3.0
"""Time after which no further call is measured."""


class LineRow(NamedTuple):
    """One line of user code, and its median times in seconds."""

    location: Location
    forward: float
    backward: float
    """Time of the rules of the operations that the line recorded."""


class LineProfile:
    """The lines of a function with their times, in order of the source: print it."""

    def __init__(self, name: str, rows: list[LineRow]) -> None:
        self.name = name
        self.rows = rows

    @property
    def seconds(self) -> float:
        """Total time of all lines, forward and backward, in seconds."""
        return self.forward + self.backward

    @property
    def forward(self) -> float:
        """Time of the function itself, in seconds."""
        return sum(row.forward for row in self.rows)

    @property
    def backward(self) -> float:
        """Time of the backward pass, in seconds."""
        return sum(row.backward for row in self.rows)

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.forward * 1e6:.1f} µs forward, {self.backward * 1e6:.1f} µs "
            "backward",
            f"{'forward':>10} {'backward':>10} {'%':>6}  µs",
        ]
        for row in self.rows:
            share = 100 * (row.forward + row.backward) / (self.seconds or 1.0)
            lines.append(
                f"{row.forward * 1e6:10.1f} {row.backward * 1e6:10.1f} {share:6.1f}  "
                f"{row.location.short_place:<18} {row.location.source}".rstrip()
            )
        return "\n".join(lines)

    __repr__ = __str__


def profile_lines(
    name: str, function: Callable[..., Any], args: Any, kwargs: Any, calls: int
) -> LineProfile:
    """Return the times of the lines that a function and those that it calls run."""
    forward: list[dict[_CodeLine, float]] = []
    backward: list[dict[_CodeLine, float]] = []
    begin = time.perf_counter()
    while len(forward) < max(1, calls) and (
        not forward or time.perf_counter() - begin < _MAX_SECONDS
    ):
        clock = _LineClock()
        result = clock.run(function, args, kwargs)
        forward.append(clock.seconds)
        backward.append(dict(_backward_times(result)))
    lines = {line for times in (*forward, *backward) for line in times}
    rows = []
    for code, line in sorted(lines, key=lambda pair: (pair[0].co_filename, pair[1])):
        location = Location(code.co_filename, line, code.co_name)
        times = [
            statistics.median([each.get((code, line), 0.0) for each in table])
            for table in (forward, backward)
        ]
        rows.append(LineRow(location, times[0], times[1]))
    return LineProfile(name, rows)


_CodeLine = tuple[CodeType, int]


class _LineClock:
    """Times the lines of user code of this thread, without those of functions that they call."""

    def __init__(self) -> None:
        self.seconds: dict[_CodeLine, float] = {}
        self._stack: list[_CodeLine | None] = []  # the lines that run, the innermost last
        self._last = 0.0

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return the result of a call."""
        before = sys.gettrace()
        self._last = time.perf_counter()
        sys.settrace(self._call)
        try:
            return function(*args, **kwargs)
        finally:
            sys.settrace(before)

    def _charge(self) -> None:
        now = time.perf_counter()
        line = self._stack[-1] if self._stack else None
        if line is not None:
            self.seconds[line] = self.seconds.get(line, 0.0) + now - self._last

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        if INTERNAL[name] or is_installed(name) or name == "<string>":  # or made by a library
            return None
        self._charge()
        self._stack.append(None)
        self._last = time.perf_counter()
        return self._event

    def _event(self, frame: FrameType, event: str, arg: Any) -> Any:
        self._charge()
        if event == "line":
            self._stack[-1] = frame.f_code, frame.f_lineno
        elif event == "return":
            self._stack.pop()
        self._last = time.perf_counter()
        return self._event


def _backward_times(result: Any) -> Iterator[tuple[_CodeLine, float]]:
    """Yield the time of the rules of each line, measured in one backward pass from the results."""
    outputs = [
        leaf
        for _, leaf in pytree.leaves(result)
        if isinstance(leaf, Tensor) and leaf.grad_fn is not None
    ]
    nodes = reachable([t.grad_fn for t in outputs if t.grad_fn is not None])
    leaves = [
        leaf
        for node in nodes
        if isinstance(node, AccumulateGrad) and (leaf := node.variable) is not None
    ]
    if not leaves:
        return
    clock = _NodeClock()
    handles = [
        handle
        for node in nodes
        if not isinstance(node, AccumulateGrad)
        for handle in clock.hooks(node)
    ]
    try:
        seeds = [ones_like(t).detach() for t in outputs]
        autograd_grad(outputs, leaves, seeds, retain_graph=True, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    times: dict[_CodeLine, float] = {}
    for node, seconds in clock.seconds.items():
        location = node.location
        if node.code is not None and location is not None:
            key = node.code, location.line
            times[key] = times.get(key, 0.0) + seconds
    yield from times.items()


class _NodeClock:
    """Times nodes of a backward pass, by hooks before and after each."""

    def __init__(self) -> None:
        self.seconds: dict[Node, float] = {}
        self._begin = threading.local()

    def hooks(self, node: Node) -> list[RemovableHandle]:
        """Register the hooks of a node."""

        def begin(_: Any) -> None:
            self._begin.at = time.perf_counter()

        def end(_: Any, __: Any) -> None:
            self.seconds[node] = time.perf_counter() - self._begin.at

        return [node.register_prehook(begin), node.register_hook(end)]
