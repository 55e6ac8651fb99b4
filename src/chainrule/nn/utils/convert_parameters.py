"""Conversion of parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ShapeError
from chainrule.ops import cat

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters as one vector, for SciPy's optimisers.

    Parameters
    ----------
    parameters : iterable of Tensors
        In the same order as for `vector_to_parameters`.

    Returns
    -------
    Tensor, shape (number of all elements,)

    Notes
    -----
    Derivative: 1; each parameter gets its part of the gradient.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.utils.parameters_to_vector([cr.ones(2, 2), cr.zeros(1)])
    tensor([1., 1., 1., 1., 0.])
    """
    return cat([parameter.reshape(-1) for parameter in parameters])


@no_grad()
def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Write the elements of a vector to parameters, in order, unrecorded.

    Parameters
    ----------
    vec : Tensor, shape (number of all elements,)
        In the form that `parameters_to_vector` returns.
    parameters : iterable of Tensors
        The parameters to overwrite, in their own memory and dtype.

    Raises
    ------
    ShapeError
        If `vec` has another number of elements. Then nothing is written.

    Examples
    --------
    >>> import chainrule as cr
    >>> w, b = cr.ones(2, requires_grad=True), cr.zeros(1, requires_grad=True)
    >>> cr.nn.utils.vector_to_parameters(cr.tensor([1.0, 2.0, 3.0]), [w, b])
    >>> w, b
    (tensor([1., 2.], requires_grad=True), tensor([3.], requires_grad=True))
    """
    written = list(parameters)
    count = sum(parameter.numel() for parameter in written)
    if vec.shape != (count,):
        raise ShapeError(
            f"vector_to_parameters: the parameters have {count} elements, so vec must have the "
            f"shape [{count}], but has {list(vec.shape)}"
        )
    start = 0
    for parameter in written:
        stop = start + parameter.numel()
        parameter.copy_(vec[start:stop].reshape(parameter.shape))
        start = stop
