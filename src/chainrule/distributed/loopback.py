"""Ranks as threads of one process, for tests, notebooks and learning."""

from __future__ import annotations

import contextvars
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from chainrule.distributed.communicator import Communicator
from chainrule.errors import ArgumentError, CommunicationError
from chainrule.random.draw import OF_RANK, default_generator

__all__ = ["run_ranks"]

Array = Any
T = TypeVar("T")


def deadlock_text(waiting: Mapping[int, str], ended: Iterable[int]) -> str:
    """Return the message about ranks that wait in vain, with what each of them waits for."""
    states = {rank: f"rank {rank} waits in {what}" for rank, what in waiting.items()}
    states |= {rank: f"rank {rank} has ended" for rank in ended}
    listed = "; ".join([states[rank] for rank in sorted(states)])
    return (
        f"deadlock: {listed}. For a backward pass to exchange its gradient, connect what a rank "
        "sends or receives with its loss, by chainrule.distributed.connect"
    )


class _World:
    """The ranks of a run: their messages, and what each of them waits for.

    A rank that another one lets go on is running from then on. So if none is running, none ever
    will be: that is an error on all of them at once.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = threading.Condition()
        self.running = set(range(size))
        self.waiting: dict[int, tuple[Any, str]] = {}  # by rank: for which key, in words
        self.messages: defaultdict[Any, deque[Any]] = defaultdict(deque)
        self.meetings: dict[Any, dict[int, Any]] = {}
        self.failure = ""

    def meet(self, key: Any, members: Sequence[int], rank: int, value: Any, what: str) -> list[Any]:
        """Return the values of all members, once each of them has called this."""
        with self.changed:
            meeting = self.meetings.setdefault(key, {})
            meeting[rank] = value
            if len(meeting) == len(members):
                del self.meetings[key]
                self._let_go([r for r in members if r != rank])
            else:
                self._wait(rank, key, what, lambda: len(meeting) == len(members))
            return [meeting[r] for r in members]

    def post(self, key: Any, dest: int, value: Any) -> None:
        """Add a message for rank `dest`."""
        with self.changed:
            self.messages[key].append(value)
            if self.waiting.get(dest, (None,))[0] == key:
                self._let_go([dest])

    def fetch(self, key: Any, rank: int, what: str) -> Any:
        """Return the next message, once there is one."""
        with self.changed:
            messages = self.messages[key]
            if not messages:
                self._wait(rank, key, what, lambda: bool(messages))
            return messages.popleft()

    def end(self, rank: int, failure: str = "") -> None:
        """Note that a rank has ended."""
        with self.changed:
            self.failure = self.failure or failure
            self.running.discard(rank)
            self._check()

    def check_received(self) -> None:
        """Raise for a message that nobody has received: it may be a gradient."""
        for (_, source, dest, tag, _), messages in self.messages.items():
            if messages:
                raise CommunicationError(
                    f"rank {dest} never received what rank {source} sent by {messages[0]}, tag "
                    f"{tag}: if it is a gradient, connect what rank {dest} sent with its loss, "
                    "by chainrule.distributed.connect"
                )

    def _let_go(self, ranks: Sequence[int]) -> None:
        for rank in ranks:
            if self.waiting.pop(rank, None) is not None:
                self.running.add(rank)
        self.changed.notify_all()

    def _wait(self, rank: int, key: Any, what: str, is_ready: Callable[[], bool]) -> None:
        self.running.discard(rank)
        self.waiting[rank] = key, what
        self._check()
        self.changed.wait_for(lambda: self.failure or is_ready())
        if not is_ready():
            raise CommunicationError(self.failure)

    def _check(self) -> None:
        """Fail if the ranks that wait do so in vain."""
        if self.waiting and not self.running and not self.failure:
            waiting = {rank: what for rank, (_, what) in self.waiting.items()}
            self.failure = deadlock_text(waiting, set(range(self.size)) - waiting.keys())
        if self.failure:
            self.changed.notify_all()


class LoopbackTransport:
    """Exchange between threads: arrays are copied, and sums are in the order of ranks."""

    def __init__(self, world: _World, context: Any, members: Sequence[int], rank: int) -> None:
        self.rank = rank
        self.size = len(members)
        self._world = world
        self._context = context  # of this communicator: others have their own messages
        self._members = members
        self._splits = 0

    def agree(self, header: Any) -> list[Any]:
        return self._meet(header, str(header))

    def _meet(self, value: Any, what: str) -> list[Any]:
        me = self._members[self.rank]
        return self._world.meet(self._context, self._members, me, value, what)

    def _arrays(self, x: Array) -> list[Array]:
        """Return a copy of each rank's array: it may be written while others still read it."""
        return self._meet(x.copy(), "an exchange")

    def allreduce(self, x: Array) -> Array:
        arrays = self._arrays(x)
        total = arrays[0].copy()
        for each in arrays[1:]:
            total += each
        return total

    def reduce(self, x: Array, root: int) -> Array:
        total = self.allreduce(x)
        return total if self.rank == root else np.zeros_like(x)

    def bcast(self, x: Array, root: int) -> Array:
        return self._arrays(x)[root].copy()

    def allgather(self, x: Array, counts: Sequence[int]) -> Array:
        return np.concatenate(self._arrays(x))

    def reduce_scatter(self, x: Array, counts: Sequence[int]) -> Array:
        return self._part(self.allreduce(x), counts)

    def gather(self, x: Array, counts: Sequence[int], root: int) -> Array:
        arrays = self._arrays(x)
        return np.concatenate(arrays) if self.rank == root else x[:0]

    def scatter(self, x: Array, counts: Sequence[int], root: int) -> Array:
        return self._part(self._arrays(x)[root], counts).copy()

    def alltoall(self, x: Array) -> Array:
        return np.stack([each[self.rank] for each in self._arrays(x)])

    def _part(self, x: Array, counts: Sequence[int]) -> Array:
        start = sum(counts[: self.rank])
        return x[start : start + counts[self.rank]]

    def post(self, header: Any, dest: int, tag: int) -> None:
        self._post(header, "header", dest, tag)

    def fetch(self, source: int, tag: int) -> Any:
        return self._fetch("header", source, tag)

    def send(self, x: Array, dest: int, tag: int) -> None:
        self._post(x.copy(), "array", dest, tag)

    def recv(self, source: int, tag: int, shape: tuple[int, ...], dtype: Any) -> Array:
        return self._fetch("array", source, tag)

    def _post(self, value: Any, kind: str, dest: int, tag: int) -> None:
        key = (self._context, self.rank, dest, tag, kind)
        self._world.post(key, self._members[dest], value)

    def _fetch(self, kind: str, source: int, tag: int) -> Any:
        key = (self._context, source, self.rank, tag, kind)
        what = f"recv from rank {source}" + (f", tag {tag}" if tag else "")
        return self._world.fetch(key, self._members[self.rank], what)

    def split(self, color: int, key: int) -> LoopbackTransport:
        pairs = self._meet((color, key), "split")
        ranks = [
            rank for _, rank in sorted([(k, r) for r, (c, k) in enumerate(pairs) if c == color])
        ]
        members = [self._members[rank] for rank in ranks]
        self._splits += 1
        context = (self._context, self._splits, color)
        return LoopbackTransport(self._world, context, members, ranks.index(self.rank))


def alone() -> Communicator:
    """Return the communicator of a single rank."""
    return Communicator(LoopbackTransport(_World(1), (), range(1), 0))


def run_ranks(function: Callable[[Communicator], T], ranks: int) -> list[T]:
    """Call a function on several ranks, as threads of this process; return their results.

    What runs here runs under MPI, with ``function(cr.distributed.world())``.

    Parameters
    ----------
    function : callable
        It gets the `Communicator` of its rank. Modes, such as `no_grad`, are those of the caller.
    ranks : int
        How many.

    Returns
    -------
    list
        The result of each rank, in their order.

    Raises
    ------
    Exception
        That of the first rank that failed, with its rank in a note; the others get a
        CommunicationError at their next exchange.
    CommunicationError
        If the ranks' calls differ, if all ranks wait for each other or for one that has ended, or
        if a message was never received: at once, never a hang.

    Notes
    -----
    Ranks share the memory of the process: the modules and tensors that the function makes are its
    own, those from outside are everybody's. Each rank has a default generator of its own, as a
    process has: `manual_seed` seeds that, and after one before `run_ranks` all of them draw the
    same. The generator of ``numpy.random`` is everybody's.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributed.run_ranks(lambda comm: comm.allreduce(comm.rank + 1).item(), 4)
    [10, 10, 10, 10]
    """
    if ranks < 1:
        raise ArgumentError(f"run_ranks: ranks must be positive, got {ranks}")
    world = _World(ranks)
    results: list[Any] = [None] * ranks
    errors: dict[int, BaseException] = {}
    whole = default_generator()
    generators = whole.of_ranks(ranks)

    def run(rank: int) -> None:
        OF_RANK.set(generators[rank])
        try:
            transport = LoopbackTransport(world, (), range(ranks), rank)
            results[rank] = function(Communicator(transport))
        except BaseException as error:
            errors[rank] = error  # in the order of failing
            world.end(rank, f"rank {rank} raised {type(error).__name__}: {error}")
        else:
            world.end(rank)

    threads = [
        threading.Thread(
            target=contextvars.copy_context().run,
            args=(run, rank),
            name=f"rank {rank}",
            daemon=True,
        )
        for rank in range(ranks)
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        world.end(-1, "the program was interrupted")
        raise
    if errors:
        rank, error = next(iter(errors.items()))
        error.add_note(f"On rank {rank} of {ranks}.")
        raise error
    world.check_received()
    if whole.is_seeded:
        whole.set_state(generators[0].get_state())
    return results
