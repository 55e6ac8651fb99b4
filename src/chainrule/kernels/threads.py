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


current_core = _core_finder()


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


def keep_off(threads: list[int], core: int) -> None:
    """Let threads run where the main one may, but not on one core if others are left."""
    try:
        cores = os.sched_getaffinity(os.getpid())
        for thread in threads:
            os.sched_setaffinity(thread, cores - {core} or cores)
    except (AttributeError, OSError):  # not on this system, not allowed to, or something has gone
        pass


class _Pool:
    """The threads, started when first needed."""

    def __init__(self, count: int) -> None:
        self.count = count  # with the calling one
        self.lock = threading.Lock()
        self.jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self.started = 0
        self.threads: list[int] = []  # as the system numbers them
        self.avoided = -1

    def start(self) -> None:
        with self.lock:
            while self.started < self.count - 1:
                name = f"chainrule-{self.started + 1}"
                thread = threading.Thread(target=self.serve, name=name, daemon=True)
                thread.start()
                self.threads.append(thread.native_id or 0)
                self.started += 1
                self.avoided = -1

    def serve(self) -> None:
        """Help with one job after the other."""
        job = self.jobs.get()
        while job is not None:
            job.help()
            job = None  # its arrays are not to live until the next one comes
            job = self.jobs.get()

    def keep_off(self, core: int) -> None:
        """Let the threads run where the main one may, but not on one core if others are left.

        Linux may wake a thread on the very core that its caller works on, the next one idle: then
        the two take turns, and a computation twice the time. It's the caller who sees to it, while
        they wait: one that wakes beside its caller and then leaves has pushed it off to the other.
        """
        if core == self.avoided:
            return
        self.avoided = core
        keep_off(self.threads, core)

    def stop(self) -> None:
        """Let the threads end; jobs that were offered to them are done by their callers."""
        with self.lock:
            for _ in range(self.started):
                self.jobs.put(None)


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


def set_num_threads(num: int, /) -> None:
    """Set how many threads compute one operation on large arrays: 1 for the calling one alone.

    Parameters
    ----------
    num : int
        At least 1. Results do not depend on it.

    Raises
    ------
    TypeError
        If it is no int.
    ValueError
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
        raise ValueError(f"set_num_threads expects a positive integer, but got {num}")
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
    if pool.started < pool.count - 1:
        pool.start()
    pool.keep_off(current_core())
    for _ in range(helpers):
        pool.jobs.put(job)
    try:
        job.work()
    finally:
        job.finish()
    if job.error is not None:
        raise job.error
    return None
