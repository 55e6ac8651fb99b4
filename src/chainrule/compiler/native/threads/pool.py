"""The threads that wait awake: see `spinning` for what they run."""

from __future__ import annotations

import atexit
import ctypes
import functools
import inspect
import os
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

from chainrule.compiler.native.code import code_of
from chainrule.compiler.native.loop_nest import LOOP
from chainrule.compiler.native.threads import worker
from chainrule.compiler.native.threads.worker import COUNT, ENDED, MEMBERS
from chainrule.kernels import threads

AWAKE = 200e-6
"""So many seconds a thread looks for the next job after one, on a core that others may want.

The operations of a training step follow each other within some tens of µs; OpenMP's threads wait
for milliseconds.
"""

SOON = 50e-6
"""Jobs that begin within so many seconds after the last one are expected to go on like that."""

_KNOWN = ("OPEN", "HELPING", "SHARE", "ENDED", "MEMBERS")

_void, _python = ctypes.c_void_p, ctypes.pythonapi
_new_lock = ctypes.PYFUNCTYPE(_void)(("PyThread_allocate_lock", _python))
_acquire = ctypes.PYFUNCTYPE(ctypes.c_int, _void, ctypes.c_int)(("PyThread_acquire_lock", _python))
_release = ctypes.PYFUNCTYPE(None, _void)(("PyThread_release_lock", _python))


class Team:
    """Threads that share jobs with those who call; started when first needed."""

    def __init__(self, count: int) -> None:
        self.count = count  # as `get_num_threads` says, with the calling one
        self.helpers = min(count, threads.usable_cores()) - 1  # more would wait for each other
        size = MEMBERS + 16 * (self.helpers + 1)
        ops = np.zeros(size + 8, np.int64)
        begin = -ops.ctypes.data // ops.itemsize % 8  # at the begin of a cache line
        self.words = ops[begin : begin + size]
        self.words[COUNT] = self.helpers + 1
        self.locks: list[int] = []  # each thread sleeps until its own is released
        self.others = threads.HelperThreads()
        self.lock = threading.Lock()
        self.ended = 0.0  # when the last job was done
        if count:
            _wait()(self.words, 0, 0, 0, 0)  # which says where `share` is

    def wake(self, large: bool) -> None:
        """Wake those who sleep for a large job, or for one of many that follow each other soon.

        That takes the caller 4 µs, and them 20 until they work: in a lonely small job it's lost.
        """
        if len(self.locks) < self.helpers:
            self._start()
        self.others.avoid_caller_core()  # also those awake: on one core the two take turns
        state = MEMBERS
        for lock in self.locks:
            state += 16
            if not self.words.item(state):
                if not large and time.perf_counter() - self.ended > SOON:
                    return
                self.words[state] = 1
                _release(lock)  # twice, by two callers, makes it only look for jobs once more

    def _start(self) -> None:
        with self.lock:
            looks = _looks(AWAKE)
            while len(self.locks) < self.helpers:
                lock = _new_lock()
                _acquire(lock, 1)
                self.locks.append(lock)  # first, so that `end` wakes it if it sleeps already
                own = len(self.locks)
                job = (self.words, own, looks, lock, sys.maxsize)
                self.others.start(_wait(), job, f"chainrule-native-{own}")

    def end(self) -> None:
        """Let the threads end."""
        self.words[ENDED] = 1
        for lock in self.locks:
            _release(lock)


@functools.cache
def _wait() -> Callable[..., None]:
    """Return `spinning.wait` as machine code."""
    known = "".join(f"{name} = {getattr(worker, name)}\n" for name in _KNOWN)
    source = inspect.getsource(worker.wait).replace("def wait(", f"def {LOOP}(", 1)
    calls = frozenset(["address_of_share", "advance", "load"])
    calls |= {"relax", "sleep", "store", "work"}
    text = f"from __future__ import annotations\n\n{known}\n{source}"
    return code_of(text, ("i8", "n", "n", "n", "n"), calls).function()


@functools.cache
def _looks(seconds: float) -> int:
    """Return how many looks for a job take so long."""
    words, wait = np.zeros(MEMBERS + 32, np.int64), _wait()
    times, lock, taken = 2000, _new_lock(), []
    for _ in range(4):
        start = time.perf_counter()
        wait(words, 1, times, lock, 1)
        taken.append(time.perf_counter() - start)
        _release(lock)
    return max(int(times * seconds / min(taken)), 1)


_team = Team(0)  # which is nobody's
_changing = threading.Lock()


def team() -> Team:
    """Return the threads, as many as `set_num_threads` says."""
    global _team
    count = threads.get_num_threads()
    if _team.count != count:
        with _changing:  # else one that somebody else has just made would never end
            if _team.count != count:
                _team.end()
                _team = Team(count)
    return _team


def _forget_members() -> None:
    """A forked child has none of its parent's threads: it starts its own when it needs them."""
    global _team, _changing
    _team, _changing = Team(0), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_members)


@atexit.register
def _end() -> None:
    """No thread is to be in machine code while that is taken down."""
    _team.end()
    for member in _team.others.threads:
        member.join(1.0)
