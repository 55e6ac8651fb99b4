"""Products of sparse matrices that are given by the rows, columns and values of their elements."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

from chainrule.autograd.function import Function
from chainrule.autograd.tensor import Tensor, make
from chainrule.creation import zeros

__all__ = ["product_of_triplets"]


def product_of_triplets(
    rows: Tensor, cols: Tensor, values: Tensor, dense: Tensor, count: int
) -> Tensor:
    """Return S @ dense, where S has `count` rows and `values` at (rows, cols)."""
    arrays = [each._array for each in (rows, cols, values, dense)]
    plain = all(array.__class__ is np.ndarray for array in arrays)
    if plain and values.dtype.char in "fd" and find_spec("scipy") is not None:
        found: Tensor = _ByScipy.apply(rows, cols, values, dense, count)
        return found
    products = values.unsqueeze(1) * dense.index_select(0, cols)
    total = zeros((count, dense.shape[1]), dtype=dense.dtype, device=dense.device)
    return total.index_add(0, rows, products)


class _ByScipy(Function):
    """The product by SciPy, which needs no memory for the products of single elements.

    Its derivatives are products again, so that they can be differentiated.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, cols: Tensor, values: Tensor, dense: Tensor, n: int) -> Any:
        import scipy.sparse

        ctx.save_for_backward(rows, cols, values, dense)
        ctx.count = n
        place = rows._array, cols._array
        shape = n, dense.shape[0]
        matrix = scipy.sparse.csr_array((values._array, place), shape=shape)
        return make(matrix @ dense._array, None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        rows, cols, values, dense = ctx.saved_tensors
        by_values = by_dense = None
        if ctx.needs_input_grad[2]:
            by_values = (grad.index_select(0, rows) * dense.index_select(0, cols)).sum(1)
        if ctx.needs_input_grad[3]:
            by_dense = product_of_triplets(cols, rows, values, grad, dense.shape[0])
        return None, None, by_values, by_dense, None

    @staticmethod
    def jvp(ctx: Any, _r: Any, _c: Any, d_values: Any, d_dense: Any, n: Any) -> Any:
        rows, cols, values, dense = ctx.saved_tensors
        parts = []
        if d_values is not None:
            parts.append(product_of_triplets(rows, cols, d_values, dense, ctx.count))
        if d_dense is not None:
            parts.append(product_of_triplets(rows, cols, values, d_dense, ctx.count))
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]
