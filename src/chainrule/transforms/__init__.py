"""Function transforms: gradients, Jacobians, products with them, series, and vectorisation."""

from chainrule.transforms.checkpointing import checkpoint
from chainrule.transforms.curvature import ggnvp, hvp, laplacian, vhp
from chainrule.transforms.gradients import grad, value_and_grad
from chainrule.transforms.jacobians import hessian, jacobian
from chainrule.transforms.products import jvp, linearize, stop_gradient, vjp
from chainrule.transforms.vmap import vmap

__all__ = [
    "checkpoint",
    "ggnvp",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "laplacian",
    "linearize",
    "stop_gradient",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]
