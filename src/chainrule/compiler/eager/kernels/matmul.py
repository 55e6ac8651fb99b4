"""Operations that are made of matrix products, with products that are machine code.

Such a primitive keeps its forward function and its rules: they compute with another namespace.
"""

from __future__ import annotations

from typing import Any

from chainrule.backend import numpy_xp
from chainrule.compiler.native.gemm import gemm_namespace
from chainrule.primitives.primitive import Plan, Primitive, Rule, forward_of

Settings = dict[str, Any] | None


class Products:
    """Computes a primitive by its own functions, with machine code for products of some worth."""

    def __init__(self, primitive: Primitive, worth: int) -> None:
        self.primitive = primitive
        self.xp = gemm_namespace(worth)

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function."""
        return forward_of(self.primitive, self.xp)

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the pull of a plan."""
        own = self.xp

        def vjp(xp: Any, g: Any, saved: tuple[Any, ...], settings: Settings) -> Any:
            return plain(own if xp is numpy_xp else xp, g, saved, settings)

        return vjp
