"""Ranks as processes of MPI, by mpi4py."""

from __future__ import annotations

import atexit
import functools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.distributed.communicator import Communicator
from chainrule.distributed.loopback import alone
from chainrule.errors import MissingExtraError

__all__ = ["from_mpi", "world"]

Array = Any


class MPITransport:
    """Exchange by the buffers of mpi4py. Sums are in the order that MPI chooses."""

    def __init__(self, comm: Any) -> None:
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._comm = comm
        self._sent: list[tuple[Any, Any]] = []  # requests, with what they are sending

    def agree(self, header: Any) -> list[Any]:
        headers: list[Any] = self._comm.allgather(header)
        return headers

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
        return self._comm.recv(source=source, tag=2 * tag)

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
            request.Wait()

    def split(self, color: int, key: int) -> MPITransport:
        return MPITransport(self._comm.Split(color, key))


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
    return Communicator(MPITransport(comm.Dup()))


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
