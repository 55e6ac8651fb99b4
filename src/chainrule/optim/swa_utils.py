"""Averages of parameters along the path of an optimiser: stochastic weight averaging and EMA."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.optim.lr_scheduler.scheduler import LRScheduler, Rates, for_groups
from chainrule.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
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

    def average(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            return decay * averaged + (1 - decay) * current

    return average


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

    def average(averaged: Tensor, current: Tensor, num_averaged: Any) -> Tensor:
        with no_grad():
            step: Tensor = (current - averaged) / (num_averaged + 1)
            return averaged + step

    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Return the update of exponential moving averages: of lists of parameters, in place."""
    return _in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> MultiAverage:
    """Return the update of means: of lists of parameters, in place."""
    return _in_place(get_swa_avg_fn())


def _in_place(average: Average) -> MultiAverage:
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], num_averaged: Any) -> None:
        with no_grad():
            for old, new in zip(averaged, current, strict=True):
                old.copy_(average(old, new, num_averaged))

    return update


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
