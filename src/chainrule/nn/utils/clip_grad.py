"""Gradient clipping, by the norm of all gradients or by the values of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.creation import zeros
from chainrule.errors import ArgumentTypeError, AutogradError
from chainrule.linalg import vector_norm
from chainrule.ops import stack
from chainrule.pytree import Stateful, describe

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]

Parameters = Tensor | Iterable[Tensor]


def _listed(parameters: Any) -> Sequence[Tensor]:
    is_single = isinstance(parameters, Tensor | Stateful)
    listed = [parameters] if is_single else list(parameters)
    for each in listed:
        if not isinstance(each, Tensor):
            raise ArgumentTypeError(
                f"expected Tensors, but got {describe(each)}: of a module, give module.parameters()"
            )
    return listed


def _gradients(parameters: Parameters) -> list[Tensor]:
    return [p.grad for p in _listed(parameters) if p.grad is not None]


@no_grad()
def get_total_norm(
    tensors: Parameters,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of all tensors together, as one vector.

    Parameters
    ----------
    tensors : Tensor, or iterable of Tensors
        Such as the gradients of parameters.
    norm_type : float, default 2
        The order of the norm; it may be ``inf``.
    error_if_nonfinite : bool, default False
        Raise if the norm is nan or infinite.
    foreach
        As in PyTorch, without effect.

    Returns
    -------
    Tensor, shape ()
        Unrecorded.

    Raises
    ------
    AutogradError
        If the norm is nan or infinite, and `error_if_nonfinite` is True.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.utils.get_total_norm([cr.tensor([3.0]), cr.tensor([[4.0]])])
    tensor(5.)
    """
    listed, norm_type = _listed(tensors), float(norm_type)  # of "inf" too
    if not listed:
        return zeros(())
    total = vector_norm(stack([vector_norm(each, norm_type) for each in listed]), norm_type)
    if error_if_nonfinite and is_known(total._array) and not total.isfinite():
        raise AutogradError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`; detect_anomaly() finds where "
            "a nan came from"
        )
    return total


@no_grad()
def clip_grads_with_norm_(
    parameters: Parameters, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients of parameters, in place, by ``max_norm / total_norm`` if it is below 1.

    Parameters
    ----------
    parameters : Tensor, or iterable of Tensors
        Parameters without a gradient are ignored.
    max_norm : float
        Upper bound of the norm.
    total_norm : Tensor, shape ()
        The norm of the gradients: of `get_total_norm`, or of several processes' gradients.
    foreach
        As in PyTorch, without effect.

    Examples
    --------
    >>> import chainrule as cr
    >>> w = cr.tensor([3.0], requires_grad=True)
    >>> w.grad = cr.tensor([8.0])
    >>> cr.nn.utils.clip_grads_with_norm_(w, 4.0, cr.tensor(8.0))
    >>> round(w.grad.item(), 4)
    4.0
    """
    factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    for g in _gradients(parameters):
        g.mul_(factor.to(g.dtype))


@no_grad()
def clip_grad_norm_(
    parameters: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
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
    foreach
        As in PyTorch, without effect.

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
    parameters = _listed(parameters)
    total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


clip_grad_norm = clip_grad_norm_  # PyTorch's former name


@no_grad()
def clip_grad_value_(
    parameters: Parameters, clip_value: float, foreach: bool | None = None
) -> None:
    """Limit each element of the gradients of parameters, in place, to ±`clip_value`.

    Parameters
    ----------
    parameters : Tensor, or iterable of Tensors
        Parameters without a gradient are ignored.
    clip_value : float
        Upper bound of the magnitude of an element.
    foreach
        As in PyTorch, without effect.

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
