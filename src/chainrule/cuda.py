"""Availability of a GPU: `cuda.is_available`, as in PyTorch."""

from typing import TYPE_CHECKING, Any

from chainrule.backend import cuda_is_available as is_available
from chainrule.missing_names import missing

__all__ = ["is_available"]


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
