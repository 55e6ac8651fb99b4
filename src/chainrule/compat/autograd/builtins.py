"""Python's containers, and `isinstance` and `type` of the values of recorded arrays."""

from __future__ import annotations

import builtins
from typing import Any

from chainrule.compat.autograd.tracer import Box, getval

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

dict, list, tuple = builtins.dict, builtins.list, builtins.tuple

# Containers of recorded arrays are Python's own: nothing is an instance of these.
DictBox = SequenceBox = Box


def isinstance(value: Any, kinds: Any) -> bool:
    """Tell whether the value of a recorded array, or another object, is of a class."""
    return builtins.isinstance(getval(value), kinds)


def type(value: Any) -> Any:
    """Return the class of the value of a recorded array, or of another object."""
    return builtins.type(getval(value))
