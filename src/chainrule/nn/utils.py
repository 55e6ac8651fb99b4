"""Utilities for all parameters at once: gradient clipping, conversion to and from a vector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.creation import zeros
from chainrule.errors import AutogradError, ShapeError
from chainrule.linalg import vector_norm
from chainrule.ops import cat, stack

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]

Parameters = Tensor | Iterable[Tensor]


def _listed(parameters: Parameters) -> Sequence[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters: Parameters) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


@no_grad()
def clip_grad_norm_(
    parameters: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale the gradients of parameters, in place, so that their norm is at most `max_norm`.

    Parameters
    ----------
    parameters : Tensor, or iterable of Tensors
        Parameters without a gradient are ignored.
    max_norm : float
        Upper bound of the norm of all gradients together, as one vector.
    norm_type : float, default 2
        The order of the norm; it may be ``inf``.
    error_if_nonfinite : bool, default False
        Raise if the norm is nan or infinite, before anything is scaled.

    Returns
    -------
    Tensor, shape ()
        The norm before clipping.

    Raises
    ------
    AutogradError
        If the norm is nan or infinite, and `error_if_nonfinite` is True.

    Notes
    -----
    The factor is max_norm / (norm + 1e-6), where that is below 1 [1]_.

    References
    ----------
    .. [1] R. Pascanu, T. Mikolov, Y. Bengio, On the difficulty of training recurrent neural
       networks, ICML 2013, algorithm 1.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> cr.nn.utils.clip_grad_norm_([w], 1.0)
    tensor(10.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    gradients = _gradients(parameters)
    if not gradients:
        return zeros(())
    total = vector_norm(stack([vector_norm(g, norm_type) for g in gradients]), norm_type)
    if error_if_nonfinite and is_known(total._array) and not total.isfinite():
        raise AutogradError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`; detect_anomaly() finds where "
            "a nan came from"
        )
    factor = (float(max_norm) / (total + 1e-6)).clamp(max=1.0)
    for g in gradients:
        g.mul_(factor.to(g.dtype))
    return total


clip_grad_norm = clip_grad_norm_  # PyTorch's former name


@no_grad()
def clip_grad_value_(parameters: Parameters, clip_value: float) -> None:
    """Limit each element of the gradients of parameters, in place, to ±`clip_value`.

    Parameters
    ----------
    parameters : Tensor, or iterable of Tensors
        Parameters without a gradient are ignored.
    clip_value : float
        Upper bound of the magnitude of an element.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([3.0, -0.25], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> cr.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([ 1.0000, -0.5000])
    """
    for g in _gradients(parameters):
        g.clamp_(-float(clip_value), float(clip_value))


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
    written = _listed(parameters)
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
