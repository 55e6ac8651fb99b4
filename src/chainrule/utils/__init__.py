"""What goes with training, in PyTorch's place for it: `checkpoint`."""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing
from chainrule.utils import checkpoint as checkpoint

__all__ = ["checkpoint"]


if not TYPE_CHECKING:  # which would take every name for one of these

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
