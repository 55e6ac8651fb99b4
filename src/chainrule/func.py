"""Function transforms under the names of `torch.func`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from chainrule.transforms import grad, hessian, jacobian, jvp, linearize, vjp, vmap
from chainrule.transforms import value_and_grad as _value_and_grad
from chainrule.transforms.argnums import Argnums

__all__ = [
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
    "vmap",
]


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that gives the gradient of `func` and its value, in this order.

    Parameters
    ----------
    func, argnums, has_aux
        As for `chainrule.value_and_grad`.

    Returns
    -------
    callable
        Takes the arguments of `func`, returns ``(gradient, value)``, or ``(gradient, (value,
        aux))``.

    Examples
    --------
    >>> grad_and_value(lambda x: x**2)(3.0)
    (6.0, 9.0)
    """
    value_then_grad = _value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def swapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = value_then_grad(*args, **kwargs)
        return gradient, value

    return swapped


def jacrev(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that gives the Jacobian of `func`, by reverse mode.

    `chainrule.jacobian` chooses the mode itself; see there for the arguments and the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> jacrev(lambda x: x**2)(cr.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return jacobian(func, argnums, has_aux, mode="reverse")


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that gives the Jacobian of `func`, by forward mode.

    `chainrule.jacobian` chooses the mode itself; see there for the arguments and the result.

    Examples
    --------
    >>> import chainrule as cr
    >>> jacfwd(lambda x: cr.stack([x, x**2]))(3.0)
    array([1., 6.])
    """
    return jacobian(func, argnums, has_aux, mode="forward")
