"""Data of a training run: the micro-batches of its epochs, in an order that can be repeated."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

from chainrule.distributed.clients import result_of
from chainrule.distributed.extra import dask, dask_delayed, distributed
from chainrule.distributed.micro_batches import MicroBatch
from chainrule.distributed.partitions import Loader, Partition, partitions, pickled
from chainrule.errors import ArgumentTypeError
from chainrule.random import get_rng_state, randint, set_rng_state
from chainrule.utils.data import DataLoader, Dataset

_MAX_SHOWN = 8
"""Number of indices of a batch in messages."""


def send(client: Any, function: Callable[..., Any], *args: Any) -> Any:
    """Return a future of a call whose arguments are large, with copies of its result everywhere.

    Copies that are lost are made again, by the call if there is none left.
    """
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        future = client.submit(function, *args, pure=False)
    distributed.wait(future)
    if future.status == "error":
        result_of(client, "fit", lambda: future, lambda task: "the model, the loss or the data set")
    client.replicate(future)
    return future


class TrainingData:
    """The micro-batches of a loader or of partitions, and the generators that order them."""

    def __init__(self, data: Any, client: Any) -> None:
        self.fetcher: Any = None  # a future of what makes batches by indices
        self._loader: Any = None
        self._partitions: list[Partition] = []
        if isinstance(data, Dataset):
            raise ArgumentTypeError(
                "fit: data is a Dataset, and steps need batches: pass "
                "cr.utils.data.DataLoader(data, batch_size=32, shuffle=True)"
            )
        if not isinstance(data, DataLoader):
            self._partitions = [_loadable(each, client) for each in partitions(data)]
            return
        self._loader = data
        if not data._is_stream:
            written = pickled(data._fetcher(), "the data set, or collate_fn,")
            self.fetcher = send(client, pickle.loads, written)

    def steps(self, micro_batches: int) -> int | None:
        """Return the number of steps of an epoch; None for a stream without a length."""
        batches = self._partitions if self._loader is None else self._loader
        try:
            return -(-len(batches) // micro_batches)
        except (TypeError, NotImplementedError):  # of users' samplers: PyTorch's raise the second
            return None

    def random_state(self) -> list[Any]:
        """Return the states of all generators that the order of an epoch depends on."""
        return [get_rng_state(), *(each.get_state() for each in self._generators())]

    def set_random_state(self, states: list[Any]) -> None:
        """Go back to the states at the start of an epoch."""
        default, *others = states
        set_rng_state(default)
        for generator, state in zip(self._generators(), others, strict=True):
            generator.set_state(state)

    def epoch(self) -> Iterator[MicroBatch]:
        """Return the micro-batches of an epoch, with seeds of their own."""
        seed = int(randint(0, 2**62, ()).item())
        for number, (label, source) in enumerate(self._labelled()):
            yield MicroBatch(f"micro-batch {number}{label}", seed + number, source)

    def _labelled(self) -> Iterator[tuple[str, Any]]:
        if self._loader is None:
            yield from ((f", {each.label}", each.source) for each in self._partitions)
        elif self.fetcher is None:
            yield from (("", tuple(b) if isinstance(b, list) else b) for b in self._loader)
        else:
            yield from ((f" (examples {_shortened(i)})", i) for i in self._loader._tasks())

    def _generators(self) -> list[Any]:
        batches = getattr(self._loader, "batch_sampler", None)
        owners = [getattr(self._loader, "sampler", None), getattr(batches, "sampler", None)]
        found = [getattr(each, "generator", None) for each in (self._loader, batches, *owners)]
        return list({id(each): each for each in found if each is not None}.values())


def _loadable(partition: Partition, client: Any) -> Partition:
    """Return a partition whose source a task can take: tasks of Dask as a future."""
    source = partition.source
    if isinstance(source, Loader | distributed.Future):
        return partition
    return Partition(partition.label, client.compute(dask_delayed.delayed(source)))


def _shortened(indices: Any) -> str:
    if not isinstance(indices, list) or len(indices) <= _MAX_SHOWN:
        return str(indices)
    return f"[{', '.join(map(str, indices[:_MAX_SHOWN]))}, …]"
