"""Trees of numbers as real vectors, in which solvers and linear systems compute."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.arguments import cast, tensor_of
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import promoted
from chainrule.errors import ArgumentTypeError, DTypeError
from chainrule.numpy.array_class import as_ndarrays
from chainrule.ops import cat, reshape, view_as_complex, view_as_real
from chainrule.transforms.kinds import values_of


class VectorLayout:
    """The places of a tree's leaves in a real vector; complex numbers are pairs.

    So an equation need not be holomorphic to be solved and differentiated.
    """

    def __init__(self, title: str, tree: Any) -> None:
        self.tree = tree
        found = [(path, leaf) for path, leaf in pytree.leaves(tree) if leaf is not None]
        tensors = [_tensor(title, path, leaf) for path, leaf in found]
        self.paths = [path for path, _ in found]
        self.leaves = [leaf for _, leaf in found]
        self.shapes = [t.shape for t in tensors]
        self.dtypes = [t.dtype for t in tensors]
        self.counts = [
            math.prod(shape) * (2 if dtype.kind == "c" else 1)
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        ]
        self.size = sum(self.counts)
        self.dtype = common_dtype(tensors)
        self.is_vector = len(tensors) == 1 and tensors[0].ndim == 1 and self.dtypes[0].kind == "f"

    def split(self, vector: Tensor) -> list[Tensor]:
        """Return the leaves of a vector, in their dtypes."""
        if self.is_vector:
            return [cast(vector, self.dtypes[0])]
        found, start = [], 0
        for shape, dtype, count in zip(self.shapes, self.dtypes, self.counts, strict=True):
            part = vector[start : start + count]
            start += count
            if dtype.kind == "c":
                part = view_as_complex(reshape(part, (*shape, 2)))
            found.append(cast(reshape(part, shape), dtype))
        return found

    def tree_of(self, vector: Tensor, as_arrays: bool) -> Any:
        """Return the tree of a vector, of Tensors or of what behaves as NumPy's arrays."""
        leaves = self.split(vector)
        return pytree.with_leaves(self.tree, as_ndarrays(leaves) if as_arrays else leaves)


def vector_of(title: str, tree: Any) -> Tensor:
    """Return the numbers of a tree as a real vector, recorded."""
    parts = []
    for path, leaf in pytree.leaves(tree):
        if leaf is None:
            continue
        t = _tensor(title, path, leaf)
        t = view_as_real(t) if t.dtype.kind == "c" else t
        parts.append(t if t.ndim == 1 else reshape(t, (-1,)))
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return make(np.zeros(0), None)
    dtype = common_dtype(parts)
    return cat([cast(part, dtype) for part in parts])


def common_dtype(tensors: Sequence[Tensor]) -> Any:
    """Return the real dtype that holds all numbers."""
    found = [np.dtype(t.dtype.char.lower()) for t in tensors]
    return functools.reduce(promoted, found) if found else np.dtype(float)


def _tensor(title: str, path: str, leaf: Any) -> Tensor:
    """Return a leaf as a tensor of floating or complex numbers."""
    try:
        t = tensor_of(values_of(leaf))
    except TypeError:
        raise ArgumentTypeError(
            f"{title}{path}: expected a number, an array or a Tensor, got {type(leaf).__name__}: "
            "cr.tree.register() makes a class a container of its parts"
        ) from None
    if t.dtype.kind not in "fc":
        raise DTypeError(
            f"{title}{path}: expected floating or complex numbers, got {t.dtype}: write 2.0 for 2, "
            "or convert with astype(float)"
        )
    return t
