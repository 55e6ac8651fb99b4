"""What is in PyTorch's `nn.functional` and is a function of tensors like any other."""

from __future__ import annotations

from chainrule.ops import bilinear, linear, pdist

__all__ = ["linear", "bilinear", "pdist"]
