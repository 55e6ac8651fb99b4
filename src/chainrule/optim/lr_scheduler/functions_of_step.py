"""Schedules that are functions of the step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.optim.lr_scheduler.scheduler import (
    LRScheduler,
    Rates,
    attributes_of,
    checked_optimizer,
    for_groups,
)
from chainrule.optim.optimizer import Optimizer


class FactorSchedule(LRScheduler, ABC):
    """Base of schedules that multiply the rate of each group by a factor in each step."""

    @abstractmethod
    def _factor(self) -> float:
        """Return the factor of this step."""

    def get_lr(self) -> Rates:
        """Return the rates of the present step."""
        factor = self._factor()
        return [rate * factor for rate in self._rates()] if factor != 1 else self._rates()


class LambdaLR(LRScheduler):
    """The initial rate times a function of the step.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    lr_lambda : callable or list of callables
        ``lr_lambda(step)`` is the factor; a list has one for each group.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = cr.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    >>> optimizer.step(), scheduler.step(), scheduler.get_last_lr()
    (None, None, [0.5])
    """

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas: list[Any] = for_groups(
            "lr_lambda", checked_optimizer(optimizer), lr_lambda
        )
        for each in self.lr_lambdas:
            if not callable(each):
                raise ArgumentTypeError(
                    f"lr_lambda should be a function, but got {type(each).__name__}"
                )
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser and functions; objects are kept by attributes."""
        return {**super().state_dict(), "lr_lambdas": [attributes_of(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned; functions are those of this schedule."""
        super().load_state_dict({**state_dict, "lr_lambdas": self.lr_lambdas})
        for own, saved in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            vars(own).update(saved or {})

    def get_lr(self) -> Rates:
        """Return the rates of the present step."""
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [rate * factor(self.last_epoch) for rate, factor in pairs]


class MultiplicativeLR(LambdaLR):
    """The last rate times a function of the step: arguments as for `LambdaLR`."""

    def get_lr(self) -> Rates:
        """Return the rates of the present step."""
        if self._is_initial:
            return self._rates()
        pairs = zip(self._rates(), self.lr_lambdas, strict=True)
        return [rate * factor(self.last_epoch) for rate, factor in pairs]


class StepLR(FactorSchedule):
    """The rate times `gamma` after every `step_size` steps.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = cr.optim.lr_scheduler.StepLR(optimizer, step_size=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
    ...     scheduler.step()
    >>> rates
    [0.1, 0.1, 0.01, 0.01]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma

    def _get_closed_form_lr(self) -> Rates:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(FactorSchedule):
    """The rate times `gamma` at each of the steps `milestones`.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = cr.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3])
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
    ...     scheduler.step()
    >>> rates
    [0.1, 0.01, 0.01, 0.001]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        times = self.milestones.get(self.last_epoch, 0)  # no Counter after loading JSON
        return self.gamma**times if times else 1

    def _get_closed_form_lr(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [rate * self.gamma**passed for rate in self.base_lrs]


class ConstantLR(FactorSchedule):
    """The rate times `factor` for the first `total_iters` steps.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = cr.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
    ...     scheduler.step()
    >>> rates
    [0.05, 0.05, 0.1, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ArgumentError(
                f"Constant multiplicative factor expected to be between 0 and 1, but got {factor}"
            )
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1

    def _get_closed_form_lr(self) -> Rates:
        factor = 1 if self.last_epoch >= self.total_iters else self.factor
        return [rate * factor for rate in self.base_lrs]


class LinearLR(FactorSchedule):
    """The rate times a factor from `start_factor` to `end_factor`, linear over `total_iters`.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = cr.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
    ...     scheduler.step()
    >>> rates
    [0.025, 0.05, 0.075, 0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ArgumentError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                f"to 1, but got {start_factor}"
            )
        if not 0 <= end_factor <= 1:
            raise ArgumentError(
                f"Ending multiplicative factor expected to be between 0 and 1, but got {end_factor}"
            )
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        slope = self.end_factor - self.start_factor
        return 1 + slope / (self.total_iters * self.start_factor + (self.last_epoch - 1) * slope)

    def _get_closed_form_lr(self) -> Rates:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        factor = self.start_factor + (self.end_factor - self.start_factor) * part
        return [rate * factor for rate in self.base_lrs]


class ExponentialLR(FactorSchedule):
    """The rate times `gamma` in every step.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = cr.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
    ...     scheduler.step()
    >>> rates
    [0.1, 0.05, 0.025, 0.0125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self._is_initial else self.gamma

    def _get_closed_form_lr(self) -> Rates:
        return [rate * self.gamma**self.last_epoch for rate in self.base_lrs]


class PolynomialLR(FactorSchedule):
    """The rate times (1 - step / total_iters)^power, and 0 from step `total_iters`.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = cr.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=3)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
    ...     scheduler.step()
    >>> rates
    [0.1, 0.0667, 0.0333, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1
        left = 1 - self.last_epoch / self.total_iters
        factor: float = (left / (1 - (self.last_epoch - 1) / self.total_iters)) ** self.power
        return factor

    def _get_closed_form_lr(self) -> Rates:
        left = 1 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [rate * left**self.power for rate in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a period of a cosine, from the initial rate to `eta_min` in `T_max` steps, and back.

    Notes
    -----
    η = η_min + (η₀ - η_min) (1 + cos(π step / T_max)) / 2 [1]_, computed from the last rate, so
    that it can be combined with other schedules.

    References
    ----------
    .. [1] I. Loshchilov, F. Hutter, SGDR: Stochastic gradient descent with warm
       restarts, ICLR 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = cr.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
    ...     scheduler.step()
    >>> rates
    [0.1, 0.075, 0.025, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, step: int) -> float:
        return 1 + math.cos(math.pi * step / self.T_max)

    def get_lr(self) -> Rates:
        """Return the rates of the present step."""
        step, low = self.last_epoch, self.eta_min
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and step > 0:
            return self._get_closed_form_lr()
        if (step - 1 - self.T_max) % (2 * self.T_max) == 0:  # the last rate was the lowest
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            pairs = zip(self._rates(), self.base_lrs, strict=True)
            return [rate + (base - low) * rise for rate, base in pairs]
        ratio = self._height(step) / self._height(step - 1)
        return [ratio * (rate - low) + low for rate in self._rates()]

    def _get_closed_form_lr(self) -> Rates:
        part = self._height(self.last_epoch) / 2
        return [self.eta_min + (rate - self.eta_min) * part for rate in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Halves of a cosine, each from the initial rate to `eta_min`, `T_mult` times longer each.

    The first takes `T_0` steps. `step` may be called with a fraction of an epoch.
    The method is that of I. Loshchilov, F. Hutter, SGDR, ICLR 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(2, requires_grad=True)], lr=0.1)
    >>> scheduler = cr.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     optimizer.step()
    ...     rates.append(round(optimizer.param_groups[0]["lr"], 4))
    ...     scheduler.step()
    >>> rates
    [0.1, 0.05, 0.1, 0.05]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ArgumentError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ArgumentError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ArgumentError(f"Expected float or int eta_min, but got {eta_min}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i: float = T_0
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the present step."""
        part = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (rate - self.eta_min) * part for rate in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next step, or to `epoch`, which may be a fraction, and set its rates."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ArgumentError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _go_to(self, epoch: float) -> None:
        first, factor = self.T_0, self.T_mult
        if epoch < first:
            self.T_i, self.T_cur = first, epoch
        elif factor == 1:
            self.T_cur = epoch % first
        else:
            restarts = int(math.log(epoch / first * (factor - 1) + 1, factor))
            self.T_cur = epoch - first * (factor**restarts - 1) / (factor - 1)
            self.T_i = first * factor**restarts
