"""GPUs under the names of `torch.cuda`: how many there are, which is current, what they can do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from chainrule.autograd.tensor import Tensor
from chainrule.backend import cuda_is_available as is_available
from chainrule.backend import cupy_module
from chainrule.backend import device as as_device

__all__ = [
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "set_device",
    "synchronize",
]

Device = as_device | str | int | None


def gpu(which: Device) -> Any:
    """Return CuPy's object for a GPU, the current one for None."""
    if which is None or isinstance(which, int):
        return cupy_module().cuda.Device(which)
    return cupy_module().cuda.Device(as_device(which).index)


def init() -> None:
    """Do nothing: a GPU is ready when it is first used."""


def is_initialized() -> bool:
    """Return whether there is a GPU."""
    return is_available()


def device_count() -> int:
    """Return the number of GPUs: 0 without CuPy or a driver."""
    return int(cupy_module().cuda.runtime.getDeviceCount()) if is_available() else 0


def current_device() -> int:
    """Return the index of the current GPU.

    Raises
    ------
    MissingExtraError
        If CuPy is not installed.
    """
    return int(cupy_module().cuda.Device().id)


def set_device(device: Device) -> None:
    """Make a GPU the current one: operations are computed there, on tensors that are there."""
    gpu(device).use()


class device:
    """Make a GPU the current one within a block; do nothing for None or a negative number.

    Operations on tensors of another GPU than "cuda:0" have to be in such a block.

    Examples
    --------
    >>> import chainrule as cr
    >>> with cr.cuda.device(1):  # doctest: +SKIP
    ...     x = cr.ones(3, device="cuda:1") * 2
    """

    def __init__(self, device: Device) -> None:
        idle = device is None or (isinstance(device, int) and device < 0)
        self._gpu = None if idle else gpu(device)

    def __enter__(self) -> None:
        if self._gpu is not None:
            self._gpu.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._gpu is not None:
            self._gpu.__exit__(*error)


class device_of(device):
    """Make the GPU of a tensor the current one within a block; do nothing for one on the CPU."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.device.index if obj.device.type == "cuda" else None)


def get_device_properties(device: Device = None) -> SimpleNamespace:
    """Return name, memory in bytes, capability and number of multiprocessors of a GPU."""
    found = cupy_module().cuda.runtime.getDeviceProperties(gpu(device).id)
    return SimpleNamespace(
        name=found["name"].decode(),
        total_memory=int(found["totalGlobalMem"]),
        major=int(found["major"]),
        minor=int(found["minor"]),
        multi_processor_count=int(found["multiProcessorCount"]),
    )


def get_device_name(device: Device = None) -> str:
    """Return the name of a GPU."""
    name: str = get_device_properties(device).name
    return name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """Return the compute capability of a GPU: its major and minor number."""
    found = get_device_properties(device)
    return found.major, found.minor


def synchronize(device: Device = None) -> None:
    """Wait until a GPU has finished its work."""
    if is_available():
        gpu(device).synchronize()


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False: NumPy and CuPy have no bfloat16."""
    return False
