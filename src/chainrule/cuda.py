"""Whether there is a GPU, in PyTorch's place for it."""

from typing import TYPE_CHECKING, Any

from chainrule.backend import cuda_is_available as is_available
from chainrule.missing_names import missing

__all__ = ["is_available"]


if not TYPE_CHECKING:  # which would take every name for one of these

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
