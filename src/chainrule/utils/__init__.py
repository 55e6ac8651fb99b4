"""Utilities for training, under the names of `torch.utils`: `checkpoint`."""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing
from chainrule.utils import checkpoint as checkpoint

__all__ = ["checkpoint"]


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
