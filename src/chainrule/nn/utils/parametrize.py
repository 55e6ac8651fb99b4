"""Parametrised tensors: attributes of a module that are computed from others by modules."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.nn.modules.container import ModuleDict, ModuleList
from chainrule.nn.modules.members import BUFFERS, PARAMETER
from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "type_before_parametrizations",
]

_cache: ContextVar[dict[tuple[int, str], Tensor] | None] = ContextVar("_cache", default=None)


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrised tensor once within this context, when it is first read.

    For modules that read one several times, such as a recurrent cell in a loop.

    Examples
    --------
    >>> from chainrule.nn.utils import parametrize
    >>> with parametrize.cached():
    ...     pass
    """
    if _cache.get() is not None:  # within another one
        yield
        return
    token = _cache.set({})
    try:
        yield
    finally:
        _cache.reset(token)


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order of their application, and the original.

    A module whose ``weight`` is parametrised has this as ``parametrizations.weight``; called
    without arguments it returns the tensor's value.

    Parameters
    ----------
    modules : sequence of Modules
        The first takes the original, the next one its output, and so on.
    original : Tensor
        A parameter or buffer, of which the originals are computed by the modules' `right_inverse`,
        where they have one.
    unsafe : bool, default False
        Whether a parametrization may change the dtype and shape of the tensor.

    Attributes
    ----------
    original : Parameter or buffer
        Or ``original0``, ``original1`` and so on, if `right_inverse` returns several tensors.
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ArgumentError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        values = self._invert(original, missing_is_identity=True)
        self.is_tensor = isinstance(values, Tensor)
        if self.is_tensor:
            if not unsafe and values.dtype != original.dtype:
                raise ArgumentError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype: it was "
                    f"{original.dtype}, and is {values.dtype}. Pass unsafe=True to allow it"
                )
            _write(original, values)
            self._add("original", original)
        else:
            for i, value in enumerate(values):
                made: Any = value.detach().clone()
                if isinstance(original, Parameter):
                    made = Parameter(made, original.requires_grad)
                self._add(f"original{i}", made)
        self.ntensors = len(self._originals)
        if not unsafe:
            _check_kept("Registering a parametrization", self(), original)

    def _add(self, name: str, value: Tensor) -> None:
        if isinstance(value, Parameter):
            self.register_parameter(name, value)
        else:
            self.register_buffer(name, value)

    @property
    def _originals(self) -> list[str]:
        return [name for name in self._kinds if name.startswith("original")]

    def _invert(self, value: Any, missing_is_identity: bool = False) -> Any:
        """Return the originals of a value: what the right inverses make of it, in reverse order."""
        with no_grad():
            for module in reversed(list(self)):
                inverse = getattr(module, "right_inverse", None)
                if inverse is None and not missing_is_identity:
                    raise ArgumentError(
                        f"parametrization {type(module).__name__} does not implement "
                        "right_inverse(self, value), so that the tensor can't be assigned"
                    )
                if inverse is not None:
                    try:
                        value = inverse(value)
                    except NotImplementedError:
                        if not missing_is_identity:
                            raise
        if not isinstance(value, Tensor | Sequence):
            raise ArgumentError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple), got "
                f"{type(value).__name__}"
            )
        for i, each in enumerate(() if isinstance(value, Tensor) else value):
            if not isinstance(each, Tensor):
                raise ArgumentError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors, got element "
                    f"{i} of the sequence with type {type(each).__name__}"
                )
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrised tensor becomes `value`."""
        values = self._invert(value)
        given = [values] if isinstance(values, Tensor) else list(values)
        if len(given) != self.ntensors:
            raise ArgumentError(
                f"'right_inverse' must return {self.ntensors} tensors, got {len(given)}"
            )
        for name, each in zip(self._originals, given, strict=True):
            original = getattr(self, name)
            if each.dtype != original.dtype:
                raise ArgumentError(
                    f"The tensor assigned to a parametrised one has the dtype {each.dtype}, its "
                    f"original {original.dtype}"
                )
            _write(original, each)

    def forward(self) -> Tensor:
        """Return the value of the parametrised tensor."""
        first, *others = self
        x: Tensor = first(*[getattr(self, name) for name in self._originals])
        for module in others:
            x = module(x)
        return x


def _write(original: Tensor, values: Tensor) -> None:
    if values is not original:
        original.data = values.detach().clone()


def _check_kept(title: str, value: Any, before: Tensor) -> None:
    """Raise if a parametrised tensor has another dtype or shape than before."""
    if not isinstance(value, Tensor):
        raise ArgumentError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for kind in ("dtype", "shape"):
        old, new = getattr(before, kind), getattr(value, kind)
        if old != new:
            raise ArgumentError(
                f"{title} may not change the {kind} of the tensor, unless the `unsafe` flag is "
                f"enabled: it was {old}, and is {new}"
            )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a tensor of a module the output of another module, of the tensor that it was.

    Parameters
    ----------
    module : Module
        Its class becomes a subclass with a property.
    tensor_name : str
        A parameter or buffer.
    parametrization : Module
        Takes the original. Its method `right_inverse`, where it has one, gives the original of a
        value: when the parametrization is registered, and when the tensor is assigned. It may
        return several tensors, which `forward` takes.
    unsafe : bool, default False
        Whether the parametrization may change dtype and shape; then it isn't called here.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ArgumentError
        If there is no such tensor, or the parametrization doesn't fit.

    Notes
    -----
    The state dict has ``parametrizations.<tensor_name>.original`` in the place of the tensor, or
    ``original0``, ``original1`` and so on.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).T
    >>> layer = nn.Linear(3, 3)
    >>> nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric()).weight.shape
    (3, 3)
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original']
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        found = vars(module)["parametrizations"][tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check_kept("Registering a parametrization", after, before)
            inverse = getattr(parametrization, "right_inverse", None)
            if inverse is not None:  # which knows what the parametrization returns, no more
                with contextlib.suppress(NotImplementedError):
                    _check_kept("right_inverse", inverse(after), before)
        found.append(parametrization)
        found.unsafe = found.unsafe or unsafe
        return module
    if module._kinds.get(tensor_name) not in (PARAMETER, *BUFFERS):
        raise ArgumentError(
            f"Module '{type(module).__name__}' does not have a parameter, a buffer, or a "
            f"parametrized element with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    made = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        module.__class__ = _parametrized_class(type(module))
        module.parametrizations = ModuleDict()
    setattr(type(module), tensor_name, _property(tensor_name))
    vars(module)["parametrizations"][tensor_name] = made
    return module


def _parametrized_class(cls: type[Module], names: Iterable[str] = ()) -> type[Module]:
    """Return a subclass for one module, with a property for each parametrised tensor."""

    def __setattr__(self: Module, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):  # for a `Parameter` too
            object.__setattr__(self, name, value)
        else:
            cls.__setattr__(self, name, value)

    def __reduce_ex__(self: Module, protocol: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict()"
        )

    def __deepcopy__(self: Module, memo: dict[int, Any]) -> Module:
        own = _parametrized_class(cls, vars(self)["parametrizations"])
        copied = object.__new__(own)
        memo[id(self)] = copied
        vars(copied).update(copy.deepcopy(vars(self), memo))
        return copied

    members: dict[str, Any] = {name: _property(name) for name in names}
    for method in (__setattr__, __reduce_ex__, __deepcopy__):
        members[method.__name__] = method
    return type(f"Parametrized{cls.__name__}", (cls,), members)


def _property(name: str) -> property:
    """Return the property that computes a parametrised tensor."""

    def value_of(self: Any) -> Any:
        cache = _cache.get()
        if cache is None:
            return self.parametrizations[name]()
        key = id(self), name
        if key not in cache:
            cache[key] = self.parametrizations[name]()
        return cache[key]

    def assign(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(value_of, assign)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module has parametrised tensors, or one of this name.

    Examples
    --------
    >>> from chainrule import nn
    >>> nn.utils.parametrize.is_parametrized(nn.Linear(1, 1))
    False
    """
    found = vars(module).get("parametrizations")
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Make a parametrised tensor an ordinary parameter or buffer again.

    Parameters
    ----------
    module : Module
        With the parametrised tensor.
    tensor_name : str
        Its name.
    leave_parametrized : bool, default True
        Whether the tensor keeps its value; else it gets the original's, if there is only one.

    Returns
    -------
    Module
        `module`.

    Raises
    ------
    ArgumentError
        If the tensor isn't parametrised, or has several originals and is to get one's value.

    Examples
    --------
    >>> from chainrule import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    >>> list(nn.utils.parametrize.remove_parametrizations(layer, "weight").state_dict())
    ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ArgumentError(
            f"Module {type(module).__name__} does not have a parametrization on {tensor_name}"
        )
    parametrizations: Any = vars(module)["parametrizations"]
    found: ParametrizationList = parametrizations[tensor_name]
    if not leave_parametrized and not found.is_tensor:
        raise ArgumentError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    original: Any = getattr(found, found._originals[0])
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
        if not found.is_tensor:
            original = Parameter(value) if isinstance(original, Parameter) else value
        else:
            _write(original, value)
    delattr(type(module), tensor_name)
    del parametrizations[tensor_name]
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of a module, without parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
