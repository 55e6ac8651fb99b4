"""The class of recorded arrays, for `isinstance`."""

from __future__ import annotations

from chainrule.compat.autograd.tracer import Box

__all__ = ["ArrayBox"]


class ArrayBox(Box):
    """The class of arrays that a transform differentiates, for `isinstance` alone."""
