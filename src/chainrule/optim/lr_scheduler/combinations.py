"""Schedules by a metric, and combinations of schedules."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.optim.lr_scheduler.scheduler import (
    LRScheduler,
    assign,
    checked_optimizer,
    for_groups,
)
from chainrule.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` when a metric has stopped improving.

    Parameters
    ----------
    optimizer : Optimizer
        As for `LRScheduler`.
    mode : {"min", "max"}
        Whether a smaller or a larger metric is better.
    factor : float, default 0.1
        Factor of the rate, below 1.
    patience : int, default 10
        Number of steps without improvement that are allowed.
    threshold, threshold_mode : float, default 1e-4, and {"rel", "abs"}
        The improvement that counts: relative to the best metric, or absolute.
    cooldown : int, default 0
        Steps after a reduction that are not counted.
    min_lr : float or list of floats, default 0
        Lower bound of the rate.
    eps : float, default 1e-8
        Smaller changes of the rate are left out.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cr.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     scheduler.step(loss)
    >>> scheduler.get_last_lr()
    [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ArgumentError(f"Factor should be < 1.0, but got {factor}")
        if mode not in ("min", "max"):
            raise ArgumentError(f"mode {mode} is unknown! Expected 'min' or 'max'")
        if threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                f"threshold mode {threshold_mode} is unknown! Expected 'rel' or 'abs'"
            )
        self.optimizer = checked_optimizer(optimizer)
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = for_groups("min_lr", optimizer, min_lr)
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.best, self.cooldown_counter, self.num_bad_epochs = self.mode_worse, 0, 0
        self.last_epoch = 0
        self._last_lr = self._rates()

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction is too recent to count steps."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        sign = 1 if self.mode == "max" else -1
        relative = self.threshold_mode == "rel"
        bar = best * (1 + sign * self.threshold) if relative else best + sign * self.threshold
        return a > bar if self.mode == "max" else a < bar

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]  # of a metric
        """Take the metric of a step, a number or a tensor of one element, and set the rates."""
        current = metrics.item() if isinstance(metrics, Tensor) else float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._rates()

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise ArgumentError(
                    f"the optimizer has {len(groups)} parameter groups, but min_lr "
                    f"{len(self.min_lrs)} entries: set scheduler.min_lrs after adding a group"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                assign(group, "lr", new)


class _Combination(LRScheduler):
    """Base of schedules that are made of others."""

    _UNSAVED = ("optimizer", "_schedulers")

    def __init__(self, optimizer: Optimizer | None, schedulers: Sequence[LRScheduler]) -> None:
        title = type(self).__name__
        if not schedulers:
            raise ArgumentError(f"{title} expects at least one scheduler, but got no scheduler")
        optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for number, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ArgumentError(
                    f"{title} does not support `ReduceLROnPlateau` scheduler, whose step needs a "
                    f"metric, but got one at index {number}"
                )
            if scheduler.optimizer is not optimizer:
                raise ArgumentError(
                    f"{title} expects all schedulers to belong to the same optimizer, but that of "
                    f"scheduler {type(scheduler).__name__} at index {number} is another one"
                )
        self.optimizer, self._schedulers = optimizer, schedulers

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser, with the states of all schedules."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, into all schedules."""
        super().load_state_dict({**state_dict, "_schedulers": self._schedulers})
        for scheduler, saved in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(saved)


class SequentialLR(_Combination):
    """Schedules one after the other: each of `milestones` is the first step of the next one.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = cr.optim.SGD([cr.ones(1, requires_grad=True)], lr=1.0)
    >>> warmup, decay = ConstantLR(optimizer, 0.5, 2), ExponentialLR(optimizer, 0.5)
    >>> scheduler = SequentialLR(optimizer, [warmup, decay], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        super().__init__(checked_optimizer(optimizer), schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            assign(group, "lr", group["initial_lr"])
        for scheduler in _leaves(schedulers):  # each has made its first step
            scheduler.last_epoch -= 1
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]  # PyTorch's takes no epoch
        """Go to the next step of the schedule whose turn it is."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combination):
    """Schedules that change the rate one after the other in every step: factors multiply."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        super().__init__(optimizer, schedulers)
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]  # PyTorch's takes no epoch
        """Go to the next step of all schedules."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()


def _leaves(schedulers: Sequence[LRScheduler]) -> Iterator[LRScheduler]:
    for scheduler in schedulers:
        inner = getattr(scheduler, "_schedulers", None)
        if inner is None:
            yield scheduler
        else:
            yield from _leaves(inner)
