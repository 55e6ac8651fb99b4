"""The team of spinning threads; `worker` has the code that they run."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

from chainrule.compiler.native.code import cached_code
from chainrule.compiler.native.loop_nest import LOOP_NAME
from chainrule.compiler.native.threads.worker import COUNT, ENDED, MEMBERS
from chainrule.kernels import threads

SPIN_SECONDS = 200e-6
"""Seconds that a thread spins after a job before it sleeps.

The operations of a training step follow each other within some tens of µs; OpenMP's threads spin
for milliseconds.
"""

FOLLOW_UP_SECONDS = 50e-6
"""Seconds after a job within which a new one suggests that more will follow."""

_void, _python = ctypes.c_void_p, ctypes.pythonapi
_new_lock = ctypes.PYFUNCTYPE(_void)(("PyThread_allocate_lock", _python))
_acquire = ctypes.PYFUNCTYPE(ctypes.c_int, _void, ctypes.c_int)(("PyThread_acquire_lock", _python))
_release = ctypes.PYFUNCTYPE(None, _void)(("PyThread_release_lock", _python))


class Team:
    """Threads that share jobs with their callers; started when first needed."""

    def __init__(self, count: int) -> None:
        self.count = count  # as set by `set_num_threads`, with the calling thread
        self.helper_count = min(count, threads.usable_cores()) - 1  # more would contend for cores
        size = MEMBERS + 16 * (self.helper_count + 1)
        memory = np.zeros(size + 8, np.int64)
        begin = -memory.ctypes.data // memory.itemsize % 8  # align to a cache line
        self.words = memory[begin : begin + size]
        self.words[COUNT] = self.helper_count + 1
        self.locks: list[int] = []  # each thread sleeps until its lock is released
        self.helper_threads = threads.HelperThreads()
        self.lock = threading.RLock()
        self.last_job_end = 0.0  # time at which the last job ended
        if count:
            _compiled_wait()(self.words, 0, 0, 0, 0)  # stores the address of `share`

    def wake(self, large: bool) -> None:
        """Wake sleeping threads for a large job, or for one of many in quick succession.

        That takes the caller 4 µs, and the threads 20 µs until they work, which does not pay for a
        single small job.
        """
        if len(self.locks) < self.helper_count:
            self._start()
        self.helper_threads.avoid_caller_core()  # spinning ones, too
        state = MEMBERS
        for lock in self.locks:
            state += 16
            if not self.words.item(state):
                if not large and time.perf_counter() - self.last_job_end > FOLLOW_UP_SECONDS:
                    return
                try:
                    self.words[state] = 1
                    _release(lock)
                except BaseException:  # an interrupt in between: it would never be woken
                    _release(lock)  # a second release only makes it spin again
                    raise

    def _start(self) -> None:
        with self.lock:
            spins = _spin_iterations(SPIN_SECONDS)
            while len(self.locks) < self.helper_count:
                lock = _new_lock()
                _acquire(lock, 1)
                self.locks.append(lock)  # first, so that `stop` can wake it
                index = len(self.locks)
                job = (self.words, index, spins, lock, sys.maxsize)
                self.helper_threads.start(_compiled_wait(), job, f"chainrule-native-{index}")

    def stop(self) -> None:
        """End the threads."""
        self.words[ENDED] = 1
        for lock in self.locks:
            _release(lock)


@functools.cache
def _compiled_wait() -> Callable[..., None]:
    """Return `worker.wait` as machine code."""
    arguments = "words, index, spins, lock, rounds"
    text = f"def {LOOP_NAME}({arguments}):\n    wait({arguments})\n"
    return cached_code(text, ("i8", "n", "n", "n", "n")).function()


@functools.cache
def _spin_iterations(seconds: float) -> int:
    """Return the number of spin iterations that take so long."""
    words, wait = np.zeros(MEMBERS + 32, np.int64), _compiled_wait()
    rounds, lock, durations = 2000, _new_lock(), []
    for _ in range(4):
        start = time.perf_counter()
        wait(words, 1, rounds, lock, 1)
        durations.append(time.perf_counter() - start)
        _release(lock)
    return max(int(rounds * seconds / min(durations)), 1)


_team = Team(0)
_team_lock = threading.RLock()


def team() -> Team:
    """Return the team, with the number of threads of `set_num_threads`."""
    global _team
    count = threads.get_num_threads()
    if _team.count != count:
        with _team_lock:  # else a team that another thread creates would never end
            if _team.count != count:
                _team.stop()
                _team = Team(count)
    return _team


def _reset_after_fork() -> None:
    """Replace the team in a forked child, which has none of its parent's threads."""
    global _team, _team_lock
    _team, _team_lock = Team(0), threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


@atexit.register
def _stop_at_exit() -> None:
    """End the threads before the interpreter frees their machine code."""
    _team.stop()
    for member in _team.helper_threads.threads:
        member.join(1.0)
