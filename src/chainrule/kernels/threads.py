"""A few threads that share the blocks of one large computation.

NumPy lets other threads run while it computes. The calling thread always works itself and waits
only for blocks that another thread has begun: so a thread that gets no core costs nothing, calls
may nest, and several threads may call at once.
"""

from __future__ import annotations

import contextvars
import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any

from chainrule.errors import ArgumentError

Task = Callable[[int], None]


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def _first_count() -> int:
    try:
        return max(int(os.environ["OMP_NUM_THREADS"].split(",")[0]), 1)
    except (KeyError, ValueError):
        return usable_cores()


def _core_finder() -> Callable[[], int]:
    """Return what tells the number of the core that the calling thread runs on, -1 if unknown."""
    if hasattr(os, "sched_setaffinity"):
        try:
            found: Callable[[], int] = ctypes.CDLL(None).sched_getcpu
            return found
        except AttributeError:  # a libc without it
            pass
    return lambda: -1


_current_core = _core_finder()


class _Job:
    """One computation: the numbers of its blocks that nobody has begun, and who is at work."""

    def __init__(self, task: Task, blocks: Iterable[int]) -> None:
        self.task = task
        self.blocks = deque(blocks)
        self.context = contextvars.copy_context()  # NumPy's errstate among others
        self.lock = threading.Lock()
        self.helping = 0
        self.closed = False
        self.quiet = threading.Event()
        self.error: BaseException | None = None

    def work(self) -> None:
        """Do blocks until none is left."""
        task, take = self.task, self.blocks.popleft
        while True:
            try:
                block = take()
            except IndexError:
                return
            task(block)

    def help(self) -> None:
        """Do blocks in another thread than the caller's."""
        with self.lock:
            if self.closed:
                return
            self.helping += 1
        try:
            self.context.copy().run(self.work)
        except BaseException as error:
            self.error = error
            self.blocks.clear()
        finally:
            with self.lock:
                self.helping -= 1
                if self.closed and not self.helping:
                    self.quiet.set()

    def finish(self) -> None:
        """Begin no more blocks, and wait for those that are begun."""
        self.blocks.clear()
        with self.lock:
            self.closed = True
            helping = self.helping
        if helping:
            self.quiet.wait()


class Beside:
    """Threads that are to run beside their caller, not on its core.

    Linux may wake a thread on the very core that its caller works on, the next one idle: then the
    two take turns, and a computation twice the time. It's the caller who sees to it, while they
    wait: one that wakes beside its caller and then leaves has pushed it off to the other.
    """

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self._core = -1  # that they keep off

    def start(self, target: Callable[..., None], args: tuple[Any, ...], name: str) -> None:
        """Start another one."""
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        thread.start()
        self.threads.append(thread)
        self._core = -1

    def keep_off(self) -> None:
        """Let them run where the main one may, but not on the caller's core if others are left."""
        core = _current_core()
        if core == self._core:
            return
        self._core = core
        try:
            cores = os.sched_getaffinity(os.getpid())
            for thread in self.threads:
                if thread.native_id is not None:
                    os.sched_setaffinity(thread.native_id, cores - {core} or cores)
        except (AttributeError, OSError):  # not on this system, not allowed to, or it has gone
            pass


class _Pool:
    """The threads, started when first needed."""

    def __init__(self, count: int) -> None:
        self.count = count  # with the calling one
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.others = Beside()

    def start(self) -> None:
        """See to it that there are all of them, and that they leave the caller its core."""
        threads = self.others.threads
        if len(threads) < self.count - 1:
            with self.lock:
                while len(threads) < self.count - 1:
                    self.others.start(_serve, (self.jobs,), f"chainrule-{len(threads) + 1}")
        self.others.keep_off()

    def stop(self) -> None:
        """Let the threads end; jobs that were offered to them are done by their callers."""
        with self.lock:
            for _ in self.others.threads:
                self.jobs.put(None)


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    """Help with one job after the other."""
    job = jobs.get()
    while job is not None:
        job.help()
        job = None  # its arrays are not to live until the next one comes
        job = jobs.get()


_pool = _Pool(_first_count())


def _forget_threads() -> None:
    """A forked child has none of its parent's threads: it starts its own when it needs them."""
    global _pool
    _pool = _Pool(_pool.count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def get_num_threads() -> int:
    """Return how many threads compute one operation on large arrays.

    At first as many as the variable ``OMP_NUM_THREADS`` says, else as there are cores to run on.
    Products of matrices are NumPy's, whose BLAS has its own number.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.get_num_threads() >= 1
    True
    """
    return _pool.count


def set_num_threads(num: int) -> None:
    """Set how many threads compute one operation on large arrays: 1 for the calling one alone.

    Parameters
    ----------
    num : int
        At least 1. Results do not depend on it.

    Raises
    ------
    TypeError
        If it is no int.
    ArgumentError
        If it is less than 1.

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
        _pool.stop()
        _pool = _Pool(num)


def each(task: Task, blocks: Iterable[int]) -> None:
    """Call `task` with each of the numbers, in any order, by the calling and the other threads.

    What a task raises is raised here, when no other task runs any more.
    """
    pool = _pool
    job = _Job(task, blocks)
    helpers = min(pool.count, len(job.blocks)) - 1
    if helpers <= 0:
        return job.work()
    pool.start()
    for _ in range(helpers):
        pool.jobs.put(job)
    try:
        job.work()
    finally:
        job.finish()
    if job.error is not None:
        raise job.error
    return None
