"""Functions mapped over a dimension, all of its entries at once."""

from chainrule.transforms.lanes.vmap import vmap

__all__ = ["vmap"]
