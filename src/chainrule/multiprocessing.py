"""Python's `multiprocessing`, under the name that it has in PyTorch, and `spawn`."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
from collections.abc import Callable
from multiprocessing import *  # noqa: F403 - all of its names, as in PyTorch
from typing import Any

__all__ = [*multiprocessing.__all__, "spawn", "get_sharing_strategy", "set_sharing_strategy"]


def get_sharing_strategy() -> str:
    """Return how tensors go to other processes: copied through files and pipes."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accept the choice of how tensors go to other processes: there is one way."""


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> list[Any] | None:
    """Call ``fn(i, *args)`` in a process for each i below `nprocs`.

    Parameters
    ----------
    fn : callable
        A function of a module, for it is pickled.
    args : tuple
        Further arguments.
    nprocs : int
        The number of processes.
    join : bool, default True
        Wait for all of them. Otherwise the processes are returned.
    daemon, start_method
        As of `multiprocessing`.

    Raises
    ------
    RuntimeError
        If one of them failed; the others are ended.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]
    for process in processes:
        process.start()
    if not join:
        return processes
    waiting = {process.sentinel: i for i, process in enumerate(processes)}
    while waiting:
        for sentinel in multiprocessing.connection.wait(list(waiting)):
            number = waiting.pop(sentinel)
            process = processes[number]
            process.join()
            if process.exitcode:
                for other in processes:
                    other.terminate()
                raise RuntimeError(
                    f"spawn: process {number} terminated with exit code {process.exitcode}: its "
                    "error is above"
                )
    return None
