"""The base of schedules, and access to the options of parameter groups."""

from __future__ import annotations

import contextlib
import types
import warnings
from typing import Any

from chainrule.autograd.location import user_stack_level
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.optim.optimizer import Group, Optimizer

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
        self.optimizer = checked_optimizer(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming "
                    "a scheduler with last_epoch >= 0: load the optimizer's state first, or let "
                    "last_epoch be -1 to start"
                )
        self.base_lrs: Rates = [copied(group["initial_lr"]) for group in optimizer.param_groups]
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
        is_second = self._step_count == 1 and self.last_epoch >= 0  # -1: started by SequentialLR
        if is_second and not self.optimizer._opt_called:
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
            assign(group, "lr", rate)
        self._last_lr: Rates = self._rates()

    def _rates(self) -> Rates:
        return [copied(group["lr"]) for group in self.optimizer.param_groups]


_LRScheduler = LRScheduler  # PyTorch's former name, from which scripts derive classes


# --- options of groups ----------------------------------------------------------------------------


def checked_optimizer(optimizer: Any) -> Optimizer:
    if not isinstance(optimizer, Optimizer):
        raise ArgumentTypeError(
            f"{type(optimizer).__name__} is not an Optimizer: a scheduler takes the optimizer "
            "whose rate it sets, as in StepLR(optimizer, step_size)"
        )
    return optimizer


def for_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
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


def copied(rate: Any) -> Any:
    return rate.detach().clone() if isinstance(rate, Tensor) else rate


def assign(group: Group, name: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor is filled."""
    if isinstance(group[name], Tensor):
        with no_grad():
            group[name].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def attributes_of(function: Any) -> dict[str, Any] | None:
    """Return the attributes of a callable object, for a state dict; None for a function."""
    if function is None or isinstance(function, types.FunctionType):
        return None
    with contextlib.suppress(TypeError):
        return dict(vars(function))
    return None
