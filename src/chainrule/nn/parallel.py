"""Modules on several devices, under the names of `torch.nn.parallel`: one device runs all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing
from chainrule.nn.modules import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """A module that calls another one, as PyTorch's does where there is one device, or none.

    Parameters
    ----------
    module : Module
        Its parameters have names that begin with ``module.``, as in PyTorch's checkpoints.
    device_ids, output_device, dim
        As in PyTorch, without effect.

    Examples
    --------
    >>> from chainrule import nn
    >>> list(nn.DataParallel(nn.Linear(2, 1)).state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
