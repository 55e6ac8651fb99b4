"""NumPy's namespace with matrix products, and so convolutions, that are machine code."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule.backend import ndarray, numpy_xp
from chainrule.backend.extensions import Namespace, kernels_of
from chainrule.compiler.native.products import LEAST, Product, registers

Array = Any
Shape = tuple[int, ...]

WORTH = 1 << 17
"""With so many multiplications, it's worth looking for a product of these shapes."""


@functools.cache
def library(worth: int = WORTH) -> Namespace:
    """Return the namespace: what has fewer multiplications than are `worth` it is NumPy's."""

    def matmul(x: Array, y: Array, out: Array | None = None) -> Array:
        if x.ndim > 1 < y.ndim and x.size * y.shape[-1] >= worth:
            product = _product(x.shape, y.shape, x.dtype, y.dtype)
            if product is not None and x.__class__ is ndarray is y.__class__:
                return product(x, y, None if out is None else (out,))
        return numpy_xp.matmul(x, y) if out is None else np.matmul(x, y, out=out)

    own = {"matmul": matmul}
    return Namespace(np, **vars(numpy_xp) | kernels_of(Namespace(np, **own)) | own)


@functools.lru_cache(256)
def _product(x: Shape, y: Shape, dtype: Any, other: Any) -> Product | None:
    """Return what multiplies matrices of these shapes, None if it's NumPy's to do."""
    available = registers()
    if available is None or dtype != other or dtype.char not in "fd" or not dtype.isnative:
        return None
    if x[-1] != y[-2] or min(*x[-2:], y[-1]) < LEAST:
        return None
    try:
        return Product(x, y, dtype, available)
    except ValueError:  # stacks that don't fit, of which NumPy tells
        return None
