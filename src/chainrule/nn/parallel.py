"""Modules on several devices, under the names of `torch.nn.parallel`: one device runs all.

`DistributedDataParallel` is that of `distributed`: it averages gradients over processes.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing
from chainrule.nn.modules import Module

__all__ = ["DataParallel", "data_parallel"]


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


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """Return what a module returns for inputs: a tuple of them, or one."""
    args = () if inputs is None else inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*args, **(module_kwargs or {}))


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        if name == "DistributedDataParallel":  # a layer above this package
            return getattr(import_module("chainrule.distributed.process_group"), name)
        raise missing(__name__, name)
