"""Clients of Dask: which is used, waiting for results, and the errors of tasks and schedulers."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any

from chainrule.distributed.extra import distributed, distributed_scheduler
from chainrule.distributed.tasks import PartitionFailure
from chainrule.errors import ArgumentError, ClusterError, PartitionError


def usable(client: Any) -> Any:
    """Return a client, by default the current one.

    Raises
    ------
    ArgumentError
        If there is none, or it is asynchronous.
    ClusterError
        If it has lost its scheduler.
    """
    if client is None:
        try:
            client = distributed.default_client()
        except ValueError as error:
            raise ArgumentError(
                "distributed: there is no client of Dask in this process: start a cluster by "
                "`with cr.distributed.local_cluster() as client:`, or connect to one by "
                "`client = distributed.Client('tcp://…')`"
            ) from error
    if client.asynchronous:
        raise ArgumentError(
            "distributed: the client is asynchronous, and results are waited for here: use a "
            "client made without asynchronous=True"
        )
    _check_running(client, "distributed")
    import_on_workers(client)
    return client


MAX_INLINE_BYTES = 1 << 16
"""Size up to which each task has what it shares with others, through the scheduler.

Larger things are copied from worker to worker before the tasks. In one place, they would attract
all the tasks to it.
"""


def import_on_workers(client: Any) -> None:
    """Import chainrule on all workers, also on those that will join, before they get tasks.

    A worker reads messages in one thread and runs tasks in others. Two threads that begin to import
    a package by different modules of it would get into each other's way.

    What imports have left is exempt from garbage collection, where a process is a worker and
    nothing else: a graph of some thousand nodes starts a full collection, which looks at all of it.
    """

    def setup(plugin: Any, worker: Any) -> None:
        import_module("chainrule")
        if worker.nanny:
            gc.collect()
            gc.freeze()

    members = {"name": "import chainrule", "idempotent": True, "setup": setup}
    client.register_plugin(type("ImportPlugin", (distributed.WorkerPlugin,), members)())


def _check_running(client: Any, operation: str) -> None:
    """Raise a ClusterError if a client has lost its scheduler."""
    if client.status != "running":
        raise _unreachable(client, operation)


_MAX_ATTEMPTS = 3
"""Number of attempts, each of which ends if all workers are lost with what tasks share."""


def result_of(
    client: Any,
    operation: str,
    start: Callable[[], Any],
    label_of: Callable[[Any], str],
) -> Any:
    """Return the result of a computation.

    It is started again if all workers were lost with what its tasks share, and if Dask gives a task
    up because its workers died: where workers are lost often, this happens to any task, and to the
    same one twice if it is the reason.

    Parameters
    ----------
    client : distributed.Client
    operation : str
        What messages begin with.
    start : callable
        Sends the tasks, returns the future of the result.
    label_of : callable
        Returns what messages call the partition of a task, by its key.

    Raises
    ------
    PartitionError
        If a task has failed.
    ClusterError
        If the scheduler can't be reached, there are no workers, or Dask has given up.
    """
    suspects: set[str] = set()
    attempts = _MAX_ATTEMPTS
    while True:
        _check_running(client, operation)
        try:
            return _waited_for(client, operation, start(), label_of)
        except (CancelledError, OSError) as error:  # OSError: the client can't send
            attempts -= 1
            if not attempts or client.status != "running":
                raise _unreachable(client, operation, error) from error
        except distributed.KilledWorker as error:
            suspect = label_of(error.task)
            if suspect in suspects:
                raise PartitionError(
                    f"{operation}: {suspect}: its worker was killed again and again, "
                    f"{2 * error.allowed_failures + 2} times while this was among its tasks: "
                    "it, or one beside it, probably takes more memory than a worker has "
                    "(memory_limit). Make partitions smaller"
                ) from error
            suspects.add(suspect)


def _waited_for(client: Any, operation: str, future: Any, label_of: Callable[[Any], str]) -> Any:
    try:
        return future.result()
    except PartitionFailure as error:
        label, text = error.args
        raise PartitionError(f"{operation}: {label}: {text}") from error
    except distributed_scheduler.NoWorkerError as error:
        raise ClusterError(f"{operation}: the cluster has no workers: {error}") from error
    except (CancelledError, distributed.KilledWorker):
        raise
    except Exception as error:
        task = client.sync(client.scheduler.get_error_cause, keys=[future.key])
        text = f"{operation}: {label_of(task)}: {type(error).__name__}: {error}"
        raise PartitionError(text) from error
    except KeyboardInterrupt:
        future.cancel()
        raise


def _unreachable(client: Any, operation: str, error: Exception | None = None) -> ClusterError:
    if error is not None and client.status == "running":
        return ClusterError(
            f"{operation}: Dask has cancelled the computation: {error}. Data that was scattered "
            "is gone with its worker: give partitions as functions or files that load them"
        )
    return ClusterError(
        f"{operation}: the scheduler can't be reached any more, and the client is "
        f"{client.status}: start a cluster, and begin again with its client"
    )
