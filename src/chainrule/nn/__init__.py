"""What networks are made of: functions in `functional`, and the layer `Linear`.

A parameter is a leaf that requires grad, and nothing more.
"""

from chainrule.nn import functional
from chainrule.nn.linear import Linear

__all__ = ["Linear", "functional"]
