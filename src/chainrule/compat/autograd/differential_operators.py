"""Operators that return derivatives of functions, with the arguments of HIPS autograd's."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd.core import as_arrays, with_arrays
from chainrule.compat.autograd.core import make_jvp as _make_jvp
from chainrule.compat.autograd.core import make_vjp as _make_vjp
from chainrule.compat.autograd.extend import vspace
from chainrule.compat.autograd.tracer import conjugate, isbox
from chainrule.compat.autograd.wrap_util import get_name, unary_to_nary
from chainrule.errors import ArgumentTypeError
from chainrule.transforms import jacobian as _jacobian

__all__ = [
    "deriv",
    "egrad",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "jacobian",
    "jacobian_vector_product",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]

make_vjp = unary_to_nary(_make_vjp)
make_jvp = unary_to_nary(_make_jvp)


def _value_and_grad(title: str, fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    vjp, value = _make_vjp(fun, x)
    space = vspace(value)
    if space.size != 1:
        raise ArgumentTypeError(
            f"{title} only applies to real scalar-output functions, but {get_name(fun)} returned "
            f"{space}. Try jacobian, elementwise_grad or holomorphic_grad."
        )
    return value, vjp(space.ones())


@unary_to_nary
def grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives the gradient of `fun`.

    Parameters
    ----------
    fun : callable
        Returns one real number.
    argnum : int, or tuple or list of int, default 0
        The positions of the arguments to differentiate by; for several, gradients are a tuple.

    Returns
    -------
    callable
        Takes the arguments of `fun`, returns the gradient: an array for an array, a NumPy number
        for a number, a dict for a dict. Of complex arguments it is the complex conjugate of what
        `chainrule.grad` and PyTorch return.

    Raises
    ------
    TypeError
        If the result of `fun` is not one real number.

    Examples
    --------
    >>> import chainrule.compat.autograd.numpy as np
    >>> from chainrule.compat.autograd import grad
    >>> grad(lambda x, y: np.sin(x) * y, argnum=(0, 1))(0.0, 2.0)
    (np.float64(2.0), np.float64(0.0))
    """
    return _value_and_grad("Grad", fun, x)[1]


@unary_to_nary
def value_and_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives the value of `fun` and its gradient, as `grad` does."""
    return _value_and_grad("value_and_grad", fun, x)


@unary_to_nary
def elementwise_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives the sums of the columns of the Jacobian of `fun`.

    For a function of the elements, these are its derivatives at all of them.
    """
    vjp, value = _make_vjp(fun, x)
    if vspace(value).iscomplex:
        raise ArgumentTypeError("Elementwise_grad only applies to real-output functions.")
    return vjp(vspace(value).ones())


egrad = elementwise_grad


@unary_to_nary
def deriv(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives the derivative of `fun` along ones, by forward mode."""
    return _make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives the Jacobian, of the shape of output and argument joined."""

    def checked(x: Any) -> Any:
        result = with_arrays(fun)(x)
        return result if isbox(result) else np.sum(x) * 0 + result

    return conjugate(_jacobian(checked, mode="reverse")(as_arrays(x)))


@unary_to_nary
def holomorphic_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives the complex derivative of a holomorphic function."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", UserWarning, stacklevel=3)
    return grad(lambda x: np.real(fun(x)))(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Return the function that gives the gradient by the argument of a name."""
    found: Callable[..., Any] = grad(fun, list(inspect.signature(fun).parameters).index(argname))
    return found


@unary_to_nary
def hessian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives the Hessian: the Jacobian of the Jacobian."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives (vector ↦ Hessian times vector, gradient)."""
    return _make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return the function of ``(*args, tensor)`` that gives the Hessian times a tensor."""
    gradient = grad(fun, argnum)

    def product(*args: Any, **kwargs: Any) -> Any:
        *rest, tensor = args
        return np.tensordot(gradient(*rest, **kwargs), tensor, np.ndim(tensor))

    found: Callable[..., Any] = grad(product, argnum)
    return found


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return the function of ``(*args, tensor)`` that gives a tensor times the Jacobian."""

    def product(*args: Any, **kwargs: Any) -> Any:
        *rest, tensor = args
        return np.tensordot(tensor, fun(*rest, **kwargs), axes=np.ndim(tensor))

    found: Callable[..., Any] = jacobian(product, argnum)
    return found


vector_jacobian_product = tensor_jacobian_product


def jacobian_vector_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return the function of ``(*args, vector)`` that gives the Jacobian times a vector."""

    def product(*args: Any, **kwargs: Any) -> Any:
        *rest, vector = args
        return make_jvp(fun, argnum)(*rest, **kwargs)(vector)[1]

    return product


@unary_to_nary
def make_jvp_reversemode(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives Jacobian times vector, by reverse mode alone."""
    vjp, value = _make_vjp(fun, x)
    return _make_vjp(vjp, vspace(value).zeros())[0]


def _half_square(x: Any) -> Any:
    return np.sum(x**2, axis=-1) / 2.0


def make_ggnvp(
    f: Callable[..., Any], g: Callable[[Any], Any] = _half_square, f_argnum: int = 0
) -> Callable[..., Any]:
    """Return the function that gives the Gauss-Newton matrix of ``g(f(x))`` times a vector.

    That is Jᵀ H J v with the Jacobian J of `f` and the Hessian H of `g`.
    """

    @unary_to_nary
    def ggnvp(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
        vjp, value = _make_vjp(f, x)
        hvp, _ = _make_vjp(grad(g), value)
        return lambda v: vjp(hvp(_make_jvp(f, x)(v)[1]))

    found: Callable[..., Any] = ggnvp(f, f_argnum)
    return found


@unary_to_nary
def grad_and_aux(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that gives the gradient of the first output, and the second output."""
    vjp, (value, aux) = _make_vjp(fun, x)
    return vjp((vspace(value).ones(), vspace(aux).zeros())), aux


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that gives the gradients by all arguments, as a dict by name."""
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(values: Any) -> Any:
            bound.arguments.update(values)
            return fun(*bound.args, **bound.kwargs)

        return grad(of_dict)(dict(bound.arguments))

    return gradients
