"""The parts of complex numbers."""

from __future__ import annotations

import math

from chainrule.arguments import RECORDERS, Operand, floating, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace
from chainrule.errors import DTypeError, ShapeError
from chainrule.ops import kinks
from chainrule.ops.arithmetic import multiply
from chainrule.ops.calls import real_operands, real_pair
from chainrule.ops.ordering import matrix_transpose
from chainrule.ops.trigonometry import cos, sin

__all__ = [
    "adjoint",
    "angle",
    "complex",
    "conj",
    "conj_physical",
    "imag",
    "isreal",
    "polar",
    "real",
    "sgn",
    "view_as_complex",
    "view_as_real",
]


def conj(x: Operand, /) -> Tensor:
    """Return the complex conjugate of each element; a real tensor as it is.

    Parameters
    ----------
    x : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape and dtype of `x`

    Notes
    -----
    Derivative: not holomorphic; the gradient ∂L/∂z* of a real L is conjugated.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.conj(cr.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    x = tensor_of(x)
    return RECORDERS["conj"](x) if x.is_complex() else x


conj_physical = conj  # always computed here, never just noted


def real(x: Operand, /) -> Tensor:
    """Return the real part of each element; a real tensor as it is.

    Parameters
    ----------
    x : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape of `x`; real

    Notes
    -----
    Derivative: the gradient of a real L with respect to z is ∂L/∂(Re z).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.real(cr.tensor([1 + 2j]))
    tensor([1.])
    """
    x = tensor_of(x)
    return RECORDERS["real"](x) if x.is_complex() else x


def imag(x: Operand, /) -> Tensor:
    """Return the imaginary part of each element; zeros for a real tensor, as NumPy does.

    Parameters
    ----------
    x : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape of `x`; real

    Notes
    -----
    Derivative: the gradient of a real L with respect to z is i ∂L/∂(Im z). The zeros of a real
    tensor have no history.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.imag(cr.tensor([1 + 2j]))
    tensor([2.])
    """
    x = tensor_of(x)
    if not x.is_complex():  # not an error: whoever looks for attributes (a protocol) must not fail
        return make(namespace(x._array).zeros_like(x._array), None)
    return RECORDERS["imag"](x)


# --- parts and directions -------------------------------------------------------------------------


def isreal(x: Operand, /) -> Tensor:
    """Say of each element whether its imaginary part is 0; of real numbers it is.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isreal(cr.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    x = tensor_of(x)
    if x.is_complex():
        return RECORDERS["equal"](RECORDERS["imag"](x), 0)
    return RECORDERS["logical_or"](RECORDERS["equal"](x, x), True)


def sgn(x: Operand, /) -> Tensor:
    """Return z / |z|, and 0 at 0, of complex numbers z; the `sign` of real ones.

    Notes
    -----
    Derivative: that of z / |z|; 0 for real numbers, and at 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sgn(cr.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return kinks.sign(x)


def angle(x: Operand, /) -> Tensor:
    """Return the angle of each complex number in the plane; 0 or π of a real one.

    Parameters
    ----------
    x : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape of `x`; real, in radians from -π to π

    Notes
    -----
    Derivative: that of atan2(imag, real), 0 at 0; 0 for real numbers. nan where those are nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.angle(cr.tensor([1j, -1 + 0j]))
    tensor([1.5708, 3.1416])
    >>> cr.angle(cr.tensor([2.0, -2.0]))
    tensor([0.0000, 3.1416])
    """
    x = floating(x)
    if x.is_complex():
        return RECORDERS["atan2"](RECORDERS["imag"](x), RECORDERS["real"](x))
    # Half of 1 - sign x is 0, 1/2 or 1, and nan of nan: rounded to even, 1/2 counts as 0.
    half = RECORDERS["multiply"](RECORDERS["subtract"](1.0, RECORDERS["sign"](x)), 0.5)
    return RECORDERS["multiply"](RECORDERS["round"](half), math.pi)


# --- with matrices transposed ---------------------------------------------------------------------


def adjoint(x: Operand, /) -> Tensor:
    """Return the matrices transposed and conjugated; those of real numbers are views.

    Raises
    ------
    ShapeError
        If there are fewer than two dimensions.

    Notes
    -----
    Derivative: the gradient is transposed and conjugated back.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.adjoint(cr.tensor([[1j, 2 + 0j]]))
    tensor([[0.-1.j],
            [2.-0.j]])
    """
    return conj(matrix_transpose(x))


def hermitian(x: Tensor) -> Tensor:
    """Return one matrix, transposed and conjugated: PyTorch's `H`."""
    if x.ndim not in (0, 2):
        raise ShapeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {x.ndim}-D tensor. Use mH "
            "for batches of matrices"
        )
    return adjoint(x) if x.ndim else conj(x)


# --- made of real numbers -------------------------------------------------------------------------

_complex = real_pair("complex")


def complex(real: Operand, imag: Operand, /) -> Tensor:
    """Return the complex numbers of these real and imaginary parts.

    Parameters
    ----------
    real, imag : Tensor, array or number
        Real numbers; their shapes broadcast.

    Returns
    -------
    Tensor, of the broadcast shape; complex64 of float32, complex128 of float64

    Raises
    ------
    DTypeError
        If one is complex, or of float16, for which there are no complex numbers.

    Notes
    -----
    Derivatives: 1 for `real`, i for `imag`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.complex(cr.tensor([1.0, 2.0]), cr.tensor([0.0, -1.0]))
    tensor([1.+0.j, 2.-1.j])
    """
    return _complex(real, imag)


def polar(abs: Operand, angle: Operand, /) -> Tensor:
    """Return the complex numbers abs · (cos angle + i sin angle).

    Parameters
    ----------
    abs, angle : Tensor, array or number
        Real numbers; angles in radians. Their shapes broadcast.

    Returns
    -------
    Tensor, of the broadcast shape; complex64 of float32, complex128 of float64

    Raises
    ------
    DTypeError
        If one is complex.

    Notes
    -----
    Derivatives: out / abs for `abs`, i · out for `angle`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.polar(cr.tensor([1.0, 2.0]), cr.tensor([0.0, cr.pi]))
    tensor([ 1.+0.0000e+00j, -2.-1.7485e-07j])
    """
    size, turn = real_operands("polar", abs, angle)
    return _complex(multiply(size, cos(turn)), multiply(size, sin(turn)))


def view_as_real(x: Operand, /) -> Tensor:
    """Return real and imaginary parts side by side, in a last dimension of length 2.

    Parameters
    ----------
    x : Tensor, complex

    Returns
    -------
    Tensor, shape (*x.shape, 2); real

    Raises
    ------
    DTypeError
        If `x` is real.

    Notes
    -----
    A copy, as `real` and `imag` are: a write to the result leaves `x` alone. The gradient of a real
    L is ∂L/∂(Re z) + i ∂L/∂(Im z).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.view_as_real(cr.tensor([1 + 2j, 3 - 4j]))
    tensor([[ 1.,  2.],
            [ 3., -4.]])
    """
    x = tensor_of(x)
    if not x.is_complex():
        raise DTypeError(
            f"view_as_real is only supported for complex tensors, got {x.dtype}: make it complex "
            "with chainrule.complex(x, 0) first"
        )
    return RECORDERS["stack"](RECORDERS["real"](x), RECORDERS["imag"](x), axis=x.ndim)


def view_as_complex(x: Operand, /) -> Tensor:
    """Return the complex numbers whose parts stand side by side: the inverse of `view_as_real`.

    Parameters
    ----------
    x : Tensor, shape (..., 2); real floating

    Returns
    -------
    Tensor, shape of `x` without the last dimension; complex

    Raises
    ------
    DTypeError
        If `x` is not of real floating numbers.
    ShapeError
        If the last dimension is not of length 2.

    Notes
    -----
    A copy: a write to the result leaves `x` alone.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.view_as_complex(cr.tensor([[1.0, 2.0], [3.0, -4.0]]))
    tensor([1.+2.j, 3.-4.j])
    """
    x = tensor_of(x)
    if x.dtype.kind != "f":
        raise DTypeError(
            f"view_as_complex is only supported for real floating tensors, got {x.dtype}"
        )
    if x.ndim == 0 or x.shape[-1] != 2:
        raise ShapeError(
            f"view_as_complex: Tensor must have a last dimension of size 2, got the shape "
            f"{list(x.shape)}: stack the real and the imaginary parts there"
        )
    return _complex(x[..., 0], x[..., 1])
