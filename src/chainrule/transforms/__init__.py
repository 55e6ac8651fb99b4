"""Function transforms: gradients, Jacobians, products with them, and vectorisation."""

from chainrule.transforms.gradients import grad, hvp, value_and_grad
from chainrule.transforms.jacobians import hessian, jacobian
from chainrule.transforms.products import jvp, linearize, vjp
from chainrule.transforms.vmap import vmap

__all__ = [
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
    "vmap",
]
