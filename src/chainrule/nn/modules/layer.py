"""Layers without parameters: a function, and the settings that it is called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, dataclass_transform

from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentTypeError
from chainrule.nn.modules.module import Module


@dataclass_transform()
class FunctionLayer(Module):
    """A layer that calls a function of `nn.functional` with its settings.

    A subclass lists its settings as a dataclass does, as attributes with types and defaults, in the
    order of its arguments; they are keywords of `function`. Subclasses of those are as of any
    module.
    """

    function: ClassVar[Callable[..., Any]]
    _settings: ClassVar[tuple[str, ...]] = ()
    _passed: ClassVar[tuple[str, ...]] = ()  # settings that `function` takes
    _omitted: ClassVar[tuple[str, ...]] = ()  # settings that `function` doesn't take
    _shown: ClassVar[tuple[str, ...] | None] = None  # settings that are printed: all, if None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if "function" not in own or "__init__" in own:
            return
        types = inspect.get_annotations(cls)
        settings = [name for name, kind in types.items() if "ClassVar" not in str(kind)]
        cls._settings = (*cls._settings, *(name for name in settings if name not in cls._settings))
        cls._passed = tuple(name for name in cls._settings if name not in cls._omitted)
        if cls._settings:
            cls.__init__ = _initializer(cls)  # type: ignore[method-assign]  # of a subclass

    def _convert(self) -> None:
        """Convert settings after they were set."""

    def forward(self, *inputs: Any) -> Any:
        """Return the function's value for the inputs."""
        cls, values = type(self), self.__dict__
        return cls.function(*inputs, **{name: values[name] for name in cls._passed})

    def extra_repr(self) -> str:
        """Return the settings."""
        names = self._settings if self._shown is None else self._shown
        return ", ".join(
            f"{name}={value!r}"
            for name in names
            if (value := getattr(self, name)) is not False or name != "inplace"
        )


def repeated(value: Any, count: int) -> tuple[Any, ...]:
    """Return a setting for each spatial dimension: a single one applies to all."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


_size_1_t = int | tuple[int]
_size_2_t = int | tuple[int, int]
_size_3_t = int | tuple[int, int, int]


def _single(value: Any) -> tuple[Any, ...]:
    return repeated(value, 1)  # PyTorch's names, which code of users imports


def _pair(value: Any) -> tuple[Any, ...]:
    return repeated(value, 2)


def _triple(value: Any) -> tuple[Any, ...]:
    return repeated(value, 3)


def _quadruple(value: Any) -> tuple[Any, ...]:
    return repeated(value, 4)


def _ntuple(count: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    return lambda value: repeated(value, count)


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix, such as "module." of `DataParallel`, from the names of a state dict."""
    for name in list(state_dict):
        if name.startswith(prefix):
            state_dict[name.removeprefix(prefix)] = state_dict.pop(name)


def _initializer(cls: type[FunctionLayer]) -> Callable[..., None]:
    """Return the constructor that takes the settings of a class."""
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    parameters = [
        inspect.Parameter(name, kind, default=getattr(cls, name, empty)) for name in cls._settings
    ]
    signature = inspect.Signature(parameters)
    kinds = [item for each in cls.__mro__ for item in inspect.get_annotations(each).items()]
    of_tensors = {name for name, kind in kinds if "Tensor" in str(kind) or "Any" in str(kind)}

    def __init__(self: FunctionLayer, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentTypeError(f"{cls.__name__}.__init__() {error}") from None
        given.apply_defaults()
        Module.__init__(self)
        for name, value in given.arguments.items():
            if isinstance(value, Tensor) and name not in of_tensors:
                raise ArgumentTypeError(
                    f"{cls.__name__}() takes settings alone, but got a Tensor as {name}: make it "
                    f"first, and then call it, {cls.__name__}()(...)"
                )
            setattr(self, name, value)
        self._convert()

    itself = inspect.Parameter("self", kind)
    __init__.__signature__ = signature.replace(parameters=[itself, *parameters])  # type: ignore[attr-defined]  # for `inspect`
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    return __init__
