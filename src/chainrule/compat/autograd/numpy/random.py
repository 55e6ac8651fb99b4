"""Random numbers: the names of `numpy.random`, recorded for recorded arrays."""

from __future__ import annotations

from typing import Any

import numpy.random as _numpy

import chainrule.numpy as _recorded
from chainrule.compat.autograd.numpy.numpy_wrapper import wrapped_names as _wrapped_names

globals().update(_wrapped_names(_numpy, _recorded.random, without=globals()))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
