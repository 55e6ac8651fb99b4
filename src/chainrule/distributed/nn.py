"""PyTorch's collective functions that are recorded: they return new tensors."""

from __future__ import annotations

from typing import Any

from chainrule.autograd.tensor import Tensor
from chainrule.distributed.process_group import ReduceOp, _group

__all__ = ["all_gather", "all_reduce"]


def all_reduce(tensor: Tensor, op: str = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Return the sum, or another reduction, of the processes' tensors, as `Communicator.allreduce`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributed.init_process_group()
    >>> x = cr.ones(2, requires_grad=True)
    >>> all_reduce(x * 3).sum().backward()
    >>> x.grad
    tensor([3., 3.])
    >>> cr.distributed.destroy_process_group()
    """
    total: Tensor = _group("all_reduce").allreduce(tensor, op)
    return total


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Return the tensors of all processes."""
    return tuple(_group("all_gather").allgather(tensor[None]))
