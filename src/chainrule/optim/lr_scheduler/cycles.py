"""Cycles of the learning rate and of the momentum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

from chainrule.errors import ArgumentError
from chainrule.optim.lr_scheduler.scheduler import (
    LRScheduler,
    Rates,
    assign,
    attributes_of,
    checked_optimizer,
    for_groups,
)
from chainrule.optim.optimizer import Group, Optimizer


class _WithMomentum(LRScheduler):
    """Base of schedules that move the momentum, or the first of `betas`, against the rate."""

    def _start_momentum(
        self, optimizer: Optimizer, base: Any, highest: Any, is_start: bool
    ) -> None:
        if not {"momentum", "betas"} & set(optimizer.defaults):
            raise ArgumentError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled: "
                f"{type(optimizer).__name__} has none, so say cycle_momentum=False"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = for_groups("base_momentum", optimizer, base)
        self.max_momentums = for_groups("max_momentum", optimizer, highest)
        if is_start:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, high)
                group.update(max_momentum=high, base_momentum=low)

    def _set_momentum(self, group: Group, momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """Rates that go up and down between two bounds, and the momentum down and up.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    base_lr, max_lr : float or list of floats
        The bounds; a list has one for each group.
    step_size_up, step_size_down : int, default 2000, and as many
        Steps up and down.
    mode : {"triangular", "triangular2", "exp_range"}
        Cycles of the same height, half as high each, or `gamma` times as high in each step.
    gamma : float, default 1
        Of ``"exp_range"``.
    scale_fn : callable, optional
        The height as a function of the number of the cycle or, with
        ``scale_mode="iterations"``, of the step; `mode` is ignored then.
    scale_mode : {"cycle", "iterations"}
        The argument of `scale_fn`.
    cycle_momentum : bool, default True
        Move the momentum between `max_momentum` and `base_momentum`.
    base_momentum, max_momentum : float or list of floats, default 0.8, 0.9
        Bounds of the momentum.

    References
    ----------
    .. [1] L. N. Smith, Cyclical learning rates for training neural networks, WACV 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.SGD([cr.ones(1, requires_grad=True)], momentum=0.9)
    >>> scheduler = cr.optim.lr_scheduler.CyclicLR(optimizer, 0.5, 1.0, step_size_up=2)
    >>> optimizer.step(), scheduler.step(), scheduler.get_last_lr()
    (None, None, [0.75])
    """

    _UNSAVED = ("optimizer", "_scale_fn_custom")

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        base_lrs = for_groups("base_lr", checked_optimizer(optimizer), base_lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ArgumentError(
                f"mode is invalid and scale_fn is None: got {mode!r}, expected 'triangular', "
                "'triangular2' or 'exp_range'"
            )
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom: Any = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode, self.cycle_momentum = scale_mode, cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                assign(group, "lr", rate)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return float(self._scale_fn_custom(x))
        if self.mode == "exp_range":
            return float(self.gamma**x)
        return 1.0 if self.mode == "triangular" else 1 / 2.0 ** (x - 1)

    def get_lr(self) -> Rates:
        """Return the rates of the present step, and set the momentum."""
        place = self.last_epoch / self.total_size
        cycle = math.floor(1 + place)
        x = 1.0 + place - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, high - (high - low) * height * scale)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser and a function; an object is kept by attributes."""
        return {**super().state_dict(), "_scale_fn_custom": attributes_of(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned; `scale_fn` is that of this schedule."""
        super().load_state_dict({**state_dict, "_scale_fn_custom": self._scale_fn_custom})
        saved = state_dict["_scale_fn_custom"]
        if saved is not None:
            vars(self._scale_fn_custom).update(saved)


class OneCycleLR(_WithMomentum):
    """One cycle: up from a low rate to the highest, and down to almost nothing.

    Parameters
    ----------
    optimizer, last_epoch
        As for `LRScheduler`.
    max_lr : float or list of floats
        The highest rate; a list has one for each group.
    total_steps : int, optional
        Number of steps; or `epochs` times `steps_per_epoch`.
    pct_start : float, default 0.3
        Part of the steps that go up.
    anneal_strategy : {"cos", "linear"}
        Form of the ways up and down.
    cycle_momentum : bool, default True
        Move the momentum from `max_momentum` (0.95) to `base_momentum` (0.85) and back.
    div_factor, final_div_factor : float, default 25, 1e4
        The first rate is max_lr / div_factor, the last one that / final_div_factor.
    three_phase : bool, default False
        Go down to the first rate as fast as up, and then to the last one.

    References
    ----------
    .. [1] L. N. Smith, N. Topin, Super-convergence: very fast training of neural networks using
       large learning rates, 2018.

    Examples
    --------
    >>> import chainrule as cr
    >>> optimizer = cr.optim.Adam([cr.ones(1, requires_grad=True)])
    >>> scheduler = cr.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.5, total_steps=10)
    >>> [round(rate, 6) for rate in scheduler.get_last_lr()]
    [0.02]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = _product_of_steps(total_steps, epochs, steps_per_epoch)
        if not (isinstance(pct_start, float) and 0 <= pct_start <= 1):
            raise ArgumentError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy!r}"
            )
        self._anneal_func_type = anneal_strategy
        top = float(pct_start * self.total_steps) - 1
        back = [(2 * (top + 1) - 2, "max_lr", "initial_lr"), (0, "initial_lr", "min_lr")]
        phases = [
            (top, "initial_lr", "max_lr"),
            *(back if three_phase else [(0, "max_lr", "min_lr")]),
        ]
        phases[-1] = (self.total_steps - 1, *phases[-1][1:])
        self._schedule_phases = [
            {
                "end_step": end,
                "start_lr": start_lr,
                "end_lr": end_lr,
                "start_momentum": _MOMENTUM_AT[start_lr],
                "end_momentum": _MOMENTUM_AT[end_lr],
            }
            for end, start_lr, end_lr in phases
        ]
        highest = for_groups("max_lr", checked_optimizer(optimizer), max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, highest, strict=True):
                first = rate / div_factor
                group.update(initial_lr=first, max_lr=rate, min_lr=first / final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> Rates:
        """Return the rates of the present step, and set the momentum."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ArgumentError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                ends = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*ends, part))
        return rates

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


_MOMENTUM_AT = {"initial_lr": "max_momentum", "max_lr": "base_momentum", "min_lr": "max_momentum"}


def _product_of_steps(total: int | None, epochs: int | None, steps: int | None) -> int:
    given = (
        {"total_steps": total}
        if total is not None
        else {"epochs": epochs, "steps_per_epoch": steps}
    )
    product = 1
    for name, value in given.items():
        if value is None:
            raise ArgumentError(
                "You must define either total_steps OR (epochs AND steps_per_epoch)"
            )
        if not isinstance(value, int) or value <= 0:
            raise ArgumentError(f"Expected positive integer {name}, but got {value}")
        product *= value
    return product
