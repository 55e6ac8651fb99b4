"""Operations that are made of matrix products, with products that are machine code.

Such a primitive keeps its forward function and its rules: they compute with a namespace whose
products, and whose convolutions, are these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.backend import ndarray, numpy_xp
from chainrule.backend.extensions import Namespace, kernels_of
from chainrule.compiler.native.products import LEAST, Product, registers
from chainrule.primitives.primitive import Plan, Primitive, Rule, forward_of

Array = Any
Settings = dict[str, Any] | None

WORTH = 1 << 17
"""With so many multiplications, it's worth looking for a product of these shapes."""

_MOST = 256
"""Products of so many shapes are remembered."""


class Products:
    """Computes a primitive by its own functions, with other products: of `worth` and more."""

    def __init__(self, primitive: Primitive, worth: int) -> None:
        self.primitive = primitive
        self.xp = _namespace(worth)

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function."""
        return forward_of(self.primitive, self.xp)

    def pull(self, plan: Plan, plain: Rule) -> Rule:
        """Return the pull of a plan."""
        own = self.xp

        def pull(xp: Any, g: Any, saved: tuple[Any, ...], settings: Settings) -> Any:
            return plain(own if xp is numpy_xp else xp, g, saved, settings)

        return pull


def _namespace(worth: int) -> Namespace:
    """Return NumPy's namespace with other products."""
    known: dict[Any, Product | None] = {}

    def matmul(x: Array, y: Array, out: Array | None = None) -> Array:
        if x.ndim > 1 < y.ndim and x.size * y.shape[-1] >= worth:
            key = (x.shape, y.shape, x.dtype, y.dtype)
            if key not in known:
                if len(known) >= _MOST:
                    known.clear()
                known[key] = _product(x, y)
            product = known[key]
            if product is not None and x.__class__ is ndarray is y.__class__:
                return product(x, y, None if out is None else (out,))
        return numpy_xp.matmul(x, y) if out is None else np.matmul(x, y, out=out)

    own = {"matmul": matmul}
    return Namespace(np, **vars(numpy_xp) | kernels_of(Namespace(np, **own)) | own)


def _product(x: Array, y: Array) -> Product | None:
    """Return what multiplies matrices of these shapes, None if it's NumPy's to do."""
    available = registers()
    if available is None or x.dtype != y.dtype or x.dtype.char not in "fd" or not x.dtype.isnative:
        return None
    if x.shape[-1] != y.shape[-2] or min(*x.shape[-2:], y.shape[-1]) < LEAST:
        return None
    try:
        return Product(x.shape, y.shape, x.dtype, available)
    except ValueError:  # stacks that don't fit, of which NumPy tells
        return None
