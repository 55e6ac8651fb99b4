"""Gradients over many processes and machines: losses and training on Dask, and a communicator.

Names of `torch.distributed` are here for PyTorch's scripts: a process group of the communicator's
ranks.
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
    from chainrule.distributed.process_group import (
        ProcessGroup,
        ReduceOp,
        all_gather,
        all_gather_object,
        all_reduce,
        barrier,
        broadcast,
        destroy_process_group,
        get_backend,
        get_rank,
        get_world_size,
        init_process_group,
        is_available,
        is_initialized,
        reduce,
    )
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
    "ProcessGroup",
    "ReduceOp",
    "all_gather",
    "all_gather_object",
    "all_reduce",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
    "reduce",
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
} | dict.fromkeys(__all__[__all__.index("ProcessGroup") :], "process_group")
"""Names that are imported when first asked for, with their modules."""


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name == "nn":
            return import_module(f"{__name__}.nn")
        if name not in _LATER:
            raise missing(__name__, name)
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return value
