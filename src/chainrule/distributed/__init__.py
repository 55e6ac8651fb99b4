"""Gradients over many processes and machines, with Dask; and names of `torch.distributed`.

A script that asks whether it is one of several processes is told that it is not: here one program
sends tasks to workers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing

if TYPE_CHECKING:
    from chainrule.distributed.cluster import local_cluster as local_cluster
    from chainrule.distributed.objective import Objective as Objective
    from chainrule.distributed.training import fit as fit
    from chainrule.distributed.training_run import Fit as Fit

__all__ = ["Fit", "Objective", "fit", "is_available", "is_initialized", "local_cluster"]

_LATER = {
    "Fit": "training_run",
    "Objective": "objective",
    "fit": "training",
    "local_cluster": "cluster",
}


def is_available() -> bool:
    """Return False: there are no process groups."""
    return False


def is_initialized() -> bool:
    """Return False: there are no process groups."""
    return False


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise missing(__name__, name)
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return value
