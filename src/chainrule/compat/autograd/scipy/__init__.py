"""SciPy's functions that HIPS autograd differentiates (`autograd.scipy`)."""

from chainrule.compat.autograd.scipy import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
