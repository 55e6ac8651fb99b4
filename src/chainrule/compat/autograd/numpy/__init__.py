"""NumPy's namespace as `autograd.numpy` has it: recorded for what a transform differentiates.

Functions of NumPy's arrays and of numbers are NumPy's, and make NumPy's arrays. If an argument is
recorded, they are those of `chainrule.numpy`.

>>> import chainrule.compat.autograd.numpy as np
>>> type(np.zeros(2))
<class 'numpy.ndarray'>
"""

from __future__ import annotations

from typing import Any

import numpy as _numpy

import chainrule.numpy as _recorded
from chainrule.compat.autograd.numpy import fft as fft
from chainrule.compat.autograd.numpy import linalg as linalg
from chainrule.compat.autograd.numpy import numpy_boxes as numpy_boxes
from chainrule.compat.autograd.numpy import random as random
from chainrule.compat.autograd.numpy.numpy_wrapper import wrapped_names as _wrapped_names
from chainrule.errors import MissingRuleError as _MissingRuleError

globals().update(_wrapped_names(_numpy, _recorded, without=globals()))
__version__ = _numpy.__version__
row_stack = globals()["vstack"]  # an older name, which NumPy is about to drop


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return matrices with the elements of the last axis of an array on their diagonals.

    The matrices have the last two axes: the other arguments are `offset=0`, `axis1=-1` and
    `axis2=-2`.
    """
    if (offset, axis1, axis2) != (0, -1, -2):
        raise _MissingRuleError(
            "make_diagonal: expected offset=0, axis1=-1, axis2=-2, got "
            f"offset={offset}, axis1={axis1}, axis2={axis2}: move the axes with moveaxis"
        )
    return D[..., None] * _numpy.eye(_numpy.shape(D)[-1])


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
