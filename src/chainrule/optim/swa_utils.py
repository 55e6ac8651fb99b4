"""Averages of parameters along the path of an optimiser: stochastic weight averaging and EMA."""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from chainrule.arguments import DeviceLike
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.creation import tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn.modules.module import Module
from chainrule.nn.modules.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from chainrule.optim.lr_scheduler.scheduler import LRScheduler, Rates, for_groups
from chainrule.optim.optimizer import Optimizer

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
MultiAverage = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the update of an exponential moving average.

    Parameters
    ----------
    decay : float, default 0.999
        Share of the average that is kept, from 0 to 1.

    Returns
    -------
    callable
        ``average(averaged, current, num_averaged)`` returns decay · averaged +
        (1 - decay) · current, unrecorded.

    Raises
    ------
    ArgumentError
        If `decay` is out of range.

    Examples
    --------
    >>> import chainrule as cr
    >>> average = cr.optim.swa_utils.get_ema_avg_fn(0.75)
    >>> average(cr.tensor(0.0), cr.tensor(4.0), 1)
    tensor(1.)
    """
    if not 0 <= decay <= 1:
        raise ArgumentError(f"Invalid decay value {decay}, expected a value in [0, 1]")
    return functools.partial(_moved, decay)


def get_swa_avg_fn() -> Average:
    """Return the update of a mean, as `get_ema_avg_fn` does: of ``num_averaged`` values so far.

    Stochastic weight averaging takes the mean of the parameters at the end of epochs: P. Izmailov
    et al., Averaging weights leads to wider optima and better generalization, UAI 2018.

    Examples
    --------
    >>> import chainrule as cr
    >>> average = cr.optim.swa_utils.get_swa_avg_fn()
    >>> average(cr.tensor(1.0), cr.tensor(4.0), 2)
    tensor(2.)
    """
    return _mean


def _moved(decay: float, averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
    with no_grad():
        return decay * averaged + (1 - decay) * current


def _mean(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
    with no_grad():
        step: Tensor = (current - averaged) / (num_averaged + 1)
        return averaged + step


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return the update of exponential moving averages: of lists of parameters, in place."""
    return _in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return the update of means: of lists of parameters, in place."""
    return _in_place(get_swa_avg_fn())


def _in_place(average: Average) -> MultiAverage:
    return functools.partial(_update_in_place, average)


def _update_in_place(
    average: Average, averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any
) -> None:
    with no_grad():
        for old, new in zip(averaged, current, strict=True):
            old.copy_(average(old, new, num_averaged))


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that the model had.

    Parameters
    ----------
    model : Module
        Copied; `update_parameters` takes it, or one like it.
    device : device, optional
        Where the copy lives.
    avg_fn, multi_avg_fn : callable, optional
        The update of an average, or of lists of them: the mean by default.
    use_buffers : bool, default False
        Average floating buffers too; all others are copied from the model.

    Attributes
    ----------
    module : Module
        The copy.
    n_averaged : Tensor
        Number of models averaged so far.

    Raises
    ------
    ArgumentError
        If both `avg_fn` and `multi_avg_fn` are given.

    Examples
    --------
    >>> import chainrule as cr
    >>> net = cr.nn.Linear(1, 1, bias=False)
    >>> averaged = AveragedModel(net)
    >>> for weight in (1.0, 4.0):
    ...     _ = cr.nn.init.constant_(net.weight, weight)
    ...     averaged.update_parameters(net)
    >>> averaged.module.weight.item()
    2.5
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: DeviceLike = None,
        avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.use_buffers = use_buffers
        self._average = multi_avg_fn or _in_place(avg_fn or get_swa_avg_fn())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the averaged model returns."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the averages; the first ones are copied."""
        averaged, current = _pairs(self.module, model, self.use_buffers)
        with no_grad():
            if not self.n_averaged.item():
                for old, new in zip(averaged, current, strict=True):
                    old.copy_(new)
            else:
                self._average(averaged, current, self.n_averaged)
            for old, new in zip(self.module.buffers(), model.buffers(), strict=True):
                if not self.use_buffers or not old.is_floating_point():
                    old.copy_(new)
            self.n_averaged += 1


def _pairs(averaged: Module, model: Module, buffers: bool) -> tuple[list[Tensor], list[Tensor]]:
    """Return the tensors of both models that are averaged."""
    found = []
    for module in (averaged, model):
        tensors: list[Tensor] = list(module.parameters())
        if buffers:
            tensors += [buffer for buffer in module.buffers() if buffer.is_floating_point()]
        found.append(tensors)
    if [t.shape for t in found[0]] != [t.shape for t in found[1]]:
        raise ShapeError(
            "AveragedModel.update_parameters: expected a model with the parameters of the averaged "
            f"one, of shapes {[list(t.shape) for t in found[0]]}, but got "
            f"{[list(t.shape) for t in found[1]]}"
        )
    return found[0], found[1]


def update_bn(loader: Iterable[Any], model: Module, device: DeviceLike = None) -> None:
    """Compute the running statistics of a model's batch normalisation from data anew.

    Parameters
    ----------
    loader : iterable
        Gives batches: inputs, or lists or tuples that begin with the inputs.
    model : Module
        Run once over the data in training mode; its mode is restored.
    device : device, optional
        Where the inputs are copied to.
    """
    layers = [
        module
        for module in model.modules()
        if isinstance(module, BatchNorm1d | BatchNorm2d | BatchNorm3d)
    ]
    if not layers:
        return
    modes = [(module, module.training) for module in model.modules()]
    momenta = [layer.momentum for layer in layers]
    try:
        model.train()
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # the mean of all batches
        with no_grad():
            for batch in loader:
                inputs = batch[0] if isinstance(batch, list | tuple) else batch
                model(inputs if device is None else inputs.to(device))
    finally:
        for layer, momentum in zip(layers, momenta, strict=True):
            layer.momentum = momentum
        for module, training in modes:
            module.training = training


class SWALR(LRScheduler):
    """The rate that goes to `swa_lr` in `anneal_epochs` steps and stays there.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    swa_lr : float or list of floats
        The last rate; a list has one for each group.
    anneal_epochs : int, default 10
        Number of steps to it, at least 0.
    anneal_strategy : {"cos", "linear"}
        Form of the way there.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cr.optim.swa_utils.SWALR(optimizer, 0.5, 2, "linear")
    >>> optimizer.step(), scheduler.step(), scheduler.get_last_lr()
    (None, None, [0.75])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = for_groups("swa_lr", optimizer, swa_lr)
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy!r}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentError(
                f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}"
            )
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Return the share of `swa_lr` in the rate of a step."""
        part = max(0, min(1, step / max(1, self.anneal_epochs)))
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> Rates:
        """Return the rates of the present step."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group, rate in zip(self.optimizer.param_groups, self._rates(), strict=True):
            last = group["swa_lr"]
            first = last if before == 1 else (rate - before * last) / (1 - before)
            rates.append(last * now + first * (1 - now))
        return rates
