"""What would wait forever: ``mpiexec -n 3 python mpi_faults.py NAME``. Prints each rank's error."""

import os
import sys
import time

import chainrule as cr
from chainrule.distributed import Communicator, mpi_waits

mpi_waits._QUIET = 0.3  # instead of 2 s


def _gradient_of_one(comm: Communicator) -> None:
    x = cr.ones(2, requires_grad=True)
    y = comm.allreduce(x)
    if comm.rank == 0:
        y.sum().backward()


def _late(comm: Communicator) -> None:
    """Two long waits, neither of them in vain."""
    part = comm.split(int(comm.rank > 0))
    if comm.rank == 1:
        time.sleep(1.5)
    part.allreduce(cr.ones(2))
    comm.allreduce(cr.ones(2))


def _long(comm: Communicator) -> None:
    """Headers shorter and longer than what is exchanged at once."""
    for length in (470, 490, 500, 510, 3000):
        texts = [str(rank) * (length + rank) for rank in range(comm.size)]
        assert comm.transport.agree(texts[comm.rank]) == texts


FAULTS = {
    "ended": lambda c: None if c.rank == 1 else c.allreduce(cr.ones(2)),
    "message": lambda c: c.recv(1, tag=4) if c.rank == 0 else None,
    "circle": lambda c: c.recv((c.rank + 1) % c.size),
    "kinds": lambda c: c.recv(1) if c.rank == 0 else c.barrier(),
    "part": lambda c: (c.split(int(c.rank > 0)).barrier(), c.rank == 2 or c.barrier()),
    "gradient": _gradient_of_one,
    "unreceived": lambda c: c.send(cr.ones(1_000_000), 1) if c.rank == 0 else None,
    "late": _late,
    "long": _long,
}

world = cr.distributed.world()
try:
    FAULTS[sys.argv[1]](world)
    text = "done"
except cr.errors.CommunicationError as error:
    text = str(error).partition(". For a backward pass")[0]
os.write(1, f"{world.rank}: {text}\n".encode())
