"""SciPy's namespaces over tensors. SciPy is imported when a function is called."""

from chainrule.scipy import fft, linalg, special

__all__ = ["fft", "linalg", "special"]
