"""Table of the primitives with native kernels, and of the sizes from which these are used."""

from __future__ import annotations

from typing import Any

from chainrule import primitives
from chainrule.compiler.eager.elementwise import Elementwise, Updates
from chainrule.compiler.eager.kernels import (
    activations,
    concat,
    matmul,
    recurrence,
    reductions,
    softmax_norm,
)
from chainrule.compiler.eager.substitute import HandWritten, KernelFunction
from chainrule.compiler.native import gather_scatter, pooling
from chainrule.compiler.native.gemm import MIN_MULTIPLIES
from chainrule.compiler.native.kernel import MIN_SIZE
from chainrule.primitives import contraction, convolution
from chainrule.primitives.primitive import TABLE, Primitive, Rule, Substitute

_MIN_SIZE_ONE_CALL = 1 << 16
"""Number of elements from which a native loop in several threads is faster than one NumPy call."""

STEPS = recurrence.STEPS

PRODUCTS = (
    contraction.contract,
    contraction.matmul,
    convolution.convolve,
    convolution.convolve_input,
    convolution.convolve_weight,
)

_HAND_WRITTEN: dict[Primitive, tuple[KernelFunction, KernelFunction]] = {
    primitives.reductions.softmax: (softmax_norm.softmax, softmax_norm.softmax_vjp),
    primitives.reductions.log_softmax: (softmax_norm.log_softmax, softmax_norm.log_softmax_vjp),
    primitives.normalisation.standardize: (softmax_norm.standardize, softmax_norm.standardize_vjp),
    primitives.reductions.cumulative_sum: (softmax_norm.running_sum, softmax_norm.running_sum_vjp),
    primitives.indexing.take_along_axis: (
        gather_scatter.take_along_axis,
        gather_scatter.take_along_axis_vjp,
    ),
    primitives.indexing.add_along_axis: (
        gather_scatter.add_along_axis,
        gather_scatter.add_along_axis_vjp,
    ),
}


class _Gelu(Elementwise):
    """gelu: a hand-written kernel for the value, a generated one for the derivative."""

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function; `plain` is NumPy's."""
        return HandWritten(activations.gelu, None, self.min_size).forward(plain)


class _Index(HandWritten):
    """Indexing; NumPy copies the long rows of small arrays, which it does as fast as a thread."""

    def forward(self, plain: Rule) -> Rule:
        """Return the forward function; `plain` is NumPy's."""
        native = super().forward(plain)

        def forward(x: Any, *, key: Any) -> Any:
            of_rows = x.ndim > 1 and (key.__class__ is not tuple or len(key) < x.ndim)
            if of_rows and x.size < _MIN_SIZE_ONE_CALL and x.shape[-1] >= _MIN_LONG_ROW:
                return plain(x, key=key)
            return native(x, key=key)

        return forward


_MIN_LONG_ROW = 16
"""Number of elements of a row from which copying it takes few instructions per element."""


def updates() -> list[Updates]:
    """Return what runs the formulas of optimisers."""
    return [Updates()]


def substitutes(
    min_size: int = MIN_SIZE,
    min_size_one_call: int = _MIN_SIZE_ONE_CALL,
    min_multiplies: int = MIN_MULTIPLIES,
) -> dict[Primitive, Substitute]:
    """Return the substitutes of primitives, used from these numbers of elements or multiplies."""
    sizes = {"memory": min_size_one_call, "compute": min_size}
    found: dict[Primitive, Substitute] = {}
    for primitive in TABLE.values():
        if primitive.native is not None:
            found[primitive] = Elementwise(primitive, sizes[primitive.native])
    for primitive, (forward, vjp) in _HAND_WRITTEN.items():
        found[primitive] = HandWritten(forward, vjp, min_size)
    for primitive in PRODUCTS:
        found[primitive] = matmul.Products(primitive, min_multiplies)
    for primitive in (primitives.reductions.sum, primitives.reductions.mean):
        found[primitive] = reductions.Sums(primitive.name, min_size, min_size_one_call)
    kernels = softmax_norm.layer_normalize, softmax_norm.layer_normalize_vjp
    add_at = HandWritten(gather_scatter.add_at, gather_scatter.add_at_vjp, min_size, of=1)
    max_pool = HandWritten(pooling.max_pool, pooling.max_pool_vjp, min_size // 4)  # g is smaller
    return found | {
        primitives.activations.gelu: _Gelu(primitives.activations.gelu, min_size),
        primitives.indexing.index: _Index(gather_scatter.index, gather_scatter.index_vjp, min_size),
        primitives.indexing.add_at: add_at,
        primitives.shaping.concat: concat.Concat(min_size_one_call),
        primitives.normalisation.layer_normalize: HandWritten(*kernels, min_size, of=None),
        primitives.pooling.max_pool: max_pool,
    }
