"""NumPy's namespace with matrix products, convolutions and pooling as machine code."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.backend import ndarray, numpy_xp
from chainrule.backend.extensions import Namespace, kernels_of
from chainrule.backend.numpy_namespace import LAPACK
from chainrule.compiler.native import pooling
from chainrule.compiler.native.convolution import Correlations
from chainrule.compiler.native.gemm import make_product

Array = Any

_MIN_MULTIPLIES = 1 << 17
"""Number of multiplications from which looking up a compiled product pays."""

_cached_product = functools.lru_cache(256)(make_product)


@functools.cache
def gemm_namespace(min_multiplies: int = _MIN_MULTIPLIES) -> Namespace:
    """Return the namespace; NumPy computes what has fewer multiplications."""

    def matmul(x: Array, y: Array, out: Array | None = None) -> Array:
        if x.ndim > 1 < y.ndim and x.size * y.shape[-1] >= min_multiplies:
            product = _cached_product(x.shape, y.shape, x.dtype, y.dtype)
            if product is not None and x.__class__ is ndarray is y.__class__:
                return product(x, y, None if out is None else (out,))
        return numpy_xp.matmul(x, y) if out is None else np.matmul(x, y, out=out)

    own = {"matmul": matmul}
    inner = Namespace(np, **own, correlations=Correlations(min_multiplies))
    kernels = kernels_of(inner)
    native = {f.__name__: _if_supported(f, kernels[f.__name__]) for f in _POOLING}
    return Namespace(np, **vars(numpy_xp) | kernels | LAPACK | own | native)


_POOLING = (pooling.max_pool, pooling.pool_positions, pooling.pool_place)


def _if_supported(kernel: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes by a kernel, or else by NumPy if it returns None."""

    def function(*arrays: Array, **settings: Any) -> Array:
        found = kernel(*arrays, **settings)
        return plain(*arrays, **settings) if found is None else found

    return function
