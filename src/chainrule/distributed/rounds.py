"""Rounds of an objective on a cluster: the graph of tasks, and the errors that come back."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import CancelledError
from typing import Any

from chainrule.distributed.extra import dask, distributed, distributed_scheduler
from chainrule.distributed.partitions import Loader, Partition
from chainrule.distributed.reduction import reduce_tree
from chainrule.distributed.settings import capture
from chainrule.distributed.tasks import PartitionFailure, Request, add, evaluate, load_partition
from chainrule.errors import ArgumentError, ClusterError, PartitionError

_MAX_INLINE_BYTES = 1 << 16
"""Size up to which each task has the parameters with it, through the scheduler.

Larger ones are copied from worker to worker before the tasks. As the result of a task they would be
in one place, to which Dask would send all the others.
"""


_MAX_ATTEMPTS = 3
"""Number of rounds with copied parameters, each of which ends if all workers are lost at once."""


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
        tasks = [load(each.label, settings, each.source) for each in partitions]
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
        """Return the sum of what a request asks of each partition, in a fixed order.

        The round is repeated if all workers were lost with their copies of the parameters, and if
        Dask gives a task up because its workers died: where workers are lost often, this happens to
        any task, and to the same one twice if it is the reason.
        """
        suspects: set[str] = set()
        attempts = _MAX_ATTEMPTS if request.nbytes > _MAX_INLINE_BYTES else 1
        while True:
            if self._client.status != "running":
                raise self._unreachable(request.quantity)
            try:
                return self._round(request)
            except (CancelledError, OSError) as error:  # OSError: the client can't send
                attempts -= 1
                if not attempts or self._client.status != "running":
                    raise self._unreachable(request.quantity, error) from error
            except distributed.KilledWorker as error:
                suspect = self._label(request.quantity, error.task)
                if suspect in suspects:
                    raise PartitionError(
                        f"{request.quantity}: {suspect}: its worker was killed again and again, "
                        f"{2 * error.allowed_failures + 2} times while this was among its tasks: "
                        "it, or one beside it, probably takes more memory than a worker has "
                        "(memory_limit). Make partitions smaller"
                    ) from error
                suspects.add(suspect)

    def _round(self, request: Request) -> Any:
        """Compute the graph, in Dask's form: a task that evaluates each partition, and a tree."""
        name = f"{request.quantity}-{uuid.uuid4().hex}"  # Dask groups tasks by it
        keys = [(name, i) for i in range(len(self))]
        graph: dict[Any, Any] = dict(self._loads)
        shared: Any = request
        if request.nbytes > _MAX_INLINE_BYTES:
            copies = self._client.scatter(request, broadcast=True, hash=False)
            graph[shared := copies.key] = copies
        for key, label, source in zip(keys, self._labels, self._sources, strict=True):
            graph[key] = (evaluate, shared, label, source)

        def added(keys: list[Any]) -> Any:
            key = f"add-{name}", len(graph)
            graph[key] = (add, keys)
            return key

        return self._result(request.quantity, graph, reduce_tree(keys, added))

    def _result(self, quantity: str, graph: dict[Any, Any], key: Any) -> Any:
        future = None
        try:
            future = self._client.get(graph, key, sync=False, retries=self._retries)
            return future.result()
        except PartitionFailure as error:
            label, text = error.args
            raise PartitionError(f"{quantity}: {label}: {text}") from error
        except Exception as error:
            passes = CancelledError, distributed.KilledWorker
            if future is None or isinstance(error, passes):
                raise
            if isinstance(error, distributed_scheduler.NoWorkerError):
                raise ClusterError(f"{quantity}: the cluster has no workers: {error}") from error
            cause = self._client.sync(self._client.scheduler.get_error_cause, keys=[future.key])
            raise PartitionError(
                f"{quantity}: {self._label(quantity, cause)}: {type(error).__name__}: {error}"
            ) from error
        except KeyboardInterrupt:
            if future is not None:
                future.cancel()
            raise

    def _unreachable(self, quantity: str, error: Exception | None = None) -> ClusterError:
        if error is not None and self._client.status == "running":
            return ClusterError(
                f"{quantity}: Dask has cancelled the computation: {error}. Data that was scattered "
                "is gone with its worker: give partitions as functions or files that load them"
            )
        return ClusterError(
            f"{quantity}: the scheduler can't be reached any more, and the client is "
            f"{self._client.status}: start a cluster, and make the objective again with its client"
        )

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


def usable(client: Any) -> Any:
    """Return a client, by default the current one.

    Raises
    ------
    ArgumentError
        If there is none, or it is asynchronous.
    """
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError as error:
            raise ArgumentError(
                "Objective: there is no client of Dask in this process: start a cluster by "
                "`with cr.distributed.local_cluster() as client:`, or connect to one by "
                "`client = distributed.Client('tcp://…')`"
            ) from error
    if client.asynchronous:
        raise ArgumentError(
            "Objective: the client is asynchronous, and results are waited for here: use a client "
            "made without asynchronous=True"
        )
    return client
