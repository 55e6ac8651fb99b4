"""Waits of the processes of MPI, which end in an error once all of them wait in vain.

A process that waits long tells the others what for, and which of their waits it has heard of; one
that ends tells them, too. All wait in vain if each of them, having heard of the others' waits, has
looked again and again for what it waits for.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from chainrule.distributed.loopback import deadlock_text
from chainrule.errors import CommunicationError

_SPIN, _PAUSE = 0.1, 0.001
"""Seconds for which a wait looks without a pause, as MPI does, and those of a pause."""

_QUIET = 2.0
"""Seconds of waiting after which a process tells the others, and then again and again."""

_TIMES = 3
"""Number of times that each process tells that nothing has changed before all wait in vain."""

_COMPUTING, _ENDED = -1, 0


class _State(NamedTuple):
    """What a process has told last."""

    what: str
    waits: tuple[int, ...]  # of each process that it has heard of, and its own: their numbers
    times: int = 0  # that it has told the same


class Waits:
    """The waits of one process, and what the others tell of theirs. For one thread."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm.Dup()  # of its own, so that these messages don't mix with others
        self._rank: int = comm.rank
        self._others = [rank for rank in range(comm.size) if rank != comm.rank]
        self._number = 0
        self._waits = [_COMPUTING] * comm.size
        self._states: dict[int, _State] = {}  # of all processes that have told something
        self._sent: list[Any] = []
        self._listened = 0.0
        self._abandoned: list[Any] = []  # MPI may still write to the memory of these requests
        self._is_broken = False
        if comm.size > 1:
            atexit.register(self._end)  # before MPI's own end

    def until(self, is_done: Callable[[], Any], what: Callable[[], str]) -> None:
        """Return when something is done; raise if it never will be."""
        begin = last = time.monotonic()
        if begin - self._listened > _QUIET:  # so that what the others tell doesn't pile up
            self._listen()
        try:
            while not is_done():
                now = time.monotonic()
                if now - begin < _SPIN:
                    continue
                time.sleep(_PAUSE)
                if now - last < max(_QUIET, (now - begin) / 4):
                    continue
                if last == begin:
                    self._number += 1
                last = now
                self._tell(self._number, what())
                self._listen()
                self._check()
        except BaseException:
            self._abandoned.append(is_done)
            raise
        finally:
            if last > begin and not self._is_broken:
                self._tell(_COMPUTING, "")

    def _tell(self, wait: int, what: str) -> None:
        self._waits[self._rank] = wait
        state = _State(what, tuple(self._waits))
        self._keep(self._rank, state)
        self._sent = [request for request in self._sent if not request.Test()]
        self._sent += [self._comm.isend(tuple(state[:2]), rank) for rank in self._others]

    def _keep(self, rank: int, state: _State) -> None:
        before = self._states.get(rank)
        times = before.times if before is not None and before.waits == state.waits else 0
        self._states[rank] = state._replace(times=times + 1)
        self._waits[rank] = state.waits[rank]

    def _listen(self) -> None:
        from mpi4py import MPI

        status = MPI.Status()
        while self._comm.iprobe(status=status):
            self._keep(status.source, _State(*self._comm.recv(source=status.source)))
        self._listened = time.monotonic()

    def _check(self) -> None:
        """Raise if all others have ended, or wait and know of all waits."""
        waits = tuple(self._waits)
        waiting = {rank: s for rank, s in self._states.items() if waits[rank] > 0}
        ended = [rank for rank, wait in enumerate(waits) if wait == _ENDED]
        if len(waiting) + len(ended) == len(waits) and all(
            state.waits == waits and state.times >= _TIMES for state in waiting.values()
        ):
            self._is_broken = True
            raise CommunicationError(
                deadlock_text({rank: state.what for rank, state in waiting.items()}, ended)
            )

    def _end(self) -> None:
        if self._is_broken:  # what others still wait for would let MPI wait at its end
            self._comm.Abort(1)
        self._tell(_ENDED, "")
        begin = time.monotonic()
        while self._sent and time.monotonic() - begin < _QUIET:
            self._sent = [request for request in self._sent if not request.Test()]
