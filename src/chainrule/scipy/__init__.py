"""SciPy's namespaces over tensors. SciPy is imported when a function is called."""

from chainrule.scipy import integrate, spatial, special, stats

__all__ = ["integrate", "spatial", "special", "stats"]
