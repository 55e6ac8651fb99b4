"""Operands of Fourier transforms as SciPy converts them."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor
from chainrule.backend.extensions import SCIPY
from chainrule.interop.operands import tensor_of
from chainrule.scipy.dispatch import Table

TABLE = Table("scipy.fft", SCIPY, has_scipys_numbers=True)
"""The functions of tensors of `scipy.fft`."""


def sizes_of(s: Any) -> Any:
    """Return numbers of points, or axes, given as one number, a sequence or an array."""
    return None if s is None else tuple(np.atleast_1d(s).tolist())


def in_double(x: Any) -> Tensor:
    """Return an operand as a tensor, of integers as float64."""
    tensor = tensor_of(x)
    return tensor if tensor._array.dtype.kind in "fc" else cast(tensor, np.float64)
