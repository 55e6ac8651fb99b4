"""`torch.distributed` for scripts that ask whether they run in several processes: they don't."""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing

__all__ = ["is_available", "is_initialized"]


def is_available() -> bool:
    """Return False: a process computes alone."""
    return False


def is_initialized() -> bool:
    """Return False: a process computes alone."""
    return False


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
