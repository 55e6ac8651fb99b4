"""SciPy's namespaces over tensors. SciPy is imported when a function is called."""

from chainrule.scipy import special, stats

__all__ = ["special", "stats"]
