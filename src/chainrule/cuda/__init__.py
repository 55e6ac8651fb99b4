"""GPUs under the names of `torch.cuda`: availability, streams, memory and random numbers.

Without a GPU there is nothing to wait for, to free or to seed, and these functions return at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.cuda.device_memory import (
    empty_cache,
    ipc_collect,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_peak_memory_stats,
)
from chainrule.cuda.gpus import (
    current_device,
    device,
    device_count,
    device_of,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    set_device,
    synchronize,
)
from chainrule.cuda.streams import (
    Event,
    Stream,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from chainrule.missing_names import missing
from chainrule.random import get_rng_state as _state
from chainrule.random import initial_seed as _initial_seed
from chainrule.random import manual_seed as _seed
from chainrule.random import seed as _seed_anew
from chainrule.random import set_rng_state as _set_state

if TYPE_CHECKING:
    from chainrule.cuda import amp as amp

__all__ = [
    "OutOfMemoryError",
    "is_available",
    "is_initialized",
    "init",
    "device",
    "device_of",
    "device_count",
    "current_device",
    "set_device",
    "get_device_name",
    "get_device_properties",
    "get_device_capability",
    "is_bf16_supported",
    "synchronize",
    "Stream",
    "Event",
    "stream",
    "current_stream",
    "default_stream",
    "set_stream",
    "manual_seed",
    "manual_seed_all",
    "get_rng_state",
    "get_rng_state_all",
    "set_rng_state",
    "set_rng_state_all",
    "seed",
    "seed_all",
    "initial_seed",
    "empty_cache",
    "ipc_collect",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
]


def manual_seed(seed: int) -> None:
    """Seed the draws on a GPU: with `chainrule.manual_seed`, which seeds those of all devices.

    Without a GPU, do nothing.
    """
    if is_available():
        _seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Seed the draws on a GPU with an unpredictable number; do nothing without one."""
    if is_available():
        _seed_anew()


seed_all = seed


def initial_seed() -> int:
    """Return the seed of `chainrule.initial_seed`: all devices have one generator."""
    return _initial_seed()


OutOfMemoryError = MemoryError
"""The error of an array for which a GPU has no memory: CuPy's is a MemoryError."""


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of `chainrule.get_rng_state`: all devices have one generator."""
    return _state()


def get_rng_state_all() -> list[Any]:
    """Return the state for each GPU."""
    return [_state() for _ in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Go on from a state that `get_rng_state` returned."""
    _set_state(new_state)


def set_rng_state_all(new_states: Any) -> None:
    """Go on from the states that `get_rng_state_all` returned."""
    for state in new_states:
        _set_state(state)


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name == "amp":
            return import_module("chainrule.cuda.amp")
        if name == "_initialized":
            return is_initialized()
        raise missing(__name__, name)
