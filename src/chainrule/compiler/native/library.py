"""NumPy's namespace with matrix products, and so convolutions, that are machine code."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule.backend import ndarray, numpy_xp
from chainrule.backend.extensions import Namespace, kernels_of
from chainrule.compiler.native.gemm import product_of

Array = Any

WORTH = 1 << 17
"""With so many multiplications, it's worth looking for a product of these shapes."""

_known = functools.lru_cache(256)(product_of)


@functools.cache
def library(worth: int = WORTH) -> Namespace:
    """Return the namespace: what has fewer multiplications than are `worth` it is NumPy's."""

    def matmul(x: Array, y: Array, out: Array | None = None) -> Array:
        if x.ndim > 1 < y.ndim and x.size * y.shape[-1] >= worth:
            product = _known(x.shape, y.shape, x.dtype, y.dtype)
            if product is not None and x.__class__ is ndarray is y.__class__:
                return product(x, y, None if out is None else (out,))
        return numpy_xp.matmul(x, y) if out is None else np.matmul(x, y, out=out)

    own = {"matmul": matmul}
    return Namespace(np, **vars(numpy_xp) | kernels_of(Namespace(np, **own)) | own)
