"""The threads that wait awake: see `spinning` for what they run."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import numpy as np

from chainrule.compiler.native import spinning
from chainrule.compiler.native.code import code_of
from chainrule.compiler.native.nest import LOOP
from chainrule.compiler.native.spinning import ENDED, HELPING, JOB, NEXT, OPEN, STATES
from chainrule.kernels import threads

AWAKE = 200e-6
"""So many seconds a thread looks for the next job after one, on a core that others may want.

The operations of a training step follow each other within some tens of µs; OpenMP's threads wait
for milliseconds.
"""


class Team:
    """Threads that share jobs with those who call; started when first needed."""

    def __init__(self, count: int) -> None:
        self.count = count  # as `get_num_threads` says, with the calling one
        self.helpers = min(count, threads.usable_cores()) - 1  # more would wait for each other
        lines = np.zeros(STATES + 8 * (self.helpers + 2), np.int64)
        begin = -lines.ctypes.data // lines.itemsize % 8  # at the begin of a cache line
        self.words = lines[begin : begin + STATES + 8 * (self.helpers + 1)]
        self.calls: list[SimpleQueue[None]] = []
        self.others = threads.Beside()
        self.lock = threading.Lock()

    def wake(self) -> None:
        """Call those who sleep; they will be there for the next job, if not for this one."""
        if len(self.calls) < self.helpers:
            self._start()
        state = STATES
        for queue in self.calls:
            if not self.words.item(state) and queue.empty():
                self.others.keep_off()
                queue.put(None)
            state += 8

    def _start(self) -> None:
        with self.lock:
            looks = _looks(AWAKE)
            while len(self.calls) < self.helpers:
                queue: SimpleQueue[None] = SimpleQueue()
                place = STATES + 8 * len(self.calls)
                name = f"chainrule-native-{len(self.calls) + 1}"
                self.others.start(_serve, (self.words, place, looks, queue), name)
                self.calls.append(queue)

    def end(self) -> None:
        """Let the threads end."""
        self.words[ENDED] = 1
        for queue in self.calls:
            queue.put(None)


def _serve(words: Any, place: int, looks: int, calls: SimpleQueue[None]) -> None:
    wait = _wait()
    while not words.item(ENDED):
        calls.get()
        wait(words, place, looks)


@functools.cache
def _wait() -> Callable[..., None]:
    """Return `spinning.wait` as machine code."""
    places = {"OPEN": OPEN, "NEXT": NEXT, "HELPING": HELPING, "JOB": JOB, "ENDED": ENDED}
    known = "".join(f"{name} = {place}\n" for name, place in places.items())
    source = inspect.getsource(spinning.wait).replace("def wait(", f"def {LOOP}(", 1)
    calls = frozenset(["advance", "call", "load", "relax", "store"])
    text = f"from __future__ import annotations\n\n{known}\n{source}"
    return code_of(text, ("i8", "n", "n"), calls).function()


@functools.cache
def _looks(seconds: float) -> int:
    """Return how many looks for a job take so long."""
    words, wait = np.zeros(STATES + 8, np.int64), _wait()
    times, taken = 2000, []
    for _ in range(4):
        start = time.perf_counter()
        wait(words, STATES, times)
        taken.append(time.perf_counter() - start)
    return max(int(times * seconds / min(taken)), 1)


_team = Team(1)


def team() -> Team:
    """Return the threads, as many as `set_num_threads` says."""
    global _team
    count = threads.get_num_threads()
    if _team.count != count:
        _team.end()
        _team = Team(count)
    return _team


def _forget_members() -> None:
    """A forked child has none of its parent's threads: it starts its own when it needs them."""
    global _team
    _team = Team(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_members)


@atexit.register
def _end() -> None:
    """No thread is to be in machine code while that is taken down."""
    _team.end()
    for member in _team.others.threads:
        member.join(1.0)
