"""GPUs under the names of `torch.cuda`: availability, synchronization and memory.

Without a GPU there is nothing to wait for, to free or to seed, and these functions return at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.backend import cuda_is_available as is_available
from chainrule.backend import cupy_module, device
from chainrule.missing_names import missing
from chainrule.random import manual_seed as _seed

if TYPE_CHECKING:
    from chainrule.cuda import amp as amp

__all__ = [
    "is_available",
    "device_count",
    "current_device",
    "set_device",
    "get_device_name",
    "synchronize",
    "manual_seed",
    "manual_seed_all",
    "empty_cache",
    "memory_allocated",
    "memory_reserved",
    "is_bf16_supported",
]

Device = device | str | int | None


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


def _gpu(which: Device) -> Any:
    """Return CuPy's object for a GPU, the current one for None."""
    if which is None or isinstance(which, int):
        return cupy_module().cuda.Device(which)
    return cupy_module().cuda.Device(device(which).index)


def set_device(device: Device) -> None:
    """Make a GPU the current one."""
    _gpu(device).use()


def get_device_name(device: Device = None) -> str:
    """Return the name of a GPU."""
    name: bytes = cupy_module().cuda.runtime.getDeviceProperties(_gpu(device).id)["name"]
    return name.decode()


def synchronize(device: Device = None) -> None:
    """Wait until a GPU has finished its work."""
    if is_available():
        _gpu(device).synchronize()


def manual_seed(seed: int) -> None:
    """Seed the draws on a GPU: with `chainrule.manual_seed`, which seeds those of all devices.

    Without a GPU, do nothing.
    """
    if is_available():
        _seed(seed)


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Give memory that no array uses back to the GPU's driver."""
    if is_available():
        cupy_module().get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Device = None) -> int:
    """Return the number of bytes of arrays on a GPU: 0 without one."""
    if not is_available():
        return 0
    with _gpu(device):
        return int(cupy_module().get_default_memory_pool().used_bytes())


def memory_reserved(device: Device = None) -> int:
    """Return the number of bytes taken from a GPU, those of no array included: 0 without one."""
    if not is_available():
        return 0
    with _gpu(device):
        return int(cupy_module().get_default_memory_pool().total_bytes())


def is_bf16_supported() -> bool:
    """Return False: NumPy and CuPy have no bfloat16."""
    return False


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name == "amp":
            return import_module("chainrule.cuda.amp")
        raise missing(__name__, name)
