"""Locations of code: this package and NumPy, the standard library, and everything else."""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import numpy as np

from chainrule.autograd.location import INTERNAL

_NUMPY = os.path.dirname(np.__file__) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = tuple(f"{_STANDARD}{name}-packages{os.sep}" for name in ("site", "dist"))
_GENERATED = ("<call of ", "<compiled ", "<loop ", "<frozen importlib", "<frozen zipimport")


_READERS = re.compile(r"chainrule.io.\w+\.py$|numpy.*\W(_?npyio\w*|_?datasource)\.py$")
"""Modules of this package and NumPy that are followed like the user's, since they read files."""


class _Internal(dict[str, bool]):
    """Cache of whether a file belongs to this package or NumPy, by file name."""

    def __missing__(self, filename: str) -> bool:
        inside = INTERNAL[filename] or filename.startswith((_NUMPY, *_GENERATED))
        inside = inside and _READERS.search(filename) is None
        self[filename] = inside
        return inside


class _Standard(dict[str, bool]):
    """Cache of whether a file belongs to the standard library, by file name."""

    def __missing__(self, filename: str) -> bool:
        inside = filename.startswith((_STANDARD, "<frozen ")) and not filename.startswith(
            _INSTALLED
        )
        self[filename] = inside
        return inside


is_internal, is_standard = _Internal(), _Standard()


def _file_of(module: Any) -> Any:
    """Return the file of a module, without asking a function `__getattr__` of the user."""
    return getattr(module, "__dict__", {}).get("__file__")


def is_standard_module(module: Any) -> bool:
    """Whether a module belongs to the standard library; built-in modules have no file."""
    file = _file_of(module)
    return is_standard[file] if file else module.__name__ in sys.builtin_module_names


def is_internal_module(module: Any) -> bool:
    """Whether a module belongs to this package or NumPy."""
    return is_internal[_file_of(module) or ""]


def is_standard_class(cls: type) -> bool:
    """Whether a class is defined in the standard library, or built in."""
    module = sys.modules.get(cls.__module__)
    return cls.__module__ == "builtins" or (module is not None and is_standard_module(module))


def is_internal_class(cls: type) -> bool:
    """Whether a class is defined in this package or in NumPy."""
    module = sys.modules.get(cls.__module__)
    return module is not None and is_internal_module(module)
