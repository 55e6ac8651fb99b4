"""Rounds of an objective on a cluster: the graph of tasks."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from chainrule.distributed.clients import MAX_INLINE_BYTES, result_of
from chainrule.distributed.extra import dask
from chainrule.distributed.partitions import Loader, Partition
from chainrule.distributed.reduction import reduce_tree
from chainrule.distributed.settings import capture
from chainrule.distributed.tasks import Request, add, evaluate, load_partition


class Rounds:
    """Computations over the same partitions, one after another."""

    def __init__(
        self, client: Any, partitions: Sequence[Partition], persist: bool, retries: int
    ) -> None:
        self._client, self._retries = client, retries
        self._labels = [each.label for each in partitions]
        self._loads: dict[Any, Any] = {}  # the graph of what Dask loads
        self._keys: list[set[Any]] = [set() for _ in partitions]  # of tasks that load
        sources = [each.source for each in partitions]
        if persist:
            sources = self._persisted(partitions)
        self._sources = [self._added(*each) for each in zip(sources, self._keys, strict=True)]

    def __len__(self) -> int:
        return len(self._labels)

    def _persisted(self, partitions: Sequence[Partition]) -> list[Any]:
        """Return the data of the partitions as Delayed objects with futures."""
        load, settings = dask.delayed(load_partition, pure=False), capture()
        places = [address for address, n in self._client.nthreads().items() for _ in range(n)]
        tasks = []
        for i, each in enumerate(partitions):
            # The same number for each thread: Dask may give one worker more than the others.
            place: Any = {}
            if places:
                worker = places[len(places) * i // len(partitions)]
                place = {"workers": [worker], "allow_other_workers": True}
            with dask.annotate(**place):
                tasks.append(load(each.label, settings, each.source))
        for task, keys in zip(tasks, self._keys, strict=True):
            keys.update(_graph(task))
        found: list[Any] = self._client.persist(tasks, retries=self._retries)
        return found

    def _added(self, source: Any, keys: set[Any]) -> Any:
        """Return what tasks get: a loader itself, else the key of its result in the graph."""
        if isinstance(source, Loader):
            return source
        whole = dask.delayed(source)
        graph = _graph(whole)
        keys.update(graph)
        self._loads |= graph
        return whole.key

    def sum(self, request: Request) -> Any:
        """Return the sum of what a request asks of each partition, in a fixed order."""
        start, label_of = partial(self._started, request), partial(self._label, request.quantity)
        return result_of(self._client, request.quantity, start, label_of)

    def _started(self, request: Request) -> Any:
        """Send the graph, in Dask's form: a task that evaluates each partition, and a tree."""
        name = f"{request.quantity}-{uuid.uuid4().hex}"  # Dask groups tasks by it
        keys = [(name, i) for i in range(len(self))]
        graph: dict[Any, Any] = dict(self._loads)
        shared: Any = request
        if request.nbytes > MAX_INLINE_BYTES:
            copies = self._client.scatter(request, broadcast=True, hash=False)
            graph[shared := copies.key] = copies
        for key, label, source in zip(keys, self._labels, self._sources, strict=True):
            graph[key] = (evaluate, shared, label, source)

        def added(keys: list[Any]) -> Any:
            key = f"add-{name}", len(graph)
            graph[key] = (add, keys)
            return key

        total = reduce_tree(keys, added)
        return self._client.get(graph, total, sync=False, retries=self._retries)

    def _label(self, quantity: str, task: Any) -> str:
        """Return how messages call the partition of a task."""
        for label, loads in zip(self._labels, self._keys, strict=True):
            if task in loads:
                return label
        if isinstance(task, tuple) and str(task[0]).startswith(f"{quantity}-"):
            return self._labels[task[1]]
        return "the sum of partitions"


def _graph(delayed: Any) -> dict[Any, Any]:
    """Return the tasks that a Delayed object needs, and no others."""
    (found,) = dask.optimize(delayed)
    return dict(found.__dask_graph__())
