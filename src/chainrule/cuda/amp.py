"""`autocast` and `GradScaler` for the device "cuda", as in PyTorch's older `torch.cuda.amp`."""

from typing import Any

from chainrule import amp

__all__ = ["autocast", "GradScaler"]


class autocast(amp.autocast):
    """`chainrule.amp.autocast` for the device "cuda"."""

    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`chainrule.amp.GradScaler` for the device "cuda"."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
