"""Solutions of ordinary differential equations: those of `chainrule.scipy.integrate`."""

from chainrule.scipy.integrate.initial_value import odeint as odeint

__all__ = ["odeint"]
