"""Selection of the arguments to differentiate by, by position or by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Literal

from chainrule.errors import ArgumentError, ArgumentTypeError, AutogradError
from chainrule.pytree import Stateful, describe
from chainrule.transforms.arguments import TransformCall, title_of, with_recording

Argnums = int | str | Sequence[int] | Sequence[str]


Unused = Literal["zeros", "raise"]


def settings_of(title: str, unused: Any) -> dict[str, Any]:
    """Return the settings of a transform that the user chose."""
    if unused not in ("zeros", "raise"):
        raise ArgumentError(f'{title}: unused is "zeros" or "raise", but got {unused!r}')
    return {"unused": "raise"} if unused == "raise" else {}


def check_argnums(title: str, argnums: Any) -> None:
    """Raise if what should select arguments is an argument itself, as in ``grad(f, x)``."""
    is_several = isinstance(argnums, Sequence) and not isinstance(argnums, str)
    listed = argnums if is_several else (argnums,)
    for each in listed:
        if not isinstance(each, int | str) or isinstance(each, bool):
            got = repr(each) if isinstance(each, float) else describe(each)
            raise ArgumentTypeError(
                f"{title}: argnums are positions or names of arguments, but got {got}: to call the "
                f"result with it, write cr.{title}(f)(x)"
            )


def raise_unused(
    title: str, choice: ArgnumSelection, call: TransformCall, used: Sequence[bool]
) -> None:
    """Raise for the arguments that the result of a function doesn't depend on."""
    names = []
    for path, is_used in zip(call.paths, used, strict=True):
        first, _, rest = path.removeprefix("[").partition("]")
        if not is_used:
            names.append(f"{choice.name_of(int(first))}{rest}")
    raise AutogradError(
        f"{title}: the result of {title_of(choice.function)} doesn't depend on {', '.join(names)}: "
        'use it, leave it out of argnums, or say unused="zeros"'
    )


class ArgnumSelection:
    """The selected arguments of one call; results for arguments selected by name are dicts."""

    def __init__(
        self,
        title: str,
        function: Callable[..., Any],
        argnums: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.title, self.function = title, function
        self.args, self.kwargs = list(args), dict(kwargs)
        self.requested: Sequence[Any] = [argnums]
        self.single = isinstance(argnums, str) or not isinstance(argnums, Sequence)
        if not self.single:
            self.requested = tuple(argnums)
        if not self.requested:
            raise ArgumentError(f"{title}: argnums is empty: name an argument to differentiate by")
        self.keys = [self._key(each) for each in self.requested]
        if len(set(self.keys)) < len(self.keys):
            raise ArgumentError(f"{title}: argnums={argnums!r} has an argument twice")
        given = [self._container(key)[key] for key in self.keys]
        if len(self.args) + len(self.kwargs) > len(self.keys):
            self._let_others_record()
        self.values = [v._tensors() if isinstance(v, Stateful) else v for v in given]

    def _let_others_record(self) -> None:
        slots: list[tuple[int | str, Any]] = [*enumerate(self.args), *self.kwargs.items()]
        are_constants = [key not in self.keys for key, _ in slots]
        values = with_recording([value for _, value in slots], are_constants)
        for (key, _), value in zip(slots, values, strict=True):
            self._container(key)[key] = value

    def _container(self, key: int | str) -> Any:
        return self.args if isinstance(key, int) else self.kwargs

    def _key(self, requested: Any) -> int | str:
        """Return the position or the keyword of an argument in this call."""
        count = len(self.args)
        if isinstance(requested, str):
            names = self._names()
            name, position = requested, names.index(requested) if requested in names else -1
        else:
            position = requested + count if requested < 0 else requested
            names = [] if position < count else self._names()
            name = names[position] if 0 <= position < len(names) else ""
        if 0 <= position < count:
            return position
        if name not in self.kwargs:
            self.kwargs[name] = self._default(name, requested)
        return name

    def _default(self, name: str, requested: Any) -> Any:
        """Return the default of an argument that the call doesn't give."""
        if name in self._names():
            default = inspect.signature(self.function).parameters[name].default
            if default is not inspect.Parameter.empty:
                return default
        names = self._names()
        given = [*map(str, range(len(self.args))), *map(repr, self.kwargs)]
        known = f". Its arguments are {', '.join(names)}" if names else ""
        raise ArgumentError(
            f"{self.title}: argument {requested!r} of {title_of(self.function)} was to be "
            f"differentiated by, but the call has {', '.join(given) or 'none'}: argnums says "
            f"which, by name or position{known}"
        )

    def _names(self) -> list[str]:
        """Return the names of the parameters that can be given by position or name."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):  # written in C
            return []
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        positional = [p.name for p in parameters if p.kind in kinds]
        return positional + [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]

    def name_of(self, index: int) -> str:
        """Return the name of a selected argument, or its position if it has none."""
        key = self.keys[index]
        names = self._names()
        if isinstance(key, int):
            return names[key] if key < len(names) else f"argument {key}"
        return key

    def call(self, *values: Any) -> Any:
        """Call the function with other values of the selected arguments."""
        args, kwargs, call = list(self.args), dict(self.kwargs), self.function
        for key, value in zip(self.keys, values, strict=True):
            owner = self._container(key)[key]
            if isinstance(owner, Stateful):  # is itself the argument, with other tensors
                call = functools.partial(owner._replaced, value, call)
            elif isinstance(key, int):
                args[key] = value
            else:
                kwargs[key] = value
        return call(*args, **kwargs)

    def like(self, values: Sequence[Any]) -> Any:
        """Return one value for each selected argument, in the form of `argnums`."""
        if self.single:
            return values[0]
        if all(isinstance(requested, str) for requested in self.requested):
            return dict(zip(self.requested, values, strict=True))
        return tuple(values)
