"""Functions of functions: derivatives without touching any `.grad`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from chainrule.autograd.forward import linearized
from chainrule.autograd.tensor import Tensor

__all__ = ["jvp"]


def jvp(
    function: Callable[..., Any],
    primals: Tensor | Sequence[Tensor],
    tangents: Tensor | Sequence[Tensor],
) -> tuple[Any, Any]:
    """Return the value of a function and its derivative in one direction: forward mode.

    Parameters
    ----------
    function : callable
        Takes the primals as tensors; returns a tensor, or a tuple or list of them.
    primals : Tensor or sequence of Tensors
        Where to differentiate.
    tangents : Tensor or sequence of Tensors
        The direction: one for each primal, of its shape.

    Returns
    -------
    (outputs, tangents)
        What `function` returned, and its derivative along `tangents` in the same structure.

    Notes
    -----
    The Jacobian times a vector, J t, at the cost of one further walk through the graph. Nests with
    itself and with reverse mode.

    Examples
    --------
    >>> import chainrule as cr
    >>> value, slope = jvp(lambda x: x * x, cr.tensor(3.0), cr.tensor(1.0))
    >>> value.item(), slope.item()
    (9.0, 6.0)
    """
    if isinstance(primals, Tensor):
        primals = (primals,)
    if isinstance(tangents, Tensor):
        tangents = (tangents,)
    return linearized(function, primals, tangents)
