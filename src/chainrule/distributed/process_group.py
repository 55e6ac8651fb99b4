"""PyTorch's process group: its functions, which write in place, over the ranks of `world`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.distributed.communicator import Communicator
from chainrule.distributed.mpi import world
from chainrule.errors import ArgumentError, CommunicationError
from chainrule.nn.modules import Module
from chainrule.nn.parallel import DataParallel

__all__ = [
    "DistributedDataParallel",
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

_groups: list[Communicator] = []
"""The process group of this process: none, or one."""


ProcessGroup = Communicator
"""PyTorch's name of the type of groups of ranks."""


class ReduceOp:
    """Names of reductions, as `all_reduce` takes them."""

    SUM, AVG, PRODUCT, MAX, MIN = "sum", "mean", "prod", "max", "min"


def is_available() -> bool:
    """Return True: there are process groups."""
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called."""
    return bool(_groups)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    **settings: Any,
) -> None:
    """Make the ranks of `world` the process group.

    Parameters
    ----------
    backend, init_method, timeout, rank, **settings
        As in PyTorch, without effect: MPI connects the processes.
    world_size : int, optional
        The number of processes, for a check; that of torchrun's environment if left out.

    Raises
    ------
    CommunicationError
        If there are not so many processes.

    Examples
    --------
    >>> from chainrule import distributed as dist
    >>> dist.init_process_group("gloo")
    >>> dist.get_rank(), dist.get_world_size()
    (0, 1)
    >>> dist.destroy_process_group()
    """
    if _groups:
        raise CommunicationError("init_process_group: trying to initialize the group twice")
    group = world()
    wanted = world_size if world_size > 0 else int(os.environ.get("WORLD_SIZE", group.size))
    if wanted != group.size:
        raise CommunicationError(
            f"init_process_group: {wanted} processes are expected, but {group.size} can exchange "
            f"tensors: start them by mpiexec -n {wanted} python -m mpi4py program.py"
        )
    _groups.append(group)


def destroy_process_group(group: Any = None) -> None:
    """Forget the process group."""
    _groups.clear()


def _group(name: str) -> Communicator:
    if not _groups:
        raise ArgumentError(
            f"{name}: Default process group has not been initialized, please make sure to call "
            "init_process_group()"
        )
    return _groups[0]


def get_rank(group: Any = None) -> int:
    """Return the number of this process, from 0."""
    return _group("get_rank").rank


def get_world_size(group: Any = None) -> int:
    """Return the number of processes."""
    return _group("get_world_size").size


def get_backend(group: Any = None) -> str:
    """Return "mpi"."""
    return "mpi"


def barrier(group: Any = None, **settings: Any) -> None:
    """Wait for all processes."""
    _group("barrier").barrier()


class _Done:
    """The handle of an exchange, which has ended when the call returns."""

    def wait(self) -> bool:
        """Return True."""
        return True

    is_completed = wait


@no_grad()
def all_reduce(
    tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> _Done | None:
    """Write the sum, or another reduction, of the processes' tensors over each of them.

    The exchange isn't recorded: `Communicator.allreduce` returns one that is.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributed.init_process_group()
    >>> x = cr.ones(2)
    >>> cr.distributed.all_reduce(x)
    >>> cr.distributed.destroy_process_group()
    """
    tensor.copy_(_group("all_reduce").allreduce(tensor.detach(), op))
    return _Done() if async_op else None


@no_grad()
def reduce(
    tensor: Tensor,
    dst: int = 0,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> _Done | None:
    """Write what `all_reduce` does over the tensor of one process."""
    comm = _group("reduce")
    total = comm.allreduce(tensor.detach(), op)
    if comm.rank == dst:
        tensor.copy_(total)
    return _Done() if async_op else None


@no_grad()
def broadcast(
    tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False
) -> _Done | None:
    """Write the tensor of one process over those of all."""
    tensor.copy_(_group("broadcast").bcast(tensor.detach(), src))
    return _Done() if async_op else None


@no_grad()
def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> _Done | None:
    """Write the tensors of all processes over those of a list."""
    found = _group("all_gather").allgather(tensor.detach()[None])
    for target, value in zip(tensor_list, found, strict=True):
        target.copy_(value)
    return _Done() if async_op else None


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Write the objects of all processes, which are pickled, over the items of a list."""
    object_list[:] = _group("all_gather_object").transport.agree(obj)


class DistributedDataParallel(DataParallel):
    """A module whose gradients are those of the mean loss over all processes.

    It starts with the parameters and buffers of the first process, and averages each gradient when
    a backward pass has accumulated it. Each call in training mode
    begins with the buffers of the first process.

    Parameters
    ----------
    module : Module
        Its parameters have names that begin with ``module.``. Each takes part in each backward
        pass, on all processes in the same order.
    device_ids, output_device, dim, **settings
        As in PyTorch, without effect.
    broadcast_buffers : bool, default True
        Whether calls take the buffers of the first process.

    Examples
    --------
    >>> from chainrule import distributed, nn
    >>> distributed.init_process_group()
    >>> list(nn.parallel.DistributedDataParallel(nn.Linear(2, 1)).state_dict())
    ['module.weight', 'module.bias']
    >>> distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__(module)
        self.require_backward_grad_sync = True
        comm = _group("DistributedDataParallel")
        self.broadcast_buffers = broadcast_buffers and comm.size > 1
        if comm.size == 1:
            return
        for tensor in [*module.parameters(), *module.buffers()]:
            broadcast(tensor)

        def average(parameter: Tensor) -> None:
            if self.require_backward_grad_sync and parameter.grad is not None:
                all_reduce(parameter.grad, ReduceOp.AVG)

        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(average)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if self.broadcast_buffers and self.training:
            for tensor in self.module.buffers():
                broadcast(tensor)
        return super().forward(*inputs, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate the gradients of this process alone, in a block."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before
