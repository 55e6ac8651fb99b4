"""The accelerator under the names of `torch.accelerator`: a GPU, where there is one."""

from typing import TYPE_CHECKING, Any

from chainrule.backend import device
from chainrule.cuda import current_device as current_device_index
from chainrule.cuda import device_count, empty_cache, is_available, synchronize
from chainrule.cuda import set_device as set_device_index
from chainrule.missing_names import missing

__all__ = [
    "is_available",
    "current_accelerator",
    "device_count",
    "current_device_index",
    "set_device_index",
    "synchronize",
    "empty_cache",
]


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the device "cuda", or None where there is no GPU."""
    return device("cuda") if is_available() else None


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
