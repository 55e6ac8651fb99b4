"""What the functions of sliding windows ask of their arguments."""

from __future__ import annotations

from operator import index
from typing import Any

from chainrule import ops
from chainrule.arguments import Operand, floating
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ShapeError

Sizes = tuple[int, ...]


def per_dim(name: str, argument: str, value: Any, rank: int, least: int = 1) -> Sizes:
    """Return an argument that is one int, or one for each spatial dimension."""
    try:
        listed = tuple(map(index, value)) if hasattr(value, "__iter__") else (index(value),)
    except TypeError:
        raise TypeError(
            f"{name}: {argument} must be an int, or {rank} of them, not {value!r}"
        ) from None
    if len(listed) == 1:
        listed *= rank
    if len(listed) != rank:
        raise ValueError(
            f"{name}: {argument} must be an int, or a tuple of {rank} ints, one for each spatial "
            f"dimension, but got {value!r}"
        )
    if min(listed) < least:
        wrong = "non-positive" if least else "negative"
        raise ValueError(f"{name}: {wrong} {argument} is not supported: got {value!r}")
    return listed


def batched(name: str, input: Operand, rank: int) -> tuple[Tensor, bool]:
    """Return floats of the shape (n, c, …), and whether the samples' dimension was missing."""
    x = floating(input)
    if x.ndim == rank + 1:
        return ops.unsqueeze(x, 0), True
    if x.ndim != rank + 2:
        raise ShapeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got "
            f"input of size: {list(x.shape)}"
        )
    return x, False


def unbatched(x: Tensor, single: bool) -> Tensor:
    """Return the result for one sample without the dimension that `batched` added."""
    return ops.squeeze(x, 0) if single else x
