"""Work on several processes: a communicator, and what scripts ask of `torch.distributed`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing

if TYPE_CHECKING:
    from chainrule.distributed.communication import connect
    from chainrule.distributed.communicator import Communicator
    from chainrule.distributed.loopback import run_ranks
    from chainrule.distributed.mpi import from_mpi, world

__all__ = [
    "Communicator",
    "connect",
    "from_mpi",
    "is_available",
    "is_initialized",
    "run_ranks",
    "world",
]

_LATER = {
    # the communicator
    "Communicator": "communicator",
    "connect": "communication",
    "from_mpi": "mpi",
    "run_ranks": "loopback",
    "world": "mpi",
}
"""Names that are imported when first asked for, with their modules."""


def is_available() -> bool:
    """Return False: `torch.distributed` isn't; `world` is what there is."""
    return False


def is_initialized() -> bool:
    """Return False: no process group of `torch.distributed` is."""
    return False


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        """Import what is asked for: scripts that only ask whether they run alone need nothing."""
        if name not in _LATER:
            raise missing(__name__, name)
        value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = value
        return value
