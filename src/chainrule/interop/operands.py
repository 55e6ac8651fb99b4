"""What NumPy's functions are given: tensors, arrays, numbers, and lists that hold any of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, is_known
from chainrule.ops import join_split

Array = Any


def tensors_of(values: list[Any]) -> list[Tensor]:
    """Return operands as tensors: lists as NumPy reads them, scalars in the dtype of the tensors.

    What has no tensor in it has NumPy's dtype, not the default one of tensors.
    """
    listed = [_unlisted(value) if isinstance(value, list | tuple) else value for value in values]
    if not any([isinstance(value, Tensor) for value in listed]):
        listed = [value if is_array(value) else np.asarray(value) for value in listed]
    return as_tensors(tuple(listed))


def tensor_of(value: Any) -> Tensor:
    """Return one operand as a tensor."""
    return tensors_of([value])[0]


def _unlisted(value: Any) -> Any:
    """Return nested lists as an array; as a tensor, recorded, if there is one in them."""
    if next(tensors_in(value), None) is None:
        return np.asarray(value)
    return join_split.stack(tensors_of(list(value)), 0)


def array_of(value: Any) -> Array:
    """Return an operand whose gradient is of no concern, such as an index, as an array."""
    if isinstance(value, Tensor):
        found = value.detach().numpy()
        return np.asarray(found) if is_known(found) else found
    found = arrays_of(value)
    return found if is_array(found) else np.asarray(found)


def may_hold(condition: Tensor) -> bool:
    """Say whether a condition holds for an element, or isn't known."""
    return not is_known(condition._array) or bool(condition._array.any())


def arrays_of(value: Any) -> Any:
    """Return arguments with NumPy arrays in the place of tensors."""
    if isinstance(value, Tensor):
        found = value.detach().numpy()
        return np.asarray(found) if is_known(found) else found
    if isinstance(value, dict):
        return {key: arrays_of(part) for key, part in value.items()}
    if value.__class__ in (list, tuple):
        return value.__class__([arrays_of(part) for part in value])
    return value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors among arguments."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def is_tracked(*values: Any) -> bool:
    """Say whether there is a gradient to lose among arguments."""
    return is_grad_enabled() and any(tensor.requires_grad for tensor in tensors_in(values))


def constant(array: Array) -> Tensor:
    """Return an array, or a number of NumPy's, as a tensor in its own dtype."""
    return make(array if is_array(array) else np.asarray(array), None)
