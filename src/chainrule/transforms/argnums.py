"""Which arguments of a function are differentiated by: chosen by position, or by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from chainrule.errors import ArgumentError
from chainrule.transforms.function_call import named

Argnums = int | str | Sequence[int] | Sequence[str]


class ArgnumSelection:
    """The chosen arguments of one call; what was chosen by names comes back by them."""

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
        self.asked: Sequence[Any] = [argnums]
        self.single = isinstance(argnums, str) or not isinstance(argnums, Sequence)
        if not self.single:
            self.asked = tuple(argnums)
        if not self.asked:
            raise ArgumentError(f"{title}: argnums is empty: name an argument to differentiate by")
        self.keys = [self._key(each) for each in self.asked]
        if len(set(self.keys)) < len(self.keys):
            raise ArgumentError(f"{title}: argnums={argnums!r} has an argument twice")
        self.values = [self._holder(key)[key] for key in self.keys]

    def _holder(self, key: int | str) -> Any:
        return self.args if isinstance(key, int) else self.kwargs

    def _key(self, asked: Any) -> int | str:
        """Return where an argument is in this call: a position, or a keyword."""
        count = len(self.args)
        if isinstance(asked, str):
            names = self._names()
            name, position = asked, names.index(asked) if asked in names else -1
        elif isinstance(asked, int) and not isinstance(asked, bool):
            position = asked + count if asked < 0 else asked
            names = [] if position < count else self._names()
            name = names[position] if 0 <= position < len(names) else ""
        else:
            raise TypeError(
                f"{self.title}: argnums are positions or names of arguments, but got {asked!r}"
            )
        if 0 <= position < count:
            return position
        if name not in self.kwargs:
            self.kwargs[name] = self._default(name, asked)
        return name

    def _default(self, name: str, asked: Any) -> Any:
        """Return what an argument is that the call doesn't give."""
        if name in self._names():
            default = inspect.signature(self.function).parameters[name].default
            if default is not inspect.Parameter.empty:
                return default
        given = [*map(str, range(len(self.args))), *map(repr, self.kwargs)]
        raise ArgumentError(
            f"{self.title}: argument {asked!r} of {named(self.function)} was to be differentiated "
            f"by, but the call has {', '.join(given) or 'none'}: argnums says which"
        )

    def _names(self) -> list[str]:
        """Return the names of the parameters that can be given by position or name."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):  # written in C
            return []
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        placed = [p.name for p in parameters if p.kind in kinds]
        return placed + [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]

    def call(self, *values: Any) -> Any:
        """Call the function with other values of the chosen arguments."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for key, value in zip(self.keys, values, strict=True):
            if isinstance(key, int):
                args[key] = value
            else:
                kwargs[key] = value
        return self.function(*args, **kwargs)

    def like(self, values: Sequence[Any]) -> Any:
        """Return one thing for each chosen argument, in the form that they were chosen in."""
        if self.single:
            return values[0]
        if all(isinstance(asked, str) for asked in self.asked):
            return dict(zip(self.asked, values, strict=True))
        return tuple(values)
