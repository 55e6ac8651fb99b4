"""`chainrule.array_api` with functions whose new floating-point tensors require grad.

The conformance suite uses it to check that recording changes no result. The new tensors are clones
of leaves, because a leaf that requires grad cannot be written to.
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
