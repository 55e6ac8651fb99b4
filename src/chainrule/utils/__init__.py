"""What goes with training, in PyTorch's place for it: `checkpoint`."""

from chainrule.utils import checkpoint as checkpoint

__all__ = ["checkpoint"]
