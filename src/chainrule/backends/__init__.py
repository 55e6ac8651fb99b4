"""Settings of PyTorch's backends, which scripts read and set: here they have no effect."""

from chainrule.backends import cuda, cudnn, mps

__all__ = ["cuda", "cudnn", "mps"]
