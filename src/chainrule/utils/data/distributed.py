"""The sampler of one process among several that train together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from chainrule.errors import ArgumentError
from chainrule.random import randperm
from chainrule.random.generator import Generator
from chainrule.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """The share of one process in the indices of a data set: as many as any other's.

    Parameters
    ----------
    dataset : Dataset
        With a length n.
    num_replicas : int
        Number of processes p, such as the size of a communicator.
    rank : int
        The number of this process, from 0 to p - 1.
    shuffle : bool, default True
        Order the indices at random, in the same way in all processes.
    seed : int, default 0
        Of that order, with the epoch: the same in all processes.
    drop_last : bool, default False
        If p doesn't divide n, leave out the last n mod p indices; otherwise the first ones come
        again at the end.

    Raises
    ------
    ArgumentError
        If `num_replicas` or `rank` is missing or out of range.

    Notes
    -----
    The process takes each p-th index of the order, beginning with number `rank`, as in PyTorch [1]_
    (whose random orders are others). Call `set_epoch` before each epoch: otherwise all have the
    same order. `distributed.fit` needs no such sampler: there one process has the order.

    References
    ----------
    .. [1] https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler

    Examples
    --------
    >>> from chainrule.utils.data import DistributedSampler
    >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise ArgumentError(
                "DistributedSampler: there is no process group to ask: pass num_replicas= and "
                "rank=, such as comm.size and comm.rank of a communicator"
            )
        if not 0 <= rank < num_replicas:
            raise ArgumentError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last = shuffle, seed, drop_last
        self.epoch = 0
        number = len(dataset)
        self.num_samples = number // num_replicas if drop_last else math.ceil(number / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch.

        Parameters
        ----------
        epoch : int
            Its number, added to the seed.
        """
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        number = len(self.dataset)
        order = list(range(number))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(number, generator=generator).tolist()
        for place in range(self.rank, self.total_size, self.num_replicas):
            yield order[place % number]

    def __len__(self) -> int:
        return self.num_samples
