"""Gradients over many processes and machines: losses and training on Dask, and a communicator.

Names of `torch.distributed` are here for scripts that ask whether they are one of several
processes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing

if TYPE_CHECKING:
    from chainrule.distributed.cluster import local_cluster
    from chainrule.distributed.communication import connect
    from chainrule.distributed.communicator import Communicator
    from chainrule.distributed.loopback import run_ranks
    from chainrule.distributed.mpi import from_mpi, world
    from chainrule.distributed.objective import Objective
    from chainrule.distributed.training import fit
    from chainrule.distributed.training_run import Fit

__all__ = [
    # on Dask
    "Fit",
    "Objective",
    "fit",
    "local_cluster",
    # the communicator
    "Communicator",
    "connect",
    "from_mpi",
    "run_ranks",
    "world",
    # of torch.distributed
    "is_available",
    "is_initialized",
]

_LATER = {
    "Fit": "training_run",
    "Objective": "objective",
    "fit": "training",
    "local_cluster": "cluster",
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
        if name not in _LATER:
            raise missing(__name__, name)
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return value
