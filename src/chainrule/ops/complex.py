"""Complex numbers: parts, conjugates, angles, and construction from real numbers."""

from __future__ import annotations

import math

from chainrule.arguments import Operand, floating, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_known, namespace
from chainrule.errors import DTypeError, ShapeError
from chainrule.operation import inplace_form, operation, tensor_property
from chainrule.ops import elementary
from chainrule.ops.arithmetic import multiply
from chainrule.ops.elementary import cos, sin
from chainrule.ops.permute import matrix_transpose
from chainrule.ops.wrappers import binary_real, real_operands
from chainrule.primitives import binary, elementwise, indexing

__all__ = [
    "adjoint",
    "angle",
    "complex",
    "conj",
    "conj_physical",
    "conjugate",
    "imag",
    "isreal",
    "polar",
    "real",
    "sgn",
    "view_as_complex",
    "view_as_real",
    "conj_physical_",
]


@operation(
    aliases="conj_physical conjugate", inplace="conj_physical", ufunc="conjugate", array_api=True
)
def conj(input: Operand) -> Tensor:
    """Return the complex conjugate of each element; a real tensor unchanged.

    Parameters
    ----------
    input : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape and dtype of `input`

    Notes
    -----
    Derivative: not holomorphic; the gradient ∂L/∂z* of a real L is conjugated.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.conj(cr.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    input = tensor_of(input)
    return elementwise.conj.apply(input) if input.is_complex() else input


conj_physical = conjugate = conj  # conj is always computed, never a lazy flag
conj_physical_ = inplace_form(conj, "conj_physical_")


@operation(method=False, numpy="real val", array_api=True)
def real(input: Operand) -> Tensor:
    """Return the real part of each element, as a view; a real tensor unchanged.

    Parameters
    ----------
    input : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape of `input`; real

    Notes
    -----
    Derivative: the gradient of a real L with respect to z is ∂L/∂(Re z).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.real(cr.tensor([1 + 2j]))
    tensor([1.])
    """
    input = tensor_of(input)
    return indexing.real_part.apply(input) if input.is_complex() else input


@operation(method=False, array_api=True)
def imag(input: Operand) -> Tensor:
    """Return the imaginary part of each element, as a view; zeros for a real tensor, as in NumPy.

    Parameters
    ----------
    input : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape of `input`; real

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
    input = tensor_of(input)
    if not input.is_complex():  # no error, since code that inspects attributes must not fail
        return make(namespace(input._array).zeros_like(input._array), None)
    return indexing.imag_part.apply(input)


# --- signs and angles -----------------------------------------------------------------------------


@operation()
def isreal(input: Operand) -> Tensor:
    """Test each element for an imaginary part of 0, which real numbers have.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.isreal(cr.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    input = tensor_of(input)
    if input.is_complex():
        return elementwise.equal.apply(elementwise.imag.apply(input), 0)
    return elementwise.logical_or.apply(elementwise.equal.apply(input, input), True)


@operation(inplace=True)
def sgn(input: Operand) -> Tensor:
    """Return z / |z| for complex numbers z (0 at 0), and `sign` for real numbers.

    Notes
    -----
    Derivative: that of z / |z|; 0 for real numbers, and at 0.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.sgn(cr.tensor([3 + 4j, 0j]))
    tensor([0.6000+0.8000j, 0.0000+0.0000j])
    """
    return elementary.sign(input)


@operation()
def angle(input: Operand) -> Tensor:
    """Return the argument of each complex number; for a real number, 0 or π.

    Parameters
    ----------
    input : Tensor
        Complex or real numbers.

    Returns
    -------
    Tensor, shape of `input`; real, in radians from -π to π

    Notes
    -----
    Derivative: that of atan2(imag, real), 0 at 0; 0 for real numbers. The angle of nan is nan.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.angle(cr.tensor([1j, -1 + 0j]))
    tensor([1.5708, 3.1416])
    >>> cr.angle(cr.tensor([2.0, -2.0]))
    tensor([0.0000, 3.1416])
    """
    input = floating(input)
    if input.is_complex():
        return binary.atan2.apply(elementwise.imag.apply(input), elementwise.real.apply(input))
    # (1 - sign x) / 2 is 0, 1/2, 1 or nan; rounding to even makes 0 of 1/2.
    half = elementwise.multiply.apply(
        elementwise.subtract.apply(1.0, elementwise.sign.apply(input)), 0.5
    )
    return elementwise.multiply.apply(elementwise.round.apply(half), math.pi)


# --- conjugate transposes -------------------------------------------------------------------------


@operation()
def adjoint(input: Operand) -> Tensor:
    """Return the conjugate transpose of each matrix; for real numbers, a view.

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
    return conj(matrix_transpose(input))


def conjugate_transpose(x: Tensor) -> Tensor:
    """Return the conjugate transpose of one matrix: PyTorch's `H`."""
    if x.ndim not in (0, 2):
        raise ShapeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {x.ndim}-D tensor. Use mH "
            "for batches of matrices"
        )
    return adjoint(x) if x.ndim else conj(x)


# --- complex numbers from real numbers ------------------------------------------------------------

_complex = binary_real(binary.complex)


def complex(real: Operand, imag: Operand) -> Tensor:
    """Return complex numbers with the given real and imaginary parts.

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
        If an operand is complex, or float16, which has no complex dtype.

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


def polar(abs: Operand, angle: Operand) -> Tensor:
    """Return complex numbers in polar form, abs · (cos angle + i sin angle).

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
        If an operand is complex.

    Notes
    -----
    Derivatives: out / abs for `abs`, i · out for `angle`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.polar(cr.tensor([1.0, 2.0]), cr.tensor([0.0, cr.pi]))
    tensor([ 1.+0.0000e+00j, -2.-1.7485e-07j])
    """
    abs, angle = real_operands("polar", abs, angle)
    return _complex(multiply(abs, cos(angle)), multiply(abs, sin(angle)))


def view_as_real(input: Operand) -> Tensor:
    """Return a view of real and imaginary parts, in a last dimension of length 2.

    Parameters
    ----------
    input : Tensor, complex

    Returns
    -------
    Tensor, shape (*x.shape, 2); real

    Raises
    ------
    DTypeError
        If `input` is real.

    Notes
    -----
    The gradient of a real L is ∂L/∂(Re z) + i ∂L/∂(Im z).

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.view_as_real(cr.tensor([1 + 2j, 3 - 4j]))
    tensor([[ 1.,  2.],
            [ 3., -4.]])
    """
    input = tensor_of(input)
    if not input.is_complex():
        raise DTypeError(
            f"view_as_real is only supported for complex tensors, got {input.dtype}: make it "
            "complex with chainrule.complex(x, 0) first"
        )
    return indexing.real_pairs.apply(input)


def view_as_complex(input: Operand) -> Tensor:
    """Return a view of pairs of real and imaginary parts as complex numbers.

    Parameters
    ----------
    input : Tensor, shape (..., 2); real floating

    Returns
    -------
    Tensor, shape of `input` without the last dimension; complex

    Raises
    ------
    DTypeError
        If `input` is not of real floating numbers.
    ShapeError
        If the last dimension is not of length 2, or real and imaginary parts are not next to each
        other in memory: `contiguous` makes them so.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.view_as_complex(cr.tensor([[1.0, 2.0], [3.0, -4.0]]))
    tensor([1.+2.j, 3.-4.j])
    """
    input = tensor_of(input)
    if input.dtype.kind != "f":
        raise DTypeError(
            f"view_as_complex is only supported for real floating tensors, got {input.dtype}"
        )
    if input.ndim == 0 or input.shape[-1] != 2:
        raise ShapeError(
            f"view_as_complex: Tensor must have a last dimension of size 2, got the shape "
            f"{list(input.shape)}: stack the real and the imaginary parts "
            "along it"
        )
    if is_known(input._array) and input.stride(-1) != 1:
        raise ShapeError(
            "view_as_complex: Tensor must have a last dimension with stride 1, got the strides "
            f"{list(input.stride())}: say contiguous() of it first"
        )
    try:
        return indexing.complex_pairs.apply(input)
    except ShapeError:  # in a trace, which knows the memory as NumPy does
        raise ShapeError(
            "view_as_complex: Tensor must have a last dimension with stride 1: say contiguous() of "
            "it first"
        ) from None


tensor_property("H", conjugate_transpose, doc="The conjugate transpose of a matrix.")
tensor_property("mH", adjoint, doc="The conjugate transpose of each matrix.")
