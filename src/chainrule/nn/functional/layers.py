"""Layers whose weights are arguments."""

from __future__ import annotations

from chainrule.ops import linear

__all__ = ["linear"]
