"""Functions mapped over a dimension, all of its entries at once."""

from chainrule.transforms.vmap.vmap import vmap

__all__ = ["vmap"]
