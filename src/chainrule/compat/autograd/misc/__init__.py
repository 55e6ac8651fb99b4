"""Flat vectors of parameters, optimisers and fixed points."""

from chainrule.compat.autograd.misc.flatten import flatten
from chainrule.compat.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]
