"""Neural networks: functions in `functional`, the layer `Linear`, and `utils`.

A parameter is a leaf that requires grad.
"""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing
from chainrule.nn import functional, utils
from chainrule.nn.linear import Linear

__all__ = ["Linear", "functional", "utils"]


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name, functional.__all__)
