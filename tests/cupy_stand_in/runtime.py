"""Devices, streams, events and memory of the stand-in, and its log of transfers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

DEVICES = 2
"""Number of devices. As without peer access, one can't read the memory of the other."""

MEMORY = 1 << 30


class Transfers:
    """Counts of copies between host and device, and observers of them."""

    def __init__(self) -> None:
        self.to_host = self.to_device = 0
        self.observers: list[Callable[[str], None]] = []

    def record(self, direction: str) -> None:
        """Count a copy `to_host`, which waits for the device, or `to_device`."""
        setattr(self, direction, getattr(self, direction) + 1)
        for observer in self.observers:
            observer(direction)


transfers = Transfers()


class _Current(threading.local):
    device = 0
    stream: Any = None


_current = _Current()


class Device:
    """A device, also as a context in which it is the current one."""

    def __init__(self, device: Any = None) -> None:
        self.id = _current.device if device is None else int(getattr(device, "id", device))
        self._outer: list[int] = []

    def use(self) -> None:
        if not 0 <= self.id < DEVICES:
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        _current.device = self.id

    def __enter__(self) -> Device:
        self._outer.append(_current.device)
        self.use()
        return self

    def __exit__(self, *error: Any) -> None:
        _current.device = self._outer.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def synchronize(self) -> None:
        pass

    compute_capability = "90"

    @property
    def mem_info(self) -> tuple[int, int]:
        return MEMORY - pools[self.id].used, MEMORY


class Stream:
    """A stream, in which everything is done at once."""

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = 0
    ) -> None:
        self.ptr = 0 if null else id(self)
        self.done = True
        self._outer: list[Any] = []

    def use(self) -> Stream:
        _current.stream = self
        return self

    def __enter__(self) -> Stream:
        self._outer.append(_current.stream)
        return self.use()

    def __exit__(self, *error: Any) -> None:
        _current.stream = self._outer.pop()

    def synchronize(self) -> None:
        pass

    def record(self, event: Any = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        pass


Stream.null = Stream(null=True)  # as CuPy has it


class Event:
    """A mark in a stream, with its time."""

    def __init__(
        self, block: bool = False, disable_timing: bool = False, interprocess: bool = False
    ) -> None:
        self.done, self.time = True, 0.0

    def record(self, stream: Any = None) -> None:
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        pass


def get_elapsed_time(start: Event, end: Event) -> float:
    return 1e3 * (end.time - start.time)


def get_current_stream(device_id: int = -1) -> Any:
    return _current.stream or Stream.null  # as above


class _Pool:
    """The bytes of a device's arrays, and those that were freed and kept for later arrays."""

    used = kept = 0

    def take(self, size: int) -> None:
        self.used += size
        self.kept = max(0, self.kept - size)

    def free(self, size: int) -> None:
        self.used -= size
        self.kept += size


pools = [_Pool() for _ in range(DEVICES)]


class MemoryPool:
    """The pool of all devices: its methods are about the current one."""

    def used_bytes(self) -> int:
        return pools[_current.device].used

    def free_bytes(self) -> int:
        return pools[_current.device].kept

    def total_bytes(self) -> int:
        return self.used_bytes() + self.free_bytes()

    def free_all_blocks(self) -> None:
        pools[_current.device].kept = 0


memory_pool = MemoryPool()


class MemoryHook:
    """Something that is called at each allocation, from `__enter__` on."""

    entered: ClassVar[list[MemoryHook]] = []

    def __enter__(self) -> MemoryHook:
        self.entered.append(self)
        return self

    def malloc_postprocess(self, **details: Any) -> None:
        pass


def allocated(device_id: int, size: int) -> None:
    pools[device_id].take(size)
    for hook in MemoryHook.entered:
        hook.malloc_postprocess(device_id=device_id, size=size, mem_size=size)


class runtime:
    """`cupy.cuda.runtime`."""

    @staticmethod
    def getDeviceCount() -> int:
        return DEVICES

    @staticmethod
    def getDeviceProperties(number: int) -> dict[str, Any]:
        return {
            "name": f"Stand-in {number}".encode(),
            "totalGlobalMem": MEMORY,
            "major": 9,
            "minor": 0,
            "multiProcessorCount": 1,
        }

    @staticmethod
    def memGetInfo() -> tuple[int, int]:
        return Device().mem_info

    @staticmethod
    def deviceSynchronize() -> None:
        pass

    @staticmethod
    def runtimeGetVersion() -> int:
        return 12090


def current_device() -> int:
    return _current.device
