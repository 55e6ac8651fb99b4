"""Clients of Dask: which is used, waiting for results, and the errors of tasks and schedulers."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import CancelledError
from importlib import import_module
from typing import Any

from chainrule.distributed.extra import distributed
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
    check_running(client, "distributed")
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
    """

    def setup(plugin: Any, worker: Any) -> None:
        import_module("chainrule")

    members = {"name": "import chainrule", "idempotent": True, "setup": setup}
    client.register_plugin(type("ImportPlugin", (distributed.WorkerPlugin,), members)())


def check_running(client: Any, operation: str) -> None:
    """Raise a ClusterError if a client has lost its scheduler."""
    if client.status != "running":
        raise unreachable(client, operation)


def wait(client: Any, operation: str, future: Any, labels: Mapping[Any, str]) -> Any:
    """Return the result of a future.

    Parameters
    ----------
    client : distributed.Client
    operation : str
        What messages begin with.
    future : distributed.Future
        Cancelled by an interrupt.
    labels : mapping
        What messages call the tasks that compute or load a partition, by their keys.

    Raises
    ------
    PartitionError
        If a task has failed.
    CancelledError
        If Dask has given the computation up: see `unreachable`.
    """
    try:
        return future.result()
    except PartitionFailure as error:
        label, text = error.args
        raise PartitionError(f"{operation}: {label}: {text}") from error
    except CancelledError:
        raise
    except distributed.KilledWorker as error:
        label = labels.get(error.task, f"task {error.task}")
        raise PartitionError(
            f"{operation}: {label}: its worker was killed {error.allowed_failures + 1} times, and "
            "each time this was among its tasks: it, or one beside it, probably takes more memory "
            "than a worker has (memory_limit). Make partitions smaller"
        ) from error
    except Exception as error:
        task = client.sync(client.scheduler.get_error_cause, keys=[future.key])
        label = labels.get(task, f"task {task}")
        raise PartitionError(f"{operation}: {label}: {type(error).__name__}: {error}") from error
    except KeyboardInterrupt:
        future.cancel()
        raise


def unreachable(client: Any, operation: str, error: Exception | None = None) -> ClusterError:
    """Return the error of a computation that was given up."""
    if error is not None and client.status == "running":
        return ClusterError(
            f"{operation}: Dask has cancelled the computation: {error}. Data that was scattered "
            "is gone with its worker: give partitions as functions or files that load them"
        )
    return ClusterError(
        f"{operation}: the scheduler can't be reached any more, and the client is "
        f"{client.status}: start a cluster, and begin again with its client"
    )
