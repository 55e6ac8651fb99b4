"""SciPy's special functions over tensors, under SciPy's names: every ufunc of `scipy.special`.

For arrays and numbers a function is SciPy's own; for tensors it is recorded. Which argument of
which function differentiates is in `docs/special.md`.

>>> import chainrule as cr
>>> x = cr.tensor([1.0, 2.0], requires_grad=True)
>>> cr.scipy.special.jv(0.5, x).sum().backward()
>>> x.grad
tensor([ 0.0954, -0.3630])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import special as tensor_functions
from chainrule.arguments import cast, tensor_of
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.tensor import Tensor
from chainrule.backend import numpy_xp
from chainrule.numpy.array_class import array_of_list
from chainrule.operation import SCIPY_UFUNCS
from chainrule.ops.arithmetic import add, multiply, subtract
from chainrule.ops.comparison import isfinite
from chainrule.ops.complex import imag, real
from chainrule.ops.elementary import abs, exp, log, sign
from chainrule.ops.reductions import amax, sum
from chainrule.ops.reshape import squeeze
from chainrule.ops.where import where
from chainrule.scipy.dispatch import call_ours, has_tensors, namespace_of
from chainrule.scipy.special import (
    bessel,
    complex_arguments,  # noqa: F401 - it declares functions
    distributions,
    elliptic,
    gamma_and_integrals,
    legendre,
    noncentral,
    orthogonal,
    waves,
)

FAMILIES = (bessel, distributions, elliptic, gamma_and_integrals, noncentral, orthogonal, waves)
"""The modules that declare ufuncs."""


def _find(name: str) -> Any:
    """Return the function of a name; one that takes no tensors is SciPy's own."""
    scipys = getattr(numpy_xp.special, name)
    is_ufunc = isinstance(scipys, np.ufunc)
    ours = SCIPY_UFUNCS.get(scipys.__name__) if is_ufunc else _ADAPTED.get(name)
    return scipys if ours is None else _of_either(name, ours, scipys)


__getattr__, __dir__ = namespace_of("scipy.special", _find)


def _of_either(name: str, ours: Callable[..., Any], scipys: Callable[..., Any]) -> Any:
    """Return the function that computes with tensors by `ours`, and with all else by SciPy's."""

    are_arrays = isinstance(scipys, np.ufunc)  # each operand, of which lists are some

    def function(*operands: Any, **settings: Any) -> Any:
        for x in (*operands, *settings.values()):
            if isinstance(x, Tensor):
                if are_arrays:
                    operands = tuple([_of_list(x) for x in operands])
                return ours(*operands, **settings)
        if has_tensors(operands, settings):  # in lists, or symbols of a compiled function
            operands = tuple([_of_list(x) if are_arrays or has_tensors(x) else x for x in operands])
            return call_ours(ours, operands, settings)
        return scipys(*operands, **settings)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = ours.__doc__
    return function


def _of_list(operand: Any) -> Any:
    return array_of_list(operand) if isinstance(operand, list | tuple) else operand


# --- functions that are no ufuncs, with SciPy's arguments -----------------------------------------


def _reduced_axes(a: Tensor, axis: Any) -> Any:
    return tuple(range(a.ndim)) if axis is None else axis


def _logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Return log Σ b exp(a) along axes, all of them by default; with its sign, log |Σ b exp(a)|."""
    a = tensor_of(a)
    axes = _reduced_axes(a, axis)
    if b is None:
        found = tensor_functions.logsumexp(a, dim=axes, keepdim=keepdims)
        if return_sign and found.is_complex():
            return real(found), exp(multiply(imag(found), 1j))
        return (found, add(multiply(found.detach(), 0.0), 1.0)) if return_sign else found
    largest = amax(real(a.detach()), dim=axes, keepdim=True)
    largest = where(isfinite(largest), largest, 0.0)
    total = sum(multiply(array_of_list(b), exp(subtract(a, largest))), dim=axes, keepdim=True)
    result = add(log(abs(total) if return_sign else total), largest)
    direction = total / abs(total) if total.is_complex() else sign(total.detach())
    results = [result, direction] if return_sign else [result]
    results = results if keepdims else [squeeze(part, axes) for part in results]
    return tuple(results) if return_sign else results[0]


def _softmax(x: Tensor, axis: Any = None) -> Tensor:
    """Return exp x divided by its sum along axes: all of them by default."""
    return exp(_log_softmax(x, axis))


def _log_softmax(x: Tensor, axis: Any = None) -> Tensor:
    """Return the logarithm of the softmax along axes: all of them by default."""
    if isinstance(axis, int):
        return tensor_functions.log_softmax(x, dim=axis)
    axes = _reduced_axes(x, axis)
    return subtract(x, tensor_functions.logsumexp(x, dim=axes, keepdim=True))


def _zeta(x: Any, q: Any = None) -> Tensor:
    """Return the zeta function: Riemann's, or Hurwitz's of q."""
    return tensor_functions.zeta(x, 1.0 if q is None else q)


def _polygamma(n: Any, x: Any) -> Tensor:
    """Return derivatives of the digamma function, of an order or of those of an array."""
    orders = np.asarray(n)
    if not orders.ndim:
        return tensor_functions.polygamma(int(n), tensor_of(x))
    parts = [where(orders == k, _polygamma(k, x), 0.0) for k in np.unique(orders)]
    return functools.reduce(add, parts)


def _lambertw(z: Any, k: Any = 0, tol: float = 1e-8) -> Tensor:
    """Return a branch of the inverse of w exp(w), which is complex, in double precision."""
    z = cast(tensor_of(z), np.dtype(np.complex128))
    found: Tensor = SCIPY_UFUNCS["lambertw"](z, k, tol)
    return found


def _spherical(name: str) -> Callable[..., Any]:
    """Return a spherical Bessel function, or its derivative."""

    def function(n: Any, z: Any, derivative: bool = False) -> Tensor:
        if derivative:
            z = tensor_of(z)
            n = cast(tensor_of(n), np.finfo(z.dtype).dtype)
            found: Tensor = bessel.SPHERICAL[name](TENSOR_XP, n, z)
        else:
            found = SCIPY_UFUNCS[name](n, z)
        return found

    function.__doc__ = SCIPY_UFUNCS[name].__doc__
    return function


_ADAPTED: dict[str, Callable[..., Any]] = {
    **legendre.FUNCTIONS,
    **{name: _spherical(name) for name in bessel.SPHERICAL},
    "lambertw": _lambertw,
    "log_softmax": _log_softmax,
    "logsumexp": _logsumexp,
    "multigammaln": tensor_functions.multigammaln,
    "polygamma": _polygamma,
    "sinc": tensor_functions.sinc,
    "softmax": _softmax,
    "zeta": _zeta,
}
"""Functions of tensors for functions of SciPy's that are no ufuncs."""
