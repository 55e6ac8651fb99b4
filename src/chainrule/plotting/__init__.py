"""Plots with matplotlib: learning curves, gradients and activations of networks, Jacobians.

Every function draws into `ax`, or into a new figure, and returns the axes. matplotlib is imported
at the first plot.
"""

from chainrule.plotting.curves import LiveCurve, learning_curve, sparkline
from chainrule.plotting.derivative_plots import jacobian_spy, linear_approximation, taylor_plot
from chainrule.plotting.networks import activation_histograms, gradient_flow, gradient_histograms
from chainrule.plotting.pictures import confusion_matrix, digit_grid
from chainrule.plotting.style import BLUE, GREEN, GREY, RED

__all__ = [
    "learning_curve",
    "LiveCurve",
    "sparkline",
    "gradient_flow",
    "gradient_histograms",
    "activation_histograms",
    "jacobian_spy",
    "taylor_plot",
    "linear_approximation",
    "digit_grid",
    "confusion_matrix",
    "BLUE",
    "RED",
    "GREEN",
    "GREY",
]
