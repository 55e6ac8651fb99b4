"""The names that CuPy documents: `surface.txt`, read."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_KINDS = inspect.Parameter


@cache
def surface() -> dict[str, dict[str, tuple[str, list[str]]]]:
    """Return for each module, and for `cupy.ndarray`, its names: kind, and the rest of the line."""
    found: dict[str, dict[str, tuple[str, list[str]]]] = {}
    names: dict[str, tuple[str, list[str]]] = {}
    for line in Path(__file__).with_name("surface.txt").read_text().splitlines():
        if line.startswith("["):
            names = found[line.strip("[]")] = {}
        elif line and not line.startswith("#"):
            kind, name, *rest = line.split()
            names[name] = kind, rest
    return found


def signature_of(words: Sequence[str]) -> inspect.Signature:
    """Return the signature of parameters, each a name with `=` if it has a default."""
    parameters, kind = [], _KINDS.POSITIONAL_OR_KEYWORD
    for word in words:
        if word == "/":
            parameters = [p.replace(kind=_KINDS.POSITIONAL_ONLY) for p in parameters]
        elif word == "*":
            kind = _KINDS.KEYWORD_ONLY
        elif word.startswith("**"):
            parameters.append(_KINDS(word[2:], _KINDS.VAR_KEYWORD))
        elif word.startswith("*"):
            parameters.append(_KINDS(word[1:], _KINDS.VAR_POSITIONAL))
            kind = _KINDS.KEYWORD_ONLY
        else:
            default = None if word.endswith("=") else _KINDS.empty
            parameters.append(_KINDS(word.rstrip("="), kind, default=default))
    return inspect.Signature(parameters)
