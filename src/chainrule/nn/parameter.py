"""Parameters: leaves that modules register when they are assigned to an attribute."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from chainrule.arguments import DeviceLike, DTypeLike, Operand, tensor_of
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor, make, member_kind
from chainrule.creation import empty, zeros
from chainrule.errors import ShapeError

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


class _MemberType(type):
    """Makes `isinstance(t, Parameter)` ask for the mark: operations know one class, `Tensor`."""

    _kinds: tuple[str, ...]

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and member_kind(instance) in cls._kinds


class Parameter(Tensor, metaclass=_MemberType):
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
    _kinds = ("parameter",)

    def __new__(cls, data: Operand | None = None, requires_grad: bool = True) -> Parameter:
        """Return a marked tensor."""
        values: Any = make((zeros(0) if data is None else tensor_of(data))._array, None)
        values._member = "parameter"
        found: Parameter = values.requires_grad_() if requires_grad else values
        return found

    def __init__(self, data: Operand | None = None, requires_grad: bool = True) -> None:
        pass  # for type checkers


class Buffer(Tensor, metaclass=_MemberType):
    """A tensor that a module registers as a buffer when it is assigned to an attribute.

    Parameters
    ----------
    data : Tensor or array, optional
        The values, whose memory is shared: an empty tensor if left out.
    persistent : bool, default True
        Whether it is part of the state dict.

    Examples
    --------
    >>> from chainrule import nn, ones
    >>> net = nn.Module()
    >>> net.scale = nn.Buffer(ones(2))
    >>> dict(net.state_dict())
    {'scale': tensor([1., 1.])}
    """

    __slots__ = ()
    _kinds = ("buffer", "transient")

    def __new__(cls, data: Operand | None = None, *, persistent: bool = True) -> Buffer:
        """Return a marked tensor."""
        values: Any = make((zeros(0) if data is None else tensor_of(data))._array, None)
        values._member = "buffer" if persistent else "transient"
        found: Buffer = values
        return found

    def __init__(self, data: Operand | None = None, *, persistent: bool = True) -> None:
        pass  # for type checkers


_array_slot: Any = vars(Tensor)["_array"]


class _Uninitialized(Tensor):
    """A tensor of a lazy module without a shape: `materialize` makes it an ordinary one."""

    __slots__ = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def _refuse(self) -> Any:
        raise ShapeError(
            "a parameter or buffer of a lazy module has no shape and no values before the first "
            "call of the module: call it once with an input, such as zeros of the right shape"
        )

    _array = property(_refuse)  # what every operation asks for

    @property
    def _empty(self) -> Any:
        """An empty array, of the dtype and on the device."""
        return _array_slot.__get__(self)

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._empty.dtype

    @property
    def device(self) -> Any:
        """The device."""
        return make(self._empty, None).device

    def convert(self, function: Callable[[Tensor], Tensor]) -> None:
        """Take the dtype and the device that a function gives a tensor."""
        _array_slot.__set__(self, function(make(self._empty, None))._array)

    def detach(self) -> Any:
        """Return this: there is no history."""
        return self

    @property
    def data(self) -> Any:
        """An empty tensor, as in PyTorch, so that what scripts write to it is lost."""
        warnings.warn(
            "the .data of a parameter of a lazy module is empty before the first call of the "
            "module, which draws its values: writing to it has no effect",
            UserWarning,
            stacklevel=user_stack_level(),
        )
        return make(self._empty, None)

    @data.setter
    def data(self, value: Any) -> None:
        self._refuse()

    def materialize(
        self, shape: tuple[int, ...], device: DeviceLike = None, dtype: DTypeLike = None
    ) -> None:
        """Become an ordinary parameter or buffer, with a shape but no values yet."""
        place: Any = self.device if device is None else device
        values = empty(shape, device=place, dtype=self.dtype if dtype is None else dtype)
        _array_slot.__set__(self, values._array)
        self.__class__ = Tensor  # type: ignore[assignment]  # of the same slots

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad, str(self.device), self.dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        kind, arguments = self.__reduce_ex__(2)
        return memo.setdefault(id(self), kind(*arguments))


class UninitializedParameter(_Uninitialized):
    """A parameter of a lazy module, whose shape the first input tells.

    Parameters
    ----------
    requires_grad : bool, default True
        Whether operations are recorded.
    device, dtype
        Of its values.

    Examples
    --------
    >>> from chainrule import nn
    >>> p = nn.UninitializedParameter()
    >>> p.materialize((2, 3))
    >>> p.shape
    (2, 3)
    """

    __slots__ = ()

    def __new__(
        cls, requires_grad: bool = True, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> Any:
        """Return a marked tensor without a shape."""
        made: Any = Parameter(empty(0, device=device, dtype=dtype), requires_grad)
        made.__class__ = cls
        return made


class UninitializedBuffer(_Uninitialized):
    """A buffer of a lazy module, whose shape the first input tells.

    Parameters
    ----------
    requires_grad : bool, default False
        As in PyTorch: buffers have no gradient.
    device, dtype
        Of its values.
    """

    __slots__ = ()

    def __new__(
        cls, requires_grad: bool = False, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> Any:
        """Return a tensor without a shape."""
        made: Any = make(empty(0, device=device, dtype=dtype)._array, None)
        made.__class__ = cls
        return made


def is_uninitialized(tensor: Any) -> bool:
    """Return whether a tensor is a parameter or buffer without a shape."""
    return isinstance(tensor, _Uninitialized)
