"""A network whose layers are split over ranks, and which has the gradients of the whole.

Each rank has some of the hidden units: rows of the first layer, columns of the second. One sum over
the ranks gives the prediction; everything else, the gradients and the optimiser too, is local.

Run it: python3 examples/split_model.py             (two ranks, as threads)
        mpiexec -n 2 python3 -m mpi4py examples/split_model.py
"""

import numpy as np

import chainrule as cr

HIDDEN, STEPS = 8, 200


def data():
    """Return points between -3 and 3, and a curve through them."""
    x = np.linspace(-3, 3, 64)[:, None]
    return cr.from_numpy(x), cr.from_numpy(np.sin(x) + 0.3 * x)


def start():
    """Return the parameters of the whole network."""
    rng = np.random.default_rng(0)
    shapes = {"first": (HIDDEN, 1), "bias": (HIDDEN,), "second": (1, HIDDEN)}
    return {name: cr.from_numpy(rng.normal(size=shape)) for name, shape in shapes.items()}


def own_part(parameters, comm):
    """Return the parameters of this rank's hidden units."""
    axes = {"first": 0, "bias": 0, "second": 1}
    return {
        name: parameters[name].chunk(comm.size, axis)[comm.rank].clone()
        for name, axis in axes.items()
    }


def train(comm):
    """Return the loss at each step, and this rank's parameters at the end."""
    x, y = data()
    parameters = own_part(start(), comm)
    for p in parameters.values():
        p.requires_grad_()
    optimizer = cr.optim.Adam(parameters.values(), lr=0.03)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        hidden = (x @ parameters["first"].T + parameters["bias"]).tanh()
        prediction = comm.allreduce(hidden @ parameters["second"].T)
        loss = ((prediction - y) ** 2).mean()
        (loss / comm.size).backward()  # the gradients are those of the sum over all ranks
        optimizer.step()
        losses.append(loss.item())
    return losses, {name: p.detach() for name, p in parameters.items()}


def main():
    world = cr.distributed.world()
    if world.size == 1:  # not started by mpiexec
        losses, _ = cr.distributed.run_ranks(train, 2)[0]
    else:
        losses, _ = train(world)
    if world.rank == 0:
        for step in (*range(0, STEPS, 25), STEPS - 1):
            print(f"step {step:3d}: loss {losses[step]:.4f}")
    return losses


if __name__ == "__main__":
    main()
