"""`chainrule.array_api`, except that each new tensor of floats requires grad.

So the conformance suite sees that recording changes no result. The new tensors are no leaves: those
refuse to be written to.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from chainrule import Tensor, array_api

_CREATE = """
    arange asarray empty empty_like eye full full_like linspace ones ones_like zeros zeros_like
"""


def _recorded(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def create(*args: Any, **kwargs: Any) -> Tensor:
        tensor = function(*args, **kwargs)
        floats = ("real floating", "complex floating")
        if tensor.requires_grad or not array_api.isdtype(tensor.dtype, floats):
            return tensor
        return tensor.detach().requires_grad_().clone()

    return create


globals().update({name: getattr(array_api, name) for name in dir(array_api)})
globals().update({name: _recorded(getattr(array_api, name)) for name in _CREATE.split()})
