"""The calls that the examples in docstrings make of public functions."""

from __future__ import annotations

import contextlib
import doctest
import io
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

import chainrule as cr

MODULES: dict[str, Any] = {
    "cr": cr,
    "cr.linalg": cr.linalg,
    "cr.fft": cr.fft,
    "cr.special": cr.special,
    "cr.nn.functional": cr.nn.functional,
}

Call = tuple[tuple[Any, ...], dict[str, Any]]

_PARSER = doctest.DocTestParser()
_FOUND: dict[str, list[Call]] = {}


def own(function: Any) -> Any:
    """Return the function to which a module gave `out`, or the function itself."""
    return getattr(function, "without_out", function)


def functions() -> dict[str, Any]:
    """Return every public function by its name; a function of several names is listed once."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for prefix, module in MODULES.items():
        for name in module.__all__:
            function = getattr(module, name)
            if isinstance(function, types.FunctionType) and id(own(function)) not in seen:
                seen.add(id(own(function)))
                found[f"{prefix}.{name}"] = function
    return found


FUNCTIONS = functions()
TITLES = {
    name: next(title for title, known in FUNCTIONS.items() if own(known) is own(function))
    for module in reversed(MODULES.values())
    for name in module.__all__
    if isinstance(function := getattr(module, name), types.FunctionType)
}
"""The key of each function in `FUNCTIONS`, by any of its names."""


def calls_of(title: str) -> list[Call]:
    """Return the arguments with which the examples of a function call it.

    An in-place function without examples takes those of its out-of-place form.
    """
    if title not in _FOUND:
        function = FUNCTIONS[title]
        if ">>>" not in (function.__doc__ or "") and title.endswith("_"):
            other = TITLES.get(title.rpartition(".")[2][:-1])
            _FOUND[title] = [] if other is None else calls_of(other)
        else:
            with _recorded(function) as calls:
                _run(function.__doc__ or "")
            _FOUND[title] = calls
    return _FOUND[title]


@contextlib.contextmanager
def _recorded(function: Any) -> Iterator[list[Call]]:
    """Replace a function, under each public name, by one that records its arguments."""
    calls: list[Call] = []

    def recorder(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        return function(*args, **kwargs)

    places = [
        (module, name, getattr(module, name))
        for module in MODULES.values()
        for name in module.__all__
        if own(getattr(module, name)) is own(function)
    ]
    for module, name, _ in places:
        setattr(module, name, recorder)
    try:
        yield calls
    finally:
        for module, name, former in places:
            setattr(module, name, former)


def _run(text: str) -> None:
    scope = {"cr": cr, "np": np}
    with contextlib.redirect_stdout(io.StringIO()):
        for example in _PARSER.get_examples(text):
            with contextlib.suppress(Exception):  # some examples show errors
                exec(compile(example.source, "<example>", "single"), scope)
