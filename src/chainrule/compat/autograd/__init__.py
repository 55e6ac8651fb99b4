"""HIPS autograd's namespace: its programs run with other imports alone.

>>> import chainrule.compat.autograd.numpy as np
>>> from chainrule.compat.autograd import elementwise_grad
>>> elementwise_grad(np.tanh)(np.array([0.0, 1.0])).round(4)
array([1.  , 0.42])
"""

from chainrule.compat.autograd import numpy as numpy
from chainrule.compat.autograd.builtins import dict, isinstance, list, tuple, type
from chainrule.compat.autograd.differential_operators import (
    deriv,
    egrad,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    jacobian_vector_product,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from chainrule.compat.autograd.tracer import primitive
from chainrule.transforms import checkpoint

__all__ = [
    "checkpoint",
    "deriv",
    "dict",
    "egrad",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "isinstance",
    "jacobian",
    "jacobian_vector_product",
    "list",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_vjp",
    "multigrad_dict",
    "primitive",
    "tensor_jacobian_product",
    "tuple",
    "type",
    "value_and_grad",
    "vector_jacobian_product",
]
