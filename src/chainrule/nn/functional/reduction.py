"""What becomes of the losses of many elements: one number, or each as it is."""

from __future__ import annotations

from chainrule import ops
from chainrule.autograd.tensor import Tensor


def reduced(losses: Tensor, name: str, reduction: str) -> Tensor:
    """Return the mean or the sum of the losses, or the losses."""
    if reduction == "mean":
        return ops.mean(losses)
    if reduction == "sum":
        return ops.sum(losses)
    if reduction == "none":
        return losses
    raise ValueError(
        f"{name}: {reduction!r} is not a valid value for reduction: try 'mean', 'sum' or 'none'"
    )
