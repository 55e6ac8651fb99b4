"""Containers: sequences, lists and dicts of modules and of parameters."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import index
from typing import Any, TypeVar, overload

from chainrule.autograd.tensor import Tensor, is_parameter
from chainrule.errors import ArgumentTypeError, OutOfBoundsError
from chainrule.nn.modules.members import MODULE
from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

S = TypeVar("S", bound="_Sequence")


class _Sequence(Module):
    """Modules under the names 0, 1, 2 and so on, as far as they are not named."""

    @property
    def _names(self) -> list[str]:
        """The names of the modules: a subclass may have parameters too."""
        return [name for name, kind in self._kinds.items() if kind == MODULE]

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Module]:
        values = self.__dict__
        return iter([values[name] for name in self._names])

    def __contains__(self, module: object) -> bool:
        return any(each is module for each in self)

    def _name(self, position: Any) -> str:
        """Return the name of the module at a position, which may count from the end."""
        number, count = index(position), len(self)
        if not -count <= number < count:
            raise OutOfBoundsError(f"index {number} is out of range: there are {count} modules")
        return self._names[number]

    @overload
    def __getitem__(self: S, idx: slice) -> S: ...
    @overload
    def __getitem__(self, idx: int) -> Any: ...
    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self._made_of(dict(list(self._modules.items())[idx]))
        return self.__dict__[self._name(idx)]

    def _made_of(self, modules: dict[str, Module]) -> Any:
        made: Callable[[list[Module]], Any] = type(self)  # of a list, as every subclass's
        return made(list(modules.values()))

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name(idx), module)

    def _renew(self, modules: Iterable[Module]) -> None:
        """Contain these modules, numbered, instead of those of now."""
        listed = list(modules)
        for name in self._names:
            delattr(self, name)
        for number, module in enumerate(listed):
            self.add_module(str(number), module)

    def __delitem__(self, idx: int | slice) -> None:
        listed: list[Module] = list(self)
        del listed[idx]
        self._renew(listed)

    def append(self: S, module: Module) -> S:
        """Add a module at the end; return this container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: S, modules: Iterable[Module]) -> S:
        """Add modules at the end; return this container."""
        if isinstance(modules, str | bytes) or not isinstance(modules, Iterable):
            raise ArgumentTypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got "
                f"{type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: S, idx: int, module: Module) -> S:
        """Add a module before a position; return this container."""
        if not isinstance(module, Module):
            raise ArgumentTypeError(
                f"module should be of type Module, but got {type(module).__name__}"
            )
        listed: list[Module] = list(self)
        if not -len(listed) <= idx <= len(listed):
            raise OutOfBoundsError(f"Index out of range: {idx}, of {len(listed)} modules")
        listed.insert(idx, module)
        self._renew(listed)
        return self

    def pop(self, idx: int | slice = -1) -> Any:
        """Remove the module at a position, and return it."""
        removed = self[idx]
        del self[idx]
        return removed

    def __iadd__(self: S, modules: Iterable[Module]) -> S:
        return self.extend(modules)

    def __add__(self: S, modules: Iterable[Module]) -> S:
        combined = [*self, *modules]
        found: S = self._made_of({str(i): module for i, module in enumerate(combined)})
        return found


class Sequential(_Sequence):
    """Modules one after another: each takes the output of the one before.

    Parameters
    ----------
    *args : Modules, or one dict of modules by name
        In their order.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import nn
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> net(cr.ones(3, 4)).shape
    (3, 1)
    >>> net
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
      (2): Linear(in_features=8, out_features=1, bias=True)
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            named: Iterable[tuple[str, Module]] = args[0].items()
        else:
            named = ((str(i), module) for i, module in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def _made_of(self, modules: dict[str, Module]) -> Any:
        return type(self)(OrderedDict(modules))

    def forward(self, input: Any) -> Any:
        """Pass the input through all modules."""
        values = self.__dict__
        for name, kind in self._kinds.items():
            if kind == MODULE:
                input = values[name](input)
        return input


class ModuleList(_Sequence):
    """A list whose modules are members.

    Parameters
    ----------
    modules : iterable of Modules, optional
        The first contents.

    Examples
    --------
    >>> from chainrule import nn
    >>> layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
    >>> len(list(layers.parameters()))
    6
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __repr__(self) -> str:
        groups = itertools.groupby(enumerate(map(repr, self)), key=lambda each: each[1])
        lines = []
        for text, group in groups:
            numbers = [number for number, _ in group]
            if len(numbers) > 1:
                text = f"({numbers[0]}-{numbers[-1]}): {len(numbers)} x {text}"
            else:
                text = f"({numbers[0]}): {text}"
            lines.append("\n  " + text.replace("\n", "\n  "))
        return f"{self._get_name()}({''.join(lines)}\n)" if lines else f"{self._get_name()}()"


class ModuleDict(Module):
    """A dict whose modules are members.

    Parameters
    ----------
    modules : dict or iterable of pairs, optional
        The first contents; keys are strings.

    Examples
    --------
    >>> from chainrule import nn
    >>> heads = nn.ModuleDict({"mean": nn.Linear(4, 1), "scale": nn.Linear(4, 1)})
    >>> heads["mean"]
    Linear(in_features=4, out_features=1, bias=True)
    """

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove the module of a key, and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """Return the keys."""
        return self._modules.keys()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()

    def items(self) -> Any:
        """Return the pairs of keys and modules."""
        return self._modules.items()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, or replace those of the same keys."""
        pairs = modules.items() if isinstance(modules, Mapping | ModuleDict) else modules
        if not isinstance(pairs, Iterable):
            raise ArgumentTypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                f"{type(modules).__name__}"
            )
        for key, module in pairs:
            self[key] = module


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    title = "Parameter" if is_parameter(value) else "Tensor"
    return f"{title} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not is_parameter(value) else value


class ParameterList(Module):
    """A list whose tensors are parameters.

    Parameters
    ----------
    values : iterable, optional
        The first contents: tensors become parameters, other values stay what they are.

    Examples
    --------
    >>> import chainrule as cr
    >>> weights = cr.nn.ParameterList([cr.ones(2), cr.zeros(3)])
    >>> [name for name, _ in weights.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _name(self, position: Any) -> str:
        number, count = index(position), self._size
        if not -count <= number < count:
            raise OutOfBoundsError(f"index {number} is out of range: there are {count} entries")
        return str(number % count)

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return self.__dict__[self._name(idx)]

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, self._name(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self.__dict__[str(i)] for i in range(self._size)])

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def append(self, value: Any) -> ParameterList:
        """Add a value at the end; return this list."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add values at the end; return this list."""
        if isinstance(values, Tensor) or not isinstance(values, Iterable):
            raise ArgumentTypeError(
                "ParameterList.extend should be called with an iterable, but got "
                f"{type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def pop(self, idx: int = -1) -> Any:
        """Remove the value at a position, and return it."""
        listed = list(self)
        removed = listed.pop(idx)
        for i in range(self._size):
            delattr(self, str(i))
        self._size = 0
        self.extend(listed)
        return removed

    def extra_repr(self) -> str:
        """Return a line for each value."""
        return "\n".join(f"  ({i}): {_described(value)}" for i, value in enumerate(self))


class ParameterDict(Module):
    """A dict whose tensors are parameters.

    Parameters
    ----------
    parameters : dict or iterable of pairs, optional
        The first contents: tensors become parameters, other values stay what they are.

    Examples
    --------
    >>> import chainrule as cr
    >>> weights = cr.nn.ParameterDict({"scale": cr.ones(2)})
    >>> weights["scale"].requires_grad
    True
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return self.__dict__[key]

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise ArgumentTypeError(f"keys of a ParameterDict are strings, but got {key!r}")
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"attribute {key!r} already exists")
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, or a default."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of a key, which gets a default if it is new."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove a key, and return its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last key, and return it with its value."""
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        """Remove all keys."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Return another dict of the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def keys(self) -> Any:
        """Return the keys."""
        return self._keys.keys()

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return [self.__dict__[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the pairs of keys and values."""
        return [(key, self.__dict__[key]) for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Add values, or replace those of the same keys: of a plain dict in their order by name."""
        pairs: Iterable[tuple[str, Any]] = parameters
        if isinstance(parameters, OrderedDict | ParameterDict):
            pairs = parameters.items()
        elif isinstance(parameters, Mapping):  # PyTorch's order, which optimizers number them by
            pairs = sorted(parameters.items())
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        """Return a line for each value."""
        return "\n".join(f"  ({key}): {_described(value)}" for key, value in self.items())
