"""Which primitives machine code computes when it is asked to, and how."""

from __future__ import annotations

from typing import Any

from chainrule.compiler.eager.elementwise import Elementwise
from chainrule.compiler.eager.kernels import (
    activations,
    concat,
    gather_scatter,
    matmul,
    pooling,
    reductions,
    softmax_norm,
)
from chainrule.compiler.eager.substitute import Own, Written
from chainrule.compiler.native.gemm import MIN_MULTIPLIES
from chainrule.primitives.primitive import TABLE, Primitive, Rule, Substitute

LEAST = 1 << 12
"""From so many elements on, a loop takes less time than several calls of NumPy's."""

_LATER = 1 << 16
"""The same for what is one call of NumPy's, which a second thread has to help with."""

_ONE_CALL = (
    *("abs", "add", "divide", "maximum", "minimum", "multiply", "negative", "reciprocal"),
    *("sqrt", "square", "subtract"),
)
_SEVERAL_CALLS = (
    *("clamp", "exp", "expm1", "log", "log1p", "power", "relu", "sigmoid", "softplus", "tanh"),
)

PRODUCTS = ("contract", "convolve", "convolve_input", "convolve_weight", "matmul")

_WRITTEN: dict[str, tuple[Own, Own]] = {
    "softmax": (softmax_norm.softmax, softmax_norm.softmax_vjp),
    "log_softmax": (softmax_norm.log_softmax, softmax_norm.log_softmax_vjp),
    "standardize": (softmax_norm.standardize, softmax_norm.standardize_vjp),
    "cumulative_sum": (softmax_norm.running_sum, softmax_norm.running_sum_vjp),
    "take_along_axis": (gather_scatter.take_along_axis, gather_scatter.take_along_axis_vjp),
    "add_along_axis": (gather_scatter.add_along_axis, gather_scatter.add_along_axis_vjp),
}


class _Gelu(Elementwise):
    """gelu: its derivative is made of the rule, its value has a loop of its own."""

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function."""
        return Written(activations.gelu, None, self.least).forward(plain)


class _Index(Written):
    """Indexing: whole rows NumPy copies as quickly as one thread may, and is called at once."""

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function."""
        own = super().forward(plain)

        def forward(x: Any, *, key: Any) -> Any:
            of_rows = x.ndim > 1 and (key.__class__ is not tuple or len(key) < x.ndim)
            if of_rows and x.size < _LATER and x.shape[-1] >= _WIDE:
                return plain(x, key=key)
            return own(x, key=key)

        return forward


_WIDE = 16
"""Rows of so many numbers are copied with few instructions for each."""


def substitutes(
    least: int = LEAST, later: int = _LATER, worth: int = MIN_MULTIPLIES
) -> dict[Primitive, Substitute]:
    """Return what computes which primitive, from so many elements on, or multiplications."""
    found: dict[str, Substitute] = {}
    for name in _ONE_CALL:
        found[name] = Elementwise(TABLE[name], later)
    for name in _SEVERAL_CALLS:
        found[name] = Elementwise(TABLE[name], least)
    for name, (forward, vjp) in _WRITTEN.items():
        found[name] = Written(forward, vjp, least)
    found["gelu"] = _Gelu(TABLE["gelu"], least)
    found["index"] = _Index(gather_scatter.index, gather_scatter.index_vjp, least)
    found["add_at"] = Written(gather_scatter.add_at, gather_scatter.add_at_vjp, least, of=1)
    found["concat"] = concat.Joined(later)
    found["max_pool"] = Written(None, pooling.max_pool_vjp, least // 4)  # of more elements
    for name in PRODUCTS:
        found[name] = matmul.Products(TABLE[name], worth)
    for name in ("sum", "mean"):
        found[name] = reductions.Sums(name, least, later)
    return {TABLE[name]: substitute for name, substitute in found.items()}
