"""Ranks as processes of MPI, by mpi4py."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.distributed.communicator import Communicator
from chainrule.distributed.loopback import alone
from chainrule.distributed.mpi_waits import Waits
from chainrule.errors import MissingExtraError

__all__ = ["from_mpi", "world"]

Array = Any

_HEADER = 512
"""Bytes of a header that one exchange takes, with its length."""

_LONGEST = _HEADER - 8
"""Bytes of a header from which it takes two exchanges."""


class MPITransport:
    """Exchange by the buffers of mpi4py. Sums are in the order that MPI chooses.

    What waits for another rank's call are the exchange of headers and a message's arrival.
    """

    def __init__(self, comm: Any, waits: Waits) -> None:
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._comm = comm
        self._waits = waits
        self._sent: list[tuple[Any, Any]] = []  # requests, with what they are sending

    def agree(self, header: Any) -> list[Any]:
        text = pickle.dumps(header)
        own = len(text).to_bytes(8, "little") + text[:_LONGEST].ljust(_LONGEST, b"\0")
        found = bytearray(self.size * _HEADER)
        self._waits.until(self._comm.Iallgather(own, found).Test, lambda: str(header))
        each = [memoryview(found)[at : at + _HEADER] for at in range(0, len(found), _HEADER)]
        lengths = [int.from_bytes(part[:8], "little") for part in each]
        if max(lengths) <= _LONGEST:
            return [pickle.loads(part[8:]) for part in each]
        texts = bytearray(sum(lengths))
        gathered = self._comm.Iallgatherv(text, [texts, lengths])
        self._waits.until(gathered.Test, lambda: str(header))
        ends = [*itertools.accumulate(lengths)]
        return [pickle.loads(texts[end - n : end]) for end, n in zip(ends, lengths, strict=True)]

    # --- sums: of numbers ---

    def allreduce(self, x: Array) -> Array:
        total = np.empty_like(x)
        self._comm.Allreduce(x, total)
        return total

    def reduce(self, x: Array, root: int) -> Array:
        total = np.zeros_like(x)
        self._comm.Reduce(x, total if self.rank == root else None, root=root)
        return total

    def reduce_scatter(self, x: Array, counts: Sequence[int]) -> Array:
        part = np.empty(counts[self.rank], x.dtype)
        self._comm.Reduce_scatter(x, part, counts)
        return part

    # --- copies: of bytes, so of any dtype ---

    def bcast(self, x: Array, root: int) -> Array:
        out = x.copy()
        self._comm.Bcast(_bytes(out), root=root)
        return out

    def allgather(self, x: Array, counts: Sequence[int]) -> Array:
        out = np.empty(sum(counts), x.dtype)
        self._comm.Allgatherv(_bytes(x), [_bytes(out), _byte_counts(x, counts)])
        return out

    def gather(self, x: Array, counts: Sequence[int], root: int) -> Array:
        out = np.empty(sum(counts) if self.rank == root else 0, x.dtype)
        target = [_bytes(out), _byte_counts(x, counts)] if self.rank == root else None
        self._comm.Gatherv(_bytes(x), target, root=root)
        return out

    def scatter(self, x: Array, counts: Sequence[int], root: int) -> Array:
        out = np.empty(counts[self.rank], x.dtype)
        source = [_bytes(x), _byte_counts(x, counts)] if self.rank == root else None
        self._comm.Scatterv(source, _bytes(out), root=root)
        return out

    def alltoall(self, x: Array) -> Array:
        out = np.empty_like(x)
        self._comm.Alltoall(_bytes(x), _bytes(out))
        return out

    # --- messages: a send doesn't wait, so that neighbours may all send first ---

    def post(self, header: Any, dest: int, tag: int) -> None:
        self._keep(self._comm.isend(header, dest, 2 * tag), header)

    def fetch(self, source: int, tag: int) -> Any:
        found: list[Any] = []

        def is_there() -> bool:
            found[:] = [self._comm.improbe(source=source, tag=2 * tag)]
            return found[0] is not None

        what = f"recv from rank {source}" + (f", tag {tag}" if tag else "")
        self._waits.until(is_there, lambda: what)
        return found[0].recv()

    def send(self, x: Array, dest: int, tag: int) -> None:
        copy = x.copy()
        self._keep(self._comm.Isend(_bytes(copy), dest, 2 * tag + 1), copy)

    def recv(self, source: int, tag: int, shape: tuple[int, ...], dtype: Any) -> Array:
        out = np.empty(shape, dtype)
        self._comm.Recv(_bytes(out), source, 2 * tag + 1)
        return out

    def _keep(self, request: Any, value: Any) -> None:
        """Keep what is being sent until it has arrived."""
        if not self._sent:
            atexit.register(self._finish)  # before MPI's own end
        self._sent = [pair for pair in self._sent if not pair[0].Test()]
        self._sent.append((request, value))

    def _finish(self) -> None:
        for request, _ in self._sent:
            self._waits.until(request.Test, lambda: "send, at its end")

    def split(self, color: int, key: int) -> MPITransport:
        return MPITransport(self._comm.Split(color, key), self._waits)


def _bytes(x: Array) -> Array:
    return x.reshape(-1).view(np.uint8)


def _byte_counts(x: Array, counts: Sequence[int]) -> list[int]:
    return [count * x.itemsize for count in counts]


def from_mpi(comm: Any) -> Communicator:
    """Return the communicator of an mpi4py communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        It is duplicated: messages of both don't mix.

    Returns
    -------
    Communicator

    Examples
    --------
    >>> import chainrule as cr
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> cr.distributed.from_mpi(MPI.COMM_WORLD)  # doctest: +SKIP
    <rank 0 of 1>
    """
    return Communicator(MPITransport(comm.Dup(), Waits(comm)))


@functools.cache
def world() -> Communicator:
    """Return the communicator of all processes that ``mpiexec`` started; always the same.

    Without MPI, or without mpi4py, it is that of this process alone.

    Raises
    ------
    MissingExtraError
        If the process is one of several, but mpi4py isn't installed.

    Examples
    --------
    >>> import chainrule as cr
    >>> comm = cr.distributed.world()
    >>> comm.allreduce(cr.tensor([1.0, 2.0]))  # doctest: +SKIP
    tensor([1., 2.])
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI library
        if any(int(os.environ.get(name, "1")) > 1 for name in _SIZES):
            raise MissingExtraError(
                "this is one of several processes of MPI, which needs mpi4py and its library: pip "
                "install 'chainrule[mpi]'"
            ) from error
        return alone()
    return from_mpi(MPI.COMM_WORLD)


_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")
"""Environment variables by which launchers of MPI tell how many processes there are."""
