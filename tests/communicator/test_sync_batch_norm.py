"""`nn.SyncBatchNorm`: over ranks it is batch normalisation of the whole batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.distributed import Communicator, run_ranks

RNG = np.random.default_rng(0)
X, WEIGHTS = RNG.normal(2, 3, (7, 3, 4)), RNG.normal(size=(7, 3, 4))
PARTS = [slice(0, 2), slice(2, 2), slice(2, 7)]  # one is empty


def step(layer: Any, rows: slice) -> list[Any]:
    """Return the outputs and gradients of a step in training, and what evaluation gives after."""
    x = cr.tensor(X[rows], requires_grad=True)
    (layer(x).sin() * cr.tensor(WEIGHTS[rows])).sum().backward()
    layer.eval()
    statistics = [] if layer.running_mean is None else [layer.running_mean, layer.running_var]
    gradients = [] if layer.weight is None else [layer.weight.grad, layer.bias.grad]
    return [
        [t.detach().numpy() for t in each] for each in ([layer(x), x.grad], gradients, statistics)
    ]


@pytest.mark.parametrize("settings", [{}, {"affine": False, "momentum": None}, {"momentum": 0.3}])
def test_ranks_do_what_one_does_with_all(settings: dict[str, Any]) -> None:
    settings = {**settings, "dtype": cr.float64}
    rows, gradients, statistics = step(nn.BatchNorm1d(3, **settings), slice(None))

    def program(comm: Communicator) -> Any:
        layer = nn.SyncBatchNorm(3, process_group=comm, **settings)
        return step(layer, PARTS[comm.rank])

    by_rank = run_ranks(program, 3)
    for i, wanted in enumerate(rows):
        found = np.concatenate([each[0][i] for each in by_rank])
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
    for i, wanted in enumerate(gradients):
        np.testing.assert_allclose(sum(each[1][i] for each in by_rank), wanted, rtol=1e-11)
    for each in by_rank:
        np.testing.assert_allclose(each[2], statistics, rtol=1e-12)


def test_alone_it_is_batch_normalisation() -> None:
    for layer in (nn.SyncBatchNorm(3), nn.SyncBatchNorm(3, process_group=cr.distributed.world())):
        found = layer(cr.tensor(X).float()).detach().numpy()
        wanted = nn.BatchNorm1d(3)(cr.tensor(X).float()).detach().numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_conversion_keeps_parameters_and_settings() -> None:
    net = nn.Sequential(
        nn.BatchNorm2d(3, eps=0.1), nn.ModuleList([nn.BatchNorm1d(2, affine=False)])
    )
    before, weight = list(net.state_dict()), net[0].weight
    net.eval()
    comm = cr.distributed.world()
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net, comm)
    assert converted is net
    assert list(net.state_dict()) == before
    assert type(net[0]) is type(net[1][0]) is nn.SyncBatchNorm
    assert net[0].weight is weight
    assert net[0].process_group is comm
    assert (net[0].eps, net[0].training, net[1][0].affine) == (0.1, False, False)
    torch = pytest.importorskip("torch")
    theirs = torch.nn.SyncBatchNorm.convert_sync_batchnorm(
        torch.nn.Sequential(torch.nn.BatchNorm2d(3, eps=0.1))
    )
    assert repr(theirs[0]).partition(", bias")[0] in repr(net[0])


def test_errors() -> None:
    with pytest.raises(ValueError, match="expected at least 2D input"):
        nn.SyncBatchNorm(3)(cr.ones(3))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        run_ranks(
            lambda comm: nn.SyncBatchNorm(1, process_group=comm)(cr.ones(1 - comm.rank, 1)), 2
        )
