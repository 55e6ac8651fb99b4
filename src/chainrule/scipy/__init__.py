"""SciPy's namespaces over tensors: `special`. SciPy is imported when a function is called."""

from chainrule.scipy import special

__all__ = ["special"]
