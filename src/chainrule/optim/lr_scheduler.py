"""Schedules of the learning rate, with the names, arguments and state of PyTorch's."""

from __future__ import annotations

import contextlib
import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from chainrule.autograd.location import user_stack_level
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.optim.optimizer import Group, Optimizer

__all__ = [
    "LRScheduler",
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "ChainedScheduler",
]

Rates = list[Any]


class LRScheduler:
    """Base of schedules: sets the learning rate of each parameter group, step by step.

    Parameters
    ----------
    optimizer : Optimizer
        Its ``param_groups`` get ``"initial_lr"``, the rate that the schedule starts from. A rate
        that is a tensor is filled in place, so that a compiled step needs no new program.
    last_epoch : int, default -1
        The step to resume after; -1 starts.

    Attributes
    ----------
    base_lrs : list
        The initial rates.
    last_epoch : int
        The number of steps so far.

    Raises
    ------
    TypeError
        If `optimizer` is none.
    KeyError
        If `last_epoch` isn't -1, and a group has no ``"initial_lr"``.

    Notes
    -----
    A subclass implements ``get_lr()``: the rates of all groups in step ``last_epoch``, mostly from
    those in ``optimizer.param_groups``, so that schedules can be combined; in the constructor,
    ``_is_initial`` is true.

    Examples
    --------
    >>> import chainrule as cr
    >>> class Halving(cr.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = cr.optim.SGD([cr.ones(1, requires_grad=True)], lr=0.5)
    >>> scheduler = Halving(optimizer)
    >>> for _ in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    _is_initial = False
    _UNSAVED: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = _checked(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming "
                    "a scheduler with last_epoch >= 0: load the optimizer's state first, or let "
                    "last_epoch be -1 to start"
                )
        self.base_lrs: Rates = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser, as a dict."""
        return {name: value for name, value in vars(self).items() if name not in self._UNSAVED}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load what `state_dict` returned, here or in PyTorch."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> Rates:
        """Return the rates that the last step has set, one for each group."""
        return self._last_lr

    def get_lr(self) -> Rates:
        """Return the rates of the present step; a subclass implements it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no get_lr(), which returns the rate of each group"
        )

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step, or to step `epoch`, and set its rates."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`, which skips the "
                "first value of the schedule: call optimizer.step() first",
                UserWarning,
                stacklevel=user_stack_level(),
            )
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        closed_form = getattr(self, "_get_closed_form_lr", None)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._set(self.get_lr() if epoch is None or closed_form is None else closed_form())

    def _set(self, rates: Rates) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            _assign(group, "lr", rate)
        self._last_lr: Rates = self._rates()

    def _rates(self) -> Rates:
        return [_copied(group["lr"]) for group in self.optimizer.param_groups]


_LRScheduler = LRScheduler  # PyTorch's former name, from which scripts derive classes


class _Factors(LRScheduler):
    """Base of schedules that multiply the rate of each group by a factor in each step."""

    def _factor(self) -> float:
        """Return the factor of this step."""
        raise NotImplementedError

    def get_lr(self) -> Rates:
        """Return the rates of the present step."""
        factor = self._factor()
        return [rate * factor for rate in self._rates()] if factor != 1 else self._rates()


# --- functions of the step ------------------------------------------------------------------------


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
        self.lr_lambdas: list[Any] = _for_groups("lr_lambda", _checked(optimizer), lr_lambda)
        for each in self.lr_lambdas:
            if not callable(each):
                raise TypeError(f"lr_lambda should be a function, but got {type(each).__name__}")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimiser and functions; objects are kept by attributes."""
        return {**super().state_dict(), "lr_lambdas": [_attributes(f) for f in self.lr_lambdas]}

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


class StepLR(_Factors):
    """The rate times `gamma` after every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self.last_epoch == 0 or self.last_epoch % self.step_size else self.gamma

    def _get_closed_form_lr(self) -> Rates:
        return [rate * self.gamma ** (self.last_epoch // self.step_size) for rate in self.base_lrs]


class MultiStepLR(_Factors):
    """The rate times `gamma` at each of the steps `milestones`."""

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
        times = self.milestones[self.last_epoch] if self.last_epoch in self.milestones else 0
        return self.gamma**times if times else 1

    def _get_closed_form_lr(self) -> Rates:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [rate * self.gamma**passed for rate in self.base_lrs]


class ConstantLR(_Factors):
    """The rate times `factor` for the first `total_iters` steps."""

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


class LinearLR(_Factors):
    """The rate times a factor from `start_factor` to `end_factor`, linear in `total_iters` steps."""

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
                "Ending multiplicative factor expected to be between 0 and 1, but got "
                f"{end_factor}"
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


class ExponentialLR(_Factors):
    """The rate times `gamma` in every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor(self) -> float:
        return 1 if self._is_initial else self.gamma

    def _get_closed_form_lr(self) -> Rates:
        return [rate * self.gamma**self.last_epoch for rate in self.base_lrs]


class PolynomialLR(_Factors):
    """The rate times (1 - step / total_iters)^power, and 0 from step `total_iters`."""

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
    .. [1] I. Loshchilov, F. Hutter, SGDR: Stochastic gradient descent with warm restarts, ICLR 2017.
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


# --- cycles of rate and momentum ------------------------------------------------------------------


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
        self.base_momentums = _for_groups("base_momentum", optimizer, base)
        self.max_momentums = _for_groups("max_momentum", optimizer, highest)
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
        base_lrs = _for_groups("base_lr", _checked(optimizer), base_lr)
        self.max_lrs = _for_groups("max_lr", optimizer, max_lr)
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
                _assign(group, "lr", rate)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            return float(self._scale_fn_custom(x))
        if self.mode == "exp_range":
            return self.gamma**x
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
        return {**super().state_dict(), "_scale_fn_custom": _attributes(self._scale_fn_custom)}

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
    >>> scheduler.get_last_lr()
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
        phases = [(top, "initial_lr", "max_lr"), *(back if three_phase else [(0, "max_lr", "min_lr")])]
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
        highest = _for_groups("max_lr", _checked(optimizer), max_lr)
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
    given = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": steps}
    product = 1
    for name, value in given.items():
        if value is None:
            raise ArgumentError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(value, int) or value <= 0:
            raise ArgumentError(f"Expected positive integer {name}, but got {value}")
        product *= value
    return product


# --- schedules by a metric, and combinations ------------------------------------------------------


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
            raise ArgumentError(f"threshold mode {threshold_mode} is unknown! Expected 'rel' or 'abs'")
        self.optimizer = _checked(optimizer)
        self.factor, self.patience, self.cooldown, self.eps = factor, patience, cooldown, eps
        self.default_min_lr = None if isinstance(min_lr, list | tuple) else min_lr
        self.min_lrs = _for_groups("min_lr", optimizer, min_lr)
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

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
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
                _assign(group, "lr", new)


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
        super().__init__(_checked(optimizer), schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            _assign(group, "lr", group["initial_lr"])
        for scheduler in _leaves(schedulers):  # each has made its first step
            scheduler.last_epoch -= 1
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
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

    def step(self) -> None:  # type: ignore[override]
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


# --- options of groups ----------------------------------------------------------------------------


def _checked(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def _for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return an argument for each group; raise if it is a list of another length."""
    groups = optimizer.param_groups
    if not isinstance(value, list | tuple):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ArgumentError(
            f"{name} must have the same length as optimizer.param_groups: got {len(value)} values, "
            f"expected {len(groups)}"
        )
    return list(value)


def _copied(rate: Any) -> Any:
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def _assign(group: Group, name: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor is filled."""
    if isinstance(group[name], Tensor):
        with no_grad():
            group[name].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def _attributes(function: Any) -> dict[str, Any] | None:
    """Return the attributes of a callable object, for a state dict; None for a function."""
    if function is None or isinstance(function, types.FunctionType):
        return None
    with contextlib.suppress(TypeError):
        return dict(vars(function))
    return None
