"""Streams and events of a GPU, under the names of `torch.cuda`.

The work of a stream is done in order. Without another stream, all work is in one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chainrule.backend import cupy_module
from chainrule.cuda.gpus import gpu

__all__ = ["Event", "Stream", "current_stream", "default_stream", "set_stream", "stream"]


class Event:
    """A mark in the work of a GPU.

    Parameters
    ----------
    enable_timing : bool, default False
        Whether `elapsed_time` may be asked for.
    blocking, interprocess : bool, default False
        As in PyTorch.

    Examples
    --------
    >>> import chainrule as cr
    >>> start, end = (cr.cuda.Event(enable_timing=True) for _ in range(2))  # doctest: +SKIP
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._event: Any = cupy_module().cuda.Event(blocking, not enable_timing, interprocess)

    def record(self, stream: Stream | None = None) -> None:
        """Put the mark after the work so far of a stream, the current one for None."""
        self._event.record((stream or current_stream())._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Let later work of a stream wait for the mark."""
        (stream or current_stream()).wait_event(self)

    def query(self) -> bool:
        """Return whether all work before the mark is done."""
        return bool(self._event.done)

    def synchronize(self) -> None:
        """Wait until all work before the mark is done."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the time from this mark to another, in milliseconds."""
        return float(cupy_module().cuda.get_elapsed_time(self._event, end_event._event))


class Stream:
    """A sequence of work on a GPU, beside that of other streams: see `stream`.

    Parameters
    ----------
    device : device, str or int, optional
        The GPU: the current one for None.
    priority : int, default 0
        Streams of lower numbers go first.
    """

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        with gpu(device):
            self._stream: Any = cupy_module().cuda.Stream(non_blocking=True, priority=priority)

    @property
    def cuda_stream(self) -> int:
        """The address of the driver's object."""
        return int(self._stream.ptr)

    def __enter__(self) -> Stream:
        self._stream.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.__exit__(*error)

    def synchronize(self) -> None:
        """Wait until its work is done."""
        self._stream.synchronize()

    def query(self) -> bool:
        """Return whether its work is done."""
        return bool(self._stream.done)

    def record_event(self, event: Event | None = None) -> Event:
        """Put a mark after its work so far; return it."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let its later work wait for a mark."""
        self._stream.wait_event(event._event)

    def wait_stream(self, stream: Stream) -> None:
        """Let its later work wait for the work so far of another stream."""
        self.wait_event(stream.record_event())


def _known(stream: Any) -> Stream:
    found: Stream = object.__new__(Stream)
    found._stream = stream
    return found


def current_stream(device: Any = None) -> Stream:
    """Return the stream in which work is put."""
    return _known(cupy_module().cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """Return the stream that is the current one at the start."""
    return _known(cupy_module().cuda.Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Make a stream the current one; do nothing for None."""
    if stream is not None:
        stream._stream.use()


@contextmanager
def stream(stream: Stream | None) -> Iterator[None]:
    """Make a stream the current one within a block; do nothing for None."""
    if stream is None:
        yield
        return
    with stream._stream:
        yield
