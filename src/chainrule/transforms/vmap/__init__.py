"""Vectorisation of functions over a batch axis."""

from chainrule.transforms.vmap.vmap import vmap

__all__ = ["vmap"]
