"""Parameters: leaves that modules register when they are assigned to an attribute."""

from __future__ import annotations

from typing import Any

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor, is_parameter, make
from chainrule.creation import zeros

__all__ = ["Parameter"]


class _ParameterType(type):
    """Makes `isinstance(t, Parameter)` ask for the mark: operations know one class, `Tensor`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and is_parameter(instance)


class Parameter(Tensor, metaclass=_ParameterType):
    """A leaf tensor that a module registers when it is assigned to an attribute.

    Parameters
    ----------
    data : Tensor or array, optional
        The values, whose memory is shared: an empty tensor if left out.
    requires_grad : bool, default True
        Whether operations are recorded.

    Notes
    -----
    A parameter is a `Tensor` with a mark, so that all operations are as fast on it as on others:
    ``isinstance(p, Parameter)`` asks for the mark, which copies and pickles keep and results of
    operations don't have.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Parameter(cr.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()

    def __new__(cls, data: Operand | None = None, requires_grad: bool = True) -> Parameter:
        """Return a marked tensor."""
        values: Any = make((zeros(0) if data is None else tensor_of(data))._array, None)
        values._parameter = True
        return values.requires_grad_() if requires_grad else values  # type: ignore[no-any-return]

    def __init__(self, data: Operand | None = None, requires_grad: bool = True) -> None:
        pass  # for type checkers
