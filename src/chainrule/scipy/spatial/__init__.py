"""`scipy.spatial` over tensors: distances."""

from chainrule.scipy.spatial import distance

__all__ = ["distance"]
