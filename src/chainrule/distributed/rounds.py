"""Rounds of an objective on a cluster: the graph of tasks."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from chainrule.distributed.extra import dask
from chainrule.distributed.partitions import Loader, Partition
from chainrule.distributed.reduction import reduce_tree
from chainrule.distributed.results import check_running, wait
from chainrule.distributed.settings import capture
from chainrule.distributed.tasks import Request, add, evaluate, load_partition


class Rounds:
    """Computations over the same partitions, one after another."""

    def __init__(
        self, client: Any, partitions: Sequence[Partition], persist: bool, retries: int
    ) -> None:
        self._client, self._retries = client, retries
        self._labels = [each.label for each in partitions]
        sources = [each.source for each in partitions]
        if persist:
            load = dask.delayed(load_partition, pure=False)
            tasks = [load(each.label, capture(), each.source) for each in partitions]
            sources = client.persist(tasks, retries=retries)
        self._loads: dict[Any, Any] = {}  # the graph of what Dask loads
        self._keys: list[set[Any]] = []  # of the tasks that load each partition
        self._sources = [self._added(source) for source in sources]

    def __len__(self) -> int:
        return len(self._labels)

    def _added(self, source: Any) -> Any:
        """Return what tasks get: a loader itself, else the key of its result in the graph."""
        self._keys.append(set())
        if isinstance(source, Loader):
            return source
        (whole,) = dask.optimize(dask.delayed(source))
        graph = dict(whole.__dask_graph__())
        self._keys[-1].update(graph)
        self._loads |= graph
        return whole.key

    def sum(self, request: Request) -> Any:
        """Return the sum of what a request asks of each partition, in a fixed order.

        The graph, in Dask's form, has the request, which each worker gets once, from any other; a
        task that evaluates each partition; and the tree of sums.
        """
        check_running(self._client, request.quantity)
        name = f"{request.quantity}-{uuid.uuid4().hex}"
        keys = [f"{name}-{i}" for i in range(len(self))]
        graph = {f"request-{name}": request, **self._loads}
        for key, label, source in zip(keys, self._labels, self._sources, strict=True):
            graph[key] = (evaluate, f"request-{name}", label, source)

        def added(keys: list[str]) -> str:
            key = f"add-{name}-{len(graph)}"
            graph[key] = (add, keys)
            return key

        total = reduce_tree(keys, added)
        future = self._client.get(graph, total, sync=False, retries=self._retries)
        labels = dict(zip(keys, self._labels, strict=True))
        for label, loads in zip(self._labels, self._keys, strict=True):
            labels |= dict.fromkeys(loads, label)
        return wait(self._client, request.quantity, future, labels)
