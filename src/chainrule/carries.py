"""What loops carry along and branches return: trees of tensors, of the same kinds each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError, ShapeError

Tensors = Sequence[Tensor]


def tensors_of(what: str, node: Any) -> list[Tensor]:
    """Return the leaves of a tree as tensors; None is none."""
    found = []
    for path, leaf in pytree.leaves(node):
        if leaf is not None:
            try:
                found += as_tensors((leaf,))
            except TypeError:
                raise _no_tensor(f"{what}{path}", leaf) from None
    return found


def _no_tensor(where: str, value: Any) -> TypeError:
    return TypeError(
        f"{where}: expected a Tensor, an array or a number, got {type(value).__name__}"
    )


def matched(what: str, node: Any, expected: Tensors, other: Any) -> list[Tensor]:
    """Return the leaves of another tree as tensors, of the kind that those of the first have."""
    found, kinds = [], iter(expected)
    for path, first, second in pytree.beside(node, other):
        if first is None and second is None:
            continue
        if any(part is None or pytree.children(part) is not None for part in (first, second)):
            raise TypeError(
                f"{what} must keep its structure: {what.split()[-1]}{path} was {said(first)}, "
                f"and is {said(second)} now"
            )
        found.append(_alike(what, path, next(kinds), second))
    return found


def _alike(what: str, path: str, like: Tensor, value: Any) -> Tensor:
    """Return a leaf as a tensor, if it has the shape and dtype that it had before."""
    place = f"{what.split()[-1]}{path}"
    try:
        _, tensor = as_tensors((like, value))
    except TypeError:
        raise _no_tensor(f"{what}{path}", value) from None
    if tensor._array.shape != like._array.shape:
        raise ShapeError(
            f"{what} must keep its shapes: {place} was of shape {list(like.shape)}, and is of "
            f"{list(tensor.shape)} now: begin with the shape that it will have, or collect what "
            "grows as y"
        )
    if np.dtype(tensor._array.dtype) != like._array.dtype:
        raise DTypeError(
            f"{what} must keep its dtypes: {place} was {like.dtype}, and is {tensor.dtype} now: "
            f"begin with {tensor.dtype}, or convert by .to(cr.{like.dtype}) at the end of a step"
        )
    return tensor


def said(value: Any) -> str:
    """Return what a leaf or container is, for an error."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {list(value.shape)}"
    parts = pytree.children(value)
    if parts is None:
        return "None" if value is None else f"a {type(value).__name__}"
    steps = ", ".join(step for step, _ in parts)
    return f"a {type(value).__name__} of {len(parts)} ({steps})"
