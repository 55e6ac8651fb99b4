"""A thread pool that runs the blocks of a large computation in parallel.

NumPy releases the interpreter lock while it computes. The calling thread works too and waits only
for blocks that another thread has begun, so a thread without a free core costs nothing, calls may
nest, and several threads may call at once.
"""

from __future__ import annotations

import contextvars
import ctypes
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, ClassVar

from chainrule.errors import ArgumentError
from chainrule.interrupts import Latch, start

Task = Callable[[int], None]


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _default_count() -> int:
    try:
        return max(int(os.environ["OMP_NUM_THREADS"].split(",")[0]), 1)
    except (KeyError, ValueError):
        return usable_cores()


def _core_function() -> Callable[[], int]:
    """Return a function that returns the number of the calling thread's core, -1 if unknown."""
    if hasattr(os, "sched_setaffinity"):
        try:
            found: Callable[[], int] = ctypes.CDLL(None).sched_getcpu
            return found
        except AttributeError:  # a libc without it
            pass
    return lambda: -1


_current_core = _core_function()


class _Job:
    """One computation: the blocks that are not begun yet, and the helpers at work.

    Without a lock, which an interrupt could leave locked: the operations of a set are atomic.
    """

    def __init__(self, task: Task, blocks: Iterable[int]) -> None:
        self.task = task
        self.blocks = deque(blocks)
        self.context = contextvars.copy_context()  # includes NumPy's errstate
        self.helpers: set[object] = set()
        self.closed = False
        self.idle = Latch()
        self.error: BaseException | None = None

    def work(self) -> None:
        """Run blocks until none is left."""
        task, take = self.task, self.blocks.popleft
        while True:
            try:
                block = take()
            except IndexError:
                return
            task(block)

    def help(self) -> None:
        """Run blocks in a helper thread."""
        helper = object()
        self.helpers.add(helper)
        try:
            if not self.closed:  # read after the line above, so that the caller waits
                self.context.copy().run(self.work)
        except BaseException as error:
            self.error = error
            self.blocks.clear()
        finally:
            self.helpers.discard(helper)
            if self.closed and not self.helpers:
                self.idle.set()

    def finish(self) -> None:
        """Discard blocks that are not begun, and wait for the others."""
        self.blocks.clear()
        self.closed = True
        if self.helpers:
            self.idle.wait()


class HelperThreads:
    """Threads whose affinity keeps them off the core of their caller.

    Linux may wake a thread on its caller's core although another one is idle: then the two take
    turns, and a computation takes twice the time. The caller sets the affinity while the helpers
    wait: a helper that wakes on the caller's core and then moves has already displaced the caller.
    """

    started: ClassVar[weakref.WeakSet[threading.Thread]] = weakref.WeakSet()
    """All threads of chainrule: they compute nothing unless another thread waits for them."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self._avoided_core = -1  # the core that they avoid

    def start(self, target: Callable[..., None], args: tuple[Any, ...], name: str) -> None:
        """Start another thread."""
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        self.started.add(thread)
        try:
            start(thread)
        finally:
            if thread.ident is not None:  # also if an interrupt came after the start
                self.threads.append(thread)
                self._avoided_core = -1

    def avoid_caller_core(self) -> None:
        """Set the affinity to all cores of the process but the caller's, if there are others."""
        core = _current_core()
        if core == self._avoided_core:
            return
        self._avoided_core = core
        try:
            cores = os.sched_getaffinity(os.getpid())
            for thread in self.threads:
                if thread.native_id is not None:
                    os.sched_setaffinity(thread.native_id, cores - {core} or cores)
        except (AttributeError, OSError):  # not Linux, not permitted, or the thread has ended
            pass


class _Pool:
    """A pool of threads, started when first needed."""

    def __init__(self, count: int) -> None:
        self.count = count  # including the calling thread
        self.chosen = False  # whether by `set_num_threads`
        self.lock = threading.RLock()
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.helpers = HelperThreads()

    def start(self) -> None:
        """Start missing threads, and keep all off the caller's core."""
        threads = self.helpers.threads
        if len(threads) < self.count - 1:
            with self.lock:
                while len(threads) < self.count - 1:
                    self.helpers.start(_worker_loop, (self.jobs,), f"chainrule-{len(threads) + 1}")
        self.helpers.avoid_caller_core()

    def stop(self) -> None:
        """End the threads; jobs in the queue are finished by their callers."""
        with self.lock:
            for _ in self.helpers.threads:
                self.jobs.put(None)


def _worker_loop(jobs: SimpleQueue[_Job | None]) -> None:
    """Help with jobs from the queue until it yields None."""
    job = jobs.get()
    while job is not None:
        job.help()
        job = None  # release its arrays before waiting
        job = jobs.get()


_pool = _Pool(_default_count())


def _reset_after_fork() -> None:
    """Replace the pool in a forked child, which has none of its parent's threads."""
    global _pool
    _pool, chosen = _Pool(_pool.count), _pool.chosen
    _pool.chosen = chosen


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def get_num_threads() -> int:
    """Return the number of threads that compute one operation on large arrays.

    The default is the environment variable ``OMP_NUM_THREADS`` or the number of usable cores.
    Matrix products are computed by NumPy's BLAS, which has its own number of threads.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.get_num_threads() >= 1
    True
    """
    return _pool.count


def has_chosen() -> bool:
    """Return whether `set_num_threads` was called."""
    return _pool.chosen


def set_num_threads(num: int) -> None:
    """Set the number of threads that compute one operation on large arrays.

    Parameters
    ----------
    num : int
        At least 1, which is the calling thread only. Results do not depend on it.

    Raises
    ------
    TypeError
        If `num` is not an int.
    ArgumentError
        If `num` is less than 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> before = cr.get_num_threads()
    >>> cr.set_num_threads(1)
    >>> cr.get_num_threads()
    1
    >>> cr.set_num_threads(before)
    """
    global _pool
    if isinstance(num, bool) or not isinstance(num, int):
        raise TypeError(f"set_num_threads expects an int, but got {type(num).__name__}")
    if num < 1:
        raise ArgumentError(f"set_num_threads expects a positive integer, but got {num}")
    if num != _pool.count:
        before, _pool = _pool, _Pool(num)  # first: a pool that has stopped is no pool
        before.stop()
    _pool.chosen = True


@contextmanager
def using_threads(num: int) -> Iterator[None]:
    """Compute with another number of threads in a block, in all threads of the process."""
    global _pool
    before, chosen = _pool, _pool.chosen
    if num != before.count:
        _pool = _Pool(num)
    _pool.chosen = True
    try:
        yield
    finally:
        inner, _pool = _pool, before
        before.chosen = chosen
        if inner is not before:
            inner.stop()


def parallel_for(task: Task, blocks: Iterable[int]) -> None:
    """Call `task` with each of the numbers, in any order, in the calling and the helper threads.

    An exception of a task is raised here, after all running tasks have ended.
    """
    pool = _pool
    job = _Job(task, blocks)
    helper_count = min(pool.count, len(job.blocks)) - 1
    if helper_count <= 0:
        return job.work()
    pool.start()
    for _ in range(helper_count):
        pool.jobs.put(job)
    try:
        try:
            job.work()
        finally:
            job.finish()
    except BaseException:  # an interrupt may have ended the wait
        job.finish()
        raise
    if job.error is not None:
        raise job.error
    return None
