"""Each exchange on two ranks, with its derivatives: ``mpiexec -n 2 python mpi_program.py``.

With an argument, the ranks are threads. Both print the same.
"""

import sys

import numpy as np

import chainrule as cr
from chainrule.distributed import Communicator

OTHER = {0: 1, 1: 0}
EXCHANGES = {
    "allreduce": lambda c, x: c.allreduce(x),
    "max": lambda c, x: c.allreduce(x, "max"),
    "reduce": lambda c, x: c.reduce(x, 1),
    "bcast": lambda c, x: c.bcast(x, 1),
    "bcast none": lambda c, x: c.bcast(x if c.rank else None, 1) * x,
    "allgather": lambda c, x: c.allgather(x[:, : c.rank + 1], 1),
    "gather": lambda c, x: c.gather(x, 1, 1),
    "reduce_scatter": lambda c, x: c.reduce_scatter(x, 1, sizes=[1, 2]),
    "scatter": lambda c, x: c.scatter(x, 1, 1, sizes=[0, 3]),
    "alltoall": lambda c, x: c.alltoall(x, 0, 1),
    "sendrecv": lambda c, x: c.sendrecv(x, OTHER[c.rank], OTHER[c.rank]),
    "one way": lambda c, x: c.sendrecv(x, None if c.rank else 1, 0 if c.rank else None),
    "messages": lambda c, x: c.send(x, OTHER[c.rank]) + c.recv(OTHER[c.rank]),
    "split": lambda c, x: c.split(c.rank).allreduce(x),
}
DTYPES = ("float16", "float32", "float64", "complex64", "complex128", "int16", "uint8")


def program(comm: Communicator) -> list[str]:
    lines = []
    x, t = np.random.default_rng(comm.rank).integers(-9, 9, (2, 2, 3)).astype(float)
    for name, call in EXCHANGES.items():

        def loss(x, call=call):
            y = call(comm, x)
            return (y**3 * (cr.arange(y.numel()) % 5).reshape(y.shape)).sum()

        point, direction = cr.tensor(x), cr.tensor(t)
        leaf = point.clone().requires_grad_()
        (first,) = cr.autograd_grad(loss(leaf), [leaf], create_graph=True)
        (second,) = cr.autograd_grad((first * direction).sum(), [leaf])
        mapped = cr.vmap(loss)(cr.stack([point, direction]))
        values = [loss(point), cr.jvp(loss, point, direction)[1], first, second, mapped]
        lines += [f"{comm.rank} {name}: {value.tolist()}" for value in values]
    for dtype in DTYPES:
        array = np.ones(3, dtype) * (comm.rank + 1)
        found = comm.allreduce(array), comm.bcast(array), comm.allgather(array)
        lines.append(f"{comm.rank} {[(a.dtype.name, a.tolist()) for a in found]}")
    large = cr.ones(1_000_000)  # all send first, and nobody waits
    comm.send(large, OTHER[comm.rank])
    lines.append(f"{comm.rank} {comm.recv(OTHER[comm.rank]).sum().item()}")
    try:
        comm.allreduce(cr.ones(comm.rank + 1))
    except cr.errors.CommunicationError as error:
        lines.append(f"{comm.rank} {str(error).partition('(/')[0]}")
    return lines


if len(sys.argv) > 1:
    BY_RANK = cr.distributed.run_ranks(program, 2)
else:
    WORLD = cr.distributed.world()
    own = "\n".join(program(WORLD)).encode()
    both = WORLD.gather(np.frombuffer(own, np.uint8))
    sizes = WORLD.gather(np.array([len(own)]))
    if WORLD.rank:
        sys.exit()
    BY_RANK = [both.tobytes()[: sizes[0]].decode(), both.tobytes()[sizes[0] :].decode()]
    BY_RANK = [text.splitlines() for text in BY_RANK]
print("\n".join(BY_RANK[0] + BY_RANK[1]))
