"""Functions of square matrices.

Derivatives along a direction E are those of N. Higham, "Functions of Matrices", SIAM 2008, ch. 3,
5, 6, 10 and 11. The transpose of the derivative at X is that at Xᵀ, so one rule serves both modes.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.backend import check_known
from chainrule.errors import ArgumentError, MissingRuleError, ShapeError
from chainrule.kernels.scipy_linalg import ComplexResultError
from chainrule.linalg import inv, matrix_power
from chainrule.linalg import solve as solve_system
from chainrule.ops import broadcast_to, imag, multiply, real, reshape
from chainrule.primitives.matrices import transpose
from chainrule.primitives.primitive import Primitive, applied, general
from chainrule.primitives.solve import solve
from chainrule.scipy.linalg.arguments import TABLE, operands, square
from chainrule.scipy.linalg.eigenvalues import eig
from chainrule.scipy.linalg.equations import sylvester

Array = Any


def _double(xp: Any, x: Array, e: Array) -> Array:
    upper = xp.concat([x, e], axis=x.ndim - 1)
    lower = xp.concat([xp.zeros_like(x), x], axis=x.ndim - 1)
    return xp.concat([upper, lower], axis=x.ndim - 2)


# --- the exponential: A. Al-Mohy, N. Higham, SIAM J. Matrix Anal. Appl. 30(4), 2009 ---------------


def _second_derivative(xp: Any, x: Array, e: Array, t: Array) -> Array:
    """Return the derivative of the derivative along `e`, along `t`."""
    zero = xp.zeros_like(x)
    both = xp.concat([xp.concat([t, zero], axis=-1), xp.concat([zero, t], axis=-1)], axis=-2)
    n = x.shape[-1]
    return applied(expm_derivative, xp)(_double(xp, x, e), both)[..., :n, n:]


def _expm_derivative_vjp(
    xp: Any, g: Array, x: Array, e: Array, needs: tuple[bool, ...]
) -> tuple[Array | None, Array | None]:
    back = transpose(xp, x)
    return (
        _second_derivative(xp, back, transpose(xp, e), g) if needs[0] else None,
        applied(expm_derivative, xp)(back, g) if needs[1] else None,
    )


expm_derivative: Primitive = general(
    "scipy_expm_frechet",
    lambda xp, x, e: xp.scipy_linalg(x, e, routine="expm_frechet"),
    vjp=_expm_derivative_vjp,
    jvp=(
        lambda xp, t, x, e: _second_derivative(xp, x, e, t),
        lambda xp, t, x: applied(expm_derivative, xp)(x, t),
    ),
    broadcasts=False,
)

expm_primitive = general(
    "scipy_expm",
    lambda xp, x: xp.scipy_linalg(x, routine="expm"),
    vjp=(lambda xp, g, x: applied(expm_derivative, xp)(transpose(xp, x), g),),
    jvp=(lambda xp, t, x: applied(expm_derivative, xp)(x, t),),
)


@TABLE.function("expm", "rule")
def expm(A: Any) -> Tensor:
    """Return the exponential of matrices."""
    (a,) = square("expm", A, finite=False)
    return expm_primitive.apply(a)


@TABLE.function("expm_frechet", "rule")
def expm_frechet(
    A: Any, E: Any, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """Return the exponential of a matrix, and its derivative along another one."""
    if method not in (None, "SPS", "blockEnlarge"):
        raise ArgumentError(
            f"scipy.linalg.expm_frechet: expected method 'SPS' or 'blockEnlarge', got {method!r}"
        )
    a, e = square("expm_frechet", A, E, finite=check_finite)
    derivative = expm_derivative.apply(a, e)
    if not compute_expm:
        return derivative
    return broadcast_to(expm_primitive.apply(a), derivative.shape), derivative


# --- logarithm, roots, powers, sign ---------------------------------------------------------------


def _matrix_function(name: str, derivative: Callable[..., Array]) -> Primitive:
    """Make the primitive of a function from its derivative, given x, the value and a direction."""

    def vjp(xp: Any, g: Array, x: Array, out: Array) -> Array:
        return derivative(xp, transpose(xp, x), transpose(xp, out), g)

    def jvp(xp: Any, t: Array, x: Array, out: Array) -> Array:
        return derivative(xp, x, out, t)

    return general(
        f"scipy_{name}", lambda xp, x: xp.scipy_linalg(x, routine=name), vjp=(vjp,), jvp=(jvp,)
    )


def _sign_derivative(xp: Any, x: Array, out: Array, e: Array) -> Array:  # Higham, (5.14)
    size = xp.matmul(x, out)
    return applied(sylvester, xp)(size, size, e - xp.matmul(xp.matmul(out, e), out))


sqrtm_primitive = _matrix_function(
    "sqrtm", lambda xp, x, out, e: applied(sylvester, xp)(out, out, e)
)
signm_primitive = _matrix_function("signm", _sign_derivative)

_ROOTS = 6
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def _log_derivative(xp: Any, x: Array, e: Array) -> Array:
    """Return the derivative of the logarithm: ∫ M⁻¹ E M⁻¹ dt from 0 to 1, M = 1 + t (X - 1).

    It is taken of a root, whose derivative a Sylvester equation gives (A. Al-Mohy, N. Higham,
    S. Relton, SIAM J. Sci. Comput. 35(4), 2013): that of order 64, so that eigenvalues from 1e-16
    to 1e16 are within a factor of 2 of 1, and the quadrature is exact to rounding.
    """
    for _ in range(_ROOTS):
        x = applied(sqrtm_primitive, xp)(x)
        e = applied(sylvester, xp)(x, x, e)
    one, inverse, terms = xp.eye(x.shape[-1], dtype=x.dtype), applied(solve, xp), []
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        t = (node + 1) / 2
        inside = x * t + one * (1 - t)
        left = transpose(xp, inverse(inside, e))
        terms.append(transpose(xp, inverse(transpose(xp, inside), left)) * (weight / 2))
    return sum(terms[1:], terms[0]) * 2.0**_ROOTS


logm_primitive = _matrix_function("logm", lambda xp, x, out, e: _log_derivative(xp, x, e))


def _power(xp: Any, x: Array, e: Array, power: float) -> Array:
    """Return the derivative of exp(p log X)."""
    log = applied(logm_primitive, xp)(x)
    return applied(expm_derivative, xp)(log * power, _log_derivative(xp, x, e) * power)


power_primitive: Primitive = general(
    "scipy_fractional_matrix_power",
    lambda xp, x, *, power: xp.scipy_linalg(x, t=power, routine="fractional_matrix_power"),
    vjp=(lambda xp, g, x, *, power: _power(xp, transpose(xp, x), g, power),),
    jvp=(lambda xp, t, x, *, power: _power(xp, x, t, power),),
)


def _real_if_possible(primitive: Primitive, a: Tensor, **settings: Any) -> Tensor:
    """Return a function of a matrix, complex where that of a real matrix is."""
    try:
        return primitive.apply(a, **settings)
    except ComplexResultError:
        if a._array.__class__ is not np.ndarray:
            raise
    wide = np.complex64 if a.dtype == np.float32 else np.complex128
    return primitive.apply(cast(a, wide), **settings)


def _checked(name: str, A: Any, disp: Any) -> Tensor:
    if disp is False:
        raise MissingRuleError(
            f"scipy.linalg.{name}: disp=False asks for an error estimate, which has no derivative: "
            "leave it out"
        )
    return square(name, A, finite=False)[0]


@TABLE.function("logm", "rule")
def logm(A: Any, disp: Any = True) -> Tensor:
    """Return the principal logarithm of matrices."""
    return _real_if_possible(logm_primitive, _checked("logm", A, disp))


@TABLE.function("sqrtm", "equation")
def sqrtm(A: Any, disp: Any = True, blocksize: Any = None) -> Tensor:
    """Return the principal square root of matrices, differentiated through X X = A."""
    return _real_if_possible(sqrtm_primitive, _checked("sqrtm", A, disp))


@TABLE.function("signm", "equation")
def signm(A: Any, disp: Any = True) -> Tensor:
    """Return the matrix sign function, differentiated through X X = 1."""
    return _real_if_possible(signm_primitive, _checked("signm", A, disp))


@TABLE.function("fractional_matrix_power", "rule")
def fractional_matrix_power(A: Any, t: Any) -> Tensor:
    """Return a real power of matrices."""
    if isinstance(t, Tensor):
        raise MissingRuleError(
            "scipy.linalg.fractional_matrix_power has no derivative by the exponent t: write "
            "chainrule.scipy.linalg.expm(t * chainrule.scipy.linalg.logm(A))"
        )
    (a,) = square("fractional_matrix_power", A, finite=False)
    if isinstance(t, Integral) or float(t).is_integer():
        return matrix_power(a, int(t))
    return _real_if_possible(power_primitive, a, power=float(t))


# --- trigonometric and hyperbolic functions, as SciPy composes them -------------------------------


def _waves(name: str, A: Any) -> tuple[Tensor, Tensor]:
    """Return the cosine and the sine."""
    (a,) = square(name, A, finite=False)
    forth = expm_primitive.apply(multiply(a, 1j))
    if not a.is_complex():
        return real(forth), imag(forth)
    back = expm_primitive.apply(multiply(a, -1j))
    return (forth + back) * 0.5, (forth - back) * -0.5j


def _hyperbolic(name: str, A: Any) -> tuple[Tensor, Tensor]:
    (a,) = square(name, A, finite=False)
    forth, back = expm_primitive.apply(a), expm_primitive.apply(-a)
    return (forth + back) * 0.5, (forth - back) * 0.5


@TABLE.function("cosm", "composite")
def cosm(A: Any) -> Tensor:
    """Return the cosine of matrices."""
    return _waves("cosm", A)[0]


@TABLE.function("sinm", "composite")
def sinm(A: Any) -> Tensor:
    """Return the sine of matrices."""
    return _waves("sinm", A)[1]


@TABLE.function("tanm", "composite")
def tanm(A: Any) -> Tensor:
    """Return the tangent of matrices."""
    return solve_system(*_waves("tanm", A))


@TABLE.function("coshm", "composite")
def coshm(A: Any) -> Tensor:
    """Return the hyperbolic cosine of matrices."""
    return _hyperbolic("coshm", A)[0]


@TABLE.function("sinhm", "composite")
def sinhm(A: Any) -> Tensor:
    """Return the hyperbolic sine of matrices."""
    return _hyperbolic("sinhm", A)[1]


@TABLE.function("tanhm", "composite")
def tanhm(A: Any) -> Tensor:
    """Return the hyperbolic tangent of matrices."""
    return solve_system(*_hyperbolic("tanhm", A))


# --- any function ---------------------------------------------------------------------------------


@TABLE.function("funm", "composite")
def funm(A: Any, func: Callable[[Any], Any], disp: Any = True) -> Tensor:
    """Return a function of a matrix, given the function of its eigenvalues.

    `func` gets the eigenvalues as one Tensor. The matrix must be diagonalisable; where
    two eigenvalues coincide, the derivative is inf or nan.
    """
    a = _checked("funm", A, disp)
    if not a.is_complex():
        check_known(a._array, "scipy.linalg.funm", "pass a complex matrix")
    values, vectors = eig(a)
    found: Tensor = (vectors * _applied(func, values)) @ inv(vectors)
    if a.is_complex():
        return found
    array = found._array
    tol = {"F": 1e3}.get(array.dtype.char, 1e6) * np.finfo(array.dtype).eps
    return real(found) if np.allclose(array.imag, 0.0, atol=tol) else found


def _applied(func: Callable[[Any], Any], values: Tensor) -> Tensor:
    found = func(values)
    if not isinstance(found, Tensor) or found.shape != values.shape:
        raise ShapeError(
            "scipy.linalg.funm: func must return one number for each eigenvalue, a Tensor of "
            f"shape {list(values.shape)}, got {type(found).__name__}"
        )
    (found,) = operands("funm", found, finite=False)
    result: Tensor = reshape(found, (*found.shape[:-1], 1, found.shape[-1]))
    return result
