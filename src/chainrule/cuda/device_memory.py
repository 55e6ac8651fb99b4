"""Memory of GPUs, under the names of `torch.cuda`: 0 bytes without a GPU."""

from __future__ import annotations

from functools import cache
from typing import Any

from chainrule.backend import cuda_is_available, cupy_module
from chainrule.cuda.gpus import gpu

__all__ = [
    "empty_cache",
    "ipc_collect",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
]


def _bytes(name: str, device: Any) -> int:
    """Return a number of bytes of CuPy's memory pool on a GPU."""
    if not cuda_is_available():
        return 0
    with gpu(device):
        return int(getattr(cupy_module().get_default_memory_pool(), name)())


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes of arrays on a GPU."""
    return _bytes("used_bytes", device)


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes taken from a GPU, those of no array included."""
    return _bytes("total_bytes", device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and all bytes of a GPU, as its driver counts them.

    Raises
    ------
    MissingExtraError
        If CuPy is not installed.
    """
    free, total = gpu(device).mem_info
    return int(free), int(total)


def empty_cache() -> None:
    """Give memory that no array uses back to the GPU's driver."""
    if cuda_is_available():
        cupy_module().get_default_memory_pool().free_all_blocks()


def ipc_collect() -> None:
    """Do nothing: memory is not shared between processes."""


# --- peaks ----------------------------------------------------------------------------------------


class _Peaks:
    """The largest numbers of bytes so far, by device: CuPy calls it at each allocation."""

    def __init__(self) -> None:
        self.allocated: dict[int, int] = {}
        self.reserved: dict[int, int] = {}

    def start(self) -> None:
        """Look on from now on."""
        peaks = self

        def malloc_postprocess(hook: Any, *, device_id: int, **_: Any) -> None:
            peaks.look(device_id)

        names = {"name": "chainrule.cuda", "malloc_postprocess": malloc_postprocess}
        type("Hook", (cupy_module().cuda.MemoryHook,), names)().__enter__()

    def look(self, number: int) -> None:
        """Note the memory of a device, which is the current one."""
        pool = cupy_module().get_default_memory_pool()
        self.allocated[number] = max(self.allocated.get(number, 0), int(pool.used_bytes()))
        self.reserved[number] = max(self.reserved.get(number, 0), int(pool.total_bytes()))

    def of(self, device: Any) -> tuple[int, int]:
        """Return the largest numbers of bytes of arrays and of taken memory on a device."""
        with gpu(device) as found:
            self.look(found.id)
            return self.allocated[found.id], self.reserved[found.id]


@cache
def _peaks() -> _Peaks:
    peaks = _Peaks()
    peaks.start()
    return peaks


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the counts of the largest use of memory start anew.

    CuPy doesn't count it, so it is counted in this thread, from the first call of this function or
    of one that returns the counts.
    """
    if cuda_is_available():
        number = gpu(device).id
        _peaks().allocated.pop(number, None)
        _peaks().reserved.pop(number, None)


def max_memory_allocated(device: Any = None) -> int:
    """Return the largest number of bytes of arrays so far: see `reset_peak_memory_stats`."""
    return _peaks().of(device)[0] if cuda_is_available() else 0


def max_memory_reserved(device: Any = None) -> int:
    """Return the largest number of bytes taken so far: see `reset_peak_memory_stats`."""
    return _peaks().of(device)[1] if cuda_is_available() else 0


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return the numbers of bytes under PyTorch's names."""
    return {
        "allocated_bytes.all.current": memory_allocated(device),
        "allocated_bytes.all.peak": max_memory_allocated(device),
        "reserved_bytes.all.current": memory_reserved(device),
        "reserved_bytes.all.peak": max_memory_reserved(device),
    }


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return the numbers of bytes as a text."""
    return "\n".join(f"{name:30} {size:>15,}" for name, size in memory_stats(device).items())
