"""Worker processes of a `DataLoader`, and the collation of examples that they and it do.

Each worker has one pipe. It sends from a thread of its own, and receives in another, so that
neither side waits for the other to read. The parent looks at the pipes and at the ends of the
processes together, so that a worker that dies is an error at once; a worker whose parent dies ends.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import signal
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import connection, parent_process
from typing import Any, NoReturn

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.creation import tensor
from chainrule.errors import ArgumentTypeError, ShapeError
from chainrule.kernels.threads import set_num_threads
from chainrule.ops import stack
from chainrule.random import manual_seed

# --- collation ------------------------------------------------------------------------------------


def default_collate(batch: Sequence[Any]) -> Any:
    """Return a batch of examples as one example whose tensors have a batch axis in front.

    Parameters
    ----------
    batch : list
        Examples of the same structure: tensors, arrays, numbers, strings, or dicts, lists, tuples
        and named tuples of such.

    Returns
    -------
    The structure of an example, with tensors in the place of tensors, arrays and numbers (int64 for
    integers, float64 for floats), lists of strings, and lists in the place of plain tuples

    Raises
    ------
    TypeError
        If an example is something else.
    RuntimeError
        If sequences differ in length.

    Examples
    --------
    >>> from chainrule.utils.data import default_collate
    >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    first = batch[0]
    if isinstance(first, Tensor | np.ndarray | np.generic):
        if not isinstance(first, Tensor) and first.dtype.kind in "OSU":
            raise ArgumentTypeError(_REFUSED.format(f"an array of dtype {first.dtype}"))
        try:
            if isinstance(first, Tensor):
                return stack(list(batch))
            return tensor(np.stack(list(batch)))
        except ValueError:
            shapes = [np.shape(example) for example in batch]
            if shapes.count(first.shape) == len(shapes):
                raise
        raise ShapeError(_UNEQUAL.format(", ".join(str(list(shape)) for shape in shapes)))
    if isinstance(first, bool | int):
        return tensor(list(batch))
    if isinstance(first, float | complex):
        return tensor(list(batch), dtype="float64" if isinstance(first, float) else "complex128")
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        collated = {key: default_collate([example[key] for example in batch]) for key in first}
        return _like(first, collated)
    if isinstance(first, tuple | list | Sequence):
        if any(len(example) != len(first) for example in batch):
            raise RuntimeError(
                "each element in list of batch should be of equal size, but their lengths are "
                f"{[len(example) for example in batch]}"
            )
        columns = [default_collate(column) for column in zip(*batch, strict=True)]
        return columns if type(first) is tuple else _like(first, columns)
    raise ArgumentTypeError(_REFUSED.format(type(first)))


_REFUSED = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}. "
    "Give a collate_fn of your own"
)


_UNEQUAL = (
    "default_collate: stack expects each tensor to be equal size, but the examples of a batch have "
    "the shapes {}. Make them of one shape, as with nn.utils.rnn.pad_sequence(batch, "
    "batch_first=True) in a collate_fn of your own"
)


def default_convert(data: Any) -> Any:
    """Return an example with its arrays as tensors; what a loader without batches does."""
    if isinstance(data, np.ndarray | np.generic) and data.dtype.kind not in "OSU":
        return tensor(data)
    if isinstance(data, Mapping):
        return _like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return _like(data, [default_convert(value) for value in data])
    if isinstance(data, tuple | list):
        return [default_convert(value) for value in data]
    return data


def _like(example: Any, values: Any) -> Any:
    """Return values in a container of the type of an example, or in a plain one."""
    with contextlib.suppress(TypeError):
        return type(example)(*values) if hasattr(example, "_fields") else type(example)(values)
    return values


# --- fetching -------------------------------------------------------------------------------------


class Fetcher:
    """Makes batches of a data set: by indices, or of a stream."""

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], batched: bool, drop_last: bool):
        self.dataset, self.collate, self.batched = dataset, collate, batched
        self.drop_last = drop_last
        self.stream: Iterator[Any] | None = None

    def by_index(self, indices: Any) -> Any:
        """Return the batch of these indices, or the example of an index."""
        try:
            return self._by_index(indices)
        except StopIteration as error:
            raise RuntimeError(
                f"{type(self.dataset).__name__} raised StopIteration, which would end the epoch"
            ) from error

    def _by_index(self, indices: Any) -> Any:
        if not self.batched:
            return self.collate(self.dataset[indices])
        if self.collate is default_collate:
            collated = getattr(self.dataset, "collated", None)
            batch = None if collated is None else collated(indices)
            if batch is not None:
                return batch
        getitems = getattr(self.dataset, "__getitems__", None)
        if callable(getitems):
            return self.collate(getitems(indices))
        return self.collate([self.dataset[index] for index in indices])

    def from_stream(self, size: int | None) -> Any:
        """Return the next batch of a stream; raise StopIteration at its end."""
        if self.stream is None:
            self.stream = iter(self.dataset)
        if size is None:
            return self.collate(next(self.stream))
        examples = [example for _, example in zip(range(size), self.stream, strict=False)]
        if not examples or (self.drop_last and len(examples) < size):
            raise StopIteration
        return self.collate(examples)


# --- in a worker ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker is told: its number, the number of workers, its seed and its data set."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: list[WorkerInfo] = []


def get_worker_info() -> WorkerInfo | None:
    """Return the `WorkerInfo` of this process: None outside of workers.

    Examples
    --------
    >>> from chainrule.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _info[0] if _info else None


class End:
    """The end of the stream of a worker."""


def _work(
    pipe: Any, fetcher: Fetcher, number: int, of: int, init: Callable[[int], Any] | None
) -> None:
    """Answer the tasks of the parent until it says None, or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the parent ends its workers
    set_num_threads(1)
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, tasks), daemon=True).start()
    sender = threading.Thread(target=_send, args=(pipe, answers), daemon=True)
    sender.start()
    error = None
    while (task := tasks.get()) is not None:
        epoch, position, argument = task
        if position == -1:  # a new epoch, with its seed
            seed = argument + number
            random.seed(seed)
            manual_seed(seed)
            np.random.seed(seed % 2**32)
            fetcher.stream, error = None, None
            try:
                is_first = not _info
                _info[:] = [WorkerInfo(number, of, seed, fetcher.dataset)]
                if is_first and init is not None:
                    init(number)
            except BaseException as caught:
                error = WorkerError.of(caught, number)
            continue
        result = _answer(fetcher, number, *argument) if error is None else error
        answers.put((epoch, position, result))
    answers.put(None)
    sender.join()


def _answer(fetcher: Fetcher, number: int, kind: str, value: Any) -> Any:
    """Return a batch, the end of the stream, or the error of the data set."""
    try:
        return fetcher.by_index(value) if kind == "index" else fetcher.from_stream(value)
    except BaseException as caught:
        if kind == "stream" and isinstance(caught, StopIteration):
            return End()
        return WorkerError.of(caught, number)


def _receive(pipe: Any, tasks: Any) -> None:
    parent: Any = parent_process()
    while True:
        with contextlib.suppress(EOFError, OSError):
            if pipe in connection.wait([pipe, parent.sentinel]):
                tasks.put(task := pipe.recv())
                if task is None:
                    return
                continue
        os._exit(1)  # the parent has ended


def _send(pipe: Any, answers: Any) -> None:
    while (answer := answers.get()) is not None:
        try:
            pipe.send(answer)
        except (BrokenPipeError, ConnectionResetError):
            os._exit(1)
        except Exception as error:  # a batch that can't be pickled
            pipe.send((*answer[:2], WorkerError.of(error, -1)))


@dataclass(frozen=True)
class WorkerError:
    """An exception of a worker, to be raised in the parent."""

    kind: type[BaseException]
    text: str

    @classmethod
    def of(cls, error: BaseException, number: int) -> WorkerError:
        where = f"DataLoader worker process {number}"
        text = f"Caught {type(error).__name__} in {where}.\nOriginal {traceback.format_exc()}"
        module = type(error).__module__
        known = module == "builtins" or module.startswith("chainrule.")
        return cls(type(error) if known else RuntimeError, text)

    def throw(self) -> None:
        """Raise an exception of the same type, with the worker's traceback in its text."""
        try:
            error = self.kind(self.text)
        except TypeError:  # it takes other arguments
            error = RuntimeError(self.text)
        raise error


# --- in the parent --------------------------------------------------------------------------------


class Pool:
    """Workers, and what they were asked for."""

    def __init__(
        self, fetcher: Fetcher, number: int, init: Callable[[int], Any] | None, context: Any
    ) -> None:
        self.pipes: list[Any] = []
        self.processes: list[Any] = []
        self.epoch = 0
        self._finalizer = weakref.finalize(self, _stop, self.pipes, self.processes)
        for worker in range(number):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_work, args=(theirs, fetcher, worker, number, init), daemon=True
            )
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def start(self, seed: int) -> None:
        """Begin an epoch: answers to the last one are dropped from now on."""
        self.epoch += 1
        for worker in range(len(self.pipes)):
            self.ask(worker, -1, seed)

    def ask(self, worker: int, position: int, argument: Any) -> None:
        """Send a task to a worker."""
        try:
            self.pipes[worker].send((self.epoch, position, argument))
        except (BrokenPipeError, ConnectionResetError):
            self._died()

    def answers(self, timeout: float) -> Iterator[tuple[int, int, Any]]:
        """Wait for answers; yield the worker, the position and the result of each."""
        ends = [process.sentinel for process in self.processes]
        ready = connection.wait([*self.pipes, *ends], timeout or None)
        if not ready:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        pipes = [pipe for pipe in self.pipes if pipe in ready]
        if not pipes:
            self._died()
        for pipe in pipes:
            try:
                epoch, position, result = pipe.recv()
            except (EOFError, ConnectionResetError):
                self._died()
            if epoch == self.epoch:
                yield self.pipes.index(pipe), position, result

    def _died(self) -> NoReturn:
        for process in self.processes:
            process.join(0.1)
        codes = [(p.pid, p.exitcode) for p in self.processes if p.exitcode is not None]
        raise RuntimeError(
            "DataLoader worker exited unexpectedly: (pid, exit code) "
            f"{codes}. A negative code is a signal, -9 often a lack of memory; num_workers=0 shows "
            "errors in this process"
        )

    def stop(self) -> None:
        """End the workers and wait for them."""
        self._finalizer()


def _stop(pipes: list[Any], processes: list[Any]) -> None:
    for pipe in pipes:
        with contextlib.suppress(OSError):
            pipe.send(None)
    for pipe in pipes:
        pipe.close()
    for process in processes:
        process.join(1)
        if process.is_alive():
            process.terminate()
            process.join()
