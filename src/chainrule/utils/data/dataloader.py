"""The data loader: batches of a data set, made here or in worker processes."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from chainrule.errors import ArgumentError
from chainrule.random import randint
from chainrule.utils.data.dataset import Dataset, IterableDataset
from chainrule.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler
from chainrule.utils.data.workers import (
    End,
    Fetcher,
    Pool,
    WorkerError,
    default_collate,
    default_convert,
    get_worker_info,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T = TypeVar("T", covariant=True)


class DataLoader(Generic[T]):
    """Batches of a data set.

    Parameters
    ----------
    dataset : Dataset or sequence, or IterableDataset
        The examples: by index, or a stream.
    batch_size : int or None, default 1
        Number of examples in a batch. None yields single examples, as tensors.
    shuffle : bool, default False
        Take examples in another random order in each epoch.
    sampler : iterable of int, optional
        The order, in the place of `shuffle`.
    batch_sampler : iterable of lists of int, optional
        The batches, in the place of `batch_size`, `shuffle`, `sampler` and `drop_last`.
    num_workers : int, default 0
        Number of processes that make batches ahead of time; 0 makes them here.
    collate_fn : callable, optional
        Makes a batch of a list of examples: `default_collate` by default.
    pin_memory, pin_memory_device
        Accepted for PyTorch's sake, without effect.
    drop_last : bool, default False
        Leave out a last batch that is smaller.
    timeout : float, default 0
        Seconds to wait for a worker's batch; 0 waits forever.
    worker_init_fn : callable, optional
        ``worker_init_fn(number)`` runs first in each worker.
    multiprocessing_context : str or context, optional
        How workers start: ``"fork"``, ``"spawn"`` or ``"forkserver"``; Python's default otherwise.
        The latter two need a data set and functions that can be pickled.
    generator : Generator, optional
        The source of the order and of the workers' seeds; the default one otherwise.
    prefetch_factor : int, optional
        Number of batches that each worker makes ahead of time: 2 by default.
    persistent_workers : bool, default False
        Keep the workers for the next epoch.
    in_order : bool, default True
        Yield the batches of workers in order; False yields each as it is ready.

    Raises
    ------
    ArgumentError
        If arguments exclude each other or are out of range.
    RuntimeError
        While iterating: if a worker ends by itself or takes too long. An exception in a worker is
        raised here, with its type and traceback.

    Notes
    -----
    A batch of a `TensorDataset`, or a `Subset` of one, is one gather for each tensor. Other data
    sets can have ``__getitems__(indices)``, which returns the examples of a batch. A worker has the
    seed of the epoch plus its number, for chainrule, NumPy and `random`, and computes on one
    thread.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.utils.data import DataLoader, TensorDataset
    >>> loader = DataLoader(TensorDataset(cr.arange(5), cr.arange(5) ** 2), batch_size=2)
    >>> for x, y in loader:
    ...     print(x, y)
    tensor([0, 1]) tensor([0, 1])
    tensor([2, 3]) tensor([4, 9])
    tensor([4]) tensor([16])
    >>> len(loader)
    3
    """

    def __init__(
        self,
        dataset: Dataset[T],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if multiprocessing_context is not None and num_workers == 0:
            raise ArgumentError(
                "multiprocessing_context can only be used with multi-process loading (num_workers "
                "> 0), but got num_workers=0"
            )
        self.dataset: Any = dataset
        self._is_stream = isinstance(dataset, IterableDataset)
        self._check_order(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.num_workers, self.timeout = num_workers, timeout
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self.worker_init_fn, self.generator = worker_init_fn, generator
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers, self.in_order = persistent_workers, in_order
        if sampler is None and not self._is_stream:
            sampler = (
                RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        elif batch_size is not None and not self._is_stream and sampler is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size, self.drop_last = batch_size, drop_last
        self.sampler: Any = sampler
        self.batch_sampler: Any = batch_sampler
        default = default_collate if self._is_batched else default_convert
        self.collate_fn = default if collate_fn is None else collate_fn
        self._pool: Pool | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_pool" in self.__dict__:
            raise ArgumentError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized: "
                "make another DataLoader"
            )
        super().__setattr__(name, value)

    @property
    def _is_batched(self) -> bool:
        return self.batch_sampler is not None or self.batch_size is not None

    def _fetcher(self) -> Fetcher:
        return Fetcher(self.dataset, self.collate_fn, self._is_batched, self.drop_last)

    def _check_order(
        self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
    ) -> None:
        if self._is_stream and (shuffle or sampler is not None or batch_sampler is not None):
            raise ArgumentError(
                "DataLoader with IterableDataset: expected unspecified shuffle, sampler and "
                "batch_sampler, since the stream has its own order"
            )
        if sampler is not None and shuffle:
            raise ArgumentError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (
            batch_size != 1 or shuffle or sampler is not None or drop_last
        ):
            raise ArgumentError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                "drop_last"
            )
        if batch_size is None and drop_last:
            raise ArgumentError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if batch_size is not None and not (isinstance(batch_size, int) and batch_size > 0):
            raise ArgumentError(
                f"batch_size should be a positive integer value, but got {batch_size}"
            )

    def __len__(self) -> int:
        if self._is_stream:
            number, size = len(self.dataset), self.batch_size
            if size is None:
                return number
            return number // size if self.drop_last else -(-number // size)
        return len(self._tasks())

    def _tasks(self) -> Any:
        """Return the batches of indices, or the indices without batches."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return self._here()
        seed = int(randint(0, 2**63 - 1, (), generator=self.generator).item())
        if not self.persistent_workers:
            pool = self._new_pool()
            results = self._from_workers(pool, seed, pool.stop)
        else:
            if self._pool is None:
                self._pool = self._new_pool()
            results = self._from_workers(self._pool, seed, lambda: None)
        return map(_batch_of, results)

    def _new_pool(self) -> Pool:
        context = self.multiprocessing_context
        if context is None or isinstance(context, str):
            context = multiprocessing.get_context(context)
        return Pool(self._fetcher(), self.num_workers, self.worker_init_fn, context)

    def _here(self) -> Iterator[Any]:
        """Return an iterator that, as a `map` does, goes on after a batch that cannot be made."""
        fetcher = self._fetcher()
        fetch = fetcher.from_stream if self._is_stream else fetcher.by_index

        def batch(task: Any) -> Any:  # a function that errors don't name
            return fetch(task)

        return map(batch, itertools.repeat(self.batch_size) if self._is_stream else self._tasks())

    def _from_workers(self, pool: Pool, seed: int, finish: Callable[[], None]) -> Iterator[Any]:
        """Yield what workers answer; keep each busy with `prefetch_factor` tasks."""
        try:
            pool.start(seed)
            kind = "stream" if self._is_stream else "index"
            tasks = itertools.repeat(self.batch_size) if self._is_stream else iter(self._tasks())
            numbered = enumerate(zip(itertools.repeat(kind), tasks, strict=False))
            active = set(range(self.num_workers))
            asked: dict[int, int] = {}  # the worker of each position
            ready: dict[int, Any] = {}

            def ask(worker: int) -> None:
                for position, task in itertools.islice(numbered, 1):
                    asked[position] = worker
                    pool.ask(worker, position, task)

            for _ in range(self.prefetch_factor or 2):
                for worker in range(self.num_workers):
                    ask(worker)
            while asked or ready:
                first = min(asked.keys() | ready.keys())
                if not self.in_order and ready:
                    first = next(iter(ready))
                if first not in ready:
                    for worker, position, result in pool.answers(self.timeout):
                        del asked[position]
                        ready[position] = result
                        if isinstance(result, End):
                            active.discard(worker)
                            del ready[position]
                        elif worker in active:
                            ask(worker)
                    continue
                yield ready.pop(first)
        finally:
            finish()


_FIXED = frozenset(
    {"dataset", "batch_size", "sampler", "batch_sampler", "drop_last", "persistent_workers"}
)
"""Attributes that are read when the loader is made."""


def _batch_of(result: Any) -> Any:
    """Return what a worker answered, or raise its error."""
    if isinstance(result, WorkerError):
        result.throw()
    return result


def _check_workers(
    num_workers: Any, timeout: float, prefetch_factor: Any, persistent_workers: bool
) -> None:
    if not isinstance(num_workers, int) or num_workers < 0:
        raise ArgumentError(
            f"num_workers option should be a non-negative integer, but got {num_workers}; 0 makes "
            "batches in this process"
        )
    if timeout < 0:
        raise ArgumentError(f"timeout option should be non-negative, but got {timeout}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ArgumentError("prefetch_factor needs workers: set num_workers > 0")
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ArgumentError(f"prefetch_factor should be at least 1, but got {prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ArgumentError("persistent_workers option needs num_workers > 0")
