"""`DistributedSampler`: the shares of processes, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.errors import ArgumentError
from chainrule.utils.data import DataLoader, DistributedSampler, TensorDataset


@settings(deadline=None)  # the first imports PyTorch
@given(
    number=st.integers(0, 30),
    replicas=st.integers(1, 9),
    drop_last=st.booleans(),
    epoch=st.none() | st.integers(0, 3),
)
def test_shares_are_those_of_pytorch(
    number: int, replicas: int, drop_last: bool, epoch: int | None
) -> None:
    torch: Any = pytest.importorskip("torch")
    options: dict[str, Any] = {"shuffle": epoch is not None, "seed": 3, "drop_last": drop_last}

    def order(number: int, generator: Any) -> Any:  # ours, in the place of PyTorch's random one
        ours = cr.Generator().manual_seed(generator.initial_seed())
        return torch.tensor(cr.randperm(number, generator=ours).tolist(), dtype=torch.int64)

    for rank in range(replicas):
        ours = DistributedSampler(range(number), replicas, rank, **options)
        theirs = torch.utils.data.DistributedSampler(range(number), replicas, rank, **options)
        for each in (ours, theirs) if epoch is not None else ():
            each.set_epoch(epoch)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "randperm", order)
            wanted = list(theirs) if number else []  # PyTorch divides by zero
        assert list(ours) == wanted
        assert (len(ours), ours.total_size) == (len(theirs), theirs.total_size)


def test_processes_share_an_order_for_each_epoch() -> None:
    samplers = [DistributedSampler(range(12), 3, rank) for rank in range(3)]
    orders = []
    for epoch in (0, 1, 0):
        for each in samplers:
            each.set_epoch(epoch)
        orders.append([list(each) for each in samplers])
        assert sorted(index for share in orders[-1] for index in share) == list(range(12))
    assert orders[0] == orders[2] != orders[1]


def test_a_loader_takes_it() -> None:
    sampler = DistributedSampler(range(6), 2, 1, shuffle=False)
    loader = DataLoader(TensorDataset(cr.arange(6)), 2, sampler=sampler)
    assert [x.tolist() for (x,) in loader] == [[1, 3], [5]]
    assert len(loader) == 2


def test_ranks_out_of_range_are_refused() -> None:
    for rank in (-1, 2):
        with pytest.raises(ArgumentError, match=rf"Invalid rank {rank}.*interval \[0, 1\]"):
            DistributedSampler(range(4), 2, rank)
    with pytest.raises(ArgumentError, match=r"pass num_replicas= and rank=, such as comm.size"):
        DistributedSampler(range(4))
