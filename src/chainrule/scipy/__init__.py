"""SciPy's namespaces over tensors. SciPy is imported when a function is called."""

from chainrule.scipy import spatial, special, stats

__all__ = ["spatial", "special", "stats"]
