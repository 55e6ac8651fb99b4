"""Substitutes of primitives that use matrix products: a namespace with native products.

Such primitives keep their forward functions and rules, which compute with the other namespace.
"""

from __future__ import annotations

from typing import Any

from chainrule.backend import numpy_xp
from chainrule.compiler.native.namespace import gemm_namespace
from chainrule.primitives.primitive import Plan, Primitive, Rule, forward_of

Settings = dict[str, Any] | None


class Products:
    """Substitute of a primitive with native products of `min_multiplies` multiplies or more."""

    def __init__(self, primitive: Primitive, min_multiplies: int) -> None:
        self.primitive = primitive
        self.xp = gemm_namespace(min_multiplies)

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function."""
        return forward_of(self.primitive, self.xp)

    def vjp(self, plan: Plan, plain: Rule) -> Rule:
        """Return the VJP function of a plan."""
        native_xp = self.xp

        def vjp(xp: Any, g: Any, saved: tuple[Any, ...], settings: Settings) -> Any:
            return plain(native_xp if xp is numpy_xp else xp, g, saved, settings)

        return vjp
