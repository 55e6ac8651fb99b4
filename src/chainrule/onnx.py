"""`torch.onnx`, which scripts import: there is no such export."""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Return False."""
    return False


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
