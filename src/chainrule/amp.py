"""Mixed precision under the names of `torch.amp`: `autocast` and `GradScaler`."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.backend import cuda_is_available
from chainrule.errors import ArgumentError
from chainrule.optim.optimizer import Optimizer

__all__ = [
    "autocast",
    "clear_autocast_cache",
    "custom_bwd",
    "custom_fwd",
    "GradScaler",
    "is_autocast_available",
    "is_autocast_enabled",
]


class autocast(contextlib.ContextDecorator):
    """Keep the precision of operations: a block for scripts that lower it in PyTorch.

    Parameters
    ----------
    device_type : str
        "cpu" or "cuda".
    dtype, cache_enabled
        As in PyTorch, without effect.
    enabled : bool, default True
        Warn that operations compute in the dtype of their arguments, here as elsewhere. Convert
        with `.half()` what shall be in lower precision.

    Examples
    --------
    >>> import chainrule as cr
    >>> with cr.amp.autocast("cpu", enabled=False):
    ...     cr.ones(2).dtype
    dtype('float32')
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not is_autocast_available(device_type):
            raise ArgumentError(f"autocast: expected 'cpu' or 'cuda', got {device_type!r}")
        if enabled and (device_type != "cuda" or cuda_is_available()):
            warnings.warn(
                "autocast: operations compute in the dtype of their arguments, here as elsewhere: "
                "convert with .half() what shall be in lower precision",
                UserWarning,
                stacklevel=2,
            )

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *details: object) -> None:
        pass


class GradScaler:
    """Scale losses, so that gradients in float16 are not rounded to zero.

    Parameters
    ----------
    device : str, default "cuda"
        Without a GPU, a scaler for "cuda" is disabled.
    init_scale : float, default 65536
        The first factor.
    growth_factor, backoff_factor : float
        What the factor is multiplied by after `growth_interval` steps with finite gradients, and
        after a step with others, which is skipped.
    growth_interval : int, default 2000
        Number of steps.
    enabled : bool, default True
        If False, losses stay as they are, and `step` is that of the optimizer.

    Notes
    -----
    Micikevicius et al. (2018), Mixed precision training, section 3.2.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([1.0], requires_grad=True)
    >>> optimizer = cr.optim.SGD([w], lr=0.5)
    >>> scaler = cr.amp.GradScaler("cpu")
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> w
    tensor([0.], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._enabled = enabled and (device != "cuda" or cuda_is_available())
        self._scale = init_scale
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._is_finite: dict[int, bool] = {}  # of the optimizers that were unscaled, by their id

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or a tree of tensors, times the factor."""
        if not self._enabled:
            return outputs
        return pytree.map_leaves(outputs, lambda loss: loss * self._scale)

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer by the factor, before they are clipped.

        Raises
        ------
        ArgumentError
            If it is called twice before `update`.
        """
        if not self._enabled:
            return
        if id(optimizer) in self._is_finite:
            raise ArgumentError(
                "unscale_() has already been called on this optimizer since the last update()"
            )
        grads = [
            parameter.grad
            for group in optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        with no_grad():
            for grad in grads:
                grad.mul_(1 / self._scale)
        self._is_finite[id(optimizer)] = all(bool(grad.isfinite().all()) for grad in grads)

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Take a step of the optimizer with unscaled gradients, if all of them are finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise ArgumentError("step: a closure is not supported with a GradScaler")
        if id(optimizer) not in self._is_finite:
            self.unscale_(optimizer)
        return optimizer.step(*args, **kwargs) if self._is_finite[id(optimizer)] else None

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the factor to what the last steps met, or set it."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._is_finite:
            raise ArgumentError("update: no step was taken since the last update()")
        elif not all(self._is_finite.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._is_finite = {}

    def get_scale(self) -> float:
        """Return the factor: 1 if this scaler is disabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Return whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the state, under PyTorch's keys; nothing if this scaler is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state of `state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise ArgumentError(
                "load_state_dict: the state is empty: it was saved by a disabled GradScaler"
            )
        for key in self.state_dict():
            setattr(self, f"_{key.removeprefix('_')}", state_dict[key])


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` takes a type of device."""
    return device_type in ("cpu", "cuda")


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return False: no block changes the precision of operations."""
    return False


def clear_autocast_cache() -> None:
    """Do nothing: there is no cache of converted parameters."""


def custom_fwd(
    fwd: Any = None, *, device_type: str = "cuda", cast_inputs: np.dtype[Any] | None = None
) -> Any:
    """Return the forward of a custom function, or a decorator that does, without effect.

    In PyTorch, its inputs are converted to `cast_inputs` within `autocast`, which converts
    nothing here.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.amp.custom_fwd(device_type="cpu")
    ... def forward(ctx, x):
    ...     return x * x
    """
    return (lambda function: function) if fwd is None else fwd


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    """Return the backward of a custom function, or a decorator that does, as `custom_fwd`."""
    return custom_fwd(bwd, device_type=device_type)
