"""A cluster of processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chainrule.distributed.clients import import_on_workers
from chainrule.distributed.extra import dask, distributed
from chainrule.kernels.threads import usable_cores


@contextmanager
def local_cluster(n_workers: int | None = None, **options: Any) -> Iterator[Any]:
    """Start a cluster on this machine, and end it with the block.

    Parameters
    ----------
    n_workers : int, optional
        Number of workers, by default one for each usable core. Each is a process with one thread.
    **options
        Further arguments of `distributed.LocalCluster`: ``memory_limit="2GB"`` for each worker,
        ``processes=False`` for workers that are threads of this process, and others.

    Yields
    ------
    distributed.Client
        Its ``dashboard_link`` shows the tasks, where Bokeh is installed.

    Raises
    ------
    MissingExtraError
        If Dask's scheduler is not installed.

    Notes
    -----
    Processes import the program that starts them. So a script must start the cluster below
    ``if __name__ == "__main__":``, as for `multiprocessing`.

    Examples
    --------
    >>> from chainrule.distributed import local_cluster
    >>> with local_cluster(1, processes=False) as client:
    ...     client.submit(abs, -2).result()
    2
    """
    settings: dict[str, Any] = {"n_workers": n_workers or usable_cores(), "threads_per_worker": 1}
    settings["dashboard_address"] = ":0"  # any free port
    start = distributed.LocalCluster  # first: the import of distributed completes Dask's settings
    with (
        dask.config.set(_CONFIG),
        start(**settings | options) as cluster,
        distributed.Client(cluster) as client,
    ):
        import_on_workers(client)
        yield client


_CONFIG = {
    # Dask forgets a worker that is dead after this time, also one that has been restarted and died
    # again; without workers, tasks wait forever.
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.scheduler.no-workers-timeout": "1 minute",
    # Dask's value keeps the C library from holding memory: each array above 128 kB would be mapped,
    # and its pages cleared, anew. Computations of many arrays take 1.2 times as long.
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
